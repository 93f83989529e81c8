/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of an endpoint, fi_endpoint(3): open, bind, enable, name, close.
 *
 * Enabling takes the address and starts both transports in an order that
 * route agreement depends on: bind the TCP port, listen for attaches, accept
 * TCP connections. Closing goes the other way.
 *
 * Lock: the domain's, taken here.
 */
#include "tcp/ep.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "peer/eq.h"
#include "tcp/getinfo.h"
#include "tdm_log.h"
#include "tdm_nosys.h"

struct tdm_ep *tdm_ep_from_fid(struct fid_ep *fid)
{
	return tdm_container_of(fid, struct tdm_ep, fid);
}

static struct tdm_ep *from_fid(struct fid *fid)
{
	return tdm_container_of(fid, struct tdm_ep, fid.fid);
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
	size_t i;

	memset(done, 0, sizeof(*done));
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

static int bind_cq(struct tdm_ep *ep, struct tdm_cq *cq, uint64_t flags)
{
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return -FI_EBADFLAGS;
	if (!(flags & (FI_TRANSMIT | FI_RECV)) ||
	    ((flags & FI_TRANSMIT) && ep->tx_cq) ||
	    ((flags & FI_RECV) && ep->rx_cq))
		return -FI_EINVAL;
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

static int bind_cntr_slot(struct tdm_cntr **slot, struct tdm_cntr *cntr)
{
	if (*slot)
		return -FI_EINVAL;
	*slot = cntr;
	tdm_cntr_get(cntr);
	return 0;
}

static int bind_cntr(struct tdm_ep *ep, struct tdm_cntr *cntr, uint64_t flags)
{
	static const uint64_t rma[] = { FI_READ, FI_WRITE, FI_REMOTE_READ,
					FI_REMOTE_WRITE };
	uint64_t all = FI_SEND | FI_RECV;
	int ret = 0;
	size_t i;

	for (i = 0; i < TDM_ARRAY_LEN(rma); i++)
		all |= rma[i];
	if (flags & ~all)
		return -FI_EBADFLAGS;
	if (!flags)
		return -FI_EINVAL;
	if (flags & FI_SEND)
		ret = bind_cntr_slot(&ep->send_cntr, cntr);
	if (!ret && (flags & FI_RECV))
		ret = bind_cntr_slot(&ep->recv_cntr, cntr);
	for (i = 0; !ret && i < TDM_ARRAY_LEN(rma); i++) {
		if (flags & rma[i])
			ret = bind_cntr_slot(&ep->rma_cntr[i], cntr);
	}
	return ret;
}

static int bind_locked(struct tdm_ep *ep, struct fid *bfid, uint64_t flags)
{
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, tdm_cq_from_fid((struct fid_cq *)bfid),
			       flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, tdm_cntr_from_fid((struct fid_cntr *)bfid),
				 flags);
	case FI_CLASS_AV:
		if (ep->av)
			return -FI_EINVAL;
		ep->av = tdm_av_from_fid((struct fid_av *)bfid);
		tdm_av_attach(ep->av, &ep->av_user);
		return 0;
	case FI_CLASS_EQ:
		if (ep->eq)
			return -FI_EINVAL;
		ep->eq = tdm_eq_from_fid((struct fid_eq *)bfid);
		tdm_eq_get(ep->eq);
		return 0;
	default:
		return -FI_EINVAL;
	}
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct tdm_ep *ep = from_fid(fid);
	int ret = -FI_EOPBADSTATE;

