/* SPDX-License-Identifier: BSD-2-Clause */
/* See copy.h. */
#include "shm/copy.h"

#if defined(__x86_64__)

#include <cpuid.h>

enum { ERMS = 1 << 9 }; /* leaf 7, EBX */

int tdm_shm_string_moves;

/* Sanitizers see the accesses of memcpy(), but not those of a string move. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WATCHED
#endif
#endif

#ifndef WATCHED
/* Asks the processor once, when the module is loaded: CPUID is slow in a guest. */
__attribute__((constructor)) static void ask_processor(void)
{
	unsigned a, b, c, d;

	tdm_shm_string_moves = __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
			       (b & ERMS);
}
#endif

#endif
