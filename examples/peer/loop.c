/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "loop", a toy peer provider: endpoints of one process send one another tagged
 * messages by a copy in memory. It has no completion queue and no receive queue
 * of its own: it uses those that an owner shares with it through fi_peer(3).
 * doc/guide/peer-api.md walks through this file.
 *
 * refuse.h has the calls that the toy does not serve. Others, which an owner of
 * tagged messages does not make, are left out of the tables. A provider for others
 * to use fills each slot: libfabric calls it without looking.
 *
 * Lock: none. The owner calls one object of a domain at a time
 * (FI_THREAD_DOMAIN), and a process has one domain of loop.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_peer.h>
#include <rdma/providers/fi_prov.h>

#include "examples/peer/refuse.h"

/* An address: the id of the process, and a number that it gives the endpoint. */
typedef uint64_t loop_name;

struct loop_ep;

struct loop_msg {
	struct loop_msg *next;
	struct loop_ep *to;
	loop_name from;
	uint64_t tag, data;
	uint64_t flags; /* FI_REMOTE_CQ_DATA */
	size_t len;
	unsigned char bytes[];
};

/* fid is the first member of each object. */
struct loop_cq {
	struct fid_cq fid;
	struct fid_peer_cq *owner;
};

struct loop_srx {
	struct fid_ep fid;
	struct fid_peer_srx *owner;
};

struct loop_av {
	struct fid_av fid;
	size_t count;
	struct {
		loop_name name;
		fi_addr_t user_id; /* the owner's number of the address */
	} entry[256];		   /* by our fi_addr_t */
};

struct loop_ep {
	struct fid_ep fid;
	struct loop_ep *next; /* all of the process */
	loop_name name;
	struct loop_av *av;
	struct loop_cq *tx, *rx;
	struct loop_srx *srx;
	int selective; /* bound with FI_SELECTIVE_COMPLETION */
	struct loop_msg *arrived;
};

static struct loop_ep *endpoints;
static loop_name names;

/* ---- receiving ------------------------------------------------------------ */

/* The owner's number of @name; FI_ADDR_UNSPEC until it is inserted. */
static fi_addr_t source(const struct loop_av *av, loop_name name)
{
	size_t i;

	for (i = 0; i < av->count; i++) {
		if (av->entry[i].name == name)
			return av->entry[i].user_id;
	}
	return FI_ADDR_UNSPEC;
}

/* Copy @m to the buffers of @rx. Returns the number of bytes that fit. */
static size_t scatter(const struct fi_peer_rx_entry *rx,
		      const struct loop_msg *m)
{
	size_t i, n, done = 0;

	for (i = 0; i < rx->count && done < m->len; i++) {
		n = m->len - done;
		if (n > rx->iov[i].iov_len)
			n = rx->iov[i].iov_len;
		memcpy(rx->iov[i].iov_base, m->bytes + done, n);
		done += n;
	}
	return done;
}

/* @rx is a receive for @m: both end here. */
static void finish(struct fi_peer_rx_entry *rx, struct loop_msg *m)
{
	struct fid_peer_cq *cq = m->to->rx->owner;
	struct fi_cq_err_entry e = {
		.op_context = rx->context,
		.flags = FI_RECV | FI_TAGGED | m->flags,
		.buf = rx->count ? rx->iov[0].iov_base : NULL,
		.data = m->data,
		.tag = m->tag,
		.src_addr = rx->addr,
		.err = FI_ETRUNC,
	};

	e.len = scatter(rx, m);
	e.olen = m->len - e.len;
	if (e.olen)
		cq->owner_ops->writeerr(cq, &e);
	else
		cq->owner_ops->write(cq, e.op_context, e.flags, e.len, e.buf,
				     e.data, e.tag, e.src_addr);
	m->to->srx->owner->owner_ops->free_entry(rx);
	free(m);
}

/*
 * Ask the owner for a receive for @m. Without one, @m is unexpected: the owner
 * keeps the entry, and decides what becomes of it. Errors: @m stays ours.
 */
