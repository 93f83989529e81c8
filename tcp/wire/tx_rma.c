/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations: sends the requests of reads and of atomic operations
 * and the targets' replies, and handles DONE, which ends all of them. Writes
 * are sent like messages (tx.c).
 *
 * A read: READ has two numbers, of the operation and of the place of its bytes
 * (struct tdm_rx, READING). DATA fills the place, DONE ends the operation. An
 * atomic operation: the same with ATOMIC, which has the operands; without a
 * place if there is no result. A reply: a struct tdm_tx on dataq from the
 * arrival of the request until its DONE is written; one whose bytes may have to be
 * repeated then stays with them (keep.c, 4). The reply to an atomic
 * operation has the former values in copy: the operation was carried out when
 * it arrived.
 *
 * Invariants:
 *  1. Each access to a region is preceded by a call of tdm_rma_ops.revoked().
 *     If a region is closed while a record is being sent, the remaining bytes
 *     are replaced (send.c), and the DONE after them tells.
 *  2. No bytes are sent for a read after its DONE.
 *  3. Atomic operations are carried out in the order in which they were posted.
 *  4. Requests without an answer count as announcements, and are bounded with
 *     them.
 *
 * Lock: domain held.
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "tcp/wire/keep.h"
#include "tcp/wire/out.h"
#include "tcp/wire/prompt.h"
#include "tcp/wire/rma.h"
#include "tcp/wire/rx.h"
#include "tcp/wire/rx_msg.h"
#include "tcp/wire/rx_priv.h"
#include "tcp/wire/tx.h"
#include "tcp/wire/tx_priv.h"

void tdm_tx_slow(struct tdm_conn *c, struct tdm_tx *op)
{
	op->slow = 1;
	tdm_slow_add(&c->busy->slow, &c->tcp->a.order, op->flags, 1);
}

void tdm_tx_slow_ends(struct tdm_conn *c, const struct tdm_tx *op)
{
	tdm_slow_add(&c->busy->slow, &c->tcp->a.order, op->flags, -1);
	if (c->state == TDM_CONN_READY && !tdm_list_empty(&c->sendq))
		tdm_out_later(c);
}

static int take_operands(struct tdm_tx *op, const struct tdm_xfer *x)
{
	op->amo = x->amo->amo;
	op->target = x->amo->bytes;
	op->operands = (uint32_t)x->len;
	op->len = x->amo->result_count ? x->amo->bytes : 0;
	if (!x->len)
		return 0;
	op->copy = malloc(x->len);
	if (!op->copy)
		return -FI_ENOMEM;
	tdm_iov_copy_from(op->copy, x->iov, x->count, 0, x->len);
	return 0;
}

int tdm_tx_take_rest(struct tdm_tx *op, const struct tdm_xfer *x)
{
	if ((x->flags & TDM_RANGES) && tdm_tx_take_ranges(op, x))
		return -FI_ENOMEM;
	if (!(x->flags & FI_ATOMIC) || !take_operands(op, x))
		return 0;
	if (x->flags & TDM_RANGES)
		free(op->more);
	return -FI_ENOMEM;
}

/*
 * Begin the request of @op and allocate the numbers it needs. Returns not 0:
 * out of memory.
 */
static int fill_request(struct tdm_conn *c, struct tdm_tx *op,
			struct tdm_wire_rec *rec)
{
	if (tdm_busy_need(c) ||
	    tdm_ids_get(&c->busy->ids, op, UINT32_MAX, &op->id))
		return -FI_ENOMEM;
	if (op->flags & FI_READ) {
		op->rx = tdm_rx_reading(c, op);
		if (!op->rx) {
			tdm_ids_put(&c->busy->ids, op->id);
			return -FI_ENOMEM;
		}
	}
	op->has_id = 1;
	memset(rec, 0, sizeof(*rec));
	rec->op = TDM_WIRE_READ;
	rec->id = op->id;
	rec->rid = op->rx ? op->rx->rid : 0;
	rec->key = op->rma_key;
	rec->addr = op->rma_addr;
	rec->total = op->len;
	if (op->flags & FI_ATOMIC) {
		rec->op = TDM_WIRE_ATOMIC;
		rec->ctx = op->flags & TDM_TO_CTX ? op->rx_ctx : 0;
		rec->amo = op->amo;
		rec->total = op->target;
		rec->len = op->operands;
	}
	return 0;
}

