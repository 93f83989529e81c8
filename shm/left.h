/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records and payload that a closing endpoint leaves to its peers: the payload
 * of injected messages that it has announced and the peer has not fetched,
 * answers that found no room in the ring, and GOODBYE. doc/PROTOCOL-shm.md,
 * "The end". Lock: domain held.
 */
#ifndef TDM_SHM_LEFT_H
#define TDM_SHM_LEFT_H

#include <stdint.h>

#include "base/base.h"

struct tdm_shm_pair;
struct tdm_shm_session;

/*
 * Called when the endpoint closes: sends the peer of @pair, which must be up,
 * the payload that it has not fetched, and GOODBYE. Records that find no room
 * in the ring go over the lifeline.
 */
void tdm_shm_left_give(struct tdm_shm_pair *pair);

/*
 * Map the area of @pages pages whose descriptor @fd arrived, and keep it with
 * @s. @fd stays the caller's. Errors: -FI_EPROTO: it is invalid; -FI_EAGAIN: it
 * is lost for want of memory.
 */
int tdm_shm_left_take(struct tdm_shm_session *s, uint32_t pages,
		      int fd) tdm_must_check;

/*
 * Called when the peer of @pair has closed or died and its ring has been read:
 * handles the records that the peer sent over the lifeline when it closed, and
 * completes its announced messages from the payload sent there. Returns 1 when
 * GOODBYE was among the records, else 0.
 */
int tdm_shm_left_place(struct tdm_shm_pair *pair);

#endif /* TDM_SHM_LEFT_H */
