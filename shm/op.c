/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that outlive their call: sends that were announced or want an
 * acknowledgement, and one-sided operations, until their completion.
 *
 * Cancelling an announced send: tdm_shm_op_cancel() sends a record FAIL with
 * aux 1. At the peer, rx_cancel() of rx.c drops the message if no receive has
 * matched it, and answers by an ACK with STATUS_ACCESS, which ends the send
 * with FI_ECANCELED (tdm_shm_op_ack()). If a receive has matched the message,
 * the peer ignores the FAIL; the send ends as if it had not been cancelled.
 *
 * Removing the peer's address: tdm_shm_op_forget() reports announced sends as
 * aborted. The peer may be reading their memory, or may read it later; so the
 * segment tells it first (recall()), and it asks for the bytes by PULL instead
 * of delivering what it read. The answer is FAIL (feed_none() of bounce.c).
 *
 * Invariant: an operation ends once. An id is unique: its upper half is the
 * generation of the slot in ep->op_slab, which changes at each reuse.
 *
 * Locking: domain lock held. Spec: fi_cq(3) completion levels, fi_cancel(3),
 * doc/PROTOCOL-shm.md "Records".
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/inject.h"
#include "fi_ext_tandem.h"
#include "shm/ctl.h"
#include "shm/ep.h"
#include "shm/progress.h"
#include "shm/rma.h"

/*
 * Returns how much memory is counted for an operation with a copy of @len
 * bytes.
 */
static size_t copy_bytes(size_t len)
{
	return sizeof(struct tdm_shm_op) + len;
}

static struct tdm_shm_op *op_at(const struct tdm_shm_ep *ep, uint32_t index)
{
	return &ep->op_slab[index / TDM_SHM_OP_SLAB][index % TDM_SHM_OP_SLAB];
}

/* Make room for more operations in ep->op_slab; existing ones do not move. */
static int op_grow(struct tdm_shm_ep *ep)
{
	size_t n = ep->op_slabs;
	struct tdm_shm_op **slabs = ep->op_slab, *slab;

	if (ep->op_used == TDM_SHM_ID_SERVED)
		return -FI_EAGAIN;
	if (!(n & (n - 1))) {
		slabs = realloc(slabs, 2 * tdm_max(n, 1) * sizeof(*slabs));
		if (!slabs)
			return -FI_ENOMEM;
		ep->op_slab = slabs;
	}
	slab = calloc(TDM_SHM_OP_SLAB, sizeof(*slab));
	if (!slab)
		return -FI_ENOMEM;
	slabs[ep->op_slabs++] = slab;
	return 0;
}

static struct tdm_shm_op *op_alloc(struct tdm_shm_ep *ep)
{
	struct tdm_list *node = tdm_list_pop(&ep->op_free);
	struct tdm_shm_op *op;

	if (node)
		return tdm_list_entry(node, struct tdm_shm_op, node);
	if (ep->op_used == ep->op_slabs * TDM_SHM_OP_SLAB && op_grow(ep))
		return NULL;
	op = op_at(ep, ep->op_used);
	op->index = ep->op_used++;
	return op;
}

void tdm_shm_op_fini(struct tdm_shm_ep *ep)
{
	size_t i;

	for (i = 0; i < ep->op_slabs; i++)
		free(ep->op_slab[i]);
	free(ep->op_slab);
}

uint64_t tdm_shm_op_id(const struct tdm_shm_op *op)
{
	uint32_t low = op->flags & FI_REMOTE_READ ? TDM_SHM_ID_SERVED :
						    op->index;

	return (uint64_t)op->gen << 32 | low;
}

int tdm_shm_op_own(struct tdm_shm_op *op, struct tdm_xfer *x)
{
	if (tdm_inject_take(copy_bytes(x->len)))
		return -FI_EAGAIN;
	op->copy = malloc(tdm_max(x->len, 1));
	if (!op->copy) {
		tdm_inject_give(copy_bytes(x->len));
		return -FI_ENOMEM;
	}
	tdm_iov_copy_from(op->copy, x->iov, x->count, 0, x->len);
	tdm_xfer_buf(x, op->copy, x->len);
	return 0;
}

