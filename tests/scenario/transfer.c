/* SPDX-License-Identifier: BSD-2-Clause */
/* Scenarios of messages: see play.h. Locking: none, one thread. */
#include "cast.h"

#include <string.h>

#include "base/env.h"

static struct tdt_op op_of(enum tdt_call call, int tagged, size_t len,
			   uint64_t tag)
{
	struct tdt_op op;

	memset(&op, 0, sizeof(op));
	op.call = call;
	op.tagged = tagged;
	op.len = len;
	op.tag = tag;
	return op;
}

/* A receive by @in and a send by @out, of @len bytes. Returns the receive. */
static struct tdt_move *pass(struct tdt_play *p, size_t from, size_t to,
			     struct tdt_op in, struct tdt_op out)
{
	struct tdt_move *r = tdt_play_op(p, to, TDT_PLAY_EPS, &in, NULL);

	tdt_play_op(p, from, to, &out, r);
	return r;
}

void tdt_act_inject(struct tdt_play *p)
{
	int i;

	for (i = 0; i < 6; i++) {
		size_t len = tdt_play_random(p, 60);

		pass(p, (size_t)i % 2, !(i % 2),
		     op_of(TDT_RECV, i & 1, len, (uint64_t)i),
		     op_of(TDT_INJECT, i & 1, len, (uint64_t)i));
	}
	tdt_play_wait(p);
}

static void sizes(struct tdt_play *p, const size_t *len, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		tdt_play_pass(p, i % 2, !(i % 2), len[i], 1);
		tdt_play_pass(p, !(i % 2), i % 2, len[i], 0);
	}
	tdt_play_wait(p);
}

void tdt_act_eager(struct tdt_play *p)
{
	size_t len[] = { 1, 113, 1000 + tdt_play_random(p, 1000), 8192 };

	sizes(p, len, 4);
}

void tdt_act_rendezvous(struct tdt_play *p)
{
	size_t len[] = { 8193, 70000 + tdt_play_random(p, 9000), 600000 };

	sizes(p, len, 3);
}

void tdt_act_ring_copy(struct tdt_play *p)
{
	int cma = tdm_env.cma;

	tdm_env.cma = 0;
	tdt_act_rendezvous(p);
	tdm_env.cma = cma;
}

void tdt_act_vectors(struct tdt_play *p)
{
	static const size_t len[] = { 60, 2000, 100000 };
	size_t i;

	for (i = 0; i < 3; i++) {
		struct tdt_op in = op_of(TDT_RECVV, 1, len[i], i);
		struct tdt_op out = op_of(TDT_SENDV, 1, len[i], i);

		in.pieces = 3;
		out.pieces = 4;
		pass(p, i % 2, !(i % 2), in, out);
	}
	tdt_play_wait(p);
}

/* Did as many messages come into the buffer @arg as sends succeeded? */
static int all_in(struct tdt_play *p, void *arg)
{
	struct tdt_move *r = arg, *m;
	int sent = 0;

	for (m = r + 1; m < p->moves + p->count; m++) {
		if (!m->ended)
			return 0;
		sent += !m->err;
	}
	return r->got >= sent || r->ended;
}

/* Several messages into one buffer. */
void tdt_act_multi_recv(struct tdt_play *p)
{
	struct tdt_op in = op_of(TDT_RECVMSG, 0, 16384, 0), out;
	struct tdt_move *r;
	int i;

	in.flags = FI_MULTI_RECV | FI_COMPLETION;
	r = tdt_play_op(p, 1, TDT_PLAY_EPS, &in, NULL);
	r->multi = 1;
	for (i = 0; i < 4; i++) {
		out = op_of(TDT_SEND, 0, 100 + 1000 * (size_t)i, 0);
		tdt_play_op(p, 0, 1, &out, NULL);
	}
	tdt_play_until(p, all_in, r, "messages into one buffer");
	tdt_play_drop(p);
}

void tdt_act_truncation(struct tdt_play *p)
{
	static const size_t len[] = { 64, 5000, 200000 };
	struct tdt_move *r;
	size_t i;

	for (i = 0; i < 3; i++) {
		r = pass(p, i % 2, !(i % 2), op_of(TDT_RECV, 1, len[i] / 2, i),
			 op_of(TDT_SEND, 1, len[i], i));
		r->expect = FI_ETRUNC;
		tdt_play_pass(p, i % 2, !(i % 2), len[i], 1);
	}
	tdt_play_wait(p);
}

