/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of the provider and the rules for hints: an attribute is granted,
 * lowered to the value of the hint, or refused with -FI_ENODATA. See getinfo.h.
 * Every refusal names the attribute in the log, tcp/refuse.h.
 *
 * No state but the arguments: no lock.
 * Spec: fi_getinfo(3), fi_domain(3), fi_endpoint(3).
 */
#include "tcp/attr.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/auth.h"
#include "base/base.h"
#include "tcp/getinfo.h"
#include "tcp/peer_attr.h"
#include "tcp/provider.h"
#include "tcp/refuse.h"
#include "tdm_info.h"
#include "tdm_space.h"
#include "tdm_xfer.h"

static void base_context(struct fi_info *i)
{
	i->tx_attr->caps = TDM_TX_CAPS & ~TDM_DEAR_CAPS;
	i->tx_attr->op_flags = 0;
	i->tx_attr->msg_order = TDM_MSG_ORDER;
	i->tx_attr->inject_size = TDM_INJECT_BYTES;
	i->tx_attr->size = TDM_DEFAULT_CTX_SIZE;
	i->tx_attr->iov_limit = TDM_IOV_LIMIT;
	i->tx_attr->rma_iov_limit = TDM_RMA_IOV_LIMIT;
	i->rx_attr->caps = TDM_RX_CAPS & ~(TDM_NAMED_RX_CAPS | TDM_DEAR_CAPS);
	i->rx_attr->msg_order = TDM_MSG_ORDER;
	i->rx_attr->size = TDM_DEFAULT_CTX_SIZE;
	i->rx_attr->iov_limit = TDM_IOV_LIMIT;
	i->ep_attr->type = FI_EP_RDM;
	i->ep_attr->protocol = tdm_info_protocol();
	i->ep_attr->protocol_version = TDM_PROTO_VERSION;
	i->ep_attr->max_msg_size = TDM_MAX_MSG_BYTES;
	/*
	 * Only atomic operations are ordered by default; they can have any size
	 * up to this.
	 */
	i->ep_attr->max_order_raw_size = TDM_AMO_BYTES;
	i->ep_attr->max_order_war_size = TDM_AMO_BYTES;
	i->ep_attr->max_order_waw_size = TDM_AMO_BYTES;
	i->ep_attr->mem_tag_format = TDM_TAG_FORMAT;
	i->ep_attr->tx_ctx_cnt = 1;
	i->ep_attr->rx_ctx_cnt = 1;
}

static void base_domain(struct fi_domain_attr *d)
{
	d->threading = FI_THREAD_SAFE;
	d->control_progress = FI_PROGRESS_MANUAL;
	d->data_progress = FI_PROGRESS_MANUAL;
	d->resource_mgmt = FI_RM_ENABLED;
	d->av_type = FI_AV_UNSPEC; /* either kind, the same indices */
	d->mr_mode = 0;
	d->mr_key_size = TDM_MR_KEY_BYTES;
	d->cq_data_size = TDM_CQ_DATA_BYTES;
	d->cq_cnt = TDM_MAX_QUEUES;
	d->ep_cnt = TDM_MAX_EPS;
	d->tx_ctx_cnt = TDM_MAX_EPS;
	d->rx_ctx_cnt = TDM_MAX_EPS;
	d->max_ep_tx_ctx = TDM_MAX_CONTEXTS;
	d->max_ep_rx_ctx = TDM_MAX_CONTEXTS;
	d->max_ep_stx_ctx = TDM_MAX_EPS;
	d->max_ep_srx_ctx = TDM_MAX_EPS;
	d->cntr_cnt = TDM_MAX_CNTRS;
	d->mr_iov_limit = TDM_IOV_LIMIT;
	d->caps = TDM_DOMAIN_CAPS;
	d->max_err_data = sizeof(struct sockaddr_in6);
	d->mr_cnt = TDM_MAX_MRS;
	d->max_ep_auth_key = TDM_AUTH_KEYS_MOST;
}

struct fi_info *tdm_info_base(void)
{
	struct fi_info *i = fi_allocinfo();

