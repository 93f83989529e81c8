/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends: from the request to its completion.
 *
 *   QUEUED -> CTS -> DATA -> ACK        announced (RTS): long, or no credit
 *   QUEUED -> ACK | DONE                eager
 *   ... -> LEAVING                      ends when the kernel has the bytes
 *
 * Invariants:
 *  1. Messages of a connection leave in the order they were posted: nothing
 *     passes sendq, and an announcement keeps the place of its message.
 *  2. ackq is in the order of seq; an ACK ends a prefix of it.
 *  3. A send ends exactly once. `ended` says that it has, while bytes on the
 *     wire or an answer of the peer still refer to it.
 *  4. Eager bytes not yet released by the peer never exceed its credit.
 *
 * Completion levels, fi_cq(3): INJECT_COMPLETE when the bytes are copied or in
 * the kernel; the default, TRANSMIT_COMPLETE, when the peer's endpoint
 * acknowledged them; DELIVERY_COMPLETE when they are in the target's buffer.
 * An acknowledgement of announced data means both.
 */
#include "tcp/steps.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>

enum {
	/* Announced data is cut so that other messages get through. */
	CHUNK_BYTES = 512 << 10,
	/* Gathered messages that go out at once. */
	FLUSH_MSGS = 64,
};

static int injected(const struct tdm_tx *op)
{
	if (op->flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE))
		return 0;
	return !!(op->flags & (FI_INJECT | FI_INJECT_COMPLETE));
}

static void tx_free(struct tdm_conn *c, struct tdm_tx *op)
{
	if (op->has_id)
		tdm_ids_put(&c->ids, op->id);
	tdm_list_del(&op->node);
	free(op->copy);
	tdm_pool_free(&c->tcp->tx_pool, op);
	c->tcp->tx_used--;
}

/* Write the entry, if it has not been written. */
static void tx_report(struct tdm_conn *c, struct tdm_tx *op, int err, int prov)
{
	if (op->ended)
		return;
	op->ended = 1;
	if (tdm_unlikely(err))
		tdm_done_send_err(&c->tcp->a.done, op->context, op->flags, err,
				  prov, op->addr);
	else
		tdm_done_send(&c->tcp->a.done, op->context, op->flags);
}

static void tx_end(struct tdm_conn *c, struct tdm_tx *op, int err, int prov)
{
	tx_report(c, op, err, prov);
	tx_free(c, op);
}

/* Put @op, whose last record has been begun, where its end will find it. */
static void settle(struct tdm_conn *c, struct tdm_tx *op)
{
	tdm_list_del(&op->node);
	if (injected(op) || op->ended) {
		op->state = TDM_TX_LEAVING;
	} else if (op->has_id && !op->wanted) {
		op->state = TDM_TX_DONE;
		tdm_list_append(&c->waitq, &op->node);
	} else {
		op->state = TDM_TX_ACK;
		tdm_list_append(&c->ackq, &op->node);
	}
}

/* Piggyback what the peer may want to hear. There is room. */
static void put_ack(struct tdm_conn *c)
{
	struct tdm_out *out = c->out;
	struct tdm_wire_rec rec;

	if (!c->ack_now && c->rx_seq == c->ack_seq &&
	    c->rx_freed == c->ack_freed)
		return;
	memset(&rec, 0, sizeof(rec));
	rec.op = TDM_WIRE_ACK;
	rec.acked = c->rx_seq;
	rec.freed = c->rx_freed;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	c->ack_seq = c->rx_seq;
	c->ack_freed = c->rx_freed;
	c->ack_bytes = 0;
	c->ack_now = 0;
	tdm_list_del(&c->ack_node);
}

/* Begin to send bytes [@from, @to) of @op behind the transmit buffer. */
static void gather(struct tdm_conn *c, struct tdm_tx *op, size_t from,
		   size_t to)
{
	c->gather = op;
	c->gather_off = from;
	c->gather_end = to;
}

