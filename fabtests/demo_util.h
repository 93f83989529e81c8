/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small tools of the demo: clock, payload patterns, memory, quartiles.
 */
#ifndef DEMO_UTIL_H
#define DEMO_UTIL_H

#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t demo_now_ns(void);

/* A well-mixed hash of @x; 0 does not give 0. */
uint64_t demo_mix(uint64_t x);

/* Fill @len bytes at @buf with the pattern of @seed. @buf: 8-byte aligned. */
void demo_pattern_fill(void *buf, size_t len, uint64_t seed);

/*
 * Compare @len bytes at @buf with the pattern of @seed. Returns @len when all
 * are right, else the offset of the first wrong byte.
 */
size_t demo_pattern_check(const void *buf, size_t len, uint64_t seed);

/* Zeroed memory, aligned to a cache line. Ends the process when there is none. */
void *demo_alloc(size_t bytes);

/* The 25th percentile of @n > 0 values; sorts them. */
uint64_t demo_quartile(uint64_t *values, size_t n);

#endif /* DEMO_UTIL_H */