	if (!i)
		return NULL;
	i->caps = TDM_FREE_CAPS;
	base_context(i);
	base_domain(i->domain_attr);
	return i;
}

/*
 * Check a hint whose bits must be among @ours; @type is the type of their
 * names.
 */
static int subset(const char *what, enum fi_type type, uint64_t asked,
		  uint64_t ours)
{
	return asked & ~ours ? tdm_refuse_bits(what, type, asked & ~ours) : 0;
}

/* Check a hint for an amount that must be at most @ours. */
static int at_most(const char *what, size_t asked, size_t ours)
{
	return asked > ours ? tdm_refuse_amount(what, asked, ours) : 0;
}

#define MSG_SIDES (FI_SEND | FI_RECV)
#define RMA_SIDES (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Returns both directions of each kind in @caps that names no direction. */
static uint64_t open_sides(uint64_t caps)
{
	uint64_t sides = 0;

	if (!(caps & MSG_SIDES) &&
	    (caps & (FI_MSG | FI_TAGGED | FI_COLLECTIVE)))
		sides |= MSG_SIDES;
	if (!(caps & RMA_SIDES) && (caps & TDM_ONE_SIDED))
		sides |= RMA_SIDES;
	return sides;
}

/*
 * Returns the capabilities granted: those requested, both directions when none
 * was named, and those that cost nothing. FI_SOURCE costs a store per
 * completion and is granted on request only, and so are TDM_STRICT_CAPS.
 */
static uint64_t grant_caps(uint64_t asked)
{
	const uint64_t peer = asked & FI_PEER;

	if (!(asked & ~(peer | FI_AV_USER_ID)) && peer)
		return (TDM_FREE_CAPS & TDM_PEER_CAPS) | peer;
	if (!asked)
		return TDM_FREE_CAPS;
	return asked | open_sides(asked) | FI_LOCAL_COMM | FI_REMOTE_COMM;
}

uint64_t tdm_caps_side(uint64_t asked, uint64_t side, uint64_t whole)
{
	uint64_t caps = asked & side;

	if (!caps)
		return whole & side;
	return caps | (open_sides(caps) & side & whole);
}

static int check_tx(const struct fi_tx_attr *h)
{
	int ret;

	if ((ret = subset("tx_attr.caps", FI_TYPE_CAPS, h->caps,
			  TDM_CAPS | FI_PEER)) ||
	    (ret = subset("tx_attr.op_flags", FI_TYPE_OP_FLAGS, h->op_flags,
			  TDM_TX_OP_FLAGS)) ||
	    (ret = subset("tx_attr.msg_order", FI_TYPE_MSG_ORDER, h->msg_order,
			  TDM_ORDERS)) ||
	    (ret = subset("tx_attr.comp_order", FI_TYPE_MSG_ORDER,
			  h->comp_order, 0)) ||
	    (ret = at_most("tx_attr.inject_size", h->inject_size,
			   TDM_INJECT_BYTES)) ||
	    (ret = at_most("tx_attr.iov_limit", h->iov_limit, TDM_IOV_LIMIT)) ||
	    (ret = at_most("tx_attr.rma_iov_limit", h->rma_iov_limit,
			   TDM_RMA_IOV_LIMIT)))
		return ret;
	return 0;
}

static int apply_tx(const struct fi_tx_attr *h, struct fi_info *info)
{
	struct fi_tx_attr *a = info->tx_attr;
	int ret;

	a->caps = info->caps & TDM_TX_CAPS;
	if (!h)
		return 0;
	ret = check_tx(h);
	if (ret)
		return ret;
	a->caps = tdm_caps_side(h->caps, TDM_TX_CAPS, info->caps);
	a->op_flags = h->op_flags;
	a->msg_order |= h->msg_order;
	if (h->inject_size)
		a->inject_size = h->inject_size;
	if (h->size)
		a->size = h->size;
	if (h->iov_limit)
		a->iov_limit = h->iov_limit;
	if (h->rma_iov_limit)
		a->rma_iov_limit = h->rma_iov_limit;
	a->tclass = h->tclass;
	return 0;
}

