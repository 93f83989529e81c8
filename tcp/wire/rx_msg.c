/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Received messages, from the wire to the owner's matching; the peer's part of
 * fi_peer(3) "PEER SRX".
 *
 * A short message that has arrived completely and finds its receive is placed
 * and completed where it is parsed. rx_rma.c adds the one-sided operations. Any
 * other message has a struct tdm_rx, with a state: rx_state.h.
 *
 * Invariants:
 *  1. No other call to the owner comes between get_* and queue_* of a message.
 *  2. Each entry is completed once, then given back by free_entry(). An entry
 *     that the owner has discarded is not given back.
 *  3. While a connection has a tdm_rx it stays allocated, alive or not: an
 *     unexpected message that arrived completely is delivered although the peer
 *     is gone.
 *  4. Credit is given back when the message takes no memory any more; if it
 *     needs an answer, when the answer is written.
 */
#include "tcp/wire/rx_msg.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "tcp/wire/conn.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/meet.h"
#include "tcp/wire/out.h"
#include "tcp/wire/prompt.h"
#include "tcp/wire/rma.h"
#include "tcp/wire/rx.h"
#include "tcp/wire/rx_priv.h"
#include "tcp/wire/send.h"
#include "tdm_place.h"

static void drop_buf(struct tdm_rx *rx)
{
	tdm_spares_give(&rx->conn->tcp->payloads, rx->buf, rx->buf_bytes);
	rx->buf = NULL;
}

void tdm_rx_free(struct tdm_rx *rx)
{
	struct tdm_conn *c = rx->conn;

	if (rx->has_rid)
		tdm_ids_put(&c->busy->rids, rx->rid);
	if (c->cur == rx)
		c->cur = NULL;
	if (tdm_unlikely(c->busy->left_at == &rx->node))
		c->busy->left_at = rx->node.next;
	if (rx->op)
		rx->op->rx = NULL;
	if (tdm_unlikely(rx->kept))
		tdm_credit_forget(rx);
	tdm_list_del(&rx->ctl);
	tdm_list_del(&rx->node);
	drop_buf(rx);
	tdm_pool_free(&c->tcp->rx_pool, rx);
}

struct tdm_rx *tdm_rx_new(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct tdm_rx *rx;

	if (tdm_busy_need(c))
		return NULL;
	rx = tdm_pool_alloc(&c->tcp->rx_pool);
	if (!rx)
		return NULL;
	memset(rx, 0, sizeof(*rx));
	tdm_list_init(&rx->ctl);
	tdm_list_init(&rx->node);
	tdm_list_append(&c->busy->rxs, &rx->node);
	rx->conn = c;
	rx->id = rec->id;
	return rx;
}

/*
 * Ask the owner for the receive of a message. @len: its whole length. Out:
 * *@entry.
 */
static int match(struct tdm_conn *c, const struct tdm_wire_rec *rec, size_t len,
		 struct fi_peer_rx_entry **entry)
{
	struct fid_peer_srx *srx = tdm_rx_srx(c->tcp, rec->ctx);
	struct tdm_offer offer = {
		.attr.addr = c->from,
		.attr.msg_size = len,
		.attr.tag = rec->tag,
		.from = &c->addr.u.sa,
	};
	int ret;

	if (rec->flags & TDM_WIRE_F_TAG)
		ret = srx->owner_ops->get_tag(srx, &offer.attr, entry);
	else
		ret = srx->owner_ops->get_msg(srx, &offer.attr, entry);
	if ((!ret || ret == -FI_ENOENT) && (rec->flags & TDM_WIRE_F_DATA)) {
		(*entry)->flags |= FI_REMOTE_CQ_DATA;
		(*entry)->cq_data = rec->data;
	}
	return ret;
}

/* Let the owner queue @entry as unexpected. */
static int queue(struct tdm_rx *rx, const struct tdm_wire_rec *rec,
		 struct fi_peer_rx_entry *entry)
{
	struct fid_peer_srx *srx = rx->conn->tcp->a.srx;

