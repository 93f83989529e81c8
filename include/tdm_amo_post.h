/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns the calls of fi_atomic(3), which differ in form only, into a struct
 * tdm_xfer. For those who implement struct fi_ops_atomic.
 */
#ifndef TDM_AMO_POST_H
#define TDM_AMO_POST_H

#include <string.h>

#include <rdma/fi_errno.h>

#include "tdm_ranges.h"

/* The arguments of an atomic call, apart from the place at the target. */
struct tdm_amo_ask {
	enum tdm_amo_kind kind;
	enum fi_datatype type;
	enum fi_op op;
	const struct fi_ioc *buf, *compare, *result; /* NULL if unused */
	size_t buf_count, compare_count, result_count;
	size_t count; /* values at the target; 0: as in buf or result */
};

/* The peer, and the place in its memory. */
struct tdm_amo_where {
	fi_addr_t peer;
	uint64_t addr, key;
	void *context;
	/* Message calls: further ranges; values of all. 0: one range. */
	const struct fi_rma_ioc *more;
	size_t more_count, values;
};

/* Returns an empty ask, for tdm_amo_from_message() or tdm_amo_ask(). */
static inline struct tdm_amo_ask tdm_amo_begin(enum tdm_amo_kind kind)
{
	struct tdm_amo_ask ask;

	memset(&ask, 0, sizeof(ask));
	ask.kind = kind;
	return ask;
}

/* Returns an ask with operand buf; the caller adds compare and result. */
static inline struct tdm_amo_ask
tdm_amo_ask(enum tdm_amo_kind kind, enum fi_datatype type, enum fi_op op,
	    const struct fi_ioc *buf, size_t count)
{
	struct tdm_amo_ask ask = tdm_amo_begin(kind);

	ask.type = type;
	ask.op = op;
	ask.buf = buf;
	ask.buf_count = count;
	return ask;
}

/*
 * Split @m into @ask and *@where. Errors: -FI_EINVAL: no range, too many, or
 * one without values.
 */
static inline int tdm_amo_from_message(struct tdm_amo_ask *ask,
				       struct tdm_amo_where *where,
				       const struct fi_msg_atomic *m)
{
	if (tdm_ranges_values(m->rma_iov, m->rma_iov_count, &where->values))
		return -FI_EINVAL;
	where->more = m->rma_iov + 1;
	where->more_count = m->rma_iov_count - 1;
	where->peer = m->addr;
	where->addr = m->rma_iov[0].addr;
	where->key = m->rma_iov[0].key;
	where->context = m->context;
	ask->type = m->datatype;
	ask->op = m->op;
	ask->buf = m->msg_iov;
	ask->buf_count = m->iov_count;
	ask->count = where->values;
	return 0;
}

/* A request and what it points to. The caller sets x.flags and the address. */
struct tdm_amo_post {
	struct tdm_xfer x;
	struct tdm_amo_call call;
	struct iovec iov[TDM_AMO_VECTOR];
	struct fi_rma_iov more[TDM_RMA_IOV_LIMIT - 1];
};

/*
 * Turn @ioc, whose values have @size bytes each, into @iov. Out: *@bytes, their
 * sum; if excessive, a lower one above TDM_AMO_BYTES. Errors: -FI_EINVAL.
 */
static inline int tdm_amo_vector(struct iovec *iov, const struct fi_ioc *ioc,
				 size_t count, size_t size, size_t *bytes)
{
	size_t i;

	*bytes = 0;
	if (count > TDM_AMO_IOV_LIMIT || (count && !ioc))
		return -FI_EINVAL;
	for (i = 0; i < count; i++) {
		if (ioc[i].count && !ioc[i].addr)
			return -FI_EINVAL;
		iov[i].iov_base = ioc[i].addr;
		iov[i].iov_len =
			tdm_min(ioc[i].count, 2 * TDM_AMO_BYTES) * size;
		*bytes += iov[i].iov_len;
	}
	return 0;
}

/*
 * Set the result vector of @call to the result buffers of @ask, of values of @size
 * bytes; to none for TDM_AMO_BASE. Out: *@bytes, as tdm_amo_vector(). Errors:
 * -FI_EINVAL.
 */
static inline int tdm_amo_post_result(struct tdm_amo_call *call,
				      const struct tdm_amo_ask *ask,
				      size_t size, size_t *bytes)
{
	call->result_count = 0;
	*bytes = 0;
	if (ask->kind == TDM_AMO_BASE)
		return 0;
	call->result_count = ask->result_count;
	return tdm_amo_vector(call->result, ask->result, ask->result_count,
			      size, bytes);
}

/*
 * Fill @p for @ask, whose values have @size bytes, except for the members that
 * tdm_amo_address() sets. Errors: -FI_EINVAL: no value, too many vectors, or
 * vectors with different numbers of values; -FI_EMSGSIZE: more than
 * TDM_AMO_BYTES.
 */
static inline int tdm_amo_prepare(struct tdm_amo_post *p,
				  const struct tdm_amo_ask *ask, size_t size)
{
	struct tdm_amo_call *call = &p->call;
	size_t buf = 0, compare = 0, result, bytes, n = 0;
	int reads = ask->op == FI_ATOMIC_READ, ret;

	/* fi_atomic(3), FI_ATOMIC_READ: "the source buffer is ignored". */
	if (!reads) {
		ret = tdm_amo_vector(p->iov, ask->buf, ask->buf_count, size,
				     &buf);
		if (ret)
			return ret;
		n = ask->buf_count;
	}
	if (ask->kind == TDM_AMO_COMPARE) {
		ret = tdm_amo_vector(p->iov + n, ask->compare,
				     ask->compare_count, size, &compare);
		if (ret)
			return ret;
		n += ask->compare_count;
	}
	ret = tdm_amo_post_result(call, ask, size, &result);
	if (ret)
		return ret;
	bytes = reads ? result : buf;
	if (!bytes || (ask->kind != TDM_AMO_BASE && result != bytes) ||
	    (ask->kind == TDM_AMO_COMPARE && compare != bytes))
		return -FI_EINVAL;
	if (bytes > TDM_AMO_BYTES || buf + compare > TDM_AMO_BYTES)
		return -FI_EMSGSIZE;
	if (ask->count && ask->count != bytes / size)
		return -FI_EINVAL;
	call->amo.type = (uint8_t)ask->type;
	call->amo.op = (uint8_t)ask->op;
	call->amo.kind = (uint8_t)ask->kind;
	call->amo.form = TDM_AMO_FORM;
	call->bytes = (uint32_t)bytes;
	p->x.amo = call;
	p->x.iov = p->iov;
	p->x.count = n;
	p->x.len = buf + compare;
	return 0;
}

/* Set the members of @p that tdm_amo_prepare() left; @flags go to x.flags. */
static inline void tdm_amo_address(struct tdm_amo_post *p,
				   const struct tdm_amo_where *w,
				   uint64_t flags)
{
	int base = p->call.amo.kind == TDM_AMO_BASE;

	tdm_xfer_init(&p->x, FI_ATOMIC | (base ? FI_WRITE : FI_READ) | flags,
		      w->peer, w->context);
	p->x.rma_addr = w->addr;
	p->x.rma_key = w->key;
	if (w->more_count)
		tdm_xfer_more(&p->x, p->more, w->more, w->more_count,
			      p->call.bytes / w->values);
}

#endif /* TDM_AMO_POST_H */