/* Write the operands of @op after its header, and free this side's copy. */
static void put_operands(struct tdm_conn *c, struct tdm_tx *op)
{
	struct tdm_out *out = c->out;

	if (op->operands)
		memcpy(out->bytes + out->tail, op->copy, op->operands);
	out->tail += op->operands;
	c->tx_seq++;
	c->stats.tx_msgs++;
	c->stats.tx_bytes += op->operands;
	free(op->copy);
	op->copy = NULL;
}

int tdm_tx_commit_request(struct tdm_conn *c, struct tdm_tx *op)
{
	int atomic = !!(op->flags & FI_ATOMIC);
	struct tdm_wire_rec rec;
	struct tdm_out *out;

	out = tdm_out_room(c, TDM_WIRE_ACK_BYTES + TDM_WIRE_HEAD_BYTES +
				      tdm_tx_ranges_bytes(op) +
				      (atomic ? op->operands : 0));
	if (!out || c->busy->rts >= c->rts_max || fill_request(c, op, &rec))
		return 0;
	c->busy->rts++;
	tdm_tx_put_ack(c);
	if (op->flags & TDM_RANGES)
		tdm_tx_put_ranges(c, op);
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	if (atomic)
		put_operands(c, op);
	out->msgs++;
	tdm_list_del(&op->node);
	tdm_tx_set_state(op, TDM_TX_DONE);
	tdm_list_append(&c->busy->waitq, &op->node);
	if (!atomic) {
		tdm_rx_expect(c, op->len);
		if (op->len > TDM_SAMPLE_BYTES)
			tdm_tx_slow(c, op);
	}
	return 1;
}

static int status_err(uint32_t status)
{
	switch (status) {
	case TDM_WIRE_S_OK:
		return 0;
	case TDM_WIRE_S_MEMORY:
		return FI_ENOMEM;
	case TDM_WIRE_S_OPERATION:
		return FI_EOPNOTSUPP;
	default:
		return FI_EACCES;
	}
}

int tdm_tx_done(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct tdm_tx *op = tdm_ids_find(&c->busy->ids, rec->id);
	int early;

	if (!op || c->borrow == op)
		return -TDM_WIRE_E_ID;
	/* An announced write may end before its bytes are sent. */
	early = (op->state == TDM_TX_CTS || op->state == TDM_TX_LEFT) &&
		(op->flags & FI_RMA) && (rec->status || !op->len);
	if (op->state != TDM_TX_DONE && !early)
		return -TDM_WIRE_E_ID;
	if (rec->status && !(op->flags & TDM_ONE_SIDED))
		return -TDM_WIRE_E_VALUE;
	if (op->flags & FI_READ) {
		if (!rec->status && op->rx->got != op->len)
			return -TDM_WIRE_E_LENGTH;
		c->stats.rx_msgs++;
		c->stats.rx_bytes += op->rx->got;
		tdm_prompt_read_ended(c);
	}
	if (early || (op->flags & (FI_READ | FI_ATOMIC))) {
		c->busy->rts--;
		tdm_out_later(c);
	}
	if (tdm_unlikely(op->lent))
		tdm_keep_passed(c, op);
	tdm_tx_end(c, op, status_err(rec->status), 0);
	return 0;
}