	tdm_rx_step(&rx->state, TDM_RX_WAITING);
	rx->waited = 1;
	rx->entry = entry;
	entry->peer_context = rx;
	entry->msg_size = rx->len;
	return (rec->flags & TDM_WIRE_F_TAG) ?
		       srx->owner_ops->queue_tag(entry) :
		       srx->owner_ops->queue_msg(entry);
}

static void give_back(struct tdm_tcp *tcp, struct fi_peer_rx_entry *entry)
{
	tcp->a.srx->owner_ops->free_entry(entry);
}

/*
 * Complete @entry: a message of @len bytes has arrived, of which @room bytes
 * fitted the receive.
 */
static void complete(struct tdm_conn *c, struct fi_peer_rx_entry *entry,
		     uint64_t len, uint64_t room)
{
	struct tdm_tcp *tcp = c->tcp;

	if (tdm_likely(len <= room))
		tdm_done_recv(&tcp->a.done, entry, len);
	else
		tdm_done_recv_err(&tcp->a.done, entry,
				  tdm_result_of(tdm_truncated(room, len - room),
						&tdm_conn_addr(c)->u.sa));
	give_back(tcp, entry);
}

static void fail(struct tdm_rx *rx, int err, int prov)
{
	struct tdm_tcp *tcp = rx->conn->tcp;
	struct fi_peer_rx_entry *entry = tdm_rx_stop(rx);

	tdm_done_recv_err(
		&tcp->a.done, entry,
		tdm_result_of(tdm_failed(err, prov, tdm_min(rx->got, rx->room)),
			      &tdm_conn_addr(rx->conn)->u.sa));
	give_back(tcp, entry);
}

void tdm_rx_revoke(struct tdm_rx *rx)
{
	rx->status = TDM_WIRE_S_ACCESS;
	give_back(rx->conn->tcp, tdm_rx_stop(rx));
}

/* Not 0 when the bytes of @rx, which is PLACING, must be discarded. */
static int revoked(const struct tdm_rx *rx)
{
	return (rx->entry->flags & FI_RMA) &&
	       rx->conn->tcp->rma->revoked(rx->entry);
}

void tdm_rx_answer(struct tdm_rx *rx, enum tdm_wire_op op)
{
	struct tdm_conn *c = rx->conn;

	if (!tdm_conn_live(c))
		return;
	rx->answer = (uint8_t)op;
	tdm_list_append(&c->busy->ctlq, &rx->ctl);
	tdm_out_later(c);
}

/*
 * Free @rx, which needs no more bytes and no entry; if an answer to the sender
 * is due, only after that has been written.
 */
static void finish(struct tdm_rx *rx)
{
	if (rx->wants_done)
		tdm_rx_answer(rx, TDM_WIRE_DONE);
	if (tdm_list_linked(&rx->ctl))
		return;
	tdm_credit_release(rx->conn, rx->charge);
	tdm_rx_free(rx);
}

void tdm_rx_answered(struct tdm_rx *rx)
{
	uint8_t op = rx->answer;

	rx->answer = 0;
	/* A DONE without an earlier CTS answers AWRITE or ATOMIC. */
	if (op == TDM_WIRE_CTS || (rx->announced && !rx->has_rid))
		rx->conn->busy->announced--;
	if (op == TDM_WIRE_CTS && rx->want) {
		tdm_rx_expect(rx->conn, rx->want);
		return;
	}
	tdm_credit_release(rx->conn, rx->charge);
	tdm_rx_free(rx);
}

void tdm_rx_arrived(struct tdm_rx *rx)
{
	if (rx->state == TDM_RX_WAITING)
		return;
	tdm_prompt_told(rx);
	if (rx->state == TDM_RX_PLACING)
		complete(rx->conn, tdm_rx_stop(rx), rx->len, rx->room);
	else if (rx->state == TDM_RX_OPERANDS)
		tdm_rx_operands(rx);
	finish(rx);
}

void tdm_rx_place(struct tdm_rx *rx, struct fi_peer_rx_entry *entry)
{
	tdm_rx_step(&rx->state, TDM_RX_PLACING);
	rx->entry = entry;
	rx->room = tdm_iov_len(entry->iov, entry->count);
}

