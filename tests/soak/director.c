/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts the actors of the soak, kills and stops them, gives them rest, and
 * compares then what they have written on the board.
 */
#include "board.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sever.h"
#include "tests/harness/drive.h"

enum { STOPPED_TICKS = 50, TICK_MS = 1 };

/* What a process may hold more than at the first rest, whoever died since. */
enum { MORE_OBJECTS = 2 * TDT_SOAK_ACTORS, MORE_BYTES = 4 << 20 };

struct director {
	const struct tdt_soak_plan *plan;
	struct tdt_soak_result *result;
	struct tdt_soak_board *board;
	int fd;
	uint64_t random;
	struct tdt_child actors[TDT_SOAK_ACTORS];
	size_t stopped; /* this one, or TDT_SOAK_ACTORS: none */
	unsigned stopped_for;
	unsigned begun; /* strikes so far, three at most */
	struct tdt_holdings held[TDT_SOAK_LASTING]; /* at the first rest */
};

static int wrong(struct director *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int wrong(struct director *d, const char *format, ...)
{
	va_list args;

	if (d->result->problem[0])
		return -1;
	va_start(args, format);
	vsnprintf(d->result->problem, sizeof(d->result->problem), format, args);
	va_end(args);
	return -1;
}

static uint64_t messages(const struct director *d)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < TDT_SOAK_ACTORS; i++)
		n += TDT_SOAK_GET(d->board->lines[i].messages);
	return n;
}

static int start(struct director *d, size_t i)
{
	char arg[32];

	TDT_SOAK_SET(d->board->lines[i].life, d->board->lines[i].life + 1);
	snprintf(arg, sizeof(arg), "%d %zu", d->fd, i);
	if (tdt_child_start(&d->actors[i], "soak_actor", arg))
		return wrong(d, "actor %zu does not start", i);
	return 0;
}

/* Does an actor say that something is wrong, or has one ended? */
static int look(struct director *d)
{
	siginfo_t info;
	size_t i;

	poll(NULL, 0, TICK_MS);
	for (i = 0; i < TDT_SOAK_ACTORS; i++) {
		memset(&info, 0, sizeof(info));
		waitid(P_PID, (id_t)d->actors[i].pid, &info,
		       WEXITED | WNOHANG | WNOWAIT);
		if (d->board->lines[i].problem[0])
			return wrong(d, "actor %zu: %s", i,
				     d->board->lines[i].problem);
		if (info.si_pid)
			return wrong(d, "actor %zu has ended: %d", i,
				     info.si_status);
	}
	return 0;
}

/* ---- strikes -------------------------------------------------------------- */

static void go_on(struct director *d)
{
	if (d->stopped < TDT_SOAK_ACTORS)
		tdt_child_kill(&d->actors[d->stopped], SIGCONT);
	d->stopped = TDT_SOAK_ACTORS;
}

/* A connection of an actor that lives to the end is reset, if it has any. */
static void sever(struct director *d)
{
	size_t i = tdt_seeded(&d->random, TDT_SOAK_LASTING);

	if (!tdt_soak_sever(d->actors[i].pid, &d->random))
		d->result->resets++;
}

enum kind { SEVER, KILL, STOP, KINDS };

/* What the next strike does: in each soak one of each kind first, then by chance. */
static enum kind next_kind(struct director *d)
{
	enum kind kind = (enum kind)d->begun;

	if (d->begun < KINDS)
		d->begun++;
	else
		kind = tdt_seeded(&d->random, 2) ? SEVER :
		       tdt_seeded(&d->random, 3) ? KILL :
						   STOP;
	if (kind == SEVER && !d->plan->resets)
		kind = tdt_seeded(&d->random, 3) ? KILL : STOP;
	return kind;
}

static int strike(struct director *d)
{
	enum kind kind = next_kind(d);
	size_t mortal =
		TDT_SOAK_LASTING +
		tdt_seeded(&d->random, TDT_SOAK_ACTORS - TDT_SOAK_LASTING);

	go_on(d);
	if (kind == SEVER) {
		sever(d);
		return 0;
	}
	if (kind == KILL) {
		tdt_child_kill(&d->actors[mortal], SIGKILL);
		d->result->kills++;
		return start(d, mortal);
	}
	d->stopped = tdt_seeded(&d->random, TDT_SOAK_ACTORS);
	d->stopped_for = 0;
	tdt_child_kill(&d->actors[d->stopped], SIGSTOP);
	d->result->stops++;
	return 0;
}

/* Strike until @until messages have been received. */
static int run(struct director *d, uint64_t until)
{
	uint64_t from = messages(d), now = from, last = from;
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	unsigned struck = 0;

	while ((now = messages(d)) < until) {
		if (look(d))
			return -1;
		if (now != last)
			end = tdt_now_ms() + tdt_deadline_ms();
		else if (tdt_now_ms() > end)
			return wrong(d, "no message arrives");
		last = now;
		if (++d->stopped_for == STOPPED_TICKS)
			go_on(d);
		if ((now - from) * (d->plan->strikes + 1) <
		    (struck + 1) * (until - from))
			continue;
		struck++;
		if (strike(d))
			return -1;
	}
	go_on(d);
	return 0;
}

/* ---- at rest -------------------------------------------------------------- */

