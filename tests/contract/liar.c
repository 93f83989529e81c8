/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects of the provider of liar.h, and the provider. Lock: see there. */
#include "tests/contract/liar.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

struct liar_ep *liar_endpoints;
static uint64_t names;

int liar_lies(const char *what)
{
	const char *lie = getenv("TANDEM_LIE");

	return lie && !strcmp(lie, what);
}

static int close_object(struct fid *fid)
{
	free(fid);
	return liar_lies("nothing closes") ? -FI_EBUSY : 0;
}

static struct fi_ops plain_ops = { .size = sizeof(plain_ops),
				   .close = close_object };

/* A new object of @bytes, which begins with its fid; NULL: it is refused. */
static void *object(size_t bytes, size_t fclass, const char *refusal)
{
	struct fid *fid = liar_lies(refusal) ? NULL : calloc(1, bytes);

	if (fid)
		*fid = (struct fid){ .fclass = fclass, .ops = &plain_ops };
	return fid;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct liar_ep *ep;
	struct liar_msg *m;

	liar_call_late();
	for (ep = liar_endpoints; ep; ep = ep->next) {
		while (&ep->rx->fid == fid && (m = ep->arrived)) {
			ep->arrived = m->next;
			if (!liar_arrive(ep, m))
				continue;
			ep->arrived = m;
			break;
		}
	}
	return liar_lies("progress fails") ? -FI_EIO : -FI_EAGAIN;
}

static struct fi_ops_cq cq_ops = { .size = sizeof(cq_ops), .read = cq_read };

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		   struct fid_cq **out, void *context)
{
	struct liar_cq *cq = object(sizeof(*cq), FI_CLASS_CQ, "no cq");

	if (!cq)
		return -FI_ENOSYS;
	cq->fid.ops = &cq_ops;
	cq->owner = ((const struct fi_peer_cq_context *)context)->cq;
	*out = &cq->fid;
	return 0;
}

static int srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		    struct fid_ep **out, void *context)
{
	struct liar_srx *srx = object(sizeof(*srx), FI_CLASS_SRX_CTX, "no srx");

	if (!srx)
		return -FI_ENOSYS;
	srx->owner = ((const struct fi_peer_srx_context *)context)->srx;
	if (!liar_lies("no calls of the peer"))
		srx->owner->peer_ops = &liar_srx_ops;
	*out = &srx->fid;
	return 0;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct liar_av *av = (struct liar_av *)fid;
	const uint64_t *name = addr;
	struct liar_ep *ep;
	size_t i;

	if (liar_lies("insert fails"))
		return -FI_EINVAL;
	if (liar_lies("insert returns 0"))
		return 0;
	for (i = 0; i < count && av->count < LIAR_ADDRS_MOST;
	     i++, av->count++) {
		av->name[av->count] = *name;
		av->user_id[av->count] = flags & FI_AV_USER_ID ? fi_addr[i] :
								 av->count;
		fi_addr[i] = liar_lies("insert gives a huge address") ?
				     FI_ADDR_UNSPEC - 1 :
				     av->count;
	}
	for (ep = liar_endpoints; ep; ep = ep->next) {
		if (ep->av == av)
			ep->srx->owner->owner_ops->foreach_unspec_addr(
				ep->srx->owner, liar_source);
	}
	return liar_lies("insert returns 7") ? 7 : (int)i;
}

static struct fi_ops_av av_ops = { .size = sizeof(av_ops),
				   .insert = av_insert };

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		   struct fid_av **out, void *context)
{
	*out = object(sizeof(struct liar_av), FI_CLASS_AV, "no av");
	if (!*out)
		return -FI_ENOSYS;
	(*out)->ops = &av_ops;
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct liar_ep *ep = (struct liar_ep *)fid;

	if (liar_lies("no bind"))
		return -FI_EINVAL;
	if (bfid->fclass == FI_CLASS_AV)
		ep->av = (struct liar_av *)bfid;
	else if (bfid->fclass == FI_CLASS_SRX_CTX)
		ep->srx = (struct liar_srx *)bfid;
	else if (flags & FI_TRANSMIT)
		ep->tx = (struct liar_cq *)bfid;
	else
		ep->rx = (struct liar_cq *)bfid;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct liar_ep *ep = (struct liar_ep *)fid;

	if (command != FI_ENABLE || liar_lies("no enable"))
		return -FI_EINVAL;
	ep->name = ++names;
	ep->next = liar_endpoints;
	liar_endpoints = ep;
	return 0;
}

