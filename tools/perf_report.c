/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output of tandem-perf: a table for each pattern, or CSV, and a picture.
 * No lock: one thread.
 */
#include "tools/perf_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf_fab.h"

static const char *const titles[PERF_PATTERNS] = {
	"messages", "tagged messages", "one-sided writes", "one-sided reads",
	"atomic fetch-add"
};

/* ---- table and CSV -------------------------------------------------------- */

void perf_report_head(struct perf_report *r, const struct perf *p)
{
	const unsigned m = r->o->measures;
	char path[160], here[128];

	if (r->o->csv) {
		if (!r->rows)
			puts("provider,pattern,bytes,latency_iterations,"
			     "latency_min_us,latency_median_us,latency_p99_us,"
			     "window,operations,operations_per_s,mb_per_s");
		return;
	}
	perf_fab_path(p, path, sizeof(path));
	perf_control_address(&p->c, here, sizeof(here));
	printf("%s%s: %s%s%s\n  %s to %s, window %u%s\n", r->rows ? "\n" : "",
	       titles[p->job.pattern], p->at.info->fabric_attr->prov_name,
	       *path ? ", " : "", path, here, p->c.peer, p->job.window,
	       r->o->check ? ", data checked: figures include that" : "");
	printf("%10s", "");
	if (m & PERF_LATENCY)
		printf("  %32s", p->job.pattern < PERF_WRITE ?
					 "half a round trip, us" :
					 "until completion, us");
	printf("\n%10s", "bytes");
	if (m & PERF_LATENCY)
		printf("  %10s %10s %10s", "least", "median", "99 %");
	if (m & PERF_RATE)
		printf("  %12s", "operations/s");
	if (m & PERF_BANDWIDTH)
		printf("  %10s", "MB/s");
	putchar('\n');
}

static void print_table_row(const struct perf_row *row, unsigned m)
{
	printf("%10llu", (unsigned long long)row->bytes);
	if (m & PERF_LATENCY)
		printf("  %10.2f %10.2f %10.2f", row->min_us, row->median_us,
		       row->p99_us);
	if (m & PERF_RATE)
		printf("  %12.0f", row->per_s);
	if (m & PERF_BANDWIDTH)
		printf("  %10.1f", row->mb_per_s);
	putchar('\n');
}

static void print_csv_row(const struct perf_row *row)
{
	printf("%s,%s,%llu,", row->provider, perf_pattern_names[row->pattern],
	       (unsigned long long)row->bytes);
	if (row->latency_iterations)
		printf("%llu,%.3f,%.3f,%.3f,",
		       (unsigned long long)row->latency_iterations, row->min_us,
		       row->median_us, row->p99_us);
	else
		printf(",,,,");
	if (row->stream_iterations)
		printf("%u,%llu,%.1f,%.3f\n", row->window,
		       (unsigned long long)row->stream_iterations, row->per_s,
		       row->mb_per_s);
	else
		printf(",,,\n");
}

int perf_report_row(struct perf_report *r, const struct perf_row *row)
{
	struct perf_row *more =
		realloc(r->row, (r->rows + 1) * sizeof(*r->row));

	if (!more)
		return -1;
	r->row = more;
	r->row[r->rows++] = *row;
	if (r->o->csv)
		print_csv_row(row);
	else
		print_table_row(row, r->o->measures);
	fflush(stdout);
	return 0;
}

/* ---- picture -------------------------------------------------------------- */

struct panel {
	unsigned measure; /* enum perf_measure */
	const char *name, *axis;
};

static const struct panel panels[] = {
	{ PERF_LATENCY, "Latency, median", "us" },
	{ PERF_RATE, "Rate", "operations per second" },
	{ PERF_BANDWIDTH, "Bandwidth", "MB/s" },
};
enum { PANELS = sizeof(panels) / sizeof(panels[0]) };

static double value_of(const struct perf_row *row, unsigned measure)
{
	return measure == PERF_LATENCY ? row->median_us :
	       measure == PERF_RATE    ? row->per_s :
					 row->mb_per_s;
}

int perf_can_plot(void)
{
	return !system("command -v gnuplot >/dev/null 2>&1");
}

/* The points of @pattern, as a data block of gnuplot. Returns how many. */
static int print_points(FILE *out, const struct perf_report *r,
			enum perf_pattern pattern)
{
	size_t i;
	int k, n = 0;

	for (i = 0; i < r->rows; i++) {
		/* The axis is logarithmic. */
		if (r->row[i].pattern != pattern || !r->row[i].bytes)
			continue;
		if (!n++)
			fprintf(out, "$p%d << END\n", pattern);
		fprintf(out, "%llu", (unsigned long long)r->row[i].bytes);
		for (k = 0; k < PANELS; k++)
			fprintf(out, " %g",
				value_of(&r->row[i], panels[k].measure));
		fputc('\n', out);
	}
	if (n)
		fprintf(out, "END\n");
	return n;
}

static void print_panel(FILE *out, int k, const int *points)
{
	const char *comma = "";
	int pattern;

	fprintf(out, "set title '%s'\nset ylabel '%s'\n", panels[k].name,
		panels[k].axis);
	fprintf(out, "plot ");
	for (pattern = 0; pattern < PERF_PATTERNS; pattern++) {
		if (!points[pattern])
			continue;
		fprintf(out,
			"%s$p%d using 1:%d with linespoints lw 2 lt %d title "
			"'%s'",
			comma, pattern, k + 2, pattern + 1, titles[pattern]);
		comma = ", ";
	}
	fputc('\n', out);
}

static void print_script(FILE *out, const struct perf_report *r, int shown)
{
	int points[PERF_PATTERNS];
	int k;

	fprintf(out,
		"set terminal svg size 900,%d font 'sans,12' background "
		"'white'\nset output \"%s.new\"\n",
		380 * shown, r->o->plot);
	for (k = 0; k < PERF_PATTERNS; k++)
		points[k] = print_points(out, r, k);
	fprintf(out,
		"set logscale xy\nset format x '%%.0s%%c'\n"
		"set format y '%%.0s%%c'\nset xlabel 'bytes'\n"
		"set key left top\nset grid\nset multiplot layout %d,1\n",
		shown);
	for (k = 0; k < PANELS; k++) {
		if (r->o->measures & panels[k].measure)
			print_panel(out, k, points);
	}
	fprintf(out, "unset multiplot\nunset output\n");
}

int perf_report_plot(const struct perf_report *r)
{
	char fresh[4096];
	FILE *gnuplot = popen("exec gnuplot", "w");
	int shown = __builtin_popcount(r->o->measures);

	if (!gnuplot)
		return -1;
	snprintf(fresh, sizeof(fresh), "%s.new", r->o->plot);
	print_script(gnuplot, r, shown);
	if (pclose(gnuplot) || rename(fresh, r->o->plot)) {
		fprintf(stderr, "tandem-perf: gnuplot did not write %s: %s\n",
			r->o->plot, strerror(errno));
		return -1;
	}
	return 0;
}
