/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clock, chance, and the part of libevent that tcp/wire/loop.c uses, by the
 * clock of the simulation: the program's own functions take the place of the
 * library's. A pass calls what is due, timers before the set, each once.
 *
 * Invariants:
 *  1. The clock never goes back, also from one play to the next, so that what
 *     a play leaves in the product's own caches is stale in the next one.
 *  2. Each reading of the clock takes some nanoseconds.
 * Locking: none, one thread.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "sim_file.h"
#include "tests/harness/seeded.h"

enum { READ_NS = 20 };

static uint64_t now = 3600 * TDS_S, begun, state, calls, digest;
static unsigned timers;

int tds_tracing;
void (*tds_others_run)(unsigned ms);

struct event_config {
	int flags;
};

struct event_base {
	struct tdm_list node; /* bases */
	struct tdm_list events;
	const struct tds_proc *proc;
};

struct event {
	struct tdm_list node; /* base->events */
	struct event_base *base;
	evutil_socket_t fd; /* -1: a timer */
	short what;
	event_callback_fn call;
	void *arg;
	uint64_t due; /* 0: not added */
};

static struct tdm_list bases = { &bases, &bases };

void tds_time_begin(uint64_t seed)
{
	now += 3600 * TDS_S;
	now -= now % TDS_S;
	begun = now;
	state = seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull;
	calls = digest = 0;
}

uint64_t tds_now(void)
{
	return now;
}

void tds_advance(uint64_t ns)
{
	now += ns;
	tds_net_run();
}

void tds_advance_read(void)
{
	now += READ_NS;
}

uint64_t tds_random(uint64_t below)
{
	return below ? tdt_seeded(&state, below) : 0;
}

int tds_one_of(unsigned n)
{
	return n && !tds_random(n);
}

void tds_note(uint64_t value)
{
	digest = (digest ^ value) * 0x100000001b3ull;
	digest ^= digest >> 29;
}

int tds_did(int ret)
{
	calls++;
	tds_note((uint64_t)ret);
	return ret;
}

int tds_fail(int err)
{
	tds_did(-err);
	errno = err;
	return -1;
}

uint64_t tds_calls(void)
{
	return calls;
}

uint64_t tds_digest(void)
{
	return digest;
}

void tds_trace(const char *format, ...)
{
	va_list args;

	if (!tds_tracing)
		return;
	fprintf(stderr, "%12.6f ms  ", (double)(now - begun) / 1e6);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* ---- libevent ------------------------------------------------------------ */

struct event_config *event_config_new(void)
{
	return calloc(1, sizeof(struct event_config));
}

int event_config_set_flag(struct event_config *config, int flag)
{
	config->flags |= flag;
	return 0;
}

void event_config_free(struct event_config *config)
{
	free(config);
}

struct event_base *event_base_new_with_config(const struct event_config *config)
{
	struct event_base *base = calloc(1, sizeof(*base));

	(void)config;
	if (!base)
		return NULL;
	tdm_list_init(&base->events);
	tdm_list_append(&bases, &base->node);
	base->proc = tds_self();
	return base;
}

void event_base_free(struct event_base *base)
{
	tdm_list_del(&base->node);
	free(base);
}

struct event *event_new(struct event_base *base, evutil_socket_t fd, short what,
			event_callback_fn call, void *arg)
{
	struct event *ev = calloc(1, sizeof(*ev));

	if (!ev)
		return NULL;
	ev->base = base;
	ev->fd = fd;
	ev->what = what;
	ev->call = call;
	ev->arg = arg;
	tdm_list_init(&ev->node);
	timers += fd < 0;
	return ev;
}

int event_add(struct event *ev, const struct timeval *timeout)
{
	ev->due = now + 1;
	if (timeout)
		ev->due += (uint64_t)timeout->tv_sec * TDS_S +
			   (uint64_t)timeout->tv_usec * 1000;
	tdm_list_del(&ev->node);
	tdm_list_append(&ev->base->events, &ev->node);
	return 0;
}

void event_free(struct event *ev)
{
	timers -= ev->fd < 0;
	tdm_list_del(&ev->node);
	free(ev);
}

/* A timer of @base that is due, the earliest one; or NULL. */
static struct event *due_timer(struct event_base *base)
{
	struct event *first = NULL;
	struct tdm_list *pos;

	tdm_list_for_each(pos, &base->events) {
		struct event *ev = tdm_list_entry(pos, struct event, node);

		if (ev->fd < 0 && ev->due <= now &&
		    (!first || ev->due < first->due))
			first = ev;
	}
	return first;
}

int event_base_loop(struct event_base *base, int flags)
{
	struct tdm_list *pos;
	struct event *ev;

	(void)flags;
	/* libevent asks the kernel before it looks at its timers. */
	tdm_list_for_each(pos, &base->events) {
		ev = tdm_list_entry(pos, struct event, node);
		if (ev->fd < 0)
			continue;
		if (tds_events(tds_file_of((int)ev->fd)) & POLLIN)
			ev->call(ev->fd, EV_READ, ev->arg);
		break; /* a base has one */
	}
	while ((ev = due_timer(base))) {
		tdm_list_del(&ev->node);
		tdm_list_init(&ev->node);
		ev->call(-1, EV_TIMEOUT, ev->arg);
	}
	return 0;
}

uint64_t tds_time_next(void)
{
	uint64_t first = TDS_NEVER;
	struct tdm_list *b, *pos;

	tdm_list_for_each(b, &bases) {
		struct event_base *base =
			tdm_list_entry(b, struct event_base, node);

		if (base->proc->dead || base->proc->paused > now)
			continue;
		tdm_list_for_each(pos, &base->events) {
			struct event *ev =
				tdm_list_entry(pos, struct event, node);

			if (ev->fd < 0 && ev->due < first)
				first = ev->due;
		}
	}
	return first;
}

uint64_t tds_next_event(void)
{
	uint64_t a = tds_time_next(), b = tds_net_next();

	return a < b ? a : b;
}

unsigned tds_open_timers(void)
{
	return timers;
}
