/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process of the soak: opens an endpoint, posts receives, and makes progress
 * until the director lets it leave. See soak.h for what it judges.
 */
#include "actor.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { READ_AT_ONCE = 64, CANARY = 0xc5, CANARY_BYTES = 8 };

void tdt_soak_wrong(struct tdt_soak_actor *a, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(a->line->problem, sizeof(a->line->problem), format, args);
	va_end(args);
	_Exit(3);
}

static void try(struct tdt_soak_actor *a, const char *what, ssize_t ret)
{
	if (ret)
		tdt_soak_wrong(a, "%s: %s", what, fi_strerror((int)-ret));
}

/* ---- receives ------------------------------------------------------------- */

static const uint64_t tags[TDT_SOAK_MULTI] = { TDT_SOAK_TAGGED, TDT_SOAK_LONG };

static void post_receive(struct tdt_soak_actor *a, struct tdt_soak_op *op)
{
	struct fi_msg msg;
	struct iovec iov = { op->buf, op->room };

	op->busy = 1;
	op->over = op->failed = 0;
	if (op->what == TDT_SOAK_RECV) {
		try(a, "fi_trecv",
		    fi_trecv(a->ep->ep, op->buf, op->room, NULL, FI_ADDR_UNSPEC,
			     tags[op->kind], 0, &op->context));
		return;
	}
	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = &iov;
	msg.iov_count = 1;
	msg.addr = FI_ADDR_UNSPEC;
	msg.context = &op->context;
	try(a, "fi_recvmsg", fi_recvmsg(a->ep->ep, &msg, FI_MULTI_RECV));
}

static void make_receive(struct tdt_soak_actor *a, struct tdt_soak_op *op,
			 enum tdt_soak_what what, enum tdt_soak_class kind,
			 size_t room)
{
	op->what = what;
	op->kind = kind;
	op->room = room;
	op->buf = malloc(room + CANARY_BYTES);
	memset(op->buf + room, CANARY, CANARY_BYTES);
	post_receive(a, op);
}

static void post_receives(struct tdt_soak_actor *a)
{
	static const size_t counts[] = { TDT_SOAK_SHORTS, TDT_SOAK_LONGS };
	static const size_t rooms[] = { TDT_SOAK_SMALL, TDT_SOAK_LARGE };
	size_t kind, i;

	for (kind = 0; kind < TDT_SOAK_MULTI; kind++) {
		struct tdt_soak_inbox *in = &a->inbox[kind];

		in->count = counts[kind];
		in->ops = calloc(in->count, sizeof(*in->ops));
		for (i = 0; i < in->count; i++)
			make_receive(a, &in->ops[i], TDT_SOAK_RECV,
				     (enum tdt_soak_class)kind, rooms[kind]);
	}
	for (i = 0; i < TDT_SOAK_BUFFERS; i++)
		make_receive(a, &a->buffers[i], TDT_SOAK_BUFFER_RECV,
			     TDT_SOAK_MULTI, TDT_SOAK_BUFFER);
}

static void judge(struct tdt_soak_actor *a, enum tdt_soak_class kind,
		  const unsigned char *buf, size_t len)
{
	struct tdt_soak_head h;
	const char *wrong;

	if (!tdt_soak_valid(buf, len, &h) || h.kind != kind)
		tdt_soak_wrong(a, "a message of %zu bytes has wrong bytes",
			       len);
	wrong = tdt_soak_arrived(&a->line->heard[h.from][kind], &h,
				 a->me < TDT_SOAK_LASTING);
	if (wrong)
		tdt_soak_wrong(
			a,
			"%s: class %d of %d, life %u, epoch %u, "
			"number %llu after %llu",
			wrong, (int)kind, h.from, h.life, h.epoch,
			(unsigned long long)h.number,
			(unsigned long long)a->line->heard[h.from][kind].next);
	TDT_SOAK_SET(a->line->messages, a->line->messages + 1);
	a->line->bytes += len;
}

static void check_canary(struct tdt_soak_actor *a, const struct tdt_soak_op *op)
{
	size_t i;

	for (i = 0; i < CANARY_BYTES; i++)
		if (op->buf[op->room + i] != CANARY)
			tdt_soak_wrong(a, "bytes behind a buffer have changed");
}

