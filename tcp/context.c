/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transmit and receive contexts of a scalable endpoint: fi_tx_context(3) and
 * fi_rx_context(3).
 *
 * Invariants:
 *  1. Every send of a transmit context has a struct tdm_sep_op from the call
 *     that posts it until the transport ends it. The transports are always
 *     asked for a completion; op->flags tells whether the application wants
 *     one.
 *  2. fi_close of a context succeeds only when no transport uses the
 *     application's buffers any more, since the transports stay open.
 *  3. Messages for a receive context that is not open wait until it is opened.
 *
 * Lock: the domain's, taken in the calls of the ops tables of fids; held in
 * those of struct tdm_ep_kind and tdm_sep_cq_ops.
 */
#include "tcp/context.h"

#include <limits.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/os.h"
#include "tcp/attr.h"
#include "tcp/bind.h"
#include "tcp/deferred.h"
#include "tcp/ep_priv.h"
#include "tcp/getinfo.h"
#include "tcp/option.h"
#include "tcp/profile.h"
#include "tcp/refuse.h"
#include "tcp/route.h"
#include "tcp/sep.h"
#include "tdm_info.h"
#include "tdm_nosys.h"

enum {
	/* How long a close waits for operations under way. */
	CLOSE_NS = 1000000000,
	CLOSE_STEP_MS = 1,
};

static struct tdm_ctx *ctx_of(struct tdm_ep *ep)
{
	return tdm_container_of(ep, struct tdm_ctx, ep);
}

static struct tdm_tx_ctx *tx_of(struct tdm_ep *ep)
{
	return tdm_container_of(ep, struct tdm_tx_ctx, ctx.ep);
}

/* Returns the scalable endpoint of the context @ep. */
static struct tdm_sep *sep_of(const struct tdm_ep *ep)
{
	return tdm_sep_of(ep->root);
}

/* Free @op without a report. */
static void op_free(struct tdm_sep_op *op)
{
	if (op->ctx)
		op->ctx->used--;
	tdm_list_del(&op->node);
	tdm_pool_free(&op->sep->sends, op);
}

/* Send @x, posted to the context, through its scalable endpoint. */
static ssize_t tx_send(struct tdm_ep *ep, const struct tdm_xfer *x)
{
	struct tdm_tx_ctx *ctx = tx_of(ep);
	struct tdm_xfer y = *x;
	struct tdm_sep_op *op;
	ssize_t ret;

	/* Operations posted by a pass were counted when they were queued. */
	if (ctx->used >= ep->tx_size && !ep->domain->in_retry)
		return -FI_EAGAIN;
	op = tdm_pool_alloc(&sep_of(ep)->sends);
	if (!op)
		return -FI_ENOMEM;
	op->sep = sep_of(ep);
	op->ctx = ctx;
	op->context = x->context;
	op->flags = x->flags;
	tdm_list_init(&op->node);
	tdm_list_append(&ctx->sends, &op->node);
	ctx->used++;
	y.context = op;
	/*
	 * The transports get our context, which keeps the flags of the request.
	 */
	y.flags = (y.flags & ~TDM_DEFERRED) | FI_COMPLETION;
	/*
	 * The context has room for it, so it is queued if the transport has
	 * none.
	 */
	ret = tdm_route_keep(&ep->root->ep, &y);
	if (ret)
		op_free(op);
	return ret;
}

static ssize_t op_done(struct fid_peer_cq *cq, void *context, uint64_t flags,
		       size_t len, void *buf, uint64_t data, uint64_t tag,
		       fi_addr_t src)
{
	struct tdm_sep_op op = *(struct tdm_sep_op *)context;
	struct tdm_done done;

	op_free(context);
	if (!op.ctx)
		return 0;
	tdm_ep_done(&op.ctx->ctx.ep, TDM_TRANSPORT_TCP, &done);
	tdm_done_send(&done, op.context, op.flags);
	return 0;
}