/* fi_getinfo(3), FI_SOURCE_ERR: "Must be paired with FI_SOURCE." */
static int paired(const char *what, uint64_t caps)
{
	return (caps & (FI_SOURCE | FI_SOURCE_ERR)) == FI_SOURCE_ERR ?
		       tdm_refuse_hint(what, "FI_SOURCE_ERR without "
					     "FI_SOURCE") :
		       0;
}

static int check_rx(const struct fi_rx_attr *h)
{
	int ret;

	if ((ret = subset("rx_attr.caps", FI_TYPE_CAPS, h->caps,
			  TDM_CAPS | FI_PEER)) ||
	    (ret = paired("rx_attr.caps", h->caps)) ||
	    (ret = subset("rx_attr.op_flags", FI_TYPE_OP_FLAGS, h->op_flags,
			  TDM_RX_OP_FLAGS)) ||
	    (ret = subset("rx_attr.msg_order", FI_TYPE_MSG_ORDER, h->msg_order,
			  TDM_ORDERS)) ||
	    (ret = subset("rx_attr.comp_order", FI_TYPE_MSG_ORDER,
			  h->comp_order, 0)) ||
	    (ret = at_most("rx_attr.total_buffered_recv",
			   h->total_buffered_recv, 0)) ||
	    (ret = at_most("rx_attr.iov_limit", h->iov_limit, TDM_IOV_LIMIT)))
		return ret;
	return 0;
}

static int apply_rx(const struct fi_rx_attr *h, uint64_t asked,
		    struct fi_info *info)
{
	struct fi_rx_attr *a = info->rx_attr;
	int ret;

	a->caps = info->caps & TDM_RX_CAPS;
	if (!asked)
		a->caps &= ~TDM_NAMED_RX_CAPS;
	if (!h)
		return 0;
	ret = check_rx(h);
	if (ret)
		return ret;
	if (h->caps & TDM_RX_CAPS)
		a->caps = tdm_caps_side(h->caps, TDM_RX_CAPS, info->caps);
	a->op_flags = h->op_flags;
	a->msg_order |= h->msg_order;
	if (h->size)
		a->size = h->size;
	if (h->iov_limit)
		a->iov_limit = h->iov_limit;
	return 0;
}

int tdm_tx_attr_check(const struct fi_tx_attr *attr)
{
	return attr && check_tx(attr) ? -FI_EINVAL : 0;
}

int tdm_rx_attr_check(const struct fi_rx_attr *attr)
{
	return attr && check_rx(attr) ? -FI_EINVAL : 0;
}

/*
 * Set *@ours to the number of contexts that an endpoint will have, or to
 * FI_SHARED_CONTEXT.
 */
static int contexts(const char *what, size_t asked, size_t *ours)
{
	if (!asked)
		return 0;
	if (asked != FI_SHARED_CONTEXT && asked > TDM_MAX_CONTEXTS)
		return tdm_refuse_amount(what, asked, TDM_MAX_CONTEXTS);
	*ours = asked;
	return 0;
}

/*
 * Copy a key of the hints, @size bytes, to *@to and *@bytes; tdm_info_free()
 * overwrites and frees the copy, or fi_freeinfo(3) of the application frees it.
 * Both 0: there is none.
 */
static int apply_key(const char *what, const uint8_t *key, size_t size,
		     uint8_t **to, size_t *bytes)
{
	if (!size && !key)
		return 0;
	if (!key || !tdm_auth_size_ok(size))
		return tdm_refuse_hint(what, key ? "a length that is not "
						   "offered" :
						   "no key");
	*to = malloc(size);
	if (!*to)
		return -FI_ENOMEM;
	memcpy(*to, key, size);
	*bytes = size;
	return 0;
}

/*
 * With FI_AV_AUTH_KEY keys are in the address vector, and neither the domain
 * nor its endpoints have one.
 */
