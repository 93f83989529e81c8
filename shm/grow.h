/* SPDX-License-Identifier: BSD-2-Clause */
/* Larger rings for pairs that need them. grow.c has the rules. */
#ifndef TDM_SHM_GROW_H
#define TDM_SHM_GROW_H

#include <stddef.h>
#include <stdint.h>

#include "shm/ep.h"

/*
 * Move to a larger ring: send its memory, then write MOVED to the old one, so
 * that messages stay in order. A failure does no harm. Lock: domain held.
 */
void tdm_shm_grow_now(struct tdm_shm_pair *pair);

/*
 * A payload of @len bytes is about to be sent: grow the ring if it is time, or
 * if the payload fits a larger ring only. Lock: domain held.
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
 * @now, ns: how fast does @pair write? Plans the ring of a stream for the next
 * send if it is fast enough. Lock: domain held.
 */
void tdm_shm_grow_pace(struct tdm_shm_pair *pair, uint64_t now);

#endif /* TDM_SHM_GROW_H */
