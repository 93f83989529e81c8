/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations that the parts of the demo share: the job, the record of
 * messages sent and received, and the loop that every wait goes through.
 */
#ifndef DEMO_H
#define DEMO_H

#include <stdint.h>

#include "fabtests/demo_ctl.h"
#include "fabtests/demo_fab.h"

enum { DEMO_HOST_BYTES = 32, DEMO_REASON_BYTES = 64 };

struct demo_options {
	int rank;
	int nranks;
	const char *ip;
	const char *control;
	const char *host;
	const char *prov;
	int quiet;
};

/* The counts of one rank for its pair with another; exchanged at the end. */
struct demo_cell {
	uint64_t tx_msgs, tx_bytes, tx_sum; /* all-to-all: sent */
	uint64_t rx_msgs, rx_bytes, rx_sum; /* received and checked */
	uint64_t all_tx_msgs; /* all sent, measurements included */
	uint64_t all_rx_msgs;
	uint64_t half_ps;   /* half round trip of 8 bytes, picoseconds */
	uint64_t bandwidth; /* bytes per second, messages of 1 MiB */
	uint32_t path;	    /* enum tdm_report_kind */
	uint32_t reason;
	uint64_t path_tx_msgs, path_rx_msgs; /* as the provider counts */
	char reason_text[DEMO_REASON_BYTES];
};

/* One rank's line of the result. */
struct demo_row {
	uint64_t bad; /* checks that did not hold */
	struct demo_cell cell[];
};

struct demo {
	struct demo_options opt;
	struct demo_ctl *ctl;
	struct demo_fab fab;
	char (*hosts)[DEMO_HOST_BYTES]; /* label of each rank */
	struct demo_row *row;		/* ours */
	int judged;			/* the job came to its end */

	const char *phase;
	uint64_t steps; /* completions: what the watchdog looks at */
	uint64_t msgs;	/* checked by this rank */
	uint64_t bytes;
	uint64_t goal_msgs;  /* of all ranks, in this phase; 0: unknown */
	uint64_t started_ns; /* of this phase */

	unsigned idle;	  /* progress calls in a row that found nothing */
	uint64_t idle_ns; /* when they began, about */
	unsigned turns;
	uint64_t next_beat_ns;
	uint64_t moved_ns;     /* when anything moved last, anywhere */
	struct demo_beat seen; /* what was known then */

	/* Print what this rank still waits for. May be NULL. */
	void (*missing)(struct demo *d, void *arg);
	void *missing_arg;
};

/* Bytes of a struct demo_row for @n ranks. */
static inline size_t demo_row_bytes(int n)
{
	return sizeof(struct demo_row) + (size_t)n * sizeof(struct demo_cell);
}

/*
 * One turn of a wait: progress, heart-beat, watchdog. Every wait of the demo
 * is a loop around it. 0, or -1 when the job is over (already reported).
 */
int demo_turn(struct demo *d);

/* A check did not hold: count it and say so (the first few times). */
void demo_bad(struct demo *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The job cannot go on: say why, tell the others. Always -1. */
int demo_fatal(struct demo *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Is @ret of a post call a reason to try again later, or the end? -1 or 0. */
int demo_again(struct demo *d, const char *what, long ret);

/* Start a phase: @goal messages of all ranks, 0 when they are not counted. */
void demo_phase(struct demo *d, const char *name, uint64_t goal);

/* Exchange @len bytes with all ranks; progress goes on. Out: n * @len. */
int demo_exchange(struct demo *d, const void *in, size_t len, void *out);

/* Wait for all ranks; progress goes on. */
int demo_barrier(struct demo *d);

#endif /* DEMO_H */
