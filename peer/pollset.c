/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Poll sets. A poll makes one pass of progress, which serves the whole domain,
 * and then looks at each member.
 *
 * Invariants:
 *  1. A member is held (tdm_cq_get(), tdm_cntr_get()) while it is listed.
 *  2. A member that was reported moves to the end of the list, so that a caller
 *     with room for few contexts learns of each in turn.
 *  3. seen: the value of tdm_cntr_news() when the counter was last reported.
 *
 * Locking: the domain lock guards the list; the calls take it.
 * Spec: fi_poll(3).
 */
#include "peer/pollset.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/list.h"
#include "peer/cntr.h"
#include "peer/cq.h"
#include "tdm_nosys.h"

struct member {
	struct tdm_list node;
	struct fid *fid;
	struct tdm_cq *cq;     /* NULL: a counter */
	struct tdm_cntr *cntr; /* NULL: a CQ */
	uint64_t seen;
};

struct tdm_pollset {
	struct fid_poll fid;
	struct tdm_engine *engine;
	struct tdm_list members; /* struct member; G: domain lock */
	void (*closed)(void *arg);
	void *closed_arg;
};

static struct fi_ops pollset_fid_ops;
static struct fi_ops_poll pollset_ops;

int tdm_pollset_open(struct tdm_engine *engine, const struct fi_poll_attr *attr,
		     struct tdm_pollset **out)
{
	struct tdm_pollset *set;

	if (attr && attr->flags)
		return -FI_EINVAL;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->fid.fid.fclass = FI_CLASS_POLL;
	set->fid.fid.ops = &pollset_fid_ops;
	set->fid.ops = &pollset_ops;
	set->engine = engine;
	tdm_list_init(&set->members);
	*out = set;
	return 0;
}

struct fid_poll *tdm_pollset_fid(struct tdm_pollset *set)
{
	return &set->fid;
}

void tdm_pollset_on_close(struct tdm_pollset *set, void (*closed)(void *arg),
			  void *arg)
{
	set->closed = closed;
	set->closed_arg = arg;
}

static struct tdm_pollset *from_fid(struct fid_poll *fid)
{
	return tdm_container_of(fid, struct tdm_pollset, fid);
}

static struct member *find(struct tdm_pollset *set, const struct fid *fid)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &set->members) {
		struct member *m = tdm_list_entry(pos, struct member, node);

		if (m->fid == fid)
			return m;
	}
	return NULL;
}

/* Fill @m for @fid. Errors: -FI_EINVAL: @fid cannot be a member of @set. */
static int resolve(const struct tdm_pollset *set, struct fid *fid,
		   struct member *m)
{
	m->fid = fid;
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		m->cq = tdm_cq_from_fid((struct fid_cq *)(void *)fid);
		return tdm_cq_engine(m->cq) == set->engine ? 0 : -FI_EINVAL;
	case FI_CLASS_CNTR:
		m->cntr = tdm_cntr_from_fid((struct fid_cntr *)(void *)fid);
		return tdm_cntr_engine(m->cntr) == set->engine ? 0 : -FI_EINVAL;
	default:
		return -FI_EINVAL;
	}
}

static int poll_add(struct fid_poll *pfid, struct fid *fid, uint64_t flags)
{
	struct tdm_pollset *set = from_fid(pfid);
	struct member *m;
	int ret;

	if (!fid || flags)
		return -FI_EINVAL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -FI_ENOMEM;
	ret = resolve(set, fid, m);
	if (ret) {
		free(m);
		return ret;
	}
	tdm_lock_acquire(set->engine->lock);
	if (find(set, fid)) {
		free(m);
	} else {
		if (m->cq)
			tdm_cq_get(m->cq);
		else
			tdm_cntr_get(m->cntr);
		tdm_list_init(&m->node);
		tdm_list_append(&set->members, &m->node);
	}
	tdm_lock_release(set->engine->lock);
	return 0;
}

static int poll_del(struct fid_poll *pfid, struct fid *fid, uint64_t flags)
{
	struct tdm_pollset *set = from_fid(pfid);
	struct member *m;

	if (flags)
		return -FI_EINVAL;
	tdm_lock_acquire(set->engine->lock);
	m = find(set, fid);
	if (m) {
		tdm_list_del(&m->node);
		if (m->cq)
			tdm_cq_put(m->cq);
		else
			tdm_cntr_put(m->cntr);
	}
	tdm_lock_release(set->engine->lock);
	free(m);
	return m ? 0 : -FI_EINVAL;
}

/*
 * Not 0 when @m has something to report, which counts as reported from then on.
 */
static int news(struct member *m)
{
	uint64_t now;

	if (m->cq)
		return tdm_cq_ready(m->cq);
	now = tdm_cntr_news(m->cntr, m->seen);
	if (!now)
		return 0;
	m->seen = now;
	return 1;
}

static int poll_run(struct fid_poll *pfid, void **context, int count)
{
	struct tdm_pollset *set = from_fid(pfid);
	struct tdm_list reported, *pos, *tmp;
	int n = 0;

	if (count < 0 || (count && !context))
		return -FI_EINVAL;
	tdm_list_init(&reported);
	tdm_lock_acquire(set->engine->lock);
	set->engine->progress(set->engine);
	tdm_list_for_each_safe(pos, tmp, &set->members) {
		struct member *m = tdm_list_entry(pos, struct member, node);

		if (n == count)
			break;
		if (!news(m))
			continue;
		context[n++] = m->fid->context;
		tdm_list_del(&m->node);
		tdm_list_append(&reported, &m->node);
	}
	tdm_list_splice(&set->members, &reported);
	tdm_lock_release(set->engine->lock);
	return n;
}

static int pollset_close(struct fid *fid)
{
	struct tdm_pollset *set =
		tdm_container_of(fid, struct tdm_pollset, fid.fid);
	int ret = 0;

	tdm_lock_acquire(set->engine->lock);
	if (!tdm_list_empty(&set->members))
		ret = -FI_EBUSY;
	else if (set->closed)
		set->closed(set->closed_arg);
	tdm_lock_release(set->engine->lock);
	if (!ret)
		free(set);
	return ret;
}

static struct fi_ops pollset_fid_ops = {
	.size = sizeof(pollset_fid_ops),
	.close = pollset_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_poll pollset_ops = {
	.size = sizeof(pollset_ops),
	.poll = poll_run,
	.poll_add = poll_add,
	.poll_del = poll_del,
};
