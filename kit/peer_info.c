/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer provider of the kit: what it offers, its fabric and domain; see peer.h.
 *
 * Lock: none; see peer.h.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "kit/peer_priv.h"
#include "kit/rule.h"

/* ---- domain --------------------------------------------------------------- */

static int domain_close(struct fid *fid)
{
	struct kit_peer_domain *d = (struct kit_peer_domain *)fid;

	if (d->lent && fid->fclass == FI_CLASS_DOMAIN &&
	    (d->lent->ops != d->copy.ops ||
	     d->lent->fid.fclass != d->copy.fid.fclass))
		kit_peer_fault(KIT_ON_STAYS, "the domain that was lent changed "
					     "before the peer's was closed");
	return kit_peer_close(fid);
}

static struct fi_ops domain_fi_ops = { .size = sizeof(domain_fi_ops),
				       .close = domain_close,
				       .bind = kit_peer_no_bind,
				       .control = kit_peer_no_control,
				       .ops_open = kit_peer_no_ops };

static int no_mr_reg(struct fid *fid, const void *buf, size_t len,
		     uint64_t access, uint64_t offset, uint64_t requested_key,
		     uint64_t flags, struct fid_mr **mr, void *context)
{
	return -FI_ENOSYS;
}

static int no_mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
		      uint64_t access, uint64_t offset, uint64_t requested_key,
		      uint64_t flags, struct fid_mr **mr, void *context)
{
	return -FI_ENOSYS;
}

static int no_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			 uint64_t flags, struct fid_mr **mr)
{
	return -FI_ENOSYS;
}

static struct fi_ops_mr mr_ops = { .size = sizeof(mr_ops),
				   .reg = no_mr_reg,
				   .regv = no_mr_regv,
				   .regattr = no_mr_regattr };

static int domain_open(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **out, void *context)
{
	struct kit_peer_domain *d;
	int ret = kit_peer_make(sizeof(*d), FI_CLASS_DOMAIN, NULL, &d);

	kit_step("fi_domain by the owner");
	if (ret)
		return ret;
	d->fid.fid.ops = &domain_fi_ops;
	d->fid.ops = &kit_peer_domain_ops;
	d->fid.mr = &mr_ops;
	*out = &d->fid;
	if (!info || !(info->caps & FI_PEER))
		kit_peer_fault(KIT_ON_INFO,
			       "the domain is opened with an info of "
			       "fi_getinfo without FI_PEER");
	return 0;
}

static int domain2_open(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **out, uint64_t flags, void *context)
{
	const struct fi_peer_domain_context *lent = context;
	struct kit_peer_domain *d;
	int ret;

	ret = domain_open(fabric, info, out, context);
	if (ret || !(flags & FI_PEER))
		return ret;
	kit_peer_seen.imports[KIT_DOMAIN]++;
	kit_look_domain(lent);
	if (!lent || !lent->domain)
		return -FI_EINVAL;
	d = (struct kit_peer_domain *)*out;
	d->lent = lent->domain;
	d->copy = *lent->domain;
	return 0;
}

/* ---- event queue ---------------------------------------------------------- */

static int eq_close(struct fid *fid)
{
	struct kit_peer_eq *eq = (struct kit_peer_eq *)fid;

	if (eq->lent && fid->fclass == FI_CLASS_EQ &&
	    (eq->lent->ops != eq->copy.ops ||
	     eq->lent->fid.fclass != eq->copy.fid.fclass))
		kit_peer_fault(KIT_ON_STAYS, "the event queue that was lent "
					     "changed before the peer's was "
					     "closed");
	return kit_peer_close(fid);
}

static struct fi_ops eq_fi_ops = { .size = sizeof(eq_fi_ops),
				   .close = eq_close,
				   .bind = kit_peer_no_bind,
				   .control = kit_peer_no_control,
				   .ops_open = kit_peer_no_ops };

