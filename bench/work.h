/* SPDX-License-Identifier: BSD-2-Clause */
/* The works: what two processes do with a subject. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

#include "bench/subject.h"

/*
 * Carry out one batch of @order on both sides: @order->count operations.
 * Returns the ns that they took on the side that leads, without what a queue for
 * matching takes to prepare.
 */
uint64_t bench_work_batch(struct bench_subject *s,
			  const struct bench_order *order);

/*
 * Called before the batches of @order, after its warm-up. Where a thread polls in
 * vain, the subject's state is that of the last tenth of a second: side 0 polls for so
 * long, so that it does not still give way to the entrant that had its turn before.
 */
void bench_work_calm(struct bench_subject *s, const struct bench_order *order);

/* Can @s do @order at all? */
int bench_work_possible(const struct bench_subject *s,
			const struct bench_order *order);

#endif /* BENCH_WORK_H */
