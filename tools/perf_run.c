/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measures of tandem-perf, both sides of each. The client decides how many
 * operations a run has, says so, and takes the time; the server does its part of
 * them, or makes progress until the end is said.
 *
 * Invariant: operations are under way during a run only, apart from the receives
 * that the server posts before it says "ready".
 * No lock: one thread.
 */
#include "tools/perf.h"

#include <stdlib.h>
#include <string.h>

#include "bench/stat.h"
#include "fabtests/demo_util.h"
#include "tools/perf_fab.h"

enum {
	SAMPLES_MOST = 1 << 17,
	BATCH_MOST = 64,
	/* A batch takes so many times as long as reading the clock. */
	CLOCK_SHARE = 50,
	FIRST_COUNT = 4, /* of operations, to find out how long they take */
	COUNT_GROWTH = 8,
	CHECK_COUNT = 4096, /* most operations of a run with a check */
	POLLS = 256,	    /* without a look for a line */
};

/* One run. */
struct run {
	enum perf_measure measure;
	uint64_t bytes;
	unsigned window;
	uint64_t count;	 /* operations */
	uint64_t serial; /* number of the run: no payload comes twice */
	uint64_t ns;	 /* out: all together */
	double *sample;	 /* ns of a batch each, or NULL */
	uint64_t samples, batch;
};

static int is_two_sided(const struct perf *p)
{
	return p->job.pattern == PERF_MESSAGE || p->job.pattern == PERF_TAGGED;
}

/* The seed of operation @i of the client or of the server; 0: no check. */
static uint64_t seed_of(const struct perf *p, const struct run *r, uint64_t i,
			int server)
{
	if (!p->job.check)
		return 0;
	return (r->serial << 33) + ((uint64_t)server << 32) + (uint32_t)i + 1;
}

/* Slot @i of the window of @r, whose first operation is @first. */
static uint64_t window_seed(const struct perf *p, const struct run *r,
			    uint64_t first, unsigned i)
{
	/* The target of reads stays the same for the whole run. */
	return seed_of(p, r, p->job.pattern == PERF_READ ? i : first + i, 0);
}

/* ---- client -------------------------------------------------------------- */

/* Expect @word of the server. */
static int expect(struct perf *p, const char *word)
{
	char line[PERF_LINE_BYTES];

	if (perf_control_hear(&p->c, line, 0))
		return -1;
	if (!strcmp(line, word))
		return 0;
	return perf_control_fail(&p->c, "%s said \"%.40s\" instead of %s",
				 p->c.peer, line, word);
}

/* All values from p->added on have been fetched once. */
static int check_fetched(struct perf *p, unsigned n)
{
	unsigned char seen[PERF_WINDOW_MOST] = { 0 };
	uint64_t value;
	unsigned i;

	for (i = 0; i < n; i++) {
		memcpy(&value, p->rx + (size_t)i * PERF_ATOMIC_BYTES,
		       sizeof(value));
		if (value - p->added >= n || seen[value - p->added]++)
			return perf_control_fail(
				&p->c,
				"wrong data: fetch-add number %llu gave %llu",
				(unsigned long long)p->added + i,
				(unsigned long long)value);
	}
	return 0;
}

/* One-sided: have the server look at what a window from @first on has done. */
static int check_window(struct perf *p, const struct run *r, uint64_t first,
			unsigned n)
{
	uint64_t what = seed_of(p, r, first, 0);

	if (p->job.pattern == PERF_ATOMIC) {
		if (p->job.check && check_fetched(p, n))
			return -1;
		p->added += n;
		what = p->added;
	}
	if (!p->job.check || p->job.pattern == PERF_READ)
		return 0;
	if (perf_control_say(&p->c, "verify %llu %u", (unsigned long long)what,
			     n))
		return -1;
	return expect(p, "right");
}

static inline int one_window(struct perf *p, const struct run *r,
			     uint64_t first)
{
	unsigned i;

	if (is_two_sided(p) && perf_post_receive(p, 0, 0, 0))
		return -1;
	for (i = 0; i < r->window; i++) {
		if (perf_post(p, i, r->bytes, window_seed(p, r, first, i)))
			return -1;
	}
	if (perf_wait_sent(p, 0))
		return -1;
	if (is_two_sided(p))
		return perf_wait_received(p, 0);
	return check_window(p, r, first, r->window);
}

static inline int one_trip(struct perf *p, const struct run *r, uint64_t i)
{
	if (is_two_sided(p) &&
	    perf_post_receive(p, 0, r->bytes, seed_of(p, r, i, 1)))
		return -1;
	if (perf_post(p, 0, r->bytes, window_seed(p, r, i, 0)) ||
	    perf_wait_received(p, 0) || perf_wait_sent(p, 0))
		return -1;
	return is_two_sided(p) ? 0 : check_window(p, r, i, 1);
}

