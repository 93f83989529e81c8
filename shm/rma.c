/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations, fi_rma(3), at both ends.
 *
 *   write   WRITE or RTS_WRITE -->      get() the region, place or pull
 *                          <-- ACK      status
 *   read    READ -->                    get() the region
 *                          <-- READ_DATA        few bytes: done
 *                          <-- RTS_READ         many: the initiator pulls
 *           ACK -->                     is the region still open?
 *                          <-- ACK      status
 *
 * Invariants:
 *  1. Only the region's owner checks key, range and access, in get(). A refusal
 *     has no effect or event at the target, and does not break the pair.
 *  2. Before each access to a region its owner is asked whether it was closed.
 *     A pulled read succeeds only if the region was open when the last byte had
 *     been read: the second ACK tells.
 *  3. Each operation ends once: by the target's last record or with the
 *     session.
 *  4. A record is consumed as a whole or stays in the ring: steps that can fail
 *     for want of memory come first.
 * Locking: domain lock held. Spec: fi_rma(3), include/tdm_rma.h,
 * doc/PROTOCOL-shm.md "One-sided operations".
 */
#include "shm/rma.h"

#include "shm/amo.h"
#include "tdm_place.h"

#include <rdma/fi_errno.h>

enum {
	WHERE_BYTES = sizeof(struct tdm_shm_where),
};

/* ---- initiator ----------------------------------------------------------- */

/* Most payload of a WRITE in the present ring. */
static size_t write_most(const struct tdm_shm_pair *pair)
{
	return tdm_shm_eager_room(pair->tx.count, pair->ep->eager_most + 8) - 8;
}

static ssize_t no_op(struct tdm_shm_ep *ep)
{
	tdm_shm_ep_progress(ep);
	return -FI_EAGAIN;
}

static ssize_t send_write(struct tdm_shm_pair *pair, const struct tdm_xfer *x)
{
	uint8_t flags = x->flags & FI_REMOTE_CQ_DATA ? TDM_SHM_REC_DATA : 0;
	struct tdm_shm_where where = { .key = x->rma_key, .addr = x->rma_addr };
	uint32_t n = tdm_shm_rec_slots(WHERE_BYTES + tdm_shm_rec_extra(flags) +
				       x->len);
	uint8_t *slot = tdm_shm_ranges_room(pair, x, n), *body;
	struct tdm_shm_op *op;
	uint64_t id;

	if (!slot)
		return tdm_shm_tx_full(pair, x);
	op = tdm_shm_op_new(pair, x);
	if (!op)
		return no_op(pair->ep);
	tdm_shm_ranges_put(pair, x);
	id = tdm_shm_op_id(op);
	body = slot + TDM_SHM_HEAD_BYTES;
	memcpy(slot + 8, &id, 8);
	memcpy(body, &where, sizeof(where));
	body += sizeof(where);
	if (flags) {
		memcpy(body, &x->data, 8);
		body += 8;
	}
	if (x->count == 1)
		tdm_shm_copy(body, x->iov[0].iov_base, x->len);
	else
		tdm_iov_copy_from(body, x->iov, x->count, 0, x->len);
	tdm_shm_ring_publish(&pair->tx, n,
			     tdm_shm_word0(0, TDM_SHM_REC_WRITE, flags,
					   (uint16_t)x->len));
	tdm_shm_bell(pair);
	return 0;
}

static ssize_t send_rts_write(struct tdm_shm_pair *pair, struct tdm_xfer *x)
{
	uint8_t flags = x->flags & FI_REMOTE_CQ_DATA ? TDM_SHM_REC_DATA : 0;
	uint8_t *slot = tdm_shm_ranges_room(pair, x, 1);
	struct tdm_shm_rts_write body;
	struct tdm_shm_op *op;

	if (!slot)
		return tdm_shm_tx_full(pair, x);
	op = tdm_shm_op_new(pair, x);
	if (!op)
		return no_op(pair->ep);
	if ((x->flags & FI_INJECT) && tdm_shm_op_own(op, x)) {
		tdm_shm_op_free(pair->ep, op);
		return -FI_EAGAIN;
	}
	tdm_shm_ranges_put(pair, x);
	tdm_shm_op_slow(op);
	tdm_shm_rts_fill(&body.rts, op, x);
	body.where.key = x->rma_key;
	body.where.addr = x->rma_addr;
	memset(slot + 8, 0, 8);
	memcpy(slot + TDM_SHM_HEAD_BYTES, &body, sizeof(body));
	tdm_shm_ring_publish(&pair->tx, 1,
			     tdm_shm_word0(0, TDM_SHM_REC_RTS_WRITE, flags, 0));
	tdm_shm_bell(pair);
	return 0;
}

