/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that fails on demand. Counts the calls of malloc, calloc and realloc
 * made by the code under test and makes one of them return NULL. It works by
 * the linker's --wrap=malloc, --wrap=calloc, --wrap=realloc; a program linked
 * without them cannot make anything fail, and says so.
 */
#ifndef TDT_FAULT_H
#define TDT_FAULT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Can allocations be made to fail in this program? */
int tdt_alloc_can_fail(void);

/*
 * Start counting; the @nth allocation from now on (1: the next) fails, and
 * with @all every later one too. 0: none.
 */
void tdt_alloc_fail(unsigned nth, int all);

/* Allocations are not counted, and do not fail, while @on. */
void tdt_alloc_pause(int on);

/* No allocation succeeds while @on; those are not counted. */
void tdt_alloc_none(int on);

/* Allocations counted, and those that failed, since tdt_alloc_fail(). */
unsigned tdt_alloc_count(void);
unsigned tdt_alloc_failed(void);

/* Bytes that malloc, and no other, was asked for since tdt_alloc_fail(). */
size_t tdt_alloc_bytes(void);

/* Stop. Returns the number of allocations that failed. */
unsigned tdt_alloc_stop(void);

#ifdef __cplusplus
}
#endif

#endif /* TDT_FAULT_H */