static int arrive(struct loop_ep *ep, struct loop_msg *m)
{
	struct fid_peer_srx *srx = ep->srx->owner;
	struct fi_peer_match_attr attr = { .addr = source(ep->av, m->from),
					   .msg_size = m->len,
					   .tag = m->tag };
	struct fi_peer_rx_entry *rx;
	int ret = srx->owner_ops->get_tag(srx, &attr, &rx);

	if (!ret) {
		finish(rx, m);
		return 0;
	}
	if (ret != -FI_ENOENT)
		return ret;
	rx->peer_context = m;
	rx->flags |= m->flags;
	rx->cq_data = m->data;
	return srx->owner_ops->queue_tag(rx);
}

/* The owner has found a receive for an unexpected message. */
static int start_tag(struct fi_peer_rx_entry *rx)
{
	finish(rx, rx->peer_context);
	return 0;
}

/* Nobody wants an unexpected message. The owner frees its entry. */
static int discard_tag(struct fi_peer_rx_entry *rx)
{
	free(rx->peer_context);
	return 0;
}

static struct fi_ops_srx_peer srx_peer_ops = {
	.size = sizeof(srx_peer_ops),
	.start_tag = start_tag,
	.discard_tag = discard_tag,
};

/* For foreach_unspec_addr(): the source of an unexpected message, by now. */
static fi_addr_t queued_source(struct fi_peer_rx_entry *rx)
{
	const struct loop_msg *m = rx->peer_context;

	return source(m->to->av, m->from);
}

/* ---- sending -------------------------------------------------------------- */

/* All bytes are copied, so the operation ends at once. */
static ssize_t tag_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			   uint64_t flags)
{
	struct loop_ep *ep = (struct loop_ep *)fid, *to;
	struct fid_peer_cq *cq = ep->tx->owner;
	struct loop_msg *m, **last;
	size_t i, len = 0;

	if (msg->addr >= ep->av->count)
		return -FI_EINVAL;
	for (to = endpoints; to; to = to->next) {
		if (to->name == ep->av->entry[msg->addr].name)
			break;
	}
	if (!to)
		return -FI_EHOSTUNREACH;
	for (i = 0; i < msg->iov_count; i++)
		len += msg->msg_iov[i].iov_len;
	m = calloc(1, sizeof(*m) + len);
	if (!m)
		return -FI_EAGAIN;
	for (i = 0; i < msg->iov_count; i++) {
		memcpy(m->bytes + m->len, msg->msg_iov[i].iov_base,
		       msg->msg_iov[i].iov_len);
		m->len += msg->msg_iov[i].iov_len;
	}
	m->to = to;
	m->from = ep->name;
	m->tag = msg->tag;
	m->data = msg->data;
	m->flags = flags & FI_REMOTE_CQ_DATA;
	for (last = &to->arrived; *last; last = &(*last)->next)
		;
	*last = m;
	if (!(flags & FI_INJECT) && (!ep->selective || flags & FI_COMPLETION))
		cq->owner_ops->write(cq, msg->context, FI_SEND | FI_TAGGED, 0,
				     NULL, 0, 0, FI_ADDR_NOTAVAIL);
	return 0;
}

static struct fi_ops_tagged tagged_ops = { .size = sizeof(tagged_ops),
					   .sendmsg = tag_sendmsg };

/* ---- objects -------------------------------------------------------------- */

static int close_object(struct fid *fid)
{
	free(fid);
	return 0;
}

static struct fi_ops plain_ops = { .size = sizeof(plain_ops),
				   .close = close_object };

/* A new object of @bytes, which begins with its fid. Returns 0 or -FI_ENOMEM. */
static int object(size_t bytes, size_t fclass, void *out)
{
	struct fid *fid = calloc(1, bytes);

	if (fid)
		*fid = (struct fid){ .fclass = fclass, .ops = &plain_ops };
	*(void **)out = fid;
	return fid ? 0 : -FI_ENOMEM;
}