static ssize_t send_read(struct tdm_shm_pair *pair, const struct tdm_xfer *x)
{
	struct tdm_shm_read body = {
		.where = { .key = x->rma_key, .addr = x->rma_addr },
		.len = x->len,
	};
	uint8_t *slot = tdm_shm_ranges_room(pair, x, 1);
	struct tdm_shm_op *op;
	uint64_t id;

	if (!slot)
		return tdm_shm_tx_full(pair, x);
	op = tdm_shm_op_new(pair, x);
	if (!op)
		return no_op(pair->ep);
	tdm_shm_ranges_put(pair, x);
	if (x->len > TDM_SAMPLE_BYTES)
		tdm_shm_op_slow(op);
	op->len = x->len;
	op->count = (uint32_t)x->count;
	memcpy(op->iov, x->iov, x->count * sizeof(*x->iov));
	id = tdm_shm_op_id(op);
	memcpy(slot + 8, &id, 8);
	memcpy(slot + TDM_SHM_HEAD_BYTES, &body, sizeof(body));
	tdm_shm_ring_publish(&pair->tx, 1,
			     tdm_shm_word0(0, TDM_SHM_REC_READ, 0, 0));
	tdm_shm_bell(pair);
	return 0;
}

ssize_t tdm_shm_rma_send(struct tdm_shm_ep *ep, struct tdm_xfer *x)
{
	struct tdm_shm_pair *pair = tdm_shm_pair_at(ep, x->addr);

	if (!pair || pair->state != TDM_SHM_PAIR_UP || pair->broken)
		return tdm_shm_tx_slow(ep, pair, x);
	if (x->len > SIZE_MAX / 2 ||
	    ((x->flags & FI_INJECT) && x->len > TDM_INJECT_MOST_BYTES))
		return -FI_EMSGSIZE;
	if (tdm_unlikely((x->flags & TDM_RANGES) && !pair->peer_ranges))
		return -FI_EOPNOTSUPP;
	if (tdm_unlikely((x->flags & FI_FENCE) && tdm_shm_tx_fenced(pair)))
		return -FI_EAGAIN;
	if (tdm_unlikely(tdm_shm_op_held(pair, x->flags)))
		return -FI_EAGAIN;
	tdm_shm_tx_grow(pair, x->flags & FI_READ ? 0 : x->len);
	if (x->flags & FI_ATOMIC)
		return tdm_shm_amo_send(pair, x);
	if (x->flags & FI_READ)
		return send_read(pair, x);
	if (x->len > write_most(pair))
		return send_rts_write(pair, x);
	return send_write(pair, x);
}

static int status_errno(unsigned status)
{
	static const int errors[] = {
		[TDM_SHM_STATUS_OK] = 0,
		[TDM_SHM_STATUS_FAULT] = FI_EFAULT,
		[TDM_SHM_STATUS_ACCESS] = FI_EACCES,
		[TDM_SHM_STATUS_OPERATION] = FI_EOPNOTSUPP,
	};

	return errors[status];
}

void tdm_shm_read_pulled(struct tdm_shm_op *op, int err, int alone)
{
	op->step = TDM_SHM_READ_CONFIRM;
	op->err = err;
	if (alone)
		tdm_shm_op_end(op, err);
}

/* The read @id of ours, if it waits for its first answer and has @len bytes. */
static struct tdm_shm_op *asked(struct tdm_shm_pair *pair, uint64_t id,
				uint64_t len)
{
	struct tdm_shm_op *op = tdm_shm_op_find(pair, id);

	if (!op || !(op->flags & FI_READ) || op->step != TDM_SHM_READ_ASKED ||
	    op->len != len)
		return NULL;
	return op;
}

static int rx_read_data(struct tdm_shm_pair *pair,
			const struct tdm_shm_rec *rec, const uint8_t *slot)
{
	struct tdm_shm_op *op;
	uint64_t id;

	memcpy(&id, slot + 8, 8);
	op = asked(pair, id, rec->aux);
	if (!op)
		return -FI_EPROTO;
	tdm_iov_copy_to(op->iov, op->count, 0, slot + TDM_SHM_HEAD_BYTES,
			rec->aux);
	tdm_shm_op_end(op, 0);
	return 0;
}

static struct tdm_shm_pull *pull_alloc(struct tdm_shm_pair *pair,
				       const uint8_t *rts)
{
	struct tdm_shm_pull *pull = tdm_pool_alloc(&pair->ep->pulls);

	if (!pull)
		return NULL;
	memset(pull, 0, sizeof(*pull));
	tdm_list_init(&pull->ctl.node);
	tdm_list_init(&pull->node);
	pull->pair = pair;
	memcpy(&pull->rts, rts, sizeof(pull->rts));
	return pull;
}