static int apply_domain_key(const struct fi_info *hints, struct fi_info *info)
{
	const struct fi_domain_attr *h = hints->domain_attr;
	struct fi_domain_attr *a = info->domain_attr;

	if (h->auth_key_size == FI_AV_AUTH_KEY) {
		if (h->auth_key ||
		    (hints->ep_attr && hints->ep_attr->auth_key_size))
			return tdm_refuse_hint("auth_key",
					       "a key, and FI_AV_AUTH_KEY");
		a->auth_key_size = FI_AV_AUTH_KEY;
		return 0;
	}
	return apply_key("domain_attr.auth_key", h->auth_key, h->auth_key_size,
			 &a->auth_key, &a->auth_key_size);
}

/*
 * Set *@ours to the length up to which order is kept: any length with @order. A
 * hint above the limit of atomic operations is granted that order.
 */
static int order_size(const char *what, size_t asked, uint64_t order,
		      struct fi_tx_attr *tx, size_t *ours)
{
	if (asked > TDM_MAX_MSG_BYTES)
		return tdm_refuse_amount(what, asked, TDM_MAX_MSG_BYTES);
	if (asked > *ours)
		tx->msg_order |= order;
	if (tx->msg_order & order)
		*ours = TDM_MAX_MSG_BYTES;
	return 0;
}

static int apply_order(const struct fi_ep_attr *h, struct fi_info *info)
{
	static const struct fi_ep_attr none;
	struct fi_ep_attr *a = info->ep_attr;
	int ret;

	h = h ? h : &none;
	if ((ret = order_size("ep_attr.max_order_raw_size",
			      h->max_order_raw_size,
			      FI_ORDER_RAW | FI_ORDER_RMA_RAW, info->tx_attr,
			      &a->max_order_raw_size)) ||
	    (ret = order_size("ep_attr.max_order_war_size",
			      h->max_order_war_size,
			      FI_ORDER_WAR | FI_ORDER_RMA_WAR, info->tx_attr,
			      &a->max_order_war_size)) ||
	    (ret = order_size("ep_attr.max_order_waw_size",
			      h->max_order_waw_size,
			      FI_ORDER_WAW | FI_ORDER_RMA_WAW, info->tx_attr,
			      &a->max_order_waw_size)))
		return ret;
	return 0;
}

static int apply_ep(const struct fi_ep_attr *h, struct fi_info *info)
{
	struct fi_ep_attr *a = info->ep_attr;
	int ret;

	if (!h)
		return 0;
	/* Datagrams may get lost, so a reliable endpoint may serve as one. */
	if (h->type == FI_EP_DGRAM)
		a->type = FI_EP_DGRAM;
	else if (h->type != FI_EP_UNSPEC && h->type != FI_EP_RDM)
		return tdm_refuse_value("ep_attr.type", FI_TYPE_EP_TYPE,
					h->type);
	if (h->protocol != FI_PROTO_UNSPEC && h->protocol != a->protocol)
		return tdm_refuse_value("ep_attr.protocol", FI_TYPE_PROTOCOL,
					h->protocol);
	if (h->protocol_version > a->protocol_version)
		return tdm_refuse_amount("ep_attr.protocol_version",
					 h->protocol_version,
					 a->protocol_version);
	if ((ret = at_most("ep_attr.max_msg_size", h->max_msg_size,
			   TDM_MAX_MSG_BYTES)) ||
	    (ret = at_most("ep_attr.msg_prefix_size", h->msg_prefix_size, 0)) ||
	    (ret = contexts("ep_attr.tx_ctx_cnt", h->tx_ctx_cnt,
			    &a->tx_ctx_cnt)) ||
	    (ret = contexts("ep_attr.rx_ctx_cnt", h->rx_ctx_cnt,
			    &a->rx_ctx_cnt)) ||
	    (ret = apply_key("ep_attr.auth_key", h->auth_key, h->auth_key_size,
			     &a->auth_key, &a->auth_key_size)))
		return ret;
	if (h->mem_tag_format)
		a->mem_tag_format = h->mem_tag_format;
	return 0;
}

