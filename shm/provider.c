/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shared-memory peer's provider entry: its attributes and its fabric.
 * It is never registered with the libfabric core; the owner calls the entry.
 * All that messages come through opens only with FI_PEER.
 *
 * Locking: getinfo and fabric hold no state and may run anywhere; the rest of
 * the folder runs with the owner's domain lock held.
 * Spec: fi_provider(7), fi_getinfo(3), fi_peer(3).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

#include "shm/domain.h"
#include "shm/ep.h"
#include "tdm_info.h"
#include "tdm_nosys.h"

static struct fi_provider shm_prov;

#define SHM_TX_CAPS (FI_SEND | FI_READ | FI_WRITE)
#define SHM_RX_CAPS                                                            \
	(FI_RECV | FI_DIRECTED_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define SHM_PRIMARY                                                            \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | SHM_TX_CAPS | SHM_RX_CAPS)
#define SHM_CAPS (SHM_PRIMARY | FI_SOURCE | FI_LOCAL_COMM | FI_PEER)
#define SHM_OP_FLAGS (FI_COMPLETION | FI_INJECT | TDM_LEVELS | FI_MORE)

enum {
	SHM_QUEUE_DEFAULT = 1024,
	/* what owners pass on as their own; a hint gets more */
	SHM_IOV_DEFAULT = 4,
};

static void info_fill(struct fi_info *info)
{
	info->caps = SHM_CAPS;
	info->addr_format = FI_SOCKADDR;
	info->tx_attr->caps = SHM_CAPS & ~SHM_RX_CAPS;
	info->tx_attr->msg_order = FI_ORDER_SAS;
	info->tx_attr->inject_size = TDM_INJECT_BYTES;
	info->tx_attr->size = SHM_QUEUE_DEFAULT;
	info->tx_attr->iov_limit = SHM_IOV_DEFAULT;
	info->rx_attr->caps = SHM_CAPS & ~SHM_TX_CAPS;
	info->rx_attr->msg_order = FI_ORDER_SAS;
	info->rx_attr->size = SHM_QUEUE_DEFAULT;
	info->rx_attr->iov_limit = SHM_IOV_DEFAULT;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->protocol = FI_PROTO_UNSPEC;
	info->ep_attr->protocol_version = TDM_SHM_VERSION_MOST;
	info->ep_attr->max_msg_size = SIZE_MAX / 2;
	info->ep_attr->tx_ctx_cnt = 1;
	info->ep_attr->rx_ctx_cnt = 1;
	info->domain_attr->caps = FI_LOCAL_COMM | FI_PEER | FI_AV_USER_ID;
	info->domain_attr->threading = FI_THREAD_DOMAIN;
	info->domain_attr->progress = FI_PROGRESS_MANUAL;
	info->domain_attr->resource_mgmt = FI_RM_ENABLED;
	info->domain_attr->av_type = FI_AV_TABLE;
	info->domain_attr->cq_data_size = 8;
	info->domain_attr->cq_cnt = 256;
	info->domain_attr->cntr_cnt = 256;
	info->domain_attr->ep_cnt = 256;
	info->domain_attr->max_ep_tx_ctx = 1;
	info->domain_attr->max_ep_rx_ctx = 1;
	info->domain_attr->max_ep_srx_ctx = 256;
	info->domain_attr->mr_iov_limit = 1;
	info->fabric_attr->prov_version = FI_VERSION(0, 1);
}

static int hints_fit(const struct fi_info *hints)
{
	const struct fi_tx_attr *tx = hints->tx_attr;
	const struct fi_rx_attr *rx = hints->rx_attr;

	if (hints->caps & ~(SHM_CAPS | FI_AV_USER_ID))
		return 0;
	if (hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC &&
	    hints->ep_attr->type != FI_EP_RDM)
		return 0;
	if (hints->domain_attr &&
	    (hints->domain_attr->caps &
		     ~(FI_LOCAL_COMM | FI_PEER | FI_AV_USER_ID) ||
	     hints->domain_attr->max_group_id > TDM_SPACE_GROUP_MOST))
		return 0;
	if (tx && (tx->inject_size > TDM_INJECT_BYTES ||
		   tx->iov_limit > TDM_IOV_LIMIT))
		return 0;
	return !rx || rx->iov_limit <= TDM_IOV_LIMIT;
}

