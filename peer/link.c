/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link to a peer provider: its fabric, domain and EQ; the imports of the
 * owner's queues; its endpoints and address vectors. link_progress.c drives it.
 *
 * Every struct fi_peer_*_context here is a stack object: a peer copies what it
 * needs during the open call, as fi_peer(3) says. The exported objects behind
 * them belong to the owner and outlive what the peer opens on them.
 *
 * Locking: domain lock held, but for tdm_link_open().
 * Spec: fi_peer(3).
 */
#include "peer/link.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "peer/eq.h"
#include "peer/link_priv.h"
#include "tdm_info.h"
#include "tdm_keys.h"
#include "tdm_open.h"
#include "tdm_space.h"

/* Capabilities in the hints for a peer: all that the owner itself offers. */
static const uint64_t link_caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV |
				  FI_DIRECTED_RECV | FI_SOURCE | FI_RMA |
				  FI_ATOMIC | FI_READ | FI_WRITE |
				  FI_REMOTE_READ | FI_REMOTE_WRITE;

static void close_fid(struct fid *fid, const char *what)
{
	int ret = fi_close(fid);

	if (ret)
		TDM_WARN(DOMAIN, "peer's %s does not close: %s", what,
			 fi_strerror(-ret));
}

/* Returns the hints for the peer's fi_getinfo, or NULL. */
static struct fi_info *link_hints(const struct tdm_link_attr *attr)
{
	const struct fi_info *app = attr->info;
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = (app->caps & link_caps) | FI_PEER | FI_AV_USER_ID;
	if (app->addr_format == FI_SOCKADDR_IN ||
	    app->addr_format == FI_SOCKADDR_IN6)
		hints->addr_format = app->addr_format;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->op_flags = app->tx_attr ? app->tx_attr->op_flags : 0;
	hints->tx_attr->msg_order = app->tx_attr ? app->tx_attr->msg_order : 0;
	hints->rx_attr->op_flags = app->rx_attr ? app->rx_attr->op_flags : 0;
	hints->rx_attr->msg_order = app->rx_attr ? app->rx_attr->msg_order : 0;
	hints->domain_attr->caps = FI_PEER | FI_AV_USER_ID | FI_LOCAL_COMM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->av_type = FI_AV_TABLE;
	/*
	 * The peer must know of groups, since an address contains its group,
	 * fi_group_addr(3). fi_peer(3) does not say so.
	 */
	hints->domain_attr->max_group_id =
		app->caps & FI_COLLECTIVE ? TDM_COLL_GROUP :
		app->domain_attr	  ? app->domain_attr->max_group_id :
					    0;
	hints->domain_attr->auth_key_size = attr->keys ? FI_AV_AUTH_KEY : 0;
	return hints;
}

/*
 * Fill in the fields that the core adds in fi_getinfo(3) and fi_fabric(3): the
 * link calls the peer without the core.
 */
static int adopt_info(struct tdm_link *link)
{
	struct fi_fabric_attr *attr = link->info->fabric_attr;

	attr->api_version = fi_version();
	if (!attr->prov_name)
		attr->prov_name = strdup(link->prov->name);
	return attr->prov_name ? 0 : -FI_ENOMEM;
}

static int open_info(struct tdm_link *link, const struct tdm_link_attr *attr)
{
	struct fi_info *hints = link_hints(attr);
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	ret = link->prov->getinfo(fi_version(), NULL, NULL, 0, hints,
				  &link->info);
	tdm_info_free(hints);
	return ret ? ret : adopt_info(link);
}

static int open_fabric(struct tdm_link *link)
{
	int ret = link->prov->fabric(link->info->fabric_attr, &link->fabric,
				     NULL);

	if (!ret)
		link->fabric->api_version = fi_version();
	return ret;
}

/*
 * Open the peer's domain. A peer that cannot share the owner's domain is no
 * error.
 */
static int open_domain(struct tdm_link *link, struct fid_domain *owner)
{
	struct fi_peer_domain_context ctx = {
		.size = sizeof(ctx),
		.domain = owner,
	};
	int ret = fi_domain2(link->fabric, link->info, &link->domain, FI_PEER,
			     &ctx);

	if (ret != -FI_ENOSYS && ret != -FI_EINVAL)
		return ret;
	return fi_domain(link->fabric, link->info, &link->domain, NULL);
}

/*
 * Open the EQ to which the peer reports. A peer that cannot import one has
 * nothing to report, which is no error.
 */
