/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A play from its seed to its end: see sim_play.h. After the last operation the
 * faults end; then each operation must end, and messages pass between all that
 * live, in a bounded number of steps.
 *
 * Locking: none, one thread.
 */
#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "base/env.h"
#include "sim_check.h"

enum {
	STEPS = 200000, /* of the end, and one for each STEP_BYTES of TCP, */
	MOST_STEPS = 20 * STEPS, /* and at most */
	STEP_BYTES = 16,
	IDLE = 6,   /* fruitless steps of each endpoint, then time jumps */
	FINALS = 6, /* tries of a last message */
	NAP_STEPS = 6,
	PASSES = 24, /* of each endpoint between leaps that double */
	LEAP_NS = 20000,
	LEAPS = 13,	  /* 164 ms */
	LATE_NS = 500000, /* while something is due that nobody has seen */
};

static struct tds_play *playing;

static void step_at(struct tds_play *p, struct tds_ep *e)
{
	uint64_t before = tds_tcp_moved();
	int n;

	tds_enter(e->proc);
	if (p->budget > 0 && tds_one_of(2) && !p->quiet) {
		tds_post_any(p, e);
		n = 1;
	} else {
		n = tds_poll(p, e);
	}
	p->idle = n || tds_tcp_moved() != before ? 0 : p->idle + 1;
}

/* Returns the endpoint at @place if it lives and its process is not stopped, or NULL. */
static struct tds_ep *awake_at(struct tds_play *p, int place)
{
	struct tds_ep *e = tds_alive_at(p, place);

	return e && e->proc->paused <= tds_now() ? e : NULL;
}

/* Not 0 when all processes are stopped or dead. */
static int all_are_still(struct tds_play *p)
{
	int i;

	for (i = 0; i < p->places; i++) {
		if (awake_at(p, i))
			return 0;
	}
	return 1;
}

/*
 * The farthest leap of time now. Passes do things by their number too, as if they were
 * frequent: leap ever farther only, but to the next event when nobody passes.
 */
static uint64_t farthest(struct tds_play *p)
{
	unsigned far = (unsigned)(p->idle / (PASSES * p->places));

	if (all_are_still(p))
		far = LEAPS;
	return (uint64_t)LEAP_NS << (far < LEAPS ? far : LEAPS);
}

/* Let time pass to what happens next, if nothing happens now. */
static void pass_time(struct tds_play *p)
{
	uint64_t next, fault, most;

	if (p->idle < IDLE * p->places ||
	    (p->budget > 0 && !p->quiet && !all_are_still(p))) {
		tds_advance(tds_random(tds_one_of(8) ? 50000 : 2000));
		return;
	}
	next = tds_next_event();
	fault = tds_fault_next(p);
	next = next < fault ? next : fault;
	most = farthest(p);
	if (next > tds_now() && next - tds_now() < most)
		most = next - tds_now();
	else if (next <= tds_now() && most > LATE_NS)
		most = LATE_NS;
	tds_advance(most);
}

static void step(struct tds_play *p)
{
	int place = (int)tds_random((uint64_t)p->places);
	struct tds_ep *e;

	p->steps++;
	if (!p->quiet && tds_one_of(p->fault_rate))
		tds_fault_any(p);
	tds_fault_due(p);
	e = awake_at(p, place);
	if (e)
		step_at(p, e);
	else
		p->idle++;
	pass_time(p);
}

/* A process sleeps in a call: the others go on, and post nothing. */
static void others_run(unsigned ms)
{
	struct tds_play *p = playing;
	struct tds_proc *asleep = tds_self();
	int i, k;

	for (k = 0; k < NAP_STEPS; k++) {
		for (i = 0; i < p->places; i++) {
			struct tds_ep *e = awake_at(p, i);

			if (!e || e->proc == asleep)
				continue;
			tds_enter(e->proc);
			tds_poll(p, e);
		}
		tds_advance(ms * TDS_MS / NAP_STEPS);
		tds_fault_due(p);
	}
	tds_enter(asleep);
}

/* ---- the end ------------------------------------------------------------- */

/* Each endpoint has receives for what may come. */
static void top_up(struct tds_play *p)
{
	int i, cls;

	for (i = 0; i < p->eps; i++) {
		struct tds_ep *e = &p->ep[i];

		for (cls = 0; e->alive && cls < TDS_CLASSES; cls++) {
			while (e->open_any[cls] < 3) {
				tds_enter(e->proc);
				if (tds_post_recv(p, e, cls, -1))
					break;
			}
		}
	}
}

/* Steps until @open says 0. Returns what it said last. */
static int until(struct tds_play *p, int (*open)(struct tds_play *p))
{
	uint64_t before = tds_tcp_moved(), steps = 0, most = STEPS;
	int n = 1;

	while (!p->wrong[0] && steps++ < most &&
	       (steps % 16 || (n = open(p)))) {
		most = tdm_min(STEPS + (tds_tcp_moved() - before) / STEP_BYTES,
			       (uint64_t)MOST_STEPS);
		top_up(p);
		step(p);
	}
	return p->wrong[0] ? 0 : n;
}

