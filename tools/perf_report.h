/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of tandem-perf. */
#ifndef TANDEM_PERF_REPORT_H
#define TANDEM_PERF_REPORT_H

#include "tools/perf.h"

struct perf_report {
	const struct perf_options *o;
	struct perf_row *row;
	size_t rows;
};

/* The head of the table of a pattern; CSV: the names of the columns, once. */
void perf_report_head(struct perf_report *r, const struct perf *p);
/* Print @row and keep it. Returns 0, -1: no memory. */
int perf_report_row(struct perf_report *r, const struct perf_row *row);

/* Does gnuplot run? */
int perf_can_plot(void);
/* Draw @r->o->plot. Returns 0 or -1. */
int perf_report_plot(const struct perf_report *r);

#endif /* TANDEM_PERF_REPORT_H */
