/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends, from the queue to their completion: which record is committed to the
 * stream next. send.c makes them of requests, and writes what is committed.
 *
 *   QUEUED -> CTS -> DATA -> ACK        announced (RTS): long, or no credit
 *   QUEUED -> ACK | DONE                eager
 *   ... -> LEAVING                      ends when the kernel has the bytes
 * One-sided writes are sent like messages, but end by DONE only, and long ones are
 * not announced. tx_rma.c has
 * reads, atomic operations and the replies to them, tx_end.c the end of sends
 * that do not succeed.
 *
 * Invariants:
 *  1. Messages of a connection are sent in the order they were posted: none
 *     overtakes another in sendq, and the announcement of a message is sent in
 *     its place.
 *  2. ackq is in the order of seq; an ACK ends a prefix of it.
 *  3. A send ends exactly once. It stays, with `ended` set, while bytes to be
 *     sent or an answer of the peer still refer to it.
 *  4. Eager bytes not yet released by the peer never exceed its credit.
 *
 * Completion levels, fi_cq(3): a send with INJECT_COMPLETE ends when its bytes
 * are copied or in the kernel; the default, TRANSMIT_COMPLETE, when the peer's
 * endpoint acknowledged them; DELIVERY_COMPLETE when they are in the target's
 * buffer. For announced data an acknowledgement means both.
 */
#include "tcp/wire/tx.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "tcp/wire/conn.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/keep.h"
#include "tcp/wire/left.h"
#include "tcp/wire/out.h"
#include "tcp/wire/prompt.h"
#include "tcp/wire/rma.h"
#include "tcp/wire/rx_msg.h"
#include "tcp/wire/tx_priv.h"
#include "tcp/wire/unacked.h"

/* So much received tells a peer that has not waited for it. */
enum { SAY_BYTES = 16 << 10 };

static int injected(const struct tdm_tx *op)
{
	if (op->flags & (FI_TRANSMIT_COMPLETE | TDM_DELIVERED))
		return 0;
	return !!(op->flags & (FI_INJECT | FI_INJECT_COMPLETE));
}

/*
 * Called when the peer knows of the message @op, which may wait there for its
 * receive: tx_size does not count it any more, so that no send depends on the
 * receives for other messages.
 */
static void uncount(struct tdm_conn *c, struct tdm_tx *op)
{
	if (op->flags & TDM_ONE_SIDED)
		return;
	c->tcp->tx_used -= op->counted;
	op->counted = 0;
}

/* Move @op, whose last record has been begun, to the queue of its state. */
static void settle(struct tdm_conn *c, struct tdm_tx *op)
{
	tdm_list_del(&op->node);
	if (op->has_id) {
		uncount(c, op);
		tdm_tx_set_state(op, TDM_TX_DONE);
		tdm_list_append(&c->busy->waitq, &op->node);
	} else if (injected(op) || op->ended) {
		tdm_tx_set_state(op, TDM_TX_LEAVING);
		c->injected = c->tx_seq;
	} else {
		tdm_tx_set_state(op, TDM_TX_ACK);
		tdm_list_append(&c->ackq, &op->node);
		tdm_unacked_add(c);
	}
}

/*
 * Let the ACK @rec say what was received of the stream: if nothing is kept that
 * precedes it, as a POSITION, which is not kept; else where enough is new, or
 * the peer waits for it.
 */
static void put_position(struct tdm_conn *c, struct tdm_wire_rec *rec)
{
	if (c->out->base == c->out->tail && !c->borrow && !tdm_keep_repeats(c))
		rec->op = TDM_WIRE_POSITION;
	else if (!c->ack_now && c->rx_pos - c->rx_said < SAY_BYTES)
		return;
	rec->flags = TDM_WIRE_F_DATA;
	rec->data = c->rx_pos;
	c->rx_said = c->rx_pos;
}

static uint8_t waited_flag(const struct tdm_conn *c)
{
	return c->features & TDM_WIRE_FEATURE_WAITED ? TDM_WIRE_F_WAITED : 0;
}

