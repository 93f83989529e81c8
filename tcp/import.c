/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive context of another owner, as an object of the domain and as the
 * receive side of an endpoint: import.h.
 *
 * Fid and endpoint close in any order: each tells peer/import_srx.h when it does.
 *
 * Lock: the domain's, taken in the calls of the fid, else held.
 */
#include "tcp/import.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "peer/import.h"
#include "peer/import_srx.h"
#include "tcp/bind.h"
#include "tcp/ep_priv.h"
#include "tcp/mr.h"
#include "tcp/refuse.h"
#include "tdm_nosys.h"
#include "tdm_open.h"

struct import_srx {
	struct fid_ep fid;
	struct tdm_domain *domain;
	struct tdm_import *import;
};

/* ---- the fid ------------------------------------------------------------- */

static int srx_close(struct fid *fid)
{
	struct import_srx *srx =
		tdm_container_of(fid, struct import_srx, fid.fid);
	struct tdm_domain *d = srx->domain;

	tdm_lock_acquire(&d->lock);
	tdm_import_shut(srx->import);
	tdm_domain_put(d);
	tdm_lock_release(&d->lock);
	free(srx);
	return 0;
}

static struct fi_ops srx_fid_ops = {
	.size = sizeof(srx_fid_ops),
	.close = srx_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

/* fi_peer(3): receives are posted to the owner. */
static struct fi_ops_msg srx_msg_ops = {
	.size = offsetof(struct fi_ops_msg, send),
	.recv = tdm_no_msg_recv,
	.recvv = tdm_no_msg_recvv,
	.recvmsg = tdm_no_msg_recvmsg,
};

static struct fi_ops_tagged srx_tagged_ops = {
	.size = offsetof(struct fi_ops_tagged, send),
	.recv = tdm_no_tagged_recv,
	.recvv = tdm_no_tagged_recvv,
	.recvmsg = tdm_no_tagged_recvmsg,
};

int tdm_import_srx_open(struct tdm_domain *d, const void *context,
			struct fid_ep **out)
{
	struct fid_peer_srx *owner =
		d->info->caps & FI_PEER ? tdm_import_srx(context) : NULL;
	struct import_srx *srx;
	int ret;

	if (!owner)
		return -FI_EINVAL;
	srx = calloc(1, sizeof(*srx));
	if (!srx)
		return -FI_ENOMEM;
	srx->domain = d;
	srx->fid.fid.fclass = FI_CLASS_SRX_CTX;
	srx->fid.fid.ops = &srx_fid_ops;
	srx->fid.msg = &srx_msg_ops;
	srx->fid.tagged = &srx_tagged_ops;
	tdm_lock_acquire(&d->lock);
	ret = tdm_import_open(&d->imports, owner, &srx->import);
	if (!ret)
		tdm_domain_get(d);
	tdm_lock_release(&d->lock);
	if (ret)
		free(srx);
	else
		*out = &srx->fid;
	return ret;
}

int tdm_import_srx_is(const struct fid *fid)
{
	return fid->ops == &srx_fid_ops;
}

/* ---- the owner's regions ------------------------------------------------- */

/* Returns @req with its source as the owner knows it. */
static struct tdm_rma_request request(struct fid_peer_srx *srx,
				      const struct tdm_rma_request *req)
{
	struct tdm_rma_request r = *req;

	r.src = tdm_srx_id(srx, req->src);
	return r;
}

static int regions_get(struct fid_domain *fid, struct fid_peer_srx *srx,
		       const struct tdm_rma_request *req,
		       struct fi_peer_rx_entry **entry)
{
	const struct tdm_domain *d = tdm_domain_from_fid(fid);
	const struct tdm_rma_request r = request(srx, req);

	return d->lent_ops->get(d->lent, srx, &r, entry);
}

static int regions_atomic(struct fid_domain *fid, struct fid_peer_srx *srx,
			  const struct tdm_rma_atomic *a,
			  struct fi_peer_rx_entry *entry)
{
	const struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct tdm_rma_atomic to = *a;

	to.rma = request(srx, &a->rma);
	return d->lent_ops->atomic(d->lent, srx, &to, entry);
}

void tdm_import_regions(struct tdm_domain *d, struct fid_domain *owner)
{
	d->lent_ops = tdm_open_ops(&owner->fid, TDM_RMA_OPS);
	if (!d->lent_ops)
		return;
	d->lent = owner;
	d->lent_rma.size = sizeof(d->lent_rma);
	d->lent_rma.get = regions_get;
	d->lent_rma.revoked = d->lent_ops->revoked;
	d->lent_rma.atomic = regions_atomic;
}

/* ---- the receive side ---------------------------------------------------- */

static struct tdm_import *import_of(struct tdm_ep *ep)
{
	return tdm_single_of(ep)->import;
}

static struct fid_peer_srx *import_export(struct tdm_ep *ep,
					  enum tdm_transport t)
{
	return tdm_import_export(import_of(ep), t);
}

static void import_rebound(struct tdm_ep *ep)
{
	struct tdm_done done;

	tdm_ep_done(ep, TDM_TRANSPORT_TCP, &done);
	tdm_import_set_done(import_of(ep), &done);
}

static int import_enable(struct tdm_ep *ep)
{
	import_rebound(ep);
	return 0;
}

static void import_flush(struct tdm_ep *ep)
{
	tdm_import_flush(import_of(ep));
}

/* The owner has the receives, and forgets addresses itself. */
static void import_forget(struct tdm_ep *ep, fi_addr_t addr)
{
	(void)ep;
	(void)addr;
}

static void import_close(struct tdm_ep *ep)
{
	tdm_import_leave(import_of(ep));
}

static const struct tdm_rx_side_ops rx_import = {
	.export_to = import_export,
	.enable = import_enable,
	.joined = tdm_rx_side_no_joined,
	.rebound = import_rebound,
	.flush = import_flush,
	.cancel = tdm_rx_side_no_cancel,
	.left = tdm_rx_side_no_left,
	.forget = import_forget,
	/* the value of the owner counts */
	.set_min_multi_recv = tdm_rx_side_no_min_multi_recv,
	.close = import_close,
};

int tdm_import_srx_bind(struct tdm_ep *ep, struct fid *fid)
{
	struct import_srx *srx =
		tdm_container_of(fid, struct import_srx, fid.fid);
	struct tdm_single *s = tdm_single_of(ep);
	int ret;

	if (s->import || s->seat)
		return tdm_refuse_call(-FI_EINVAL, "fi_ep_bind",
				       "a second receive context");
	if (srx->domain != ep->domain)
		return tdm_refuse_call(-FI_EDOMAIN, "fi_ep_bind",
				       "a context of another domain");
	ret = tdm_import_join(srx->import,
			      ep->domain->lent ? NULL : tdm_mr_entry_free);
	if (ret)
		return tdm_refuse_call(ret, "fi_ep_bind",
				       "another endpoint has the context");
	ep->rx_side->close(ep);
	s->import = srx->import;
	ep->srx = NULL;
	ep->rx_side = &rx_import;
	/* Receives are posted to the owner alone. */
	ep->special |= FI_RECV;
	ep->exact = 0;
	return 0;
}
