/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Message order of one-sided operations, fi_endpoint(3) msg_order. Requests of
 * a pair leave and are taken in the order they were posted, whatever was
 * granted, and most are carried out as they are taken. Two kinds are not: the
 * bytes of a write that was announced come later, and those of a long read are
 * fetched later. What such a slow operation must not be overtaken by waits at
 * the initiator until it has ended (doc/adr/0021).
 */
#ifndef TDM_ORDER_H
#define TDM_ORDER_H

#include <stdint.h>

#include <rdma/fi_endpoint.h>

#include "tdm_xfer.h"

/*
 * A target samples reads of up to this many bytes when it takes them; longer
 * ones are slow.
 */
enum { TDM_SAMPLE_BYTES = TDM_AMO_BYTES };

/* Orders of all kinds of operations, for those who ask for them. */
#define TDM_ORDER_RMA                                                          \
	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAR |           \
	 FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_SAR | FI_ORDER_SAW |           \
	 FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR |              \
	 FI_ORDER_RMA_WAW)

/* Kinds that wait for slow operations: FI_SEND, FI_READ, FI_WRITE; 0: none. */
struct tdm_order {
	uint64_t after_write;
	uint64_t after_read;
};

/* For an endpoint that was granted @msg_order. */
static inline struct tdm_order tdm_order(uint64_t msg_order)
{
	struct tdm_order o = { 0, 0 };

	if (msg_order & (FI_ORDER_RAW | FI_ORDER_RMA_RAW))
		o.after_write |= FI_READ;
	if (msg_order & (FI_ORDER_WAW | FI_ORDER_RMA_WAW))
		o.after_write |= FI_WRITE;
	if (msg_order & FI_ORDER_SAW)
		o.after_write |= FI_SEND;
	/* Reads after reads change nothing: their requests are in order. */
	if (msg_order & (FI_ORDER_WAR | FI_ORDER_RMA_WAR))
		o.after_read |= FI_WRITE;
	if (msg_order & FI_ORDER_SAR)
		o.after_read |= FI_SEND;
	return o;
}

/* The slow operations of a pair that have not ended. */
struct tdm_slow {
	uint32_t writes, reads;
	uint64_t held; /* what waits for them, of the bits in struct tdm_order */
};

/* @n more (-1: one fewer) of them, like the one with @flags. */
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

/* Must an operation with @flags wait? An atomic one may read and write. */
static inline int tdm_slow_holds(const struct tdm_slow *slow, uint64_t flags)
{
	uint64_t kind = flags & FI_ATOMIC ?
				FI_READ | FI_WRITE :
				flags & (FI_SEND | FI_READ | FI_WRITE);

	return tdm_unlikely(slow->held != 0) && (slow->held & kind);
}

#endif /* TDM_ORDER_H */