static ssize_t op_failed(struct fid_peer_cq *cq,
			 const struct fi_cq_err_entry *e)
{
	struct tdm_sep_op op = *(struct tdm_sep_op *)e->op_context;
	struct tdm_done done;

	op_free(e->op_context);
	if (!op.ctx)
		return 0;
	tdm_ep_done(&op.ctx->ctx.ep, TDM_TRANSPORT_TCP, &done);
	tdm_done_send_err(&done, op.context, op.flags, e->src_addr,
			  tdm_result_of(tdm_failed(e->err, e->prov_errno, 0),
					e->err_data));
	return 0;
}

struct fi_ops_cq_owner tdm_sep_cq_ops = {
	.size = sizeof(tdm_sep_cq_ops),
	.write = op_done,
	.writeerr = op_failed,
};

/* ---- what both kinds share ----------------------------------------------- */

static int tx_busy(struct tdm_ep *ctx)
{
	return tx_of(ctx)->used != 0;
}

static int rx_busy(struct tdm_ep *ctx)
{
	return tdm_srx_filling(ctx->srx);
}

/* Wait until no operation is under way. Errors: -FI_EBUSY. Lock: held. */
static int drain(struct tdm_ep *ctx, int (*busy)(struct tdm_ep *ctx))
{
	struct tdm_engine *engine = &ctx->domain->engine;
	uint64_t end;

	if (!busy(ctx))
		return 0;
	end = tdm_os.now_ns() + CLOSE_NS;
	for (;;) {
		engine->progress(engine);
		if (!busy(ctx))
			return 0;
		if (tdm_os.now_ns() >= end)
			return -FI_EBUSY;
		tdm_os.poll(NULL, 0, CLOSE_STEP_MS);
	}
}

static void ctx_free(struct tdm_ep *ctx)
{
	ctx->root->ep.users--;
	tdm_ep_free(ctx);
}

/* Not 0 when @x is a send of the context @ctx, whose op is freed then. */
static int is_of(const struct tdm_xfer *x, const void *ctx)
{
	struct tdm_sep_op *op = x->context;

	if (op->ctx != ctx)
		return 0;
	op_free(op);
	return 1;
}

/*
 * Let the injects of @ctx stay under way at the scalable endpoint: they need no
 * buffer of the application, and no report once @ctx is closed.
 */
static void leave_injects(struct tdm_tx_ctx *ctx)
{
	struct tdm_list *pos, *next;

	tdm_list_for_each_safe(pos, next, &ctx->sends) {
		struct tdm_sep_op *op =
			tdm_list_entry(pos, struct tdm_sep_op, node);

		if (!(op->flags & FI_INJECT))
			continue;
		ctx->used--;
		tdm_list_del(&op->node);
		op->ctx = NULL;
	}
}

static int tx_close(struct fid *fid)
{
	struct tdm_ep *ctx = tdm_ep_of(fid);
	struct tdm_domain *d = ctx->domain;
	int ret;

	tdm_lock_acquire(&d->lock);
	if (d->engine.orphan) {
		tdm_lock_release(&d->lock);
		return -FI_EOPBADSTATE;
	}
	if (!ctx->users)
		leave_injects(tx_of(ctx));
	ret = ctx->users ? -FI_EBUSY : drain(ctx, tx_busy);
	/* Discard the operations that no transport has taken up. */
	if (ret && !ctx->users) {
		tdm_backlog_drop(ctx->root, is_of, tx_of(ctx));
		ret = tx_busy(ctx) ? -FI_EBUSY : 0;
	}
	if (!ret) {
		sep_of(ctx)->tx[ctx_of(ctx)->index] = NULL;
		ctx_free(ctx);
	}
	tdm_lock_release(&d->lock);
	return ret;
}