static int open_eq(struct tdm_link *link)
{
	/*
	 * Every pass of progress reads the queue, so it stays short without a
	 * bound.
	 */
	const struct fi_eq_attr own = {
		.size = SIZE_MAX,
		.flags = FI_WRITE,
		.wait_obj = FI_WAIT_NONE,
	};
	struct fi_eq_attr attr = {
		.flags = FI_PEER,
		.wait_obj = FI_WAIT_NONE,
	};
	struct fi_peer_eq_context ctx = { .size = sizeof(ctx) };
	int ret;

	ret = tdm_eq_open(&own, link, &link->eq);
	if (ret)
		return ret;
	ctx.eq = tdm_eq_fid(link->eq);
	ret = fi_eq_open(link->fabric, &attr, &link->peer_eq, &ctx);
	if (ret) {
		TDM_INFO(DOMAIN, "peer %s imports no event queue: %s",
			 link->prov->name, fi_strerror(-ret));
		link->peer_eq = NULL;
	}
	return 0;
}

int tdm_link_open(const struct tdm_link_attr *attr, struct tdm_link **link_out)
{
	struct tdm_link *link = calloc(1, sizeof(*link));
	int ret;

	if (!link)
		return -FI_ENOMEM;
	tdm_list_init(&link->eps);
	link->epfd = -1;
	link->prov = attr->prov;
	link->event = attr->event;
	link->arg = attr->arg;
	ret = open_info(link, attr);
	if (ret)
		goto err;
	ret = open_fabric(link);
	if (ret)
		goto err;
	ret = open_domain(link, attr->owner);
	if (ret)
		goto err;
	ret = open_eq(link);
	if (ret)
		goto err;
	*link_out = link;
	return 0;
err:
	TDM_INFO(DOMAIN, "peer %s is not used: %s", attr->prov->name,
		 fi_strerror(-ret));
	tdm_link_close(link);
	return ret;
}

void tdm_link_close(struct tdm_link *link)
{
	if (!link)
		return;
	tdm_link_free_queues(link);
	if (link->peer_eq)
		close_fid(&link->peer_eq->fid, "event queue");
	if (link->domain)
		close_fid(&link->domain->fid, "domain");
	if (link->fabric)
		close_fid(&link->fabric->fid, "fabric");
	if (link->eq)
		close_fid(&tdm_eq_fid(link->eq)->fid, "imported event queue");
	if (link->info)
		tdm_info_free(link->info);
	free(link);
}

/*
 * The peer's queue gets a descriptor if the peer can make one, even if the
 * owner's queue has none: the descriptor covers the whole transport, and the
 * application may sleep on another queue of the domain.
 */
int tdm_link_import_cq(struct tdm_link *link, struct tdm_cq *cq)
{
	struct fi_cq_attr attr = {
		.flags = FI_PEER,
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = FI_WAIT_FD,
	};
	struct fi_peer_cq_context ctx = {
		.size = sizeof(ctx),
		.cq = tdm_cq_export(cq, TDM_TRANSPORT_LOCAL),
	};
	struct fid_cq *local;
	int ret;

	ret = fi_cq_open(link->domain, &attr, &local, &ctx);
	if (ret) {
		attr.wait_obj = FI_WAIT_NONE;
		ret = fi_cq_open(link->domain, &attr, &local, &ctx);
	}
	if (!ret)
		tdm_cq_set_local(cq, local);
	return ret;
}

int tdm_link_import_cntr(struct tdm_link *link, struct tdm_cntr *cntr)
{
	struct fi_cntr_attr attr = {
		.events = FI_CNTR_EVENTS_COMP,
		.flags = FI_PEER,
		.wait_obj = FI_WAIT_FD,
	};
	struct fi_peer_cntr_context ctx = {
		.size = sizeof(ctx),
		.cntr = tdm_cntr_export(cntr, TDM_TRANSPORT_LOCAL),
	};
	struct fid_cntr *local;
	int ret;

	ret = fi_cntr_open(link->domain, &attr, &local, &ctx);
	if (ret) {
		attr.wait_obj = FI_WAIT_NONE;
		ret = fi_cntr_open(link->domain, &attr, &local, &ctx);
	}
	if (!ret)
		tdm_cntr_set_local(cntr, local);
	return ret;
}

int tdm_link_av_open(struct tdm_link *link, const struct fi_av_attr *owner,
		     struct fid_av **av)
{
	struct fi_av_attr attr = {
		.type = FI_AV_TABLE,
		.rx_ctx_bits = owner->rx_ctx_bits,
		.count = owner->count,
	};

	return fi_av_open(link->domain, &attr, av, NULL);
}

/*
 * Insert @addr into the peer's AV. In: *@a, its user id. Out: *@a, the peer's
 * address.
 */
static int av_insert(struct fid_av *av, const void *addr, fi_addr_t *a)
{
	int n = fi_av_insert(av, addr, 1, a, FI_AV_USER_ID, NULL);

	if (n < 0)
		return n;
	return n == 1 ? 0 : -FI_EADDRNOTAVAIL;
}

