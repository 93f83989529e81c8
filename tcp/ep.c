/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint from open to close, fi_endpoint(3).
 *
 * Lock: the domain's, taken here.
 */
#include "tcp/ep.h"

#include <limits.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "tcp/alias.h"
#include "tcp/attr.h"
#include "tcp/bind.h"
#include "tcp/coll.h"
#include "tcp/deferred.h"
#include "tcp/ep_priv.h"
#include "tcp/getinfo.h"
#include "tcp/name.h"
#include "tcp/option.h"
#include "tcp/refuse.h"
#include "tcp/report.h"
#include "tcp/srx_ctx.h"
#include "tcp/stx.h"
#include "tdm_amo_table.h"
#include "tdm_info.h"
#include "tdm_nosys.h"

void tdm_handle_resolve_flags(struct tdm_handle *h)
{
	const struct tdm_ep *ep = h->ep;

	h->tx_op_flags = h->tx_default;
	if (!ep->tx_selective)
		h->tx_op_flags |= FI_COMPLETION;
	h->rx_op_flags = h->rx_default | ep->rx_space;
	if (!ep->rx_selective)
		h->rx_op_flags |= FI_COMPLETION;
	h->tagged_rx_op_flags = h->rx_op_flags;
	if (!(ep->info->caps & FI_TAGGED_MULTI_RECV))
		h->tagged_rx_op_flags &= ~(uint64_t)FI_MULTI_RECV;
}

void tdm_ep_resolve_flags(struct tdm_ep *ep)
{
	struct tdm_list *pos;

	ep->rx_space &= ~(uint64_t)TDM_NAMED_AV;
	if (ep->av && tdm_av_is_named(ep->av))
		ep->rx_space |= TDM_NAMED_AV;
	tdm_list_for_each(pos, &ep->handles)
		tdm_handle_resolve_flags(
			tdm_list_entry(pos, struct tdm_handle, node));
}