void tdm_tx_put_ack(struct tdm_conn *c)
{
	struct tdm_out *out = c->out;
	struct tdm_wire_rec rec;
	int full, unsaid;

	if (!tdm_tx_owes_ack(c))
		return;
	memset(&rec, 0, sizeof(rec));
	rec.op = c->say ? TDM_WIRE_IDLE_CLOSE : TDM_WIRE_ACK;
	rec.step = c->say;
	if (tdm_likely(tdm_conn_resumes(c)) && !c->say)
		put_position(c, &rec);
	rec.acked = c->rx_seq;
	rec.freed = tdm_credit_give(c, &full);
	/* A step has no flag; behind GO nothing is sent. */
	unsaid = tdm_unlikely(full) && c->say && c->say != TDM_WIRE_GO;
	if (tdm_unlikely(full) && !c->say)
		rec.flags |= TDM_WIRE_F_FULL;
	if (tdm_unlikely(c->posted.waited) && !c->say) {
		rec.flags |= waited_flag(c);
		c->posted.waited = 0;
	}
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	if (rec.op == TDM_WIRE_POSITION)
		out->base = out->tail;
	c->ack_seq = c->rx_seq;
	c->ack_freed = c->rx_freed;
	c->ack_bytes = 0;
	c->ack_now = 0;
	c->prompt.waits = 0;
	c->say = 0;
	tdm_list_del(&c->ack_node);
	if (tdm_unlikely(unsaid))
		tdm_credit_unsaid(c);
}

void tdm_tx_borrow(struct tdm_conn *c, struct tdm_tx *op, size_t from,
		   size_t to)
{
	c->borrow = op;
	c->busy->borrow_kept = from;
	c->busy->borrow_off = from;
	c->busy->borrow_end = to;
}

/*
 * Write the group of @op if it differs from the last one written. There must be
 * room for TDM_WIRE_GROUP_BYTES in the transmit buffer.
 */
static void put_group(struct tdm_conn *c, const struct tdm_tx *op)
{
	struct tdm_out *out = c->out;
	struct tdm_wire_rec rec;

	if (op->group == c->tx_group || (op->flags & TDM_ONE_SIDED))
		return;
	memset(&rec, 0, sizeof(rec));
	rec.op = TDM_WIRE_GROUP;
	rec.group = op->group;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	c->tx_group = op->group;
}

/* Begin the record of @op; first writes a record that must precede it. */
static void fill_rec(struct tdm_conn *c, struct tdm_wire_rec *rec,
		     const struct tdm_tx *op)
{
	memset(rec, 0, sizeof(*rec));
	rec->tag = op->tag;
	rec->data = op->data;
	rec->id = op->id;
	rec->key = op->rma_key;
	rec->addr = op->rma_addr;
	rec->flags = ((op->flags & FI_TAGGED) ? TDM_WIRE_F_TAG : 0) |
		     ((op->flags & FI_REMOTE_CQ_DATA) ? TDM_WIRE_F_DATA : 0);
	if (tdm_likely(!(op->flags & (TDM_TO_CTX | TDM_RANGES))))
		return;
	if (op->flags & TDM_TO_CTX) {
		rec->ctx = op->rx_ctx;
		put_group(c, op);
	}
	if (op->flags & TDM_RANGES)
		tdm_tx_put_ranges(c, op);
}

/*
 * Returns up to which length the payload of @op is copied. The caller may reuse
 * the buffer of an inject at return. The first message of a pass is sent at
 * once, so that no more than a short payload is copied.
 */
static size_t copy_most(const struct tdm_conn *c, const struct tdm_tx *op)
{
	if (op->flags & FI_INJECT)
		return TDM_INJECT_BYTES;
	return c->tx_pass == (uint32_t)c->tcp->pass && !c->at_once ?
		       TDM_TCP_HOLD_BYTES :
		       TDM_TCP_COPY_BYTES;
}

