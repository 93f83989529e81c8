/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of pairs of batches. */
#ifndef BENCH_STAT_H
#define BENCH_STAT_H

#include <stddef.h>

/* How far apart the two cores are, by the half round trip of a cache line. */
enum bench_regime {
	BENCH_THREADS, /* below 35 ns: two threads of one core */
	BENCH_NEAR,    /* below 90 ns */
	BENCH_MIDDLE,  /* below 180 ns */
	BENCH_FAR,
	BENCH_REGIMES
};

struct bench_sample {
	double *line, *limit, *subject; /* ns per operation, in pairs */
	size_t count, room;
};

struct bench_result {
	size_t pairs;	       /* used */
	double limit, subject; /* ns: quartile of the used pairs */
	double ratio;
	double low, high; /* 95 % of the bootstrapped ratios lie here */
};

void bench_sample_add(struct bench_sample *s, double line, double limit,
		      double subject);

/* How many pairs of @s belong to @regime? */
size_t bench_sample_pairs(const struct bench_sample *s,
			  enum bench_regime regime);

/*
 * The result of the pairs of @regime. A batch that was preempted is no
 * measurement: of each column the 25th percentile counts.
 */
void bench_sample_result(const struct bench_sample *s, enum bench_regime regime,
			 struct bench_result *r);

/* The value below which @percent of the @n > 0 values of @v lie. Sorts @v. */
double bench_percentile(double *v, size_t n, unsigned percent);

extern const char *const bench_regime_names[BENCH_REGIMES];

#endif /* BENCH_STAT_H */
