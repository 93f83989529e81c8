/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A question of an owner to a peer provider, beyond fi_peer(3): does a session
 * live? Somebody else may claim the address of a peer, and the owner must
 * not believe it while the peer is there. A peer need not offer this.
 */
#ifndef TDM_LIVE_H
#define TDM_LIVE_H

#include <stddef.h>

#include <rdma/fi_endpoint.h>

/* Name for fi_open_ops(3) on an endpoint of the peer. */
#define TDM_LIVE_OPS "tandem_live_1"

struct tdm_live_ops {
	size_t size;
	/*
	 * Not 0 while @ep has a session with the endpoint whose socket address
	 * is the @len bytes at @addr. When the other process turns out to be
	 * gone, the answer is not 0 once more, and the session ends at the next
	 * pass of progress. Lock: held.
	 */
	int (*live)(struct fid_ep *ep, const void *addr, size_t len);
};

#endif /* TDM_LIVE_H */