	if (!bfid)
		return -FI_EINVAL;
	tdm_lock_acquire(&ep->domain->lock);
	if (!ep->enabled)
		ret = bind_locked(ep, bfid, flags);
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

static int open_tcp(struct tdm_ep *ep)
{
	struct tdm_tcp_attr attr = {
		.loop = ep->domain->loop,
		.engine = &ep->domain->engine,
		.srx = tdm_srx_export(ep->srx, TDM_TRANSPORT_TCP),
		.av = ep->av,
		.domain = &ep->domain->fid,
		.tx_size = ep->info->tx_attr->size,
		.accepted = tdm_ep_accepted,
		.lost = tdm_ep_lost,
		.arg = ep,
	};
	int ret;

	tdm_ep_done(ep, TDM_TRANSPORT_TCP, &attr.done);
	tdm_srx_set_done(ep->srx, &attr.done);
	ret = tdm_tcp_open(&attr, &ep->tcp);
	return ret ? ret : tdm_tcp_bind(ep->tcp, &ep->name);
}

/* Shared memory is a bonus: without it the endpoint works over TCP. */
static void open_local(struct tdm_ep *ep)
{
	struct tdm_link_ep_attr attr = {
		.info = ep->info,
		.srx = ep->srx,
		.av = tdm_av_local_fid(ep->av),
		.tx_cq = ep->tx_cq,
		.rx_cq = ep->rx_cq,
		.send_cntr = ep->send_cntr,
		.recv_cntr = ep->recv_cntr,
		.name = &ep->name,
		.namelen = tdm_addr_len(&ep->name),
	};
	int ret;

	memcpy(attr.rma_cntr, ep->rma_cntr, sizeof(attr.rma_cntr));

	if (!ep->domain->link || !ep->shm_permitted || !attr.av)
		return;
	ret = tdm_link_ep_open(ep->domain->link, &attr, &ep->local);
	if (!ret)
		return;
	ep->local = NULL;
	TDM_WARN(EP_CTRL, "endpoint without shared memory: %s",
		 fi_strerror(-ret));
}

/* Stop both transports; what they still hold of the srx comes back. */
static void close_transports(struct tdm_ep *ep)
{
	tdm_srx_flush(ep->srx);
	if (ep->local)
		tdm_link_ep_close(ep->domain->link, ep->local);
	ep->local = NULL;
	ep->domain->local_pairs -= ep->local_pairs;
	ep->local_pairs = 0;
	if (ep->tcp)
		tdm_tcp_close(ep->tcp);
	ep->tcp = NULL;
}

static int enable_locked(struct tdm_ep *ep)
{
	uint64_t caps = ep->info->caps;
	int ret;

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	if (!ep->av)
		return -FI_ENOAV;
	if (((caps & FI_SEND) && !ep->tx_cq && !ep->send_cntr) ||
	    ((caps & FI_RECV) && !ep->rx_cq && !ep->recv_cntr))
		return -FI_ENOCQ;
	ret = open_tcp(ep);
	if (!ret) {
		open_local(ep);
		ret = tdm_tcp_listen(ep->tcp);
	}
	if (!ret && tdm_env.shm == TDM_SHM_ONLY && !ep->local)
		ret = -FI_ENODEV;
	if (ret) {
		close_transports(ep);
		return ret;
	}
	ep->tx_op_flags = ep->info->tx_attr->op_flags;
	if (!ep->tx_selective)
		ep->tx_op_flags |= FI_COMPLETION;
	ep->rx_op_flags = ep->info->rx_attr->op_flags;
	if (!ep->rx_selective)
		ep->rx_op_flags |= FI_COMPLETION;
	tdm_list_append(&ep->domain->eps, &ep->node);
	ep->enabled = 1;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct tdm_ep *ep = from_fid(fid);
	uint64_t *flags = arg;
	int ret = 0;

	tdm_lock_acquire(&ep->domain->lock);
	switch (command) {
	case FI_ENABLE:
		ret = enable_locked(ep);
		break;
	case FI_GETOPSFLAG:
		if (*flags & FI_TRANSMIT)
			*flags = ep->info->tx_attr->op_flags;
		else if (*flags & FI_RECV)
			*flags = ep->info->rx_attr->op_flags;
		else
			ret = -FI_EINVAL;
		break;
	case FI_SETOPSFLAG:
		ret = tdm_ep_set_op_flags(ep, *flags);
		break;
	default:
		ret = -FI_ENOSYS;
	}
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

static void ep_free(struct tdm_ep *ep)
{
	size_t i;

	tdm_srx_close(ep->srx);
	if (ep->av)
		tdm_av_detach(ep->av, &ep->av_user);
	tdm_ep_free_pairs(ep);
	if (ep->tx_cq)
		tdm_cq_put(ep->tx_cq);
	if (ep->rx_cq)
		tdm_cq_put(ep->rx_cq);
	if (ep->send_cntr)
		tdm_cntr_put(ep->send_cntr);
	if (ep->recv_cntr)
		tdm_cntr_put(ep->recv_cntr);
	for (i = 0; i < TDM_ARRAY_LEN(ep->rma_cntr); i++) {
		if (ep->rma_cntr[i])
			tdm_cntr_put(ep->rma_cntr[i]);
	}
	if (ep->eq)
		tdm_eq_put(ep->eq);
	fi_freeinfo(ep->info);
	free(ep);
}

static int ep_close(struct fid *fid)
{
	struct tdm_ep *ep = from_fid(fid);
	struct tdm_domain *d = ep->domain;

	tdm_lock_acquire(&d->lock);
	if (ep->enabled) {
		if (tdm_env.report)
			tdm_report_print(ep);
		tdm_list_del(&ep->node);
		close_transports(ep);
	}
	ep_free(ep);
	tdm_domain_put(d);
	tdm_lock_release(&d->lock);
	return 0;
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct tdm_ep *ep = from_fid(fid);
	ssize_t ret = -FI_ENOENT;

	tdm_lock_acquire(&ep->domain->lock);
	if (ep->enabled) {
		ret = tdm_srx_cancel(ep->srx, context);
		if (ret == -FI_ENOENT)
			ret = tdm_tx_cancel(ep->tcp, context);
		if (ret == -FI_ENOENT && ep->local)
			ret = fi_cancel(&ep->local->fid, context);
	}
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct tdm_ep *ep = from_fid(fid);
	struct tdm_addr a;
	int ret;

	if (ep->enabled)
		return -FI_EOPBADSTATE;
	ret = ep->info->addr_format == FI_ADDR_STR ?
		      tdm_addr_from_str(&a, addr, addrlen) :
		      tdm_addr_from_bind(&a, addr, addrlen);
	if (!ret)
		ep->name = a;
	return ret;
}

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct tdm_ep *ep = from_fid(fid);
	char text[TDM_ADDR_STR_BYTES];
	size_t room, len = tdm_addr_len(&ep->name);
	const void *from = &ep->name;

	if (!addrlen || (*addrlen && !addr))
		return -FI_EINVAL;
	if (ep->info->addr_format == FI_ADDR_STR) {
		len = tdm_addr_format(&ep->name, text, sizeof(text));
		from = text;
	}
	room = *addrlen;
	*addrlen = len;
	if (!ep->enabled && room >= len)
		return -FI_EOPBADSTATE;
	if (room)
		memcpy(addr, from, tdm_min(room, len));
	return room < len ? -FI_ETOOSMALL : 0;
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(ep_fid_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = tdm_report_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_ep ep_ops = {
	.size = sizeof(ep_ops),
	.cancel = ep_cancel,
	.getopt = tdm_ep_getopt,
	.setopt = tdm_ep_setopt,
	.tx_ctx = tdm_no_ep_tx_ctx,
	.rx_ctx = tdm_no_ep_rx_ctx,
	.rx_size_left = tdm_no_ep_size_left,
	.tx_size_left = tdm_no_ep_size_left,
};

static struct fi_ops_cm cm_ops = {
	.size = sizeof(cm_ops),
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

/* The address to bind to: the info's source, or the best interface. */
static int own_name(struct tdm_ep *ep, const struct fi_info *info)
{
	struct fi_info *tmp;
	int ret;

	if (info->src_addr)
		return info->addr_format == FI_ADDR_STR ?
			       tdm_addr_from_str(&ep->name, info->src_addr,
						 info->src_addrlen) :
			       tdm_addr_from_bind(&ep->name, info->src_addr,
						  info->src_addrlen);
	tmp = tdm_info_base();
	if (!tmp)
		return -FI_ENOMEM;
	ret = tdm_info_addresses(NULL, NULL, 0, NULL, tmp);
	if (!ret)
		ret = tdm_addr_from_bind(&ep->name, tmp->src_addr,
					 tmp->src_addrlen);
	fi_freeinfo(tmp);
	return ret;
}

static int ep_init(struct tdm_ep *ep, struct fi_info *info)
{
	struct tdm_srx_attr attr = {
		.engine = &ep->domain->engine,
		.size = info->rx_attr->size ? info->rx_attr->size :
					      TDM_DEFAULT_CTX_SIZE,
		.min_multi_recv = TDM_MIN_MULTI_RECV_BYTES,
		.directed = !!(info->caps & FI_DIRECTED_RECV),
		.free_rma = tdm_mr_entry_free,
	};
	int ret;

	ep->info = fi_dupinfo(info);
	if (!ep->info)
		return -FI_ENOMEM;
	if (!ep->info->tx_attr->size)
		ep->info->tx_attr->size = TDM_DEFAULT_CTX_SIZE;
	ep->inject_bytes = info->tx_attr->inject_size;
	ep->caps = info->caps;
	ep->min_multi_recv = attr.min_multi_recv;
	ep->shm_permitted = tdm_env.shm != TDM_SHM_OFF;
	ret = own_name(ep, info);
	return ret ? ret : tdm_srx_open(&attr, &ep->srx);
}

int tdm_ep_open(struct fid_domain *fid, struct fi_info *info,
		struct fid_ep **out, void *context)
{
	struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct tdm_ep *ep;
	int ret;

	if (!info || !info->ep_attr || !info->tx_attr || !info->rx_attr)
		return -FI_EINVAL;
	ret = tdm_info_check(info);
	if (ret)
		return ret;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.context = context;
	ep->fid.fid.ops = &ep_fid_ops;
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &cm_ops;
	ep->fid.msg = &tdm_msg_ops;
	ep->fid.tagged = &tdm_tagged_ops;
	ep->fid.rma = &tdm_rma_ops;
	ep->domain = d;
	ep->av_user.inserted = tdm_ep_av_inserted;
	ep->av_user.removed = tdm_ep_av_removed;
	tdm_list_init(&ep->av_user.node);
	tdm_list_init(&ep->node);
	tdm_lock_acquire(&d->lock);
	ret = ep_init(ep, info);
	if (ret)
		ep_free(ep);
	else
		tdm_domain_get(d);
	tdm_lock_release(&d->lock);
	if (!ret)
		*out = &ep->fid;
	return ret;
}