/*
 * FI_PROGRESS_AUTO costs a thread, so it is granted on request only.
 * FI_PROGRESS_CONTROL_UNIFIED may come in either member: data_progress is also
 * called progress.
 */
static int progress(const char *what, enum fi_progress asked,
		    enum fi_progress *granted)
{
	switch (asked) {
	case FI_PROGRESS_UNSPEC:
		return 0;
	case FI_PROGRESS_AUTO:
	case FI_PROGRESS_MANUAL:
	case FI_PROGRESS_CONTROL_UNIFIED:
		*granted = asked;
		return 0;
	}
	return tdm_refuse_value(what, FI_TYPE_PROGRESS, asked);
}

/* Levels: a hint is granted as it is. */
static int apply_levels(const struct fi_domain_attr *h,
			struct fi_domain_attr *a)
{
	int ret;

	switch (h->threading) {
	case FI_THREAD_UNSPEC:
		break;
	case FI_THREAD_SAFE:
	case FI_THREAD_FID:
	case FI_THREAD_DOMAIN:
	case FI_THREAD_COMPLETION:
	case FI_THREAD_ENDPOINT:
		a->threading = h->threading;
		break;
	default:
		return tdm_refuse_value("domain_attr.threading",
					FI_TYPE_THREADING, h->threading);
	}
	if ((ret = progress("domain_attr.control_progress", h->control_progress,
			    &a->control_progress)) ||
	    (ret = progress("domain_attr.data_progress", h->data_progress,
			    &a->data_progress)))
		return ret;
	if (h->resource_mgmt == FI_RM_DISABLED ||
	    h->resource_mgmt == FI_RM_ENABLED)
		a->resource_mgmt = h->resource_mgmt;
	else if (h->resource_mgmt != FI_RM_UNSPEC)
		return tdm_refuse_hint("domain_attr.resource_mgmt",
				       "no value of this attribute");
	if (h->av_type == FI_AV_MAP || h->av_type == FI_AV_TABLE)
		a->av_type = h->av_type;
	else if (h->av_type != FI_AV_UNSPEC)
		return tdm_refuse_value("domain_attr.av_type", FI_TYPE_AV_TYPE,
					h->av_type);
	return 0;
}

/* Only memory limits these numbers, so a hint is granted as it is. */
static void apply_open_counts(const struct fi_domain_attr *h,
			      struct fi_domain_attr *a)
{
	a->cq_cnt = tdm_max(a->cq_cnt, h->cq_cnt);
	a->ep_cnt = tdm_max(a->ep_cnt, h->ep_cnt);
	a->tx_ctx_cnt = tdm_max(a->tx_ctx_cnt, h->tx_ctx_cnt);
	a->rx_ctx_cnt = tdm_max(a->rx_ctx_cnt, h->rx_ctx_cnt);
	a->max_ep_stx_ctx = tdm_max(a->max_ep_stx_ctx, h->max_ep_stx_ctx);
	a->max_ep_srx_ctx = tdm_max(a->max_ep_srx_ctx, h->max_ep_srx_ctx);
	a->cntr_cnt = tdm_max(a->cntr_cnt, h->cntr_cnt);
	a->mr_cnt = tdm_max(a->mr_cnt, h->mr_cnt);
	/* A larger bound than ours is granted: our error data fits it. */
	a->max_err_data = tdm_max(a->max_err_data, h->max_err_data);
}

static int check_counts(const struct fi_domain_attr *h,
			const struct fi_domain_attr *a)
{
	int ret;

	if ((ret = at_most("domain_attr.max_ep_tx_ctx", h->max_ep_tx_ctx,
			   a->max_ep_tx_ctx)) ||
	    (ret = at_most("domain_attr.max_ep_rx_ctx", h->max_ep_rx_ctx,
			   a->max_ep_rx_ctx)) ||
	    (ret = at_most("domain_attr.mr_iov_limit", h->mr_iov_limit,
			   a->mr_iov_limit)) ||
	    (ret = at_most("domain_attr.mr_key_size", h->mr_key_size,
			   a->mr_key_size)) ||
	    (ret = at_most("domain_attr.cq_data_size", h->cq_data_size,
			   a->cq_data_size)) ||
	    (ret = at_most("domain_attr.max_ep_auth_key", h->max_ep_auth_key,
			   a->max_ep_auth_key)) ||
	    (ret = at_most("domain_attr.max_group_id", h->max_group_id,
			   TDM_SPACE_GROUP_MOST)))
		return ret;
	return 0;
}