/* Ask the sender of the announced @rx for the bytes that fit. */
static void want(struct tdm_rx *rx)
{
	struct tdm_conn *c = rx->conn;
	int ret;

	rx->want = 0;
	if (rx->state == TDM_RX_PLACING && rx->len && rx->room) {
		ret = tdm_ids_get(&c->busy->rids, rx, UINT32_MAX, &rx->rid);
		assert(!ret); /* see tdm_rx_rid_ready() */
		(void)ret;
		rx->has_rid = 1;
		rx->want = tdm_min(rx->len, rx->room);
	}
	tdm_rx_answer(rx, TDM_WIRE_CTS);
	if (rx->state == TDM_RX_PLACING && !rx->want)
		complete(c, tdm_rx_stop(rx), rx->len, rx->room);
}

int tdm_rx_rts(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct fi_peer_rx_entry *entry;
	struct tdm_rx *rx;
	int ret;

	if (c->busy->announced >= c->announced_most)
		return -TDM_WIRE_E_CREDIT;
	c->heard += c->tcp->closing;
	if (c->tcp->closing)
		return 0;
	if (tdm_rx_rid_ready(c))
		return -TDM_RX_NO_MEMORY;
	rx = tdm_rx_new(c, rec);
	if (!rx)
		return -TDM_RX_NO_MEMORY;
	c->busy->announced++;
	rx->turn = ++c->heard;
	c->stats.rx_msgs++;
	c->stats.rx_bytes += rec->total;
	rx->announced = 1;
	rx->len = rec->total;
	ret = match(c, rec, rx->len, &entry);
	if (!ret) {
		tdm_rx_place(rx, entry);
		want(rx);
	} else if (ret == -FI_ENOENT) {
		ret = queue(rx, rec, entry);
		if (ret)
			give_back(c->tcp, entry);
		else
			tdm_credit_announce(rx);
	}
	if (ret) {
		/* The record will be handled again. */
		c->busy->announced--;
		c->heard--;
		c->stats.rx_msgs--;
		c->stats.rx_bytes -= rec->total;
		tdm_rx_free(rx);
		return -TDM_RX_NO_MEMORY;
	}
	/* Perhaps it was announced because credit was low. */
	if (c->given - c->rx_charged < TDM_CREDIT_LOW_BYTES)
		tdm_credit_low(c);
	return 0;
}

void tdm_rx_drop(struct tdm_rx *rx)
{
	give_back(rx->conn->tcp, rx->entry);
	tdm_rx_free(rx);
}

void tdm_rx_withdraw(struct tdm_rx *rx)
{
	give_back(rx->conn->tcp, tdm_rx_stop(rx));
	rx->rid = TDM_WIRE_CANCELLED;
	want(rx);
}

/*
 * Make a struct tdm_rx for a message that is unexpected, incomplete, or to be
 * answered. Without memory @entry, which is that of an unexpected message then,
 * goes back.
 */
static int begin(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		 struct fi_peer_rx_entry *entry, int expected)
{
	struct tdm_rx *rx = tdm_rx_new(c, rec);
	int ret = 0;

	assert(rx || !expected);
	if (!rx) {
		give_back(c->tcp, entry);
		return -TDM_RX_NO_MEMORY;
	}
	rx->len = rec->len;
	rx->want = rec->len;
	rx->wants_done = !!(rec->flags & TDM_WIRE_F_DONE);
	if (expected) {
		tdm_rx_place(rx, entry);
	} else {
		if (rec->len) {
			rx->buf = tdm_spares_take(&c->tcp->payloads, rec->len,
						  &rx->buf_bytes);
			ret = rx->buf ? 0 : -FI_ENOMEM;
		}
		if (!ret)
			ret = queue(rx, rec, entry);
	}
	if (ret) {
		tdm_rx_free(rx);
		give_back(c->tcp, entry);
		return -TDM_RX_NO_MEMORY;
	}
	rx->charge = tdm_credit_charge(rec->len);
	c->cur = rx;
	return 0;
}

