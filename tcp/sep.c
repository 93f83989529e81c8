/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_scalable_ep(3): the scalable endpoint itself, the *whole* of its contexts.
 * It is bound to the AV and perhaps to an EQ, and has the name; operations are
 * posted to its contexts. The transports start when it or its first context is
 * enabled.
 *
 * Lock: the domain's, taken in the calls of the ops tables.
 */
#include "tcp/sep.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tcp/attr.h"
#include "tcp/bind.h"
#include "tcp/context.h"
#include "tcp/ep_priv.h"
#include "tcp/getinfo.h"
#include "tcp/name.h"
#include "tcp/option.h"
#include "tcp/refuse.h"
#include "tcp/report.h"
#include "tdm_nosys.h"

tdm_static_assert((int)TDM_MAX_CONTEXTS <= (int)TDM_CTX_MOST,
		  "addresses can name every context");

/* ---- the receive sides of the contexts ----------------------------------- */

static struct fid_peer_srx *group_export(struct tdm_ep *ep,
					 enum tdm_transport t)
{
	return tdm_srx_group_export(tdm_sep_of(ep->root)->group, t);
}

static void group_rebound(struct tdm_ep *ep)
{
	const struct tdm_sep *sep = tdm_sep_of(ep->root);
	unsigned int i;

	for (i = 0; i < sep->nrx; i++) {
		struct tdm_ep *ctx = sep->rx[i] ? &sep->rx[i]->ep : NULL;

		if (ctx && ctx->enabled)
			ctx->rx_side->rebound(ctx);
	}
}

static void group_flush(struct tdm_ep *ep)
{
	tdm_srx_group_flush(tdm_sep_of(ep->root)->group);
}

static void group_forget(struct tdm_ep *ep, fi_addr_t addr)
{
	tdm_srx_group_forget(tdm_sep_of(ep->root)->group, addr);
}

static void group_set_min_multi_recv(struct tdm_ep *ep, size_t bytes)
{
	const struct tdm_sep *sep = tdm_sep_of(ep->root);
	unsigned int i;

	for (i = 0; i < sep->nrx; i++)
		tdm_srx_set_min_multi_recv(tdm_srx_group_srx(sep->group, i),
					   bytes);
}

/* Close what the contexts share, except the queue. */
static void group_close(struct tdm_ep *ep)
{
	struct tdm_sep *sep = tdm_sep_of(ep->root);

	tdm_srx_group_close(sep->group);
	tdm_pool_fini(&sep->sends);
	free(sep->tx);
	free(sep->rx);
}

static const struct tdm_rx_side_ops rx_group = {
	.export_to = group_export,
	.enable = tdm_rx_side_no_enable, /* contexts are enabled one by one */
	.joined = tdm_rx_side_no_joined,
	.rebound = group_rebound,
	.flush = group_flush,
	.cancel = tdm_rx_side_no_cancel,
	.left = tdm_rx_side_no_left,
	.forget = group_forget,
	.set_min_multi_recv = group_set_min_multi_recv,
	.close = group_close,
};

/* -------------------------------------------------------------------------- */