/* Has actor @to received what actor @from sent to it? */
static int all_heard(const struct director *d, size_t from, size_t to)
{
	int c;

	for (c = 0; c < TDT_SOAK_CLASSES; c++) {
		const struct tdt_soak_stream *s =
			&d->board->lines[from].sent[to][c];
		const struct tdt_soak_stream *h =
			&d->board->lines[to].heard[from][c];
		int same = h->life == s->life && h->epoch == s->epoch;

		if (!s->next || (same && h->next == s->next))
			continue;
		/* its receiver has died since */
		if (to >= TDT_SOAK_LASTING && !same)
			continue;
		return 0;
	}
	return 1;
}

static int at_rest(const struct director *d, size_t *from, size_t *to)
{
	for (*from = 0; *from < TDT_SOAK_ACTORS; ++*from) {
		*to = TDT_SOAK_ACTORS;
		if (TDT_SOAK_GET(d->board->lines[*from].resting) !=
		    d->board->order)
			return 0;
		for (*to = 0; *to < TDT_SOAK_ACTORS; ++*to)
			if (!all_heard(d, *from, *to))
				return 0;
	}
	return 1;
}

/* Has each lasting actor the sum that the other has added there? */
static int same_sums(const struct director *d)
{
	size_t i, k;

	for (i = 0; i < TDT_SOAK_LASTING; i++) {
		for (k = 0; k < TDT_SOAK_LASTING; k++) {
			if (i != k &&
			    d->board->lines[i].added[k] !=
				    TDT_SOAK_GET(d->board->lines[k].sums[i]))
				return 0;
		}
	}
	return 1;
}

/*
 * Queues and rings grow to the traffic that they had once; what dead peers leave
 * behind would grow with their number.
 */
static int compare_holdings(struct director *d, unsigned number)
{
	size_t i;

	for (i = 0; i < TDT_SOAK_LASTING; i++) {
		const struct tdt_holdings *now = &d->board->lines[i].held;
		struct tdt_holdings *was = &d->held[i];

		if (number == 1)
			*was = *now;
		if (now->descriptors > was->descriptors + MORE_OBJECTS ||
		    now->segments > was->segments + MORE_OBJECTS ||
		    now->threads > was->threads ||
		    now->bytes > was->bytes + MORE_BYTES)
			return wrong(d,
				     "actor %zu holds %zu descriptors, %zu "
				     "segments, %zu threads, %zu bytes; %zu, "
				     "%zu, %zu, %zu at the first rest",
				     i, now->descriptors, now->segments,
				     now->threads, now->bytes, was->descriptors,
				     was->segments, was->threads, was->bytes);
	}
	return 0;
}

static int rest(struct director *d, unsigned number)
{
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	size_t from, to;

	TDT_SOAK_SET(d->board->order, d->board->order + 1);
	while (!at_rest(d, &from, &to) || !same_sums(d)) {
		if (look(d))
			return -1;
		if (tdt_now_ms() < end)
			continue;
		if (at_rest(d, &from, &to))
			return wrong(d, "the sums of fetch-adds differ");
		return to == TDT_SOAK_ACTORS ?
			       wrong(d, "operations of actor %zu do not end",
				     from) :
			       wrong(d, "messages from %zu to %zu are missing",
				     from, to);
	}
	if (compare_holdings(d, number))
		return -1;
	TDT_SOAK_SET(d->board->order, d->board->order + 1);
	return 0;
}

/* ---- all of it ------------------------------------------------------------ */

static int leave(struct director *d)
{
	size_t i;
	int status;

	TDT_SOAK_SET(d->board->order, TDT_SOAK_LEAVE);
	for (i = 0; i < TDT_SOAK_ACTORS; i++) {
		status = tdt_child_wait(&d->actors[i]);
		if (status)
			return wrong(d, "actor %zu ends with %d: %s", i, status,
				     d->board->lines[i].problem);
	}
	return 0;
}

static int play(struct director *d)
{
	const struct tdt_soak_plan *plan = d->plan;
	unsigned i;

	for (i = 0; i < TDT_SOAK_ACTORS; i++)
		if (start(d, i))
			return -1;
	for (i = 1; i <= plan->rests; i++)
		if (run(d, plan->messages / plan->rests * i) || rest(d, i))
			return -1;
	return leave(d);
}

static void sum_up(struct director *d)
{
	struct tdt_soak_result *r = d->result;
	size_t i;

	for (i = 0; i < TDT_SOAK_ACTORS; i++) {
		const struct tdt_soak_line *line = &d->board->lines[i];

		r->messages += line->messages;
		r->bytes += line->bytes;
		r->writes += line->writes;
		r->atomics += line->atomics;
		r->errors += line->errors;
	}
}

int tdt_soak_run(const struct tdt_soak_plan *plan,
		 struct tdt_soak_result *result)
{
	struct director d = { .plan = plan,
			      .result = result,
			      .random = plan->seed,
			      .stopped = TDT_SOAK_ACTORS };
	size_t i;

	memset(result, 0, sizeof(*result));
	d.fd = memfd_create("soak", 0); /* the actors inherit it */
	if (d.fd < 0 || ftruncate(d.fd, sizeof(*d.board)))
		return wrong(&d, "no memory for the board");
	d.board = mmap(NULL, sizeof(*d.board), PROT_READ | PROT_WRITE,
		       MAP_SHARED, d.fd, 0);
	if (d.board == MAP_FAILED)
		return wrong(&d, "the board cannot be mapped");
	d.board->seed = plan->seed;
	play(&d);
	for (i = 0; i < TDT_SOAK_ACTORS; i++)
		tdt_child_kill(&d.actors[i], SIGKILL);
	sum_up(&d);
	munmap(d.board, sizeof(*d.board));
	close(d.fd);
	return result->problem[0] ? -1 : 0;
}