/* Progress, for which the owner passes no buffer: nothing is read from here. */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct loop_ep *ep;
	struct loop_msg *m;

	for (ep = endpoints; ep; ep = ep->next) {
		while (&ep->rx->fid == fid && (m = ep->arrived)) {
			ep->arrived = m->next;
			if (!arrive(ep, m))
				continue;
			ep->arrived = m; /* again in the next pass */
			break;
		}
	}
	return -FI_EAGAIN;
}

static struct fi_ops_cq cq_ops = { .size = sizeof(cq_ops),
				   .read = cq_read,
				   .readfrom = no_readfrom,
				   .readerr = no_readerr,
				   .sread = no_sread,
				   .sreadfrom = no_sreadfrom };

/* A context that an owner passes must have room for an object, and name one. */
static int is_import(uint64_t flags, const struct fi_peer_cq_context *context)
{
	return flags & FI_PEER && context && context->size >= sizeof(*context);
}

/* The context is the owner's only during this call: what it names is kept. */
static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		   struct fid_cq **out, void *context)
{
	const struct fi_peer_cq_context *peer = context;
	struct loop_cq *cq;

	if (!is_import(attr->flags, context) ||
	    object(sizeof(*cq), FI_CLASS_CQ, &cq))
		return -FI_EINVAL;
	cq->fid.ops = &cq_ops;
	cq->owner = peer->cq;
	*out = &cq->fid;
	return 0;
}

static struct fi_ops_tagged no_receives = { .size = sizeof(no_receives),
					    .recv = no_recv };

/* The owner calls us through peer_ops; we call it through owner_ops. */
static int srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		    struct fid_ep **out, void *context)
{
	const struct fi_peer_srx_context *peer = context;
	struct loop_srx *srx;

	if (!is_import(attr->op_flags, context) ||
	    object(sizeof(*srx), FI_CLASS_SRX_CTX, &srx))
		return -FI_EINVAL;
	srx->fid.tagged = &no_receives;
	srx->owner = peer->srx;
	peer->srx->peer_ops = &srx_peer_ops;
	*out = &srx->fid;
	return 0;
}

/* New addresses may be those of messages that wait at the owner. */
static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct loop_av *av = (struct loop_av *)fid;
	const loop_name *name = addr;
	struct loop_ep *ep;
	size_t i;

	for (i = 0; i < count && av->count < 256; i++, av->count++) {
		av->entry[av->count].name = name[i];
		av->entry[av->count].user_id =
			flags & FI_AV_USER_ID ? fi_addr[i] : av->count;
		fi_addr[i] = av->count;
	}
	for (ep = endpoints; ep; ep = ep->next) {
		if (ep->av == av)
			ep->srx->owner->owner_ops->foreach_unspec_addr(
				ep->srx->owner, queued_source);
	}
	return (int)i;
}

/* An entry that was removed has no name; its index is not used again. */
static int av_remove(struct fid_av *fid, fi_addr_t *addr, size_t count,
		     uint64_t flags)
{
	struct loop_av *av = (struct loop_av *)fid;
	size_t i;

	for (i = 0; i < count; i++) {
		if (addr[i] >= av->count)
			return -FI_EINVAL;
		av->entry[addr[i]].name = 0;
	}
	return 0;
}

static struct fi_ops_av av_ops = { .size = sizeof(av_ops),
				   .insert = av_insert,
				   .remove = av_remove,
				   .lookup = no_lookup,
				   .straddr = no_straddr };

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		   struct fid_av **out, void *context)
{
	if (attr->flags & FI_PEER) /* an owner has a table, we have one */
		return -FI_EINVAL;
	if (object(sizeof(struct loop_av), FI_CLASS_AV, out))
		return -FI_ENOMEM;
	(*out)->ops = &av_ops;
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct loop_ep *ep = (struct loop_ep *)fid;

	if (bfid->fclass == FI_CLASS_AV)
		ep->av = (struct loop_av *)bfid;
	else if (bfid->fclass == FI_CLASS_SRX_CTX)
		ep->srx = (struct loop_srx *)bfid;
	else if (flags & FI_RECV)
		ep->rx = (struct loop_cq *)bfid;
	if (flags & FI_TRANSMIT) {
		ep->tx = (struct loop_cq *)bfid;
		ep->selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
	}
	return 0;
}

