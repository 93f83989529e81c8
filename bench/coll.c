/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The runner of coll.h, and its members that drive libfabric. coll.sh starts
 * both:
 *
 *   tandem_coll PAGE ROUNDS PART BATCHES NAME...
 *       the runner of the entrants NAME, for the rows with PART in their labels;
 *       each batch goes to the file BATCHES
 *   tandem_coll PAGE member SEAT RANK PROVIDER NODE
 *       a member
 *
 * In each round each entrant carries out a batch in turn. An operation takes the
 * time from the begin of its first member to the end of its last, divided by their
 * number. Of the batches the 25th percentile counts: one that was preempted is no
 * measurement. A ratio is that of an entrant to the first one, with the interval
 * that has 95 % of the bootstrapped ratios. "!": results were not right.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/coll.h"
#include "bench/stat.h"

enum {
	BATCH_US = 4000,     /* an entrant takes about that long at once */
	COUNT_MOST = 200,    /* operations of a batch */
	PATIENCE_MS = 20000, /* then an entrant has failed */
};

static const struct row {
	const char *label;
	uint32_t kind, bytes;
} rows[] = {
	{ "barrier", COLL_BARRIER, 0 },
	{ "broadcast 8", COLL_BROADCAST, 8 },
	{ "broadcast 1M", COLL_BROADCAST, 1 << 20 },
	{ "allreduce 8", COLL_ALLREDUCE, 8 },
	{ "allreduce 1K", COLL_ALLREDUCE, 1 << 10 },
	{ "allreduce 16K", COLL_ALLREDUCE, 1 << 14 },
	{ "allreduce 64K", COLL_ALLREDUCE, 1 << 16 },
	{ "allreduce 128K", COLL_ALLREDUCE, 1 << 17 },
	{ "allreduce 256K", COLL_ALLREDUCE, 1 << 18 },
	{ "allreduce 1M", COLL_ALLREDUCE, 1 << 20 },
	{ "allgather 8", COLL_ALLGATHER, 8 * COLL_MEMBERS },
	{ "allgather 128K", COLL_ALLGATHER, 1 << 20 },
	{ "alltoall 8", COLL_ALLTOALL, 8 * COLL_MEMBERS },
	{ "alltoall 1K", COLL_ALLTOALL, 1 << 13 },
	{ "alltoall 128K", COLL_ALLTOALL, 1 << 20 },
};

static struct coll_page *page;
static const char *const *names;
static uint32_t entrants;
static int dead[COLL_ENTRANTS_MOST];
static int wrong[COLL_ENTRANTS_MOST]; /* of the row */
static FILE *batches;

/* Of the row: ns of an operation of the first entrant, and of each other one. */
static struct bench_sample took[COLL_ENTRANTS_MOST];

static void has_failed(uint32_t e, const char *why)
{
	dead[e] = 1;
	fprintf(stderr, "%s: %s\n", names[e], why);
}

/* Wait until *@word is @value. Returns 0, or -1: the entrant @e has failed. */
static int await(uint32_t e, uint32_t *word, uint32_t value)
{
	uint64_t end = coll_now() + PATIENCE_MS * 1000000ull;
	const char *why = page->seat[e].why;
	uint32_t now;

	while ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < value) {
		if (*why || coll_now() > end) {
			has_failed(e, *why ? why : "no end");
			return -1;
		}
		coll_sleep(word, now);
	}
	return 0;
}

/* Returns the ns of one of @count operations, or 0: there is no figure. */
static double batch(uint32_t e, const struct row *row, uint32_t count)
{
	struct coll_seat *s = &page->seat[e];
	uint64_t begin = UINT64_MAX, end = 0;
	uint32_t i, go = s->go + 1;

	s->kind = row->kind;
	s->bytes = row->bytes;
	s->count = count;
	s->lacks = 0;
	s->wrong = 0;
	__atomic_store_n(&s->go, go, __ATOMIC_RELEASE);
	coll_wake(&s->go);
	if (await(e, &s->done, go * COLL_MEMBERS) || s->lacks)
		return 0;
	wrong[e] |= s->wrong;
	for (i = 0; i < COLL_MEMBERS; i++) {
		begin = s->begin[i] < begin ? s->begin[i] : begin;
		end = s->end[i] > end ? s->end[i] : end;
	}
	return (double)(end - begin) / count;
}

/* How many operations make a batch, from one that is not counted. */
static uint32_t count_for(uint32_t e, const struct row *row)
{
	double ns = dead[e] ? 0 : batch(e, row, 5), count;

	if (ns <= 0)
		return 0;
	count = BATCH_US * 1000.0 / ns;
	return count < 2	  ? 2 :
	       count > COUNT_MOST ? COUNT_MOST :
				    (uint32_t)count;
}

static void print_row(const struct row *row)
{
	struct bench_result r;
	uint32_t e;

	bench_sample_result(&took[0], BENCH_THREADS, &r);
	printf("%-16s %11.1f%c", row->label, r.limit / 1000,
	       wrong[0] ? '!' : ' ');
	for (e = 1; e < entrants; e++) {
		bench_sample_result(&took[e], BENCH_THREADS, &r);
		if (r.pairs)
			printf("  %6.2f%c(%5.2f to %5.2f)", r.ratio,
			       wrong[e] ? '!' : ' ', r.low, r.high);
		else
			printf("  %24s", "-");
	}
	printf("\n");
	fflush(stdout);
}

static void one_round(const struct row *row, const uint32_t *count)
{
	double first = dead[0] || !count[0] ? 0 : batch(0, row, count[0]), ns;
	uint32_t e;

	for (e = 0; e < entrants && first > 0; e++) {
		ns = !e			  ? first :
		     dead[e] || !count[e] ? 0 :
					    batch(e, row, count[e]);
		fprintf(batches, "%s,%s,%.0f\n", row->label, names[e], ns);
		if (ns > 0)
			bench_sample_add(&took[e], 0, first, ns);
	}
}

static void measure(const struct row *row, int rounds)
{
	uint32_t count[COLL_ENTRANTS_MOST], e;

	memset(wrong, 0, sizeof(wrong));
	for (e = 0; e < entrants; e++) {
		count[e] = count_for(e, row);
		took[e].count = 0;
	}
	while (rounds--)
		one_round(row, count);
	print_row(row);
}

static int be_runner(int rounds, const char *part)
{
	uint32_t e;
	size_t i;

	printf("%-16s %8s us", "", names[0]);
	for (e = 1; e < entrants; e++)
		printf("  %24s", names[e]);
	printf("\n");
	for (e = 0; e < entrants; e++)
		(void)!await(e, &page->seat[e].known, COLL_MEMBERS);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (strstr(rows[i].label, part))
			measure(&rows[i], rounds);
	}
	for (e = 0; e < entrants; e++) {
		__atomic_store_n(&page->seat[e].go, UINT32_MAX,
				 __ATOMIC_RELEASE);
		coll_wake(&page->seat[e].go);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 6)
		return 2;
	page = coll_map(argv[1]);
	if (!strcmp(argv[2], "member")) {
		if (argc != 7)
			return 2;
		coll_fab(&page->seat[atoi(argv[3])], (uint32_t)atoi(argv[4]),
			 argv[5], argv[6]);
		return 0;
	}
	names = (const char *const *)argv + 5;
	entrants = (uint32_t)argc - 5;
	batches = fopen(argv[4], "a");
	if (!entrants || entrants > COLL_ENTRANTS_MOST || atoi(argv[2]) < 1 ||
	    !batches)
		return 2;
	return be_runner(atoi(argv[2]), argv[3]);
}