static int eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		   struct fid_eq **out, void *context)
{
	const struct fi_peer_eq_context *lent = context;
	struct kit_peer_eq *eq;
	int ret = kit_peer_make(sizeof(*eq), FI_CLASS_EQ, NULL, &eq);

	if (ret)
		return ret;
	eq->fid.fid.ops = &eq_fi_ops;
	*out = &eq->fid;
	if (!attr || !(attr->flags & FI_PEER))
		return 0;
	kit_peer_seen.imports[KIT_EQ]++;
	kit_look_eq(lent);
	if (!lent || !lent->eq)
		return -FI_EINVAL;
	eq->lent = lent->eq;
	eq->copy = *lent->eq;
	return 0;
}

/* ---- fabric, info --------------------------------------------------------- */

static struct fi_ops_fabric fabric_ops = { .size = sizeof(fabric_ops),
					   .domain = domain_open,
					   .eq_open = eq_open,
					   .domain2 = domain2_open };

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out,
		       void *context)
{
	struct fid_fabric *fabric;
	int ret = kit_peer_make(sizeof(*fabric), FI_CLASS_FABRIC, context,
				&fabric);

	if (ret)
		return ret;
	fabric->ops = &fabric_ops;
	*out = fabric;
	return 0;
}

static const uint64_t all_caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV |
				 FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV |
				 FI_LOCAL_COMM | FI_REMOTE_COMM | FI_PEER |
				 FI_AV_USER_ID;

static void describe(struct fi_info *info, uint64_t caps)
{
	const uint64_t flags = FI_COMPLETION | FI_INJECT_COMPLETE |
			       FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;

	info->caps = caps;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->max_msg_size = SIZE_MAX;
	info->ep_attr->tx_ctx_cnt = 1;
	info->ep_attr->rx_ctx_cnt = 1;
	info->tx_attr->caps = caps & ~(uint64_t)FI_RECV;
	info->tx_attr->op_flags = flags;
	info->tx_attr->inject_size = 64;
	info->tx_attr->size = 1024;
	info->tx_attr->iov_limit = 4;
	info->tx_attr->msg_order = FI_ORDER_SAS;
	info->rx_attr->caps = caps & ~(uint64_t)FI_SEND;
	info->rx_attr->size = 1024;
	info->rx_attr->iov_limit = 4;
	info->rx_attr->msg_order = FI_ORDER_SAS;
	info->domain_attr->threading = FI_THREAD_SAFE;
	info->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	info->domain_attr->resource_mgmt = FI_RM_ENABLED;
	info->domain_attr->av_type = FI_AV_TABLE;
	info->domain_attr->cq_data_size = 8;
	info->domain_attr->cq_cnt = info->domain_attr->ep_cnt = 1024;
	info->domain_attr->cntr_cnt = 1024;
	info->domain_attr->caps = caps & (FI_LOCAL_COMM | FI_REMOTE_COMM |
					  FI_PEER | FI_AV_USER_ID);
}

static int getinfo(uint32_t version, const char *node, const char *service,
		   uint64_t flags, const struct fi_info *hints,
		   struct fi_info **out)
{
	const uint64_t caps = hints ? hints->caps : 0;
	struct fi_info *info;

	/* A search for any provider must not find this one. */
	if (!hints || !hints->fabric_attr || !hints->fabric_attr->prov_name ||
	    !strstr(hints->fabric_attr->prov_name, KIT_PEER_NAME))
		return -FI_ENODATA;
	kit_peer_seen.infos++;
	kit_peer_seen.shared += !!(caps & FI_PEER);
	if (kit_peer_do.refuse_info || caps & ~all_caps)
		return -FI_ENODATA;
	if (hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC &&
	    hints->ep_attr->type != FI_EP_RDM)
		return -FI_ENODATA;
	info = fi_allocinfo();
	if (!info)
		return -FI_ENOMEM;
	describe(info, caps ? caps : all_caps);
	info->domain_attr->name = strdup(KIT_PEER_NAME);
	info->fabric_attr->name = strdup(KIT_PEER_NAME);
	*out = info;
	return 0;
}

struct fi_provider *kit_peer_provider(void)
{
	static struct fi_provider prov = { .version = FI_VERSION(1, 0),
					   .name = KIT_PEER_NAME,
					   .getinfo = getinfo,
					   .fabric = fabric_open };

	prov.fi_version = fi_version();
	return &prov;
}