/* Called when a message of medium length was committed; @held: with its bytes. */
static void medium(struct tdm_conn *c, struct tdm_out *out, int held)
{
	if (held && !out->held_ns)
		out->held_ns = tdm_os.now_ns();
	else if (c->at_once)
		c->at_once--;
}

/*
 * Commit @op with its payload. Returns 1: committed, and @op may have ended; 0:
 * not possible now, nothing was changed.
 */
static int commit_eager(struct tdm_conn *c, struct tdm_tx *op)
{
	size_t most = copy_most(c, op);
	size_t copied = op->len <= most ? op->len : 0;
	size_t ranges = tdm_tx_ranges_bytes(op);
	int write = !!(op->flags & FI_RMA);
	int deliver = write || (op->flags & TDM_DELIVERED);
	struct tdm_wire_rec rec;
	struct tdm_out *out;

	out = tdm_out_room(c, TDM_WIRE_ACK_BYTES + TDM_WIRE_GROUP_BYTES +
				      ranges + TDM_WIRE_HEAD_BYTES + copied);
	if (!out)
		return 0;
	if ((deliver || op->len != copied) && tdm_busy_need(c))
		return 0;
	if (deliver && tdm_ids_get(&c->busy->ids, op, UINT32_MAX, &op->id))
		return 0;
	op->has_id = (uint8_t)deliver;
	tdm_prompt_sent(c);
	tdm_tx_put_ack(c);
	fill_rec(c, &rec, op);
	rec.op = write ? TDM_WIRE_WRITE : TDM_WIRE_EAGER;
	rec.len = (uint32_t)op->len;
	rec.flags |= write	  ? 0 :
		     deliver	  ? TDM_WIRE_F_DONE :
		     injected(op) ? 0 :
				    TDM_WIRE_F_ACK;
	rec.flags |= c->leaving;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	out->msgs++;
	c->charged += tdm_credit_takes(c->features, rec.op, rec.len);
	c->stats.tx_msgs++;
	c->stats.tx_bytes += op->len;
	op->seq = c->tx_seq++;
	settle(c, op);
	if (op->len > TDM_TCP_COPY_BYTES && op->len <= TDM_TCP_HOLD_BYTES &&
	    !injected(op))
		medium(c, out, op->len == copied);
	if (op->len != copied) {
		tdm_tx_borrow(c, op, 0, op->len);
		c->turn = 1;
		return 1;
	}
	tdm_iov_copy_from(out->bytes + out->tail, op->iov, op->count, 0,
			  op->len);
	out->tail += (uint32_t)op->len;
	if (op->state == TDM_TX_LEAVING)
		tdm_tx_end(c, op, 0, 0);
	return 1;
}

static int commit_rts(struct tdm_conn *c, struct tdm_tx *op)
{
	struct tdm_wire_rec rec;
	struct tdm_out *out;

	out = tdm_out_room(c, TDM_WIRE_ACK_BYTES + TDM_WIRE_GROUP_BYTES +
				      tdm_tx_ranges_bytes(op) +
				      TDM_WIRE_HEAD_BYTES);
	if (!out || c->busy->rts >= c->rts_max)
		return 0;
	if ((op->flags & FI_INJECT) && tdm_tx_own(c, op))
		return 0;
	if (tdm_busy_need(c) ||
	    tdm_ids_get(&c->busy->ids, op, UINT32_MAX, &op->id))
		return 0;
	op->has_id = 1;
	/* The bytes are a copy: report an inject now. */
	if (tdm_unlikely(op->copy != NULL) && injected(op))
		tdm_tx_report(c, op, 0, 0);
	c->busy->rts++;
	uncount(c, op);
	tdm_prompt_sent(c);
	tdm_tx_put_ack(c);
	fill_rec(c, &rec, op);
	rec.op = (op->flags & FI_RMA) ? TDM_WIRE_AWRITE : TDM_WIRE_RTS;
	rec.total = op->len;
	op->seq = c->told++;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	out->msgs++;
	c->stats.tx_msgs++;
	c->stats.tx_bytes += op->len;
	tdm_list_del(&op->node);
	tdm_tx_set_state(op, TDM_TX_CTS);
	tdm_list_append(&c->busy->waitq, &op->node);
	if (op->flags & FI_RMA)
		tdm_tx_slow(c, op);
	return 1;
}

