/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arithmetic on I/O vectors. All lengths and offsets are bytes. Offsets count
 * from the first byte of the first element, across elements.
 */
#ifndef TDM_BASE_IOV_H
#define TDM_BASE_IOV_H

#include <string.h>
#include <sys/uio.h>

#include "base/base.h"

/*
 * Sets *@total to the sum of the lengths of iov[count]. Returns 0, or -1 when
 * the sum does not fit a size_t.
 */
static inline int tdm_iov_total(const struct iovec *iov, size_t count,
				size_t *total)
{
	size_t i, sum = 0;

	for (i = 0; i < count; i++) {
		if (__builtin_add_overflow(sum, iov[i].iov_len, &sum))
			return -1;
	}
	*total = sum;
	return 0;
}

static inline size_t tdm_iov_len(const struct iovec *iov, size_t count)
{
	size_t i, sum = 0;

	for (i = 0; i < count; i++)
		sum += iov[i].iov_len;
	return sum;
}

/*
 * Copy up to @len bytes from @src to iov[count], starting @offset bytes into
 * the vector. Returns the bytes copied: less than @len when the vector ends.
 */
static inline size_t tdm_iov_copy_to(const struct iovec *iov, size_t count,
				     size_t offset, const void *src, size_t len)
{
	const char *from = (const char *)src;
	size_t i, copied = 0;

	for (i = 0; i < count && copied < len; i++) {
		size_t n;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		n = tdm_min(iov[i].iov_len - offset, len - copied);
		memcpy((char *)iov[i].iov_base + offset, from + copied, n);
		copied += n;
		offset = 0;
	}
	return copied;
}

/* As tdm_iov_copy_to(), in the other direction: from the vector to @dst. */
static inline size_t tdm_iov_copy_from(void *dst, const struct iovec *iov,
				       size_t count, size_t offset, size_t len)
{
	char *to = (char *)dst;
	size_t i, copied = 0;

	for (i = 0; i < count && copied < len; i++) {
		size_t n;

		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		n = tdm_min(iov[i].iov_len - offset, len - copied);
		memcpy(to + copied, (const char *)iov[i].iov_base + offset, n);
		copied += n;
		offset = 0;
	}
	return copied;
}

/*
 * Describe bytes [@offset, @offset + @len) of iov[count] as a vector.
 * Out: out[max], elements of length 0 left out. Returns the number of
 * elements written; the bytes that did not fit @max elements are not covered.
 */
static inline size_t tdm_iov_slice(struct iovec *out, size_t max,
				   const struct iovec *iov, size_t count,
				   size_t offset, size_t len)
{
	size_t i, n = 0;

	for (i = 0; i < count && len && n < max; i++) {
		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		out[n].iov_base = (char *)iov[i].iov_base + offset;
		out[n].iov_len = tdm_min(iov[i].iov_len - offset, len);
		len -= out[n].iov_len;
		offset = 0;
		n++;
	}
	return n;
}

#endif /* TDM_BASE_IOV_H */