static void fill_rec(struct tdm_wire_rec *rec, const struct tdm_tx *op)
{
	memset(rec, 0, sizeof(*rec));
	rec->tag = op->tag;
	rec->data = op->data;
	rec->id = op->id;
	rec->flags = ((op->flags & FI_TAGGED) ? TDM_WIRE_F_TAG : 0) |
		     ((op->flags & FI_REMOTE_CQ_DATA) ? TDM_WIRE_F_DATA : 0);
}

/* 1: committed; @op may have ended. 0: not now, nothing was changed. */
static int commit_eager(struct tdm_conn *c, struct tdm_tx *op)
{
	size_t copied = op->len <= TDM_TCP_COPY_BYTES ? op->len : 0;
	int deliver = !!(op->flags & FI_DELIVERY_COMPLETE);
	struct tdm_wire_rec rec;
	struct tdm_out *out;

	out = tdm_out_room(c,
			   TDM_WIRE_ACK_BYTES + TDM_WIRE_HEAD_BYTES + copied);
	if (!out)
		return 0;
	if (deliver && tdm_ids_get(&c->ids, op, UINT32_MAX, &op->id))
		return 0;
	op->has_id = (uint8_t)deliver;
	put_ack(c);
	fill_rec(&rec, op);
	rec.op = TDM_WIRE_EAGER;
	rec.len = (uint32_t)op->len;
	rec.flags |= deliver	  ? TDM_WIRE_F_DONE :
		     injected(op) ? 0 :
				    TDM_WIRE_F_ACK;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	out->msgs++;
	c->charged += tdm_wire_charge(rec.len);
	c->stats.tx_msgs++;
	c->stats.tx_bytes += op->len;
	op->seq = c->tx_seq++;
	settle(c, op);
	if (op->len != copied) {
		gather(c, op, 0, op->len);
		c->turn = 1;
		return 1;
	}
	tdm_iov_copy_from(out->bytes + out->tail, op->iov, op->count, 0,
			  op->len);
	out->tail += (uint32_t)op->len;
	if (op->state == TDM_TX_LEAVING)
		tx_end(c, op, 0, 0);
	return 1;
}

/* Make the payload of an inject the send's own. */
static int own_payload(struct tdm_tx *op)
{
	if (op->copy || !op->len)
		return 0;
	op->copy = malloc(op->len);
	if (!op->copy)
		return -FI_ENOMEM;
	tdm_iov_copy_from(op->copy, op->iov, op->count, 0, op->len);
	op->iov[0].iov_base = op->copy;
	op->iov[0].iov_len = op->len;
	op->count = 1;
	return 0;
}

static int commit_rts(struct tdm_conn *c, struct tdm_tx *op)
{
	struct tdm_wire_rec rec;
	struct tdm_out *out;

	out = tdm_out_room(c, TDM_WIRE_ACK_BYTES + TDM_WIRE_HEAD_BYTES);
	if (!out || c->rts >= c->rts_max)
		return 0;
	if ((op->flags & FI_INJECT) && own_payload(op))
		return 0;
	if (tdm_ids_get(&c->ids, op, UINT32_MAX, &op->id))
		return 0;
	op->has_id = 1;
	c->rts++;
	put_ack(c);
	fill_rec(&rec, op);
	rec.op = TDM_WIRE_RTS;
	rec.total = op->len;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	out->msgs++;
	c->stats.tx_msgs++;
	c->stats.tx_bytes += op->len;
	tdm_list_del(&op->node);
	op->state = TDM_TX_CTS;
	tdm_list_append(&c->waitq, &op->node);
	return 1;
}

static int commit(struct tdm_conn *c, struct tdm_tx *op)
{
	if (c->gather)
		return 0;
	if (tdm_likely(op->len <= c->eager &&
		       c->charged + tdm_wire_charge((uint32_t)op->len) <=
			       c->freed + c->window))
		return commit_eager(c, op);
	return commit_rts(c, op);
}