int tdm_rx_eager(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		 const uint8_t *p, size_t n)
{
	struct tdm_tcp *tcp = c->tcp;
	struct fi_peer_rx_entry *entry;
	int ret, whole;

	n = tdm_min(n, rec->len);
	whole = n == rec->len && !(rec->flags & TDM_WIRE_F_DONE);
	if (tdm_unlikely(tcp->closing))
		return 0;
	/*
	 * Before the match, since a posted receive that has been taken cannot
	 * be put back. A whole message needs a struct tdm_rx only if it is
	 * unexpected.
	 */
	if (tdm_unlikely(tdm_pool_ready(&tcp->rx_pool) ||
			 (!whole && tdm_busy_need(c))))
		return -TDM_RX_NO_MEMORY;
	ret = match(c, rec, rec->len, &entry);
	if (ret && ret != -FI_ENOENT)
		return -TDM_RX_NO_MEMORY;
	if (tdm_likely(!ret && whole)) {
		size_t placed =
			tdm_iov_copy_to(entry->iov, entry->count, 0, p, n);

		complete(c, entry, n, placed);
		c->rx_freed += tdm_credit_charge(rec->len);
		return (int)n;
	}
	ret = begin(c, rec, entry, !ret);
	if (ret)
		return ret;
	if (!rec->len) {
		struct tdm_rx *rx = c->cur;

		c->cur = NULL;
		tdm_rx_arrived(rx);
	}
	return 0;
}

int tdm_rx_data(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct tdm_rx *rx = tdm_ids_find(&c->busy->rids, rec->rid);

	if (!rx || rx->answer)
		return -TDM_WIRE_E_ID;
	if (rec->flags & TDM_WIRE_F_ABORT) {
		if (rx->op)
			return -TDM_WIRE_E_STATE;
		if (rx->state == TDM_RX_PLACING)
			fail(rx, FI_ECONNABORTED, 0);
		tdm_rx_free(rx);
		return 0;
	}
	if (rec->len > rx->want - rx->got)
		return -TDM_WIRE_E_LENGTH;
	c->cur = rx;
	return 0;
}

size_t tdm_rx_target(const struct tdm_conn *c, struct iovec *iov)
{
	const struct tdm_rx *rx = c->cur;
	uint64_t room;

	if (!rx)
		return 0;
	room = rx->room;
	if (rx->state == TDM_RX_WAITING) {
		iov->iov_base = rx->buf + rx->got;
		iov->iov_len = c->left;
		return 1;
	}
	if (rx->state == TDM_RX_READING)
		return tdm_iov_slice(iov, TDM_IOV_LIMIT, rx->op->iov,
				     rx->op->count, rx->got, c->left);
	if (rx->state != TDM_RX_PLACING || revoked(rx))
		return 0;
	/* tdm_place() stores the end of a write. */
	if (rx->entry->flags & FI_RMA)
		room -= tdm_place_last(rx->entry->iov, rx->entry->count);
	if (rx->got >= room)
		return 0;
	return tdm_iov_slice(iov, TDM_IOV_LIMIT, rx->entry->iov,
			     rx->entry->count, rx->got,
			     tdm_min(c->left, room - rx->got));
}

/* Place the next @n bytes of @rx. */
static void put(struct tdm_rx *rx, const uint8_t *p, size_t n)
{
	const struct fi_peer_rx_entry *e = rx->entry;

	if (e->flags & FI_RMA)
		tdm_place(e->iov, e->count, rx->got, p, n);
	else
		tdm_iov_copy_to(e->iov, e->count, rx->got, p, n);
}

void tdm_rx_put(struct tdm_conn *c, const uint8_t *p, size_t n)
{
	struct tdm_rx *rx = c->cur;

	if (!rx) {
		if (c->meeting)
			tdm_meet_put(c, p, n);
		return;
	}
	if (rx->state == TDM_RX_PLACING && revoked(rx))
		tdm_rx_revoke(rx);
	if (p && rx->state == TDM_RX_WAITING)
		memcpy(rx->buf + rx->got, p, n);
	else if (p && rx->state == TDM_RX_READING)
		tdm_iov_copy_to(rx->op->iov, rx->op->count, rx->got, p, n);
	else if (p && rx->state == TDM_RX_PLACING && rx->got < rx->room)
		put(rx, p, n);
	else if (rx->state == TDM_RX_OPERANDS)
		tdm_rx_keep_operands(rx, p, n);
	rx->got += n;
	if (c->left)
		return;
	c->cur = NULL;
	if (rx->got == rx->want && !rx->op) /* a read ends by DONE */
		tdm_rx_arrived(rx);
}

