/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of fi_collective(3): each is checked, becomes a job of the plan that
 * its row of shapes[] builds, and is started.
 *
 * Lock: the domain's, taken here.
 */
#include "tcp/coll.h"

#include <rdma/fi_errno.h>

#include "peer/amo.h"
#include "tcp/check.h"
#include "tcp/coll_priv.h"

enum blocks { NONE, ONE, ONE_PER_MEMBER };

/* The operations; indexed by enum fi_collective_op. */
static const struct shape {
	tdm_coll_build_fn build;
	uint64_t flag;	 /* of fi_av_set(3) */
	uint8_t in, out; /* enum blocks: what the buffers hold */
	uint8_t rooted;	 /* 1: has a root */
	/* 1: only the root has that buffer */
	uint8_t in_at_root, out_at_root;
	uint8_t reduces;
} shapes[] = {
	[FI_BARRIER] = { tdm_coll_barrier, FI_BARRIER_SET, NONE, NONE, 0, 0, 0,
			 0 },
	[FI_BROADCAST] = { tdm_coll_broadcast, FI_BROADCAST_SET, NONE, ONE, 1,
			   0, 0, 0 },
	[FI_ALLTOALL] = { tdm_coll_alltoall, FI_ALLTOALL_SET, ONE_PER_MEMBER,
			  ONE_PER_MEMBER, 0, 0, 0, 0 },
	[FI_ALLREDUCE] = { tdm_coll_allreduce, FI_ALLREDUCE_SET, ONE, ONE, 0, 0,
			   0, 1 },
	[FI_ALLGATHER] = { tdm_coll_allgather, FI_ALLGATHER_SET, ONE,
			   ONE_PER_MEMBER, 0, 0, 0, 0 },
	[FI_REDUCE_SCATTER] = { tdm_coll_reduce_scatter, FI_REDUCE_SCATTER_SET,
				ONE_PER_MEMBER, ONE, 0, 0, 0, 1 },
	[FI_REDUCE] = { tdm_coll_reduce, FI_REDUCE_SET, ONE, ONE, 1, 0, 1, 1 },
	[FI_SCATTER] = { tdm_coll_scatter, FI_SCATTER_SET, ONE_PER_MEMBER, ONE,
			 1, 1, 0, 0 },
	[FI_GATHER] = { tdm_coll_gather, FI_GATHER_SET, ONE, ONE_PER_MEMBER, 1,
			0, 1, 0 },
};

/* A call, of whichever operation. */
struct call {
	enum fi_collective_op coll;
	const void *buf;
	void *result;
	size_t count;
	fi_addr_t group, root;
	enum fi_datatype type;
	enum fi_op op;
	uint64_t flags;
	void *context;
};

static size_t unit_of(const struct call *c)
{
	return c->coll == FI_BARRIER ? 1 : tdm_amo_size(c->type);
}

/* The operations that fi_collective(3) names; the others swap or store. */
static int check_type(enum fi_collective_op coll, unsigned type, unsigned op)
{
	if (coll == FI_BARRIER)
		return 0;
	if (!tdm_amo_size(type))
		return -FI_EOPNOTSUPP;
	if (!shapes[coll].reduces)
		return 0;
	return op <= FI_BXOR ? tdm_amo_check(TDM_AMO_BASE, type, op) :
			       -FI_EOPNOTSUPP;
}

static int is_short(enum blocks blocks, int only_root, int is_root,
		    const void *buf)
{
	return blocks != NONE && (is_root || !only_root) && !buf;
}

/* Fill in @job for @c, which is for @g. */
static int fill(const struct tdm_group *g, const struct call *c,
		struct tdm_coll_job *job)
{
	const struct shape *s = &shapes[c->coll];
	size_t unit = unit_of(c), most;
	int is_root;

	job->root = 0;
	while (s->rooted && g->member[job->root].addr != c->root) {
		if (++job->root == g->map.size)
			return -FI_EINVAL;
	}
	most = TDM_MAX_MSG_BYTES / unit / g->map.size;
	if (c->count > most)
		return -FI_EMSGSIZE;
	job->unit = unit;
	job->block = c->count * unit;
	is_root = g->map.me == job->root;
	if (c->count &&
	    (is_short((enum blocks)s->in, s->in_at_root, is_root, c->buf) ||
	     is_short((enum blocks)s->out, s->out_at_root, is_root, c->result)))
		return -FI_EINVAL;
	return 0;
}