/*
 * Not 0 when @op is a write that the peer takes whatever its length, and for
 * which it needs no more credit than there is.
 */
static int writes_at_once(const struct tdm_conn *c, const struct tdm_tx *op)
{
	return (op->flags & FI_RMA) && op->len <= TDM_WIRE_WRITE_BYTES &&
	       (c->features & TDM_WIRE_FEATURE_WRITES) &&
	       c->charged + tdm_credit_charge(0) <= c->freed + c->window;
}

/*
 * Not 0 when the message @op, which is longer than messages that are sent unasked, is
 * sent unasked all the same: the peer's receives for the last ones were posted in time,
 * and all that was sent before has been acknowledged. Announcing it would cost a round trip,
 * while those of a window overlap.
 */
static int likely_posted(const struct tdm_conn *c, const struct tdm_tx *op)
{
	return c->posted.hits == TDM_POSTED && op->len <= c->posted.eager &&
	       c->acked == c->tx_seq && !tdm_tx_outstanding(c);
}

int tdm_tx_commit(struct tdm_conn *c, struct tdm_tx *op)
{
	int err;

	if (c->borrow || tdm_tx_waits(c, op->flags))
		return 0;
	/* The send was queued before the peer's features were known. */
	err = tdm_tx_lacks(c, op->flags, op->rx_ctx, op->group);
	if (tdm_unlikely(err)) {
		tdm_tx_end(c, op, err, 0);
		return 1;
	}
	if (tdm_unlikely(op->flags & (FI_READ | FI_ATOMIC)))
		return tdm_tx_commit_request(c, op);
	if (tdm_likely((op->len <= c->eager || likely_posted(c, op)) &&
		       c->charged + tdm_credit_charge((uint32_t)op->len) <=
			       c->freed + c->window) ||
	    c->leaving || writes_at_once(c, op))
		return commit_eager(c, op);
	return tdm_tx_awaits_credit(c, op) ? 0 : commit_rts(c, op);
}

/*
 * Returns the flags of the last DATA of @op. A send that waits for delivery
 * needs the peer's ACK at once, since the peer may stop making progress after
 * its message.
 */
static uint8_t last_flags(const struct tdm_conn *c, const struct tdm_tx *op)
{
	if (op->has_id || injected(op))
		return 0;
	if ((op->flags & TDM_DELIVERED) && (c->features & TDM_WIRE_FEATURE_NOW))
		return TDM_WIRE_F_ACK | TDM_WIRE_F_NOW;
	return TDM_WIRE_F_ACK;
}

/* Commit the next piece of announced data, or an ABORT. */
static int commit_data(struct tdm_conn *c)
{
	struct tdm_tx *op =
		tdm_list_entry(c->busy->dataq.next, struct tdm_tx, node);
	size_t n = tdm_min(op->wanted - op->off, TDM_TX_CHUNK_BYTES);
	struct tdm_wire_rec rec;
	struct tdm_out *out;
	int last;

	if (op->reply)
		return tdm_tx_commit_reply(c, op);
	if (tdm_unlikely(op->state == TDM_TX_LEFT))
		return tdm_left_commit(c, op);
	out = tdm_out_room(c, TDM_WIRE_ACK_BYTES + TDM_WIRE_HEAD_BYTES);
	if (!out)
		return 0;
	tdm_tx_put_ack(c);
	last = op->off + n == op->wanted;
	memset(&rec, 0, sizeof(rec));
	rec.op = TDM_WIRE_DATA;
	rec.rid = op->rid;
	rec.len = op->dead ? 0 : (uint32_t)n;
	rec.flags = op->dead ? TDM_WIRE_F_ABORT : last ? last_flags(c, op) : 0;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	if (op->dead) {
		tdm_tx_free(c, op);
		return 1;
	}
	tdm_tx_borrow(c, op, op->off, op->off + n);
	op->off += n;
	op->seq = c->tx_seq++;
	c->turn = 0;
	if (last) {
		settle(c, op);
	} else {
		tdm_list_del(&op->node);
		tdm_list_append(&c->busy->dataq, &op->node);
	}
	return 1;
}

