/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One transfer request, in the same form for all data calls. The requests of
 * fi_msg(3) and fi_tagged(3) differ by one flag; vector and single-buffer calls
 * make the same request. fi_rma(3) adds the place at the target, fi_atomic(3)
 * the operation there.
 */
#ifndef TDM_XFER_H
#define TDM_XFER_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "base/iov.h"
#include "tdm_amo.h"

/*
 * Greatest number of iovec elements of a send or receive (tx and rx iov_limit).
 */
enum { TDM_IOV_LIMIT = TDM_AMO_IOV_LIMIT };

/* Longest transfer, bytes (ep_attr->max_msg_size). */
#define TDM_MAX_MSG_BYTES ((size_t)SIZE_MAX >> 1)

/*
 * Largest message of fi_inject(3), bytes (tx_attr->inject_size): the default and
 * the most that hints can ask for. Programs send what is longer with a
 * completion that they wait for, MPICH's MPI_Send until the receiver has posted.
 */
enum { TDM_INJECT_BYTES = 4096 };

/*
 * The completion levels of fi_cq(3) a send may ask for; none of them set
 * means FI_TRANSMIT_COMPLETE, the default of reliable endpoints.
 */
#define TDM_LEVELS (FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | TDM_DELIVERED)

/*
 * The levels at which a send completes only when a receive has taken the
 * message. A message placed in a buffer counts as matched.
 */
#define TDM_DELIVERED (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)

/* In tdm_xfer.flags, sends: rx_ctx and group are set. */
#define TDM_TO_CTX (1ULL << 62)

/* In tdm_xfer.flags, receives: addr is a match address (tdm_space.h). */
#define TDM_IN_SPACE (1ULL << 61)

/*
 * In tdm_xfer.flags, receives: addr may be new in the file of a named AV, so
 * the view is brought up to date first (tdm_av_follow()).
 */
#define TDM_NAMED_AV (1ULL << 60)

/*
 * In tdm_xfer.flags of TDM_ONE_SIDED: the request has more than one range at
 * the target.
 */
#define TDM_RANGES (1ULL << 59)

/* In tdm_xfer.flags: the request names a place at the target, not a receive. */
#define TDM_ONE_SIDED (FI_RMA | FI_ATOMIC)

struct tdm_xfer {
	/*
	 * FI_MSG or FI_TAGGED with FI_SEND or FI_RECV, or FI_RMA or FI_ATOMIC
	 * with FI_READ or FI_WRITE; FI_COMPLETION when a CQ
	 * entry is wanted on success (selective completion already applied);
	 * FI_INJECT when the buffer may be reused at return;
	 * FI_REMOTE_CQ_DATA when @data counts; a level of TDM_LEVELS;
	 * FI_MORE, FI_FENCE, FI_PEEK, FI_CLAIM, FI_DISCARD, FI_MULTI_RECV as
	 * the application gave them.
	 */
	uint64_t flags;
	const struct iovec *iov; /* iov[count]; caller's, valid for the call */
	void **desc;		 /* NULL, or desc[count] */
	size_t count;		 /* elements, <= TDM_IOV_LIMIT; FI_ATOMIC: */
				 /* of all operands, <= TDM_AMO_VECTOR */
	size_t len;		 /* bytes, sum over iov */
	fi_addr_t addr;		 /* destination, or source or FI_ADDR_UNSPEC */
	uint64_t tag;
	uint64_t ignore;   /* receives: tag bits that do not matter */
	uint64_t data;	   /* remote CQ data */
	uint64_t rma_addr; /* TDM_ONE_SIDED: where at the target, and its key */
	uint64_t rma_key;
	/*
	 * TDM_RANGES: further ranges. The first range has the bytes of len that
	 * the further ones do not have.
	 */
	const struct fi_rma_iov *more;	/* more[more_count]; caller's, as iov */
	size_t more_count;		/* less than TDM_RMA_IOV_LIMIT */
	const struct tdm_amo_call *amo; /* FI_ATOMIC; caller's, as iov */
	uint32_t group;	 /* TDM_TO_CTX: fi_group_addr(3)'s group */
	uint16_t rx_ctx; /* TDM_TO_CTX: fi_rx_addr(3)'s index */
	void *context;
	struct iovec one; /* for single-buffer calls; not to be used directly */
};

