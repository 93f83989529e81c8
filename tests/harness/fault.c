/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that fails on demand; see fault.h. One thread at a time arms it, and
 * only that thread's allocations count.
 */
#include "fault.h"

/* Weak: NULL in a program that is linked without --wrap. */
void *__real_malloc(size_t n) __attribute__((weak));
void *__real_calloc(size_t n, size_t m) __attribute__((weak));
void *__real_realloc(void *p, size_t n) __attribute__((weak));

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);

static __thread struct {
	int armed;
	int paused;
	int none;
	unsigned count;
	int all;
	unsigned left; /* allocations until the one that fails */
	unsigned failed;
	size_t bytes; /* by malloc */
} fault;

static int fails(void)
{
	if (fault.paused)
		return 0;
	if (fault.none)
		return 1;
	if (!fault.armed)
		return 0;
	fault.count++;
	if (fault.left && --fault.left == 0) {
		fault.failed++;
		return 1;
	}
	if (!fault.left && fault.failed && fault.all) {
		fault.failed++;
		return 1;
	}
	return 0;
}

void *__wrap_malloc(size_t n)
{
	if (fails())
		return NULL;
	fault.bytes += n;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m)
{
	return fails() ? NULL : __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

int tdt_alloc_can_fail(void)
{
	return __real_malloc && __real_calloc && __real_realloc;
}

void tdt_alloc_fail(unsigned nth, int all)
{
	fault.armed = 1;
	fault.all = all;
	fault.left = nth;
	fault.count = 0;
	fault.failed = 0;
	fault.bytes = 0;
}

void tdt_alloc_pause(int on)
{
	fault.paused = on;
}

void tdt_alloc_none(int on)
{
	fault.none = on;
}

unsigned tdt_alloc_count(void)
{
	return fault.count;
}

unsigned tdt_alloc_failed(void)
{
	return fault.failed;
}

size_t tdt_alloc_bytes(void)
{
	return fault.bytes;
}

unsigned tdt_alloc_stop(void)
{
	fault.armed = 0;
	return fault.failed;
}
