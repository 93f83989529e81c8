/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer's endpoint: open, bind, name, enable, close.
 *
 * Invariants:
 *  1. Before fi_enable nothing can reach the endpoint, and it makes no
 *     progress; queues may be bound and addresses inserted.
 *  2. fi_close writes no completion. It gives back the entries that the
 *     endpoint holds, if the owner's SRX is still imported. The owner may
 *     discard messages that it has queued until the domain closes.
 * Locking: domain lock held. Spec: fi_endpoint(3), fi_peer(3).
 */
#include "shm/ep.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "shm/av.h"
#include "shm/ctx.h"
#include "shm/domain.h"
#include "shm/keys.h"
#include "shm/lifeline.h"
#include "shm/look.h"
#include "shm/rma.h"
#include "shm/unexp.h"
#include "tdm_amo_table.h"
#include "tdm_nosys.h"

enum {
	/* linux/membarrier.h */
	BARRIER_QUERY = 0,
	BARRIER_GLOBAL_EXPEDITED = 1 << 1,
	BARRIER_REGISTER_GLOBAL_EXPEDITED = 1 << 2,
};

/* ---- bind ---------------------------------------------------------------- */

static int set_queue(struct tdm_shm_ep *ep, int slot, struct tdm_shm_queue *q)
{
	if (ep->queues[slot])
		return -FI_EINVAL;
	ep->queues[slot] = q;
	ep->links[slot].ep = ep;
	tdm_list_init(&ep->links[slot].node);
	q->refs++;
	return 0;
}

static int bind_cq(struct tdm_shm_ep *ep, struct tdm_shm_cq *cq, uint64_t flags)
{
	int ret = 0;

	if (!(flags & (FI_TRANSMIT | FI_RECV)))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		ret = set_queue(ep, TDM_SHM_Q_TX, &cq->queue);
		if (ret)
			return ret;
		ep->done.tx_cq = cq->owner;
		if (!(flags & FI_SELECTIVE_COMPLETION))
			ep->tx_comp = FI_COMPLETION;
	}
	if (flags & FI_RECV) {
		ret = set_queue(ep, TDM_SHM_Q_RX, &cq->queue);
		if (!ret)
			ep->done.rx_cq = cq->owner;
	}
	return ret;
}

/*
 * Let the queue in @slot drive the endpoint; a queue in several slots (a CQ for
 * both directions) does so once.
 */
static int queue_start(struct tdm_shm_ep *ep, int slot)
{
	int i;

	for (i = 0; i < TDM_SHM_Q_COUNT; i++) {
		if (ep->queues[i] == ep->queues[slot] &&
		    tdm_list_linked(&ep->links[i].node))
			return 0;
	}
	return tdm_shm_queue_add(ep->queues[slot], &ep->links[slot]);
}

static int bind_cntr(struct tdm_shm_ep *ep, struct tdm_shm_cntr *cntr,
		     uint64_t flags)
{
	const struct {
		uint64_t flag;
		int slot;
		struct fid_peer_cntr **to;
	} uses[] = {
		{ FI_SEND, TDM_SHM_Q_SEND, &ep->done.send_cntr },
		{ FI_RECV, TDM_SHM_Q_RECV, &ep->done.recv_cntr },
		{ FI_READ, TDM_SHM_Q_READ, &ep->done.read_cntr },
		{ FI_WRITE, TDM_SHM_Q_WRITE, &ep->done.write_cntr },
		{ FI_REMOTE_READ, TDM_SHM_Q_REMOTE_READ,
		  &ep->done.remote_read_cntr },
		{ FI_REMOTE_WRITE, TDM_SHM_Q_REMOTE_WRITE,
		  &ep->done.remote_write_cntr },
	};
	int ret = -FI_EINVAL;
	size_t i;

	for (i = 0; i < TDM_ARRAY_LEN(uses); i++) {
		if (!(flags & uses[i].flag))
			continue;
		ret = set_queue(ep, uses[i].slot, &cntr->queue);
		if (!ret && ep->enabled)
			ret = queue_start(ep, uses[i].slot);
		if (ret)
			return ret;
		*uses[i].to = cntr->owner;
	}
	return ret;
}

