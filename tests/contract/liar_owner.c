/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects of the owner of liar_owner.h, and the provider. Lock: see there. */
#include "tests/contract/liar_owner.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

static const char peer_name[] = "kitpeer";

int lo_closed;

int lo_lies(const char *what)
{
	const char *lie = getenv("TANDEM_LIE");

	return lie && !strcmp(lie, what);
}

int lo_refused(int ret)
{
	if (ret && lo_lies("crashes when refused"))
		abort();
	return ret;
}

static int close_object(struct fid *fid)
{
	free(fid);
	return 0;
}

static struct fi_ops plain_ops = { .size = sizeof(plain_ops),
				   .close = close_object };

/* ---- address vectors ------------------------------------------------------ */

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct lo_av *av = (struct lo_av *)fid;
	fi_addr_t id = av->count;
	int ret;

	if (count != 1 || av->count == LO_ADDRS_MOST)
		return -FI_EINVAL;
	/* The peer tells sources while it learns them. */
	*fi_addr = av->count;
	ret = fi_av_insert(av->peer, addr, 1, &id, FI_AV_USER_ID, NULL);
	if (ret != 1)
		return ret;
	av->to[av->count++] = id;
	return 1;
}

static struct fi_ops_av av_ops = { .size = sizeof(av_ops),
				   .insert = av_insert };

static int av_close(struct fid *fid)
{
	fi_close(&((struct lo_av *)fid)->peer->fid);
	return close_object(fid);
}

static struct fi_ops av_fi_ops = { .size = sizeof(av_fi_ops),
				   .close = av_close };

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		   struct fid_av **out, void *context)
{
	struct fi_av_attr peer = { .type = FI_AV_TABLE };
	struct lo_av *av = calloc(1, sizeof(*av));
	int ret = lo_refused(fi_av_open(((struct lo_domain *)domain)->peer,
					&peer, &av->peer, NULL));

	if (ret) {
		free(av);
		return ret;
	}
	av->fid = (struct fid_av){ { FI_CLASS_AV, context, &av_fi_ops },
				   &av_ops };
	*out = &av->fid;
	return 0;
}

/* ---- endpoints ------------------------------------------------------------ */

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct lo_ep *ep = (struct lo_ep *)fid;

	switch (bfid->fclass) {
	case FI_CLASS_AV:
		ep->av = (struct lo_av *)bfid;
		if (lo_lies("binds no vector"))
			return 0;
		return fi_ep_bind(ep->peer, &ep->av->peer->fid, flags);
	case FI_CLASS_CNTR:
		ep->cntr[!(flags & FI_SEND)] = (struct lo_cntr *)bfid;
		return fi_ep_bind(ep->peer,
				  &((struct lo_cntr *)bfid)->peer->fid, flags);
	default:
		ep->cq = (struct lo_cq *)bfid;
		if (lo_lies("binds its own queue"))
			return fi_ep_bind(ep->peer, bfid, flags);
		return fi_ep_bind(ep->peer, &ep->cq->peer->fid, flags);
	}
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct lo_ep *ep = (struct lo_ep *)fid;
	int ret = command == FI_ENABLE ? lo_lend(ep) : -FI_ENOSYS;

	if (!ret)
		ret = fi_ep_bind(ep->peer, &ep->peer_srx->fid, 0);
	return ret ? ret : fi_enable(ep->peer);
}

static int ep_close(struct fid *fid)
{
	struct lo_ep *ep = (struct lo_ep *)fid;

	if (ep->posted && lo_lies("receives keep it open"))
		return -FI_EBUSY;
	lo_closed = 1;
	lo_flush(ep);
	if (lo_lies("closes the vector first"))
		fi_close(&ep->av->peer->fid);
	if (!lo_lies("leaves the endpoint open"))
		fi_close(&ep->peer->fid);
	if (ep->peer_srx)
		fi_close(&ep->peer_srx->fid);
	return close_object(fid);
}

static struct fi_ops ep_fi_ops = { .size = sizeof(ep_fi_ops),
				   .close = ep_close,
				   .bind = ep_bind,
				   .control = ep_control };

static int ep_getname(fid_t fid, void *addr, size_t *len)
{
	return fi_getname(&((struct lo_ep *)fid)->peer->fid, addr, len);
}

static struct fi_ops_cm cm_ops = { .size = sizeof(cm_ops),
				   .getname = ep_getname };

static int ep_open(struct fid_domain *fid, struct fi_info *info,
		   struct fid_ep **out, void *context)
{
	struct lo_domain *domain = (struct lo_domain *)fid;
	struct lo_ep *ep = calloc(1, sizeof(*ep));
	int ret;

	ep->domain = domain;
	ret = lo_refused(
		fi_endpoint(domain->peer, domain->info, &ep->peer, NULL));
	if (ret) {
		free(ep);
		return ret;
	}
	ep->fid.fid = (struct fid){ FI_CLASS_EP, context, &ep_fi_ops };
	ep->fid.ops = &lo_ep_ops;
	ep->fid.cm = &cm_ops;
	ep->fid.msg = &lo_msg_ops;
	ep->fid.tagged = &lo_tagged_ops;
	*out = &ep->fid;
	return 0;
}

