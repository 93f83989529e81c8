/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An owner of fi_peer(3) in its smallest form: see mock_owner.h.
 */
#include "mock_owner.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "mock_rma.h"
#include "base/base.h"
#include "tdm_layout.h"
#include "tdm_nosys.h"

static enum tdt_owner_kind kind;

static struct tdt_owner *of_srx(struct fid_peer_srx *srx)
{
	return tdm_container_of(srx, struct tdt_owner, own_srx);
}

/* ---- completions, counts, events ----------------------------------------- */

static void *grown(void *array, size_t n, size_t size)
{
	/* Room doubles at each power of two. */
	if (n & (n - 1))
		return array;
	array = realloc(array, (n ? 2 * n : 1) * size);
	if (!array)
		abort();
	return array;
}

static struct tdt_done *done_add(struct tdt_owner *o)
{
	struct tdt_done *d = grown(o->done, o->dones, sizeof(*d));

	o->done = d;
	memset(&d[o->dones], 0, sizeof(*d));
	return &d[o->dones++];
}

static ssize_t cq_write(struct fid_peer_cq *cq, void *context, uint64_t flags,
			size_t len, void *buf, uint64_t data, uint64_t tag,
			fi_addr_t src)
{
	struct tdt_done *d =
		done_add(tdm_container_of(cq, struct tdt_owner, own_cq));

	d->context = context;
	d->flags = flags;
	d->len = len;
	d->buf = buf;
	d->data = data;
	d->tag = tag;
	d->src = src;
	return 0;
}

static ssize_t cq_writeerr(struct fid_peer_cq *cq,
			   const struct fi_cq_err_entry *e)
{
	struct tdt_done *d =
		done_add(tdm_container_of(cq, struct tdt_owner, own_cq));

	d->context = e->op_context;
	d->flags = e->flags;
	d->len = e->len;
	d->buf = e->buf;
	d->data = e->data;
	d->tag = e->tag;
	d->src = e->src_addr;
	d->err = e->err;
	d->prov_errno = e->prov_errno;
	d->olen = e->olen;
	return 0;
}

static void send_inc(struct fid_peer_cntr *c)
{
	tdm_container_of(c, struct tdt_owner, own_send)->sends++;
}

static void send_incerr(struct fid_peer_cntr *c)
{
	tdm_container_of(c, struct tdt_owner, own_send)->send_errs++;
}

static void recv_inc(struct fid_peer_cntr *c)
{
	tdm_container_of(c, struct tdt_owner, own_recv)->recvs++;
}

static void recv_incerr(struct fid_peer_cntr *c)
{
	tdm_container_of(c, struct tdt_owner, own_recv)->recv_errs++;
}

static ssize_t eq_write(struct fid_eq *eq, uint32_t event, const void *buf,
			size_t len, uint64_t flags)
{
	struct tdt_owner *o = tdm_container_of(eq, struct tdt_owner, own_eq);
	struct tdm_peer_event *e;

	if (event != FI_NOTIFY || len != sizeof(*e)) {
		o->broken++;
		return -FI_EINVAL;
	}
	e = grown(o->events, o->nevents, sizeof(*e));
	o->events = e;
	memcpy(&e[o->nevents++], buf, len);
	return (ssize_t)len;
}

/* ---- the receive side ---------------------------------------------------- */

static enum tdm_layout layout(void)
{
	if (kind == TDT_OWNER_SILENT)
		return tdm_layout_of(fi_version());
	return kind == TDT_OWNER_NEWER ? TDM_LAYOUT_NEWER : TDM_LAYOUT_OLDER;
}

/* The entry of @e as the peer gets it, and as it comes back. */
static struct fi_peer_rx_entry *shown(struct tdt_entry *e)
{
	return kind == TDT_OWNER_OURS ? &e->rx :
					tdm_layout_raw(layout(), &e->rx);
}

static struct tdt_entry *taken(struct fi_peer_rx_entry *rx)
{
	if (kind != TDT_OWNER_OURS)
		rx = tdm_layout_own(layout(), rx);
	return rx->owner_context;
}