static int bind_srx(struct tdm_shm_ep *ep, struct tdm_shm_srx *srx)
{
	if (ep->srx || srx->ep)
		return -FI_EINVAL;
	ep->srx_obj = srx;
	ep->srx = srx->used;
	srx->ep = ep;
	tdm_shm_unexp_init(ep);
	tdm_shm_ctx_import(ep);
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct tdm_shm_ep *ep =
		tdm_container_of(fid, struct tdm_shm_ep, fid.fid);

	/* Counters may be bound after enabling. */
	if (ep->enabled && bfid->fclass != FI_CLASS_CNTR)
		return -FI_EOPBADSTATE;
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(
			ep, tdm_container_of(bfid, struct tdm_shm_cq, fid.fid),
			flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep,
				 tdm_container_of(bfid, struct tdm_shm_cntr,
						  fid.fid),
				 flags);
	case FI_CLASS_AV:
		if (ep->av)
			return -FI_EINVAL;
		ep->av = tdm_shm_av_from_fid(bfid);
		tdm_shm_av_bind(ep->av, ep);
		return 0;
	case FI_CLASS_SRX_CTX:
		return bind_srx(ep, tdm_container_of(bfid, struct tdm_shm_srx,
						     fid.fid));
	case FI_CLASS_EQ:
		if (ep->eq)
			return -FI_EINVAL;
		ep->eq = tdm_container_of(bfid, struct tdm_shm_eq, fid.fid);
		ep->eq->refs++;
		return 0;
	default:
		return -FI_EINVAL;
	}
}

/* ---- enable -------------------------------------------------------------- */

/*
 * Register for membarrier. Between registered processes only the receiver
 * fences, by membarrier, when it sets bits of its bell word; a sender need not
 * fence between publishing a record and reading that word: bell.c.
 */
static int barrier_register(void)
{
	int can = tdm_os.membarrier(BARRIER_QUERY, 0, 0);

	if (can < 0 || !(can & BARRIER_GLOBAL_EXPEDITED) ||
	    !(can & BARRIER_REGISTER_GLOBAL_EXPEDITED))
		return 0;
	return !tdm_os.membarrier(BARRIER_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

static int enable_fds(struct tdm_shm_ep *ep)
{
	int ret;

	/*
	 * Check now the size of the largest region that a pair cannot do without:
	 * once it is up, it could not go over to TCP for want of it.
	 */
	if (!tdm_shm_region_allowed(
		    tdm_shm_bounce_bytes(TDM_SHM_BOUNCE_CHUNKS)))
		return -EFBIG;
	ep->ctl_fd = tdm_os.epoll_create1(EPOLL_CLOEXEC);
	if (ep->ctl_fd < 0)
		return tdm_os_failed("epoll_create1");
	ep->bell_fd = tdm_os.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ep->bell_fd < 0)
		return tdm_os_failed("eventfd");
	/* A thread that already sleeps has not armed this endpoint. */
	ep->armed = 1;
	ep->spare_fd = tdm_os.eventfd(0, EFD_CLOEXEC);
	if (ep->spare_fd < 0)
		return tdm_os_failed("eventfd");
	ret = tdm_shm_region_create(&ep->hints_region, "tandem-hints",
				    TDM_SHM_HINT_BYTES, 0);
	if (ret)
		return ret;
	ep->hints = ep->hints_region.base;
	ret = tdm_os_random(ep->incarnation, sizeof(ep->incarnation));
	if (!ret)
		ret = tdm_os_random(&ep->nonce, sizeof(ep->nonce));
	return ret ? ret : tdm_shm_listen(ep);
}

static void disable(struct tdm_shm_ep *ep)
{
	int i;

	for (i = 0; i < TDM_SHM_Q_COUNT; i++) {
		if (ep->queues[i])
			tdm_shm_queue_del(ep->queues[i], &ep->links[i]);
	}
	tdm_shm_unlisten(ep);
	tdm_shm_region_fini(&ep->hints_region);
	ep->hints = NULL;
	if (ep->spare_fd >= 0)
		tdm_os.close(ep->spare_fd);
	if (ep->bell_fd >= 0)
		tdm_os.close(ep->bell_fd);
	if (ep->ctl_fd >= 0)
		tdm_os.close(ep->ctl_fd);
	ep->spare_fd = -1;
	ep->bell_fd = -1;
	ep->ctl_fd = -1;
	ep->enabled = 0;
}

static int enable_queues(struct tdm_shm_ep *ep)
{
	int i, ret;

	for (i = 0; i < TDM_SHM_Q_COUNT; i++) {
		ret = ep->queues[i] ? queue_start(ep, i) : 0;
		if (ret)
			return ret;
	}
	return 0;
}

static int ep_enable(struct tdm_shm_ep *ep)
{
	int ret;

	if (ep->enabled)
		return 0;
	if (!ep->av)
		return -FI_ENOAV;
	if (!ep->srx)
		return -FI_EOPBADSTATE;
	ret = ep->name.len ? 0 : tdm_shm_addr_choose(&ep->name);
	if (ret)
		return ret;
	ep->barrier = barrier_register();
	ep->rma = tdm_shm_domain_rma(ep->domain);
	ret = enable_fds(ep);
	if (ret)
		goto err;
	ret = enable_queues(ep);
	if (ret)
		goto err;
	if (!ep->eq && ep->domain->fabric->eq) {
		ep->eq = ep->domain->fabric->eq;
		ep->eq->refs++;
	}
	ep->enabled = 1;
	return 0;
err:
	disable(ep);
	return ret;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct tdm_shm_ep *ep =
		tdm_container_of(fid, struct tdm_shm_ep, fid.fid);

	return command == FI_ENABLE ? ep_enable(ep) : -FI_ENOSYS;
}

/* ---- name, options ------------------------------------------------------- */

static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct tdm_shm_ep *ep =
		tdm_container_of(fid, struct tdm_shm_ep, fid.fid);

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	return tdm_shm_addr_set(&ep->name, addr, addrlen);
}

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct tdm_shm_ep *ep =
		tdm_container_of(fid, struct tdm_shm_ep, fid.fid);
	size_t room = *addrlen;

	if (!ep->name.len)
		return -FI_EOPBADSTATE;
	*addrlen = ep->name.len;
	if (room)
		memcpy(addr, ep->name.sa, tdm_min(room, ep->name.len));
	return room < ep->name.len ? -FI_ETOOSMALL : 0;
}

