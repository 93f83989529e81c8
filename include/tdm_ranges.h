/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ranges at the target of a one-sided operation. The calls here put them from
 * an application's arguments into a struct tdm_xfer, and from there into a list.
 */
#ifndef TDM_RANGES_H
#define TDM_RANGES_H

#include "tdm_xfer.h"

/* Returns how many bytes the one-sided @x accesses at the target. */
static inline size_t tdm_xfer_target(const struct tdm_xfer *x)
{
	return x->flags & FI_ATOMIC ? x->amo->bytes : x->len;
}

/*
 * Set the ranges iov[@count] at the target in @x, whose vector is filled in.
 * The only place that checks such a list. Errors: -FI_EINVAL: no range, too
 * many, or ranges with another sum of bytes than the local vector;
 * -FI_EMSGSIZE: the sum overflows.
 */
static inline int tdm_xfer_ranges(struct tdm_xfer *x,
				  const struct fi_rma_iov *iov, size_t count)
{
	size_t i, sum = 0;

	if (!iov || !count || count > TDM_RMA_IOV_LIMIT)
		return -FI_EINVAL;
	for (i = 0; i < count; i++) {
		if (__builtin_add_overflow(sum, iov[i].len, &sum))
			return -FI_EMSGSIZE;
	}
	if (sum != x->len)
		return -FI_EINVAL;
	x->rma_addr = iov[0].addr;
	x->rma_key = iov[0].key;
	if (count > 1) {
		x->flags |= TDM_RANGES;
		x->more = iov + 1;
		x->more_count = count - 1;
	}
	return 0;
}

/* Copy all ranges of @x to out[TDM_RMA_IOV_LIMIT]. Returns how many. */
static inline size_t tdm_xfer_list(const struct tdm_xfer *x,
				   struct fi_rma_iov *out)
{
	size_t more = x->flags & TDM_RANGES ? x->more_count : 0, i;

	out[0].addr = x->rma_addr;
	out[0].len = tdm_xfer_target(x);
	out[0].key = x->rma_key;
	for (i = 0; i < more; i++) {
		out[i + 1] = x->more[i];
		out[0].len -= x->more[i].len;
	}
	return more + 1;
}

/*
 * Copy all ranges of @x, counted in values of @size bytes, to @out. Returns how
 * many.
 */
static inline size_t tdm_xfer_values(const struct tdm_xfer *x, size_t size,
				     struct fi_rma_ioc *out)
{
	struct fi_rma_iov list[TDM_RMA_IOV_LIMIT];
	size_t n = tdm_xfer_list(x, list), i;

	for (i = 0; i < n; i++) {
		out[i].addr = list[i].addr;
		out[i].count = list[i].len / size;
		out[i].key = list[i].key;
	}
	return n;
}

/*
 * Set *@values to the number of values in iov[@count]. Errors: -FI_EINVAL: no
 * range, too many, a range without values, or the sum overflows.
 */
static inline int tdm_ranges_values(const struct fi_rma_ioc *iov, size_t count,
				    size_t *values)
{
	size_t i, sum = 0;

	if (!iov || !count || count > TDM_RMA_IOV_LIMIT)
		return -FI_EINVAL;
	for (i = 0; i < count; i++) {
		if (!iov[i].count ||
		    __builtin_add_overflow(sum, iov[i].count, &sum))
			return -FI_EINVAL;
	}
	*values = sum;
	return 0;
}

/*
 * Add to @x the ranges more[@count] of values of @size bytes; they are stored
 * in @store.
 */
static inline void tdm_xfer_more(struct tdm_xfer *x, struct fi_rma_iov *store,
				 const struct fi_rma_ioc *more, size_t count,
				 size_t size)
{
	size_t i;

	for (i = 0; i < count; i++) {
		store[i].addr = more[i].addr;
		store[i].len = more[i].count * size;
		store[i].key = more[i].key;
	}
	x->flags |= TDM_RANGES;
	x->more = store;
	x->more_count = count;
}

#endif /* TDM_RANGES_H */
