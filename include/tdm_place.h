/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order in which the bytes of a one-sided write become visible at their
 * target. Programs poll the last byte of a write to learn that all of it is
 * there, fi_tandem(7) ORDERING. So, whichever transport copies the bytes, it
 * stores those in the last cache line of the target after all others, and the
 * last word of that line by a separate store.
 *
 * A write of up to 8 bytes is one store wherever the machine has one.
 */
#ifndef TDM_PLACE_H
#define TDM_PLACE_H

#include <stdint.h>

#include "base/atomic.h"
#include "base/iov.h"

enum { TDM_LINE_BYTES = 64 };

/*
 * Returns how many bytes at the end of iov[count], which has no empty element,
 * must be stored last: those of the last element that are in the cache line of
 * the last byte. 0 for an empty vector.
 */
static inline size_t tdm_place_last(const struct iovec *iov, size_t count)
{
	const struct iovec *v;
	uintptr_t end;

	if (!count)
		return 0;
	v = &iov[count - 1];
	end = (uintptr_t)v->iov_base + v->iov_len - 1;
	return tdm_min((size_t)(end % TDM_LINE_BYTES) + 1, v->iov_len);
}

typedef uint16_t __attribute__((may_alias)) tdm_place_u16;
typedef uint32_t __attribute__((may_alias)) tdm_place_u32;
typedef uint64_t __attribute__((may_alias)) tdm_place_u64;

/*
 * Store @width bytes (1, 2, 4 or 8) of @src to @to, which is aligned to @width,
 * by one store.
 */
static inline void tdm_place_word(void *to, const void *src, size_t width)
{
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	switch (width) {
	case 8:
		memcpy(&v64, src, 8);
		__atomic_store_n((tdm_place_u64 *)to, v64, __ATOMIC_RELEASE);
		break;
	case 4:
		memcpy(&v32, src, 4);
		__atomic_store_n((tdm_place_u32 *)to, v32, __ATOMIC_RELEASE);
		break;
	case 2:
		memcpy(&v16, src, 2);
		__atomic_store_n((tdm_place_u16 *)to, v16, __ATOMIC_RELEASE);
		break;
	default:
		__atomic_store_n((uint8_t *)to, *(const uint8_t *)src,
				 __ATOMIC_RELEASE);
		break;
	}
}

/*
 * Store the @n bytes of @src, at least 1 and at most tdm_place_last(), at the
 * end of iov[count] after all earlier stores: first all but the last word, then
 * that word by one store. The word is as wide as @n and the alignment of its
 * end allow.
 */
static inline void tdm_place_end(const struct iovec *iov, size_t count,
				 const void *src, size_t n)
{
	const struct iovec *v = iov + count - 1;
	char *to = (char *)v->iov_base + v->iov_len - n;
	const char *from = (const char *)src;
	size_t word = n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : 1;

	while (((uintptr_t)to + n) % word)
		word /= 2;
	tdm_fence_release();
	memcpy(to, from, n - word);
	tdm_place_word(to + n - word, from + n - word, word);
}

/*
 * Store the @n bytes of @src from byte @at on in iov[count], the whole target
 * of a write. All earlier bytes of the write must have been stored.
 */
static inline void tdm_place(const struct iovec *iov, size_t count, size_t at,
			     const void *src, size_t n)
{
	size_t total = tdm_iov_len(iov, count);
	size_t body = total - tdm_place_last(iov, count);
	size_t first = at < body ? tdm_min(n, body - at) : 0;

	if (total <= 8) {
		tdm_iov_copy_to(iov, count, at, src, n);
		return;
	}
	tdm_iov_copy_to(iov, count, at, src, first);
	if (n == first)
		return;
	src = (const char *)src + first;
	if (at + n == total)
		tdm_place_end(iov, count, src, n - first);
	else
		tdm_iov_copy_to(iov, count, at + first, src, n - first);
}

#endif /* TDM_PLACE_H */