static void hints_take(struct fi_info *info, const struct fi_info *hints)
{
	if (hints->caps)
		info->caps = hints->caps | FI_PEER;
	if (hints->addr_format)
		info->addr_format = hints->addr_format;
	if (hints->tx_attr) {
		info->tx_attr->op_flags = hints->tx_attr->op_flags &
					  SHM_OP_FLAGS;
		if (hints->tx_attr->size)
			info->tx_attr->size = hints->tx_attr->size;
		info->tx_attr->iov_limit = tdm_max(info->tx_attr->iov_limit,
						   hints->tx_attr->iov_limit);
	}
	if (hints->rx_attr) {
		info->rx_attr->op_flags = hints->rx_attr->op_flags;
		if (hints->rx_attr->size)
			info->rx_attr->size = hints->rx_attr->size;
		info->rx_attr->iov_limit = tdm_max(info->rx_attr->iov_limit,
						   hints->rx_attr->iov_limit);
	}
	if (hints->domain_attr && hints->domain_attr->threading)
		info->domain_attr->threading = hints->domain_attr->threading;
	if (!hints->domain_attr)
		return;
	info->domain_attr->max_group_id = hints->domain_attr->max_group_id;
	if (hints->domain_attr->auth_key_size == FI_AV_AUTH_KEY)
		info->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
}

static int shm_getinfo(uint32_t version, const char *node, const char *service,
		       uint64_t flags, const struct fi_info *hints,
		       struct fi_info **out)
{
	struct fi_info *info;

	if (node || service || (hints && !hints_fit(hints)))
		return -FI_ENODATA;
	info = fi_allocinfo();
	if (!info)
		return -FI_ENOMEM;
	info_fill(info);
	info->fabric_attr->name = strdup(shm_prov.name);
	info->domain_attr->name = strdup(shm_prov.name);
	if (!info->fabric_attr->name || !info->domain_attr->name) {
		tdm_info_free(info);
		return -FI_ENOMEM;
	}
	if (hints)
		hints_take(info, hints);
	*out = info;
	return 0;
}

static int fabric_close(struct fid *fid)
{
	struct tdm_shm_fabric *fabric =
		tdm_container_of(fid, struct tdm_shm_fabric, fid.fid);

	if (fabric->refs)
		return -FI_EBUSY;
	free(fabric);
	return 0;
}

/* fi_domain(3) carries no FI_PEER: the domain imports none. */
static int fabric_domain(struct fid_fabric *fid, struct fi_info *info,
			 struct fid_domain **domain, void *context)
{
	return tdm_shm_domain_open(fid, info, domain, 0, context);
}

static struct fi_ops fabric_fi_ops = {
	.size = sizeof(fabric_fi_ops),
	.close = fabric_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(fabric_ops),
	.domain = fabric_domain,
	.passive_ep = tdm_no_fabric_passive_ep,
	.eq_open = tdm_shm_eq_open,
	.wait_open = tdm_no_fabric_wait_open,
	.trywait = tdm_shm_trywait,
	.domain2 = tdm_shm_domain_open,
};

static int shm_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out,
		      void *context)
{
	struct tdm_shm_fabric *fabric;

	if (attr && attr->name && strcmp(attr->name, shm_prov.name))
		return -FI_EINVAL;
	fabric = calloc(1, sizeof(*fabric));
	if (!fabric)
		return -FI_ENOMEM;
	fabric->fid.fid.fclass = FI_CLASS_FABRIC;
	fabric->fid.fid.context = context;
	fabric->fid.fid.ops = &fabric_fi_ops;
	fabric->fid.ops = &fabric_ops;
	fabric->fid.api_version = attr ? attr->api_version : fi_version();
	*out = &fabric->fid;
	return 0;
}

static void shm_cleanup(void)
{
}

static struct fi_provider shm_prov = {
	.version = FI_VERSION(0, 1),
	.fi_version = FI_VERSION(2, 1),
	.name = "tandem-shm",
	.getinfo = shm_getinfo,
	.fabric = shm_fabric,
	.cleanup = shm_cleanup,
};

struct fi_provider *tdm_shm_provider(void)
{
	return &shm_prov;
}