static struct tdt_entry *entry_alloc(struct tdt_owner *o, int tagged)
{
	struct tdt_entry *e = calloc(1, sizeof(*e));

	if (!e)
		abort();
	o->entries++;
	memset(e, 0xdb, offsetof(struct tdt_entry, rx.srx));
	e->owner = o;
	e->tagged = tagged;
	e->rx.srx = kind == TDT_OWNER_SILENT ? NULL : &o->own_srx;
	e->rx.iov = e->iov;
	e->rx.desc = e->desc;
	e->rx.owner_context = e;
	return e;
}

static void list_append(struct tdt_entry **list, struct tdt_entry *e)
{
	while (*list)
		list = &(*list)->link;
	*list = e;
	e->link = NULL;
	e->in_list = 1;
}

static void list_remove(struct tdt_entry **list, struct tdt_entry *e)
{
	for (; *list; list = &(*list)->link) {
		if (*list != e)
			continue;
		*list = e->link;
		e->link = NULL;
		e->in_list = 0;
		return;
	}
}

static int entry_matches(const struct tdt_entry *posted, int tagged,
			 fi_addr_t src, uint64_t tag)
{
	if (posted->tagged != tagged ||
	    (posted->rx.addr != FI_ADDR_UNSPEC && posted->rx.addr != src))
		return 0;
	return !tagged || !((posted->rx.tag ^ tag) & ~posted->ignore);
}

static int srx_get(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **out, int tagged)
{
	struct tdt_owner *o = of_srx(srx);
	struct tdt_entry *e;

	o->unasked += !o->driving;
	if (o->refuse_entries > 0) {
		o->refuse_entries--;
		return -FI_ENOMEM;
	}
	for (e = o->posted; e; e = e->link) {
		if (entry_matches(e, tagged, attr->addr, attr->tag))
			break;
	}
	if (e) {
		list_remove(&o->posted, e);
		e->rx.addr = attr->addr;
		e->rx.tag = tagged ? attr->tag : 0;
		*out = shown(e);
		return 0;
	}
	e = entry_alloc(o, tagged);
	e->rx.addr = attr->addr;
	e->rx.tag = tagged ? attr->tag : 0;
	e->rx.msg_size = attr->msg_size;
	*out = shown(e);
	return -FI_ENOENT;
}

static int srx_get_msg(struct fid_peer_srx *srx,
		       struct fi_peer_match_attr *attr,
		       struct fi_peer_rx_entry **out)
{
	return srx_get(srx, attr, out, 0);
}

static int srx_get_tag(struct fid_peer_srx *srx,
		       struct fi_peer_match_attr *attr,
		       struct fi_peer_rx_entry **out)
{
	return srx_get(srx, attr, out, 1);
}

static int srx_queue(struct fi_peer_rx_entry *rx)
{
	struct tdt_entry *e = taken(rx);

	e->owner->unasked += !e->owner->driving;
	if (e->in_list)
		e->owner->broken++;
	list_append(&e->owner->queued, e);
	return 0;
}

static void srx_foreach(struct fid_peer_srx *srx,
			fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	struct tdt_entry *e;

	of_srx(srx)->resolved++;
	for (e = of_srx(srx)->queued; e; e = e->link) {
		if (e->rx.addr == FI_ADDR_UNSPEC)
			e->rx.addr = get_addr(shown(e));
	}
}

static void srx_free_entry(struct fi_peer_rx_entry *rx)
{
	struct tdt_entry *e;
	struct tdt_owner *o;

	if (kind == TDT_OWNER_OURS && rx->flags & FI_RMA) {
		tdt_rma_entry_free(rx);
		return;
	}
	e = taken(rx);
	o = e->owner;
	o->unasked += !o->driving;
	if (e->in_list) {
		o->broken++;
		list_remove(&o->queued, e);
	}
	o->entries--;
	memset(e, 0xdb, sizeof(*e));
	free(e);
}