static int start(struct tdm_group *g, const struct call *c,
		 const struct tdm_coll_job *job)
{
	struct tdm_coll_op *op = tdm_coll_op_alloc(g);
	int ret;

	if (!op)
		return -FI_ENOMEM;
	shapes[c->coll].build(&op->plan, &g->map, job);
	ret = tdm_coll_op_prepare(op);
	if (ret) {
		tdm_coll_op_free(op);
		return ret;
	}
	op->buf[TDM_COLL_IN] = (uint8_t *)(uintptr_t)c->buf;
	op->buf[TDM_COLL_OUT] = c->result;
	op->amo.type = (uint8_t)c->type;
	op->amo.op = (uint8_t)c->op;
	op->amo.kind = TDM_AMO_BASE;
	op->amo.form = TDM_AMO_FORM;
	op->flags = c->flags;
	op->context = c->context;
	op->seq = tdm_group_next(g);
	/* A group that is broken ends all operations as they begin. */
	op->err = g->broken;
	tdm_coll_op_start(op);
	return 0;
}

static int call_locked(struct tdm_ep *ep, struct call *c)
{
	struct tdm_group *g = tdm_coll_group_at(ep->root, c->group);
	struct tdm_coll_job job;
	int ret;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	if (!g)
		return -FI_EINVAL;
	if (g->allowed && !(g->allowed & shapes[c->coll].flag))
		return -FI_EOPNOTSUPP;
	if (shapes[c->coll].rooted && tdm_av_has(ep->av, c->root))
		c->root = tdm_av_lowest(ep->av, c->root);
	ret = fill(g, c, &job);
	if (ret)
		return ret;
	if (c->flags & FI_COMPLETION && ep->tx_cq && tdm_cq_full(ep->tx_cq)) {
		ep->domain->engine.progress(&ep->domain->engine);
		return -FI_EAGAIN;
	}
	return start(g, c, &job);
}

/* Levels that are reached when a member's own part is done. */
#define CALL_FLAGS                                                             \
	(FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE)

static ssize_t call(struct fid_ep *fid, struct call c)
{
	struct tdm_ep *ep = tdm_ep_from_fid(fid);
	int ret = tdm_ep_message_flags(ep, CALL_FLAGS, c.flags, &c.flags);

	if (!ret)
		ret = check_type(c.coll, c.type, c.op);
	if (!ret && ep->domain->engine.orphan)
		ret = -FI_EOPBADSTATE;
	if (ret)
		return ret;
	tdm_lock_acquire(&ep->domain->lock);
	ret = call_locked(ep, &c);
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

static ssize_t barrier2(struct fid_ep *ep, fi_addr_t group, uint64_t flags,
			void *context)
{
	const struct call c = {
		.coll = FI_BARRIER,
		.group = group,
		.type = FI_VOID,
		.op = FI_NOOP,
		.flags = flags,
		.context = context,
	};

	return call(ep, c);
}

static ssize_t barrier(struct fid_ep *ep, fi_addr_t group, void *context)
{
	uint64_t flags = tdm_handle_from_fid(ep)->tx_op_flags;

	return barrier2(ep, group, flags & FI_COMPLETION, context);
}

static ssize_t broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc,
			 fi_addr_t group, fi_addr_t root, enum fi_datatype type,
			 uint64_t flags, void *context)
{
	(void)desc;
	return call(ep, (struct call){ FI_BROADCAST, NULL, buf, count, group,
				       root, type, FI_NOOP, flags, context });
}

static ssize_t alltoall(struct fid_ep *ep, const void *buf, size_t count,
			void *desc, void *result, void *result_desc,
			fi_addr_t group, enum fi_datatype type, uint64_t flags,
			void *context)
{
	(void)desc;
	(void)result_desc;
	return call(ep, (struct call){ FI_ALLTOALL, buf, result, count, group,
				       0, type, FI_NOOP, flags, context });
}

static ssize_t allreduce(struct fid_ep *ep, const void *buf, size_t count,
			 void *desc, void *result, void *result_desc,
			 fi_addr_t group, enum fi_datatype type, enum fi_op op,
			 uint64_t flags, void *context)
{
	(void)desc;
	(void)result_desc;
	return call(ep, (struct call){ FI_ALLREDUCE, buf, result, count, group,
				       0, type, op, flags, context });
}

