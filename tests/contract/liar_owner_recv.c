/* SPDX-License-Identifier: BSD-2-Clause */
/* The receive side of the owner of liar_owner.h. Lock: see there. */
#include "tests/contract/liar_owner.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

/* The tag of the messages with which two endpoints meet: no lie is told of it. */
enum { MEET = 0xabc, ENTRIES_MOST = 500, MANY_LEAST = 64 };

static const uint64_t kinds = FI_MSG | FI_TAGGED;

static int lies_of(const struct fi_peer_rx_entry *rx, const char *what)
{
	return rx->tag != MEET && lo_lies(what);
}

static struct lo_entry *entry_new(struct lo_ep *ep)
{
	struct lo_entry *e = calloc(1, sizeof(*e));

	if (!e)
		abort();
	ep->entries++;
	e->ep = ep;
	e->rx.srx = &ep->lent;
	e->rx.iov = &e->iov;
	e->rx.desc = &e->desc;
	return e;
}

static void append(struct lo_entry **list, struct lo_entry *e)
{
	const int first = lies_of(&e->rx, e->rx.context ?
						  "newest receive first" :
						  "newest message first");

	while (*list && !first)
		list = &(*list)->next;
	e->next = *list;
	*list = e;
}

/* Whether the receive @r is for the message @m. */
static int matches(const struct fi_peer_rx_entry *r,
		   const struct fi_peer_rx_entry *m)
{
	if ((r->flags & kinds) != (m->flags & kinds) &&
	    !lo_lies("one queue for both kinds"))
		return 0;
	if (r->tag != m->tag && !lo_lies("ignores tags"))
		return 0;
	if (m->addr == FI_ADDR_UNSPEC && lies_of(m, "unknown never matches"))
		return 0;
	return r->addr == FI_ADDR_UNSPEC || r->addr == m->addr ||
	       lo_lies("ignores sources") ||
	       (m->addr == FI_ADDR_UNSPEC && lo_lies("unknown matches"));
}

/* The match as the peer sees it; an owner may lie here. */
static void show(struct lo_entry *e)
{
	struct fi_peer_rx_entry *rx = &e->rx;

	if (lies_of(rx, "no FI_RECV"))
		rx->flags &= ~(uint64_t)FI_RECV;
	if (lies_of(rx, "no FI_COMPLETION"))
		rx->flags &= ~(uint64_t)FI_COMPLETION;
	if (lies_of(rx, "no desc"))
		rx->desc = NULL;
	if (lies_of(rx, "buffer is short") && e->iov.iov_len)
		e->iov.iov_len--;
}

/*
 * An entry for a message of @len bytes, in the receive of many *@at, which is
 * taken out when it is used up.
 */
static struct lo_entry *part_new(struct lo_entry **at, size_t len)
{
	struct lo_entry *many = *at, *e = entry_new(many->ep);

	e->iov.iov_base = many->iov.iov_base;
	e->iov.iov_len = len < many->iov.iov_len ? len : many->iov.iov_len;
	e->rx.count = 1;
	e->rx.context = many->rx.context;
	if (!lo_lies("parts overlap"))
		many->iov.iov_base = (char *)many->iov.iov_base + len;
	many->iov.iov_len -= e->iov.iov_len;
	if (many->iov.iov_len < MANY_LEAST) {
		*at = many->next;
		e->many = many;
	}
	return e;
}

static int get(struct fid_peer_srx *srx, uint64_t kind,
	       const struct fi_peer_match_attr *attr,
	       struct fi_peer_rx_entry **out)
{
	struct lo_ep *ep = srx->ep_fid.fid.context;
	const struct fi_peer_rx_entry m = { .addr = attr->addr,
					    .tag = attr->tag,
					    .flags = kind };
	struct lo_entry **at = &ep->posted, *receive, *e;

	while (*at && !matches(&(*at)->rx, &m))
		at = &(*at)->next;
	receive = *at;
	if (lo_lies("runs out of entries") && ep->entries > ENTRIES_MOST)
		return -FI_ENOMEM;
	if (!receive && lies_of(&m, "get fails"))
		return -FI_EIO;
	if (receive && !receive->is_many)
		*at = receive->next;
	e = receive && receive->is_many ? part_new(at, attr->msg_size) :
	    receive			? receive :
					  entry_new(ep);
	e->rx.addr = attr->addr;
	e->rx.tag = attr->tag;
	e->rx.msg_size = attr->msg_size;
	e->rx.flags = kind | FI_RECV | FI_COMPLETION;
	if (receive)
		show(e);
	else if (lies_of(&m, "entry without a size"))
		e->rx.msg_size = 0;
	if (lies_of(&m, "entry without srx"))
		e->rx.srx = NULL;
	*out = &e->rx;
	return receive ? 0 : -FI_ENOENT;
}

static int get_msg(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **out)
{
	attr->tag = 0;
	return get(srx, FI_MSG, attr, out);
}

static int get_tag(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **out)
{
	return get(srx, FI_TAGGED, attr, out);
}