/* ---- what the peer may ask the owner's domain for ------------------------ */

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		  uint64_t offset, uint64_t requested_key, uint64_t flags,
		  struct fid_mr **mr, void *context)
{
	tdm_container_of(fid, struct tdt_owner, own_domain.fid)->mr_calls++;
	return -FI_EOPNOTSUPP;
}

static int own_ops_open(struct fid *fid, const char *name, uint64_t flags,
			void **ops, void *context)
{
	return fid->fclass == FI_CLASS_DOMAIN && kind == TDT_OWNER_OURS ?
		       tdt_rma_ops_open(fid, name, flags, ops, context) :
		       -FI_ENOSYS;
}

static struct fi_ops own_fi_ops = {
	.size = sizeof(own_fi_ops),
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = own_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_domain own_domain_ops = {
	.size = sizeof(own_domain_ops),
	.scalable_ep = tdm_no_domain_scalable_ep,
	.poll_open = tdm_no_domain_poll_open,
	.stx_ctx = tdm_no_domain_stx_ctx,
	.srx_ctx = tdm_no_domain_srx_ctx,
	.query_atomic = tdt_query_atomic,
	.query_collective = tdm_no_domain_query_collective,
};

static struct fi_ops_mr own_mr_ops = {
	.size = sizeof(own_mr_ops),
	.reg = mr_reg,
	.regv = tdm_no_mr_regv,
	.regattr = tdm_no_mr_regattr,
};

static struct fi_ops_eq own_eq_ops = {
	.size = sizeof(own_eq_ops),
	.read = tdm_no_eq_read,
	.readerr = tdm_no_eq_readerr,
	.write = eq_write,
	.sread = tdm_no_eq_sread,
};

static struct fi_ops_cq_owner own_cq_ops = {
	.size = sizeof(own_cq_ops),
	.write = cq_write,
	.writeerr = cq_writeerr,
};

static struct fi_ops_cntr_owner own_send_ops = {
	.size = sizeof(own_send_ops),
	.inc = send_inc,
	.incerr = send_incerr,
};

static struct fi_ops_cntr_owner own_recv_ops = {
	.size = sizeof(own_recv_ops),
	.inc = recv_inc,
	.incerr = recv_incerr,
};

static struct fi_ops_srx_owner own_srx_ops = {
	.size = sizeof(own_srx_ops),
	.get_msg = srx_get_msg,
	.get_tag = srx_get_tag,
	.queue_msg = srx_queue,
	.queue_tag = srx_queue,
	.foreach_unspec_addr = srx_foreach,
	.free_entry = srx_free_entry,
};

static void exports_init(struct tdt_owner *o)
{
	o->own_domain.fid.fclass = FI_CLASS_DOMAIN;
	o->own_domain.fid.ops = &own_fi_ops;
	o->own_domain.ops = &own_domain_ops;
	o->own_domain.mr = &own_mr_ops;
	o->own_eq.fid.fclass = FI_CLASS_EQ;
	o->own_eq.fid.ops = &own_fi_ops;
	o->own_eq.ops = &own_eq_ops;
	o->own_cq.fid.fclass = FI_CLASS_PEER_CQ;
	o->own_cq.owner_ops = &own_cq_ops;
	o->own_send.fid.fclass = FI_CLASS_PEER_CNTR;
	o->own_send.owner_ops = &own_send_ops;
	o->own_recv.fid.fclass = FI_CLASS_PEER_CNTR;
	o->own_recv.owner_ops = &own_recv_ops;
	o->own_srx.ep_fid.fid.fclass = FI_CLASS_PEER_SRX;
	o->own_srx.owner_ops = &own_srx_ops;
	tdt_rma_init(o);
}

/* ---- open ---------------------------------------------------------------- */

/* A context lives on the stack: it is dead after the open call. */
static int open_imports(struct tdt_owner *o)
{
	struct fi_peer_cntr_context cntr_ctx = { sizeof(cntr_ctx),
						 &o->own_send };
	struct fi_peer_srx_context srx_ctx = { sizeof(srx_ctx), &o->own_srx };
	struct fi_peer_cq_context cq_ctx = { sizeof(cq_ctx), &o->own_cq };
	struct fi_peer_eq_context eq_ctx = { sizeof(eq_ctx), &o->own_eq };
	struct fi_cntr_attr cntr_attr = { .flags = FI_PEER };
	struct fi_rx_attr rx_attr = { .op_flags = FI_PEER };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .flags = FI_PEER };
	struct fi_eq_attr eq_attr = { .flags = FI_PEER };
	int ret;

