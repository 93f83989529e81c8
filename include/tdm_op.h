/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations whose completion the owner intercepts: deferred work of
 * fi_trigger(3), which counts on a counter of its own and may not be reported
 * at its endpoint. A transport does not know: it passes flags and context on to
 * tdm_done.h as for any other operation.
 */
#ifndef TDM_OP_H
#define TDM_OP_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/providers/fi_peer.h>

#include "base/base.h"
#include "tdm_result.h"

struct tdm_done;

/* In flags of a request: its context is a struct tdm_op. */
#define TDM_DEFERRED (1ULL << 63)

/* The result of an operation: the arguments of the call of tdm_done.h. */
struct tdm_end {
	const struct tdm_done *done;	      /* of the operation's endpoint */
	const struct fi_peer_rx_entry *entry; /* the receive's; NULL: a send */
	uint64_t flags; /* a send's, without TDM_DEFERRED */
	fi_addr_t addr; /* a failed send's */
	struct tdm_result result;
	int released; /* 1: only a multi-receive buffer was released */
};

struct tdm_op {
	void *context; /* the application's */
	/*
	 * Report @end instead of tdm_done.h. @op is finished then, unless it is
	 * a multi-receive buffer: that is finished when it is released or
	 * cancelled. Lock: domain held.
	 */
	void (*end)(struct tdm_op *op, const struct tdm_end *end);
};

static inline void tdm_op_end(void *context, const struct tdm_end *end)
{
	struct tdm_op *op = (struct tdm_op *)context;

	op->end(op, end);
}

/* tdm_done_send() and tdm_done_send_err() for a deferred operation @context. */
static tdm_noinline __attribute__((unused)) void
tdm_op_send_ended(const struct tdm_done *d, void *context, uint64_t flags,
		  fi_addr_t addr, struct tdm_result result)
{
	struct tdm_end end = { d, NULL, 0, addr, result, 0 };

	end.flags = flags & ~TDM_DEFERRED;
	tdm_op_end(context, &end);
}

static tdm_noinline __attribute__((unused)) void
tdm_op_sent(const struct tdm_done *d, void *context, uint64_t flags)
{
	tdm_op_send_ended(d, context, flags, 0, tdm_succeeded(0));
}

/* tdm_done_recv() and tdm_done_recv_err() for a deferred receive's entry @e. */
static tdm_noinline __attribute__((unused)) void
tdm_op_recv_ended(const struct tdm_done *d, const struct fi_peer_rx_entry *e,
		  struct tdm_result result)
{
	struct tdm_end end = { d, e, 0, 0, result, 0 };

	tdm_op_end(e->context, &end);
}

static tdm_noinline __attribute__((unused)) void
tdm_op_received(const struct tdm_done *d, const struct fi_peer_rx_entry *e,
		size_t len)
{
	tdm_op_recv_ended(d, e, tdm_succeeded(len));
}

/* The multi-receive buffer of @e is released. */
static tdm_noinline __attribute__((unused)) void
tdm_op_released(const struct tdm_done *d, const struct fi_peer_rx_entry *e)
{
	struct tdm_end end = { d, e, 0, 0, tdm_succeeded(0), 1 };

	tdm_op_end(e->context, &end);
}

#endif /* TDM_OP_H */