/* Commit the CTS and DONE that the receive side wants to send. */
static int commit_ctl(struct tdm_conn *c)
{
	struct tdm_rx *rx =
		tdm_list_entry(c->busy->ctlq.next, struct tdm_rx, ctl);
	struct tdm_out *out = tdm_out_room(c, TDM_WIRE_HEAD_BYTES);
	struct tdm_wire_rec rec;

	if (!out)
		return 0;
	memset(&rec, 0, sizeof(rec));
	rec.op = rx->answer;
	rec.id = rx->id;
	rec.rid = rx->rid;
	rec.status = rx->status;
	rec.total = rx->want;
	if (rec.op == TDM_WIRE_CTS && rx->waited)
		rec.flags = waited_flag(c);
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	c->prompt.lingers &= rx->lingers;
	tdm_list_del(&rx->ctl);
	tdm_rx_answered(rx);
	return 1;
}

/* Not 0 when the first send in sendq waits for slow operations. */
static int first_is_held(const struct tdm_conn *c)
{
	const struct tdm_tx *op =
		tdm_list_entry(c->sendq.next, struct tdm_tx, node);

	return tdm_tx_waits(c, op->flags);
}

/* Not 0 when @c has nothing to send but CTS and DONE. */
static uint8_t only_ctl(const struct tdm_conn *c)
{
	return !c->ack_now && !c->layered && !tdm_out_bytes(c) &&
	       !tdm_list_empty(&c->busy->ctlq) && tdm_list_empty(&c->sendq) &&
	       tdm_list_empty(&c->busy->dataq);
}

void tdm_tx_fill(struct tdm_conn *c)
{
	if (c->borrow || c->closing)
		return;
	if (!c->ack_now && !tdm_out_bytes(c) && tdm_list_empty(&c->sendq) &&
	    tdm_list_empty(&c->busy->ctlq) && tdm_list_empty(&c->busy->dataq))
		return;
	if (!tdm_out_room(c, TDM_WIRE_ACK_BYTES))
		return;
	if (tdm_unlikely(c->prompt.hits[TDM_PROMPT_DONE]))
		c->prompt.lingers = only_ctl(c);
	tdm_tx_put_ack(c);
	while (!tdm_list_empty(&c->busy->ctlq) && commit_ctl(c))
		;
	while (!tdm_list_empty(&c->sendq) && !c->borrow &&
	       tdm_out_bytes(c) < TDM_TCP_FLUSH_BYTES) {
		struct tdm_tx *op =
			tdm_list_entry(c->sendq.next, struct tdm_tx, node);

		if (c->turn && op->len > TDM_TCP_COPY_BYTES &&
		    !tdm_list_empty(&c->busy->dataq))
			break;
		if (!tdm_tx_commit(c, op))
			break;
	}
	while (!c->borrow && !tdm_list_empty(&c->busy->dataq) &&
	       commit_data(c) && tdm_out_bytes(c) < TDM_TCP_FLUSH_BYTES)
		;
	if (c->out && tdm_out_empty(c->out))
		tdm_out_free(c);
	/* Only memory can have been missing here: try again. */
	if (!tdm_out_bytes(c) && !c->borrow && !tdm_list_empty(&c->sendq) &&
	    c->busy->rts < c->rts_max && !c->thirsty && !first_is_held(c))
		tdm_out_later(c);
}