	ret = fi_eq_open(o->fabric, &eq_attr, &o->peer_eq, &eq_ctx);
	if (!ret)
		ret = fi_cq_open(o->domain, &cq_attr, &o->cq, &cq_ctx);
	if (!ret)
		ret = fi_cntr_open(o->domain, &cntr_attr, &o->send_local,
				   &cntr_ctx);
	cntr_ctx.cntr = &o->own_recv;
	if (!ret)
		ret = fi_cntr_open(o->domain, &cntr_attr, &o->recv_local,
				   &cntr_ctx);
	if (!ret)
		ret = tdt_rma_open(o);
	if (!ret)
		ret = fi_srx_context(o->domain, &rx_attr, &o->srx, &srx_ctx);
	if (!ret)
		ret = fi_av_open(o->domain, &av_attr, &o->av, NULL);
	return ret;
}

static int open_ep(struct tdt_owner *o, const struct tdt_owner_attr *attr)
{
	uint64_t tx = FI_TRANSMIT |
		      (attr->selective ? FI_SELECTIVE_COMPLETION : 0);
	int ret;

	if (attr->tx_size)
		o->info->tx_attr->size = attr->tx_size;
	o->info->tx_attr->op_flags = attr->op_flags;
	ret = fi_endpoint(o->domain, o->info, &o->ep, o);
	if (!ret)
		ret = fi_ep_bind(o->ep, &o->cq->fid, tx);
	if (!ret)
		ret = fi_ep_bind(o->ep, &o->cq->fid, FI_RECV);
	if (!ret)
		ret = fi_ep_bind(o->ep, &o->send_local->fid, FI_SEND);
	if (!ret)
		ret = fi_ep_bind(o->ep, &o->recv_local->fid, FI_RECV);
	if (!ret)
		ret = tdt_rma_bind(o);
	if (!ret)
		ret = fi_ep_bind(o->ep, &o->srx->fid, 0);
	if (!ret)
		ret = fi_ep_bind(o->ep, &o->av->fid, 0);
	if (!ret && attr->name)
		ret = fi_setname(&o->ep->fid, (void *)(uintptr_t)attr->name,
				 attr->namelen);
	if (!ret && !attr->no_enable)
		ret = fi_enable(o->ep);
	return ret;
}

int tdt_owner_open(struct fi_provider *prov, const struct tdt_owner_attr *attr,
		   struct tdt_owner **out)
{
	struct tdt_owner *o = calloc(1, sizeof(*o));
	struct fi_peer_domain_context ctx;
	int ret;

	*out = NULL;
	if (!o)
		return -FI_ENOMEM;
	kind = attr->kind;
	exports_init(o);
	o->prov = prov;
	ctx.size = sizeof(ctx);
	ctx.domain = &o->own_domain;
	ret = prov->getinfo(fi_version(), NULL, NULL, 0, attr->hints, &o->info);
	if (!ret)
		ret = prov->fabric(o->info->fabric_attr, &o->fabric, NULL);
	if (!ret) {
		o->fabric->api_version = fi_version();
		ret = attr->plain_domain ?
			      fi_domain(o->fabric, o->info, &o->domain, NULL) :
			      fi_domain2(o->fabric, o->info, &o->domain,
					 FI_PEER, &ctx);
	}
	memset(&ctx, 0xff, sizeof(ctx));
	if (!ret)
		ret = open_imports(o);
	if (!ret)
		ret = open_ep(o, attr);
	if (ret) {
		tdt_owner_close(o, 0, 0);
		return ret;
	}
	*out = o;
	return 0;
}

