/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limits of the machine: the same exchange without any library, by hand,
 * between the same two processes.
 */
#ifndef BENCH_LIMIT_H
#define BENCH_LIMIT_H

#include "bench/subject.h"

/* Connect the raw sockets of both sides, make what else the limits use. */
void bench_limit_open(struct bench_subject *s);

/* How many messages of @len bytes BENCH_LIMIT_TCP_STREAM sends in one call. */
unsigned bench_limit_together(size_t len);

/*
 * Carry out one batch of @order->limit: @order->lcount operations, of
 * BENCH_LIMIT_TCP_STREAM rounded up to a multiple of bench_limit_together().
 */
void bench_limit_batch(struct bench_subject *s,
		       const struct bench_order *order);

#endif /* BENCH_LIMIT_H */
