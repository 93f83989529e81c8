/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios of one-sided and atomic operations: see play.h. Locking: none, one
 * thread.
 */
#include "cast.h"

#include <string.h>

enum { STRETCH = 16 << 10 }; /* bytes of a region for each write */

struct access {
	int read;
	uint64_t at;
	int data; /* with remote CQ data */
};

static ssize_t post_access(struct tdt_play *p, struct tdt_move *m, void *arg)
{
	const struct access *a = arg;
	struct fid_ep *ep = tdt_play_ep(p, m->ep)->ep;
	size_t to = !m->ep;
	fi_addr_t addr = p->addr[m->ep][to];
	uint64_t key = tdt_play_key(to);

	if (a->read)
		return fi_read(ep, m->buf, m->len, NULL, addr, a->at, key, m);
	if (a->data)
		return fi_writedata(ep, m->buf, m->len, NULL, 7, addr, a->at,
				    key, m);
	return fi_write(ep, m->buf, m->len, NULL, addr, a->at, key, m);
}

static struct tdt_move *reach(struct tdt_play *p, size_t from, size_t len,
			      struct access a)
{
	struct tdt_move *m = tdt_play_move(p, TDT_MOVE_SEND, from, len);

	if (a.read)
		memset(m->buf, 0, len);
	tdt_play_post(p, m, post_access, &a);
	return m;
}

/* The bytes that writes have left, where they are. */
static void look(struct tdt_play *p, const struct tdt_move *m, uint64_t at)
{
	size_t to = !m->ep;

	if (!m->err && tdt_play_ep(p, to) &&
	    tdt_differs(p->region[to] + at, m->len, m->seed) >= 0)
		tdt_play_wrong(p, "written, but not there: at %ju",
			       (uintmax_t)at);
}

/* Write three stretches, then read them back. */
static void write_and_read(struct tdt_play *p, size_t from)
{
	static const size_t len[] = { 8, 3000, 12000 };
	struct tdt_move *m[3];
	uint32_t seed[3];
	int good[3];
	size_t i;

	for (i = 0; i < 3; i++)
		m[i] = reach(p, from, len[i],
			     (struct access){ 0, i * STRETCH, i == 1 });
	tdt_play_wait(p);
	for (i = 0; i < 3; i++) {
		look(p, m[i], i * STRETCH);
		seed[i] = m[i]->seed;
		good[i] = !m[i]->err;
	}
	for (i = 0; i < 3; i++)
		m[i] = reach(p, from, len[i],
			     (struct access){ 1, i * STRETCH, 0 });
	tdt_play_wait(p);
	for (i = 0; i < 3; i++) {
		if (good[i] && !m[i]->err && tdt_play_ep(p, from) &&
		    tdt_differs(m[i]->buf, len[i], seed[i]) >= 0)
			tdt_play_wrong(p, "read, but not what was written");
	}
}

void tdt_act_rma(struct tdt_play *p)
{
	if (tdt_play_expose(p, 0) || tdt_play_expose(p, 1))
		return;
	tdt_play_meet(p);
	write_and_read(p, 0);
	write_and_read(p, 1);
	tdt_play_meet(p);
}

/* Regions that come and go: a closed one refuses, others are not concerned. */
void tdt_act_regions(struct tdt_play *p)
{
	struct tdt_move *m;
	int i;

	for (i = 0; i < 2; i++) {
		if (tdt_play_expose(p, 1))
			return;
		reach(p, 0, 9000, (struct access){ 0, 0, 0 });
		m = reach(p, 0, 5000, (struct access){ 1, 0, 0 });
		m->may = FI_EACCES; /* closed meanwhile */
		(m - 1)->may = FI_EACCES;
		if (i)
			tdt_play_turn(p);
		tdt_play_hide(p, 1);
		tdt_play_wait(p);
		m = reach(p, 0, 8, (struct access){ 0, 0, 0 });
		m->expect = FI_EACCES;
		tdt_play_pass(p, 0, 1, 100, 1);
		tdt_play_wait(p);
	}
}

struct amo {
	int kind; /* 0 add, 1 fetch, 2 compare */
	uint64_t compare;
};

static ssize_t post_amo(struct tdt_play *p, struct tdt_move *m, void *arg)
{
	const struct amo *a = arg;
	struct fid_ep *ep = tdt_play_ep(p, m->ep)->ep;
	fi_addr_t addr = p->addr[m->ep][1];
	uint64_t key = tdt_play_key(1);
	uint64_t *operand = (uint64_t *)m->buf, *result = operand + 1;

	switch (a->kind) {
	case 0:
		return fi_atomic(ep, operand, 1, NULL, addr, 0, key, FI_UINT64,
				 FI_SUM, m);
	case 1:
		return fi_fetch_atomic(ep, operand, 1, NULL, result, NULL, addr,
				       0, key, FI_UINT64, FI_SUM, m);
	default:
		return fi_compare_atomic(ep, operand, 1, NULL, &a->compare,
					 NULL, result, NULL, addr, 8, key,
					 FI_UINT64, FI_CSWAP, m);
	}
}

static struct tdt_move *amo(struct tdt_play *p, size_t from, uint64_t operand,
			    struct amo *a)
{
	struct tdt_move *m = tdt_play_move(p, TDT_MOVE_SEND, from, 16);

	memcpy(m->buf, &operand, sizeof(operand));
	tdt_play_post(p, m, post_amo, a);
	return m;
}

/* The sum at the target is that of operations that succeeded, once each. */
void tdt_act_atomic(struct tdt_play *p)
{
	struct amo add = { 0, 0 }, fetch = { 1, 0 }, swap = { 2, 0 };
	uint64_t *word, least = 0, most = 0;
	struct tdt_move *m;
	int i;

	if (tdt_play_expose(p, 1))
		return;
	if (p->region[1])
		memset(p->region[1], 0, 16);
	tdt_play_meet(p);
	for (i = 0; i < 6; i++)
		amo(p, (size_t)i % 2, 1ull << (8 * i), i < 3 ? &add : &fetch);
	m = amo(p, 0, 99, &swap);
	tdt_play_wait(p);
	tdt_play_meet(p);
	word = (uint64_t *)p->region[1];
	if (!word)
		return;
	for (i = 0; i < 6; i++) {
		most |= 0xffull << (8 * i);
		if (!p->moves[i].err)
			least += 1ull << (8 * i);
	}
	for (i = 0; i < 6; i++) {
		uint64_t n = word[0] >> (8 * i) & 0xff;

		if (n > 1 || (!n && (least >> (8 * i) & 1)))
			tdt_play_wrong(p, "atomic operation %d: %ju times", i,
				       (uintmax_t)n);
	}
	if ((word[0] & ~most) || (!m->err && word[1] != 99))
		tdt_play_wrong(p, "atomic operations left %ju and %ju",
			       (uintmax_t)word[0], (uintmax_t)word[1]);
}
