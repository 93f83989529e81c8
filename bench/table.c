/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See table.h. All figures of a row are of one regime: the one of which the
 * entrant with the fewest pairs has the most. A verdict needs intervals that
 * do not overlap; with too few pairs there is none.
 */
#include "bench/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LEAST_PAIRS = 12 };

enum verdict { AHEAD, LEVEL, BEHIND, UNKNOWN, ALONE, VERDICTS };

static const char *const verdicts[VERDICTS] = { "ahead", "level", "behind",
						"inconclusive", "" };
static unsigned counts[VERDICTS];
static FILE *batches, *rows;

/* Why there is a dash instead of a figure: once for each entrant and reason. */
struct reason {
	const char *name;
	char why[BENCH_WHY_BYTES];
	char label[128]; /* of the first row */
	unsigned rows;
};
static struct reason *reasons;
static size_t nreasons;

static FILE *open_csv(const char *dir, const char *name, const char *head)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f)
		bench_die(path, errno);
	fputs(head, f);
	return f;
}

void bench_table_open(const char *dir)
{
	if (!dir)
		return;
	mkdir(dir, 0777);
	batches = open_csv(dir, "batches.csv",
			   "row,entrant,line_ns,limit_ns,subject_ns\n");
	rows = open_csv(dir, "rows.csv",
			"row,tier,group,bytes,window,regime,limit_ns,entrant,"
			"ns,ratio,low,high,pairs,verdict,why\n");
}

static enum bench_regime common_regime(const struct bench_cell *cells, size_t n,
				       size_t *pairs)
{
	enum bench_regime r, best = BENCH_NEAR;
	size_t i;

	*pairs = 0;
	for (r = 0; r < BENCH_REGIMES; r++) {
		size_t least = (size_t)-1;

		for (i = 0; i < n; i++) {
			size_t have = bench_sample_pairs(cells[i].sample, r);

			if (!cells[i].sample->count)
				continue;
			least = have < least ? have : least;
		}
		if (least >= *pairs && least != (size_t)-1) {
			*pairs = least;
			best = r;
		}
	}
	return best;
}

/* Our entrant of this row and the best of its rivals, or -1. */
static void find(const struct bench_cell *cells,
		 const struct bench_result *results, size_t n, int *ours,
		 int *rival)
{
	size_t i;

	*ours = *rival = -1;
	for (i = 0; i < n; i++) {
		if (!results[i].pairs)
			continue;
		if (cells[i].of->rival) {
			if (*rival < 0 ||
			    results[i].ratio < results[*rival].ratio)
				*rival = (int)i;
		} else if (*ours < 0) {
			*ours = (int)i;
		}
	}
}

static enum verdict judge(const struct bench_result *ours,
			  const struct bench_result *rival, size_t pairs)
{
	if (pairs < LEAST_PAIRS)
		return UNKNOWN;
	if (ours->high < rival->low)
		return AHEAD;
	return ours->low > rival->high ? BEHIND : LEVEL;
}

static void write_batches(const char *label, const struct bench_cell *cells,
			  size_t n)
{
	size_t i, k;

	for (i = 0; batches && i < n; i++) {
		const struct bench_sample *s = cells[i].sample;

		for (k = 0; k < s->count; k++)
			fprintf(batches, "%s,%s,%.1f,%.1f,%.1f\n", label,
				cells[i].of->name, s->line[k], s->limit[k],
				s->subject[k]);
	}
}

/* The same for an entrant without a figure. */
static void note_dash(const char *label, const struct bench_cell *cell)
{
	struct reason *r = reasons;

	while (r < reasons + nreasons &&
	       (r->name != cell->of->name || strcmp(r->why, cell->why)))
		r++;
	if (r == reasons + nreasons) {
		reasons = realloc(reasons, (nreasons + 1) * sizeof(*reasons));
		r = &reasons[nreasons++];
		r->name = cell->of->name;
		r->rows = 0;
		snprintf(r->why, sizeof(r->why), "%s", cell->why);
		snprintf(r->label, sizeof(r->label), "%s", label);
	}
	r->rows++;
}

static void write_dash(const char *label, const struct bench_row *row,
		       const struct bench_cell *cell)
{
	note_dash(label, cell);
	printf("  %s -", cell->of->name);
	if (rows)
		fprintf(rows, "%s,%s,%s,%llu,%u,,,%s,,,,,0,,\"%s\"\n", label,
			bench_tier_name(row->tier), row->group,
			(unsigned long long)row->order.bytes, row->order.window,
			cell->of->name, cell->why);
}

static void write_row(const char *label, const struct bench_row *row,
		      enum bench_regime regime, const struct bench_cell *cell,
		      const struct bench_result *r, enum verdict v)
{
	if (!rows)
		return;
	fprintf(rows,
		"%s,%s,%s,%llu,%u,%s,%.1f,%s,%.1f,%.3f,%.3f,%.3f,%zu,%s,\n",
		label, bench_tier_name(row->tier), row->group,
		(unsigned long long)row->order.bytes, row->order.window,
		bench_regime_names[regime], r->limit, cell->of->name,
		r->subject, r->ratio, r->low, r->high, r->pairs,
		cell->of->rival ? "" : verdicts[v]);
}

void bench_table_row(const struct bench_row *row,
		     const struct bench_cell *cells, size_t n)
{
	struct bench_result results[BENCH_SUBJECTS_MOST];
	enum bench_regime regime;
	enum verdict v = ALONE;
	int ours, rival;
	char label[128];
	size_t i, first, pairs;

	bench_row_label(label, sizeof(label), row);
	write_batches(label, cells, n);
	regime = common_regime(cells, n, &pairs);
	for (i = 0; i < n; i++)
		bench_sample_result(cells[i].sample, regime, &results[i]);
	find(cells, results, n, &ours, &rival);
	if (ours >= 0 && rival >= 0)
		v = judge(&results[ours], &results[rival], pairs);
	counts[v]++;
	for (first = 0; first < n && !results[first].pairs; first++)
		;
	printf("%-22s %-6s %10.0f", label, bench_regime_names[regime],
	       first < n ? results[first].limit : 0);
	for (i = 0; i < n; i++) {
		if (!cells[i].sample->count) {
			write_dash(label, row, &cells[i]);
			continue;
		}
		printf("  %s %.2f", cells[i].of->name, results[i].ratio);
		write_row(label, row, regime, &cells[i], &results[i], v);
	}
	if (v != ALONE)
		printf("  %s %.2f", verdicts[v],
		       results[ours].ratio / results[rival].ratio);
	printf("\n");
	fflush(stdout);
}

void bench_table_close(void)
{
	size_t i;
	int v;

	for (v = 0; v < ALONE; v++)
		printf("%u %s%s", counts[v], verdicts[v],
		       v + 1 < ALONE ? ", " : "\n");
	for (i = 0; i < nreasons; i++) {
		printf("-: %s: %s (%s", reasons[i].name, reasons[i].why,
		       reasons[i].label);
		if (reasons[i].rows > 1)
			printf(" and %u more", reasons[i].rows - 1);
		printf(")\n");
	}
	free(reasons);
	if (batches)
		fclose(batches);
	if (rows)
		fclose(rows);
}
