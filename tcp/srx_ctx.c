/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive contexts, fi_srx_context(3): a receive side of its own, to
 * which receives are posted directly. Each endpoint bound to it has a seat
 * there (peer/srx.h), through which its messages arrive and are reported.
 *
 * All endpoints of a context have the same AV, that of the first one enabled.
 * The first one also decides whether receives complete without FI_COMPLETION.
 * Both hold while any endpoint is enabled.
 *
 * Lock: the domain's, taken in srx_close() and tdm_srx_ctx_open(), else held.
 */
#include "tcp/srx_ctx.h"

#include <rdma/fi_errno.h>

#include "tcp/attr.h"
#include "tcp/bind.h"
#include "tcp/context.h"
#include "tcp/ep_priv.h"
#include "tcp/getinfo.h"
#include "tcp/import.h"
#include "tcp/option.h"
#include "tcp/profile.h"
#include "tcp/refuse.h"
#include "tdm_info.h"
#include "tdm_nosys.h"

struct tdm_srx_ctx {
	struct tdm_ep ep;
	size_t enabled_users; /* of ep.users, those that are enabled */
};

struct tdm_ep *tdm_srx_ctx_ep(struct tdm_srx_ctx *ctx)
{
	return &ctx->ep;
}

static int srx_close(struct fid *fid)
{
	struct tdm_ep *ctx = tdm_ep_of(fid);
	struct tdm_domain *d = ctx->domain;
	int ret = d->engine.orphan ? -FI_EOPBADSTATE : -FI_EBUSY;

	tdm_lock_acquire(&d->lock);
	if (!ctx->users && !d->engine.orphan) {
		tdm_srx_flush(ctx->srx);
		tdm_ep_free(ctx);
		tdm_domain_put(d);
		ret = 0;
	}
	tdm_lock_release(&d->lock);
	return ret;
}

static int srx_control(struct fid *fid, int command, void *arg)
{
	/* A shared context needs no enabling, but some applications try. */
	return command == FI_ENABLE ? 0 : tdm_ep_control(fid, command, arg);
}

static ssize_t srx_cancel(fid_t fid, void *context)
{
	return tdm_ep_cancel_by(tdm_ep_of(fid), context, tdm_rx_own.cancel);
}

static struct fi_ops srx_fid_ops = {
	.size = sizeof(srx_fid_ops),
	.close = srx_close,
	.bind = tdm_no_fi_bind,
	.control = srx_control,
	.ops_open = tdm_profile_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_ep srx_ep_ops = {
	.size = sizeof(srx_ep_ops),
	.cancel = srx_cancel,
	.getopt = tdm_ep_getopt,
	.setopt = tdm_ep_setopt,
	.tx_ctx = tdm_no_ep_tx_ctx,
	.rx_ctx = tdm_no_ep_rx_ctx,
	.rx_size_left = tdm_ep_rx_size_left,
	.tx_size_left = tdm_no_ep_size_left,
};

/* Nothing is bound to it, and it needs no enabling. */
static const struct tdm_ep_kind shared = {
	.bytes = sizeof(struct tdm_srx_ctx),
	.fclass = FI_CLASS_SRX_CTX,
	.fid_ops = &srx_fid_ops,
	.ep_ops = &srx_ep_ops,
	.cm_ops = &tdm_ep_no_cm_ops,
};

/*
 * Returns a copy of the domain's info with the values of @attr, without sends.
 */
static struct fi_info *ctx_info(const struct tdm_domain *d,
				const struct fi_rx_attr *attr)
{
	const uint64_t sends = FI_SEND | FI_READ | FI_WRITE;
	struct fi_info *info = fi_dupinfo(d->info);
	uint64_t caps = info ? info->caps : 0;

	if (!info)
		return NULL;
	if (attr) {
		tdm_rx_attr_merge(info->rx_attr, attr);
		if (attr->caps)
			caps = attr->caps;
	}
	info->caps = (caps & TDM_RX_CAPS & ~sends) | FI_RECV;
	if (!(info->caps & (FI_MSG | FI_TAGGED)))
		info->caps |= d->info->caps & (FI_MSG | FI_TAGGED);
	info->rx_attr->caps = info->caps;
	info->tx_attr->caps = 0;
	return info;
}

int tdm_srx_ctx_open(struct fid_domain *fid, struct fi_rx_attr *attr,
		     struct fid_ep **out, void *context)
{
	struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct fi_info *info;
	struct tdm_ep *ctx;
	int ret;

