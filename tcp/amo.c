/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of fi_atomic(3): each fills a struct tdm_xfer and takes the way of
 * a send. One remote range per call (rma_iov_limit 1). fi_query_atomic(3).
 *
 * No lock is held here.
 */
#include <rdma/fi_errno.h>

#include "peer/amo.h"
#include "tcp/deferred.h"
#include "tcp/getinfo.h"
#include "tcp/path.h"

#define MSG_FLAGS (FI_COMPLETION | FI_INJECT | FI_MORE | TDM_LEVELS)

struct where {
	fi_addr_t peer;
	uint64_t addr; /* at the target */
	uint64_t key;
	void *context;
};

static int check(const struct tdm_ep *ep, const struct tdm_xfer *x,
		 uint64_t flags)
{
	if (tdm_unlikely(ep->enabled != TDM_EP_ON)) {
		int ret = tdm_ep_check(ep, x);

		if (ret)
			return ret;
	}
	if (tdm_unlikely(!tdm_ep_grants(ep, flags)))
		return -FI_EOPNOTSUPP;
	if (tdm_max(x->len, x->amo->bytes) > ep->limits.atomic ||
	    ((x->flags & FI_INJECT) && x->len > ep->inject_bytes))
		return -FI_EMSGSIZE;
	return 0;
}

static int fill(struct tdm_amo_post *p, const struct tdm_amo_ask *ask,
		const struct where *w, uint64_t flags)
{
	int ret = tdm_amo_check(ask->kind, ask->type, ask->op);

	if (!ret)
		ret = tdm_amo_prepare(p, ask, tdm_amo_size(ask->type));
	if (ret)
		return ret;
	flags |= FI_ATOMIC | (ask->kind == TDM_AMO_BASE ? FI_WRITE : FI_READ);
	tdm_xfer_init(&p->x, flags, w->peer, w->context);
	p->x.rma_addr = w->addr;
	p->x.rma_key = w->key;
	return 0;
}

static ssize_t start(struct fid_ep *fid, const struct tdm_xfer *x)
{
	struct tdm_ep *ep = tdm_ep_from_fid(fid);
	int ret = check(ep, x, x->flags);

	return tdm_unlikely(ret) ? tdm_deferred_try(ep, x, ret, check) :
				   tdm_route_send(ep, x);
}

static ssize_t post(struct fid_ep *fid, const struct tdm_amo_ask *ask,
		    const struct where *w, uint64_t flags)
{
	struct tdm_amo_post p;
	int ret = fill(&p, ask, w, flags);

	return ret ? ret : start(fid, &p.x);
}

/* Flags given with a message replace the default ones. */
static int fill_message(const struct tdm_ep *ep, struct tdm_amo_ask *ask,
			const struct fi_msg_atomic *m, uint64_t flags,
			struct tdm_amo_post *p)
{
	uint64_t more = flags & ~(uint64_t)MSG_FLAGS;
	struct where w = { .peer = m->addr, .context = m->context };

	/* Of tagged receive buffers there are none to be changed. */
	if (more & FI_TAGGED)
		return -FI_EOPNOTSUPP;
	if (more && !tdm_ep_has_flag(ep, more, FI_FENCE, FI_FENCE))
		return -FI_EBADFLAGS;
	if (m->rma_iov_count != 1 || !m->rma_iov || !m->rma_iov[0].count)
		return -FI_EINVAL;
	w.addr = m->rma_iov[0].addr;
	w.key = m->rma_iov[0].key;
	ask->type = m->datatype;
	ask->op = m->op;
	ask->buf = m->msg_iov;
	ask->buf_count = m->iov_count;
	ask->count = m->rma_iov[0].count;
	return fill(p, ask, &w, flags | (ep->tx_selective ? 0 : FI_COMPLETION));
}

static ssize_t post_message(struct fid_ep *fid, struct tdm_amo_ask *ask,
			    const struct fi_msg_atomic *m, uint64_t flags)
{
	struct tdm_amo_post p;
	int ret = fill_message(tdm_ep_from_fid(fid), ask, m, flags, &p);

	return ret ? ret : start(fid, &p.x);
}

