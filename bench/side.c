/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A side: the loop that carries out orders. Each is warmed up once, for the
 * caches, pages and connections of this kind and size.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/limit.h"
#include "bench/subject.h"
#include "bench/work.h"

enum { SIDE_LINES = 64 };

void bench_side_init(struct bench_subject *s, const char *path,
		     const char *first)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(s->side, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("sched_setaffinity");
	s->ctl = s->first = bench_ctl_mine = bench_ctl_map(path);
	if (strcmp(path, first))
		s->first = bench_ctl_map(first);

	s->tx = mmap(NULL, 2 * (size_t)BENCH_BUFFER_BYTES,
		     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (s->tx == MAP_FAILED)
		bench_die("mmap", errno);
	s->rx = s->tx + BENCH_BUFFER_BYTES;
	/* A page that was never written is the one page of zeros. */
	if (s->first == s->ctl)
		memset(s->tx, s->side + 1, 2 * (size_t)BENCH_BUFFER_BYTES);
	s->ctl->addr[s->side] = (uintptr_t)s->tx;
	memset(s->ctl->area[s->side], 1, BENCH_AREA_BYTES);
}

static uint32_t pairs_of(const struct bench_order *o)
{
	return o->pairs ? o->pairs : 1;
}

void bench_meet(struct bench_subject *s, const struct bench_order *o)
{
	if (o->pairs)
		bench_ctl_gather(s->first, BENCH_SIDES * o->pairs);
	else
		bench_ctl_meet(s->ctl, s->side);
}

/* Of a round trip half counts. */
static int limit_halves(enum bench_limit limit)
{
	return limit != BENCH_LIMIT_TCP_STREAM && limit < BENCH_LIMIT_OPEN;
}

static int work_halves(enum bench_kind kind)
{
	return kind == BENCH_LATENCY || kind == BENCH_LATE ||
	       kind == BENCH_WAKE || kind == BENCH_WRITE_DATA;
}

/* One batch of the limit; ns for each of its operations. */
static double limit(struct bench_subject *s, const struct bench_order *o)
{
	uint64_t start, end;

	bench_meet(s, o);
	start = bench_now();
	bench_limit_batch(s, o);
	if (o->pairs)
		bench_meet(s, o);
	end = bench_now();
	return (double)(end - start) / (limit_halves(o->limit) ? 2 : 1) /
	       (o->lcount ? o->lcount : 1) / pairs_of(o);
}

static double best_limit(struct bench_subject *s, const struct bench_order *o)
{
	struct bench_order one = *o;
	double copy, cma;

	if (o->limit != BENCH_LIMIT_LARGE)
		return limit(s, o);
	one.limit = BENCH_LIMIT_COPY;
	copy = limit(s, &one);
	one.limit = BENCH_LIMIT_CMA;
	cma = limit(s, &one);
	return copy < cma ? copy : cma;
}

static void carry_out(struct bench_subject *s, const struct bench_order *o)
{
	struct bench_order warm = *o;
	struct bench_ctl *c = s->ctl;
	struct bench_order line = { .limit = BENCH_LIMIT_LINE,
				    .lcount = SIDE_LINES };
	uint32_t i, batches = o->batches ? o->batches : BENCH_BATCHES;
	double ns = 0;

	warm.count = o->window > 1 ? o->window : (o->count + 3) / 4;
	if (!o->batches)
		bench_work_batch(s, &warm);
	if (!o->batches)
		bench_work_calm(s, o);
	warm.lcount = (o->lcount + 3) / 4;
	best_limit(s, &warm);
	if (!s->side)
		memset(c->subject_ns, 0, sizeof(c->subject_ns));
	for (i = 0; i < batches; i++) {
		/* Alone: further pairs wait for the first, asleep. */
		if (s->first == c)
			ns = limit(s, &line);
		if (!s->side)
			c->line_ns[i] = ns;
		ns = best_limit(s, o);
		if (!s->side)
			c->limit_ns[i] = ns;
		ns = (double)bench_work_batch(s, o);
		if (!s->side)
			c->subject_ns[i] = ns / (work_halves(o->kind) ? 2 : 1) /
					   o->count / pairs_of(o);
	}
}

void bench_side(struct bench_subject *s)
{
	uint32_t number = 0;

	bench_limit_open(s);
	for (;;) {
		number = bench_ctl_next(s->ctl, number);
		if (s->ctl->order.kind == BENCH_QUIT)
			break;
		if (s->ops->begin)
			s->ops->begin(s, &s->ctl->order);
		if (bench_work_possible(s, &s->ctl->order))
			carry_out(s, &s->ctl->order);
		else if (!s->side)
			memset(s->ctl->subject_ns, 0,
			       sizeof(s->ctl->subject_ns));
		bench_ctl_done(s->ctl, s->side, number);
	}
	s->ops->close(s);
	bench_ctl_done(s->ctl, s->side, number);
}