/* Returns the request of the peer for the ranges of @rec. */
static struct tdm_rma_request request_of(const struct tdm_conn *c,
					 const struct tdm_wire_rec *rec)
{
	const struct tdm_rma_request req = {
		.key = rec->key,
		.addr = rec->addr,
		.len = rec->total,
		.src = c->fi_addr,
		.from = &c->addr.u.sa,
		.auth = tdm_auth_find(c->tcp->a.keys, c->addr.key),
		.more = c->busy->more,
		.more_count = c->busy->more_count,
	};

	return req;
}

enum tdm_wire_status tdm_rma_get(struct tdm_conn *c,
				 const struct tdm_wire_rec *rec,
				 uint64_t access,
				 struct fi_peer_rx_entry **entry)
{
	struct tdm_tcp *tcp = c->tcp;
	struct tdm_rma_request req = request_of(c, rec);

	req.access = access;
	req.data = rec->data;
	req.flags = (rec->flags & TDM_WIRE_F_DATA) ? FI_REMOTE_CQ_DATA : 0;
	c->busy->more_count = 0;
	if (!tcp->rma)
		return TDM_WIRE_S_ACCESS;
	switch (tcp->rma->get(tcp->a.domain, tdm_rx_srx(tcp, rec->ctx), &req,
			      entry)) {
	case 0:
		return TDM_WIRE_S_OK;
	case -FI_ENOMEM:
		return TDM_WIRE_S_MEMORY;
	default:
		return TDM_WIRE_S_ACCESS;
	}
}

/* Allocates a reply to the request @rec, without bytes. NULL: out of memory. */
static struct tdm_tx *reply_new(struct tdm_conn *c,
				const struct tdm_wire_rec *rec)
{
	struct tdm_tx *op;

	if (tdm_busy_need(c))
		return NULL;
	op = tdm_pool_alloc(&c->tcp->tx_pool);
	if (!op)
		return NULL;
	memset(op, 0, sizeof(*op));
	tdm_list_init(&op->node);
	op->reply = 1;
	op->ended = 1;
	op->flags = FI_RMA;
	op->id = rec->id;
	op->rid = rec->rid;
	op->state = TDM_TX_DATA;
	return op;
}

static void reply_start(struct tdm_conn *c, struct tdm_tx *op)
{
	tdm_list_append(&c->busy->dataq, &op->node);
	tdm_out_later(c);
}

/*
 * Copy the bytes of the reply @op now: later requests must not change the
 * answer.
 */
static void sample(struct tdm_tx *op)
{
	op->copy = malloc(op->len);
	if (!op->copy) {
		op->status = TDM_WIRE_S_MEMORY;
		return;
	}
	tdm_iov_copy_from(op->copy, tdm_tx_iov(op), op->count, 0, op->len);
	op->iov[0].iov_base = op->copy;
	op->iov[0].iov_len = op->len;
	op->count = 1;
}

int tdm_tx_read(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct tdm_tx *op;
	size_t i;

	if (c->busy->announced >= c->announced_most)
		return -TDM_WIRE_E_CREDIT;
	if (c->tcp->closing)
		return 0;
	op = reply_new(c, rec);
	if (!op)
		return -TDM_RX_NO_MEMORY;
	c->busy->announced++;
	op->status = (uint8_t)tdm_rma_get(c, rec, FI_REMOTE_READ, &op->entry);
	if (!op->status) {
		op->wanted = rec->total;
		op->len = rec->total;
		op->count = (uint8_t)op->entry->count;
		for (i = 0; op->count <= TDM_IOV_LIMIT && i < op->count; i++)
			op->iov[i] = op->entry->iov[i];
		if (op->len && op->len <= TDM_SAMPLE_BYTES)
			sample(op);
	}
	reply_start(c, op);
	return 0;
}