/* The next piece of announced data, or the news that there is none. */
static int commit_data(struct tdm_conn *c)
{
	struct tdm_tx *op = tdm_list_entry(c->dataq.next, struct tdm_tx, node);
	size_t n = tdm_min(op->wanted - op->off, CHUNK_BYTES);
	struct tdm_wire_rec rec;
	struct tdm_out *out;
	int last;

	out = tdm_out_room(c, TDM_WIRE_ACK_BYTES + TDM_WIRE_HEAD_BYTES);
	if (!out)
		return 0;
	put_ack(c);
	last = op->off + n == op->wanted;
	memset(&rec, 0, sizeof(rec));
	rec.op = TDM_WIRE_DATA;
	rec.rid = op->rid;
	rec.len = op->dead ? 0 : (uint32_t)n;
	rec.flags = op->dead		  ? TDM_WIRE_F_ABORT :
		    last && !injected(op) ? TDM_WIRE_F_ACK :
					    0;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	if (op->dead) {
		tx_free(c, op);
		return 1;
	}
	gather(c, op, op->off, op->off + n);
	op->off += n;
	op->seq = c->tx_seq++;
	c->turn = 0;
	if (last) {
		settle(c, op);
	} else {
		tdm_list_del(&op->node);
		tdm_list_append(&c->dataq, &op->node);
	}
	return 1;
}

/* CTS and DONE that the receive side wants to send. */
static int commit_ctl(struct tdm_conn *c)
{
	struct tdm_rx *rx = tdm_list_entry(c->ctlq.next, struct tdm_rx, ctl);
	struct tdm_out *out = tdm_out_room(c, TDM_WIRE_HEAD_BYTES);
	struct tdm_wire_rec rec;

	if (!out)
		return 0;
	memset(&rec, 0, sizeof(rec));
	rec.op = rx->answer;
	rec.id = rx->id;
	rec.rid = rx->rid;
	rec.total = rx->want;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	tdm_list_del(&rx->ctl);
	tdm_rx_answered(rx);
	return 1;
}

void tdm_tx_fill(struct tdm_conn *c)
{
	if (c->gather || c->closing)
		return;
	if (!c->ack_now && !c->out && tdm_list_empty(&c->sendq) &&
	    tdm_list_empty(&c->ctlq) && tdm_list_empty(&c->dataq))
		return;
	if (!tdm_out_room(c, TDM_WIRE_ACK_BYTES))
		return;
	put_ack(c);
	while (!tdm_list_empty(&c->ctlq) && commit_ctl(c))
		;
	while (!tdm_list_empty(&c->sendq) && !c->gather &&
	       tdm_out_bytes(c) < TDM_TCP_FLUSH_BYTES) {
		struct tdm_tx *op =
			tdm_list_entry(c->sendq.next, struct tdm_tx, node);

		if (c->turn && op->len > TDM_TCP_COPY_BYTES &&
		    !tdm_list_empty(&c->dataq))
			break;
		if (!commit(c, op))
			break;
	}
	if (!c->gather && !tdm_list_empty(&c->dataq))
		commit_data(c);
	if (c->out && c->out->head == c->out->tail)
		tdm_out_free(c);
	/* Only memory can be what is missing now: try again. */
	if (!c->out && !c->gather && !tdm_list_empty(&c->sendq) &&
	    c->rts < c->rts_max)
		tdm_out_later(c);
}

void tdm_tx_gathered(struct tdm_conn *c)
{
	struct tdm_tx *op = c->gather;

	c->gather = NULL;
	if (op->state == TDM_TX_LEAVING)
		tx_end(c, op, 0, 0);
}

static struct tdm_tx *tx_new(struct tdm_conn *c, const struct tdm_xfer *x)
{
	struct tdm_tx *op = tdm_pool_alloc(&c->tcp->tx_pool);
	size_t i;

	if (!op)
		return NULL;
	tdm_list_init(&op->node);
	op->context = x->context;
	op->flags = x->flags;
	op->tag = x->tag;
	op->data = x->data;
	op->len = x->len;
	op->off = 0;
	op->wanted = 0;
	op->addr = x->addr;
	op->id = 0;
	op->rid = 0;
	op->state = TDM_TX_QUEUED;
	op->ended = 0;
	op->dead = 0;
	op->has_id = 0;
	op->copy = NULL;
	op->count = (uint8_t)x->count;
	for (i = 0; i < x->count; i++)
		op->iov[i] = x->iov[i];
	c->tcp->tx_used++;
	return op;
}

