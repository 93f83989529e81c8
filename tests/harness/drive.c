/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driving a world: see drive.h. Completions are read in whatever format the
 * CQs have and kept per endpoint, in the order they were read, until a wait
 * asks for them.
 */
#include "drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { READ_AT_ONCE = 16 };

uint64_t tdt_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint64_t tdt_deadline_ms(void)
{
	const char *s = getenv("TANDEM_TEST_DEADLINE");

	return s && atoi(s) > 0 ? (uint64_t)atoi(s) * 1000 : 120000;
}

const char *tdt_call_name(enum tdt_call call)
{
	static const char *const names[TDT_CALLS] = {
		"send",	      "sendv", "sendmsg", "senddata", "inject",
		"injectdata", "recv",  "recvv",	  "recvmsg",
	};

	return names[call];
}

/* Cut the buffer of @op into its pieces. Out: iov[op->pieces or 1]. */
static size_t cut(const struct tdt_op *op, struct iovec *iov)
{
	size_t n = op->pieces ? op->pieces : 1, i, at = 0;

	for (i = 0; i < n; i++) {
		size_t part = i + 1 == n ? op->len - at : op->len / n;

		iov[i].iov_base = (char *)op->buf + at;
		iov[i].iov_len = part;
		at += part;
	}
	return n;
}

static ssize_t post_msg(struct tdt_ep *ep, const struct tdt_op *op)
{
	struct iovec iov[16];
	size_t n = cut(op, iov);
	struct fi_msg msg;

	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = iov;
	msg.iov_count = n;
	msg.addr = op->addr;
	msg.context = op->context;
	msg.data = op->data;
	switch (op->call) {
	case TDT_SEND:
		return fi_send(ep->ep, op->buf, op->len, NULL, op->addr,
			       op->context);
	case TDT_SENDV:
		return fi_sendv(ep->ep, iov, NULL, n, op->addr, op->context);
	case TDT_SENDMSG:
		return fi_sendmsg(ep->ep, &msg, op->flags);
	case TDT_SENDDATA:
		return fi_senddata(ep->ep, op->buf, op->len, NULL, op->data,
				   op->addr, op->context);
	case TDT_INJECT:
		return fi_inject(ep->ep, op->buf, op->len, op->addr);
	case TDT_INJECTDATA:
		return fi_injectdata(ep->ep, op->buf, op->len, op->data,
				     op->addr);
	case TDT_RECV:
		return fi_recv(ep->ep, op->buf, op->len, NULL, op->addr,
			       op->context);
	case TDT_RECVV:
		return fi_recvv(ep->ep, iov, NULL, n, op->addr, op->context);
	case TDT_RECVMSG:
		return fi_recvmsg(ep->ep, &msg, op->flags);
	default:
		return -FI_EINVAL;
	}
}

static ssize_t post_tagged(struct tdt_ep *ep, const struct tdt_op *op)
{
	struct iovec iov[16];
	size_t n = cut(op, iov);
	struct fi_msg_tagged msg;

	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = iov;
	msg.iov_count = n;
	msg.addr = op->addr;
	msg.tag = op->tag;
	msg.ignore = op->ignore;
	msg.context = op->context;
	msg.data = op->data;
	switch (op->call) {
	case TDT_SEND:
		return fi_tsend(ep->ep, op->buf, op->len, NULL, op->addr,
				op->tag, op->context);
	case TDT_SENDV:
		return fi_tsendv(ep->ep, iov, NULL, n, op->addr, op->tag,
				 op->context);
	case TDT_SENDMSG:
		return fi_tsendmsg(ep->ep, &msg, op->flags);
	case TDT_SENDDATA:
		return fi_tsenddata(ep->ep, op->buf, op->len, NULL, op->data,
				    op->addr, op->tag, op->context);
	case TDT_INJECT:
		return fi_tinject(ep->ep, op->buf, op->len, op->addr, op->tag);
	case TDT_INJECTDATA:
		return fi_tinjectdata(ep->ep, op->buf, op->len, op->data,
				      op->addr, op->tag);
	case TDT_RECV:
		return fi_trecv(ep->ep, op->buf, op->len, NULL, op->addr,
				op->tag, op->ignore, op->context);
	case TDT_RECVV:
		return fi_trecvv(ep->ep, iov, NULL, n, op->addr, op->tag,
				 op->ignore, op->context);
	case TDT_RECVMSG:
		return fi_trecvmsg(ep->ep, &msg, op->flags);
	default:
		return -FI_EINVAL;
	}
}

ssize_t tdt_post_once(struct tdt_ep *ep, const struct tdt_op *op)
{
	return op->tagged ? post_tagged(ep, op) : post_msg(ep, op);
}