/*
 * fi_cancel(3) of sends only. The owner cancels receives: they are posted to
 * it, and may belong to a context that several endpoints share.
 */
static ssize_t ep_cancel(fid_t fid, void *context)
{
	return tdm_shm_op_cancel(
		tdm_container_of(fid, struct tdm_shm_ep, fid.fid), context);
}

static ssize_t ep_tx_size_left(struct fid_ep *fid)
{
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(fid);

	return (ssize_t)tdm_min(ep->tx_size - ep->tx_used, SSIZE_MAX);
}

/* ---- open, close --------------------------------------------------------- */

static void ep_free(struct tdm_shm_ep *ep)
{
	int i;

	disable(ep);
	for (i = 0; i < TDM_SHM_Q_COUNT; i++) {
		if (ep->queues[i])
			ep->queues[i]->refs--;
	}
	if (ep->srx_obj)
		ep->srx_obj->ep = NULL;
	if (ep->av)
		tdm_shm_av_unbind(ep->av, ep);
	if (ep->eq)
		ep->eq->refs--;
	ep->domain->refs--;
	tdm_pool_fini(&ep->pulls);
	tdm_pool_fini(&ep->ctls);
	tdm_pool_fini(&ep->serves);
	tdm_auth_free(ep->keys);
	free(ep->bells);
	free(ep->hash);
	free(ep->by_addr);
	tdm_shm_op_fini(ep);
	free(ep);
}

static int ep_close(struct fid *fid)
{
	struct tdm_shm_ep *ep =
		tdm_container_of(fid, struct tdm_shm_ep, fid.fid);

	if (ep->in_progress)
		return -FI_EBUSY;
	tdm_shm_rx_orphan(ep);
	tdm_shm_pairs_close(ep);
	ep_free(ep);
	return 0;
}

