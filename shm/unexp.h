/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unexpected messages: memory and bounds. unexp.c has the invariants. All
 * functions: domain lock held.
 */
#ifndef TDM_SHM_UNEXP_H
#define TDM_SHM_UNEXP_H

#include "shm/ep.h"

/*
 * Returns how much memory a message uses of which @len bytes are kept here, the
 * owner's entry included.
 */
size_t tdm_shm_unexp_bytes(const struct tdm_shm_pair *pair, size_t len);

/*
 * Allocates a message of which @len bytes are kept here. NULL: out of memory.
 */
struct tdm_shm_unexp *tdm_shm_unexp_alloc(struct tdm_shm_pair *pair,
					  size_t len);

/*
 * Allocates an announced message, whose bytes @pull will fetch. NULL: out of
 * memory.
 */
struct tdm_shm_unexp *tdm_shm_unexp_announced(struct tdm_shm_pull *pull);
void tdm_shm_unexp_free(struct tdm_shm_unexp *u);

/* Not 0 while the session through which @u came has not been ended. */
static inline int tdm_shm_unexp_here(const struct tdm_shm_unexp *u)
{
	return u->pair->state == TDM_SHM_PAIR_UP && u->pair->epoch == u->epoch;
}

/* Not 0 while the session through which @u came is up. */
static inline int tdm_shm_unexp_live(const struct tdm_shm_unexp *u)
{
	return tdm_shm_unexp_here(u) && !u->pair->broken;
}

/* Find the account of @ep, whose receive side must have been bound. */
void tdm_shm_unexp_init(struct tdm_shm_ep *ep);

/* Not 0 when a new session of @ep must begin held: the account is full. */
int tdm_shm_unexp_full(const struct tdm_shm_ep *ep);

/*
 * Called when a session of @pair begins: the pair is held if the account is
 * full, else not, whatever it was when the segment was made.
 */
void tdm_shm_unexp_begin(struct tdm_shm_pair *pair);

/*
 * Called when a session of @pair has ended: drops its announced messages if the
 * account is full.
 */
void tdm_shm_unexp_lost(struct tdm_shm_pair *pair);

/*
 * Called when payload of @pair has been kept: holds the pair if it uses too
 * much.
 */
void tdm_shm_unexp_kept(struct tdm_shm_pair *pair);

/* Returns the source of an unexpected entry, for foreach_unspec_addr(). */
fi_addr_t tdm_shm_rx_source(struct fi_peer_rx_entry *entry);

/*
 * Called at fi_close of @ep: detaches its unexpected messages, which the owner
 * discards later.
 */
void tdm_shm_rx_orphan(struct tdm_shm_ep *ep);

#endif /* TDM_SHM_UNEXP_H */