/* ---- close --------------------------------------------------------------- */

/* The fid is the first member of every object. */
static void close_fid(struct tdt_owner *o, struct fid *fid)
{
	if (fid && fi_close(fid))
		o->broken++;
}

void tdt_owner_close(struct tdt_owner *o, int srx_first, int late_discard)
{
	int i;

	if (!o)
		return;
	o->driving = 1;
	if (!late_discard) {
		while (!tdt_owner_discard(o))
			;
	}
	if (srx_first)
		close_fid(o, (struct fid *)o->srx);
	close_fid(o, (struct fid *)o->ep);
	if (!srx_first)
		close_fid(o, (struct fid *)o->srx);
	while (!tdt_owner_discard(o))
		;
	close_fid(o, (struct fid *)o->av);
	close_fid(o, (struct fid *)o->cq);
	close_fid(o, (struct fid *)o->send_local);
	close_fid(o, (struct fid *)o->recv_local);
	for (i = 0; i < 4; i++)
		close_fid(o, (struct fid *)o->rma[i].local);
	close_fid(o, (struct fid *)o->peer_eq);
	close_fid(o, (struct fid *)o->domain);
	close_fid(o, (struct fid *)o->fabric);
	if (o->info)
		fi_freeinfo(o->info);
	while (o->posted) {
		struct tdt_entry *e = o->posted;

		list_remove(&o->posted, e);
		srx_free_entry(shown(e));
	}
	if (o->broken)
		abort();
	free(o->done);
	tdt_rma_free(o);
	free(o->events);
	free(o);
}

/* ---- use ----------------------------------------------------------------- */

void tdt_owner_recv(struct tdt_owner *o, const struct tdt_recv *r)
{
	struct tdt_entry *e = entry_alloc(o, r->tagged), *q;
	int ret;

	e->rx.flags = (r->tagged ? FI_TAGGED : FI_MSG) | FI_RECV |
		      FI_COMPLETION;
	e->rx.addr = r->addr;
	e->rx.tag = r->tag;
	e->ignore = r->ignore;
	e->rx.context = r->context;
	e->rx.count = r->count;
	memcpy(e->iov, r->iov, r->count * sizeof(*r->iov));
	for (q = o->queued; q; q = q->link) {
		if (entry_matches(e, q->tagged, q->rx.addr, q->rx.tag))
			break;
	}
	if (!q) {
		list_append(&o->posted, e);
		return;
	}
	o->driving = 1;
	list_remove(&o->queued, q);
	q->rx.flags |= e->rx.flags;
	q->rx.context = e->rx.context;
	q->rx.count = e->rx.count;
	memcpy(q->iov, e->iov, sizeof(e->iov));
	srx_free_entry(shown(e));
	ret = r->tagged ? o->own_srx.peer_ops->start_tag(shown(q)) :
			  o->own_srx.peer_ops->start_msg(shown(q));
	if (ret)
		o->broken++;
	o->driving = 0;
}

void tdt_owner_trecv(struct tdt_owner *o, void *buf, size_t len, uint64_t tag,
		     void *context)
{
	struct iovec iov = { buf, len };
	struct tdt_recv r = { 1, &iov, 1, FI_ADDR_UNSPEC, tag, 0, context };

	tdt_owner_recv(o, &r);
}

int tdt_owner_discard(struct tdt_owner *o)
{
	struct tdt_entry *q = o->queued;
	const int was = o->driving;

	if (!q)
		return -1;
	o->driving = 1;
	list_remove(&o->queued, q);
	if (q->tagged)
		o->own_srx.peer_ops->discard_tag(shown(q));
	else
		o->own_srx.peer_ops->discard_msg(shown(q));
	srx_free_entry(shown(q));
	o->driving = was;
	return 0;
}
