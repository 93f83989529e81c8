/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of a play: see sim_play.h. Locking: none, one thread. */
#include "base/env.h"
#include "sim_check.h"
#include "tcp/wire/greeting.h"

enum { KINDS = 9 };

static struct tds_ep *any_alive(struct tds_play *p)
{
	return tds_alive_at(p, (int)tds_random((uint64_t)p->places));
}

static void harm_all(struct tds_play *p, int place, unsigned harm)
{
	int i;

	for (i = 0; i < p->places; i++)
		tds_harm(p, place, i, harm);
}

/* By a reset, or by a bit that changes. */
static void break_one(struct tds_play *p,
		      int (*by)(const struct tds_proc *a,
				const struct tds_proc *b, uint64_t greeting))
{
	struct tds_ep *a = any_alive(p), *b = any_alive(p);
	int how;

	if (!a || !b || a == b)
		return;
	how = by(a->proc, b->proc, TDM_WIRE_GREETING_BYTES);
	if (!how)
		return;
	tds_trace("broken between places %d and %d", a->place, b->place);
	tds_harm(p, a->place, b->place,
		 TDS_HARM_RESET | (how > 1 ? TDS_HARM_YOUNG : 0u) |
			 (by == tds_flip ? TDS_HARM_LATER : 0u));
}

enum { LONGEST_PART_MS = 15000 };

static void part(struct tds_play *p)
{
	int a = p->host[tds_random((uint64_t)p->places)], i, k;
	int b = p->host[tds_random((uint64_t)p->places)];

	if (a == b || p->heal)
		return;
	tds_part(a, b, 1);
	p->heal = tds_now() + (50 + tds_random(LONGEST_PART_MS)) * TDS_MS;
	/* The session outlives it. */
	if (tdm_env.resume && tdm_env.peer_timeout_ms > 2 * LONGEST_PART_MS)
		return;
	for (i = 0; i < p->places; i++) {
		for (k = 0; k < p->places; k++) {
			if (p->host[i] == a && p->host[k] == b)
				tds_harm(p, i, k, TDS_HARM_SILENT);
		}
	}
}

/* Have all endpoints been opened that there can be, or will they be? */
static int is_full(const struct tds_play *p)
{
	int n = p->eps, i;

	for (i = 0; i < p->places; i++)
		n += p->due[i] != 0;
	return n >= TDS_EPS;
}

/* A killed process is closed behind the scene, or it says goodbye. */
static void leave(struct tds_play *p, int kill)
{
	struct tds_ep *e = any_alive(p);

	if (!e || is_full(p))
		return;
	tds_trace("endpoint %d %s", (int)(e - p->ep), kill ? "dies" : "leaves");
	harm_all(p, e->place, TDS_HARM_ENDED);
	if (kill)
		tds_kill(e->proc);
	tds_ep_close(p, e);
	/* Those that began while it closed have met it, too. */
	harm_all(p, e->place, TDS_HARM_ENDED);
	p->due[e->place] =
		tds_now() + tds_random(tds_one_of(2) ? 5 * TDS_S : 50 * TDS_MS);
	p->life[e->place]++;
}

static void pause_one(struct tds_play *p)
{
	struct tds_ep *e = any_alive(p);

	if (!e)
		return;
	if (e->proc->paused <= tds_now())
		e->pause_begin = tds_now();
	e->proc->paused = tds_now() + tds_random(20 * TDS_S);
	if (e->proc->paused - e->pause_begin > tdm_env.conn_timeout_ms * TDS_MS)
		harm_all(p, e->place, TDS_HARM_STOPPED);
	tds_trace("endpoint %d pauses", (int)(e - p->ep));
}

void tds_fault_any(struct tds_play *p)
{
	unsigned kind = (unsigned)tds_random(KINDS);
	struct tds_ep *e;

	if (!(p->fault_kinds >> kind & 1))
		return;
	p->faults++;
	switch (kind) {
	case 0:
	case 1:
		break_one(p, tds_reset);
		break;
	case 2:
		part(p);
		break;
	case 3:
		tds_clog(p->host[tds_random((uint64_t)p->places)],
			 p->host[tds_random((uint64_t)p->places)],
			 tds_random(300 * TDS_MS));
		break;
	case 4:
		leave(p, 1);
		break;
	case 5:
		leave(p, 0);
		break;
	case 6:
		pause_one(p);
		break;
	case 7:
		if (tdm_env.crc)
			break_one(p, tds_flip);
		break;
	default:
		e = any_alive(p);
		if (e) {
			int place = (int)tds_random((uint64_t)p->places);

			if (place != e->place && !e->open_directed[place])
				tds_ep_remove(p, e, place);
		}
	}
}

void tds_fault_due(struct tds_play *p)
{
	int i;

	if (p->heal && p->heal <= tds_now()) {
		p->heal = 0;
		tds_heal_all();
	}
	for (i = 0; i < p->places; i++) {
		if (!p->due[i] || p->due[i] > tds_now())
			continue;
		p->due[i] = 0;
		tds_ep_open(p, i);
	}
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return b && b < a ? b : a;
}

uint64_t tds_fault_next(struct tds_play *p)
{
	uint64_t first = earlier(TDS_NEVER, p->heal);
	int i;

	for (i = 0; i < p->places; i++) {
		const struct tds_ep *e = tds_alive_at(p, i);

		first = earlier(first, p->due[i]);
		if (e && e->proc->paused > tds_now())
			first = earlier(first, e->proc->paused);
	}
	return first;
}

void tds_fault_stop(struct tds_play *p)
{
	int i;

	tds_trace("faults end");
	p->quiet = 1;
	p->heal = 0;
	tds_heal_all();
	for (i = 0; i < p->eps; i++)
		p->ep[i].proc->paused = 0;
	for (i = 0; i < p->places; i++) {
		if (p->due[i])
			p->due[i] = tds_now();
	}
	tds_fault_due(p);
}
