/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How an endpoint that closes takes leave of a peer: the payload of injects that
 * were announced and not fetched, answers that found no room in the ring, and
 * GOODBYE. doc/PROTOCOL-shm.md, "The end". Lock: domain held.
 */
#ifndef TDM_SHM_LEFT_H
#define TDM_SHM_LEFT_H

#include <stdint.h>

#include "base/base.h"

struct tdm_shm_pair;
struct tdm_shm_session;

/*
 * The endpoint closes: hand over to the peer of @pair, which is up, payload that
 * it has not fetched, and say GOODBYE. The lifeline has the records for which the
 * ring has no room.
 */
void tdm_shm_left_give(struct tdm_shm_pair *pair);

/*
 * Keep an area of @pages that came as @fd, which stays the caller's. Errors:
 * -FI_EPROTO when it is not as required, -FI_EAGAIN when it is lost for want of
 * memory.
 */
int tdm_shm_left_take(struct tdm_shm_session *s, uint32_t pages,
		      int fd) tdm_must_check;

/*
 * The peer of @pair is gone and its ring is empty: take the records that it has
 * left, and give the messages that it announced the payload that it has left.
 * Returns 1 when GOODBYE was among the records, else 0.
 */
int tdm_shm_left_place(struct tdm_shm_pair *pair);

#endif /* TDM_SHM_LEFT_H */