static int av_insert_key(struct fid_av *av, const void *addr, uint32_t key,
			 fi_addr_t *a)
{
	const struct tdm_keys_ops *ops = tdm_open_ops(&av->fid, TDM_KEYS_OPS);

	return ops ? ops->insert(av, addr, key, a) : -FI_ENOSYS;
}

int tdm_link_av_insert(struct fid_av *av, const void *addr, uint32_t key,
		       fi_addr_t owner_addr, fi_addr_t *peer_addr)
{
	fi_addr_t a = owner_addr;
	int ret = key ? av_insert_key(av, addr, key, &a) :
			av_insert(av, addr, &a);

	if (!ret)
		*peer_addr = a;
	return ret;
}

void tdm_link_av_remove(struct fid_av *av, fi_addr_t peer_addr)
{
	int ret = fi_av_remove(av, &peer_addr, 1, 0);

	if (ret)
		TDM_WARN(AV, "peer does not remove an address: %s",
			 fi_strerror(-ret));
}

void tdm_link_av_resolve(struct fid_av *av)
{
	(void)fi_av_insert(av, NULL, 0, NULL, FI_AV_USER_ID, NULL);
}

/* Returns the key that has no number, or NULL. */
static const struct tdm_auth_key *own_key(const struct tdm_link_ep_attr *attr)
{
	return tdm_auth_find(attr->keys, 0);
}

/* Give @to a copy of @key, which tdm_info_free() frees. */
static int ep_key(struct fi_ep_attr *to, const struct tdm_auth_key *key)
{
	to->auth_key = malloc(key->size);
	if (!to->auth_key)
		return -FI_ENOMEM;
	memcpy(to->auth_key, key->bytes, key->size);
	to->auth_key_size = key->size;
	return 0;
}

/* Pass the keys that have numbers to the peer's endpoint. */
static int ep_take_keys(struct fid_ep *ep, const struct tdm_link_ep_attr *attr)
{
	const struct tdm_keys_ops *ops;

	if (!attr->keys || own_key(attr))
		return 0;
	ops = tdm_open_ops(&ep->fid, TDM_KEYS_OPS);
	return ops ? ops->take(ep, attr->keys) : -FI_ENOSYS;
}

/*
 * Returns a copy of the peer's info, with the attributes that the application
 * chose for this endpoint. NULL: out of memory.
 */
static struct fi_info *ep_info(const struct tdm_link *link,
			       const struct tdm_link_ep_attr *attr)
{
	struct fi_info *info = fi_dupinfo(link->info);
	const struct tdm_auth_key *key = own_key(attr);
	const struct fi_info *app = attr->info;

	if (info && key && ep_key(info->ep_attr, key)) {
		tdm_info_free(info);
		info = NULL;
	}
	if (!info)
		return NULL;
	if (app->tx_attr && info->tx_attr) {
		info->tx_attr->op_flags = app->tx_attr->op_flags &
					  ~(uint64_t)FI_TRIGGER;
		info->tx_attr->msg_order = app->tx_attr->msg_order;
		if (app->tx_attr->size)
			info->tx_attr->size = app->tx_attr->size;
	}
	if (app->rx_attr && info->rx_attr) {
		info->rx_attr->op_flags = app->rx_attr->op_flags &
					  ~(uint64_t)FI_TRIGGER;
		if (app->rx_attr->size)
			info->rx_attr->size = app->rx_attr->size;
	}
	return info;
}

/*
 * Import the SRX and bind it at once: a peer may keep the SRX that was imported
 * last in its domain and use that for the next bind.
 */
static int ep_bind_srx(struct tdm_link *link, struct tdm_link_ep *lep,
		       struct fid_peer_srx *srx)
{
	struct fi_rx_attr attr = { 0 };
	struct fi_peer_srx_context ctx = {
		.size = sizeof(ctx),
		.srx = srx,
	};
	int ret;

	if (link->info->rx_attr)
		attr = *link->info->rx_attr;
	attr.op_flags = FI_PEER;
	ret = fi_srx_context(link->domain, &attr, &lep->srx, &ctx);
	if (ret)
		return ret;
	return fi_ep_bind(lep->ep, &lep->srx->fid, 0);
}

/*
 * Bind the peer's import of one queue of the owner; a queue that is not bound
 * to the owner's endpoint is no error.
 */
static int bind_cq(struct fid_ep *ep, struct tdm_cq *cq, uint64_t flags)
{
	struct fid_cq *local = cq ? tdm_cq_local(cq) : NULL;

	return local ? fi_ep_bind(ep, &local->fid, flags) : 0;
}

static int bind_cntr(struct fid_ep *ep, struct tdm_cntr *cntr, uint64_t flags)
{
	struct fid_cntr *local = cntr ? tdm_cntr_local(cntr) : NULL;

	return local ? fi_ep_bind(ep, &local->fid, flags) : 0;
}