/* ---- domain --------------------------------------------------------------- */

static int domain_close(struct fid *fid)
{
	struct lo_domain *d = (struct lo_domain *)fid;

	fi_close(&d->peer->fid);
	if (d->peer_eq)
		fi_close(&d->peer_eq->fid);
	fi_close(&d->fabric->fid);
	fi_freeinfo(d->info);
	return close_object(fid);
}

static struct fi_ops domain_fi_ops = { .size = sizeof(domain_fi_ops),
				       .close = domain_close };
static struct fi_ops_domain domain_ops = { .size = sizeof(domain_ops),
					   .av_open = av_open,
					   .cq_open = lo_cq_open,
					   .endpoint = ep_open,
					   .cntr_open = lo_cntr_open };
static struct fi_ops_mr mr_ops = { .size = sizeof(mr_ops) };

static int find_peer(struct lo_domain *d)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE |
		      FI_SEND | FI_RECV | FI_AV_USER_ID;
	if (!lo_lies("asks without FI_PEER"))
		hints->caps |= FI_PEER;
	hints->fabric_attr->prov_name = strdup(peer_name);
	ret = lo_refused(
		fi_getinfo(fi_version(), NULL, NULL, 0, hints, &d->info));
	fi_freeinfo(hints);
	return ret;
}

static ssize_t eq_write(struct fid_eq *eq, uint32_t event, const void *buf,
			size_t len, uint64_t flags)
{
	return (ssize_t)len;
}

static struct fi_ops_eq eq_ops = { .size = sizeof(eq_ops), .write = eq_write };

/* The owner does without if the peer refuses. */
static void lend_eq(struct lo_domain *d)
{
	struct fi_peer_eq_context lent = { sizeof(lent), &d->own_eq };
	struct fi_eq_attr attr = { .flags = FI_PEER };

	d->own_eq.fid.fclass = FI_CLASS_EQ;
	d->own_eq.ops = &eq_ops;
	if (lo_lies("event queue without a size"))
		lent.size = 0;
	if (lo_refused(fi_eq_open(d->fabric, &attr, &d->peer_eq, &lent)))
		d->peer_eq = NULL;
}

static int domain_open(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **out, void *context)
{
	struct lo_domain *d = calloc(1, sizeof(*d));
	struct fi_peer_domain_context lent = { sizeof(lent), &d->fid };
	int ret = find_peer(d);

	d->fid.fid = (struct fid){ FI_CLASS_DOMAIN, context, &domain_fi_ops };
	d->fid.ops = &domain_ops;
	d->fid.mr = &mr_ops;
	if (lo_lies("domain without a size"))
		lent.size = 0;
	if (!ret)
		ret = fi_fabric(d->info->fabric_attr, &d->fabric, NULL);
	if (!ret)
		ret = lo_refused(fi_domain2(d->fabric, d->info, &d->peer,
					    FI_PEER, &lent));
	if (ret) {
		free(d);
		return ret;
	}
	lend_eq(d);
	*out = &d->fid;
	return 0;
}

/* ---- provider ------------------------------------------------------------- */

static struct fi_ops_fabric fabric_ops = { .size = sizeof(fabric_ops),
					   .domain = domain_open };

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out,
		       void *context)
{
	struct fid_fabric *fabric = calloc(1, sizeof(*fabric));

	if (lo_closed && lo_lies("opens once")) {
		free(fabric);
		return -FI_EBUSY;
	}
	fabric->fid = (struct fid){ FI_CLASS_FABRIC, context, &plain_ops };
	fabric->ops = &fabric_ops;
	*out = fabric;
	return 0;
}

/* Offered by name only, and only where lies are wanted. */
static int getinfo(uint32_t version, const char *node, const char *service,
		   uint64_t flags, const struct fi_info *hints,
		   struct fi_info **out)
{
	struct fi_info *info;

	if (!getenv("TANDEM_LIE") || !hints || !hints->fabric_attr->prov_name ||
	    hints->caps & FI_PEER || hints->ep_attr->type != FI_EP_RDM)
		return -FI_ENODATA;
	info = fi_allocinfo();
	if (!info)
		return -FI_ENOMEM;
	info->caps = hints->caps;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->max_msg_size = SIZE_MAX;
	info->domain_attr->threading = FI_THREAD_DOMAIN;
	info->domain_attr->progress = FI_PROGRESS_MANUAL;
	info->domain_attr->name = strdup("liarowner");
	info->fabric_attr->name = strdup("liarowner");
	*out = info;
	return 0;
}

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	static struct fi_provider liar = { .version = FI_VERSION(0, 1),
					   .name = "liarowner",
					   .getinfo = getinfo,
					   .fabric = fabric_open };

	liar.fi_version = fi_version();
	return &liar;
}