/*
 * Called when a call outside of a pass may have queued an answer to the peer:
 * sends it before the application reads the completion, since the application
 * may make no progress after that. Our own queues make a pass before they return
 * a completion; those of another owner need not.
 */
static void owe(struct tdm_conn *c)
{
	struct tdm_engine *engine = c->tcp->a.engine;

	if (!tdm_list_linked(&c->flush_node))
		return;
	if (engine->lent)
		tdm_conn_push(c);
	else
		engine->owed = 1;
}

/*
 * Called by the owner when it has found a receive for a message that it kept.
 */
static int start(struct fi_peer_rx_entry *entry)
{
	struct tdm_rx *rx = entry->peer_context;
	struct tdm_conn *c = rx->conn;
	int lost = !tdm_conn_live(c);

	tdm_rx_place(rx, entry);
	if (!rx->announced && rx->got) {
		tdm_iov_copy_to(entry->iov, entry->count, 0, rx->buf, rx->got);
		drop_buf(rx);
	}
	if (!rx->announced && rx->got == rx->len) {
		tdm_rx_arrived(rx);
	} else if (lost) {
		fail(rx, FI_ECONNRESET, 0);
		tdm_rx_free(rx);
	} else if (rx->announced) {
		want(rx);
		tdm_conn_kick(c);
	}
	owe(c);
	return 0;
}

/*
 * Called by the owner when it drops a message that it kept; the owner frees the
 * entry.
 */
static int discard(struct fi_peer_rx_entry *entry)
{
	struct tdm_rx *rx = entry->peer_context;
	struct tdm_conn *c = rx->conn;

	(void)tdm_rx_stop(rx);
	if (c->tcp->held->closing)
		rx->wants_done = 0;
	if (!tdm_conn_live(c))
		tdm_rx_free(rx);
	else if (rx->announced && c->tcp->held->closing)
		return 0; /* until tdm_conn_free() */
	else if (rx->announced)
		want(rx);
	else if (rx->got == rx->len)
		finish(rx);
	owe(c);
	return 0;
}

void tdm_rx_fail(struct tdm_conn *c, int err, int prov)
{
	struct tdm_list *n, *tmp;

	c->cur = NULL;
	tdm_list_for_each_safe(n, tmp, &c->busy->rxs) {
		struct tdm_rx *rx = tdm_list_entry(n, struct tdm_rx, node);

		if (rx->state == TDM_RX_WAITING)
			continue;
		if (rx->state == TDM_RX_PLACING)
			fail(rx, err, prov);
		tdm_rx_free(rx);
	}
}

void tdm_rx_abandon(struct tdm_conn *c)
{
	struct tdm_list *n;

	tdm_list_for_each(n, &c->busy->rxs) {
		struct tdm_rx *rx = tdm_list_entry(n, struct tdm_rx, node);
		int placing = rx->state == TDM_RX_PLACING;
		struct fi_peer_rx_entry *entry = tdm_rx_stop(rx);

		if (placing)
			give_back(c->tcp, entry);
		/* a dropped message is not acknowledged as delivered */
		rx->wants_done = 0;
	}
}

void tdm_rx_free_all(struct tdm_conn *c)
{
	while (!tdm_list_empty(&c->busy->rxs))
		tdm_rx_free(
			tdm_list_entry(c->busy->rxs.next, struct tdm_rx, node));
}

fi_addr_t tdm_rx_source(struct fi_peer_rx_entry *entry)
{
	return ((const struct tdm_rx *)entry->peer_context)->conn->fi_addr;
}

struct fi_ops_srx_peer tdm_rx_peer_ops = {
	.size = sizeof(tdm_rx_peer_ops),
	.start_msg = start,
	.start_tag = start,
	.discard_msg = discard,
	.discard_tag = discard,
};
