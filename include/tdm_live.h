/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lets the owner and a peer provider ask each other, beyond fi_peer(3), about one
 * remote endpoint. A TCP connection may claim to come from a process that has a
 * session with the peer provider; the owner must reject the claim while that process
 * is alive. And the peer provider must not begin a session while operations of the
 * owner wait for one over TCP: the other side would reject that. A peer provider need
 * not offer this.
 */
#ifndef TDM_LIVE_H
#define TDM_LIVE_H

#include <stddef.h>

#include <rdma/fi_endpoint.h>

/* Name for fi_open_ops(3) on an endpoint of the peer provider. */
#define TDM_LIVE_OPS "tandem_live_1"

struct tdm_live_ops {
	size_t size;
	/*
	 * Not 0 while @ep has a session with the endpoint whose socket address
	 * is the @len bytes at @addr, made with the key with number @key (0:
	 * the endpoint's own key, or none). If the call finds that the other
	 * process is gone, it still returns not 0 this time, and the next pass
	 * of progress ends the session. Lock: held.
	 */
	int (*live)(struct fid_ep *ep, const void *addr, size_t len,
		    uint32_t key);
	/*
	 * Have @ep call @waits, which returns not 0 when operations of the owner
	 * wait for a session over TCP with the endpoint of that address and key:
	 * the attempt of that endpoint is refused for now. Lock: held, in both.
	 */
	void (*ask)(struct fid_ep *ep,
		    int (*waits)(void *arg, const void *addr, size_t len,
				 uint32_t key),
		    void *arg);
};

#endif /* TDM_LIVE_H */
