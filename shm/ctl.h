/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control records, which wait for a slot of the ring when there is none. Lock:
 * domain held.
 */
#ifndef TDM_SHM_CTL_H
#define TDM_SHM_CTL_H

#include <stdint.h>

#include "base/base.h"

struct tdm_shm_ctl;
struct tdm_shm_pair;

/* Write @ctl, now or as soon as there is room. Takes it over. */
void tdm_shm_ctl_send(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl);

/* @ctl will not be written: give its memory back. */
void tdm_shm_ctl_drop(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl);

/* Write what waits, as far as there is room. */
void tdm_shm_ctl_flush(struct tdm_shm_pair *pair);

/*
 * Write the tag and the body of @ctl's record, which begins at @slot. Returns
 * its word 0, without the lap.
 */
uint64_t tdm_shm_ctl_encode(const struct tdm_shm_ctl *ctl, uint8_t *slot);

/*
 * Tell the peer that the endpoint closes: the last record. -FI_EAGAIN: there is
 * no room, or records wait for it.
 */
int tdm_shm_ctl_goodbye(struct tdm_shm_pair *pair) tdm_must_check;

#endif /* TDM_SHM_CTL_H */