int tdm_ep_control(struct fid *fid, int command, void *arg)
{
	struct tdm_handle *h = tdm_handle_of(fid);
	struct tdm_ep *ep = h->ep;
	int ret;

	if (!arg)
		return -FI_EINVAL;
	tdm_lock_acquire(&ep->domain->lock);
	switch (command) {
	case FI_GETOPSFLAG:
		ret = tdm_ep_get_op_flags(h, arg);
		break;
	case FI_SETOPSFLAG:
		ret = tdm_ep_set_op_flags(h, *(uint64_t *)arg);
		break;
	case FI_ALIAS:
		ret = tdm_alias_open(h, arg);
		break;
	default:
		ret = -FI_ENOSYS;
	}
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

void tdm_ep_free(struct tdm_ep *ep)
{
	tdm_deferred_drop(ep);
	ep->rx_side->close(ep);
	tdm_ep_unbind(ep);
	tdm_info_free(ep->info);
	free(ep);
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct tdm_ep *ep = tdm_ep_of(fid);
	int ret;

	if (command != FI_ENABLE)
		return tdm_ep_control(fid, command, arg);
	tdm_lock_acquire(&ep->domain->lock);
	ret = tdm_root_enable(ep->root);
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

static int ep_close(struct fid *fid)
{
	struct tdm_ep *ep = tdm_ep_of(fid);
	struct tdm_stx *stx = tdm_single_of(ep)->stx;
	struct tdm_domain *d = ep->domain;
	struct tdm_eq *eq;

	tdm_lock_acquire(&d->lock);
	if (ep->users || d->engine.orphan) {
		tdm_lock_release(&d->lock);
		return d->engine.orphan ? -FI_EOPBADSTATE : -FI_EBUSY;
	}
	tdm_deferred_quit(ep);
	tdm_coll_quit(ep->root);
	tdm_root_quit(ep->root);
	tdm_coll_free(ep->root);
	eq = ep->root->eq;
	tdm_root_free(ep->root);
	if (stx)
		tdm_stx_put(stx);
	tdm_lock_release(&d->lock);
	tdm_ep_closed(d, eq);
	return 0;
}

ssize_t tdm_ep_cancel_by(struct tdm_ep *ep, void *context,
			 ssize_t (*cancel)(struct tdm_ep *ep, void *context))
{
	ssize_t ret;

	tdm_lock_acquire(&ep->domain->lock);
	ret = cancel(ep, context);
	if (ret == -FI_ENOENT)
		ret = tdm_deferred_cancel(ep, context, cancel);
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

static ssize_t cancel_posted(struct tdm_ep *ep, void *context)
{
	ssize_t ret;

	if (!ep->enabled)
		return -FI_ENOENT;
	ret = ep->rx_side->cancel(ep, context);
	if (ret == -FI_ENOENT)
		ret = tdm_root_cancel_send(ep->root, context);
	return ret == -FI_ENOENT ? tdm_coll_cancel(ep->root, context) : ret;
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	return tdm_ep_cancel_by(tdm_ep_of(fid), context, cancel_posted);
}

ssize_t tdm_ep_rx_size_left(struct fid_ep *fid)
{
	struct tdm_ep *ep = tdm_ep_from_fid(fid);
	ssize_t ret;

	tdm_lock_acquire(&ep->domain->lock);
	ret = ep->info->caps & FI_RECV ? ep->rx_side->left(ep) : -FI_EOPNOTSUPP;
	if (ret >= 0 && !ep->enabled)
		ret = -FI_EOPBADSTATE;
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

static ssize_t ep_tx_size_left(struct fid_ep *fid)
{
	struct tdm_ep *ep = tdm_ep_from_fid(fid);
	ssize_t ret = -FI_EOPBADSTATE;

	tdm_lock_acquire(&ep->domain->lock);
	if (!(ep->info->caps & FI_SEND))
		ret = -FI_EOPNOTSUPP;
	else if (ep->enabled)
		ret = tdm_root_tx_left(ep->root);
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(ep_fid_ops),
	.close = ep_close,
	.bind = tdm_ep_bind,
	.control = ep_control,
	.ops_open = tdm_report_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_ep ep_ops = {
	.size = sizeof(ep_ops),
	.cancel = ep_cancel,
	.getopt = tdm_ep_getopt,
	.setopt = tdm_ep_setopt,
	.tx_ctx = tdm_no_ep_tx_ctx,
	.rx_ctx = tdm_no_ep_rx_ctx,
	.rx_size_left = tdm_ep_rx_size_left,
	.tx_size_left = ep_tx_size_left,
};

static int unbound(int ret, const char *why)
{
	return tdm_refuse_call(ret, "fi_enable", why);
}

static int check_bound(const struct tdm_ep *ep)
{
	const struct tdm_single *s =
		tdm_container_of(ep, const struct tdm_single, root.ep);
	const struct fi_ep_attr *a = ep->info->ep_attr;
	uint64_t caps = ep->info->caps;

	/* Without messages there is nothing to send or receive. */
	if (!(caps & (FI_MSG | FI_TAGGED)))
		caps = 0;
	if ((caps & FI_SEND) && !ep->tx_cq && !ep->send_cntr)
		return unbound(-FI_ENOCQ,
			       "no queue or counter of sends is bound");
	if ((caps & FI_RECV) && !ep->rx_cq && !ep->recv_cntr)
		return unbound(-FI_ENOCQ,
			       "no queue or counter of receives is bound");
	if ((a->rx_ctx_cnt == FI_SHARED_CONTEXT && !s->srx_ctx) ||
	    (a->tx_ctx_cnt == FI_SHARED_CONTEXT && !s->stx))
		return unbound(-FI_EOPBADSTATE, "no shared context is bound");
	return 0;
}

static void for_each(struct tdm_root *root,
		     void (*call)(struct tdm_ep *ep, void *arg), void *arg)
{
	const struct tdm_single *s = tdm_single_of(&root->ep);

	call(&root->ep, arg);
	if (s->srx_ctx)
		call(tdm_srx_ctx_ep(s->srx_ctx), arg);
}

static const struct tdm_ep_kind single = {
	.bytes = sizeof(struct tdm_single),
	.fclass = FI_CLASS_EP,
	.fid_ops = &ep_fid_ops,
	.ep_ops = &ep_ops,
	.cm_ops = &tdm_ep_cm_ops,
	.queues = FI_TRANSMIT | FI_RECV,
	.has_transports = 1,
	.check_bound = check_bound,
	.for_each = for_each,
};

/*
 * Returns tdm_ep.special for the granted @caps. A receive may have FI_AUTH_KEY
 * if sources have keys; the same bit among @caps means FI_SOURCE.
 */
static uint64_t special_flags(const struct tdm_domain *d, uint64_t caps)
{
	caps &= ~(uint64_t)(FI_AUTH_KEY | FI_TRIGGER);
	if (tdm_domain_av_keys(d) && (caps & FI_DIRECTED_RECV))
		caps |= FI_AUTH_KEY;
	return TDM_LOOK_FLAGS & ~caps;
}

void tdm_handle_init(struct tdm_handle *h, struct tdm_ep *ep,
		     const struct tdm_handle *from)
{
	*h = *from;
	h->ep = ep;
	tdm_list_init(&h->node);
	tdm_list_append(&ep->handles, &h->node);
}

static void handle_own(struct tdm_ep *ep, void *context)
{
	const struct tdm_handle own = {
		.fid = {
			.fid = {
				.fclass = ep->kind->fclass,
				.context = context,
				.ops = ep->kind->fid_ops,
			},
			.ops = ep->kind->ep_ops,
			.cm = ep->kind->cm_ops,
			.msg = &tdm_msg_ops,
			.tagged = &tdm_tagged_ops,
			.rma = &tdm_rma_ops,
			.atomic = &tdm_amo_calls.ops,
			.collective = ep->kind->fclass == FI_CLASS_EP &&
						      (ep->info->caps &
						       FI_COLLECTIVE) ?
					      &tdm_coll_ops :
					      &tdm_no_collective_ops,
		},
		.tx_default = ep->info->tx_attr->op_flags,
		.rx_default = ep->info->rx_attr->op_flags,
	};

	tdm_handle_init(&ep->own, ep, &own);
}

struct tdm_ep *tdm_ep_alloc(struct tdm_domain *domain,
			    const struct fi_info *info,
			    const struct tdm_ep_kind *kind, void *context)
{
	struct tdm_ep *ep = calloc(1, kind->bytes);

	if (!ep)
		return NULL;
	ep->info = fi_dupinfo(info);
	if (!ep->info) {
		free(ep);
		return NULL;
	}
	ep->domain = domain;
	ep->kind = kind;
	tdm_list_init(&ep->handles);
	handle_own(ep, context);
	ep->rx_side = &tdm_rx_none;
	if (!ep->info->tx_attr->size)
		ep->info->tx_attr->size = TDM_DEFAULT_CTX_SIZE;
	if (!ep->info->rx_attr->size)
		ep->info->rx_attr->size = TDM_DEFAULT_CTX_SIZE;
	ep->tx_size = ep->info->tx_attr->size;
	ep->inject_bytes = info->tx_attr->inject_size;
	ep->special = special_flags(domain, info->caps);
	ep->directed = tdm_caps_directed(info->caps);
	if (ep->info->rx_attr->caps & FI_EXACT_DIRECTED_RECV) {
		ep->exact = ep->directed;
		ep->special |= FI_RECV;
	}
	ep->min_multi_recv = TDM_MIN_MULTI_RECV_BYTES;
	if (tdm_domain_spaces(domain))
		ep->rx_space = TDM_IN_SPACE;
	tdm_option_init(ep);
	tdm_ep_resolve_flags(ep);
	return ep;
}

static int ep_init(struct tdm_ep *ep)
{
	int ret = tdm_ep_own_name(ep->root);

	if (ret)
		return ret;
	if (ep->info->ep_attr->rx_ctx_cnt != FI_SHARED_CONTEXT)
		return tdm_rx_side_open(ep);
	/* Receives are posted to the shared context alone. */
	ep->special |= FI_RECV;
	ep->exact = 0;
	return 0;
}

static int one_context(size_t count)
{
	return count <= 1 || count == FI_SHARED_CONTEXT;
}

int tdm_ep_open(struct fid_domain *fid, struct fi_info *info,
		struct fid_ep **out, void *context)
{
	struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct tdm_root *root;
	int ret;

	if (!info || !info->ep_attr || !info->tx_attr || !info->rx_attr)
		return -FI_EINVAL;
	ret = tdm_info_check(info);
	if (ret)
		return ret;
	if (info->caps & FI_PEER && info->mode & FI_PEER_TRANSFER)
		return tdm_refuse_call(-FI_EINVAL, "fi_endpoint",
				       "FI_PEER_TRANSFER is not offered");
	/* Several contexts need fi_scalable_ep(). */
	if (!one_context(info->ep_attr->tx_ctx_cnt) ||
	    !one_context(info->ep_attr->rx_ctx_cnt))
		return tdm_refuse_call(-FI_EINVAL, "fi_endpoint",
				       "several contexts make a scalable "
				       "endpoint");
	root = tdm_root_alloc(d, info, &single, context);
	if (!root)
		return -FI_ENOMEM;
	tdm_lock_acquire(&d->lock);
	ret = ep_init(&root->ep);
	if (ret)
		tdm_root_free(root);
	else
		tdm_domain_get(d);
	tdm_lock_release(&d->lock);
	if (!ret)
		*out = &root->ep.own.fid;
	return ret;
}
