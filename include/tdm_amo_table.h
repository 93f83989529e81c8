/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that the owner and the peer implement differently behind struct
 * fi_ops_atomic; tdm_amo_calls.h has the operations that they share.
 */
#ifndef TDM_AMO_TABLE_H
#define TDM_AMO_TABLE_H

#include <string.h>

#include "tdm_amo_post.h"

/* No lock is held in any of these. */
struct tdm_amo_table {
	struct fi_ops_atomic ops; /* TDM_AMO_OPS */
	/* Post @ask to @where. Returns the result of the call. */
	ssize_t (*post)(struct fid_ep *ep, const struct tdm_amo_ask *ask,
			const struct tdm_amo_where *where, uint64_t flags);
	/*
	 * Returns the flags of a call that takes none, fi_endpoint(3)
	 * "op_flags".
	 */
	uint64_t (*flags)(struct fid_ep *ep);
	/*
	 * Out: *@flags of a message call to which the application gave @given.
	 * Errors: those of the call.
	 */
	int (*message_flags)(struct fid_ep *ep, uint64_t given,
			     uint64_t *flags);
	/* fi_atomicvalid(3) and its twins. */
	int (*valid)(struct fid_ep *ep, enum tdm_amo_kind kind,
		     enum fi_datatype type, enum fi_op op, size_t *count);
};

static inline const struct tdm_amo_table *tdm_amo_table(struct fid_ep *ep)
{
	return tdm_container_of(ep->atomic, struct tdm_amo_table, ops);
}

/* Returns the place at the target for a call that names one range. */
static inline struct tdm_amo_where tdm_amo_one(fi_addr_t peer, uint64_t addr,
					       uint64_t key, void *context)
{
	struct tdm_amo_where w;

	memset(&w, 0, sizeof(w));
	w.peer = peer;
	w.addr = addr;
	w.key = key;
	w.context = context;
	return w;
}

static inline ssize_t tdm_amo_post(struct fid_ep *ep,
				   const struct tdm_amo_ask *ask,
				   struct tdm_amo_where where)
{
	const struct tdm_amo_table *t = tdm_amo_table(ep);

	return t->post(ep, ask, &where, t->flags(ep));
}

static inline ssize_t tdm_amo_post_message(struct fid_ep *ep,
					   struct tdm_amo_ask *ask,
					   const struct fi_msg_atomic *m,
					   uint64_t given)
{
	const struct tdm_amo_table *t = tdm_amo_table(ep);
	struct tdm_amo_where where;
	uint64_t flags;
	int ret = t->message_flags(ep, given, &flags);

	if (!ret)
		ret = tdm_amo_from_message(ask, &where, m);
	return ret ? ret : t->post(ep, ask, &where, flags);
}

static inline int tdm_amo_writevalid(struct fid_ep *ep, enum fi_datatype type,
				     enum fi_op op, size_t *count)
{
	return tdm_amo_table(ep)->valid(ep, TDM_AMO_BASE, type, op, count);
}

static inline int tdm_amo_readwritevalid(struct fid_ep *ep,
					 enum fi_datatype type, enum fi_op op,
					 size_t *count)
{
	return tdm_amo_table(ep)->valid(ep, TDM_AMO_FETCH, type, op, count);
}

static inline int tdm_amo_compwritevalid(struct fid_ep *ep,
					 enum fi_datatype type, enum fi_op op,
					 size_t *count)
{
	return tdm_amo_table(ep)->valid(ep, TDM_AMO_COMPARE, type, op, count);
}

#endif /* TDM_AMO_TABLE_H */