/* Messages that are there before their receives. */
void tdt_act_unexpected(struct tdt_play *p)
{
	static const size_t len[] = { 10, 3000, 50000 };
	struct tdt_move *out[3];
	struct tdt_op op;
	size_t i;

	for (i = 0; i < 3; i++) {
		op = op_of(TDT_SEND, 1, len[i], i);
		out[i] = tdt_play_op(p, 0, 1, &op, NULL);
	}
	for (i = 0; i < 20; i++)
		tdt_play_turn(p);
	for (i = 3; i-- > 0;) {
		op = op_of(TDT_RECV, 1, len[i], i);
		tdt_play_op(p, 1, TDT_PLAY_EPS, &op, out[i]);
	}
	tdt_play_wait(p);
}

static int ended(struct tdt_play *p, void *arg)
{
	struct tdt_move *m = arg;

	(void)p;
	return m->ended;
}

/* Look for tag @tag until it is there, the sender fails, or @tries are over. */
static int peek(struct tdt_play *p, uint64_t tag, uint64_t flags,
		const struct tdt_move *s)
{
	struct tdt_op op = op_of(TDT_RECVMSG, 1, 0, tag);
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	struct tdt_move *m;

	op.flags = FI_PEEK | flags | FI_COMPLETION;
	do {
		m = tdt_play_op(p, 1, TDT_PLAY_EPS, &op, NULL);
		m->may = FI_ENOMSG;
		if (tdt_play_until(p, ended, m, "a peek"))
			return -1;
		if (!m->err)
			return 0;
		if (m->err != FI_ENOMSG && !tdt_play_may_fail(p, m->err))
			tdt_play_wrong(p, "a peek: %s", fi_strerror(m->err));
		p->count--; /* the line is used again */
		tdt_play_turn(p);
	} while (!(s->ended && s->err) && tdt_now_ms() < end);
	return -1;
}

void tdt_act_peek(struct tdt_play *p)
{
	struct tdt_op op = op_of(TDT_SEND, 1, 300, 1);
	struct tdt_move *one, *two, *r;

	one = tdt_play_op(p, 0, 1, &op, NULL);
	op = op_of(TDT_SEND, 1, 20000, 2);
	two = tdt_play_op(p, 0, 1, &op, NULL);
	if (!peek(p, 1, FI_CLAIM, one)) {
		op = op_of(TDT_RECVMSG, 1, 300, 1);
		op.flags = FI_CLAIM | FI_COMPLETION;
		/* A claim names the message by the context of its peek. */
		r = &p->moves[p->count - 1];
		tdt_play_again(p, r, &op, one);
	}
	if (!peek(p, 2, 0, two))
		peek(p, 2, FI_DISCARD, two);
	tdt_play_wait(p);
}

void tdt_act_cq_data(struct tdt_play *p)
{
	static const size_t len[] = { 0, 40, 2000, 100000 };
	struct tdt_move *r[4];
	struct tdt_op out;
	size_t i;

	for (i = 0; i < 4; i++) {
		out = op_of(TDT_SENDDATA, 1, len[i], i);
		out.data = p->seed + i;
		r[i] = pass(p, 0, 1, op_of(TDT_RECV, 1, len[i], i), out);
	}
	tdt_play_wait(p);
	for (i = 0; i < 4; i++) {
		if (tdt_play_ep(p, 1) && !r[i]->err &&
		    r[i]->comp.data != p->seed + i)
			tdt_play_wrong(p, "wrong data with message %zu", i);
	}
}

void tdt_act_self(struct tdt_play *p)
{
	tdt_play_pass(p, 0, 0, 30, 1);
	tdt_play_pass(p, 1, 1, 3000, 0);
	tdt_play_pass(p, 0, 0, 150000, 1);
	tdt_play_pass(p, 0, 1, 64, 1);
	tdt_play_wait(p);
}

void tdt_act_saturation(struct tdt_play *p)
{
	int i;

	for (i = 0; i < 60; i++)
		tdt_play_pass(p, (size_t)i % 2, !(i % 2),
			      1 + tdt_play_random(p, 12000), 1);
	tdt_play_wait(p);
}

void tdt_set_three(struct tdt_attr *attr)
{
	attr->eps = 3;
	attr->tcp_last = 1;
}

/* Both tiers at once, into receives from any source. */
void tdt_act_any_source(struct tdt_play *p)
{
	static const size_t len[] = { 40, 5000, 90000 };
	size_t i;

	for (i = 0; i < 3; i++) {
		tdt_play_pass(p, 1, 0, len[i], 1);
		tdt_play_pass(p, 2, 0, len[i], 1);
		tdt_play_pass(p, 2, 1, len[i], 0);
	}
	tdt_play_wait(p);
}
