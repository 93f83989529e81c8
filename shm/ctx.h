/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive contexts of scalable endpoints, and groups.
 */
#ifndef TDM_SHM_CTX_H
#define TDM_SHM_CTX_H

#include "shm/ep.h"

/* Called when @ep->srx has been bound: finds out whether it has contexts. */
void tdm_shm_ctx_import(struct tdm_shm_ep *ep);

/*
 * Called when a session begins: context 0 and group 0 are selected in both
 * directions.
 */
void tdm_shm_ctx_reset(struct tdm_shm_pair *pair);

/* Handle a SELECT. Returns 0, or -1: there is no such context or group. */
int tdm_shm_ctx_select(struct tdm_shm_pair *pair, unsigned int index,
		       uint64_t group);

/*
 * As tdm_shm_tx_send() and tdm_shm_rma_send(), with an address of @space that
 * may name a context and a group. -FI_EADDRNOTAVAIL: the peer does not have
 * the context, or no groups.
 */
ssize_t tdm_shm_ctx_send(struct tdm_shm_ep *ep, const struct tdm_xfer *x,
			 const struct tdm_space *space);

#endif /* TDM_SHM_CTX_H */
