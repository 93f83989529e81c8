/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message order of one-sided operations, fi_endpoint(3) msg_order. The requests
 * to a peer are sent and processed in the order they were posted, whatever
 * order was granted, and most operations are carried out when their request is
 * processed. Two kinds are *slow*: a long write, whose bytes follow its
 * announcement, and a long read, whose bytes are fetched later. An operation
 * that must not overtake a slow one waits at the initiator until the slow one
 * has ended (doc/adr/0021).
 */
#ifndef TDM_ORDER_H
#define TDM_ORDER_H

#include <stdint.h>

#include <rdma/fi_endpoint.h>

#include "tdm_xfer.h"

/*
 * A target copies the bytes of a read of at most this length when it processes
 * the request; longer reads are slow.
 */
enum { TDM_SAMPLE_BYTES = TDM_AMO_BYTES };

/* All orders that fi_getinfo grants to applications that ask for them. */
#define TDM_ORDER_RMA                                                          \
	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAR |           \
	 FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_SAR | FI_ORDER_SAW |           \
	 FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR |              \
	 FI_ORDER_RMA_WAW)

/*
 * Which kinds of operations wait for slow ones: bits of FI_SEND, FI_READ and
 * FI_WRITE.
 */
struct tdm_order {
	uint64_t after_write;
	uint64_t after_read;
};

/* Returns the order of an endpoint that was granted @msg_order. */
static inline struct tdm_order tdm_order(uint64_t msg_order)
{
	struct tdm_order o = { 0, 0 };

	if (msg_order & (FI_ORDER_RAW | FI_ORDER_RMA_RAW))
		o.after_write |= FI_READ;
	if (msg_order & (FI_ORDER_WAW | FI_ORDER_RMA_WAW))
		o.after_write |= FI_WRITE;
	if (msg_order & FI_ORDER_SAW)
		o.after_write |= FI_SEND;
	/*
	 * Reads need not wait for reads: their requests are processed in order.
	 */
	if (msg_order & (FI_ORDER_WAR | FI_ORDER_RMA_WAR))
		o.after_read |= FI_WRITE;
	if (msg_order & FI_ORDER_SAR)
		o.after_read |= FI_SEND;
	return o;
}

/* The slow operations to one peer that have not ended. */
struct tdm_slow {
	uint32_t writes, reads;
	uint64_t held; /* kinds that wait now, as in tdm_order */
};

/* Count @n more (-1: one fewer) slow operations like the one with @flags. */
static inline void tdm_slow_add(struct tdm_slow *slow,
				const struct tdm_order *o, uint64_t flags,
				int n)
{
	if (flags & FI_READ)
		slow->reads += (uint32_t)n;
	else
		slow->writes += (uint32_t)n;
	slow->held = (slow->writes ? o->after_write : 0) |
		     (slow->reads ? o->after_read : 0);
}

/*
 * Not 0 when an operation with @flags must wait. An atomic one counts as a read
 * and as a write.
 */
static inline int tdm_slow_holds(const struct tdm_slow *slow, uint64_t flags)
{
	uint64_t kind = flags & FI_ATOMIC ?
				FI_READ | FI_WRITE :
				flags & (FI_SEND | FI_READ | FI_WRITE);

	return tdm_unlikely(slow->held != 0) && (slow->held & kind);
}

#endif /* TDM_ORDER_H */