static ssize_t allgather(struct fid_ep *ep, const void *buf, size_t count,
			 void *desc, void *result, void *result_desc,
			 fi_addr_t group, enum fi_datatype type, uint64_t flags,
			 void *context)
{
	(void)desc;
	(void)result_desc;
	return call(ep, (struct call){ FI_ALLGATHER, buf, result, count, group,
				       0, type, FI_NOOP, flags, context });
}

static ssize_t reduce_scatter(struct fid_ep *ep, const void *buf, size_t count,
			      void *desc, void *result, void *result_desc,
			      fi_addr_t group, enum fi_datatype type,
			      enum fi_op op, uint64_t flags, void *context)
{
	(void)desc;
	(void)result_desc;
	return call(ep, (struct call){ FI_REDUCE_SCATTER, buf, result, count,
				       group, 0, type, op, flags, context });
}

static ssize_t reduce(struct fid_ep *ep, const void *buf, size_t count,
		      void *desc, void *result, void *result_desc,
		      fi_addr_t group, fi_addr_t root, enum fi_datatype type,
		      enum fi_op op, uint64_t flags, void *context)
{
	(void)desc;
	(void)result_desc;
	return call(ep, (struct call){ FI_REDUCE, buf, result, count, group,
				       root, type, op, flags, context });
}

static ssize_t scatter(struct fid_ep *ep, const void *buf, size_t count,
		       void *desc, void *result, void *result_desc,
		       fi_addr_t group, fi_addr_t root, enum fi_datatype type,
		       uint64_t flags, void *context)
{
	(void)desc;
	(void)result_desc;
	return call(ep, (struct call){ FI_SCATTER, buf, result, count, group,
				       root, type, FI_NOOP, flags, context });
}

static ssize_t gather(struct fid_ep *ep, const void *buf, size_t count,
		      void *desc, void *result, void *result_desc,
		      fi_addr_t group, fi_addr_t root, enum fi_datatype type,
		      uint64_t flags, void *context)
{
	(void)desc;
	(void)result_desc;
	return call(ep, (struct call){ FI_GATHER, buf, result, count, group,
				       root, type, FI_NOOP, flags, context });
}

/* No call of libfabric leads here; one buffer each is enough. */
static ssize_t msg(struct fid_ep *ep, const struct fi_msg_collective *m,
		   struct fi_ioc *result, void **result_desc,
		   size_t result_count, uint64_t flags)
{
	struct call c;

	(void)result_desc;
	if (!m || m->coll > FI_GATHER || m->iov_count > 1 || result_count > 1 ||
	    (m->iov_count && !m->msg_iov) || (result_count && !result))
		return -FI_EINVAL;
	c = (struct call){ m->coll,	 NULL,	       NULL,	    0,
			   m->coll_addr, m->root_addr, m->datatype, m->op,
			   flags,	 m->context };
	if (m->iov_count) {
		c.buf = m->msg_iov->addr;
		c.count = m->msg_iov->count;
	}
	if (m->coll == FI_BROADCAST)
		c.result = (void *)(uintptr_t)c.buf;
	else if (result_count)
		c.result = result->addr;
	return call(ep, c);
}

struct fi_ops_collective tdm_coll_ops = {
	.size = sizeof(tdm_coll_ops),
	.barrier = barrier,
	.broadcast = broadcast,
	.alltoall = alltoall,
	.allreduce = allreduce,
	.allgather = allgather,
	.reduce_scatter = reduce_scatter,
	.reduce = reduce,
	.scatter = scatter,
	.gather = gather,
	.msg = msg,
	.barrier2 = barrier2,
};

int tdm_coll_query(struct fid_domain *fid, enum fi_collective_op coll,
		   struct fi_collective_attr *attr, uint64_t flags)
{
	const struct tdm_domain *d = tdm_domain_from_fid(fid);
	size_t size;
	int ret;

	if (!(d->info->caps & FI_COLLECTIVE))
		return -FI_ENOSYS;
	if (!attr || attr->mode)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	if ((unsigned)coll > FI_GATHER)
		return -FI_EOPNOTSUPP;
	ret = check_type(coll, attr->datatype, attr->op);
	if (ret)
		return ret;
	size = coll == FI_BARRIER ? 0 : tdm_amo_size(attr->datatype);
	attr->datatype_attr.size = size;
	attr->datatype_attr.count = size ? TDM_MAX_MSG_BYTES / size : 0;
	attr->max_members = TDM_COLL_MEMBERS_MOST;
	return 0;
}