/* The operations of @r, timed. */
static int do_run(struct perf *p, struct run *r)
{
	const uint64_t start = demo_now_ns();
	uint64_t i, now, last = start;

	r->samples = 0;
	if (r->measure == PERF_STREAM) {
		for (i = 0; i < r->count; i += r->window) {
			if (one_window(p, r, i))
				return -1;
		}
	} else {
		for (i = 0; i < r->count; i++) {
			if (one_trip(p, r, i))
				return -1;
			if (!r->sample || (i + 1) % r->batch)
				continue;
			now = demo_now_ns();
			r->sample[r->samples++] =
				(double)(now - last) / (double)r->batch;
			last = now;
		}
	}
	r->ns = demo_now_ns() - start;
	return 0;
}

/* Have the server ready, do it, and have the server done. */
static int run(struct perf *p, struct run *r)
{
	static uint64_t serial;
	const uint64_t one = 1;

	r->serial = ++serial;
	if (r->measure == PERF_STREAM)
		r->count = (r->count + r->window - 1) / r->window * r->window;
	if (perf_fab_divide(p, r->bytes, r->window))
		return -1;
	if (p->job.pattern == PERF_ATOMIC)
		memcpy(p->tx, &one, sizeof(one));
	if (perf_control_say(&p->c, "run %d %llu %u %llu %llu", r->measure,
			     (unsigned long long)r->bytes, r->window,
			     (unsigned long long)r->count,
			     (unsigned long long)r->serial) ||
	    expect(p, "ready") || do_run(p, r) ||
	    perf_control_say(&p->c, "end"))
		return -1;
	return expect(p, "done");
}

static uint64_t clock_ns(void)
{
	enum { READS = 1000 };
	const uint64_t start = demo_now_ns();
	uint64_t end = start;
	int i;

	for (i = 0; i < READS; i++)
		end = demo_now_ns();
	return (end - start) / READS + 1;
}

/*
 * Warm up, and decide how many operations the run has: as many as the user says,
 * or as take the time that the user says. Returns 0 or -1.
 */
static int plan(struct perf *p, struct run *r)
{
	const double ns = p->o->seconds * 1e9;
	double each;

	r->count = FIRST_COUNT;
	for (;;) {
		if (run(p, r))
			return -1;
		if (p->o->iterations ? r->count >= p->o->iterations / 10 :
				       (double)r->ns > ns / 20)
			break;
		r->count *= COUNT_GROWTH;
	}
	each = (double)r->ns / (double)r->count + 1;
	r->batch = (uint64_t)((double)clock_ns() * CLOCK_SHARE / each) + 1;
	if (r->batch > BATCH_MOST)
		r->batch = BATCH_MOST;
	r->count = p->o->iterations ? p->o->iterations : (uint64_t)(ns / each);
	if (!p->o->iterations && p->job.check && r->count > CHECK_COUNT)
		r->count = CHECK_COUNT;
	if (r->count < FIRST_COUNT && !p->o->iterations)
		r->count = FIRST_COUNT;
	if (r->batch > r->count)
		r->batch = r->count;
	if (r->batch < r->count / SAMPLES_MOST + 1)
		r->batch = r->count / SAMPLES_MOST + 1;
	return 0;
}

static int measure_latency(struct perf *p, struct perf_row *row)
{
	/* Both ways count as one: half of a round trip. */
	const double part = is_two_sided(p) ? 2000 : 1000;
	struct run r = { .measure = PERF_LATENCY,
			 .bytes = row->bytes,
			 .window = 1 };
	int ret = plan(p, &r);

	if (ret)
		return ret;
	r.sample = calloc(SAMPLES_MOST, sizeof(*r.sample));
	if (!r.sample)
		return perf_control_fail(&p->c, "no memory");
	ret = run(p, &r);
	if (!ret) {
		row->latency_iterations = r.count;
		row->median_us =
			bench_percentile(r.sample, r.samples, 50) / part;
		row->min_us = r.sample[0] / part;
		row->p99_us = bench_percentile(r.sample, r.samples, 99) / part;
	}
	free(r.sample);
	return ret;
}

static int measure_stream(struct perf *p, struct perf_row *row)
{
	struct run r = { .measure = PERF_STREAM,
			 .bytes = row->bytes,
			 .window = p->job.window };

	/* Each operation that is checked needs memory of its own. */
	while (p->job.check && r.window > 1 &&
	       r.window * (r.bytes + 64) > PERF_CHECKED_BYTES)
		r.window /= 2;
	if (plan(p, &r) || run(p, &r))
		return -1;
	row->window = r.window;
	row->stream_iterations = r.count;
	row->per_s = (double)r.count / (double)r.ns * 1e9;
	row->mb_per_s = row->per_s * (double)r.bytes / 1e6;
	return 0;
}

