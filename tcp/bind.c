/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_ep_bind(3) for endpoints and their contexts, and the choice of queues and
 * counters that report their operations. Objects are bound before the endpoint
 * is enabled, except counters, which count from then on, and shared transmit
 * contexts.
 *
 * Lock: the domain's, held here.
 */
#include "tcp/bind.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "peer/eq.h"
#include "peer/import_eq.h"
#include "tcp/ep_priv.h"
#include "tcp/import.h"
#include "tcp/refuse.h"
#include "tcp/srx_ctx.h"
#include "tcp/stx.h"
#include "tcp/tier.h"

uint64_t tdm_ep_refused(const struct tdm_ep *ep)
{
	uint64_t caps = ep->root->ep.info->caps;

	return caps & TDM_ONE_SIDED ?
		       ~caps & (FI_REMOTE_READ | FI_REMOTE_WRITE) :
		       FI_REMOTE_READ | FI_REMOTE_WRITE;
}

const struct sockaddr *tdm_ep_name_of(const struct tdm_ep *ep, fi_addr_t addr,
				      struct tdm_addr *to)
{
	struct tdm_place place;

	if (!ep->av || tdm_space_split(tdm_av_space(ep->av), addr, &place) ||
	    tdm_av_addr(ep->av, place.addr, to))
		return NULL;
	return &to->u.sa;
}

void tdm_ep_done(struct tdm_ep *ep, enum tdm_transport t, struct tdm_done *done)
{
	/* In the order of rma_cntr[]. */
	struct fid_peer_cntr **rma[] = {
		&done->read_cntr,
		&done->write_cntr,
		&done->remote_read_cntr,
		&done->remote_write_cntr,
	};
	const struct tdm_av *av = ep->av;
	size_t i;

	memset(done, 0, sizeof(*done));
	done->ctx = ep->kind->ctx_ops;
	if (!done->ctx && av && tdm_av_user_ids(av)->count)
		done->user_ids = tdm_av_user_ids(av);
	done->refused = tdm_ep_refused(ep);
	done->strangers = !!(ep->info->rx_attr->caps & FI_SOURCE_ERR);
	if (ep->tx_cq)
		done->tx_cq = tdm_cq_export(ep->tx_cq, t);
	if (ep->rx_cq)
		done->rx_cq = tdm_cq_export(ep->rx_cq, t);
	if (ep->send_cntr)
		done->send_cntr = tdm_cntr_export(ep->send_cntr, t);
	if (ep->recv_cntr)
		done->recv_cntr = tdm_cntr_export(ep->recv_cntr, t);
	for (i = 0; i < TDM_ARRAY_LEN(rma); i++) {
		if (ep->rma_cntr[i])
			*rma[i] = tdm_cntr_export(ep->rma_cntr[i], t);
	}
}

enum { CNTR_SLOTS = 6 };

static int no(int ret, const char *why)
{
	return tdm_refuse_call(ret, "fi_ep_bind", why);
}

static int bind_cq(struct tdm_ep *ep, struct tdm_cq *cq, uint64_t flags)
{
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return no(-FI_EBADFLAGS, "flags that are not for a queue");
	if (!(flags & (FI_TRANSMIT | FI_RECV)))
		return no(-FI_EINVAL, "a queue without FI_TRANSMIT or FI_RECV");
	if (flags & (FI_TRANSMIT | FI_RECV) & ~ep->kind->queues)
		return no(-FI_EINVAL, "a queue of the other direction than "
				      "the context");
	if (((flags & FI_TRANSMIT) && ep->tx_cq) ||
	    ((flags & FI_RECV) && ep->rx_cq))
		return no(-FI_EINVAL, "a second queue for a direction");
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_selective = !!(flags & FI_SELECTIVE_COMPLETION);
		tdm_cq_get(cq);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_selective = !!(flags & FI_SELECTIVE_COMPLETION);
		tdm_cq_get(cq);
	}
	return 0;
}

/*
 * List the counters of @ep and the flags that bind them. Returns their number.
 */
static size_t cntr_slots(struct tdm_ep *ep, uint64_t flag[CNTR_SLOTS],
			 struct tdm_cntr **slot[CNTR_SLOTS])
{
	static const uint64_t rma[] = { FI_READ, FI_WRITE, FI_REMOTE_READ,
					FI_REMOTE_WRITE };
	size_t n = 0, i;

	if (ep->kind->queues & FI_TRANSMIT) {
		flag[n] = FI_SEND;
		slot[n++] = &ep->send_cntr;
	}
	if (ep->kind->queues & FI_RECV) {
		flag[n] = FI_RECV;
		slot[n++] = &ep->recv_cntr;
	}
	for (i = 0; i < TDM_ARRAY_LEN(rma); i++) {
		if (!(ep->kind->queues & (i < 2 ? FI_TRANSMIT : FI_RECV)))
			continue;
		flag[n] = rma[i];
		slot[n++] = &ep->rma_cntr[i];
	}
	return n;
}

/* Make the new binding report operations that end from now on. */
static void renew_done(struct tdm_ep *ep)
{
	int t;

	for (t = 0; ep->kind->has_transports && t < TDM_TRANSPORTS; t++)
		tdm_tier[t]->rebound(ep->root);
	ep->rx_side->rebound(ep);
}

void tdm_ep_av_user_ids(struct tdm_av_user *user)
{
	struct tdm_root *root =
		tdm_container_of(user, struct tdm_root, av_user);

	if (root->ep.enabled)
		renew_done(&root->ep);
}

/* Tell the transports of @ep, if it has any, that @cntr is being bound. */
static int tell_tiers(struct tdm_ep *ep, struct tdm_cntr *cntr, uint64_t flags)
{
	int ret = 0, t;

	if (!ep->kind->has_transports)
		return 0;
	for (t = 0; !ret && t < TDM_TRANSPORTS; t++)
		ret = tdm_tier[t]->bind_cntr(ep->root, cntr, flags);
	return ret;
}