static int rx_rts_read(struct tdm_shm_pair *pair, const uint8_t *slot)
{
	struct tdm_shm_pull *pull = pull_alloc(pair, slot + TDM_SHM_HEAD_BYTES);
	uint64_t id;

	if (!pull)
		return -FI_EAGAIN;
	memcpy(&id, slot + 8, 8);
	if (!tdm_shm_rts_check(&pull->rts))
		pull->op = asked(pair, id, pull->rts.len);
	if (!pull->op) {
		tdm_pool_free(&pair->ep->pulls, pull);
		return -FI_EPROTO;
	}
	pull->op->step = TDM_SHM_READ_PULLING;
	tdm_shm_pull_start(pull);
	return 0;
}

/* ---- target: writes ------------------------------------------------------ */

/* Errors: -FI_EAGAIN: try again later; any other: refused. */
static int region(const struct tdm_shm_pair *pair,
		  const struct tdm_rma_request *req,
		  struct fi_peer_rx_entry **entry)
{
	struct tdm_shm_ep *ep = pair->ep;
	int ret;

	if (!pair->srx)
		return -FI_EAGAIN;
	if (!ep->rma)
		return -FI_EACCES;
	ret = ep->rma->get(ep->domain->owner, pair->srx, req, entry);
	return ret == -FI_ENOMEM ? -FI_EAGAIN : ret;
}

static void send_ack(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl,
		     uint64_t id, unsigned status)
{
	ctl->op = TDM_SHM_REC_ACK;
	ctl->aux = (uint16_t)status;
	ctl->tag = id;
	tdm_list_init(&ctl->node);
	tdm_shm_ctl_send(pair, ctl);
}

static void place(struct tdm_shm_pair *pair, struct fi_peer_rx_entry *entry,
		  const uint8_t *payload, size_t len)
{
	struct tdm_shm_ep *ep = pair->ep;

	if (tdm_likely(entry->count == 1 && len <= 8))
		tdm_shm_copy(entry->iov[0].iov_base, payload, len);
	else
		tdm_place(entry->iov, entry->count, 0, payload, len);
	pair->rx_msgs++;
	pair->rx_bytes += len;
	tdm_done_recv(&ep->done, entry, len);
	ep->srx->owner_ops->free_entry(entry);
}

static void request_fill(struct tdm_rma_request *req,
			 const struct tdm_shm_pair *pair,
			 const struct tdm_shm_where *where, uint64_t access)
{
	memset(req, 0, sizeof(*req));
	req->key = where->key;
	req->addr = where->addr;
	req->access = access;
	req->src = pair->owner_addr;
	req->more = pair->more;
	req->more_count = pair->more_count;
}

static int rx_write(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		    const uint8_t *slot)
{
	const uint8_t *body = slot + TDM_SHM_HEAD_BYTES;
	struct tdm_shm_ctl *ctl = tdm_pool_alloc(&pair->ep->ctls);
	struct fi_peer_rx_entry *entry;
	struct tdm_rma_request req;
	struct tdm_shm_where where;
	uint64_t id;
	int ret;

	if (!ctl)
		return -FI_EAGAIN;
	ctl->kind = TDM_SHM_CTL_ALONE;
	memcpy(&id, slot + 8, 8);
	memcpy(&where, body, sizeof(where));
	request_fill(&req, pair, &where, FI_REMOTE_WRITE);
	req.len = rec->aux;
	if (rec->flags & TDM_SHM_REC_DATA) {
		req.flags = FI_REMOTE_CQ_DATA;
		memcpy(&req.data, body + sizeof(where), 8);
	}
	ret = region(pair, &req, &entry);
	if (ret == -FI_EAGAIN) {
		tdm_pool_free(&pair->ep->ctls, ctl);
		return ret;
	}
	if (!ret)
		place(pair, entry, body + rec->extra, rec->aux);
	send_ack(pair, ctl, id,
		 ret ? TDM_SHM_STATUS_ACCESS : TDM_SHM_STATUS_OK);
	return 0;
}

