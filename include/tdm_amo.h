/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations on registered memory, fi_atomic(3): the request, in the
 * form that calls, transports and regions share. (base/atomic.h is for
 * variables of the provider that threads share.)
 */
#ifndef TDM_AMO_H
#define TDM_AMO_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rdma/fi_atomic.h>

/* The three families of calls. */
enum tdm_amo_kind {
	TDM_AMO_BASE,	 /* fi_atomic() and the like */
	TDM_AMO_FETCH,	 /* fi_fetch_atomic(): the former values come back */
	TDM_AMO_COMPARE, /* fi_compare_atomic(): likewise */
	TDM_AMO_KINDS
};

enum {
	/*
	 * Greatest number of operand bytes in one call, those of buf and
	 * compare together. A record of that size fits the smallest ring at any
	 * position.
	 */
	TDM_AMO_BYTES = 1024,
	TDM_AMO_IOV_LIMIT = 8, /* elements of one vector: tx_attr->iov_limit */
	TDM_RMA_IOV_LIMIT = 8, /* ranges at the target: rma_iov_limit */
	/* Elements of a tdm_xfer: those of buf, then those of compare. */
	TDM_AMO_VECTOR = 2 * TDM_AMO_IOV_LIMIT,
};

/*
 * The representation of values in this process: the digits of a long double,
 * plus 128 on a big-endian machine.
 */
#define TDM_AMO_FORM                                                           \
	(LDBL_MANT_DIG | (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 128 : 0))

/* The operation on each element. */
struct tdm_amo {
	uint8_t type; /* enum fi_datatype */
	uint8_t op;   /* enum fi_op */
	uint8_t kind; /* enum tdm_amo_kind */
	uint8_t form; /* TDM_AMO_FORM of the initiator */
};

/* The atomic part of an initiator's struct tdm_xfer. */
struct tdm_amo_call {
	struct tdm_amo amo;
	uint32_t bytes;	     /* bytes at the target */
	size_t result_count; /* 0: no result is returned */
	struct iovec result[TDM_AMO_IOV_LIMIT];
};

/*
 * Returns how many operands the call supplies for each element of the target.
 */
static inline unsigned tdm_amo_operands(const struct tdm_amo *a)
{
	if (a->kind == TDM_AMO_COMPARE)
		return 2;
	return a->op == FI_ATOMIC_READ ? 0 : 1;
}

/*
 * Not 0 when @bytes at the target and @len bytes of operands fit @a. The check
 * uses the record alone; the owner of the memory decides whether the operation
 * exists.
 */
static inline int tdm_amo_fits(const struct tdm_amo *a, uint64_t bytes,
			       uint64_t len)
{
	return a->kind < TDM_AMO_KINDS && bytes && bytes <= TDM_AMO_BYTES &&
	       len <= TDM_AMO_BYTES && len == bytes * tdm_amo_operands(a);
}

/* Not 0 when @a returns the former values. */
static inline int tdm_amo_fetches(const struct tdm_amo *a)
{
	return a->kind != TDM_AMO_BASE;
}

/*
 * Returns the access that the region must grant: read for operations that
 * fetch, write for all but FI_ATOMIC_READ.
 */
static inline uint64_t tdm_amo_access(const struct tdm_amo *a)
{
	return (tdm_amo_fetches(a) ? FI_REMOTE_READ : 0) |
	       (a->op != FI_ATOMIC_READ ? FI_REMOTE_WRITE : 0);
}

#endif /* TDM_AMO_H */