static int rx_close(struct fid *fid)
{
	struct tdm_ep *ctx = tdm_ep_of(fid);
	const struct tdm_done none = { .refused = tdm_ep_refused(ctx) };
	struct tdm_domain *d = ctx->domain;
	int ret = d->engine.orphan ? -FI_EOPBADSTATE : -FI_EBUSY;

	tdm_lock_acquire(&d->lock);
	if (!ctx->users && !d->engine.orphan) {
		tdm_deferred_quit(ctx);
		tdm_srx_unpost(ctx->srx);
		ret = drain(ctx, rx_busy);
	}
	if (!ret) {
		tdm_srx_set_done(ctx->srx, &none);
		sep_of(ctx)->rx[ctx_of(ctx)->index] = NULL;
		ctx_free(ctx);
	}
	tdm_lock_release(&d->lock);
	return ret;
}

/*
 * Returns 0 when a context has what it needs to report its operations, else
 * -FI_ENOCQ.
 */
static int check_bound(int reports)
{
	return reports ? 0 :
			 tdm_refuse_call(-FI_ENOCQ, "fi_enable",
					 "no queue or counter is bound to the "
					 "context");
}

static int tx_bound(const struct tdm_ep *ctx)
{
	return check_bound(ctx->tx_cq || ctx->send_cntr);
}

/* The check of a receive context: one without messages starts no operation. */
static int rx_bound(const struct tdm_ep *ctx)
{
	return check_bound(ctx->rx_cq || ctx->recv_cntr ||
			   !(ctx->info->caps & (FI_MSG | FI_TAGGED)));
}

static int enable(struct tdm_ep *ctx)
{
	int ret;

	if (ctx->enabled)
		return tdm_refuse_call(-FI_EOPBADSTATE, "fi_enable",
				       "the context is enabled");
	ret = ctx->kind->check_bound(ctx);
	if (!ret)
		ret = tdm_sep_enable(ctx->root);
	if (!ret)
		ret = ctx->rx_side->enable(ctx);
	if (ret)
		return ret;
	ctx->av = ctx->root->ep.av;
	tdm_ep_resolve_flags(ctx);
	ctx->enabled = tdm_ep_limited(ctx) ? TDM_EP_LIMITED : TDM_EP_ON;
	return 0;
}

static int ctx_control(struct fid *fid, int command, void *arg)
{
	struct tdm_ep *ctx = tdm_ep_of(fid);
	int ret;

	if (command != FI_ENABLE)
		return tdm_ep_control(fid, command, arg);
	tdm_lock_acquire(&ctx->domain->lock);
	ret = enable(ctx);
	tdm_lock_release(&ctx->domain->lock);
	return ret;
}

static struct tdm_sep_op *find_op(struct tdm_tx_ctx *ctx, const void *context)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &ctx->sends) {
		struct tdm_sep_op *op =
			tdm_list_entry(pos, struct tdm_sep_op, node);

		if (op->context == context)
			return op;
	}
	return NULL;
}

static ssize_t cancel_send(struct tdm_ep *ctx, void *context)
{
	struct tdm_sep_op *op = context ? find_op(tx_of(ctx), context) : NULL;
	ssize_t ret = -FI_ENOENT;

	if (op)
		ret = tdm_root_cancel_send(ctx->root, op);
	return ret;
}

static ssize_t tx_cancel(fid_t fid, void *context)
{
	return tdm_ep_cancel_by(tdm_ep_of(fid), context, cancel_send);
}

static ssize_t rx_cancel(fid_t fid, void *context)
{
	return tdm_ep_cancel_by(tdm_ep_of(fid), context, tdm_rx_part.cancel);
}

static ssize_t tx_size_left(struct fid_ep *fid)
{
	struct tdm_ep *ctx = tdm_ep_from_fid(fid);
	ssize_t ret;

	tdm_lock_acquire(&ctx->domain->lock);
	ret = (ssize_t)tdm_min(ctx->tx_size - tx_of(ctx)->used, SSIZE_MAX);
	tdm_lock_release(&ctx->domain->lock);
	return ret;
}