	if (attr && attr->op_flags & FI_PEER)
		return tdm_import_srx_open(d, context, out);
	ret = tdm_rx_attr_check(attr);
	if (ret)
		return ret;
	info = ctx_info(d, attr);
	ctx = info ? tdm_ep_alloc(d, info, &shared, context) : NULL;
	tdm_info_free(info);
	if (!ctx)
		return -FI_ENOMEM;
	tdm_lock_acquire(&d->lock);
	ret = tdm_rx_side_open(ctx);
	if (ret) {
		tdm_ep_free(ctx);
	} else {
		tdm_domain_get(d);
		ctx->enabled = TDM_EP_ON;
	}
	tdm_lock_release(&d->lock);
	if (ret)
		return ret;
	if (attr)
		*attr = *ctx->info->rx_attr;
	*out = &ctx->own.fid;
	return 0;
}

/* ---- a seat -------------------------------------------------------------- */

static struct fid_peer_srx *seat_export(struct tdm_ep *ep, enum tdm_transport t)
{
	return tdm_srx_seat_export(tdm_single_of(ep)->seat, t);
}

static void seat_rebound(struct tdm_ep *ep)
{
	struct tdm_done done;

	tdm_ep_done(ep, TDM_TRANSPORT_TCP, &done);
	tdm_srx_seat_set_done(tdm_single_of(ep)->seat, &done);
}

static int seat_enable(struct tdm_ep *ep)
{
	const struct tdm_ep *ctx = &tdm_single_of(ep)->srx_ctx->ep;

	if (ctx->av && ctx->av != ep->av)
		return tdm_refuse_call(-FI_EINVAL, "fi_enable",
				       "another address vector than that of "
				       "the shared receive context");
	seat_rebound(ep);
	return 0;
}

static void seat_joined(struct tdm_ep *ep)
{
	struct tdm_srx_ctx *ctx = tdm_single_of(ep)->srx_ctx;

	if (ctx->enabled_users++)
		return;
	ctx->ep.av = ep->av;
	ctx->ep.rx_selective = ep->rx_selective;
	tdm_ep_resolve_flags(&ctx->ep);
}

static void seat_flush(struct tdm_ep *ep)
{
	tdm_srx_seat_flush(tdm_single_of(ep)->seat);
}

static void seat_close(struct tdm_ep *ep)
{
	struct tdm_single *s = tdm_single_of(ep);
	struct tdm_srx_ctx *ctx = s->srx_ctx;

	tdm_srx_seat_close(s->seat);
	ctx->ep.users--;
	/* The AV may be closed after the last enabled endpoint. */
	if (ep->enabled && !--ctx->enabled_users)
		ctx->ep.av = NULL;
}

static const struct tdm_rx_side_ops rx_seat = {
	.export_to = seat_export,
	.enable = seat_enable,
	.joined = seat_joined,
	.rebound = seat_rebound,
	.flush = seat_flush,
	.cancel = tdm_rx_side_no_cancel,
	.left = tdm_rx_side_no_left,
	.forget = tdm_rx_side_forget,
	/* the value of the shared context counts */
	.set_min_multi_recv = tdm_rx_side_no_min_multi_recv,
	.close = seat_close,
};

/* -------------------------------------------------------------------------- */

int tdm_srx_ctx_bind(struct tdm_single *s, struct fid *fid)
{
	struct tdm_ep *ep = &s->root.ep, *ctx = tdm_ep_of(fid);
	int ret;

	if (fid->ops != &srx_fid_ops || s->seat ||
	    ep->info->ep_attr->rx_ctx_cnt != FI_SHARED_CONTEXT)
		return tdm_refuse_call(-FI_EINVAL, "fi_ep_bind",
				       s->seat ? "a second shared receive "
						 "context" :
						 "ep_attr.rx_ctx_cnt is not "
						 "FI_SHARED_CONTEXT");
	if (ctx->domain != ep->domain)
		return tdm_refuse_call(-FI_EDOMAIN, "fi_ep_bind",
				       "a context of another domain");
	ret = tdm_srx_seat_open(ctx->srx, &s->seat);
	if (ret)
		return ret;
	s->srx_ctx = tdm_container_of(ctx, struct tdm_srx_ctx, ep);
	ep->srx = ctx->srx;
	ep->rx_side = &rx_seat;
	ctx->users++;
	return 0;
}
