/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by tx.c, tx_own.c, tx_end.c, tx_rma.c and rest.c, and used by nobody
 * else. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_TX_PRIV_H
#define TDM_TCP_WIRE_TX_PRIV_H

#include "tcp/wire/tcp.h"

enum {
	/* Announced data is cut so that other messages get through. */
	TDM_TX_CHUNK_BYTES = 512 << 10,
};

/* Forget @op: its number, its memory, its region's entry. No completion. */
void tdm_tx_free(struct tdm_conn *c, struct tdm_tx *op);

/* Write the entry of @op, if it has not been written. */
void tdm_tx_report(struct tdm_conn *c, struct tdm_tx *op, int err, int prov);

/* Both: the end of @op. @err: positive fi_errno, or 0. */
void tdm_tx_end(struct tdm_conn *c, struct tdm_tx *op, int err, int prov);

/*
 * Piggyback what the peer may want to hear, or the REST that c->say asks for.
 * There is room for TDM_WIRE_ACK_BYTES in the transmit buffer.
 */
void tdm_tx_put_ack(struct tdm_conn *c);

/* Begin to send bytes [@from, @to) of @op behind the transmit buffer. */
void tdm_tx_gather(struct tdm_conn *c, struct tdm_tx *op, size_t from,
		   size_t to);

/*
 * tx_rma.c: put into the stream the request of the read or atomic operation
 * @op, or the next record of the reply @op. 1: committed, @op may have ended.
 * 0: not now, nothing was changed.
 */
int tdm_tx_commit_request(struct tdm_conn *c, struct tdm_tx *op);
int tdm_tx_commit_reply(struct tdm_conn *c, struct tdm_tx *op);

/* @op, which is one-sided and was committed just now, is slow: tdm_order.h. */
void tdm_tx_slow(struct tdm_conn *c, struct tdm_tx *op);

/* It has ended: what waited for it may leave. */
void tdm_tx_slow_ends(struct tdm_conn *c, const struct tdm_tx *op);

/* Does the peer of @c, who said what it has, not know what @flags ask for? */
static inline int tdm_tx_unknown(const struct tdm_conn *c, uint64_t flags)
{
	return (flags & FI_ATOMIC) && !(c->features & TDM_WIRE_FEATURE_ATOMIC);
}

/* Fill in the atomic part of the new operation @op. Errors: -FI_ENOMEM. */
int tdm_tx_take_operands(struct tdm_tx *op, const struct tdm_xfer *x);

/*
 * Has an operation with @flags to wait for slow ones? When the endpoint closes
 * the bytes of those precede it in the stream, and nobody looks at their end.
 */
static inline int tdm_tx_waits(const struct tdm_conn *c, uint64_t flags)
{
	return tdm_unlikely(c->leaving) ? !tdm_list_empty(&c->dataq) :
					  tdm_slow_holds(&c->slow, flags);
}

/* tx_own.c */

/* Does a send with @flags end by being copied? */
static inline int tdm_tx_ends_copied(uint64_t flags)
{
	return (flags & (FI_INJECT | FI_TRANSMIT_COMPLETE | TDM_DELIVERED |
			 TDM_ONE_SIDED)) == FI_INJECT;
}

/*
 * Is @op, which finds no credit, to wait for more, which the peer is about to
 * give, rather than be announced?
 */
int tdm_tx_awaits_credit(struct tdm_conn *c, const struct tdm_tx *op);

/*
 * Make the payload of the inject @op its own, unless it is. 0, -FI_EAGAIN: the
 * process has copies enough, or -FI_ENOMEM.
 */
int tdm_tx_own(struct tdm_conn *c, struct tdm_tx *op);

#endif /* TDM_TCP_WIRE_TX_PRIV_H */
