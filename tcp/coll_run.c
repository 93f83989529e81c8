/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations under way: the steps of their plans are done, one round after the
 * other. See coll_priv.h and coll/plan.h.
 *
 * Transfers end while a transport is at work, so no step is done there: the
 * operation is put on coll->ready, and the pass goes on with it after the
 * transports.
 *
 * Invariants:
 *  1. op->active transfers have op->xfer[i].active set; each ends by one call of
 *     ended(), and @op is not freed before.
 *  2. A step that begins a round is done when op->active is 0.
 *  3. coll->retry is on domain->retry while coll->ready has an operation, or
 *     there is other work for the pass.
 *
 * Lock: domain held.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/base.h"
#include "peer/amo_many.h"
#include "tcp/bind.h"
#include "tcp/coll_priv.h"
#include "tcp/ep_priv.h"
#include "tcp/route.h"
#include "tcp/srx_ctx.h"

struct tdm_srx *tdm_coll_srx(struct tdm_root *root)
{
	const struct tdm_single *s = tdm_single_of(&root->ep);

	return s->srx_ctx ? tdm_srx_ctx_ep(s->srx_ctx)->srx : root->ep.srx;
}

struct tdm_coll_op *tdm_coll_op_alloc(struct tdm_group *group)
{
	struct tdm_coll_op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->group = group;
	tdm_list_init(&op->node);
	tdm_list_init(&op->ready);
	tdm_coll_plan_init(&op->plan);
	return op;
}

void tdm_coll_op_free(struct tdm_coll_op *op)
{
	tdm_list_del(&op->node);
	tdm_list_del(&op->ready);
	tdm_coll_plan_fini(&op->plan);
	free(op->buf[TDM_COLL_TMP]);
	free(op->xfer);
	free(op);
}

static void ended(struct tdm_op *o, const struct tdm_end *end);

int tdm_coll_op_prepare(struct tdm_coll_op *op)
{
	size_t i;

	if (op->plan.failed)
		return -FI_ENOMEM;
	op->xfer = calloc(tdm_max(op->plan.widest, 1), sizeof(*op->xfer));
	op->buf[TDM_COLL_TMP] = malloc(tdm_max(op->plan.tmp, 1));
	if (!op->xfer || !op->buf[TDM_COLL_TMP])
		return -FI_ENOMEM;
	for (i = 0; i < op->plan.widest; i++) {
		op->xfer[i].op.end = ended;
		op->xfer[i].owner = op;
	}
	return 0;
}

void tdm_coll_put_off(struct tdm_coll *coll, struct tdm_coll_op *op)
{
	if (op && !tdm_list_linked(&op->ready))
		tdm_list_append(&coll->ready, &op->ready);
	if (!tdm_list_linked(&coll->retry.node))
		tdm_list_append(&coll->root->ep.domain->retry,
				&coll->retry.node);
}

void tdm_coll_wake(struct tdm_coll *coll, struct tdm_coll_op *op)
{
	struct tdm_domain *d = coll->root->ep.domain;

	if (coll->closing || d->engine.orphan)
		return;
	tdm_coll_put_off(coll, op);
	if (!coll->urgent)
		d->urgent++;
	coll->urgent = 1;
	if (tdm_engine_watched(&d->engine))
		tdm_loop_wake(d->loop);
}

static uint8_t *place(const struct tdm_coll_op *op, struct tdm_coll_at at)
{
	/* Buffers of nothing may be NULL. */
	return op->buf[at.buf] ? op->buf[at.buf] + at.at : NULL;
}

/* ---- transfers ----------------------------------------------------------- */

/* Returns what is wrong with the end of a transfer, a positive fi_errno; or 0. */
static int verdict(const struct tdm_coll_xfer *t, const struct tdm_end *end)
{
	if (end->result.err)
		return end->result.err;
	/* Members that do not agree on the length have called different things. */
	return end->entry && end->result.len != t->step->len ? FI_EIO : 0;
}

static void xfer_failed(struct tdm_coll_op *op, const struct tdm_coll_xfer *t,
			int err)
{
	int lost = op->group->member[t->step->rank].lost;

	/* The receive was withdrawn because its sender is gone. */
	if (err == FI_ECANCELED && lost)
		err = lost;
	if (op->done) {
		if (t->step->what == TDM_COLL_RECV && t->step->len)
			memset(place(op, t->step->to), 0, t->step->len);
		return;
	}
	if (!op->err)
		op->err = err;
}

