/* SPDX-License-Identifier: BSD-2-Clause */
/* Larger rings for pairs that need them. grow.c has the rules. */
#ifndef TDM_SHM_GROW_H
#define TDM_SHM_GROW_H

#include <stddef.h>
#include <stdint.h>

#include "shm/ep.h"

/*
 * Move to a larger ring: sends the memory of the new ring to the peer, then
 * writes MOVED to the old ring, so that messages stay in order. If that fails,
 * the old ring stays in use. Lock: domain held.
 */
void tdm_shm_grow_now(struct tdm_shm_pair *pair);

/*
 * Call it before a payload of @len bytes is sent: moves to a larger ring when
 * the countdown grow_in ends, or when @len fits a larger ring but not this one.
 * Lock: domain held.
 */
static inline void tdm_shm_grow(struct tdm_shm_pair *pair, size_t len)
{
	if (tdm_unlikely(pair->grow_in && !--pair->grow_in))
		tdm_shm_grow_now(pair);
	if (tdm_unlikely(len > pair->eager_most) &&
	    len <= pair->ep->eager_most && pair->tx.gen == 0)
		tdm_shm_grow_now(pair);
}

/*
 * Called from time to time before a record of @n slots is written, at time @now (ns).
 * The caller has just read tx.credit. If @pair writes fast enough, and ahead of its
 * peer, plans a move to the ring of a stream for its next send. Lock: domain held.
 */
void tdm_shm_grow_pace(struct tdm_shm_pair *pair, uint64_t now, uint32_t n);

#endif /* TDM_SHM_GROW_H */