static int rx_rts_write(struct tdm_shm_pair *pair,
			const struct tdm_shm_rec *rec, const uint8_t *slot)
{
	const uint8_t *body = slot + TDM_SHM_HEAD_BYTES;
	struct tdm_shm_pull *pull = pull_alloc(pair, body);
	struct tdm_rma_request req;
	struct tdm_shm_where where;
	int ret = -FI_EPROTO;

	if (!pull)
		return -FI_EAGAIN;
	if (tdm_shm_rts_check(&pull->rts))
		goto drop;
	memcpy(&where, body + offsetof(struct tdm_shm_rts_write, where),
	       sizeof(where));
	request_fill(&req, pair, &where, FI_REMOTE_WRITE);
	req.len = pull->rts.len;
	if (rec->flags & TDM_SHM_REC_DATA) {
		req.flags = FI_REMOTE_CQ_DATA;
		req.data = pull->rts.data;
	}
	ret = region(pair, &req, &pull->entry);
	if (ret == -FI_EAGAIN)
		goto drop;
	if (!ret) {
		tdm_shm_pull_start(pull);
		return 0;
	}
	pull->ctl.kind = TDM_SHM_CTL_PULL;
	send_ack(pair, &pull->ctl, pull->rts.id, TDM_SHM_STATUS_ACCESS);
	return 0;
drop:
	tdm_pool_free(&pair->ep->pulls, pull);
	return ret;
}

/* ---- target: reads ------------------------------------------------------- */

struct tdm_shm_op *tdm_shm_serve_find(struct tdm_shm_pair *pair, uint64_t id)
{
	struct tdm_list *pos;

	/* They end about in order: it is usually the first. */
	tdm_list_for_each(pos, &pair->serves) {
		struct tdm_shm_op *op =
			tdm_list_entry(pos, struct tdm_shm_op, node);

		if (op->gen == id >> 32 && (uint32_t)id == TDM_SHM_ID_SERVED)
			return op;
	}
	return NULL;
}

/* Remove @s from the pair and give the region's entry back. */
static void serve_settle(struct tdm_shm_serve *s)
{
	struct tdm_shm_pair *pair = s->op.pair;

	tdm_list_del(&s->op.node);
	tdm_list_del(&s->op.feed);
	tdm_list_del(&s->ctl.node);
	pair->nserves--;
	if (s->entry && pair->ep->srx)
		pair->ep->srx->owner_ops->free_entry(s->entry);
}

void tdm_shm_serve_drop(struct tdm_shm_op *op)
{
	struct tdm_shm_serve *s = tdm_shm_serve_of(op);

	serve_settle(s);
	tdm_pool_free(&op->pair->ep->serves, s);
}

/* Send the final ACK of @s. */
static void serve_end(struct tdm_shm_serve *s, unsigned status)
{
	struct tdm_shm_pair *pair = s->op.pair;

	if (status == TDM_SHM_STATUS_OK) {
		pair->tx_msgs++;
		pair->tx_bytes += s->op.len;
		tdm_done_recv(&pair->ep->done, s->entry, s->op.len);
	}
	serve_settle(s);
	s->ctl.kind = TDM_SHM_CTL_SERVE;
	send_ack(pair, &s->ctl, s->peer_id, status);
}

int tdm_shm_rma_ack(struct tdm_shm_op *op, unsigned status)
{
	int err = status_errno(status);

	if (op->flags & FI_REMOTE_READ) {
		struct tdm_shm_serve *s = tdm_shm_serve_of(op);

		serve_end(s, tdm_shm_revoked(op->pair->ep, s->entry) ?
				     TDM_SHM_STATUS_ACCESS :
				     status);
		return 0;
	}
	if (op->flags & FI_READ) {
		if (op->step == TDM_SHM_READ_PULLING ||
		    (op->step == TDM_SHM_READ_ASKED && !err))
			return -1;
		if (op->step == TDM_SHM_READ_CONFIRM && !err)
			err = op->err;
	}
	tdm_shm_op_end(op, err);
	return 0;
}

void tdm_shm_serve_write(const struct tdm_shm_ctl *ctl, uint8_t *body)
{
	const struct tdm_shm_serve *s =
		tdm_container_of(ctl, struct tdm_shm_serve, ctl);
	struct tdm_shm_rts rts;

	tdm_shm_rts_of(&rts, &s->op);
	memcpy(body, &rts, sizeof(rts));
}

static struct tdm_shm_serve *serve_alloc(struct tdm_shm_pair *pair)
{
	struct tdm_shm_serve *s = tdm_pool_alloc(&pair->ep->serves);

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	tdm_list_init(&s->ctl.node);
	tdm_list_init(&s->op.feed);
	tdm_list_init(&s->op.node);
	tdm_list_append(&pair->serves, &s->op.node);
	pair->nserves++;
	s->op.pair = pair;
	s->op.flags = FI_RMA | FI_REMOTE_READ;
	s->op.gen = pair->next_serve++;
	return s;
}

