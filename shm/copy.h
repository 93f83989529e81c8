/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of short payloads into and out of a ring. */
#ifndef TDM_SHM_COPY_H
#define TDM_SHM_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"

/* Copy @n bytes, with copies of constant width for the most common sizes. */
static inline void tdm_shm_copy(void *dst, const void *src, size_t n)
{
	if (tdm_likely(n == 8)) {
		memcpy(dst, src, 8);
	} else if (n > 16 && n <= 32) {
		uint64_t a[2], b[2];

		memcpy(a, src, 16);
		memcpy(b, (const char *)src + n - 16, 16);
		memcpy(dst, a, 16);
		memcpy((char *)dst + n - 16, b, 16);
	} else if (n >= 8 && n <= 16) {
		uint64_t a, b;

		memcpy(&a, src, 8);
		memcpy(&b, (const char *)src + n - 8, 8);
		memcpy(dst, &a, 8);
		memcpy((char *)dst + n - 8, &b, 8);
	} else if (n) {
		memcpy(dst, src, n);
	}
}

#endif /* TDM_SHM_COPY_H */
