/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of the demo: compare what all ranks recorded, print the table.
 */
#ifndef DEMO_TABLE_H
#define DEMO_TABLE_H

#include "fabtests/demo.h"

/* Ask the provider about the path to each rank; fills d->row. */
void demo_table_ask(struct demo *d);

/*
 * Judge @rows, the rows of all ranks (demo_row_bytes() apart); rank 0 prints
 * the table and the verdict. 0 when everything held, else -1.
 */
int demo_table_finish(struct demo *d, const struct demo_row *rows);

#endif /* DEMO_TABLE_H */