static enum tdm_wire_status carry_out(struct tdm_conn *c,
				      const struct tdm_wire_rec *rec,
				      const void *operands, void *result)
{
	struct tdm_tcp *tcp = c->tcp;
	struct tdm_rma_atomic a = {
		.rma = request_of(c, rec),
		.amo = rec->amo,
		.operands = operands,
		.result = result,
	};
	struct fi_peer_rx_entry entry;

	if (!tcp->rma)
		return TDM_WIRE_S_ACCESS;
	switch (tcp->rma->atomic(tcp->a.domain, tdm_rx_srx(tcp, rec->ctx), &a,
				 &entry)) {
	case 0:
		tdm_done_recv(&tcp->a.done, &entry, rec->total);
		return TDM_WIRE_S_OK;
	case -FI_EOPNOTSUPP:
		return TDM_WIRE_S_OPERATION;
	default:
		return TDM_WIRE_S_ACCESS;
	}
}

int tdm_tx_atomic(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		  const void *operands)
{
	int fetch = tdm_amo_fetches(&rec->amo);
	struct tdm_tx *op = reply_new(c, rec);

	if (!op)
		return -TDM_RX_NO_MEMORY;
	op->flags = FI_ATOMIC;
	if (fetch)
		op->copy = malloc(rec->total);
	op->status = fetch && !op->copy ?
			     TDM_WIRE_S_MEMORY :
			     (uint8_t)carry_out(c, rec, operands, op->copy);
	c->busy->more_count = 0;
	if (fetch && !op->status) {
		op->iov[0].iov_base = op->copy;
		op->iov[0].iov_len = rec->total;
		op->count = 1;
		op->wanted = rec->total;
		op->len = rec->total;
	}
	reply_start(c, op);
	return 0;
}

/*
 * Longest part of a reply that is copied: the DONE behind it then leaves in the
 * same system call, and so do further replies.
 */
enum { REPLY_COPY_BYTES = TDM_TCP_FLUSH_BYTES };

/*
 * Write the next bytes of the reply @op. Returns not 0 when they are borrowed
 * from the region.
 */
static int put_data(struct tdm_conn *c, struct tdm_tx *op, size_t n)
{
	struct tdm_out *out = c->out;
	struct tdm_wire_rec rec;
	size_t from = op->off;

	memset(&rec, 0, sizeof(rec));
	rec.op = TDM_WIRE_DATA;
	rec.rid = op->rid;
	rec.len = (uint32_t)n;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	op->off += n;
	op->seq = c->tx_seq++;
	c->turn = 0;
	if (n > REPLY_COPY_BYTES) {
		tdm_tx_borrow(c, op, from, op->off);
		return 1;
	}
	tdm_iov_copy_from(out->bytes + out->tail, tdm_tx_iov(op), op->count,
			  from, n);
	out->tail += (uint32_t)n;
	return 0;
}

int tdm_tx_commit_reply(struct tdm_conn *c, struct tdm_tx *op)
{
	size_t n = tdm_min(op->wanted - op->off, TDM_TX_CHUNK_BYTES);
	size_t copied = n <= REPLY_COPY_BYTES ? n : 0;
	struct tdm_wire_rec rec;
	struct tdm_out *out;

	out = tdm_out_room(c, TDM_WIRE_ACK_BYTES + 2 * TDM_WIRE_HEAD_BYTES +
				      copied);
	if (!out)
		return 0;
	tdm_tx_put_ack(c);
	if (op->entry && c->tcp->rma->revoked(op->entry))
		op->status = TDM_WIRE_S_ACCESS;
	if (!op->status && n && put_data(c, op, n)) {
		tdm_list_del(&op->node);
		tdm_list_append(&c->busy->dataq, &op->node);
		return 1;
	}
	memset(&rec, 0, sizeof(rec));
	rec.op = TDM_WIRE_DONE;
	rec.id = op->id;
	rec.status = op->status;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	c->busy->announced--;
	if (!(op->flags & FI_ATOMIC) || op->len) {
		c->stats.tx_msgs++;
		c->stats.tx_bytes += op->off;
	}
	if (!op->status && op->entry)
		tdm_done_recv(&c->tcp->a.done, op->entry, op->len);
	if (!op->lent || !tdm_keep_reply(c, op))
		tdm_tx_free(c, op);
	return 1;
}