static int ep_close(struct fid *fid)
{
	struct liar_ep *ep = (struct liar_ep *)fid, **at = &liar_endpoints;
	struct liar_msg *m;

	while (*at && *at != ep)
		at = &(*at)->next;
	if (*at)
		*at = ep->next;
	while ((m = ep->arrived)) {
		ep->arrived = m->next;
		free(m);
	}
	if (ep->srx)
		liar_late.srx = ep->srx->owner;
	if (ep->rx)
		liar_late.rx = ep->rx->owner;
	if (ep->tx)
		liar_late.tx = ep->tx->owner;
	return close_object(fid);
}

static int ep_getname(fid_t fid, void *addr, size_t *len)
{
	uint64_t name[2] = { ((struct liar_ep *)fid)->name };
	size_t room = *len;

	*len = sizeof(name);
	if (room < *len || liar_lies("no name"))
		return -FI_ETOOSMALL;
	memcpy(addr, name, sizeof(name));
	if (liar_lies("name is empty"))
		*len = 0;
	if (liar_lies("name is longer than its room"))
		*len = room + 100;
	return 0;
}

static struct fi_ops ep_fi_ops = { .size = sizeof(ep_fi_ops),
				   .close = ep_close,
				   .bind = ep_bind,
				   .control = ep_control };
static struct fi_ops_cm cm_ops = { .size = sizeof(cm_ops),
				   .getname = ep_getname };

static int ep_open(struct fid_domain *domain, struct fi_info *info,
		   struct fid_ep **out, void *context)
{
	*out = object(sizeof(struct liar_ep), FI_CLASS_EP, "no endpoint");
	if (!*out)
		return -FI_ENOSYS;
	(*out)->fid.ops = &ep_fi_ops;
	(*out)->cm = &cm_ops;
	(*out)->msg = &liar_msg_ops;
	(*out)->tagged = &liar_tagged_ops;
	return 0;
}

/* The provider forgets what the domain had imported. */
static int domain_close(struct fid *fid)
{
	memset(&liar_late, 0, sizeof(liar_late));
	return close_object(fid);
}

static struct fi_ops domain_fi_ops = { .size = sizeof(domain_fi_ops),
				       .close = domain_close };
static struct fi_ops_domain domain_ops = { .size = sizeof(domain_ops),
					   .av_open = av_open,
					   .cq_open = cq_open,
					   .endpoint = ep_open,
					   .srx_ctx = srx_open };

static int domain_open(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **out, void *context)
{
	*out = object(sizeof(struct fid_domain), FI_CLASS_DOMAIN, "no domain");
	if (!*out)
		return -FI_ENOSYS;
	(*out)->fid.ops = &domain_fi_ops;
	(*out)->ops = &domain_ops;
	return 0;
}

static struct fi_ops_fabric fabric_ops = { .size = sizeof(fabric_ops),
					   .domain = domain_open };

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out,
		       void *context)
{
	*out = object(sizeof(struct fid_fabric), FI_CLASS_FABRIC, "no fabric");
	if (!*out)
		return -FI_ENOSYS;
	(*out)->ops = &fabric_ops;
	return 0;
}

/* Offered to owners only, and only where lies are wanted. */
static int getinfo(uint32_t version, const char *node, const char *service,
		   uint64_t flags, const struct fi_info *hints,
		   struct fi_info **out)
{
	struct fi_info *info;

	if (!getenv("TANDEM_LIE") || liar_lies("no info") || !hints ||
	    !(hints->caps & FI_PEER) || liar_lies("no sharing"))
		return -FI_ENODATA;
	if (liar_lies("no user ids") && hints->caps & FI_AV_USER_ID)
		return -FI_ENODATA;
	info = fi_allocinfo();
	if (!info)
		return -FI_ENOMEM;
	info->caps = hints->caps;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->max_msg_size = liar_lies("short messages") ? 4096 :
								    SIZE_MAX;
	info->tx_attr->inject_size = 64;
	info->tx_attr->iov_limit = liar_lies("no vectors") ? 0 : 4;
	info->tx_attr->msg_order = liar_lies("no order") ? 0 : FI_ORDER_SAS;
	info->rx_attr->iov_limit = liar_lies("one element") ? 1 : 4;
	info->rx_attr->msg_order = FI_ORDER_SAS;
	info->domain_attr->threading = FI_THREAD_DOMAIN;
	info->domain_attr->progress = FI_PROGRESS_MANUAL;
	info->domain_attr->cq_data_size = liar_lies("no data") ? 0 : 8;
	info->domain_attr->name = strdup("liar");
	info->fabric_attr->name = strdup("liar");
	*out = info;
	return 0;
}

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	static struct fi_provider liar = { .version = FI_VERSION(0, 1),
					   .name = "liar",
					   .getinfo = getinfo,
					   .fabric = fabric_open };

	liar.fi_version = fi_version();
	return &liar;
}