static struct fi_ops tx_fid_ops = {
	.size = sizeof(tx_fid_ops),
	.close = tx_close,
	.bind = tdm_ep_bind,
	.control = ctx_control,
	.ops_open = tdm_profile_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops rx_fid_ops = {
	.size = sizeof(rx_fid_ops),
	.close = rx_close,
	.bind = tdm_ep_bind,
	.control = ctx_control,
	.ops_open = tdm_profile_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_ep tx_ep_ops = {
	.size = sizeof(tx_ep_ops),
	.cancel = tx_cancel,
	.getopt = tdm_ep_getopt,
	.setopt = tdm_ep_setopt,
	.tx_ctx = tdm_no_ep_tx_ctx,
	.rx_ctx = tdm_no_ep_rx_ctx,
	.rx_size_left = tdm_no_ep_size_left,
	.tx_size_left = tx_size_left,
};

static struct fi_ops_ep rx_ep_ops = {
	.size = sizeof(rx_ep_ops),
	.cancel = rx_cancel,
	.getopt = tdm_ep_getopt,
	.setopt = tdm_ep_setopt,
	.tx_ctx = tdm_no_ep_tx_ctx,
	.rx_ctx = tdm_no_ep_rx_ctx,
	.rx_size_left = tdm_ep_rx_size_left,
	.tx_size_left = tdm_no_ep_size_left,
};

static const struct tdm_ep_kind tx_kind = {
	.bytes = sizeof(struct tdm_tx_ctx),
	.fclass = FI_CLASS_TX_CTX,
	.fid_ops = &tx_fid_ops,
	.ep_ops = &tx_ep_ops,
	.cm_ops = &tdm_ep_no_cm_ops,
	.queues = FI_TRANSMIT,
	.check_bound = tx_bound,
	.send = tx_send,
};

static const struct tdm_ep_kind rx_kind = {
	.bytes = sizeof(struct tdm_ctx),
	.fclass = FI_CLASS_RX_CTX,
	.fid_ops = &rx_fid_ops,
	.ep_ops = &rx_ep_ops,
	.cm_ops = &tdm_ep_no_cm_ops,
	.queues = FI_RECV,
	.check_bound = rx_bound,
};

/*
 * Context @index of @root; its limits are those of @root. Takes @info, which may
 * be NULL. NULL: out of memory.
 */
static struct tdm_ctx *ctx_alloc(struct tdm_root *root, struct fi_info *info,
				 const struct tdm_ep_kind *kind, int index,
				 void *context)
{
	struct tdm_ep *ep =
		info ? tdm_ep_alloc(root->ep.domain, info, kind, context) :
		       NULL;
	struct tdm_ctx *ctx;

	tdm_info_free(info);
	if (!ep)
		return NULL;
	ep->root = root;
	ep->limits = root->ep.limits;
	ctx = ctx_of(ep);
	ctx->index = (unsigned int)index;
	return ctx;
}

/* Put @ctx into *@place, or free it: -FI_EBUSY. Lock: taken inside. */
static int ctx_place(struct tdm_ctx *ctx, struct tdm_ctx **place)
{
	struct tdm_ep *whole = &ctx->ep.root->ep;
	int ret;

	tdm_lock_acquire(&whole->domain->lock);
	whole->users++;
	ret = *place ? -FI_EBUSY : 0;
	if (ret)
		ctx_free(&ctx->ep);
	else
		*place = ctx;
	tdm_lock_release(&whole->domain->lock);
	return ret;
}

/* Members that @attr leaves open are those of the whole. */
static void merge_tx(struct fi_tx_attr *a, const struct fi_tx_attr *attr)
{
	a->caps = attr->caps;
	a->op_flags = attr->op_flags;
	a->msg_order = attr->msg_order;
	a->size = attr->size ? attr->size : a->size;
	a->inject_size = attr->inject_size ? attr->inject_size : a->inject_size;
	a->iov_limit = attr->iov_limit ? attr->iov_limit : a->iov_limit;
	if (attr->rma_iov_limit)
		a->rma_iov_limit = attr->rma_iov_limit;
	a->tclass = attr->tclass;
}

void tdm_rx_attr_merge(struct fi_rx_attr *a, const struct fi_rx_attr *attr)
{
	a->caps = attr->caps;
	a->op_flags = attr->op_flags;
	a->msg_order = attr->msg_order;
	a->size = attr->size ? attr->size : a->size;
	a->iov_limit = attr->iov_limit ? attr->iov_limit : a->iov_limit;
}

static int check_index(int index, unsigned int count)
{
	return index < 0 || (unsigned int)index >= count ? -FI_EINVAL : 0;
}

int tdm_tx_ctx_open(struct fid_ep *fid, int index, struct fi_tx_attr *attr,
		    struct fid_ep **out, void *context)
{
	struct tdm_ep *whole = tdm_ep_from_fid(fid);
	struct tdm_sep *sep = tdm_sep_of(whole->root);
	struct tdm_ctx *ctx;
	struct fi_info *info;
	int ret = tdm_tx_attr_check(attr);

	if (!ret)
		ret = check_index(index, sep->ntx);
	/* The transports, which keep the order, are those of the whole. */
	if (!ret && attr && attr->msg_order & ~whole->info->tx_attr->msg_order)
		ret = -FI_EINVAL;
	if (ret)
		return ret;
	info = fi_dupinfo(whole->info);
	if (info) {
		info->tx_attr->size = whole->tx_size;
		if (attr)
			merge_tx(info->tx_attr, attr);
		info->caps = (tdm_caps_side(info->tx_attr->caps, TDM_TX_CAPS,
					    whole->info->caps) &
			      whole->info->caps) |
			     FI_SEND;
		info->tx_attr->caps = info->caps;
	}
	ctx = ctx_alloc(whole->root, info, &tx_kind, index, context);
	if (!ctx)
		return -FI_ENOMEM;
	tdm_list_init(&tx_of(&ctx->ep)->sends);
	ret = ctx_place(ctx, &sep->tx[index]);
	if (ret)
		return ret;
	if (attr)
		*attr = *ctx->ep.info->tx_attr;
	*out = &ctx->ep.own.fid;
	return 0;
}

int tdm_rx_ctx_open(struct fid_ep *fid, int index, struct fi_rx_attr *attr,
		    struct fid_ep **out, void *context)
{
	struct tdm_ep *whole = tdm_ep_from_fid(fid);
	struct tdm_sep *sep = tdm_sep_of(whole->root);
	struct tdm_ctx *ctx;
	struct fi_info *info;
	int ret = tdm_rx_attr_check(attr);

	if (!ret)
		ret = check_index(index, sep->nrx);
	if (ret)
		return ret;
	info = fi_dupinfo(whole->info);
	if (info) {
		if (attr)
			tdm_rx_attr_merge(info->rx_attr, attr);
		info->caps = (tdm_caps_side(info->rx_attr->caps, TDM_RX_CAPS,
					    whole->info->caps) &
			      whole->info->caps) |
			     FI_RECV;
		info->rx_attr->caps = info->caps;
	}
	ctx = ctx_alloc(whole->root, info, &rx_kind, index, context);
	if (!ctx)
		return -FI_ENOMEM;
	ctx->ep.srx = tdm_srx_group_srx(sep->group, ctx->index);
	ctx->ep.rx_side = &tdm_rx_part;
	ret = ctx_place(ctx, &sep->rx[index]);
	if (ret)
		return ret;
	if (attr)
		*attr = *ctx->ep.info->rx_attr;
	*out = &ctx->ep.own.fid;
	return 0;
}