/* @op cannot leave now: keep it, and see to it that it will. */
static ssize_t enqueue(struct tdm_conn *c, struct tdm_tx *op)
{
	if ((op->flags & FI_INJECT) && own_payload(op)) {
		tx_free(c, op);
		return -FI_ENOMEM;
	}
	if (tdm_list_empty(&c->sendq) && c->state == TDM_CONN_IDLE)
		c->since_ns = 0;
	tdm_list_append(&c->sendq, &op->node);
	switch (c->state) {
	case TDM_CONN_READY:
		if (!c->blocked)
			tdm_out_later(c);
		break;
	case TDM_CONN_IDLE:
		tdm_hello_connect(c);
		break;
	case TDM_CONN_SILENT:
		tdm_hello_greet(c);
		break;
	default:
		break;
	}
	return 0;
}

ssize_t tdm_tx_send(struct tdm_conn *c, const struct tdm_xfer *x)
{
	struct tdm_tcp *tcp = c->tcp;
	struct tdm_tx *op;

	tdm_assert_held(tcp->a.engine->lock);
	if (tdm_unlikely(x->flags & FI_RMA))
		return -FI_ENOSYS;
	if (tdm_unlikely(tcp->tx_used >= tcp->a.tx_size))
		return -FI_EAGAIN;
	op = tx_new(c, x);
	if (tdm_unlikely(!op))
		return -FI_ENOMEM;
	if (tdm_unlikely(c->state != TDM_CONN_READY ||
			 !tdm_list_empty(&c->sendq) || !commit(c, op)))
		return enqueue(c, op);
	if (c->blocked)
		return 0;
	if (c->gather || c->out->tail - c->out->head >= TDM_TCP_FLUSH_BYTES ||
	    c->out->msgs >= FLUSH_MSGS) {
		c->tx_pass = tcp->pass;
		tdm_out_push(c);
	} else if (x->flags & FI_MORE) {
		tdm_out_later(c);
	} else {
		tdm_out_kick(c);
	}
	return 0;
}

int tdm_tx_cts(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct tdm_tx *op = tdm_ids_find(&c->ids, rec->id);

	if (!op || op->state != TDM_TX_CTS)
		return -TDM_WIRE_E_ID;
	if (rec->total > op->len)
		return -TDM_WIRE_E_VALUE;
	c->rts--;
	tdm_out_later(c);
	tdm_ids_put(&c->ids, op->id);
	op->has_id = 0;
	op->rid = rec->rid;
	op->wanted = rec->total;
	if (!op->wanted) {
		tx_end(c, op, 0, 0);
		return 0;
	}
	tdm_list_del(&op->node);
	op->state = TDM_TX_DATA;
	tdm_list_append(&c->dataq, &op->node);
	return 0;
}

int tdm_tx_done(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct tdm_tx *op = tdm_ids_find(&c->ids, rec->id);

	if (!op || op->state != TDM_TX_DONE || c->gather == op)
		return -TDM_WIRE_E_ID;
	tx_end(c, op, 0, 0);
	return 0;
}

int tdm_tx_acked(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	if (rec->acked < c->acked || rec->acked > c->tx_seq - !!c->gather ||
	    rec->freed < c->freed || rec->freed > c->charged)
		return -TDM_WIRE_E_ACK;
	c->freed = rec->freed;
	c->acked = rec->acked;
	while (!tdm_list_empty(&c->ackq)) {
		struct tdm_tx *op =
			tdm_list_entry(c->ackq.next, struct tdm_tx, node);

		if (op->seq >= c->acked)
			break;
		tx_end(c, op, 0, 0);
	}
	return 0;
}