/*
 * Set up @x for an operation that is not a receive, with tag and data 0. The
 * members are set one by one: clearing the whole structure would cost more than
 * the rest of a small send. desc and ignore are not set; they are read for
 * receives only.
 */
static inline void tdm_xfer_init_send(struct tdm_xfer *x, uint64_t flags,
				      fi_addr_t addr, void *context)
{
	x->flags = flags;
	x->addr = addr;
	x->tag = 0;
	x->data = 0;
	x->context = context;
}

/* Set up @x for any operation, a receive too. */
static inline void tdm_xfer_init(struct tdm_xfer *x, uint64_t flags,
				 fi_addr_t addr, void *context)
{
	tdm_xfer_init_send(x, flags, addr, context);
	x->desc = NULL;
	x->ignore = 0;
}

/* Fill @x for one contiguous buffer, which the caller has checked. */
static inline void tdm_xfer_buf(struct tdm_xfer *x, const void *buf, size_t len)
{
	x->one.iov_base = (void *)(uintptr_t)buf;
	x->one.iov_len = len;
	x->iov = &x->one;
	x->count = 1;
	x->len = len;
}

/*
 * Fill @x for @len bytes at @buf, from which an application sends or into which
 * it reads or receives: the buffer of every call that takes no vector. @buf may
 * be NULL if @len is 0. Errors: -FI_EINVAL: NULL although @len is not 0;
 * -FI_EMSGSIZE: more bytes than a transfer may have.
 */
static inline int tdm_xfer_buffer(struct tdm_xfer *x, const void *buf,
				  size_t len)
{
	/* Most buffers are there. */
	if (tdm_unlikely(!buf || len > TDM_MAX_MSG_BYTES)) {
		if (len)
			return buf ? -FI_EMSGSIZE : -FI_EINVAL;
	}
	tdm_xfer_buf(x, buf, len);
	return 0;
}

/*
 * Fill @x for the vector iov[count] of an application. This is the only
 * function that checks such vectors, for every call that takes one (fi_ioc
 * vectors: tdm_amo_vector()). An empty vector becomes one empty element; an
 * element without bytes may be NULL. Errors: -FI_EINVAL: too many elements, no
 * vector, or an element that is NULL although it has bytes; -FI_EMSGSIZE: more
 * bytes than a transfer may have.
 */
static inline int tdm_xfer_vector(struct tdm_xfer *x, const struct iovec *iov,
				  size_t count)
{
	size_t i;

	/* Most vectors have one element. */
	if (tdm_likely(count == 1 && iov && iov->iov_base)) {
		if (tdm_unlikely(iov->iov_len > TDM_MAX_MSG_BYTES))
			return -FI_EMSGSIZE;
		x->iov = iov;
		x->count = 1;
		x->len = iov->iov_len;
		return 0;
	}
	if (tdm_unlikely(count > TDM_IOV_LIMIT || (count && !iov)))
		return -FI_EINVAL;
	for (i = 0; i < count; i++) {
		if (tdm_unlikely(iov[i].iov_len && !iov[i].iov_base))
			return -FI_EINVAL;
	}
	if (tdm_unlikely(!count)) {
		tdm_xfer_buf(x, NULL, 0);
		return 0;
	}
	if (tdm_iov_total(iov, count, &x->len) || x->len > TDM_MAX_MSG_BYTES)
		return -FI_EMSGSIZE;
	x->iov = iov;
	x->count = count;
	return 0;
}

#endif /* TDM_XFER_H */
