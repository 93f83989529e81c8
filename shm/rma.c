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
 *  2. Before each access to a region this code asks the owner whether it was
 *     closed. A pulled read succeeds only if the region was still open after
 *     the last byte was read: the second ACK tells.
 *  3. Each operation ends once: by the target's last record or with the
 *     session.
 *  4. A record is consumed as a whole or stays in the ring: steps that can fail
 *     for want of memory come first.
 *  5. The bytes of a write that belong in the last cache line of the target are
 *     stored last: here by tdm_place(), by cma.c if they are announced.
 * Locking: domain lock held. Spec: fi_rma(3), include/tdm_rma.h,
 * doc/PROTOCOL-shm.md "One-sided operations".
 */
#include "shm/rma.h"

#include <assert.h>

#include <rdma/fi_errno.h>

#include "shm/amo.h"
#include "shm/bell.h"
#include "shm/cma.h"
#include "shm/copy.h"
#include "shm/ctl.h"
#include "shm/grow.h"
#include "shm/progress.h"
#include "shm/serve.h"
#include "shm/tx.h"
#include "tdm_place.h"

enum {
	WHERE_BYTES = sizeof(struct tdm_shm_where),
};

/* ---- initiator ----------------------------------------------------------- */

/* Returns the greatest payload of a WRITE in the present ring. */
static size_t write_most(const struct tdm_shm_pair *pair)
{
	return tdm_shm_eager_room(pair->tx.count, pair->ep->eager_most + 8) - 8;
}

static ssize_t no_op(struct tdm_shm_ep *ep)
{
	(void)tdm_shm_ep_pass(ep);
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
	tdm_shm_put_iov(body, x->iov, x->count, 0, x->len,
			TDM_SHM_STRING_BYTES);
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
	    ((x->flags & FI_INJECT) && x->len > TDM_INJECT_BYTES))
		return -FI_EMSGSIZE;
	if (tdm_unlikely((x->flags & TDM_RANGES) && !pair->peer_ranges))
		return -FI_EOPNOTSUPP;
	if (tdm_unlikely((x->flags & FI_FENCE) && tdm_shm_tx_fenced(pair)))
		return -FI_EAGAIN;
	if (tdm_unlikely(tdm_shm_op_held(pair, x->flags)))
		return -FI_EAGAIN;
	tdm_shm_grow(pair, x->flags & FI_READ ? 0 : x->len);
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

/* Change the step of a read; each follows the one before it. */
static void read_step(struct tdm_shm_op *op, enum tdm_shm_read_step to)
{
	assert((int)to == op->step + 1);
	op->step = to;
}

void tdm_shm_read_pulled(struct tdm_shm_op *op, int err, int alone)
{
	read_step(op, TDM_SHM_READ_CONFIRM);
	op->err = err;
	if (alone)
		tdm_shm_op_end(op, err);
}

/*
 * Returns the read of this process with id @id if it waits for its first answer
 * and has @len bytes, else NULL.
 */
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
	tdm_shm_rts_get(&pull->rts, rts);
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
	read_step(pull->op, TDM_SHM_READ_PULLING);
	tdm_shm_pull_start(pull);
	return 0;
}

/* ---- target: writes ------------------------------------------------------ */

int tdm_shm_rma_region(const struct tdm_shm_pair *pair,
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

void tdm_shm_rma_answer(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl,
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

void tdm_shm_rma_request(struct tdm_rma_request *req,
			 const struct tdm_shm_pair *pair,
			 const struct tdm_shm_where *where, uint64_t access)
{
	memset(req, 0, sizeof(*req));
	req->key = where->key;
	req->addr = where->addr;
	req->access = access;
	req->src = pair->owner_addr;
	req->from = (const struct sockaddr *)(const void *)pair->addr.sa;
	req->auth = tdm_auth_find(pair->ep->keys, pair->addr.key);
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
	tdm_shm_rma_request(&req, pair, &where, FI_REMOTE_WRITE);
	req.len = rec->aux;
	if (rec->flags & TDM_SHM_REC_DATA) {
		req.flags = FI_REMOTE_CQ_DATA;
		memcpy(&req.data, body + sizeof(where), 8);
	}
	ret = tdm_shm_rma_region(pair, &req, &entry);
	if (ret == -FI_EAGAIN) {
		tdm_pool_free(&pair->ep->ctls, ctl);
		return ret;
	}
	if (!ret)
		place(pair, entry, body + rec->extra, rec->aux);
	tdm_shm_rma_answer(pair, ctl, id,
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
	tdm_shm_rma_request(&req, pair, &where, FI_REMOTE_WRITE);
	req.len = pull->rts.len;
	if (rec->flags & TDM_SHM_REC_DATA) {
		req.flags = FI_REMOTE_CQ_DATA;
		req.data = pull->rts.data;
	}
	ret = tdm_shm_rma_region(pair, &req, &pull->entry);
	if (ret == -FI_EAGAIN)
		goto drop;
	if (!ret) {
		tdm_shm_pull_start(pull);
		return 0;
	}
	pull->ctl.kind = TDM_SHM_CTL_PULL;
	tdm_shm_rma_answer(pair, &pull->ctl, pull->rts.id,
			   TDM_SHM_STATUS_ACCESS);
	return 0;
drop:
	tdm_pool_free(&pair->ep->pulls, pull);
	return ret;
}

int tdm_shm_rma_ack(struct tdm_shm_op *op, unsigned status)
{
	int err = status_errno(status);

	if (op->flags & FI_REMOTE_READ) {
		tdm_shm_serve_confirm(op, status);
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

int tdm_shm_rma_rx(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		   const uint8_t *slot)
{
	switch (rec->op) {
	case TDM_SHM_REC_WRITE:
		return rx_write(pair, rec, slot);
	case TDM_SHM_REC_RTS_WRITE:
		return rx_rts_write(pair, rec, slot);
	case TDM_SHM_REC_READ:
		return tdm_shm_serve_rx(pair, slot);
	case TDM_SHM_REC_ATOMIC:
		return tdm_shm_amo_rx(pair, rec, slot);
	case TDM_SHM_REC_READ_DATA:
		return rx_read_data(pair, rec, slot);
	default:
		return rx_rts_read(pair, slot);
	}
}