static int queue(struct fi_peer_rx_entry *rx)
{
	struct lo_entry *e = (struct lo_entry *)rx;

	append(&e->ep->queued, e);
	return 0;
}

/* The last message in a receive of many has ended. */
static void end_many(struct lo_entry *many)
{
	const struct fi_cq_err_entry end = { .op_context = many->rx.context,
					     .flags = FI_RECV | FI_MULTI_RECV };

	lo_cq_add(many->ep->cq, &end);
	many->ep->entries--;
	free(many);
}

static void free_entry(struct fi_peer_rx_entry *rx)
{
	struct lo_entry *e = (struct lo_entry *)rx;

	if (!lo_lies("runs out of entries"))
		e->ep->entries--;
	if (e->many)
		end_many(e->many);
	free(e);
}

static void start(struct lo_entry *e)
{
	const struct fi_ops_srx_peer *ops = e->ep->lent.peer_ops;
	int (*call)(struct fi_peer_rx_entry *) =
		e->rx.flags & FI_TAGGED ? ops->start_tag : ops->start_msg;

	show(e);
	if (lo_lies("uses peer_context"))
		e->rx.peer_context = e;
	if (lo_lies("starts without a buffer"))
		e->rx.count = 0;
	call(&e->rx);
	/* For a peer that ends it later: else it is free already. */
	if (lo_lies("takes the buffer back"))
		e->iov.iov_len = 0;
}

/* A receive that waits may match a message whose source is known now. */
static void start_known(struct lo_ep *ep, struct lo_entry *e)
{
	struct lo_entry **at = &ep->posted, **q = &ep->queued, *r;

	while (*at && !matches(&(*at)->rx, &e->rx))
		at = &(*at)->next;
	r = *at;
	if (!r)
		return;
	*at = r->next;
	while (*q != e)
		q = &(*q)->next;
	*q = e->next;
	e->iov = r->iov;
	e->rx.count = r->rx.count;
	e->rx.context = r->rx.context;
	free_entry(&r->rx);
	start(e);
}

static void foreach(struct fid_peer_srx *srx,
		    fi_addr_t (*source)(struct fi_peer_rx_entry *))
{
	struct lo_ep *ep = srx->ep_fid.fid.context;
	struct lo_entry *e, *next;
	fi_addr_t addr;

	for (e = ep->queued; e && !lo_lies("does not ask"); e = next) {
		next = e->next;
		if (e->rx.addr != FI_ADDR_UNSPEC && !lo_lies("asks for all"))
			continue;
		addr = source(&e->rx);
		if (!lo_lies("forgets sources"))
			e->rx.addr = addr;
		if (e->rx.addr != FI_ADDR_UNSPEC)
			start_known(ep, e);
	}
}

static struct fi_ops_srx_owner owner_ops = {
	.size = sizeof(owner_ops),
	.get_msg = get_msg,
	.get_tag = get_tag,
	.queue_msg = queue,
	.queue_tag = queue,
	.foreach_unspec_addr = foreach,
	.free_entry = free_entry,
};

/* ---- the application's calls ---------------------------------------------- */

static ssize_t receive(struct fid_ep *fid, uint64_t kind,
		       const struct iovec *iov, fi_addr_t source, uint64_t tag,
		       void *context)
{
	struct lo_ep *ep = (struct lo_ep *)fid;
	struct lo_entry *r = entry_new(ep), **at = &ep->queued, *e;

	r->iov = *iov;
	r->rx.count = 1;
	r->rx.addr = source;
	r->rx.tag = tag;
	r->rx.flags = kind;
	r->rx.context = context;
	while (*at && (!matches(&r->rx, &(*at)->rx) ||
		       lies_of(&r->rx, "does not start")))
		at = &(*at)->next;
	e = *at;
	if (!e) {
		append(&ep->posted, r);
		return 0;
	}
	*at = e->next;
	e->iov = r->iov;
	e->rx.count = 1;
	e->rx.context = context;
	if (lo_lies("starts the receive"))
		ep->lent.peer_ops->start_tag(&r->rx);
	free_entry(&r->rx);
	start(e);
	return 0;
}

static ssize_t trecv(struct fid_ep *fid, void *buf, size_t len, void *desc,
		     fi_addr_t source, uint64_t tag, uint64_t ignore,
		     void *context)
{
	const struct iovec iov = { buf, len };

	return receive(fid, FI_TAGGED, &iov, source, tag, context);
}

static ssize_t recv_one(struct fid_ep *fid, void *buf, size_t len, void *desc,
			fi_addr_t source, void *context)
{
	const struct iovec iov = { buf, len };

	return receive(fid, FI_MSG, &iov, source, 0, context);
}

/* A receive of many messages. */
static ssize_t recvmsg_many(struct fid_ep *fid, const struct fi_msg *msg,
			    uint64_t flags)
{
	struct lo_ep *ep = (struct lo_ep *)fid;
	struct lo_entry *e;

	if (!(flags & FI_MULTI_RECV))
		return -FI_ENOSYS;
	e = entry_new(ep);
	e->is_many = 1;
	e->iov = *msg->msg_iov;
	e->rx.count = 1;
	e->rx.addr = msg->addr;
	e->rx.flags = FI_MSG;
	e->rx.context = msg->context;
	append(&ep->posted, e);
	return 0;
}

