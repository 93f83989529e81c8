/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The deferred work queue of a domain, fi_trigger(3) "DEFERRED WORK QUEUES":
 * fi_control(3) of the domain turns a struct fi_deferred_work into a request. A
 * table has a function for each kind of work; deferred.c keeps and starts it.
 *
 * Everything of the work except the buffers is copied when it is queued; later
 * the address of the structure identifies it.
 *
 * Lock: the domain's, taken in tdm_work_control().
 */
#include "tcp/work.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>

#include "tcp/check.h"
#include "tcp/deferred.h"

/* Turns the structure of one kind of work into a request. */
struct request {
	const struct fi_deferred_work *work;
	struct tdm_ep *ep; /* NULL: it changes a counter */
	uint64_t flags;	   /* the application's */
	struct tdm_xfer x;
	struct tdm_amo_post amo; /* an atomic operation: x points into it */
	struct tdm_cntr *cntr;	 /* the counter to change */
	uint64_t value;
	int keep;
};

/*
 * fi_trigger(3) 2.1, DEFERRED WORK QUEUES 9: Work that the provider cannot
 * defer fails with -FI_ENOSYS. A peek or a claim reports by a completion and
 * nothing else.
 */
static int check_ep(struct tdm_domain *d, struct request *r, struct fid_ep *fid,
		    uint64_t flags)
{
	if (!fid)
		return -FI_EINVAL;
	r->ep = tdm_ep_from_fid(fid);
	r->flags = flags;
	if (r->ep->domain != d)
		return -FI_EDOMAIN;
	if (!(r->ep->info->caps & FI_TRIGGER))
		return -FI_EOPNOTSUPP;
	if (flags & FI_TRIGGER)
		return -FI_EBADFLAGS;
	return 0;
}

static int take_recv(struct tdm_domain *d, struct request *r)
{
	const struct fi_op_msg *op = r->work->op.msg;
	int ret = check_ep(d, r, op->ep, op->flags);

	return ret ? ret : tdm_check_recv(r->ep, &op->msg, op->flags, &r->x);
}

static int take_send(struct tdm_domain *d, struct request *r)
{
	const struct fi_op_msg *op = r->work->op.msg;
	int ret = check_ep(d, r, op->ep, op->flags);

	return ret ? ret : tdm_check_send(r->ep, &op->msg, op->flags, &r->x);
}

static int take_trecv(struct tdm_domain *d, struct request *r)
{
	const struct fi_op_tagged *op = r->work->op.tagged;
	int ret = check_ep(d, r, op->ep, op->flags);

	if (!ret && (op->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)))
		ret = -FI_ENOSYS;
	return ret ? ret : tdm_check_trecv(r->ep, &op->msg, op->flags, &r->x);
}

static int take_tsend(struct tdm_domain *d, struct request *r)
{
	const struct fi_op_tagged *op = r->work->op.tagged;
	int ret = check_ep(d, r, op->ep, op->flags);

	return ret ? ret : tdm_check_tsend(r->ep, &op->msg, op->flags, &r->x);
}

static int take_rma(struct tdm_domain *d, struct request *r)
{
	const uint64_t kind = r->work->op_type == FI_OP_READ ? FI_READ :
							       FI_WRITE;
	const struct fi_op_rma *op = r->work->op.rma;
	int ret = check_ep(d, r, op->ep, op->flags);

	return ret ? ret :
		     tdm_check_rma(r->ep, &op->msg, kind, op->flags, &r->x);
}

static int check_amo(struct request *r, struct tdm_amo_ask *ask,
		     const struct fi_msg_atomic *m, uint64_t flags)
{
	int ret = tdm_check_amo(r->ep, ask, m, flags, &r->amo);

	if (!ret)
		r->x = r->amo.x;
	return ret;
}

static int take_atomic(struct tdm_domain *d, struct request *r)
{
	const struct fi_op_atomic *op = r->work->op.atomic;
	struct tdm_amo_ask ask = { .kind = TDM_AMO_BASE };
	int ret = check_ep(d, r, op->ep, op->flags);

	return ret ? ret : check_amo(r, &ask, &op->msg, op->flags);
}

static int take_fetch(struct tdm_domain *d, struct request *r)
{
	const struct fi_op_fetch_atomic *op = r->work->op.fetch_atomic;
	struct tdm_amo_ask ask = { .kind = TDM_AMO_FETCH,
				   .result = op->fetch.msg_iov,
				   .result_count = op->fetch.iov_count };
	int ret = check_ep(d, r, op->ep, op->flags);

	return ret ? ret : check_amo(r, &ask, &op->msg, op->flags);
}

static int take_compare(struct tdm_domain *d, struct request *r)
{
	const struct fi_op_compare_atomic *op = r->work->op.compare_atomic;
	struct tdm_amo_ask ask = { .kind = TDM_AMO_COMPARE,
				   .compare = op->compare.msg_iov,
				   .compare_count = op->compare.iov_count,
				   .result = op->fetch.msg_iov,
				   .result_count = op->fetch.iov_count };
	int ret = check_ep(d, r, op->ep, op->flags);

	return ret ? ret : check_amo(r, &ask, &op->msg, op->flags);
}

/* fi_trigger(3) 2.1, DEFERRED WORK QUEUES 5: Counter operations have no
 * completion counter. */