int tdm_link_ep_bind_cntr(struct fid_ep *ep, struct tdm_cntr *cntr,
			  uint64_t flags)
{
	return bind_cntr(ep, cntr, flags);
}

/* Bind all queues. A CQ that serves both directions is bound once for each. */
static int ep_bind_all(struct fid_ep *ep, const struct tdm_link_ep_attr *attr)
{
	static const uint64_t rma[] = { FI_READ, FI_WRITE, FI_REMOTE_READ,
					FI_REMOTE_WRITE };
	size_t i;
	int ret;

	ret = fi_ep_bind(ep, &attr->av->fid, 0);
	if (ret)
		return ret;
	ret = bind_cq(ep, attr->tx_cq, FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	if (ret)
		return ret;
	ret = bind_cq(ep, attr->rx_cq, FI_RECV);
	if (ret)
		return ret;
	ret = bind_cntr(ep, attr->send_cntr, FI_SEND);
	if (ret)
		return ret;
	ret = bind_cntr(ep, attr->recv_cntr, FI_RECV);
	for (i = 0; !ret && i < TDM_ARRAY_LEN(rma); i++)
		ret = bind_cntr(ep, attr->rma_cntr[i], rma[i]);
	return ret;
}

static struct fid *cq_queue(struct tdm_cq *cq)
{
	struct fid_cq *local = cq ? tdm_cq_local(cq) : NULL;

	return local ? &local->fid : NULL;
}

static struct fid *cntr_queue(struct tdm_cntr *cntr)
{
	struct fid_cntr *local = cntr ? tdm_cntr_local(cntr) : NULL;

	return local ? &local->fid : NULL;
}

/*
 * Returns the queue that is read to drive the peer's endpoint: the first of its
 * CQs and counters that the peer imports, or NULL.
 */
static struct fid *ep_queue(const struct tdm_link_ep_attr *attr)
{
	struct fid *fid = cq_queue(attr->rx_cq);
	size_t i;

	if (!fid)
		fid = cq_queue(attr->tx_cq);
	if (!fid)
		fid = cntr_queue(attr->recv_cntr);
	if (!fid)
		fid = cntr_queue(attr->send_cntr);
	for (i = 0; !fid && i < TDM_ARRAY_LEN(attr->rma_cntr); i++)
		fid = cntr_queue(attr->rma_cntr[i]);
	return fid;
}

/* Accepts a zeroed @lep. After this no event of the endpoint is delivered. */
static void link_ep_free(struct tdm_link *link, struct tdm_link_ep *lep)
{
	if (lep->ep) {
		close_fid(&lep->ep->fid, "endpoint");
		tdm_link_deliver(link, &lep->ep->fid);
	}
	if (lep->srx)
		close_fid(&lep->srx->fid, "receive context");
	if (lep->queue)
		tdm_link_put_queue(link, lep->queue);
	tdm_list_del(&lep->node);
	free(lep);
}

int tdm_link_ep_open(struct tdm_link *link, const struct tdm_link_ep_attr *attr,
		     struct fid_ep **ep)
{
	struct fi_info *info = ep_info(link, attr);
	struct tdm_link_ep *lep = calloc(1, sizeof(*lep));
	int ret = -FI_ENOMEM;

	if (lep)
		tdm_list_init(&lep->node);
	if (!lep || !info)
		goto err;
	ret = fi_endpoint(link->domain, info, &lep->ep, attr->context);
	if (ret)
		goto err;
	ret = ep_take_keys(lep->ep, attr);
	if (ret)
		goto err;
	ret = ep_bind_all(lep->ep, attr);
	if (ret)
		goto err;
	ret = ep_bind_srx(link, lep, attr->srx);
	if (ret)
		goto err;
	ret = fi_setname(&lep->ep->fid, (void *)(uintptr_t)attr->name,
			 attr->namelen);
	if (ret)
		goto err;
	lep->queue = ep_queue(attr);
	ret = lep->queue ? tdm_link_get_queue(link, lep->queue) : -FI_ENOCQ;
	if (ret) {
		lep->queue = NULL;
		goto err;
	}
	ret = fi_enable(lep->ep);
	if (ret)
		goto err;
	tdm_list_append(&link->eps, &lep->node);
	tdm_info_free(info);
	*ep = lep->ep;
	return 0;
err:
	if (lep)
		link_ep_free(link, lep);
	if (info)
		tdm_info_free(info);
	return ret;
}

void tdm_link_ep_close(struct tdm_link *link, struct fid_ep *ep)
{
	struct tdm_link_ep *lep;
	struct tdm_list *node;

	tdm_list_for_each(node, &link->eps) {
		lep = tdm_list_entry(node, struct tdm_link_ep, node);
		if (lep->ep == ep) {
			link_ep_free(link, lep);
			return;
		}
	}
}