void tdm_tx_borrowed_sent(struct tdm_conn *c)
{
	struct tdm_tx *op = c->borrow;

	tdm_keep_borrowed(c);
	c->borrow = NULL;
	if (op->state == TDM_TX_LEAVING)
		tdm_tx_end(c, op, 0, 0);
}

/* Learn from @rec, a CTS, whether the receives of the peer are posted in time. */
static void learn_posted(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	if (rec->flags & TDM_WIRE_F_WAITED ||
	    !(c->features & TDM_WIRE_FEATURE_WAITED))
		c->posted.hits = 0;
	else if (c->posted.hits < TDM_POSTED)
		c->posted.hits++;
}

int tdm_tx_cts(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct tdm_tx *op = tdm_ids_find(&c->busy->ids, rec->id);

	/* The peer asked before it read the LEFT that carries the payload. */
	if (op && c->leaving && op->state != TDM_TX_CTS)
		return 0;
	if (!op || op->state != TDM_TX_CTS)
		return -TDM_WIRE_E_ID;
	if (rec->total > op->len)
		return -TDM_WIRE_E_VALUE;
	/*
	 * A write is asked for as a whole or refused by DONE, and ends by DONE.
	 */
	if ((op->flags & FI_RMA) && (rec->total < op->len || !rec->total))
		return -TDM_WIRE_E_VALUE;
	c->busy->rts--;
	if (!(op->flags & FI_RMA))
		learn_posted(c, rec);
	tdm_out_later(c);
	op->rid = rec->rid;
	op->wanted = rec->total;
	if (!(op->flags & FI_RMA)) {
		tdm_ids_put(&c->busy->ids, op->id);
		op->has_id = 0;
	}
	if (!op->wanted) {
		tdm_tx_end(c, op,
			   op->cancelled && rec->rid == TDM_WIRE_CANCELLED ?
				   FI_ECANCELED :
				   0,
			   0);
		return 0;
	}
	tdm_list_del(&op->node);
	tdm_tx_set_state(op, TDM_TX_DATA);
	tdm_list_append(&c->busy->dataq, &op->node);
	return 0;
}

/* Called when the peer says that it has received the stream up to @pos. */
static int acked_to(struct tdm_conn *c, uint64_t pos)
{
	struct tdm_out *out = c->out;

	if (tdm_unlikely(!out || c->keep || !c->keeps ||
			 pos - c->kept_pos > (uint64_t)out->head - out->base ||
			 out->head < out->base))
		return tdm_keep_acked(c, pos);
	out->base += (uint32_t)(pos - c->kept_pos);
	c->kept_pos = pos;
	if (tdm_out_empty(out))
		tdm_out_free(c);
	return 0;
}

int tdm_tx_acked(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	uint64_t most = c->charged;

	if (c->features & TDM_WIRE_FEATURE_CREDIT)
		most += TDM_CREDIT_UNUSED_MOST;
	if (rec->acked < c->acked || rec->acked > c->tx_seq - !!c->borrow ||
	    rec->freed < c->freed || rec->freed > most)
		return -TDM_WIRE_E_ACK;
	c->freed = rec->freed;
	c->acked = rec->acked;
	if (tdm_unlikely(rec->flags & TDM_WIRE_F_WAITED))
		c->posted.hits = 0;
	if (rec->op != TDM_WIRE_IDLE_CLOSE)
		c->full = !!(rec->flags & TDM_WIRE_F_FULL);
	if (tdm_unlikely(c->thirsty)) {
		c->thirsty = 0;
		tdm_out_later(c);
	}
	while (!tdm_list_empty(&c->ackq)) {
		struct tdm_tx *op =
			tdm_list_entry(c->ackq.next, struct tdm_tx, node);

		if (op->seq >= c->acked)
			break;
		if (tdm_unlikely(op->lent))
			tdm_keep_passed(c, op);
		tdm_tx_end(c, op, 0, 0);
	}
	if (rec->flags & TDM_WIRE_F_DATA)
		return acked_to(c, rec->data);
	return 0;
}