static void ended(struct tdm_op *o, const struct tdm_end *end)
{
	struct tdm_coll_xfer *t = tdm_container_of(o, struct tdm_coll_xfer, op);
	struct tdm_coll_op *op = t->owner;
	struct tdm_coll *coll = op->group->coll;
	int err = verdict(t, end);

	t->active = 0;
	op->active--;
	if (coll->closing)
		return;
	if (err) {
		/* one that give_up() has cancelled says nothing of its peer */
		if (!end->entry && err != FI_ECANCELED)
			tdm_coll_lost(coll->root,
				      op->group->member[t->step->rank].addr,
				      err);
		xfer_failed(op, t, err);
	}
	if (!op->busy && (!op->active || op->err))
		tdm_coll_wake(coll, op);
}

static ssize_t post_recv(struct tdm_coll_op *op, struct tdm_coll_xfer *t)
{
	struct tdm_root *root = op->group->coll->root;
	uint32_t rank = t->step->rank;
	fi_addr_t from =
		tdm_av_lowest(root->ep.av, op->group->member[rank].addr);
	struct tdm_xfer x;

	tdm_xfer_init(&x, FI_TAGGED | FI_RECV | TDM_DEFERRED | TDM_IN_SPACE,
		      tdm_space_of(from, TDM_COLL_GROUP), &t->op);
	tdm_xfer_buf(&x, place(op, t->step->to), t->step->len);
	x.tag = tdm_coll_tag_here(op);
	return tdm_srx_recv(tdm_coll_srx(root), &x);
}

static ssize_t post_send(struct tdm_coll_op *op, struct tdm_coll_xfer *t)
{
	struct tdm_root *root = op->group->coll->root;
	const struct tdm_coll_step *s = t->step;
	struct tdm_xfer x;

	/* The buffer is needed again; nothing waits for the acknowledgement. */
	tdm_xfer_init(&x,
		      FI_TAGGED | FI_SEND | TDM_DEFERRED | FI_INJECT_COMPLETE,
		      op->group->member[s->rank].addr, &t->op);
	tdm_xfer_buf(&x, place(op, s->from), s->len);
	if (s->len <= root->ep.info->tx_attr->inject_size)
		x.flags |= FI_INJECT;
	x.tag = tdm_coll_tag_to(op, s->rank);
	return tdm_route_in_group(root, &x, TDM_COLL_GROUP);
}

/* A receive from a lost member takes what has arrived; it waits for no more. */
static void post_lost(struct tdm_coll_op *op, struct tdm_coll_xfer *t)
{
	if (t->active)
		(void)!tdm_srx_cancel(tdm_coll_srx(op->group->coll->root),
				      &t->op);
}

/* Begin the transfer @s. Returns 0; -FI_EAGAIN: try again later. */
static int begin(struct tdm_coll_op *op, const struct tdm_coll_step *s)
{
	struct tdm_coll_xfer *t = &op->xfer[op->used];
	int lost = op->group->member[s->rank].lost, receives;
	ssize_t ret;

	receives = s->what == TDM_COLL_RECV;
	t->step = s;
	t->active = 1;
	op->active++;
	op->used++;
	if (lost && !receives)
		ret = -lost;
	else
		ret = receives ? post_recv(op, t) : post_send(op, t);
	if (!ret) {
		if (receives && lost)
			post_lost(op, t);
		else if (receives && t->active)
			tdm_group_call(op->group, s->rank);
		return 0;
	}
	t->active = 0;
	op->active--;
	op->used--;
	if (ret == -FI_EAGAIN)
		return -FI_EAGAIN;
	if (!receives && ret != -FI_ENOMEM)
		tdm_coll_lost(op->group->coll->root,
			      op->group->member[s->rank].addr, (int)-ret);
	xfer_failed(op, t, (int)-ret);
	return 0;
}

/* ---- the run ------------------------------------------------------------- */

/* As op->amo.type values: reduce as an atomic operation on them would do. */
static void local(struct tdm_coll_op *op, const struct tdm_coll_step *s)
{
	if (s->what == TDM_COLL_REDUCE)
		tdm_amo_run_many(&op->amo, place(op, s->to), s->len,
				 place(op, s->from));
	else if (place(op, s->to) != place(op, s->from))
		memmove(place(op, s->to), place(op, s->from), s->len);
}

/*
 * Do the steps that can be done. Returns 0, or -FI_EAGAIN: call again in the
 * next pass.
 */
static int steps(struct tdm_coll_op *op)
{
	while (op->at < op->plan.count && !op->err) {
		const struct tdm_coll_step *s = &op->plan.step[op->at];
		int ret = 0;

		if (s->begins) {
			if (op->active)
				return 0;
			op->used = 0;
		}
		if (s->what == TDM_COLL_SEND || s->what == TDM_COLL_RECV)
			ret = begin(op, s);
		else
			local(op, s);
		if (ret)
			return ret;
		op->at++;
	}
	return 0;
}

