/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control records. One that finds no free slot in the ring waits for a slot.
 * Lock: domain held.
 */
#ifndef TDM_SHM_CTL_H
#define TDM_SHM_CTL_H

#include <stdint.h>

#include "base/base.h"

struct tdm_shm_ctl;
struct tdm_shm_pair;

/*
 * Write @ctl to the ring, now or as soon as there is room; its memory is then
 * freed as its kind says.
 */
void tdm_shm_ctl_send(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl);

/* Free the memory of @ctl, which will not be written. */
void tdm_shm_ctl_drop(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl);

/* Write waiting control records, as far as there is room. */
void tdm_shm_ctl_flush(struct tdm_shm_pair *pair);

/*
 * Write tag and body of the record @ctl to @slot. Returns word 0 of the record,
 * without the lap.
 */
uint64_t tdm_shm_ctl_encode(const struct tdm_shm_ctl *ctl, uint8_t *slot);

/*
 * Write GOODBYE, which tells the peer that the endpoint closes and is the last
 * record. Errors: -FI_EAGAIN: there is no room, or other records wait for it.
 */
int tdm_shm_ctl_goodbye(struct tdm_shm_pair *pair) tdm_must_check;

#endif /* TDM_SHM_CTL_H */