static int bind_cntr(struct tdm_ep *ep, struct tdm_cntr *cntr, uint64_t flags)
{
	struct tdm_cntr **slot[CNTR_SLOTS];
	uint64_t flag[CNTR_SLOTS], all = 0;
	size_t n = cntr_slots(ep, flag, slot), i;
	int ret;

	for (i = 0; i < n; i++) {
		all |= flag[i];
		if ((flags & flag[i]) && *slot[i])
			return no(-FI_EINVAL,
				  "a second counter for an operation");
	}
	if (flags & ~all)
		return no(-FI_EBADFLAGS,
			  "a counter of operations that are not the context's");
	if (!flags)
		return no(-FI_EINVAL, "a counter that is to count nothing");
	ret = tell_tiers(ep, cntr, flags);
	if (ret)
		return ret;
	for (i = 0; i < n; i++) {
		if (!(flags & flag[i]))
			continue;
		*slot[i] = cntr;
		tdm_cntr_get(cntr);
	}
	if (ep->enabled)
		renew_done(ep);
	return 0;
}

static int bind_av(struct tdm_root *root, struct tdm_av *av)
{
	if (root->ep.av)
		return no(-FI_EINVAL, "a second address vector");
	root->ep.av = av;
	tdm_av_attach(av, &root->av_user);
	return 0;
}

static int bind_eq(struct tdm_root *root, struct fid *fid)
{
	struct tdm_import_eq *lent = tdm_import_eq_of(fid);

	if (root->eq || root->lent_eq)
		return no(-FI_EINVAL, "a second event queue");
	if (lent)
		tdm_import_eq_get(lent);
	else
		root->eq = tdm_eq_from_fid((struct fid_eq *)fid);
	root->lent_eq = lent;
	return 0;
}

/* Not 0 when objects of @fclass may be bound to endpoints of @kind. */
static int fits(const struct tdm_ep_kind *kind, size_t fclass)
{
	switch (fclass) {
	case FI_CLASS_CQ:
	case FI_CLASS_CNTR:
		return kind->queues != 0;
	case FI_CLASS_AV:
	case FI_CLASS_EQ:
		return kind->has_transports;
	default:
		return kind->queues && kind->has_transports;
	}
}

/*
 * Not 0 when an object of @fclass may be bound to an endpoint that is enabled.
 */
static int may_be_late(size_t fclass)
{
	return fclass == FI_CLASS_CNTR || fclass == FI_CLASS_STX_CTX;
}

static int bind_locked(struct tdm_ep *ep, struct fid *bfid, uint64_t flags)
{
	if (!fits(ep->kind, bfid->fclass))
		return no(-FI_EINVAL,
			  ep->kind->has_transports ?
				  "queues and counters are for the "
				  "contexts of a scalable endpoint" :
				  "an object that is for the whole "
				  "scalable endpoint");
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, tdm_cq_from_fid((struct fid_cq *)bfid),
			       flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, tdm_cntr_from_fid((struct fid_cntr *)bfid),
				 flags);
	case FI_CLASS_AV:
		return bind_av(ep->root,
			       tdm_av_from_fid((struct fid_av *)bfid));
	case FI_CLASS_EQ:
		return bind_eq(ep->root, bfid);
	case FI_CLASS_SRX_CTX:
		return tdm_import_srx_is(bfid) ?
			       tdm_import_srx_bind(ep, bfid) :
			       tdm_srx_ctx_bind(tdm_single_of(ep), bfid);
	case FI_CLASS_STX_CTX:
		return tdm_stx_bind(tdm_single_of(ep), bfid);
	default:
		return no(-FI_EINVAL, "no object that endpoints use");
	}
}

int tdm_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct tdm_ep *ep = tdm_ep_of(fid);
	struct tdm_eq *eq = NULL;
	int ret;

	if (!bfid)
		return -FI_EINVAL;
	if (bfid->fclass == FI_CLASS_EQ && !tdm_import_eq_of(bfid)) {
		eq = tdm_eq_from_fid((struct fid_eq *)bfid);
		ret = tdm_domain_drive(ep->domain, eq);
		if (ret)
			return ret;
	}
	tdm_lock_acquire(&ep->domain->lock);
	if (ep->domain->engine.orphan)
		ret = no(-FI_EOPBADSTATE, "the endpoint is the parent's");
	else if (ep->enabled && !may_be_late(bfid->fclass))
		ret = no(-FI_EOPBADSTATE, "the endpoint is enabled");
	else
		ret = bind_locked(ep, bfid, flags);
	tdm_lock_release(&ep->domain->lock);
	if (ret && eq)
		tdm_eq_undrive(eq, &ep->domain->engine);
	return ret;
}

void tdm_ep_closed(struct tdm_domain *d, struct tdm_eq *eq)
{
	if (eq)
		tdm_eq_undrive(eq, &d->engine);
	tdm_lock_acquire(&d->lock);
	tdm_domain_put(d);
	tdm_lock_release(&d->lock);
}

void tdm_ep_unbind(struct tdm_ep *ep)
{
	struct tdm_cntr **slot[CNTR_SLOTS];
	uint64_t flag[CNTR_SLOTS];
	size_t n = cntr_slots(ep, flag, slot), i;

	if (ep->tx_cq)
		tdm_cq_put(ep->tx_cq);
	if (ep->rx_cq)
		tdm_cq_put(ep->rx_cq);
	for (i = 0; i < n; i++) {
		if (*slot[i])
			tdm_cntr_put(*slot[i]);
	}
}
