/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See deferred.h.
 *
 * A counter changes while a transport is at work, so no operation is started
 * there. Due operations are put on a list, and started by the next pass of
 * progress, after the transports, or by the call that changed the counter.
 *
 * Invariants:
 *  1. Operations are started in the order in which they became due, which is
 *     that of the thresholds. If one gets -FI_EAGAIN, it stays on the list
 *     until a later pass, and with it all later ones of the same endpoint to
 *     the same peer (or all its receives); others do not wait.
 *  2. domain->deferring is on domain->retry while something is due.
 *  3. domain->fresh is set while an operation is due that no pass has tried:
 *     then no thread may sleep.
 *
 * Lock: domain held, but in tdm_deferred_post().
 */
#include "tcp/deferred.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>

#include "tcp/bind.h"
#include "tcp/ep_priv.h"
#include "tcp/post.h"
#include "tcp/retry.h"
#include "tcp/route.h"

static struct tdm_deferred *of_all(struct tdm_list *node)
{
	return tdm_list_entry(node, struct tdm_deferred, all);
}

static struct tdm_deferred *of_trigger(struct tdm_trigger *trigger)
{
	return tdm_container_of(trigger, struct tdm_deferred, trigger);
}

static struct tdm_deferred *of_due(struct tdm_list *node)
{
	return of_trigger(tdm_list_entry(node, struct tdm_trigger, node));
}

static int is_receive(const struct tdm_deferred *t)
{
	return !!(t->kept.x.flags & FI_RECV);
}

static int is_followed(const struct tdm_deferred *t)
{
	return t->op.end != NULL;
}

/* ---- from the call to the counter ---------------------------------------- */

struct tdm_deferred *tdm_deferred_alloc(struct tdm_domain *d, struct tdm_ep *ep,
					const struct tdm_xfer *x, size_t copy)
{
	struct tdm_deferred *t = malloc(sizeof(*t) + copy);

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->domain = d;
	tdm_list_init(&t->all);
	tdm_list_init(&t->trigger.node);
	if (!x)
		return t;
	t->ep = ep;
	t->context = x->context;
	tdm_xfer_keep(&t->kept, x, copy ? t->copy : NULL);
	return t;
}

void tdm_deferred_add(struct tdm_deferred *t, struct tdm_cntr *cntr)
{
	struct tdm_domain *d = t->domain;

	tdm_assert_held(&d->lock);
	t->cntr = cntr;
	tdm_cntr_get(cntr);
	if (t->count)
		tdm_cntr_get(t->count);
	tdm_list_append(&d->deferred, &t->all);
	tdm_cntr_await(cntr, &t->trigger);
	if (d->fresh)
		tdm_retry_pass(d);
}

/* fi_trigger(3): "struct fi_triggered_context ... per operation context". */
ssize_t tdm_deferred_post(struct tdm_ep *ep, const struct tdm_xfer *x)
{
	const struct fi_triggered_context *c = x->context;
	struct tdm_domain *d = ep->domain;
	struct tdm_deferred *t;
	struct tdm_cntr *cntr;

	if (!c)
		return -FI_EINVAL;
	if (c->event_type != FI_TRIGGER_THRESHOLD)
		return -FI_ENOSYS;
	if (!c->trigger.threshold.cntr)
		return -FI_EINVAL;
	cntr = tdm_cntr_from_fid(c->trigger.threshold.cntr);
	if (tdm_cntr_engine(cntr) != &d->engine)
		return -FI_EDOMAIN;
	t = tdm_deferred_alloc(d, ep, x, x->flags & FI_INJECT ? x->len : 0);
	if (!t)
		return -FI_ENOMEM;
	t->kept.x.flags &= ~(uint64_t)FI_TRIGGER;
	t->trigger.kind = TDM_TRIGGER_VALUE;
	t->trigger.threshold = c->trigger.threshold.threshold;
	tdm_lock_acquire(&d->lock);
	tdm_deferred_add(t, cntr);
	tdm_lock_release(&d->lock);
	return 0;
}

tdm_noinline ssize_t tdm_deferred_try(struct tdm_ep *ep,
				      const struct tdm_xfer *x, int why,
				      tdm_check_fn check)
{
	if (!(x->flags & FI_TRIGGER) || why != -FI_EOPNOTSUPP)
		return why;
	why = check(ep, x, x->flags & ~(uint64_t)FI_TRIGGER);
	return why ? why : tdm_deferred_post(ep, x);
}

/* Change the state; it never goes back to an earlier one. */
static void step(struct tdm_deferred *t, enum tdm_deferred_state to)
{
	assert(t->state < to);
	t->state = to;
}

/* ---- the end ------------------------------------------------------------- */

static void deferred_free(struct tdm_deferred *t)
{
	if (t->cntr)
		tdm_cntr_put(t->cntr);
	if (t->count)
		tdm_cntr_put(t->count);
	tdm_list_del(&t->all);
	free(t);
}

