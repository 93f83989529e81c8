/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by send.c, tx.c, tx_own.c, tx_end.c, tx_rma.c, keep.c and idle_close.c,
 * and used by nobody else. All functions: domain lock held.
 */
#ifndef TDM_TCP_WIRE_TX_PRIV_H
#define TDM_TCP_WIRE_TX_PRIV_H

#include "tcp/wire/tcp.h"

enum {
	/*
	 * Announced data is split into pieces of this size, so that other
	 * messages can be sent between them.
	 */
	TDM_TX_CHUNK_BYTES = 1 << 20,
};

/*
 * Commit @op, of a connection in READY. Returns 1: committed, and @op may have
 * ended; 0: not possible now, nothing was changed.
 */
int tdm_tx_commit(struct tdm_conn *c, struct tdm_tx *op);

/* Free @op: its number, its memory, its region's entry. No completion. */
void tdm_tx_free(struct tdm_conn *c, struct tdm_tx *op);

/* Write the entry of @op, if it has not been written. */
void tdm_tx_report(struct tdm_conn *c, struct tdm_tx *op, int err, int prov);

/* tdm_tx_report(), then tdm_tx_free(). @err: positive fi_errno, or 0. */
void tdm_tx_end(struct tdm_conn *c, struct tdm_tx *op, int err, int prov);

/*
 * Write an ACK, to go with other output, or the IDLE_CLOSE that c->say asks
 * for. There must be room for TDM_WIRE_ACK_BYTES in the transmit buffer.
 */
void tdm_tx_put_ack(struct tdm_conn *c);

/*
 * Make bytes [@from, @to) of @op the borrowed range of @c: they are sent from
 * the user's buffer after the transmit buffer.
 */
void tdm_tx_borrow(struct tdm_conn *c, struct tdm_tx *op, size_t from,
		   size_t to);

/*
 * tx_rma.c: commit the request of the read or atomic operation @op, or the next
 * record of the reply @op. Returns 1: committed, and @op may have ended; 0: not
 * possible now, nothing was changed.
 */
int tdm_tx_commit_request(struct tdm_conn *c, struct tdm_tx *op);
int tdm_tx_commit_reply(struct tdm_conn *c, struct tdm_tx *op);

/*
 * Count @op, a one-sided operation that was just committed, as slow:
 * tdm_order.h.
 */
void tdm_tx_slow(struct tdm_conn *c, struct tdm_tx *op);

/*
 * Called when the slow @op has ended: the next pass sends those that waited for
 * it.
 */
void tdm_tx_slow_ends(struct tdm_conn *c, const struct tdm_tx *op);

/*
 * Returns a positive fi_errno when the peer, whose HELLO must be known, does
 * not support what @flags or the address ask for, else 0.
 */
static inline int tdm_tx_lacks(const struct tdm_conn *c, uint64_t flags,
			       uint16_t rx_ctx, uint32_t group)
{
	if (tdm_likely(!(flags & (TDM_TO_CTX | FI_ATOMIC | TDM_RANGES))))
		return 0;
	if ((flags & FI_ATOMIC && !(c->features & TDM_WIRE_FEATURE_ATOMIC)) ||
	    (flags & TDM_RANGES && !(c->features & TDM_WIRE_FEATURE_RANGES)))
		return FI_EOPNOTSUPP;
	if ((flags & TDM_TO_CTX) &&
	    (rx_ctx >= c->contexts ||
	     (group && !(c->features & TDM_WIRE_FEATURE_GROUPS))))
		return FI_EADDRNOTAVAIL;
	return 0;
}

/*
 * Keep the further ranges and the operands of @x, if any, in the new @op.
 * Errors: -FI_ENOMEM; nothing was kept.
 */
int tdm_tx_take_rest(struct tdm_tx *op, const struct tdm_xfer *x);

/* ranges.c */

/* Keep the further ranges of @x in the new @op. Errors: -FI_ENOMEM. */
int tdm_tx_take_ranges(struct tdm_tx *op, const struct tdm_xfer *x);

/*
 * Write the RANGEs of @op in front of its record. There must be room for them.
 */
void tdm_tx_put_ranges(struct tdm_conn *c, const struct tdm_tx *op);

/* Returns how many bytes the RANGEs of @op take in the transmit buffer. */
static inline size_t tdm_tx_ranges_bytes(const struct tdm_tx *op)
{
	return tdm_likely(!(op->flags & TDM_RANGES)) ?
		       0 :
		       (size_t)op->more_count * TDM_WIRE_RANGE_BYTES;
}

/*
 * Not 0 when an operation with @flags must wait for slow ones. While the
 * endpoint closes it waits only until their bytes are in the stream, since
 * their completions are not handled any more.
 */
static inline int tdm_tx_waits(const struct tdm_conn *c, uint64_t flags)
{
	return tdm_unlikely(c->leaving) ? !tdm_list_empty(&c->busy->dataq) :
					  tdm_slow_holds(&c->busy->slow, flags);
}

/* tx_own.c */

/* Not 0 when a send with @flags is complete once it is copied. */
static inline int tdm_tx_ends_copied(uint64_t flags)
{
	return (flags & (FI_INJECT | FI_TRANSMIT_COMPLETE | TDM_DELIVERED |
			 TDM_ONE_SIDED)) == FI_INJECT;
}

/*
 * Not 0 when @op, which finds no credit, should wait for more, which the peer
 * is about to give, rather than be announced.
 */
int tdm_tx_awaits_credit(struct tdm_conn *c, const struct tdm_tx *op);

/*
 * Copy the payload of the inject @op, unless it is a copy. Returns 0,
 * -FI_EAGAIN: the process has too many copies, or -FI_ENOMEM.
 */
int tdm_tx_own(struct tdm_conn *c, struct tdm_tx *op);

#endif /* TDM_TCP_WIRE_TX_PRIV_H */
