/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See stat.h. The interval is a percentile bootstrap: Efron and Tibshirani, An
 * Introduction to the Bootstrap, 1993, chapter 13.
 */
#include "bench/stat.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 400 };

const char *const bench_regime_names[BENCH_REGIMES] = { "threads", "near",
							"middle", "far" };

void bench_sample_add(struct bench_sample *s, double line, double limit,
		      double subject)
{
	if (s->count == s->room) {
		s->room = s->room ? 2 * s->room : 64;
		s->line = realloc(s->line, s->room * sizeof(double));
		s->limit = realloc(s->limit, s->room * sizeof(double));
		s->subject = realloc(s->subject, s->room * sizeof(double));
	}
	s->line[s->count] = line;
	s->limit[s->count] = limit;
	s->subject[s->count++] = subject;
}

static enum bench_regime regime_of(double line)
{
	return line < 35  ? BENCH_THREADS :
	       line < 90  ? BENCH_NEAR :
	       line < 180 ? BENCH_MIDDLE :
			    BENCH_FAR;
}

size_t bench_sample_pairs(const struct bench_sample *s,
			  enum bench_regime regime)
{
	size_t i, n = 0;

	for (i = 0; i < s->count; i++)
		n += regime_of(s->line[i]) == regime;
	return n;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double bench_percentile(double *v, size_t n, unsigned percent)
{
	qsort(v, n, sizeof(*v), compare);
	return v[percent < 100 ? n * percent / 100 : n - 1];
}

/* The pairs of @regime, into @l and @u; returns how many. */
static size_t select_pairs(const struct bench_sample *s,
			   enum bench_regime regime, double *l, double *u)
{
	size_t i, n = 0;

	for (i = 0; i < s->count; i++) {
		if (regime_of(s->line[i]) != regime)
			continue;
		l[n] = s->limit[i];
		u[n++] = s->subject[i];
	}
	return n;
}

static uint64_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

void bench_sample_result(const struct bench_sample *s, enum bench_regime regime,
			 struct bench_result *r)
{
	double *l = calloc(s->count + 1, sizeof(*l));
	double *u = calloc(s->count + 1, sizeof(*u));
	double *dl = calloc(s->count + 1, sizeof(*dl));
	double *du = calloc(s->count + 1, sizeof(*du));
	double ratios[DRAWS];
	uint64_t state = 1;
	size_t i, k, n = select_pairs(s, regime, l, u);

	memset(r, 0, sizeof(*r));
	r->pairs = n;
	for (k = 0; n && k < DRAWS; k++) {
		for (i = 0; i < n; i++) {
			size_t from = draw(&state) % n;

			dl[i] = l[from];
			du[i] = u[from];
		}
		ratios[k] = bench_percentile(du, n, 25) /
			    bench_percentile(dl, n, 25);
	}
	if (n) {
		qsort(ratios, DRAWS, sizeof(*ratios), compare);
		r->low = ratios[DRAWS / 40];
		r->high = ratios[DRAWS - 1 - DRAWS / 40];
		r->limit = bench_percentile(l, n, 25);
		r->subject = bench_percentile(u, n, 25);
		r->ratio = r->subject / r->limit;
	}
	free(l);
	free(u);
	free(dl);
	free(du);
}