static void report(struct tdm_coll_op *op)
{
	struct tdm_ep *ep = &op->group->coll->root->ep;
	struct fi_cq_err_entry e = {
		.op_context = op->context,
		.flags = FI_COLLECTIVE,
		.err = op->err,
		.prov_errno = op->err,
		.src_addr = FI_ADDR_NOTAVAIL,
	};
	struct fid_peer_cntr *cntr;
	struct tdm_done done;

	/* fi_collective(3), Completions: as of atomic operations, FI_WRITE */
	tdm_ep_done(ep, TDM_TRANSPORT_TCP, &done);
	cntr = done.write_cntr;
	if (op->err) {
		if (cntr)
			cntr->owner_ops->incerr(cntr);
		if (done.tx_cq)
			done.tx_cq->owner_ops->writeerr(done.tx_cq, &e);
		return;
	}
	if (cntr)
		cntr->owner_ops->inc(cntr);
	if (op->flags & FI_COMPLETION && done.tx_cq)
		done.tx_cq->owner_ops->write(done.tx_cq, op->context,
					     FI_COLLECTIVE, 0, NULL, 0, 0,
					     FI_ADDR_NOTAVAIL);
}

static void finish(struct tdm_coll_op *op)
{
	if (op->done) {
		op->done(op);
		return;
	}
	report(op);
	if (op->err)
		tdm_group_break(op->group, op);
	tdm_coll_op_free(op);
}

void tdm_coll_op_unpost(struct tdm_coll_op *op)
{
	struct tdm_srx *srx = tdm_coll_srx(op->group->coll->root);
	size_t i;

	for (i = 0; i < op->used; i++) {
		if (op->xfer[i].active &&
		    op->xfer[i].step->what == TDM_COLL_RECV)
			(void)!tdm_srx_cancel(srx, &op->xfer[i].op);
	}
}

/* Withdraw what @op has under way. Returns -FI_EAGAIN: try again. */
static int give_up(struct tdm_coll_op *op)
{
	struct tdm_root *root = op->group->coll->root;
	int ret = 0;
	size_t i;

	tdm_coll_op_unpost(op);
	for (i = 0; i < op->used; i++) {
		if (op->xfer[i].active &&
		    op->xfer[i].step->what == TDM_COLL_SEND &&
		    tdm_root_cancel_send(root, &op->xfer[i].op) == -FI_EAGAIN)
			ret = -FI_EAGAIN;
	}
	return ret;
}

/* Go on with @op, which may end and be freed. */
static void go_on(struct tdm_coll_op *op)
{
	int ret;

	op->busy = 1;
	ret = steps(op);
	if (op->err && op->active)
		ret = give_up(op);
	op->busy = 0;
	if (ret)
		tdm_coll_put_off(op->group->coll, op);
	else if (!op->active && (op->err || op->at == op->plan.count))
		finish(op);
}

void tdm_coll_op_start(struct tdm_coll_op *op)
{
	tdm_list_append(&op->group->ops, &op->node);
	if (op->group->untold)
		tdm_coll_wake(op->group->coll, NULL);
	go_on(op);
}

void tdm_coll_op_fail(struct tdm_coll_op *op, int err)
{
	if (!op->err)
		op->err = err;
	tdm_coll_wake(op->group->coll, op);
}

void tdm_coll_pass(struct tdm_retry *retry)
{
	struct tdm_coll *coll = tdm_container_of(retry, struct tdm_coll, retry);
	struct tdm_list todo, *node;

	/* Work that this pass leaves is for the next one. */
	tdm_list_del(&retry->node);
	if (coll->urgent)
		coll->root->ep.domain->urgent--;
	coll->urgent = 0;
	tdm_coll_mourn(coll);
	tdm_list_init(&todo);
	tdm_list_splice(&todo, &coll->ready);
	while ((node = tdm_list_pop(&todo)))
		go_on(tdm_list_entry(node, struct tdm_coll_op, ready));
}

ssize_t tdm_coll_cancel(struct tdm_root *root, const void *context)
{
	struct tdm_list *pos, *at;

	if (!root->coll)
		return -FI_ENOENT;
	tdm_list_for_each(pos, &root->coll->groups) {
		struct tdm_group *g =
			tdm_list_entry(pos, struct tdm_group, node);

		tdm_list_for_each(at, &g->ops) {
			struct tdm_coll_op *op =
				tdm_list_entry(at, struct tdm_coll_op, node);

			if (op->context != context || op->done)
				continue;
			tdm_coll_op_fail(op, FI_ECANCELED);
			return 0;
		}
	}
	return -FI_ENOENT;
}
