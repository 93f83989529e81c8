/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies of payloads into and out of memory that two processes share. Reasons and
 * figures: doc/adr/0048-string-moves.md. Locking: none; the caller owns what it copies.
 */
#ifndef TDM_SHM_COPY_H
#define TDM_SHM_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "base/iov.h"
#include "shm/region.h"

enum {
	/* least bytes that a string move copies */
	TDM_SHM_STRING_BYTES = 1024,
	/* the same, where lines of the destination were fetched for writing */
	TDM_SHM_STRING_WARM_BYTES = 4097,
};

#if defined(__x86_64__)
/* Not 0 when REP MOVSB is fast: the processor has ERMS. Constant. */
extern int tdm_shm_string_moves;
#endif

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

/*
 * Not 0 when a string move copies @n bytes from @src to @dst: from @least bytes on.
 * Where @dst follows @src by less than a line within their pages, string moves are
 * slow on some processors.
 */
static inline int tdm_shm_by_string(const void *dst, const void *src, size_t n,
				    size_t least)
{
#if defined(__x86_64__)
	size_t ahead = ((uintptr_t)dst - (uintptr_t)src) % TDM_SHM_PAGE_BYTES;

	return n >= least && tdm_shm_string_moves &&
	       (!ahead || ahead >= TDM_CACHE_LINE_BYTES);
#else
	(void)dst, (void)src, (void)n, (void)least;
	return 0;
#endif
}

/*
 * Copy @n bytes to shared memory that another process has read, or will read: its
 * caches hold the lines of @dst. A string move takes whole lines without fetching
 * what they held, so that it takes half the time of vector stores or less; where the
 * core's own cache has the lines it takes longer. String moves copy @n >= @least
 * bytes. Their stores may pass one another, but no later store passes them (Intel
 * SDM, volume 3, "Fast-String Operation and Out-of-Order Stores").
 */
static inline void tdm_shm_put(void *dst, const void *src, size_t n,
			       size_t least)
{
#if defined(__x86_64__)
	if (tdm_shm_by_string(dst, src, n, least)) {
		__asm__ volatile("rep movsb"
				 : "+D"(dst), "+S"(src), "+c"(n)
				 :
				 : "memory");
		return;
	}
#endif
	(void)least;
	tdm_shm_copy(dst, src, n);
}

/*
 * As tdm_shm_put(), from iov[@count] starting @offset bytes into the vector; it has
 * @len bytes from there.
 */
static inline void tdm_shm_put_iov(void *dst, const struct iovec *iov,
				   size_t count, size_t offset, size_t len,
				   size_t least)
{
	char *to = (char *)dst;
	size_t n;

	for (; count && len; iov++, count--) {
		if (offset >= iov->iov_len) {
			offset -= iov->iov_len;
			continue;
		}
		n = tdm_min(iov->iov_len - offset, len);
		tdm_shm_put(to, (const char *)iov->iov_base + offset, n, least);
		to += n;
		len -= n;
		offset = 0;
	}
}

#endif /* TDM_SHM_COPY_H */