static void slow_add(struct tdm_shm_op *op, int n)
{
	struct tdm_shm_pair *pair = op->pair;

	op->slow = n > 0;
	tdm_slow_add(&pair->slow, &pair->ep->order, op->flags, n);
	pair->send_waits = !!(pair->slow.held & FI_SEND);
}

void tdm_shm_op_slow(struct tdm_shm_op *op)
{
	slow_add(op, 1);
}

int tdm_shm_op_held(struct tdm_shm_pair *pair, uint64_t flags)
{
	if (tdm_likely(!tdm_slow_holds(&pair->slow, flags)))
		return 0;
	(void)tdm_shm_ep_pass(pair->ep);
	return 1;
}

void tdm_shm_op_free(struct tdm_shm_ep *ep, struct tdm_shm_op *op)
{
	tdm_list_del(&op->node);
	tdm_list_del(&op->feed);
	if (op->slow)
		slow_add(op, -1);
	op->pair->announced -= (uint32_t)op->announced;
	if (tdm_unlikely(op->copy != NULL))
		tdm_inject_give(copy_bytes(op->bytes));
	free(op->copy);
	if (op->flags & TDM_ONE_SIDED)
		ep->tx_used--;
	op->pair = NULL;
	op->gen++;
	tdm_list_push(&ep->op_free, &op->node);
}

struct tdm_shm_op *tdm_shm_op_find(struct tdm_shm_pair *pair, uint64_t id)
{
	struct tdm_shm_ep *ep = pair->ep;
	uint32_t index = (uint32_t)id;
	struct tdm_shm_op *op;

	if (index >= ep->op_used)
		return index == TDM_SHM_ID_SERVED ?
			       tdm_shm_serve_find(pair, id) :
			       NULL;
	op = op_at(ep, index);
	return op->pair == pair && op->gen == id >> 32 ? op : NULL;
}

fi_addr_t tdm_shm_op_peer(const struct tdm_shm_pair *pair)
{
	struct fid_peer_srx *srx = pair->ep->srx;
	const struct tdm_user_id_ops *ops =
		tdm_open_ops(&srx->ep_fid.fid, TDM_USER_ID_OPS);

	return ops ? ops->id(srx, pair->owner_addr) : pair->owner_addr;
}

void tdm_shm_op_end(struct tdm_shm_op *op, int err)
{
	struct tdm_shm_pair *pair = op->pair;
	struct tdm_shm_ep *ep = pair->ep;
	uint64_t flags = op->flags, bytes = op->bytes;
	void *context = op->context;
	int told = op->told;

	if (tdm_unlikely(flags & FI_REMOTE_READ)) {
		tdm_shm_serve_drop(op);
		return;
	}
	tdm_shm_op_free(ep, op);
	if (tdm_unlikely(told))
		return;
	if (err) {
		tdm_done_send_err(
			&ep->done, context, flags, tdm_shm_op_peer(pair),
			tdm_result_of(tdm_failed(err, err, 0), pair->addr.sa));
		return;
	}
	if (tdm_unlikely(flags & FI_READ)) {
		pair->rx_msgs++;
		pair->rx_bytes += bytes;
	} else {
		pair->tx_msgs++;
		pair->tx_bytes += bytes;
	}
	tdm_done_send(&ep->done, context, flags);
}

/*
 * Called before announced messages of @pair are reported as aborted: a receiver
 * that has read their memory, and finds this, does not deliver the bytes.
 */
static void recall(struct tdm_shm_pair *pair)
{
	tdm_a64_store_release(&pair->own->recalled, pair->rts_sent);
	/* The application's stores to that memory come later. */
	tdm_fence_full();
}

