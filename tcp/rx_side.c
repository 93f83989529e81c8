/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive sides that are one struct tdm_srx: that of an endpoint or of a
 * shared receive context, which owns it; and that of a receive context, which
 * its scalable endpoint owns. And the one of endpoints that have none.
 *
 * Lock: held in all of this file.
 */
#include "tcp/rx_side.h"

#include <limits.h>

#include <rdma/fi_errno.h>

#include "tcp/bind.h"
#include "tcp/ep_priv.h"
#include "tcp/keys.h"
#include "tcp/mr.h"

static int directed(const struct tdm_ep *ep)
{
	return (ep->directed & FI_MSG ? TDM_SRX_DIRECTED_MSG : 0) |
	       (ep->directed & FI_TAGGED ? TDM_SRX_DIRECTED_TAG : 0);
}

struct tdm_srx_attr tdm_rx_side_attr(struct tdm_ep *ep)
{
	const struct tdm_srx_attr attr = {
		.engine = &ep->domain->engine,
		.size = ep->info->rx_attr->size,
		.min_multi_recv = ep->min_multi_recv,
		.directed = directed(ep),
		.spaces = tdm_domain_spaces(ep->domain),
		.key_of = tdm_domain_av_keys(ep->domain) ? tdm_ep_key_of : NULL,
		.key_arg = ep,
		.free_rma = tdm_mr_entry_free,
	};

	return attr;
}

int tdm_rx_side_open(struct tdm_ep *ep)
{
	const struct tdm_srx_attr attr = tdm_rx_side_attr(ep);
	int ret = tdm_srx_open(&attr, &ep->srx);

	if (!ret)
		ep->rx_side = &tdm_rx_own;
	return ret;
}

static struct fid_peer_srx *own_export(struct tdm_ep *ep, enum tdm_transport t)
{
	return tdm_srx_export(ep->srx, t);
}

static void own_rebound(struct tdm_ep *ep)
{
	struct tdm_done done;

	tdm_ep_done(ep, TDM_TRANSPORT_TCP, &done);
	tdm_srx_set_done(ep->srx, &done);
}

static int own_enable(struct tdm_ep *ep)
{
	own_rebound(ep);
	return 0;
}

static void own_flush(struct tdm_ep *ep)
{
	tdm_srx_flush(ep->srx);
}

static ssize_t own_cancel(struct tdm_ep *ep, void *context)
{
	return tdm_srx_cancel(ep->srx, context);
}

static ssize_t own_left(const struct tdm_ep *ep)
{
	return (ssize_t)tdm_min(tdm_srx_left(ep->srx), SSIZE_MAX);
}

void tdm_rx_side_forget(struct tdm_ep *ep, fi_addr_t addr)
{
	tdm_srx_forget(ep->srx, addr);
}

static void own_set_min_multi_recv(struct tdm_ep *ep, size_t bytes)
{
	tdm_srx_set_min_multi_recv(ep->srx, bytes);
}

static void own_close(struct tdm_ep *ep)
{
	tdm_srx_close(ep->srx);
}

const struct tdm_rx_side_ops tdm_rx_own = {
	.export_to = own_export,
	.enable = own_enable,
	.joined = tdm_rx_side_no_joined,
	.rebound = own_rebound,
	.flush = own_flush,
	.cancel = own_cancel,
	.left = own_left,
	.forget = tdm_rx_side_forget,
	.set_min_multi_recv = own_set_min_multi_recv,
	.close = own_close,
};

/* ---- none ---------------------------------------------------------------- */

static struct fid_peer_srx *no_export(struct tdm_ep *ep, enum tdm_transport t)
{
	(void)ep;
	(void)t;
	return NULL;
}

int tdm_rx_side_no_enable(struct tdm_ep *ep)
{
	(void)ep;
	return 0;
}

void tdm_rx_side_no_joined(struct tdm_ep *ep)
{
	(void)ep;
}

static void nothing(struct tdm_ep *ep)
{
	(void)ep;
}

ssize_t tdm_rx_side_no_cancel(struct tdm_ep *ep, void *context)
{
	(void)ep;
	(void)context;
	return -FI_ENOENT;
}

ssize_t tdm_rx_side_no_left(const struct tdm_ep *ep)
{
	(void)ep;
	return -FI_EOPNOTSUPP;
}

static void no_forget(struct tdm_ep *ep, fi_addr_t addr)
{
	(void)ep;
	(void)addr;
}

void tdm_rx_side_no_min_multi_recv(struct tdm_ep *ep, size_t bytes)
{
	(void)ep;
	(void)bytes;
}

const struct tdm_rx_side_ops tdm_rx_none = {
	.export_to = no_export,
	.enable = tdm_rx_side_no_enable,
	.joined = tdm_rx_side_no_joined,
	.rebound = nothing,
	.flush = nothing,
	.cancel = tdm_rx_side_no_cancel,
	.left = tdm_rx_side_no_left,
	.forget = no_forget,
	.set_min_multi_recv = tdm_rx_side_no_min_multi_recv,
	.close = nothing,
};

/* The transports are those of the scalable endpoint. */
const struct tdm_rx_side_ops tdm_rx_part = {
	.export_to = no_export,
	.enable = own_enable,
	.joined = tdm_rx_side_no_joined,
	.rebound = own_rebound,
	.flush = nothing,
	.cancel = own_cancel,
	.left = own_left,
	.forget = no_forget,
	.set_min_multi_recv = own_set_min_multi_recv,
	.close = nothing,
};