static int ep_ops_open(struct fid *fid, const char *name, uint64_t flags,
		       void **ops, void *context)
{
	if (!name || !ops || flags)
		return -FI_EINVAL;
	*ops = tdm_shm_look_ops(name);
	return *ops ? 0 : tdm_shm_keys_ops_open(fid, name, flags, ops, context);
}

static struct fi_ops ep_fi_ops = {
	.size = sizeof(ep_fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = ep_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_ep ep_ops = {
	.size = sizeof(ep_ops),
	.cancel = ep_cancel,
	.getopt = tdm_no_ep_getopt,
	.setopt = tdm_no_ep_setopt,
	.tx_ctx = tdm_no_ep_tx_ctx,
	.rx_ctx = tdm_no_ep_rx_ctx,
	.rx_size_left = tdm_no_ep_size_left,
	.tx_size_left = ep_tx_size_left,
};

static struct fi_ops_cm ep_cm_ops = {
	.size = sizeof(ep_cm_ops),
	.setname = ep_setname,
	.getname = ep_getname,
	.getpeer = tdm_no_cm_getpeer,
	.connect = tdm_no_cm_connect,
	.listen = tdm_no_cm_listen,
	.accept = tdm_no_cm_accept,
	.reject = tdm_no_cm_reject,
	.shutdown = tdm_no_cm_shutdown,
	.join = tdm_no_cm_join,
};

static void ep_lists_init(struct tdm_shm_ep *ep)
{
	tdm_list_init(&ep->watches);
	tdm_list_init(&ep->busy);
	tdm_list_init(&ep->reap);
	tdm_list_init(&ep->attaching);
	tdm_list_init(&ep->awake);
	tdm_list_init(&ep->held);
	tdm_list_init(&ep->op_free);
	tdm_list_init(&ep->unexps);
	ep->announced_most = TDM_SHM_RTS_MOST;
	tdm_list_init(&ep->pairs);
	tdm_list_init(&ep->av_node);
	tdm_pool_init(&ep->pulls, sizeof(struct tdm_shm_pull), 0);
	tdm_pool_init(&ep->ctls, sizeof(struct tdm_shm_ctl), 0);
	tdm_pool_init(&ep->serves, sizeof(struct tdm_shm_serve), 0);
}

static void ep_fid_init(struct tdm_shm_ep *ep, void *context)
{
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &ep_fi_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &ep_cm_ops;
	ep->fid.msg = &tdm_shm_msg_ops;
	ep->fid.tagged = &tdm_shm_tagged_ops;
	ep->fid.rma = &tdm_shm_rma_ops;
	ep->fid.atomic = &tdm_shm_amo_calls.ops;
}

int tdm_shm_ep_open(struct fid_domain *domain, struct fi_info *info,
		    struct fid_ep **out, void *context)
{
	struct tdm_shm_ep *ep;

	if (info->ep_attr && info->ep_attr->type != FI_EP_RDM &&
	    info->ep_attr->type != FI_EP_UNSPEC)
		return -FI_EINVAL;
	/* The calls of a struct fi_peer_transfer_context would stay unset. */
	if (info->mode & FI_PEER_TRANSFER)
		return -FI_EINVAL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->listener.fd = -1;
	ep->spare_fd = -1;
	ep->bell_fd = -1;
	ep->ctl_fd = -1;
	ep->domain = tdm_container_of(domain, struct tdm_shm_domain, fid);
	ep->domain->refs++;
	ep_lists_init(ep);
	ep_fid_init(ep, context);
	ep->eager_most =
		tdm_min(tdm_env.shm_eager_bytes, TDM_SHM_EAGER_MOST_BYTES);
	ep->tx_size = 1024;
	if (info->tx_attr) {
		ep->tx_flags = info->tx_attr->op_flags;
		ep->order = tdm_order(info->tx_attr->msg_order);
		if (info->tx_attr->size)
			ep->tx_size = info->tx_attr->size;
	}
	ep->hash_size = 16;
	ep->hash = calloc(ep->hash_size, sizeof(struct tdm_shm_pair *));
	if (!ep->hash || tdm_shm_keys_one(ep, info->ep_attr)) {
		ep_free(ep);
		return -FI_ENOMEM;
	}
	*out = &ep->fid;
	return 0;
}