int tdm_check_amo(struct tdm_ep *ep, struct tdm_amo_ask *ask,
		  const struct fi_msg_atomic *m, uint64_t flags,
		  struct tdm_amo_post *p)
{
	int ret = fill_message(ep, ask, m, flags, p);

	return ret ? ret : check(ep, &p->x, p->x.flags);
}

static uint64_t op_flags(struct fid_ep *fid)
{
	return tdm_ep_from_fid(fid)->tx_op_flags;
}

/* Vectors are only read where they name operands. */
static struct fi_ioc ioc_of(const void *buf, size_t count)
{
	return (struct fi_ioc){ .addr = (void *)(uintptr_t)buf,
				.count = count };
}

static ssize_t amo_writev(struct fid_ep *ep, const struct fi_ioc *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  uint64_t addr, uint64_t key, enum fi_datatype type,
			  enum fi_op op, void *context)
{
	const struct tdm_amo_ask ask = { .kind = TDM_AMO_BASE,
					 .type = type,
					 .op = op,
					 .buf = iov,
					 .buf_count = count };

	return post(ep, &ask, &(struct where){ dest, addr, key, context },
		    op_flags(ep));
}

static ssize_t amo_write(struct fid_ep *ep, const void *buf, size_t count,
			 void *desc, fi_addr_t dest, uint64_t addr,
			 uint64_t key, enum fi_datatype type, enum fi_op op,
			 void *context)
{
	struct fi_ioc ioc = ioc_of(buf, count);

	return amo_writev(ep, &ioc, NULL, 1, dest, addr, key, type, op,
			  context);
}

static ssize_t amo_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *m,
			    uint64_t flags)
{
	struct tdm_amo_ask ask = { .kind = TDM_AMO_BASE };

	return post_message(ep, &ask, m, flags);
}

static ssize_t amo_inject(struct fid_ep *ep, const void *buf, size_t count,
			  fi_addr_t dest, uint64_t addr, uint64_t key,
			  enum fi_datatype type, enum fi_op op)
{
	struct fi_ioc ioc = ioc_of(buf, count);
	const struct tdm_amo_ask ask = { .kind = TDM_AMO_BASE,
					 .type = type,
					 .op = op,
					 .buf = &ioc,
					 .buf_count = 1 };
	uint64_t flags = op_flags(ep) & ~(uint64_t)FI_COMPLETION;

	return post(ep, &ask, &(struct where){ dest, addr, key, NULL },
		    flags | FI_INJECT);
}

static ssize_t amo_readwritev(struct fid_ep *ep, const struct fi_ioc *iov,
			      void **desc, size_t count, struct fi_ioc *result,
			      void **result_desc, size_t result_count,
			      fi_addr_t dest, uint64_t addr, uint64_t key,
			      enum fi_datatype type, enum fi_op op,
			      void *context)
{
	const struct tdm_amo_ask ask = { .kind = TDM_AMO_FETCH,
					 .type = type,
					 .op = op,
					 .buf = iov,
					 .buf_count = count,
					 .result = result,
					 .result_count = result_count };

	return post(ep, &ask, &(struct where){ dest, addr, key, context },
		    op_flags(ep));
}

static ssize_t amo_readwrite(struct fid_ep *ep, const void *buf, size_t count,
			     void *desc, void *result, void *result_desc,
			     fi_addr_t dest, uint64_t addr, uint64_t key,
			     enum fi_datatype type, enum fi_op op,
			     void *context)
{
	struct fi_ioc ioc = ioc_of(buf, count), back = ioc_of(result, count);

	return amo_readwritev(ep, &ioc, NULL, 1, &back, NULL, 1, dest, addr,
			      key, type, op, context);
}

static ssize_t amo_readwritemsg(struct fid_ep *ep,
				const struct fi_msg_atomic *m,
				struct fi_ioc *result, void **result_desc,
				size_t result_count, uint64_t flags)
{
	struct tdm_amo_ask ask = { .kind = TDM_AMO_FETCH,
				   .result = result,
				   .result_count = result_count };

	return post_message(ep, &ask, m, flags);
}

