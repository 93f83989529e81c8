/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations on memory, fi_atomic(3): what is asked for, in the form
 * that calls, transports and regions share. (base/atomic.h is about the words
 * of our own that threads share.)
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
	 * Operands of one call, bytes: buf and compare together. A record with
	 * so many fits the smallest ring at any position.
	 */
	TDM_AMO_BYTES = 1024,
	TDM_AMO_IOV_LIMIT = 8, /* elements of one vector: tx_attr->iov_limit */
	TDM_RMA_IOV_LIMIT = 8, /* ranges at the target: rma_iov_limit */
	/* Elements of a tdm_xfer: those of buf, then those of compare. */
	TDM_AMO_VECTOR = 2 * TDM_AMO_IOV_LIMIT,
};

/*
 * How values lie in the memory of this process: digits of a long double, and
 * 128 on a machine whose integers begin with the high byte.
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
	uint32_t bytes;	     /* of the target */
	size_t result_count; /* 0: nothing comes back */
	struct iovec result[TDM_AMO_IOV_LIMIT];
};

/* Operands that each element of the target takes. */
static inline unsigned tdm_amo_operands(const struct tdm_amo *a)
{
	if (a->kind == TDM_AMO_COMPARE)
		return 2;
	return a->op == FI_ATOMIC_READ ? 0 : 1;
}

/*
 * Can @a be about @bytes of the target with @len bytes of operands? What the
 * bytes of a record alone can tell; whether there is such an operation is for
 * the owner of the memory to say.
 */
static inline int tdm_amo_fits(const struct tdm_amo *a, uint64_t bytes,
			       uint64_t len)
{
	return a->kind < TDM_AMO_KINDS && bytes && bytes <= TDM_AMO_BYTES &&
	       len <= TDM_AMO_BYTES && len == bytes * tdm_amo_operands(a);
}

/* Does @a bring the former values back? */
static inline int tdm_amo_fetches(const struct tdm_amo *a)
{
	return a->kind != TDM_AMO_BASE;
}

/*
 * The access that the region must have been registered for: reading by
 * operations that fetch, writing by all but the one that only reads.
 */
static inline uint64_t tdm_amo_access(const struct tdm_amo *a)
{
	return (tdm_amo_fetches(a) ? FI_REMOTE_READ : 0) |
	       (a->op != FI_ATOMIC_READ ? FI_REMOTE_WRITE : 0);
}

#endif /* TDM_AMO_H */
