/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of the provider of liar.h. Lock: see there. */
#include "tests/contract/liar.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

struct liar_late liar_late;

/* ---- receiving ------------------------------------------------------------ */

static fi_addr_t source(const struct liar_av *av, uint64_t name)
{
	size_t i;

	for (i = 0; i < av->count; i++) {
		if (av->name[i] == name)
			return av->user_id[i];
	}
	return FI_ADDR_UNSPEC;
}

/* Returns the bytes that fit. */
static size_t scatter(const struct fi_peer_rx_entry *rx,
		      const struct liar_msg *m)
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

struct ending {
	struct fid_peer_cq *cq;
	void *context;
	const struct liar_msg *m;
	size_t len;
	ssize_t ret;
};

static void *write_end(void *arg)
{
	struct ending *e = arg;

	e->ret = e->cq->owner_ops->write(e->cq, e->context,
					 FI_RECV | e->m->flags, e->len, NULL,
					 e->m->data, e->m->tag, FI_ADDR_UNSPEC);
	return NULL;
}

static void run_apart(void *(*call)(void *), void *arg)
{
	pthread_t other;

	if (!pthread_create(&other, NULL, call, arg))
		pthread_join(other, NULL);
}

static void report(const struct ending *end, size_t placed)
{
	struct fi_cq_err_entry err = {
		.op_context = end->context,
		.flags = FI_RECV | end->m->flags,
		.len = placed,
		.olen = end->m->len - placed,
		.data = end->m->data,
		.tag = end->m->tag,
		.err = FI_ETRUNC,
	};
	struct ending e = *end;

	if (liar_lies("recv fails with 0") || liar_lies("recv fails with -5")) {
		err.err = liar_lies("recv fails with 0") ? 0 : -5;
		e.cq->owner_ops->writeerr(e.cq, &err);
	} else if (placed < e.m->len) {
		e.cq->owner_ops->writeerr(e.cq, &err);
	} else if (liar_lies("end from another thread")) {
		run_apart(write_end, &e);
	} else {
		write_end(&e);
	}
}

/* @rx is a receive for @m: both end here. */
static void finish(struct fi_peer_rx_entry *rx, struct liar_msg *m)
{
	struct fi_ops_srx_owner *ops = m->to->srx->owner->owner_ops;
	size_t placed = scatter(rx, m);
	struct ending e = { m->to->rx->owner, rx->context, m, placed, 0 };

	if (liar_lies("end is longer than announced"))
		e.len = m->len + 4096;
	if (liar_lies("end of an unknown entry"))
		e.context = &e;
	if (liar_lies("free before the end"))
		ops->free_entry(rx);
	if (!liar_lies("free without an end"))
		report(&e, placed);
	if (liar_lies("end twice"))
		report(&e, placed);
	if (liar_lies("free an unknown entry"))
		ops->free_entry(
			(struct fi_peer_rx_entry *)(void *)liar_endpoints);
	if (liar_lies("queue a matched entry"))
		ops->queue_tag(rx);
	if (!liar_lies("free before the end"))
		ops->free_entry(rx);
	if (liar_lies("free twice"))
		ops->free_entry(rx);
	if (liar_lies("end after free"))
		report(&e, placed);
	liar_late.entry = rx;
	liar_late.context = e.context;
	free(m);
}

static int ask(struct liar_ep *ep, const struct liar_msg *m,
	       struct fi_peer_rx_entry **rx)
{
	struct fid_peer_srx *srx = ep->srx->owner;
	struct fi_peer_match_attr attr = { .addr = source(ep->av, m->from),
					   .msg_size = m->len,
					   .tag = m->tag };

	if (liar_lies("source is unknown"))
		attr.addr = 1ULL << 40;
	if (liar_lies("message is shorter than announced"))
		attr.msg_size += 4096;
	if (liar_lies("message is longer than memory"))
		attr.msg_size = SIZE_MAX;
	if (liar_lies("message is longer than announced"))
		attr.msg_size = 0;
	return m->flags & FI_TAGGED ? srx->owner_ops->get_tag(srx, &attr, rx) :
				      srx->owner_ops->get_msg(srx, &attr, rx);
}

struct asking {
	struct liar_ep *ep;
	const struct liar_msg *m;
	struct fi_peer_rx_entry *rx;
	int ret;
};

static void *ask_apart(void *arg)
{
	struct asking *a = arg;

	a->ret = ask(a->ep, a->m, &a->rx);
	return NULL;
}

static int queue(struct fid_peer_srx *srx, struct liar_msg *m,
		 struct fi_peer_rx_entry *rx)
{
	struct ending e = { m->to->rx->owner, rx->context, m, m->len, 0 };
	int ret;

	rx->peer_context = m;
	rx->flags |= m->flags & FI_REMOTE_CQ_DATA;
	rx->cq_data = m->data;
	if (liar_lies("free what was not queued")) {
		srx->owner_ops->free_entry(rx);
		free(m);
		return 0;
	}
	if (m->flags & FI_TAGGED)
		ret = srx->owner_ops->queue_tag(rx);
	else
		ret = srx->owner_ops->queue_msg(rx);
	if (liar_lies("queue twice"))
		srx->owner_ops->queue_tag(rx);
	if (liar_lies("end of a waiting message"))
		report(&e, m->len);
	if (liar_lies("free a waiting message")) {
		srx->owner_ops->free_entry(rx);
		free(m);
	}
	return ret;
}