static ssize_t
amo_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
	       size_t count, const struct fi_ioc *compare, void **compare_desc,
	       size_t compare_count, struct fi_ioc *result, void **result_desc,
	       size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
	       enum fi_datatype type, enum fi_op op, void *context)
{
	const struct tdm_amo_ask ask = { .kind = TDM_AMO_COMPARE,
					 .type = type,
					 .op = op,
					 .buf = iov,
					 .buf_count = count,
					 .compare = compare,
					 .compare_count = compare_count,
					 .result = result,
					 .result_count = result_count };

	return post(ep, &ask, &(struct where){ dest, addr, key, context },
		    op_flags(ep));
}

static ssize_t amo_compwrite(struct fid_ep *ep, const void *buf, size_t count,
			     void *desc, const void *compare,
			     void *compare_desc, void *result,
			     void *result_desc, fi_addr_t dest, uint64_t addr,
			     uint64_t key, enum fi_datatype type, enum fi_op op,
			     void *context)
{
	struct fi_ioc ioc = ioc_of(buf, count), back = ioc_of(result, count);
	struct fi_ioc other = ioc_of(compare, count);

	return amo_compwritev(ep, &ioc, NULL, 1, &other, NULL, 1, &back, NULL,
			      1, dest, addr, key, type, op, context);
}

static ssize_t amo_compwritemsg(struct fid_ep *ep,
				const struct fi_msg_atomic *m,
				const struct fi_ioc *compare,
				void **compare_desc, size_t compare_count,
				struct fi_ioc *result, void **result_desc,
				size_t result_count, uint64_t flags)
{
	struct tdm_amo_ask ask = { .kind = TDM_AMO_COMPARE,
				   .compare = compare,
				   .compare_count = compare_count,
				   .result = result,
				   .result_count = result_count };

	return post_message(ep, &ask, m, flags);
}

/* ---- what there is ------------------------------------------------------- */

static int valid(struct fid_ep *fid, enum tdm_amo_kind kind,
		 enum fi_datatype type, enum fi_op op, size_t *count)
{
	const struct tdm_ep *ep = tdm_ep_from_fid(fid);
	uint64_t side = kind == TDM_AMO_BASE ? FI_WRITE : FI_READ;
	int ret = tdm_amo_check(kind, type, op);

	if (ret || !tdm_ep_grants(ep, FI_ATOMIC | side))
		return -FI_EOPNOTSUPP;
	if (!count)
		return -FI_EINVAL;
	*count = tdm_amo_most(kind, type, ep->limits.atomic);
	return 0;
}

static int amo_writevalid(struct fid_ep *ep, enum fi_datatype type,
			  enum fi_op op, size_t *count)
{
	return valid(ep, TDM_AMO_BASE, type, op, count);
}

static int amo_readwritevalid(struct fid_ep *ep, enum fi_datatype type,
			      enum fi_op op, size_t *count)
{
	return valid(ep, TDM_AMO_FETCH, type, op, count);
}

static int amo_compwritevalid(struct fid_ep *ep, enum fi_datatype type,
			      enum fi_op op, size_t *count)
{
	return valid(ep, TDM_AMO_COMPARE, type, op, count);
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

struct fi_ops_atomic tdm_atomic_ops = {
	.size = sizeof(tdm_atomic_ops),
	.write = amo_write,
	.writev = amo_writev,
	.writemsg = amo_writemsg,
	.inject = amo_inject,
	.readwrite = amo_readwrite,
	.readwritev = amo_readwritev,
	.readwritemsg = amo_readwritemsg,
	.compwrite = amo_compwrite,
	.compwritev = amo_compwritev,
	.compwritemsg = amo_compwritemsg,
	.writevalid = amo_writevalid,
	.readwritevalid = amo_readwritevalid,
	.compwritevalid = amo_compwritevalid,
};
