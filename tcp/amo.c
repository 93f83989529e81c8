/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_atomic(3): each call (tdm_amo_calls.h) fills a struct tdm_xfer, which is
 * sent like a message. Also fi_query_atomic(3).
 *
 * No lock is held here.
 */
#include "tcp/amo.h"

#include <rdma/fi_errno.h>

#include "peer/amo.h"
#include "tcp/check.h"
#include "tcp/deferred.h"
#include "tcp/getinfo.h"
#include "tcp/route.h"
#include "tdm_amo_calls.h"

#define MSG_FLAGS (FI_COMPLETION | FI_INJECT | FI_MORE | TDM_LEVELS)

static int check(const struct tdm_ep *ep, const struct tdm_xfer *x,
		 uint64_t flags)
{
	int ret = tdm_ep_admits(ep, x, flags);

	if (tdm_unlikely(ret))
		return ret;
	if (tdm_max(x->len, x->amo->bytes) > ep->limits.atomic ||
	    ((x->flags & FI_INJECT) && x->len > ep->inject_bytes))
		return -FI_EMSGSIZE;
	return 0;
}

static int fill(struct tdm_amo_post *p, const struct tdm_amo_ask *ask,
		const struct tdm_amo_where *where, uint64_t flags)
{
	int ret = tdm_amo_check(ask->kind, ask->type, ask->op);

	if (!ret)
		ret = tdm_amo_prepare(p, ask, tdm_amo_size(ask->type));
	if (ret)
		return ret;
	tdm_amo_address(p, where, flags);
	return 0;
}

static ssize_t post(struct fid_ep *fid, const struct tdm_amo_ask *ask,
		    const struct tdm_amo_where *where, uint64_t flags)
{
	struct tdm_ep *ep = tdm_ep_from_fid(fid);
	struct tdm_amo_post p;
	int ret = fill(&p, ask, where, flags);

	if (ret)
		return ret;
	ret = check(ep, &p.x, p.x.flags);
	return tdm_unlikely(ret) ? tdm_deferred_try(ep, &p.x, ret, check) :
				   tdm_route_send(ep, &p.x);
}

static int flags_of_message(const struct tdm_ep *ep, uint64_t given,
			    uint64_t *flags)
{
	/*
	 * A tagged receive buffer cannot be the target of an atomic operation.
	 */
	if (given & FI_TAGGED)
		return -FI_EOPNOTSUPP;
	return tdm_ep_message_flags(ep, MSG_FLAGS, given, flags);
}

static int message_flags(struct fid_ep *fid, uint64_t given, uint64_t *flags)
{
	return flags_of_message(tdm_ep_from_fid(fid), given, flags);
}

static uint64_t op_flags(struct fid_ep *fid)
{
	return tdm_handle_from_fid(fid)->tx_op_flags;
}

int tdm_check_amo(struct tdm_ep *ep, struct tdm_amo_ask *ask,
		  const struct fi_msg_atomic *m, uint64_t flags,
		  struct tdm_amo_post *p)
{
	struct tdm_amo_where where;
	int ret = flags_of_message(ep, flags, &flags);

	if (!ret)
		ret = tdm_amo_from_message(ask, &where, m);
	if (!ret)
		ret = fill(p, ask, &where, flags);
	return ret ? ret : check(ep, &p->x, p->x.flags);
}

/* ---- what there is ------------------------------------------------------- */

static int valid(struct fid_ep *fid, enum tdm_amo_kind kind,
		 enum fi_datatype type, enum fi_op op, size_t *count)
{
	const struct tdm_ep *ep = tdm_ep_from_fid(fid);
	uint64_t side = kind == TDM_AMO_BASE ? FI_WRITE : FI_READ;
	int ret = tdm_amo_check(kind, type, op);

	if (ret || !tdm_ep_plain(ep, FI_ATOMIC | side))
		return -FI_EOPNOTSUPP;
	if (!count)
		return -FI_EINVAL;
	*count = tdm_amo_most(kind, type, ep->limits.atomic);
	return *count ? 0 : -FI_EOPNOTSUPP;
}

int tdm_amo_query(struct fid_domain *domain, enum fi_datatype type,
		  enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
{
	enum tdm_amo_kind kind = flags & FI_FETCH_ATOMIC   ? TDM_AMO_FETCH :
				 flags & FI_COMPARE_ATOMIC ? TDM_AMO_COMPARE :
							     TDM_AMO_BASE;
	int ret;

	(void)domain;
	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED) ||
	    (flags & FI_FETCH_ATOMIC && flags & FI_COMPARE_ATOMIC))
		return -FI_EBADFLAGS;
	ret = tdm_amo_check(kind, type, op);
	if (ret || flags & FI_TAGGED)
		return -FI_EOPNOTSUPP;
	if (!attr)
		return -FI_EINVAL;
	attr->size = tdm_amo_size(type);
	attr->count = tdm_amo_most(kind, type, TDM_AMO_BYTES);
	return 0;
}

struct tdm_amo_table tdm_amo_calls = {
	.ops = TDM_AMO_OPS,
	.post = post,
	.flags = op_flags,
	.message_flags = message_flags,
	.valid = valid,
};