static int sep_control(struct fid *fid, int command, void *arg)
{
	struct tdm_ep *ep = tdm_ep_of(fid);
	int ret = -FI_ENOSYS;

	(void)arg;
	tdm_lock_acquire(&ep->domain->lock);
	if (command == FI_ENABLE)
		ret = tdm_sep_enable(ep->root);
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

static int sep_close(struct fid *fid)
{
	struct tdm_ep *ep = tdm_ep_of(fid);
	struct tdm_domain *d = ep->domain;
	struct fid_cq *cq = tdm_sep_of(ep->root)->cq;
	struct tdm_eq *eq;

	tdm_lock_acquire(&d->lock);
	if (ep->users || d->engine.orphan) {
		tdm_lock_release(&d->lock);
		return d->engine.orphan ? -FI_EOPBADSTATE : -FI_EBUSY;
	}
	tdm_root_quit(ep->root);
	eq = ep->root->eq;
	tdm_root_free(ep->root);
	tdm_lock_release(&d->lock);
	tdm_ep_closed(d, eq);
	/* The queue takes the lock itself. */
	fi_close(&cq->fid);
	return 0;
}

int tdm_sep_enable(struct tdm_root *root)
{
	return root->ep.enabled ? 0 : tdm_root_enable(root);
}

static struct fi_ops sep_fid_ops = {
	.size = sizeof(sep_fid_ops),
	.close = sep_close,
	.bind = tdm_ep_bind,
	.control = sep_control,
	.ops_open = tdm_report_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_ep sep_ops = {
	.size = sizeof(sep_ops),
	.cancel = tdm_no_ep_cancel,
	.getopt = tdm_ep_getopt,
	.setopt = tdm_ep_setopt,
	.tx_ctx = tdm_tx_ctx_open,
	.rx_ctx = tdm_rx_ctx_open,
	.rx_size_left = tdm_no_ep_size_left,
	.tx_size_left = tdm_no_ep_size_left,
};

/*
 * Open a queue of our own: its entries are passed on to the queues of the
 * contexts.
 */
static int open_cq(struct tdm_sep *sep)
{
	struct fid_domain *d = &sep->root.ep.domain->fid;
	struct tdm_cq *cq;
	struct fi_cq_attr attr = { .size = 1,
				   .format = FI_CQ_FORMAT_CONTEXT,
				   .wait_obj = FI_WAIT_NONE };
	struct fid_peer_cq *peer;
	int ret, t;

	ret = fi_cq_open(d, &attr, &sep->cq, NULL);
	if (ret)
		return ret;
	cq = tdm_cq_from_fid(sep->cq);
	sep->root.ep.tx_cq = cq;
	for (t = 0; t < TDM_TRANSPORTS; t++) {
		peer = tdm_cq_export(cq, (enum tdm_transport)t);
		peer->fid.context = sep;
		peer->owner_ops = &tdm_sep_cq_ops;
	}
	return 0;
}

static int open_parts(struct tdm_sep *sep)
{
	struct tdm_ep *ep = &sep->root.ep;
	const struct tdm_srx_attr attr = tdm_rx_side_attr(ep);
	const struct tdm_done none = { .refused = tdm_ep_refused(ep) };
	unsigned int i;
	int ret;

	tdm_pool_init(&sep->sends, sizeof(struct tdm_sep_op), 0);
	sep->ntx = (unsigned int)tdm_max(ep->info->ep_attr->tx_ctx_cnt, 1);
	sep->nrx = (unsigned int)tdm_max(ep->info->ep_attr->rx_ctx_cnt, 1);
	sep->tx = calloc(sep->ntx, sizeof(*sep->tx));
	sep->rx = calloc(sep->nrx, sizeof(*sep->rx));
	if (!sep->tx || !sep->rx)
		return -FI_ENOMEM;
	ret = tdm_srx_group_open(&attr, sep->nrx, &sep->group);
	if (ret)
		return ret;
	for (i = 0; i < sep->nrx; i++)
		tdm_srx_set_done(tdm_srx_group_srx(sep->group, i), &none);
	return open_cq(sep);
}

/* The contexts have the queues: each checks its own. */
static int no_queues(const struct tdm_ep *ep)
{
	(void)ep;
	return 0;
}

static void for_each(struct tdm_root *root,
		     void (*call)(struct tdm_ep *ep, void *arg), void *arg)
{
	const struct tdm_sep *sep = tdm_sep_of(root);
	unsigned int i;

	call(&root->ep, arg);
	for (i = 0; i < sep->ntx; i++) {
		if (sep->tx[i])
			call(&sep->tx[i]->ep, arg);
	}
	for (i = 0; i < sep->nrx; i++) {
		if (sep->rx[i])
			call(&sep->rx[i]->ep, arg);
	}
}

static const struct tdm_ep_kind scalable = {
	.bytes = sizeof(struct tdm_sep),
	.fclass = FI_CLASS_SEP,
	.fid_ops = &sep_fid_ops,
	.ep_ops = &sep_ops,
	.cm_ops = &tdm_ep_cm_ops,
	.has_transports = 1,
	.ctx_ops = &tdm_srx_group_ops,
	.check_bound = no_queues,
	.for_each = for_each,
};

static struct tdm_root *sep_alloc(struct tdm_domain *d, struct fi_info *info,
				  void *context)
{
	struct tdm_root *root = tdm_root_alloc(d, info, &scalable, context);

	if (!root)
		return NULL;
	root->ep.rx_side = &rx_group;
	/* Nothing is posted to the whole. */
	root->ep.special = TDM_LOOK_FLAGS;
	root->ep.exact = 0;
	return root;
}

int tdm_sep_open(struct fid_domain *fid, struct fi_info *info,
		 struct fid_ep **out, void *context)
{
	struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct tdm_root *root;
	struct fid_cq *cq;
	struct tdm_ep *ep;
	int ret;

	if (!info || !info->ep_attr || !info->tx_attr || !info->rx_attr)
		return -FI_EINVAL;
	ret = tdm_info_check(info);
	if (ret)
		return -FI_EINVAL;
	/* A scalable endpoint cannot have shared contexts. */
	if (info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT ||
	    info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT)
		return tdm_refuse_call(-FI_EINVAL, "fi_scalable_ep",
				       "shared contexts are for fi_endpoint");
	root = sep_alloc(d, info, context);
	if (!root)
		return -FI_ENOMEM;
	ep = &root->ep;
	ret = tdm_ep_own_name(root);
	if (!ret)
		ret = open_parts(tdm_sep_of(root));
	tdm_lock_acquire(&d->lock);
	if (ep->tx_cq)
		tdm_cq_get(ep->tx_cq);
	if (ret) {
		cq = tdm_sep_of(root)->cq;
		tdm_root_free(root);
		tdm_lock_release(&d->lock);
		if (cq)
			fi_close(&cq->fid);
		return ret;
	}
	/* The transports serve all contexts: each of those has its own size. */
	ep->info->tx_attr->size = SIZE_MAX;
	tdm_domain_get(d);
	tdm_lock_release(&d->lock);
	*out = &ep->own.fid;
	return 0;
}
