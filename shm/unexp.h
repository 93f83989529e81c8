/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that arrived before their receive: memory and bounds. unexp.c has
 * the invariants. All functions: domain lock held.
 */
#ifndef TDM_SHM_UNEXP_H
#define TDM_SHM_UNEXP_H

#include "shm/path.h"

/*
 * One message of @len bytes whose @payload is kept here, or not: then it was
 * announced. NULL: out of memory.
 */
struct tdm_shm_unexp *tdm_shm_unexp_alloc(struct tdm_shm_pair *pair, size_t len,
					  int payload);
void tdm_shm_unexp_free(struct tdm_shm_unexp *u);

/* Payload was kept: is it time for @pair to only announce? */
void tdm_shm_unexp_kept(struct tdm_shm_pair *pair);

/* Source of an unexpected entry, for foreach_unspec_addr(). */
fi_addr_t tdm_shm_rx_source(struct fi_peer_rx_entry *entry);

/* fi_close: unexpected messages stay the owner's to discard. */
void tdm_shm_rx_orphan(struct tdm_shm_ep *ep);

#endif /* TDM_SHM_UNEXP_H */
