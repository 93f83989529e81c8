/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations whose completion goes to the owner's code for deferred work,
 * fi_trigger(3): such an operation increments a counter of its own in place of
 * its endpoint's, and the owner may have to keep its completion out of the
 * endpoint's queue. A transport notices nothing: it passes flags and context on
 * to tdm_done.h as for any other operation.
 */
#ifndef TDM_OP_H
#define TDM_OP_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/providers/fi_peer.h>

#include "base/base.h"
#include "tdm_result.h"

struct tdm_done;

/* A flag of requests: the context is a struct tdm_op. */
#define TDM_DEFERRED (1ULL << 63)

/* The result of an operation: what the transport passed to tdm_done.h. */
struct tdm_end {
	const struct tdm_done *done;	      /* of the operation's endpoint */
	const struct fi_peer_rx_entry *entry; /* of a receive; NULL: a send */
	uint64_t flags; /* of a send, without TDM_DEFERRED */
	fi_addr_t addr; /* of a failed send: its destination */
	struct tdm_result result;
	int released; /* 1: only a multi-receive buffer was released */
};

struct tdm_op {
	void *context; /* the application's */
	/*
	 * Called in place of the completion that tdm_done.h would write. @op is
	 * finished then, unless it is a multi-receive buffer: that is finished
	 * when it is released or cancelled. Lock: domain held.
	 */
	void (*end)(struct tdm_op *op, const struct tdm_end *end);
};

static inline void tdm_op_end(void *context, const struct tdm_end *end)
{
	struct tdm_op *op = (struct tdm_op *)context;

	op->end(op, end);
}

/* Calls end() for the deferred operation @context, a send that has ended. */
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

/* Calls end() for a deferred receive, @e, that has ended. */
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

/* Calls end() because the multi-receive buffer of @e is released. */
static tdm_noinline __attribute__((unused)) void
tdm_op_released(const struct tdm_done *d, const struct fi_peer_rx_entry *e)
{
	struct tdm_end end = { d, e, 0, 0, tdm_succeeded(0), 1 };

	tdm_op_end(e->context, &end);
}

#endif /* TDM_OP_H */