static int set_least(fid_t fid, int level, int name, const void *val,
		     size_t len)
{
	return 0; /* it is MANY_LEAST already */
}

static void discard(struct lo_entry *e)
{
	const struct fi_ops_srx_peer *ops = e->ep->lent.peer_ops;

	if (lo_lies("discards nothing"))
		return;
	if (e->rx.flags & FI_TAGGED)
		ops->discard_tag(&e->rx);
	else
		ops->discard_msg(&e->rx);
	free_entry(&e->rx);
}

/* FI_PEEK, and FI_DISCARD with it. */
static ssize_t trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			uint64_t flags)
{
	struct lo_ep *ep = (struct lo_ep *)fid;
	struct lo_entry **at = &ep->queued, *e;
	struct fi_cq_err_entry end = { .op_context = msg->context,
				       .flags = FI_RECV | FI_TAGGED,
				       .tag = msg->tag };

	while (*at && (*at)->rx.tag != msg->tag)
		at = &(*at)->next;
	e = *at;
	end.err = e ? 0 : FI_ENOMSG;
	if (e) {
		end.len = e->rx.msg_size;
		end.data = lo_lies("peeks without data") ? 0 : e->rx.cq_data;
	}
	if (e && flags & FI_DISCARD) {
		*at = e->next;
		discard(e);
	}
	lo_cq_add(ep->cq, &end);
	return 0;
}

static ssize_t cancel(fid_t fid, void *context)
{
	struct lo_ep *ep = (struct lo_ep *)fid;
	struct lo_entry **at = &ep->posted, *e;
	const struct fi_cq_err_entry end = { .op_context = context,
					     .flags = FI_RECV,
					     .err = FI_ECANCELED };

	while (*at && (*at)->rx.context != context)
		at = &(*at)->next;
	e = *at;
	if (!e || lo_lies("cancels nothing"))
		return 0;
	*at = e->next;
	free_entry(&e->rx);
	lo_cq_add(ep->cq, &end);
	return 0;
}

struct fi_ops_ep lo_ep_ops = { .size = sizeof(lo_ep_ops),
			       .cancel = cancel,
			       .setopt = set_least };

void lo_flush(struct lo_ep *ep)
{
	struct lo_entry *e;

	while ((e = ep->posted)) {
		ep->posted = e->next;
		free_entry(&e->rx);
	}
	while (!lo_lies("leaves messages") && (e = ep->queued)) {
		ep->queued = e->next;
		discard(e);
	}
}

int lo_lend(struct lo_ep *ep)
{
	static struct fi_ops_srx_owner half;
	struct fi_peer_srx_context lent = { sizeof(lent), &ep->lent };
	struct fi_rx_attr attr = { .op_flags = FI_PEER, .size = 1024 };

	half = owner_ops;
	half.free_entry = NULL;
	ep->lent.ep_fid.fid.fclass =
		lo_lies("receives without a class") ? 0 : FI_CLASS_PEER_SRX;
	ep->lent.ep_fid.fid.context = ep;
	ep->lent.ep_fid.ops = lo_lies("no endpoint calls") ? NULL : &lo_ep_ops;
	ep->lent.owner_ops =
		lo_lies("receives without free_entry") ? &half : &owner_ops;
	return lo_refused(
		fi_srx_context(ep->domain->peer, &attr, &ep->peer_srx, &lent));
}

/* ---- sends ---------------------------------------------------------------- */

static ssize_t tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			uint64_t flags)
{
	struct lo_ep *ep = (struct lo_ep *)fid;
	struct fi_msg_tagged m = *msg;
	struct iovec iov = *msg->msg_iov;
	ssize_t ret;

	if (lo_lies("does not send"))
		return 0;
	if (lo_closed && lo_lies("one closes all"))
		return -FI_EOPBADSTATE;
	if (lo_lies("cuts sends") && iov.iov_len > 4096)
		iov.iov_len = 4096;
	m.msg_iov = &iov;
	m.addr = ep->av->to[msg->addr];
	ret = fi_tsendmsg(ep->peer, &m, flags);
	return ret == -FI_EAGAIN && lo_lies("loses sends") ? 0 : ret;
}

static ssize_t sendmsg_one(struct fid_ep *fid, const struct fi_msg *msg,
			   uint64_t flags)
{
	struct lo_ep *ep = (struct lo_ep *)fid;
	struct fi_msg m = *msg;

	m.addr = ep->av->to[msg->addr];
	return fi_sendmsg(ep->peer, &m, flags);
}

struct fi_ops_tagged lo_tagged_ops = { .size = sizeof(lo_tagged_ops),
				       .recv = trecv,
				       .recvmsg = trecvmsg,
				       .sendmsg = tsendmsg };
struct fi_ops_msg lo_msg_ops = { .size = sizeof(lo_msg_ops),
				 .recv = recv_one,
				 .recvmsg = recvmsg_many,
				 .sendmsg = sendmsg_one };