int perf_measure(struct perf *p, struct perf_row *row)
{
	if ((p->o->measures & PERF_LATENCY) && measure_latency(p, row))
		return -1;
	return p->o->measures & PERF_STREAM ? measure_stream(p, row) : 0;
}

/* ---- server -------------------------------------------------------------- */

/* Answer "verify @what @n": is that here? It may still be on its way. */
static int verify(struct perf *p, const struct run *r, uint64_t what,
		  unsigned n)
{
	const uint64_t end =
		demo_now_ns() + p->o->timeout_s * UINT64_C(1000000000);
	uint64_t word;
	unsigned i = 0;

	if (n > r->window)
		return perf_control_fail(&p->c, "%s asks for %u of %u",
					 p->c.peer, n, r->window);
	while (i < n && demo_now_ns() < end) {
		memcpy(&word, p->rx, sizeof(word));
		if (p->job.pattern == PERF_ATOMIC ?
			    word == what :
			    perf_is_right(p, i, r->bytes, what + i))
			i++;
		else if (perf_progress(p))
			return -1;
	}
	if (i == n)
		return perf_control_say(&p->c, "right");
	return perf_control_fail(&p->c,
				 "wrong data: operation %u of %u is not in "
				 "the memory of the server",
				 i + 1, n);
}

/* One-sided: make progress until the end. */
static int serve_memory(struct perf *p, const struct run *r)
{
	char line[PERF_LINE_BYTES];
	unsigned long long what;
	unsigned n;
	int i, ret;

	for (i = 0; p->job.pattern == PERF_READ && i < (int)p->slots; i++)
		demo_pattern_fill(p->rx + (size_t)i * p->stride, r->bytes,
				  window_seed(p, r, 0, (unsigned)i));
	if (perf_control_say(&p->c, "ready"))
		return -1;
	for (;;) {
		for (i = 0; i < POLLS; i++) {
			if (perf_progress(p))
				return -1;
		}
		ret = perf_control_look(&p->c, line);
		if (ret < 0)
			return -1;
		if (ret && !strcmp(line, "end"))
			return 0;
		if (ret && sscanf(line, "verify %llu %u", &what, &n) == 2 &&
		    verify(p, r, what, n))
			return -1;
	}
}

static int serve_trips(struct perf *p, const struct run *r)
{
	uint64_t i;

	if (perf_post_receive(p, 0, r->bytes, seed_of(p, r, 0, 0)) ||
	    perf_control_say(&p->c, "ready"))
		return -1;
	for (i = 0; i < r->count; i++) {
		if (perf_wait_received(p, 0))
			return -1;
		if (i + 1 < r->count &&
		    perf_post_receive(p, 0, r->bytes, seed_of(p, r, i + 1, 0)))
			return -1;
		if (perf_post(p, 0, r->bytes, seed_of(p, r, i, 1)) ||
		    perf_wait_sent(p, 0))
			return -1;
	}
	return 0;
}

static int post_window(struct perf *p, const struct run *r, uint64_t first)
{
	unsigned i;

	for (i = 0; i < r->window; i++) {
		if (perf_post_receive(p, i, r->bytes,
				      seed_of(p, r, first + i, 0)))
			return -1;
	}
	return 0;
}

static int serve_windows(struct perf *p, const struct run *r)
{
	uint64_t i;

	if (post_window(p, r, 0) || perf_control_say(&p->c, "ready"))
		return -1;
	for (i = 0; i < r->count; i += r->window) {
		if (perf_wait_received(p, 0))
			return -1;
		if (i + r->window < r->count &&
		    post_window(p, r, i + r->window))
			return -1;
		if (perf_post(p, 0, 0, 0) || perf_wait_sent(p, 0))
			return -1;
	}
	return 0;
}

int perf_serve_run(struct perf *p, const char *line)
{
	unsigned long long bytes, count, serial;
	struct run r = { 0 };
	char end[PERF_LINE_BYTES];
	int measure, ret;

	if (sscanf(line, "run %d %llu %u %llu %llu", &measure, &bytes,
		   &r.window, &count, &serial) != 5 ||
	    !r.window)
		return perf_control_fail(&p->c, "%s ordered \"%.60s\"",
					 p->c.peer, line);
	r.measure = measure;
	r.bytes = bytes;
	r.count = count;
	r.serial = serial;
	if (perf_fab_divide(p, r.bytes, r.window))
		return -1;
	if (!is_two_sided(p))
		ret = serve_memory(p, &r);
	else if (r.measure == PERF_LATENCY)
		ret = serve_trips(p, &r);
	else
		ret = serve_windows(p, &r);
	if (!ret && is_two_sided(p))
		ret = perf_control_hear(&p->c, end, 0);
	return ret ? ret : perf_control_say(&p->c, "done");
}