static int say_last(struct tds_play *p, struct tds_ep *e, int place, int cls)
{
	int tries = 0, ret, at;

	for (; tries < FINALS && !p->wrong[0]; tries++) {
		at = p->ops;
		tds_enter(e->proc);
		ret = tds_post_send(p, e, place, cls, 8 + tds_random(56));
		if (ret && ret != -FI_EAGAIN)
			continue;
		if (!ret)
			p->op[at].final = 1;
		if (until(p, tds_open_sends))
			return -1;
		if (!ret && !p->op[at].err)
			return 0;
	}
	return -1;
}

static void say_all_last(struct tds_play *p)
{
	int i, k, cls;

	for (i = 0; i < p->places; i++) {
		for (k = 0; k < p->places; k++) {
			cls = (int)tds_random(TDS_CLASSES);
			if (!p->wrong[0] &&
			    say_last(p, &p->ep[p->now_at[i]], k, cls))
				tds_wrong(p,
					  "places %d and %d do not find "
					  "each other again",
					  i, k);
		}
	}
}

static int open_any(struct tds_play *p)
{
	int i, n = 0;

	for (i = 0; i < p->eps; i++)
		n += p->ep[i].alive ? p->ep[i].outstanding : 0;
	return n;
}

static void finish(struct tds_play *p)
{
	int n, i;

	tds_fault_stop(p);
	n = until(p, tds_open_sends);
	if (n)
		tds_wrong(p, "hang: op %d of ep %d does not end", n - 1,
			  p->op[n - 1].ep);
	say_all_last(p);
	n = until(p, tds_missing);
	if (n)
		tds_wrong(p,
			  "message %d was sent with success and does not "
			  "arrive",
			  n - 1);
	for (i = 0; i < p->ops && !p->wrong[0]; i++) {
		struct tds_op *op = &p->op[i];

		if (!op->posted || op->ended || !p->ep[op->ep].alive)
			continue;
		tds_enter(p->ep[op->ep].proc);
		tds_cancel(p, op);
	}
	for (i = 0; i < STEPS && open_any(p) && !p->wrong[0]; i++)
		step(p);
	if (open_any(p))
		tds_wrong(p, "hang: a canceled operation does not end");
	tds_judge(p);
}

/* ---- the whole ----------------------------------------------------------- */

static void set_weather(void)
{
	static const size_t bufs[] = { 4096, 65536, 1 << 20, 4 << 20 };

	tds_weather.short_io = (unsigned)tds_random(3) * 5;
	tds_weather.again = (unsigned)tds_random(3) * 10;
	tds_weather.delay_ns = tds_random(tds_one_of(3) ? 30 * TDS_MS : 200000);
	tds_weather.sndbuf = bufs[tds_random(4)];
	tds_weather.rcvbuf = bufs[tds_random(4)];
	tds_weather.cma = tds_one_of(2);
}

static void set_scene(struct tds_play *p)
{
	static const size_t longest[] = { 64,	300,   300,   3000,
					  3000, 20000, 70000, 1 << 20 };
	static const unsigned rates[] = { 0, 40, 100, 200 };
	int i;

	p->places = 2 + (int)(tds_one_of(3) ? tds_random(TDS_PLACES - 1) :
					      tds_random(2));
	p->longest = longest[tds_random(tds_one_of(16) ? 8 : 5)];
	p->budget = 10 + (int)tds_random(tds_one_of(8) ? 300 : 60);
	p->fault_rate = rates[tds_random(4)];
	p->fault_kinds = (unsigned)tds_random(512);
	set_weather();
	tdm_env.peer_timeout_ms = tds_one_of(2) ? 5000 : 60000;
	tdm_env.conn_timeout_ms = 30000;
	tdm_env.resume = tds_one_of(2);
	tdm_env.crc = tds_one_of(3);
	for (i = 0; i < p->places; i++) {
		p->host[i] = (int)tds_random((uint64_t)p->places);
		p->now_at[i] = -1;
	}
	tds_trace("%d places, messages up to %zu, %d operations, faults %#x "
		  "one of %u",
		  p->places, p->longest, p->budget, p->fault_kinds,
		  p->fault_rate);
}

static void close_all(struct tds_play *p)
{
	int i;

	for (i = 0; i < p->places; i++) {
		struct tds_ep *e = tds_alive_at(p, i);

		if (e)
			tds_ep_close(p, e);
	}
	if (tds_open_files())
		tds_wrong(p, "%u files are left", tds_open_files());
	if (tds_open_mappings())
		tds_wrong(p, "%u mappings are left", tds_open_mappings());
	if (tds_open_timers())
		tds_wrong(p, "%u timers are left", tds_open_timers());
}

/* A play that went wrong leaves nothing to the next one. */
static void kill_all(struct tds_play *p)
{
	int i;

	for (i = 0; i < p->eps; i++) {
		if (p->ep[i].alive)
			tds_kill(p->ep[i].proc);
	}
}

const char *tds_play(struct tds_play *p, uint64_t seed)
{
	struct tdm_env saved = tdm_env;
	int i;

	memset(p, 0, offsetof(struct tds_play, op));
	p->seed = seed;
	playing = p;
	tds_begin(seed);
	tds_stage_reset();
	tds_others_run = others_run;
	set_scene(p);
	for (i = 0; i < p->places; i++)
		tds_ep_open(p, i);
	while (p->budget > 0 && !p->wrong[0])
		step(p);
	if (!p->wrong[0])
		finish(p);
	if (p->wrong[0])
		kill_all(p);
	close_all(p);
	tds_others_run = NULL;
	tds_end();
	tdm_env = saved;
	return p->wrong;
}
