/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of fi_atomic(3), for those who implement struct fi_ops_atomic. Each
 * call is turned into a struct tdm_amo_ask here and given to post() of the
 * implementer's struct tdm_amo_table.
 */
#ifndef TDM_AMO_CALLS_H
#define TDM_AMO_CALLS_H

#include "tdm_amo_table.h"

static inline struct fi_ioc tdm_amo_ioc(const void *buf, size_t count)
{
	return (struct fi_ioc){ .addr = (void *)(uintptr_t)buf,
				.count = count };
}

static inline ssize_t
tdm_amo_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
	       size_t count, fi_addr_t dest, uint64_t addr, uint64_t key,
	       enum fi_datatype type, enum fi_op op, void *context)
{
	struct tdm_amo_ask ask =
		tdm_amo_ask(TDM_AMO_BASE, type, op, iov, count);

	return tdm_amo_post(ep, &ask, tdm_amo_one(dest, addr, key, context));
}

static inline ssize_t tdm_amo_write(struct fid_ep *ep, const void *buf,
				    size_t count, void *desc, fi_addr_t dest,
				    uint64_t addr, uint64_t key,
				    enum fi_datatype type, enum fi_op op,
				    void *context)
{
	struct fi_ioc ioc = tdm_amo_ioc(buf, count);

	return tdm_amo_writev(ep, &ioc, NULL, 1, dest, addr, key, type, op,
			      context);
}

static inline ssize_t tdm_amo_writemsg(struct fid_ep *ep,
				       const struct fi_msg_atomic *m,
				       uint64_t flags)
{
	struct tdm_amo_ask ask = tdm_amo_begin(TDM_AMO_BASE);

	return tdm_amo_post_message(ep, &ask, m, flags);
}

/* fi_atomic(3) 2.1, Base Atomic Functions 4: An injected atomic operation has
 * FI_INJECT and no FI_COMPLETION. */
static inline ssize_t tdm_amo_inject(struct fid_ep *ep, const void *buf,
				     size_t count, fi_addr_t dest,
				     uint64_t addr, uint64_t key,
				     enum fi_datatype type, enum fi_op op)
{
	const struct tdm_amo_where where = tdm_amo_one(dest, addr, key, NULL);
	const struct tdm_amo_table *t = tdm_amo_table(ep);
	struct fi_ioc ioc = tdm_amo_ioc(buf, count);
	struct tdm_amo_ask ask = tdm_amo_ask(TDM_AMO_BASE, type, op, &ioc, 1);
	uint64_t flags = t->flags(ep) & ~(uint64_t)FI_COMPLETION;

	return t->post(ep, &ask, &where, flags | FI_INJECT);
}

static inline ssize_t
tdm_amo_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
		   size_t count, struct fi_ioc *result, void **result_desc,
		   size_t result_count, fi_addr_t dest, uint64_t addr,
		   uint64_t key, enum fi_datatype type, enum fi_op op,
		   void *context)
{
	struct tdm_amo_ask ask =
		tdm_amo_ask(TDM_AMO_FETCH, type, op, iov, count);

	ask.result = result;
	ask.result_count = result_count;
	return tdm_amo_post(ep, &ask, tdm_amo_one(dest, addr, key, context));
}

static inline ssize_t tdm_amo_readwrite(struct fid_ep *ep, const void *buf,
					size_t count, void *desc, void *result,
					void *result_desc, fi_addr_t dest,
					uint64_t addr, uint64_t key,
					enum fi_datatype type, enum fi_op op,
					void *context)
{
	struct fi_ioc ioc = tdm_amo_ioc(buf, count);
	struct fi_ioc back = tdm_amo_ioc(result, count);

	return tdm_amo_readwritev(ep, &ioc, NULL, 1, &back, NULL, 1, dest, addr,
				  key, type, op, context);
}

static inline ssize_t tdm_amo_readwritemsg(struct fid_ep *ep,
					   const struct fi_msg_atomic *m,
					   struct fi_ioc *result,
					   void **result_desc,
					   size_t result_count, uint64_t flags)
{
	struct tdm_amo_ask ask = tdm_amo_begin(TDM_AMO_FETCH);

	ask.result = result;
	ask.result_count = result_count;
	return tdm_amo_post_message(ep, &ask, m, flags);
}

static inline ssize_t tdm_amo_compwritev(
	struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
	const struct fi_ioc *compare, void **compare_desc, size_t compare_count,
	struct fi_ioc *result, void **result_desc, size_t result_count,
	fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type,
	enum fi_op op, void *context)
{
	struct tdm_amo_ask ask =
		tdm_amo_ask(TDM_AMO_COMPARE, type, op, iov, count);

	ask.compare = compare;
	ask.compare_count = compare_count;
	ask.result = result;
	ask.result_count = result_count;
	return tdm_amo_post(ep, &ask, tdm_amo_one(dest, addr, key, context));
}

static inline ssize_t tdm_amo_compwrite(struct fid_ep *ep, const void *buf,
					size_t count, void *desc,
					const void *compare, void *compare_desc,
					void *result, void *result_desc,
					fi_addr_t dest, uint64_t addr,
					uint64_t key, enum fi_datatype type,
					enum fi_op op, void *context)
{
	struct fi_ioc ioc = tdm_amo_ioc(buf, count);
	struct fi_ioc other = tdm_amo_ioc(compare, count);
	struct fi_ioc back = tdm_amo_ioc(result, count);

	return tdm_amo_compwritev(ep, &ioc, NULL, 1, &other, NULL, 1, &back,
				  NULL, 1, dest, addr, key, type, op, context);
}

static inline ssize_t
tdm_amo_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *m,
		     const struct fi_ioc *compare, void **compare_desc,
		     size_t compare_count, struct fi_ioc *result,
		     void **result_desc, size_t result_count, uint64_t flags)
{
	struct tdm_amo_ask ask = tdm_amo_begin(TDM_AMO_COMPARE);

	ask.compare = compare;
	ask.compare_count = compare_count;
	ask.result = result;
	ask.result_count = result_count;
	return tdm_amo_post_message(ep, &ask, m, flags);
}

/* The first member of a struct tdm_amo_table. */
#define TDM_AMO_OPS                                                            \
	{                                                                      \
		.size = sizeof(struct fi_ops_atomic),                          \
		.write = tdm_amo_write,                                        \
		.writev = tdm_amo_writev,                                      \
		.writemsg = tdm_amo_writemsg,                                  \
		.inject = tdm_amo_inject,                                      \
		.readwrite = tdm_amo_readwrite,                                \
		.readwritev = tdm_amo_readwritev,                              \
		.readwritemsg = tdm_amo_readwritemsg,                          \
		.compwrite = tdm_amo_compwrite,                                \
		.compwritev = tdm_amo_compwritev,                              \
		.compwritemsg = tdm_amo_compwritemsg,                          \
		.writevalid = tdm_amo_writevalid,                              \
		.readwritevalid = tdm_amo_readwritevalid,                      \
		.compwritevalid = tdm_amo_compwritevalid,                      \
	}

#endif /* TDM_AMO_CALLS_H */
