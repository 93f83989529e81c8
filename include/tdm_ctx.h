/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several receive contexts behind one SRX. fi_peer(3) knows one receive queue
 * per endpoint; a scalable endpoint has many. The owner of such an endpoint
 * exports one SRX as usual: it stands for context 0, and its free_entry()
 * accepts the entries of all contexts. The exported SRX also offers this
 * interface, opened by fi_open_ops(&srx->ep_fid.fid, TDM_CTX_OPS, 0, &ops,
 * NULL).
 *
 * For a message that names a context, a transport gets the SRX of that context
 * from srx() and calls its get_msg() or get_tag(); it makes all other calls on
 * the SRX that it imported. A receive of such an endpoint completes through
 * recv() and recv_err(), not through a CQ bound to it: tdm_done_recv() calls
 * them when tdm_done.ctx is set.
 *
 * All functions: domain lock held.
 */
#ifndef TDM_CTX_H
#define TDM_CTX_H

#include <rdma/providers/fi_peer.h>

#include "tdm_result.h"

#define TDM_CTX_OPS "tandem_contexts_1"

/* Greatest number of receive contexts of an endpoint; an index has 16 bits. */
enum { TDM_CTX_MOST = 65536 };

struct tdm_ctx_ops {
	size_t size;
	/*
	 * The number of receive contexts of the endpoint that exports @srx; at
	 * least 1.
	 */
	unsigned int (*count)(struct fid_peer_srx *srx);
	/* The SRX of context @index, which is below count(). */
	struct fid_peer_srx *(*srx)(struct fid_peer_srx *srx,
				    unsigned int index);
	/*
	 * As tdm_done_recv() and tdm_done_recv_err(), but write to the CQ and
	 * the counter of the context that @entry belongs to.
	 */
	void (*recv)(const struct fi_peer_rx_entry *entry, size_t len);
	void (*recv_err)(const struct fi_peer_rx_entry *entry,
			 const struct tdm_result *result);
};

#endif /* TDM_CTX_H */
