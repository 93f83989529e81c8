/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows that are measured, and the entrants. */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include "bench/ctl.h"

enum bench_tier {
	BENCH_TIER_SHM = 1, /* both processes on this host, shared memory */
	BENCH_TIER_TCP = 2, /* the same two processes, sockets over loopback */
	/* the same, with a queue to sleep on */
	BENCH_TIER_SHM_SLEEP = 4,
	BENCH_TIER_TCP_SLEEP = 8,
};

enum { BENCH_ENV_MOST = 6, BENCH_SUBJECTS_MOST = 32 };

struct bench_entrant {
	const char *name;
	unsigned tiers;
	const char *provider; /* NULL: bench_mpi, started by mpirun */
	const char *env[BENCH_ENV_MOST]; /* NAME=VALUE */
	/* 0: tandem in another setting, shown, but no rival */
	int rival;
	/* 1: measured only when asked for, or in the whole run */
	int whole;
};

struct bench_row {
	const char *group;
	enum bench_tier tier;
	struct bench_order order;
};

extern const struct bench_entrant bench_entrants[];
extern const size_t bench_entrants_count;

/*
 * The rows of the plan whose label has @part in it, all if NULL; @quick: every
 * third size. Out: *@rows, to be freed. Returns how many.
 */
size_t bench_plan(struct bench_row **rows, const char *part, int quick);

/* "shm" or "tcp". */
const char *bench_tier_name(enum bench_tier tier);

/* "tier group size window" of @row into @text. */
void bench_row_label(char *text, size_t room, const struct bench_row *row);

#endif /* BENCH_PLAN_H */