/* fi_enable(3) */
static int ep_control(struct fid *fid, int command, void *arg)
{
	struct loop_ep *ep = (struct loop_ep *)fid;

	if (command != FI_ENABLE || !ep->av || !ep->tx || !ep->rx || !ep->srx)
		return -FI_EINVAL;
	ep->name = (loop_name)getpid() << 32 | ++names;
	ep->next = endpoints;
	endpoints = ep;
	return 0;
}

static int ep_close(struct fid *fid)
{
	struct loop_ep *ep = (struct loop_ep *)fid, **at = &endpoints;
	struct loop_msg *m;

	while (*at && *at != ep)
		at = &(*at)->next;
	if (*at)
		*at = ep->next;
	while ((m = ep->arrived)) {
		ep->arrived = m->next;
		free(m);
	}
	return close_object(fid);
}

static int ep_getname(fid_t fid, void *addr, size_t *len)
{
	size_t room = *len;

	*len = sizeof(loop_name);
	if (room < *len)
		return -FI_ETOOSMALL;
	memcpy(addr, &((struct loop_ep *)fid)->name, *len);
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
	if (object(sizeof(struct loop_ep), FI_CLASS_EP, out))
		return -FI_ENOMEM;
	(*out)->fid.ops = &ep_fi_ops;
	(*out)->cm = &cm_ops;
	(*out)->tagged = &tagged_ops;
	return 0;
}

static struct fi_ops_domain domain_ops = { .size = sizeof(domain_ops),
					   .av_open = av_open,
					   .cntr_open = no_cntr,
					   .cq_open = cq_open,
					   .endpoint = ep_open,
					   .srx_ctx = srx_open };

/* FI_PEER in @flags: @context names the owner's domain, which we do not need. */
static int domain_open(struct fid_fabric *fabric, struct fi_info *info,
		       struct fid_domain **out, uint64_t flags, void *context)
{
	if (!is_import(flags, context) ||
	    object(sizeof(struct fid_domain), FI_CLASS_DOMAIN, out))
		return -FI_EINVAL;
	(*out)->ops = &domain_ops;
	return 0;
}

static struct fi_ops_fabric fabric_ops = { .size = sizeof(fabric_ops),
					   .eq_open = no_eq,
					   .domain2 = domain_open };

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out,
		       void *context)
{
	if (object(sizeof(struct fid_fabric), FI_CLASS_FABRIC, out))
		return -FI_ENOMEM;
	(*out)->ops = &fabric_ops;
	return 0;
}

/* Offered to owners only: to applications it could not show a completion. */
static int getinfo(uint32_t version, const char *node, const char *service,
		   uint64_t flags, const struct fi_info *hints,
		   struct fi_info **out)
{
	const uint64_t caps = FI_TAGGED | FI_SEND | FI_RECV | FI_PEER |
			      FI_DIRECTED_RECV | FI_SOURCE | FI_LOCAL_COMM;
	struct fi_info *info;

	if (!hints || !(hints->caps & FI_PEER) || hints->caps & ~caps)
		return -FI_ENODATA;
	info = fi_allocinfo();
	if (!info)
		return -FI_ENOMEM;
	info->caps = caps;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->max_msg_size = SIZE_MAX;
	info->domain_attr->threading = FI_THREAD_DOMAIN;
	info->domain_attr->progress = FI_PROGRESS_MANUAL;
	info->domain_attr->name = strdup("loop");
	info->fabric_attr->name = strdup("loop");
	*out = info;
	return 0;
}

/* The one symbol that libfabric looks for. */
__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	static struct fi_provider loop = { .version = FI_VERSION(0, 1),
					   .fi_version = FI_VERSION(2, 1),
					   .name = "loop",
					   .getinfo = getinfo,
					   .fabric = fabric_open };

	return &loop;
}