int tdm_tx_cancel(struct tdm_tcp *tcp, void *context)
{
	struct tdm_list *n, *m;

	tdm_list_for_each(n, &tcp->conns) {
		struct tdm_conn *c = tdm_list_entry(n, struct tdm_conn, all);

		tdm_list_for_each(m, &c->sendq) {
			struct tdm_tx *op =
				tdm_list_entry(m, struct tdm_tx, node);

			if (op->context != context)
				continue;
			tx_end(c, op, FI_ECANCELED, 0);
			return 0;
		}
	}
	return -FI_ENOENT;
}

static void end_list(struct tdm_conn *c, struct tdm_list *list, int err,
		     int prov)
{
	while (!tdm_list_empty(list))
		tx_end(c, tdm_list_entry(list->next, struct tdm_tx, node), err,
		       prov);
}

void tdm_tx_fail(struct tdm_conn *c, int err, int prov)
{
	struct tdm_tx *op = c->gather;

	c->gather = NULL;
	if (op && op->state == TDM_TX_LEAVING)
		tx_end(c, op, err, prov);
	end_list(c, &c->ackq, err, prov);
	end_list(c, &c->waitq, err, prov);
	end_list(c, &c->dataq, err, prov);
	end_list(c, &c->sendq, err, prov);
}

/* Copy what is still to leave of the user's buffer. */
static int own_gathered(struct tdm_conn *c)
{
	size_t n = c->gather_end - c->gather_off;
	struct tdm_tx *op = c->gather;
	void *copy;

	if (op->copy)
		return 0;
	copy = malloc(n);
	if (!copy)
		return -FI_ENOMEM;
	tdm_iov_copy_from(copy, op->iov, op->count, c->gather_off, n);
	op->copy = copy;
	op->iov[0].iov_base = copy;
	op->iov[0].iov_len = n;
	op->count = 1;
	c->gather_off = 0;
	c->gather_end = n;
	return 0;
}

/*
 * @op has been given up with @err, or (0) ends without an entry because the
 * endpoint closes: then what was injected still leaves.
 */
static void give_up(struct tdm_conn *c, struct tdm_tx *op, int err)
{
	if (err)
		tx_report(c, op, err, 0);
	op->ended = 1;
	op->dead = err || !(op->flags & FI_INJECT);
}

static void give_up_list(struct tdm_conn *c, struct tdm_list *list, int err)
{
	struct tdm_list *n;

	tdm_list_for_each(n, list)
		give_up(c, tdm_list_entry(n, struct tdm_tx, node), err);
}

int tdm_tx_abandon(struct tdm_conn *c, int err)
{
	struct tdm_tx *op = c->gather;
	struct tdm_list *n, *tmp;

	if (op) {
		if (err && own_gathered(c))
			return -FI_ENOMEM;
		give_up(c, op, err);
		if (op->state == TDM_TX_ACK) {
			tdm_list_del(&op->node);
			op->state = TDM_TX_LEAVING;
		}
	}
	while ((n = tdm_list_pop(&c->ackq))) {
		op = tdm_list_entry(n, struct tdm_tx, node);
		give_up(c, op, err);
		tx_free(c, op);
	}
	give_up_list(c, &c->waitq, err);
	give_up_list(c, &c->dataq, err);
	give_up_list(c, &c->sendq, err);
	tdm_list_for_each_safe(n, tmp, &c->sendq) {
		op = tdm_list_entry(n, struct tdm_tx, node);
		if (op->dead)
			tx_free(c, op);
	}
	return 0;
}

/* Not 0 while @list has something that is still to leave. */
static int leaving(const struct tdm_list *list)
{
	struct tdm_list *n;

	tdm_list_for_each(n, list) {
		struct tdm_tx *op = tdm_list_entry(n, struct tdm_tx, node);

		if (!op->dead && op->state != TDM_TX_DONE)
			return 1;
	}
	return 0;
}

int tdm_tx_leaving(const struct tdm_conn *c)
{
	return c->gather || leaving(&c->sendq) || leaving(&c->waitq) ||
	       leaving(&c->dataq);
}
