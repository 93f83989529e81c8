/* SPDX-License-Identifier: BSD-2-Clause */
/* The result, as a table to read and as CSV. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stddef.h>

#include "bench/plan.h"
#include "bench/stat.h"

/* The batches of one entrant in one row. */
struct bench_cell {
	const struct bench_entrant *of;
	const struct bench_sample *sample;
	const char *why; /* there is no figure: the sample is empty */
};

/*
 * Open batches.csv and rows.csv in @dir, made if need be; NULL: the table goes
 * to standard output only.
 */
void bench_table_open(const char *dir);

/* The @n entrants of @row have been measured. */
void bench_table_row(const struct bench_row *row,
		     const struct bench_cell *cells, size_t n);

/*
 * How many rows are ahead, level, behind, and the reason of each dash; the files
 * are closed.
 */
void bench_table_close(void);

#endif /* BENCH_TABLE_H */