/* Take @t off its counter or off the list of due operations. */
static void take(struct tdm_deferred *t)
{
	struct tdm_domain *d = t->domain;

	if (t->state == TDM_DEFERRED_WAITING)
		tdm_cntr_unawait(t->cntr, &t->trigger);
	else
		tdm_list_del(&t->trigger.node);
	/* The list is empty: no pass will clear `fresh`, so clear it here. */
	if (tdm_list_empty(&d->due)) {
		tdm_list_del(&d->deferring.node);
		d->fresh = 0;
	}
	tdm_cntr_put(t->cntr);
	t->cntr = NULL;
	step(t, TDM_DEFERRED_STARTED);
}

void tdm_deferred_forget(struct tdm_deferred *t)
{
	take(t);
	deferred_free(t);
}

/*
 * fi_trigger(3) 2.1, DEFERRED WORK QUEUES 6: Deferred work writes nothing to
 * the endpoint's queue and does not count at its counters, unless one of them
 * is the completion counter as well: then it has been counted.
 */
static void spare(const struct tdm_deferred *t, struct fid_peer_cntr **slot)
{
	if (*slot && (!(t->kept.x.flags & FI_COMPLETION) ||
		      (*slot)->fid.context == t->count))
		*slot = NULL;
}

static struct tdm_done own_done(const struct tdm_deferred *t,
				const struct tdm_done *given)
{
	struct tdm_done done = *given;

	spare(t, &done.send_cntr);
	spare(t, &done.recv_cntr);
	spare(t, &done.read_cntr);
	spare(t, &done.write_cntr);
	return done;
}

static void count(const struct tdm_deferred *t, int err)
{
	struct fid_peer_cntr *cntr;

	if (!t->count)
		return;
	cntr = tdm_cntr_export(t->count, TDM_TRANSPORT_TCP);
	if (err)
		cntr->owner_ops->incerr(cntr);
	else
		cntr->owner_ops->inc(cntr);
}

/*
 * Errors are always reported, as fi_cq(3) demands for operations without a
 * completion; successes only with FI_COMPLETION.
 */
static void report(const struct tdm_deferred *t, const struct tdm_end *end)
{
	const struct tdm_done done = own_done(t, end->done);
	int told = !!(t->kept.x.flags & FI_COMPLETION);
	struct fi_peer_rx_entry e;

	if (!end->entry) {
		if (end->result.err)
			tdm_done_send_err(&done, t->context, end->flags,
					  end->addr, end->result);
		else if (told)
			tdm_done_send(&done, t->context,
				      end->flags | FI_COMPLETION);
		return;
	}
	e = *end->entry;
	e.context = t->context;
	e.flags &= ~TDM_DEFERRED;
	if (end->result.err)
		tdm_done_recv_err(&done, &e, end->result);
	else if (end->released && told && done.rx_cq)
		done.rx_cq->owner_ops->write(done.rx_cq, t->context,
					     FI_MULTI_RECV, 0, NULL, 0, 0,
					     FI_ADDR_NOTAVAIL);
	else if (!end->released && told)
		tdm_done_recv(&done, &e, end->result.len);
}

/*
 * Not 0 when @t has ended. A message in a multi-receive buffer does not end the
 * buffer.
 */
static int is_last(const struct tdm_deferred *t, const struct tdm_end *end)
{
	return !(t->kept.x.flags & FI_MULTI_RECV) || end->released ||
	       (end->result.err && end->entry->flags & FI_MULTI_RECV);
}

static void ended(struct tdm_op *op, const struct tdm_end *end)
{
	struct tdm_deferred *t = tdm_container_of(op, struct tdm_deferred, op);
	int last = is_last(t, end);

	if (!end->released)
		count(t, end->result.err);
	report(t, end);
	if (!last)
		return;
	if (t->busy)
		t->over = 1;
	else
		deferred_free(t);
}

void tdm_deferred_follow(struct tdm_deferred *t)
{
	t->op.context = t->context;
	t->op.end = ended;
	t->kept.x.context = &t->op;
	t->kept.x.flags |= TDM_DEFERRED;
}

/*
 * End @t, which is on no list and with no transport, with @err, a positive
 * fi_errno.
 */
static void fail(struct tdm_deferred *t, int err)
{
	int followed = is_followed(t);
	struct tdm_addr peer;
	struct tdm_done done;

	if (is_receive(t)) {
		tdm_srx_refuse(t->ep->srx, &t->kept.x, err);
	} else {
		tdm_ep_done(t->ep, TDM_TRANSPORT_TCP, &done);
		tdm_done_send_err(&done, t->kept.x.context, t->kept.x.flags,
				  t->kept.x.addr,
				  tdm_result_of(tdm_failed(err, 0, 0),
						tdm_ep_name_of(t->ep,
							       t->kept.x.addr,
							       &peer)));
	}
	/* A followed @t was freed by op.end(), called for the error above. */
	if (!followed)
		deferred_free(t);
}

/* ---- from the counter to the endpoint ------------------------------------ */

