/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small tools of the demo.
 *
 * A pattern is a sequence of 64-bit words, each a function of the seed and its
 * index: a byte that is missing, doubled, displaced, stale or from another
 * message differs. Words are cheap to make, so that checking every byte costs
 * about as much as copying it.
 */
#include "fabtests/demo_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t demo_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t demo_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t pattern_word(uint64_t seed, uint64_t index)
{
	uint64_t x = seed + index * 0x9e3779b97f4a7c15u;

	return x ^ (x >> 32);
}

void demo_pattern_fill(void *buf, size_t len, uint64_t seed)
{
	unsigned char *bytes = buf;
	uint64_t *words = buf;
	size_t i, n = len / 8;
	uint64_t last;

	for (i = 0; i < n; i++)
		words[i] = pattern_word(seed, i);
	last = pattern_word(seed, n);
	memcpy(bytes + 8 * n, &last, len % 8);
}

/* The exact place, once something is known to be wrong. */
static size_t first_wrong(const unsigned char *bytes, size_t len, uint64_t seed)
{
	unsigned char want[8];
	uint64_t word;
	size_t i;

	for (i = 0; i < len; i++) {
		word = pattern_word(seed, i / 8);
		memcpy(want, &word, 8);
		if (bytes[i] != want[i % 8])
			return i;
	}
	return len;
}

size_t demo_pattern_check(const void *buf, size_t len, uint64_t seed)
{
	const unsigned char *bytes = buf;
	const uint64_t *words = buf;
	size_t i, n = len / 8;
	uint64_t last, wrong = 0;

	/* No early exit: the loop without one is several times faster. */
	for (i = 0; i < n; i++)
		wrong |= words[i] ^ pattern_word(seed, i);
	last = pattern_word(seed, n);
	if (!wrong && !memcmp(bytes + 8 * n, &last, len % 8))
		return len;
	return first_wrong(bytes, len, seed);
}

void *demo_alloc(size_t bytes)
{
	size_t room = (bytes + 63) / 64 * 64;
	void *mem = aligned_alloc(64, room ? room : 64);

	if (!mem) {
		fprintf(stderr, "tandem_demo: out of memory (%zu bytes)\n",
			bytes);
		exit(1);
	}
	return memset(mem, 0, room ? room : 64);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t demo_quartile(uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
	return values[n / 4];
}
