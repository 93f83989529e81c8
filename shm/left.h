/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A closing endpoint leaves to its peers the payload of injects that were
 * announced and not fetched, answers that found no room in the ring, and
 * GOODBYE. doc/PROTOCOL-shm.md, "The end". Lock: domain held.
 */
#ifndef TDM_SHM_LEFT_H
#define TDM_SHM_LEFT_H

#include <stdint.h>

#include "base/base.h"

struct tdm_shm_pair;
struct tdm_shm_session;

/*
 * The endpoint closes: send the peer of @pair, which is up, the payload that it
 * has not fetched, and GOODBYE. Records that find no room in the ring go over
 * the lifeline.
 */
void tdm_shm_left_give(struct tdm_shm_pair *pair);

/*
 * Keep an area of @pages, received as @fd, which stays the caller's. Errors:
 * -FI_EPROTO when it is invalid, -FI_EAGAIN when it is lost for want of memory.
 */
int tdm_shm_left_take(struct tdm_shm_session *s, uint32_t pages,
		      int fd) tdm_must_check;

/*
 * The peer of @pair is gone and its ring is empty: handle the records that it
 * left, and give its announced messages the payload that it left. Returns 1
 * when GOODBYE was among the records, else 0.
 */
int tdm_shm_left_place(struct tdm_shm_pair *pair);

#endif /* TDM_SHM_LEFT_H */