int liar_arrive(struct liar_ep *ep, struct liar_msg *m)
{
	struct asking a = { ep, m, NULL, 0 };

	if (liar_lies("get from another thread"))
		run_apart(ask_apart, &a);
	if (liar_lies("queue an unknown entry"))
		ep->srx->owner->owner_ops->queue_tag(
			(struct fi_peer_rx_entry *)(void *)ep);
	if (liar_lies("get at an unknown context"))
		ep->srx->owner->owner_ops->get_tag(
			(struct fid_peer_srx *)(void *)ep,
			&(struct fi_peer_match_attr){ .tag = m->tag }, &a.rx);
	ask_apart(&a);
	if (!a.ret)
		finish(a.rx, m);
	else if (a.ret == -FI_ENOENT)
		return queue(ep->srx->owner, m, a.rx);
	return a.ret;
}

/* start_msg() and start_tag() */
static int start(struct fi_peer_rx_entry *rx)
{
	struct liar_msg *m = rx->peer_context;
	struct fid_peer_srx *srx = m->to->srx->owner;

	if (liar_lies("start fails")) {
		free(m);
		return -FI_EIO;
	}
	if (liar_lies("start fails with 5")) {
		free(m);
		return 5;
	}
	if (liar_lies("start frees and fails")) {
		srx->owner_ops->free_entry(rx);
		free(m);
		return -FI_EIO;
	}
	finish(rx, m);
	return liar_lies("start ends and fails") ? -FI_EIO : 0;
}

/* discard_msg() and discard_tag() */
static int discard(struct fi_peer_rx_entry *rx)
{
	struct liar_msg *m = rx->peer_context;
	struct fid_peer_srx *srx = m->to->srx->owner;

	free(m);
	if (liar_lies("discard frees"))
		srx->owner_ops->free_entry(rx);
	return liar_lies("discard fails") ? -FI_EIO : 0;
}

struct fi_ops_srx_peer liar_srx_ops = {
	.size = sizeof(liar_srx_ops),
	.start_msg = start,
	.start_tag = start,
	.discard_msg = discard,
	.discard_tag = discard,
};

fi_addr_t liar_source(struct fi_peer_rx_entry *rx)
{
	const struct liar_msg *m = rx->peer_context;

	return liar_lies("source is found wrong") ? 1ULL << 40 :
						    source(m->to->av, m->from);
}

/* ---- sending -------------------------------------------------------------- */

static void *sent(void *arg)
{
	struct ending *e = arg;

	e->cq->owner_ops->write(e->cq, e->context, FI_SEND, 0, NULL, 0, 0,
				FI_ADDR_NOTAVAIL);
	return NULL;
}

static ssize_t end_send(struct liar_ep *ep, void *context)
{
	struct ending e = { .cq = ep->tx->owner, .context = context };
	struct fi_cq_err_entry err = { .op_context = context,
				       .flags = FI_SEND };

	if (liar_lies("send of an unknown context"))
		e.context = &e;
	if (liar_lies("send ends from another thread"))
		run_apart(sent, &e);
	else if (liar_lies("send fails with 0"))
		e.cq->owner_ops->writeerr(e.cq, &err);
	else
		sent(&e);
	if (liar_lies("send ends twice"))
		sent(&e);
	if (liar_lies("send ends and fails"))
		return -FI_EIO;
	return liar_lies("send returns 1") ? 1 : 0;
}

static ssize_t post(struct liar_ep *ep, const struct fi_msg_tagged *msg,
		    uint64_t flags)
{
	struct liar_msg *m, **last;
	struct liar_ep *to;
	size_t i, len = 0;

	if (msg->addr >= ep->av->count || liar_lies("send fails"))
		return -FI_EIO;
	for (to = liar_endpoints; to; to = to->next) {
		if (to->name == ep->av->name[msg->addr])
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
	m->flags = flags & (FI_REMOTE_CQ_DATA | FI_MSG | FI_TAGGED);
	for (last = &to->arrived; *last; last = &(*last)->next)
		;
	*last = m;
	return end_send(ep, msg->context);
}

static ssize_t tag_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			   uint64_t flags)
{
	return post((struct liar_ep *)fid, msg, flags | FI_TAGGED);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
			   uint64_t flags)
{
	const struct fi_msg_tagged m = {
		.msg_iov = msg->msg_iov,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.context = msg->context,
		.data = msg->data,
	};

	return post((struct liar_ep *)fid, &m, flags | FI_MSG);
}

struct fi_ops_tagged liar_tagged_ops = { .size = sizeof(liar_tagged_ops),
					 .sendmsg = tag_sendmsg };
struct fi_ops_msg liar_msg_ops = { .size = sizeof(liar_msg_ops),
				   .sendmsg = msg_sendmsg };

void liar_call_late(void)
{
	struct fi_peer_match_attr attr = { .addr = 0, .msg_size = 1 };
	struct fi_peer_rx_entry *rx;

	if (!liar_late.srx)
		return;
	if (liar_lies("get after close"))
		liar_late.srx->owner_ops->get_msg(liar_late.srx, &attr, &rx);
	if (liar_lies("resolve after close"))
		liar_late.srx->owner_ops->foreach_unspec_addr(liar_late.srx,
							      liar_source);
	if (liar_lies("end after close"))
		liar_late.rx->owner_ops->write(liar_late.rx, liar_late.context,
					       FI_RECV, 1, NULL, 0, 0, 0);
	if (liar_lies("send ends after close"))
		liar_late.tx->owner_ops->write(liar_late.tx, liar_late.context,
					       FI_SEND, 1, NULL, 0, 0, 0);
	if (liar_lies("free after close"))
		liar_late.srx->owner_ops->free_entry(liar_late.entry);
}