/*
 * FI_MR_BASIC and FI_MR_SCALABLE stand alone, fi_domain(3). Until API 1.5 they
 * were the two values of mr_mode, and callers of that time know no other.
 */
enum { MR_BASIC = 1, MR_SCALABLE = 2 };

static int mr_mode(uint32_t version, int asked)
{
	if (asked == MR_BASIC || asked == MR_SCALABLE)
		return asked;
	return FI_VERSION_LT(version, FI_VERSION(1, 5)) ? MR_BASIC : 0;
}

static int apply_domain(uint32_t version, const struct fi_domain_attr *h,
			struct fi_info *info)
{
	struct fi_domain_attr *a = info->domain_attr;
	int ret;

	if (!h)
		return 0;
	ret = apply_levels(h, a);
	if (!ret)
		ret = check_counts(h, a);
	if (!ret)
		ret = subset("domain_attr.caps", FI_TYPE_CAPS, h->caps,
			     a->caps);
	if (ret)
		return ret;
	apply_open_counts(h, a);
	a->mr_mode = mr_mode(version, h->mr_mode);
	a->tclass = h->tclass;
	a->domain = h->domain;
	if (info->caps & FI_COLLECTIVE && h->max_group_id >= TDM_COLL_GROUP)
		return tdm_refuse_amount("domain_attr.max_group_id",
					 h->max_group_id, TDM_COLL_GROUP - 1);
	/* An application that does not ask for groups has none. */
	a->max_group_id = h->max_group_id;
	return 0;
}

int tdm_info_apply(uint32_t version, const struct fi_info *hints,
		   struct fi_info *info)
{
	uint64_t ours = TDM_CAPS;
	int ret;

	info->domain_attr->mr_mode = mr_mode(version, 0);
	if (!hints)
		return 0;
	if (hints->caps & FI_PEER) {
		ours = TDM_PEER_CAPS;
		tdm_peer_base(info);
	}
	if ((ret = subset("caps", FI_TYPE_CAPS, hints->caps, ours)) ||
	    (ret = paired("caps", hints->caps)))
		return ret;
	info->caps = grant_caps(hints->caps);
	if ((ret = apply_tx(hints->tx_attr, info)) ||
	    (ret = apply_rx(hints->rx_attr, hints->caps, info)) ||
	    (ret = apply_order(hints->ep_attr, info)) ||
	    (ret = apply_ep(hints->ep_attr, info)) ||
	    (ret = apply_domain(version, hints->domain_attr, info)))
		return ret;
	if (hints->domain_attr) {
		ret = apply_domain_key(hints, info);
		if (!ret && hints->caps & FI_PEER)
			ret = tdm_peer_check(info->domain_attr);
		if (ret)
			return ret;
	}
	if (hints->fabric_attr) {
		if (hints->fabric_attr->prov_version > tdm_prov.version)
			return tdm_refuse_amount(
				"fabric_attr.prov_version",
				hints->fabric_attr->prov_version,
				tdm_prov.version);
		info->fabric_attr->fabric = hints->fabric_attr->fabric;
	}
	info->handle = hints->handle;
	return 0;
}

int tdm_info_check(const struct fi_info *info)
{
	struct fi_info *tmp = tdm_info_base();
	int ret;

	if (!tmp)
		return -FI_ENOMEM;
	ret = tdm_info_apply(fi_version(), info, tmp);
	tdm_info_free(tmp);
	return ret && ret != -FI_ENOMEM ? -FI_EINVAL : ret;
}