/* Messages match receives in order; large ones may end out of order. */
static void take(struct tdt_soak_actor *a, struct tdt_soak_op *op, size_t len,
		 int failed)
{
	struct tdt_soak_inbox *in = &a->inbox[op->kind];

	op->len = len;
	op->over = 1;
	op->failed = failed;
	for (op = &in->ops[in->oldest]; op->over; op = &in->ops[in->oldest]) {
		check_canary(a, op);
		if (op->failed)
			a->line->heard[op->to][op->kind].cut++;
		else
			judge(a, op->kind, op->buf, op->len);
		post_receive(a, op);
		in->oldest = (in->oldest + 1) % in->count;
	}
}

/* ---- completions ---------------------------------------------------------- */

static void received(struct tdt_soak_actor *a, struct tdt_soak_op *op,
		     const struct fi_cq_tagged_entry *e)
{
	if (!op->busy || op->over)
		tdt_soak_wrong(a, "a receive ended twice");
	if (op->what == TDT_SOAK_RECV) {
		take(a, op, e->len, 0);
		return;
	}
	if (e->flags & FI_RECV)
		judge(a, TDT_SOAK_MULTI, e->buf, e->len);
	if (e->flags & FI_MULTI_RECV) {
		check_canary(a, op);
		post_receive(a, op);
	}
}

static void ended(struct tdt_soak_actor *a, const struct fi_cq_tagged_entry *e,
		  fi_addr_t src)
{
	struct tdt_soak_op *op = e->op_context;
	struct tdt_soak_head h;

	if (op->what < TDT_SOAK_RECV) {
		tdt_soak_ended(a, op, 0);
		return;
	}
	if (e->flags & FI_RECV) {
		memcpy(&h, e->buf ? e->buf : op->buf, sizeof(h));
		if (h.from < TDT_SOAK_ACTORS && src != a->peers[h.from].addr)
			tdt_soak_wrong(a, "a message of %d has the source %llu",
				       h.from, (unsigned long long)src);
	}
	received(a, op, e);
}

/* The actor whose address is in an error entry. */
static size_t peer_of(const struct tdt_soak_actor *a,
		      const struct fi_cq_err_entry *e)
{
	size_t i;

	for (i = 0; i < TDT_SOAK_ACTORS; i++) {
		const struct tdt_name *n = &a->board->lines[i].name;

		if (n->len && n->len == e->err_data_size &&
		    !memcmp(n->bytes, e->err_data, n->len))
			break;
	}
	return i;
}

static void error(struct tdt_soak_actor *a)
{
	unsigned char address[TDT_NAME_BYTES];
	struct fi_cq_err_entry e;
	struct tdt_soak_op *op;
	size_t from;
	ssize_t n;

	memset(&e, 0, sizeof(e));
	e.err_data = address;
	e.err_data_size = sizeof(address);
	n = fi_cq_readerr(a->ep->rx_cq, &e, 0);
	if (n == -FI_EAGAIN)
		return;
	if (n != 1)
		tdt_soak_wrong(a, "fi_cq_readerr: %zd", n);
	from = peer_of(a, &e);
	if (from == TDT_SOAK_ACTORS)
		tdt_soak_wrong(a, "an error of nobody: %s", fi_strerror(e.err));
	op = e.op_context;
	if (!op) { /* an inject */
		tdt_soak_failed(a, from, e.err);
	} else if (op->what < TDT_SOAK_RECV) {
		if (op->to != from)
			tdt_soak_wrong(a, "an error of %zu names %zu", op->to,
				       from);
		tdt_soak_ended(a, op, e.err);
	} else {
		tdt_soak_failed(a, from, e.err);
		op->to = from;
		if (op->what == TDT_SOAK_RECV)
			take(a, op, 0, 1);
		else if (e.flags & FI_MULTI_RECV)
			post_receive(a, op);
	}
}

/* Returns how many completions there were. */
static size_t progress(struct tdt_soak_actor *a)
{
	struct fi_cq_tagged_entry entries[READ_AT_ONCE];
	fi_addr_t src[READ_AT_ONCE];
	ssize_t i, n;

	n = fi_cq_readfrom(a->ep->rx_cq, entries, READ_AT_ONCE, src);
	if (n == -FI_EAVAIL) {
		error(a);
		return 1;
	}
	if (n == -FI_EAGAIN)
		return 0;
	if (n < 0)
		tdt_soak_wrong(a, "fi_cq_readfrom: %s", fi_strerror((int)-n));
	for (i = 0; i < n; i++)
		ended(a, &entries[i], src[i]);
	return (size_t)n;
}

