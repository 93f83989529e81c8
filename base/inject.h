/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Injected messages that cannot be sent yet are copied. FI_TANDEM_INJECT_MAX
 * bounds the bytes of all copies in the process; their number is not bounded.
 * Any thread may call these functions; no lock is needed.
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

/*
 * Count a copy of @n bytes that the caller is about to make. Returns 0, or -1
 * when the bound would be exceeded. tdm_inject_give() undoes it when the copy
 * is freed.
 */
static inline int tdm_inject_take(size_t n)
{
	if (tdm_a64_fetch_add(&tdm_inject_bytes, n) + n <=
	    tdm_env.inject_max_bytes)
		return 0;
	tdm_inject_give(n);
	return -1;
}

#endif /* TDM_BASE_INJECT_H */
