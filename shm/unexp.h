/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that arrived before their receive: memory and bounds. unexp.c has
 * the invariants. All functions: domain lock held.
 */
#ifndef TDM_SHM_UNEXP_H
#define TDM_SHM_UNEXP_H

#include "shm/path.h"

/*
 * Memory that a message with @len bytes kept here takes, the owner's entry
 * included.
 */
size_t tdm_shm_unexp_bytes(const struct tdm_shm_pair *pair, size_t len);

/* One of which @len bytes are kept here. NULL: out of memory. */
struct tdm_shm_unexp *tdm_shm_unexp_alloc(struct tdm_shm_pair *pair,
					  size_t len);

/* One that was announced: it has @pull. NULL: out of memory. */
struct tdm_shm_unexp *tdm_shm_unexp_announced(struct tdm_shm_pull *pull);
void tdm_shm_unexp_free(struct tdm_shm_unexp *u);

/* Find the account of @ep, which has its receive side. */
void tdm_shm_unexp_init(struct tdm_shm_ep *ep);

/* A session of @pair begins: it is held when there is no room at all. */
void tdm_shm_unexp_begin(struct tdm_shm_pair *pair);

/* A session of @pair is over: announced messages go when there is no room. */
void tdm_shm_unexp_lost(struct tdm_shm_pair *pair);

/* Payload was kept: is it time for @pair to only announce? */
void tdm_shm_unexp_kept(struct tdm_shm_pair *pair);

/* Source of an unexpected entry, for foreach_unspec_addr(). */
fi_addr_t tdm_shm_rx_source(struct fi_peer_rx_entry *entry);

/* fi_close: unexpected messages stay the owner's to discard. */
void tdm_shm_rx_orphan(struct tdm_shm_ep *ep);

#endif /* TDM_SHM_UNEXP_H */