void tdm_domain_due(struct tdm_engine *engine, struct tdm_trigger *trigger)
{
	struct tdm_domain *d =
		tdm_container_of(engine, struct tdm_domain, engine);
	struct tdm_deferred *t = of_trigger(trigger);

	tdm_assert_held(&d->lock);
	step(t, TDM_DEFERRED_DUE);
	tdm_list_append(&d->due, &trigger->node);
	d->fresh = 1;
	/* A child of fork(2) has its parent's descriptors. */
	if (engine->orphan)
		return;
	if (!tdm_list_linked(&d->deferring.node))
		tdm_list_append(&d->retry, &d->deferring.node);
	if (tdm_engine_watched(engine))
		tdm_loop_wake(d->loop);
}

static fi_addr_t peer_of(const struct tdm_deferred *t)
{
	const struct tdm_av *av = t->ep->av;

	return av ? tdm_space_index(tdm_av_space(av), t->kept.x.addr) :
		    t->kept.x.addr;
}

static int same_way(const struct tdm_deferred *a, const struct tdm_deferred *b)
{
	return a->ep == b->ep && is_receive(a) == is_receive(b) &&
	       (is_receive(a) || peer_of(a) == peer_of(b));
}

/*
 * Not 0 when an earlier operation, which could not be started, is for the same
 * peer.
 */
static int is_stuck(struct tdm_domain *d, const struct tdm_deferred *t)
{
	struct tdm_list *pos;

	if (!t->ep)
		return 0;
	tdm_list_for_each(pos, &d->due) {
		if (pos == &t->trigger.node)
			break;
		if (same_way(of_due(pos), t))
			return 1;
	}
	return 0;
}

static ssize_t begin(const struct tdm_deferred *t)
{
	struct tdm_xfer x = t->kept.x; /* a copy, since posting may change it */

	if (!t->ep) {
		tdm_cntr_change(t->count, t->keep, t->value);
		return 0;
	}
	return is_receive(t) ? tdm_post_locked(t->ep, &x) :
			       tdm_route_due(t->ep, &x);
}

/* Start @t, which is due. Returns 0, or -FI_EAGAIN: it stays due. */
static int start(struct tdm_deferred *t)
{
	ssize_t ret;

	t->busy = 1;
	ret = begin(t);
	t->busy = 0;
	if (ret == -FI_EAGAIN)
		return -FI_EAGAIN;
	take(t);
	if (ret)
		fail(t, (int)-ret);
	else if (t->over || !is_followed(t))
		deferred_free(t);
	return 0;
}

static void pass(struct tdm_retry *retry)
{
	struct tdm_domain *d =
		tdm_container_of(retry, struct tdm_domain, deferring);
	struct tdm_list *pos = d->due.next, *prev;

	/* Operations that one of them starts are appended, for a later round. */
	while (pos != &d->due) {
		struct tdm_deferred *t = of_due(pos);

		prev = pos->prev;
		pos = is_stuck(d, t) || start(t) ? pos->next : prev->next;
	}
	d->fresh = 0;
}

void tdm_deferred_init(struct tdm_domain *d)
{
	tdm_list_init(&d->deferred);
	tdm_list_init(&d->due);
	tdm_list_init(&d->deferring.node);
	d->deferring.pass = pass;
}

/* ---- cancelled and dropped operations ------------------------------------ */

ssize_t tdm_deferred_cancel(struct tdm_ep *ep, const void *context,
			    ssize_t (*cancel)(struct tdm_ep *ep, void *context))
{
	struct tdm_list_ends ends;
	struct tdm_list *pos;
	ssize_t ret = -FI_ENOENT;

	if (!context)
		return -FI_ENOENT;
	/* Search from both ends: programs cancel in either order. */
	tdm_list_ends_init(&ends, &ep->domain->deferred);
	while ((pos = tdm_list_ends_next(&ends))) {
		struct tdm_deferred *t = of_all(pos);

		if (t->ep != ep || t->context != context)
			continue;
		if (t->state != TDM_DEFERRED_STARTED) {
			take(t);
			fail(t, FI_ECANCELED);
			return 0;
		}
		ret = cancel(ep, &t->op);
		if (ret != -FI_ENOENT)
			break;
	}
	return ret;
}

/*
 * Free the operations of @ep without a report; with @all the started ones as
 * well.
 */
static void vanish(const struct tdm_ep *ep, int all)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &ep->domain->deferred) {
		struct tdm_deferred *t = of_all(pos);

		if (t->ep != ep)
			continue;
		if (t->state != TDM_DEFERRED_STARTED)
			tdm_deferred_forget(t);
		else if (all)
			deferred_free(t);
	}
}

void tdm_deferred_quit(const struct tdm_ep *ep)
{
	tdm_assert_held(&ep->domain->lock);
	vanish(ep, 0);
}

void tdm_deferred_drop(const struct tdm_ep *ep)
{
	vanish(ep, 1);
}

void tdm_deferred_removed(const struct tdm_root *root, fi_addr_t addr)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &root->ep.domain->deferred) {
		struct tdm_deferred *t = of_all(pos);

		if (!t->ep || t->ep->root != root || is_receive(t) ||
		    t->state == TDM_DEFERRED_STARTED || peer_of(t) != addr)
			continue;
		take(t);
		fail(t, FI_ECONNABORTED);
	}
}
