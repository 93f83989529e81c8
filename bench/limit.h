/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the machine itself needs: the same exchange without any library, by
 * hand, between the same two processes.
 */
#ifndef BENCH_LIMIT_H
#define BENCH_LIMIT_H

#include "bench/subject.h"

/* Connect the raw sockets of both sides, make what else the limits use. */
void bench_limit_open(struct bench_subject *s);

/* Carry out one batch of @order->limit: @order->lcount operations. */
void bench_limit_batch(struct bench_subject *s,
		       const struct bench_order *order);

#endif /* BENCH_LIMIT_H */