/* Answer with the bytes. Returns 1, or 0: not possible now. */
static int serve_eager(struct tdm_shm_serve *s)
{
	struct tdm_shm_pair *pair = s->op.pair;
	size_t len = s->op.len;
	uint32_t n;
	uint8_t *slot;

	tdm_shm_tx_grow(pair, len);
	if (len > pair->eager_most || !tdm_list_empty(&pair->ctl))
		return 0;
	n = tdm_shm_rec_slots(len);
	slot = tdm_shm_tx_room(pair, n, TDM_SHM_TX_SPARE);
	if (!slot)
		return 0;
	memcpy(slot + 8, &s->peer_id, 8);
	tdm_iov_copy_from(slot + TDM_SHM_HEAD_BYTES, tdm_shm_op_iov(&s->op),
			  s->op.count, 0, len);
	tdm_shm_ring_publish(&pair->tx, n,
			     tdm_shm_word0(0, TDM_SHM_REC_READ_DATA, 0,
					   (uint16_t)len));
	tdm_shm_bell(pair);
	pair->tx_msgs++;
	pair->tx_bytes += len;
	tdm_done_recv(&pair->ep->done, s->entry, len);
	tdm_shm_serve_drop(&s->op);
	return 1;
}

/*
 * A short answer finds no room: copy the bytes, since later operations must not
 * change them. Returns 0, or -FI_EAGAIN: the record stays.
 */
static int serve_sample(struct tdm_shm_serve *s)
{
	struct tdm_shm_pair *pair = s->op.pair;
	struct tdm_shm_ctl *ctl;
	size_t len = s->op.len;
	uint8_t *bytes;

	ctl = tdm_shm_result_new(pair, len, &bytes);
	if (!ctl) {
		tdm_shm_serve_drop(&s->op);
		return -FI_EAGAIN;
	}
	tdm_iov_copy_from(bytes, tdm_shm_op_iov(&s->op), s->op.count, 0, len);
	ctl->op = TDM_SHM_REC_READ_DATA;
	ctl->aux = (uint16_t)len;
	ctl->tag = s->peer_id;
	pair->tx_msgs++;
	pair->tx_bytes += len;
	tdm_done_recv(&pair->ep->done, s->entry, len);
	tdm_shm_serve_drop(&s->op);
	tdm_shm_ctl_send(pair, ctl);
	return 0;
}

static int rx_read(struct tdm_shm_pair *pair, const uint8_t *slot)
{
	struct fi_peer_rx_entry *entry;
	struct tdm_rma_request req;
	struct tdm_shm_read body;
	struct tdm_shm_serve *s;
	int ret;

	memcpy(&body, slot + TDM_SHM_HEAD_BYTES, sizeof(body));
	if (tdm_shm_read_check(&body) || pair->nserves >= TDM_SHM_SERVES_MOST)
		return -FI_EPROTO;
	s = serve_alloc(pair);
	if (!s)
		return -FI_EAGAIN;
	memcpy(&s->peer_id, slot + 8, 8);
	request_fill(&req, pair, &body.where, FI_REMOTE_READ);
	req.len = body.len;
	ret = region(pair, &req, &entry);
	if (ret == -FI_EAGAIN) {
		tdm_shm_serve_drop(&s->op);
		return ret;
	}
	if (ret) {
		serve_end(s, TDM_SHM_STATUS_ACCESS);
		return 0;
	}
	s->entry = entry;
	s->op.len = body.len;
	s->op.count = (uint32_t)entry->count;
	if (entry->count <= TDM_IOV_LIMIT)
		memcpy(s->op.iov, entry->iov,
		       entry->count * sizeof(*entry->iov));
	if (serve_eager(s))
		return 0;
	if (body.len <= TDM_SAMPLE_BYTES)
		return serve_sample(s);
	s->ctl.op = TDM_SHM_REC_RTS_READ;
	s->ctl.kind = TDM_SHM_CTL_KEEP;
	s->ctl.tag = s->peer_id;
	tdm_shm_ctl_send(pair, &s->ctl);
	return 0;
}

int tdm_shm_rma_rx(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		   const uint8_t *slot)
{
	switch (rec->op) {
	case TDM_SHM_REC_WRITE:
		return rx_write(pair, rec, slot);
	case TDM_SHM_REC_RTS_WRITE:
		return rx_rts_write(pair, rec, slot);
	case TDM_SHM_REC_READ:
		return rx_read(pair, slot);
	case TDM_SHM_REC_ATOMIC:
		return tdm_shm_amo_rx(pair, rec, slot);
	case TDM_SHM_REC_READ_DATA:
		return rx_read_data(pair, rec, slot);
	default:
		return rx_rts_read(pair, slot);
	}
}
