/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Injected messages that cannot leave yet are copied. The copies of a process
 * are bounded together, by FI_TANDEM_INJECT_MAX; how many they are is not.
 * Any thread; no lock.
 */
#ifndef TDM_BASE_INJECT_H
#define TDM_BASE_INJECT_H

#include <stddef.h>

#include "base/atomic.h"
#include "base/env.h"

/* Copies of injected messages in this process, bytes. */
extern tdm_a64 tdm_inject_bytes;

static inline void tdm_inject_give(size_t n)
{
	tdm_a64_fetch_add(&tdm_inject_bytes, 0 - (uint64_t)n);
}

/* Take @n bytes for a copy. 0, or -1: there are too many. */
static inline int tdm_inject_take(size_t n)
{
	if (tdm_a64_fetch_add(&tdm_inject_bytes, n) + n <=
	    tdm_env.inject_max_bytes)
		return 0;
	tdm_inject_give(n);
	return -1;
}

#endif /* TDM_BASE_INJECT_H */