void tdm_shm_op_forget(struct tdm_shm_pair *pair)
{
	struct tdm_list *pos;
	int recalled = 0;

	tdm_list_for_each(pos, &pair->pending) {
		struct tdm_shm_op *op =
			tdm_list_entry(pos, struct tdm_shm_op, node);

		if (op->told || op->end || (op->flags & TDM_ONE_SIDED) ||
		    pair->self)
			continue;
		if (!recalled++)
			recall(pair);
		op->told = 1;
		tdm_done_send_err(
			&pair->ep->done, op->context, op->flags,
			pair->owner_addr,
			tdm_result_of(tdm_failed(FI_ECONNABORTED, 0, 0),
				      pair->addr.sa));
	}
}

/*
 * Returns an announced send with @context whose bytes the peer has not asked
 * for, or NULL.
 */
static struct tdm_shm_op *cancellable(const struct tdm_shm_ep *ep,
				      const void *context)
{
	uint32_t n = ep->op_used, i;

	/* Search from both ends: sends are cancelled in either order. */
	for (i = 0; i < n; i++) {
		struct tdm_shm_op *op =
			op_at(ep, i % 2 ? n - 1 - i / 2 : i / 2);

		if (op->pair && op->context == context && op->count &&
		    !op->end && !op->told && !op->cancelled &&
		    !(op->flags & TDM_ONE_SIDED))
			return op;
	}
	return NULL;
}

int tdm_shm_op_cancel(struct tdm_shm_ep *ep, const void *context)
{
	struct tdm_shm_op *op = cancellable(ep, context);
	struct tdm_shm_ctl *ctl;

	if (!op)
		return -FI_ENOENT;
	ctl = tdm_pool_alloc(&ep->ctls);
	if (!ctl)
		return -FI_EAGAIN;
	ctl->op = TDM_SHM_REC_FAIL;
	ctl->kind = TDM_SHM_CTL_ALONE;
	ctl->aux = 1;
	ctl->tag = tdm_shm_op_id(op);
	tdm_list_init(&ctl->node);
	op->cancelled = 1;
	tdm_shm_ctl_send(op->pair, ctl);
	return 0;
}

int tdm_shm_op_ack(struct tdm_shm_pair *pair, uint64_t id, unsigned status)
{
	struct tdm_shm_op *op = tdm_shm_op_find(pair, id);

	if (!op)
		return -1;
	if (op->len && status == TDM_SHM_STATUS_OK && !(op->flags & FI_READ))
		pair->large_tx = op->must ? TDM_REPORT_LARGE_BOUNCE :
					    TDM_REPORT_LARGE_CMA;
	if (tdm_unlikely(op->flags & TDM_ONE_SIDED))
		return tdm_shm_rma_ack(op, status);
	if (tdm_unlikely(status >= TDM_SHM_STATUS_ACCESS)) {
		if (!op->cancelled || status != TDM_SHM_STATUS_ACCESS)
			return -1;
		tdm_shm_op_end(op, FI_ECANCELED);
		return 0;
	}
	tdm_shm_op_end(op, status == TDM_SHM_STATUS_OK ? 0 : FI_EFAULT);
	return 0;
}

static void op_fill(struct tdm_shm_op *op, struct tdm_shm_pair *pair,
		    const struct tdm_xfer *x)
{
	op->pair = pair;
	op->context = x->context;
	op->flags = x->flags;
	op->copy = NULL;
	op->told = 0;
	op->announced = 0;
	op->cancelled = 0;
	op->len = 0;
	op->bytes = x->len;
	op->count = 0;
	op->at = 0;
	op->end = 0;
	op->must = 0;
	op->slow = 0;
	op->step = TDM_SHM_READ_ASKED;
	op->err = 0;
	tdm_list_init(&op->feed);
	tdm_list_init(&op->node);
	tdm_list_append(&pair->pending, &op->node);
}

struct tdm_shm_op *tdm_shm_op_new(struct tdm_shm_pair *pair,
				  const struct tdm_xfer *x)
{
	struct tdm_shm_ep *ep = pair->ep;
	int counts = !!(x->flags & TDM_ONE_SIDED);
	struct tdm_shm_op *op;

	if (counts && ep->tx_used >= ep->tx_size)
		return NULL;
	op = op_alloc(ep);
	if (!op)
		return NULL;
	op_fill(op, pair, x);
	ep->tx_used += (size_t)counts;
	return op;
}
