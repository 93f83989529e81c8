/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job as a whole: one turn of any wait, the live line, the watchdog, and
 * how a rank ends the job for all.
 *
 * The watchdog looks at the whole job. A rank that waits for others while they
 * measure is not stuck; when nothing has moved on any rank for WATCHDOG_S
 * seconds, each says what it misses and the job ends.
 */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "fabtests/demo.h"
#include "fabtests/demo_util.h"

enum {
	WATCHDOG_S = 30,
	BEAT_MS = 200,	    /* between two reports of a rank */
	IDLE_LOOK = 16,	    /* empty turns between two looks at the clock */
	IDLE_YIELD_US = 20, /* of them before the processor is offered */
	IDLE_SLEEP = 2000,  /* empty turns before a barrier sleeps */
	SLEEP_MAX_MS = 8,
	SAY_BAD = 5, /* failed checks printed per rank */
	LINE_CHARS = 78
};

/* The terminal for the live line, or NULL. */
static FILE *live(const struct demo *d)
{
	if (d->opt.rank || d->opt.quiet)
		return NULL;
	return isatty(2) ? stderr : isatty(1) ? stdout : NULL;
}

static void clear_line(const struct demo *d)
{
	FILE *tty = live(d);

	if (tty) {
		fprintf(tty, "\r%*s\r", LINE_CHARS, "");
		fflush(tty);
	}
}

static void show_line(const struct demo *d, const struct demo_beat *all)
{
	double s = (double)(demo_now_ns() - d->started_ns) / 1e9;
	char line[LINE_CHARS + 1];
	FILE *tty = live(d);

	if (!tty || !d->phase)
		return;
	if (d->goal_msgs)
		snprintf(line, sizeof(line),
			 "%s: %3u%%  %llu of %llu messages checked, %.2f GB, "
			 "%.1f s",
			 d->phase, (unsigned)(100 * all->msgs / d->goal_msgs),
			 (unsigned long long)all->msgs,
			 (unsigned long long)d->goal_msgs,
			 (double)all->bytes / 1e9, s);
	else
		snprintf(line, sizeof(line), "%s: %.1f s", d->phase, s);
	fprintf(tty, "\r%-*s", LINE_CHARS, line);
	fflush(tty);
}

static void say(const struct demo *d, const char *format, va_list ap)
{
	char text[512];

	clear_line(d);
	vsnprintf(text, sizeof(text), format, ap);
	fprintf(stderr, "tandem_demo: rank %d: %s\n", d->opt.rank, text);
}

void demo_bad(struct demo *d, const char *format, ...)
{
	va_list ap;

	if (++d->row->bad > SAY_BAD)
		return;
	va_start(ap, format);
	say(d, format, ap);
	va_end(ap);
}

int demo_fatal(struct demo *d, const char *format, ...)
{
	char why[200];
	va_list ap;

	va_start(ap, format);
	say(d, format, ap);
	va_end(ap);
	va_start(ap, format);
	vsnprintf(why, sizeof(why), format, ap);
	va_end(ap);
	if (d->ctl)
		demo_ctl_fail(d->ctl, why);
	return -1;
}

int demo_again(struct demo *d, const char *what, long ret)
{
	if (ret == -FI_EAGAIN)
		return 0;
	return demo_fatal(d, "%s: %s", what, fi_strerror((int)-ret));
}

/* Nothing moved anywhere for too long. */
static int give_up(struct demo *d)
{
	clear_line(d);
	if (d->missing)
		d->missing(d, d->missing_arg);
	return demo_fatal(d, "no progress for %d s in: %s", WATCHDOG_S,
			  d->phase ? d->phase : "start");
}

/* Tell how far this rank is, learn how far all are, judge. */
static int beat(struct demo *d)
{
	struct demo_beat mine = { d->msgs, d->bytes, d->steps }, all;
	uint64_t now = demo_now_ns();

	if (now < d->next_beat_ns)
		return 0;
	d->next_beat_ns = now + BEAT_MS * 1000000u;
	if (demo_ctl_beat(d->ctl, &mine, &all))
		return demo_fatal(d, "%s", demo_ctl_error(d->ctl));
	show_line(d, &all);
	all.steps += d->steps;
	if (!d->moved_ns || memcmp(&all, &d->seen, sizeof(all))) {
		d->seen = all;
		d->moved_ns = now;
	}
	if (now - d->moved_ns > WATCHDOG_S * 1000000000ull)
		return give_up(d);
	return 0;
}

static int progress(struct demo *d)
{
	int n = demo_fab_progress(&d->fab);

	if (n < 0)
		return demo_fatal(d, "%s", d->fab.error);
	d->steps += (unsigned)n;
	d->idle = n ? 0 : d->idle + 1;
	return 0;
}

/*
 * There may be more ranks than processors, and the one we wait for may be on
 * ours. An answer by shared memory takes less than a yield costs, so the
 * processor is kept for as long as a good answer takes.
 */
static void yield_if_idle(struct demo *d)
{
	uint64_t now;

	if (!d->idle || d->idle % IDLE_LOOK)
		return;
	now = demo_now_ns();
	if (d->idle == IDLE_LOOK)
		d->idle_ns = now;
	else if (now - d->idle_ns > IDLE_YIELD_US * 1000u)
		sched_yield();
}

int demo_turn(struct demo *d)
{
	if (progress(d))
		return -1;
	yield_if_idle(d);
	return ++d->turns % 64 ? 0 : beat(d);
}

void demo_phase(struct demo *d, const char *name, uint64_t goal)
{
	d->phase = name;
	d->goal_msgs = goal;
	d->started_ns = demo_now_ns();
	d->moved_ns = 0;
	if (!name)
		clear_line(d);
}

/*
 * The others may still need our progress, so a waiting rank makes some before
 * each sleep; but a rank that others do not need leaves them the processors.
 */
int demo_exchange(struct demo *d, const void *in, size_t len, void *out)
{
	int ret, sleep_ms = 1;

	if (demo_ctl_give(d->ctl, in, len))
		return demo_fatal(d, "%s", demo_ctl_error(d->ctl));
	d->idle = 0;
	for (;;) {
		ret = demo_ctl_gathered(d->ctl, out);
		if (ret < 0)
			return demo_fatal(d, "%s", demo_ctl_error(d->ctl));
		if (ret)
			break;
		if ((d->fab.cq && progress(d)) || beat(d))
			return -1;
		if (d->fab.cq && d->idle < IDLE_SLEEP) {
			sleep_ms = 1;
			if (d->idle % 16 == 15)
				sched_yield();
			continue;
		}
		demo_ctl_sleep(d->ctl, sleep_ms);
		sleep_ms = sleep_ms < SLEEP_MAX_MS ? 2 * sleep_ms : sleep_ms;
	}
	d->steps++;
	d->moved_ns = 0;
	return 0;
}

int demo_barrier(struct demo *d)
{
	char nothing;

	return demo_exchange(d, NULL, 0, &nothing);
}