/* ---- a life --------------------------------------------------------------- */

/* The others may still add while this actor rests. */
static void tell_sums(struct tdt_soak_actor *a)
{
	size_t i;

	for (i = 0; i < TDT_SOAK_LASTING; i++)
		TDT_SOAK_SET(a->line->sums[i],
			     a->memory.counters[i][1 % TDT_SOAK_LIVES]);
}

static void rest(struct tdt_soak_actor *a, uint32_t order)
{
	tdt_holdings(&a->line->held);
	TDT_SOAK_SET(a->line->resting, order);
}

static void act(struct tdt_soak_actor *a)
{
	uint32_t order;
	size_t to = a->me;
	size_t done;

	while ((order = TDT_SOAK_GET(a->board->order)) != TDT_SOAK_LEAVE) {
		done = progress(a);
		tdt_soak_read_back(a);
		to = (to + 1) % TDT_SOAK_ACTORS;
		if (!(order & 1) && to != a->me)
			done += tdt_soak_post(a, to);
		else if (order & 1 && a->line->resting != order &&
			 tdt_soak_idle(a))
			rest(a, order);
		if (order & 1)
			tell_sums(a);
		if (!done)
			sched_yield();
	}
}

/* Make our name known, and know the others. */
static void meet(struct tdt_soak_actor *a)
{
	size_t i;

	a->line->name.len = a->ep->namelen;
	memcpy(a->line->name.bytes, a->ep->name, a->ep->namelen);
	TDT_SOAK_SET(a->line->named, a->life);
	for (i = 0; i < TDT_SOAK_ACTORS; i++) {
		struct tdt_soak_line *other = &a->board->lines[i];

		while (!TDT_SOAK_GET(other->named))
			sched_yield();
		if (fi_av_insert(a->ep->av, other->name.bytes, 1,
				 &a->peers[i].addr, 0, NULL) != 1)
			tdt_soak_wrong(a, "actor %zu is not inserted", i);
	}
}

/* Each actor has a loopback address of its own, so that nobody takes its port. */
static void start(struct tdt_soak_actor *a)
{
	char node[32], service[16];
	const unsigned char *was = a->line->name.bytes;
	size_t least = TDT_SOAK_UNTAGGED;
	struct tdt_attr attr;

	tdt_attr_init(&attr);
	snprintf(node, sizeof(node), "127.0.0.%zu", 11 + a->me);
	/* sin_port */
	snprintf(service, sizeof(service), "%d", was[2] << 8 | was[3]);
	attr.eps = 1;
	attr.caps |= FI_RMA | FI_ATOMIC;
	attr.one_cq = 1;
	attr.no_insert = 1;
	attr.node = node;
	attr.service = a->line->named ? service : NULL;
	attr.threading = FI_THREAD_DOMAIN;
	if (tdt_world_open(&attr, &a->w))
		tdt_soak_wrong(a, "%s", tdt_error());
	a->ep = &a->w->eps[0];
	try(a, "fi_mr_reg",
	    fi_mr_reg(a->ep->domain, &a->memory, sizeof(a->memory),
		      FI_REMOTE_READ | FI_REMOTE_WRITE, 0, TDT_SOAK_KEY, 0,
		      &a->mr, NULL));
	try(a, "fi_setopt",
	    fi_setopt(&a->ep->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
		      &least, sizeof(least)));
	post_receives(a);
	tdt_soak_traffic_init(a);
}

/* @arg: the descriptor of the board and the actor's number. */
TDT_ROLE(soak_actor)
{
	static struct tdt_soak_actor actor, *a = &actor;
	int board;

	(void)fd;
	if (sscanf(arg, "%d %zu", &board, &a->me) != 2)
		return 1;
	a->board = mmap(NULL, sizeof(*a->board), PROT_READ | PROT_WRITE,
			MAP_SHARED, board, 0);
	if (a->board == MAP_FAILED)
		return 1;
	a->line = &a->board->lines[a->me];
	a->life = a->line->life;
	a->random = a->board->seed + a->me * 1000003 + a->life;
	memset(a->line->sent, 0, sizeof(a->line->sent));
	memset(a->line->heard, 0, sizeof(a->line->heard));
	start(a);
	meet(a);
	act(a);
	try(a, "fi_close", fi_close(&a->mr->fid));
	try(a, "close", tdt_world_close(a->w));
	return 0;
}