static int take_cntr(struct tdm_domain *d, struct request *r)
{
	const struct fi_op_cntr *op = r->work->op.cntr;

	if (!op->cntr || r->work->completion_cntr)
		return -FI_EINVAL;
	r->cntr = tdm_cntr_from_fid(op->cntr);
	r->value = op->value;
	r->keep = r->work->op_type == FI_OP_CNTR_ADD;
	return tdm_cntr_engine(r->cntr) == &d->engine ? 0 : -FI_EDOMAIN;
}

/* By enum fi_op_type; values that libfabric adds later are not supported. */
static int (*const kinds[])(struct tdm_domain *d, struct request *r) = {
	[FI_OP_RECV] = take_recv,
	[FI_OP_SEND] = take_send,
	[FI_OP_TRECV] = take_trecv,
	[FI_OP_TSEND] = take_tsend,
	[FI_OP_READ] = take_rma,
	[FI_OP_WRITE] = take_rma,
	[FI_OP_ATOMIC] = take_atomic,
	[FI_OP_FETCH_ATOMIC] = take_fetch,
	[FI_OP_COMPARE_ATOMIC] = take_compare,
	[FI_OP_CNTR_SET] = take_cntr,
	[FI_OP_CNTR_ADD] = take_cntr,
};

static int check_work(struct tdm_domain *d, struct request *r)
{
	const struct fi_deferred_work *w = r->work;
	size_t kind = (size_t)w->op_type;

	if (kind >= TDM_ARRAY_LEN(kinds) || !kinds[kind])
		return -FI_ENOSYS;
	/* All members of the union are pointers. */
	if (!w->triggering_cntr || !w->op.msg)
		return -FI_EINVAL;
	if (tdm_cntr_engine(tdm_cntr_from_fid(w->triggering_cntr)) !=
		    &d->engine ||
	    (w->completion_cntr && tdm_cntr_engine(tdm_cntr_from_fid(
					   w->completion_cntr)) != &d->engine))
		return -FI_EDOMAIN;
	return kinds[kind](d, r);
}

static int queue(struct tdm_domain *d, const struct fi_deferred_work *w)
{
	struct request r = { .work = w };
	int ret = check_work(d, &r);
	struct tdm_deferred *t;

	if (ret)
		return ret;
	/* fi_trigger(3) 2.1, DEFERRED WORK QUEUES 6: Deferred work generates no
	 * completion at the endpoint unless asked. */
	r.x.flags = (r.x.flags & ~FI_COMPLETION) | (r.flags & FI_COMPLETION);
	t = tdm_deferred_alloc(d, r.ep, r.ep ? &r.x : NULL, 0);
	if (!t)
		return -FI_ENOMEM;
	t->work = w;
	t->trigger.threshold = w->threshold;
	t->trigger.kind = TDM_TRIGGER_BOTH;
	if (r.ep) {
		t->count = w->completion_cntr ?
				   tdm_cntr_from_fid(w->completion_cntr) :
				   NULL;
		tdm_deferred_follow(t);
	} else {
		t->count = r.cntr;
		t->value = r.value;
		t->keep = (uint8_t)r.keep;
	}
	tdm_lock_acquire(&d->lock);
	tdm_deferred_add(t, tdm_cntr_from_fid(w->triggering_cntr));
	tdm_lock_release(&d->lock);
	return 0;
}

/*
 * Returns the work of which @all is a member, if it has not been started, or
 * NULL.
 */
static struct tdm_deferred *waiting(struct tdm_list *all)
{
	struct tdm_deferred *t = tdm_list_entry(all, struct tdm_deferred, all);

	return t->work && t->state != TDM_DEFERRED_STARTED ? t : NULL;
}

static int cancel(struct tdm_domain *d, const struct fi_deferred_work *w)
{
	struct tdm_deferred *t = NULL;
	struct tdm_list_ends ends;
	struct tdm_list *pos;

	tdm_lock_acquire(&d->lock);
	/* Search from both ends: work is cancelled in either order. */
	tdm_list_ends_init(&ends, &d->deferred);
	while (!t && (pos = tdm_list_ends_next(&ends))) {
		t = waiting(pos);
		if (t && t->work != w)
			t = NULL;
	}
	if (t)
		tdm_deferred_forget(t);
	tdm_lock_release(&d->lock);
	return t ? 0 : -FI_ENOENT;
}

/*
 * fi_trigger(3) 2.1, DEFERRED WORK QUEUES 8: FI_FLUSH_WORK cancels everything,
 * or what waits for one counter.
 */
static int flush(struct tdm_domain *d, const struct fi_deferred_work *w)
{
	const struct tdm_cntr *cntr =
		w && w->triggering_cntr ?
			tdm_cntr_from_fid(w->triggering_cntr) :
			NULL;
	struct tdm_list *pos, *tmp;

	tdm_lock_acquire(&d->lock);
	tdm_list_for_each_safe(pos, tmp, &d->deferred) {
		struct tdm_deferred *t = waiting(pos);

		if (t && (!cntr || t->cntr == cntr))
			tdm_deferred_forget(t);
	}
	tdm_lock_release(&d->lock);
	return 0;
}

int tdm_work_control(struct fid *fid, int command, void *arg)
{
	struct tdm_domain *d =
		tdm_container_of(fid, struct tdm_domain, fid.fid);

	if (d->engine.orphan)
		return -FI_EOPBADSTATE;
	switch (command) {
	case FI_QUEUE_WORK:
		return arg ? queue(d, arg) : -FI_EINVAL;
	case FI_CANCEL_WORK:
		return arg ? cancel(d, arg) : -FI_EINVAL;
	case FI_FLUSH_WORK:
		return flush(d, arg);
	default:
		return -FI_ENOSYS;
	}
}
