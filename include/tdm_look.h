/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of a transport about one peer, beside those of the report: depths of its
 * queues, credit, attempts. The transport computes them when it is asked.
 * A peer provider need not offer this.
 */
#ifndef TDM_LOOK_H
#define TDM_LOOK_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_endpoint.h>

/* Name for fi_open_ops(3) on an endpoint of the peer provider. */
#define TDM_LOOK_OPS "tandem_look_1"

struct tdm_look {
	uint64_t queued;  /* operations of which nothing was sent */
	uint64_t pending; /* operations that wait for the peer */
	/*
	 * TCP: bytes that the peer takes before it posts receives; shared
	 * memory: bytes free in the ring to it.
	 */
	uint64_t credit;
	uint64_t given; /* TCP: credit that the peer has not used, bytes */
	uint64_t held;	/* bytes of its unexpected messages */
	uint32_t tries; /* TCP: attempts that have failed since the last one
			   that did not */
	int32_t err;	/* positive fi_errno of the last of these, or 0 */
	uint32_t full;	/* 1: the peer takes no more before it posts receives */
};

struct tdm_look_ops {
	size_t size;
	/*
	 * Fill *@out, zeroed by the caller, for the peer @addr in the AV of
	 * @ep; leaves it if there is no session. Lock: held.
	 */
	void (*look)(struct fid_ep *ep, fi_addr_t addr, struct tdm_look *out);
};

#endif /* TDM_LOOK_H */