ssize_t tdt_post(struct tdt_ep *ep, const struct tdt_op *op)
{
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	ssize_t ret;

	while ((ret = tdt_post_once(ep, op)) == -FI_EAGAIN) {
		tdt_progress(ep->world);
		if (tdt_now_ms() > end)
			return -FI_ETIMEDOUT;
	}
	return ret;
}

static struct tdt_comp *new_comp(struct tdt_ep *ep)
{
	struct tdt_comp *c;

	if (ep->comp_count == ep->comp_room) {
		size_t room = ep->comp_room ? ep->comp_room * 2 : 64;

		c = realloc(ep->comps, room * sizeof(*c));
		if (!c)
			abort();
		ep->comps = c;
		ep->comp_room = room;
	}
	c = &ep->comps[ep->comp_count++];
	memset(c, 0, sizeof(*c));
	return c;
}

static size_t entry_bytes(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

/* All formats are prefixes of struct fi_cq_tagged_entry. */
static void keep(struct tdt_ep *ep, int rx, const void *entry, fi_addr_t src)
{
	struct tdt_comp *c = new_comp(ep);
	struct fi_cq_tagged_entry e;

	memset(&e, 0, sizeof(e));
	memcpy(&e, entry, entry_bytes(ep->world->attr.format));
	c->context = e.op_context;
	c->flags = e.flags;
	c->len = e.len;
	c->buf = e.buf;
	c->data = e.data;
	c->tag = e.tag;
	c->src = src;
	c->rx = rx;
}

static void keep_error(struct tdt_ep *ep, struct fid_cq *cq, int rx)
{
	struct fi_cq_err_entry e;
	struct tdt_comp *c;
	ssize_t ret;

	memset(&e, 0, sizeof(e));
	ret = fi_cq_readerr(cq, &e, 0);
	if (ret != 1) {
		ep->world->bad = ret < 0 ? (int)ret : -FI_EOTHER;
		return;
	}
	c = new_comp(ep);
	c->context = e.op_context;
	c->flags = e.flags;
	c->len = e.len;
	c->buf = e.buf;
	c->data = e.data;
	c->tag = e.tag;
	c->src = e.src_addr;
	c->rx = rx;
	c->err = e.err;
	c->prov_errno = e.prov_errno;
	c->olen = e.olen;
	fi_cq_strerror(cq, e.prov_errno, e.err_data, ep->world->error_text,
		       sizeof(ep->world->error_text));
	c->err_data_size = e.err_data_size;
	if (e.err_data_size)
		memcpy(c->err_data, e.err_data,
		       e.err_data_size < sizeof(c->err_data) ?
			       e.err_data_size :
			       sizeof(c->err_data));
}

static size_t poll_cq(struct tdt_ep *ep, struct fid_cq *cq, int rx)
{
	char entries[READ_AT_ONCE * sizeof(struct fi_cq_tagged_entry)];
	fi_addr_t src[READ_AT_ONCE];
	size_t bytes = entry_bytes(ep->world->attr.format), i;
	ssize_t ret;

	ret = fi_cq_readfrom(cq, entries, READ_AT_ONCE, src);
	if (ret > 0) {
		for (i = 0; i < (size_t)ret; i++)
			keep(ep, rx, entries + i * bytes, src[i]);
		return (size_t)ret;
	}
	if (ret == -FI_EAVAIL) {
		keep_error(ep, cq, rx);
		return 1;
	}
	if (ret != -FI_EAGAIN && !ep->world->bad)
		ep->world->bad = ret ? (int)ret : -FI_EOTHER;
	return 0;
}

size_t tdt_progress(struct tdt_world *world)
{
	size_t i, n = 0;

	for (i = 0; i < world->count; i++) {
		struct tdt_ep *ep = &world->eps[i];

		if (ep->rx_cq)
			n += poll_cq(ep, ep->rx_cq, 1);
		if (ep->tx_cq && ep->tx_cq != ep->rx_cq)
			n += poll_cq(ep, ep->tx_cq, 0);
	}
	return n;
}

int tdt_wait_until(struct tdt_world *world, int (*cond)(void *arg), void *arg)
{
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();

	while (!cond(arg)) {
		if (world->bad)
			return world->bad;
		if (!tdt_progress(world) && tdt_now_ms() > end)
			return -FI_ETIMEDOUT;
	}
	return 0;
}

void tdt_settle(struct tdt_world *world, unsigned ms)
{
	uint64_t end = tdt_now_ms() + ms;

	do {
		tdt_progress(world);
	} while (tdt_now_ms() < end);
}

struct wanted {
	struct tdt_ep *ep;
	const void *context; /* or */
	int any, rx;	     /* the oldest of one direction */
	struct tdt_comp *out;
};

static int is_rx(const struct tdt_ep *ep, const struct tdt_comp *c)
{
	if (ep->tx_cq != ep->rx_cq)
		return c->rx;
	return !(c->flags & FI_SEND);
}

static int take(void *arg)
{
	struct wanted *w = arg;
	struct tdt_ep *ep = w->ep;
	size_t i;

	for (i = 0; i < ep->comp_count; i++) {
		struct tdt_comp *c = &ep->comps[i];

		if (w->any ? is_rx(ep, c) != w->rx : c->context != w->context)
			continue;
		if (w->out)
			*w->out = *c;
		memmove(c, c + 1, (--ep->comp_count - i) * sizeof(*c));
		return 1;
	}
	return 0;
}

int tdt_wait(struct tdt_ep *ep, const void *context, struct tdt_comp *comp)
{
	struct wanted w = { ep, context, 0, 0, comp };

	return tdt_wait_until(ep->world, take, &w);
}

int tdt_wait_next(struct tdt_ep *ep, int rx, struct tdt_comp *comp)
{
	struct wanted w = { ep, NULL, 1, rx, comp };

	return tdt_wait_until(ep->world, take, &w);
}

size_t tdt_pending(const struct tdt_world *world)
{
	size_t i, n = 0;

	for (i = 0; i < world->count; i++)
		n += world->eps[i].comp_count;
	return n;
}

void tdt_run_dry(struct tdt_world *world, unsigned ms)
{
	size_t any, i;

	do {
		tdt_settle(world, ms);
		any = tdt_pending(world);
		for (i = 0; i < world->count; i++)
			world->eps[i].comp_count = 0;
	} while (any);
}

ssize_t tdt_send(struct tdt_ep *from, const struct tdt_ep *to, void *buf,
		 size_t len, void *context)
{
	struct tdt_op op;

	memset(&op, 0, sizeof(op));
	op.call = TDT_SEND;
	op.buf = buf;
	op.len = len;
	op.addr = from->peers[to->index];
	op.context = context;
	return tdt_post(from, &op);
}

ssize_t tdt_recv(struct tdt_ep *ep, void *buf, size_t len, void *context)
{
	struct tdt_op op;

	memset(&op, 0, sizeof(op));
	op.call = TDT_RECV;
	op.buf = buf;
	op.len = len;
	op.addr = FI_ADDR_UNSPEC;
	op.context = context;
	return tdt_post(ep, &op);
}

ssize_t tdt_tsend(struct tdt_ep *from, const struct tdt_ep *to,
		  const struct iovec *data, uint64_t tag, void *context)
{
	struct tdt_op op;

	memset(&op, 0, sizeof(op));
	op.call = TDT_SEND;
	op.tagged = 1;
	op.buf = data->iov_base;
	op.len = data->iov_len;
	op.addr = from->peers[to->index];
	op.tag = tag;
	op.context = context;
	return tdt_post(from, &op);
}

ssize_t tdt_trecv(struct tdt_ep *ep, const struct iovec *data, uint64_t tag,
		  uint64_t ignore, void *context)
{
	struct tdt_op op;

	memset(&op, 0, sizeof(op));
	op.call = TDT_RECV;
	op.tagged = 1;
	op.buf = data->iov_base;
	op.len = data->iov_len;
	op.addr = FI_ADDR_UNSPEC;
	op.tag = tag;
	op.ignore = ignore;
	op.context = context;
	return tdt_post(ep, &op);
}

static int exchange(struct tdt_ep *from, struct tdt_ep *to)
{
	char out = 'w', in = 0;
	ssize_t ret;

	ret = tdt_recv(to, &in, 1, &in);
	if (!ret)
		ret = tdt_send(from, to, &out, 1, &out);
	if (!ret)
		ret = tdt_wait(to, &in, NULL);
	if (!ret && !from->world->attr.tx_bind)
		ret = tdt_wait(from, &out, NULL);
	return (int)ret;
}

int tdt_warm_up(struct tdt_world *world)
{
	size_t i, k;
	int ret = 0;

	for (i = 0; i < world->count && !ret; i++) {
		for (k = 0; k < world->count && !ret; k++) {
			if (i != k)
				ret = exchange(&world->eps[i], &world->eps[k]);
		}
	}
	return ret;
}

void tdt_fill(void *buf, size_t len, uint32_t seed)
{
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (unsigned char)((i + seed) * 2654435761u >> 13);
}

ssize_t tdt_differs(const void *buf, size_t len, uint32_t seed)
{
	const unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] != (unsigned char)((i + seed) * 2654435761u >> 13))
			return (ssize_t)i;
	}
	return -1;
}
