/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See backlog.h.
 *
 * Invariants:
 *  1. Operations of a pair are offered to its transport in the order of the
 *     calls, and none while an earlier one waits.
 *  2. Each ends once: by the transport that accepts it, or here, by an error.
 *  3. If a peer cannot be reached, or its connection is lost, all operations
 *     that wait for it fail together.
 *  4. backlog->retry is on domain->retry while there are queues.
 *
 * Peers that do not answer must not use up the time for the others: a pass
 * handles some of the pairs, in turn, and a pair less often the more offers
 * have failed. A pair whose path has been agreed meanwhile does not wait for
 * its turn.
 *
 * Lock: domain held.
 */
#include "tcp/backlog.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/inject.h"
#include "base/os.h"
#include "tcp/bind.h"
#include "tcp/root.h"
#include "tcp/route.h"
#include "tdm_kept.h"

enum {
	PASS_QUEUES = 16, /* queues handled in a pass */
	TRIES_AT_ONCE = 32,
	TRY_STEP_NS = 1000000,
	TRY_MOST_NS = 10000000,
	CLOSE_NS = 1000000000,
	CLOSE_STEP_MS = 1,
};

struct pending {
	struct tdm_list of_all;	 /* backlog->waiting */
	struct tdm_list of_pair; /* queue->waiting */
	struct tdm_queue *queue;
	struct tdm_xfer_kept kept;
	uint8_t copy[]; /* payload of an inject */
};

static struct pending *of_all(struct tdm_list *node)
{
	return tdm_list_entry(node, struct pending, of_all);
}

static struct pending *of_pair(struct tdm_list *node)
{
	return tdm_list_entry(node, struct pending, of_pair);
}

/* Returns how much memory an inject of @len bytes takes while it waits. */
static size_t held_bytes(size_t len)
{
	return sizeof(struct pending) + len;
}

static int is_inject(const struct tdm_xfer *x)
{
	return !!(x->flags & FI_INJECT);
}

static struct tdm_queue *queue_open(struct tdm_root *root, struct tdm_pair *p)
{
	struct tdm_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	tdm_list_init(&q->waiting);
	q->pair = p;
	q->since_ns = tdm_os.now_ns();
	p->queue = q;
	tdm_pair_hold(p);
	tdm_list_append(&root->backlog.queues, &q->node);
	root->backlog.queue_count++;
	if (!tdm_list_linked(&root->backlog.retry.node))
		tdm_list_append(&root->ep.domain->retry,
				&root->backlog.retry.node);
	return q;
}

static void queue_close(struct tdm_root *root, struct tdm_queue *q)
{
	struct tdm_pair *p = q->pair;

	tdm_pair_release(p);
	p->queue = NULL;
	tdm_list_del(&q->node);
	free(q);
	if (!--root->backlog.queue_count)
		tdm_list_del(&root->backlog.retry.node);
}

/* Free @b, which must have left its queue. */
static void pending_free(struct tdm_root *root, struct pending *b)
{
	tdm_list_del(&b->of_all);
	tdm_list_del(&b->of_pair);
	if (is_inject(&b->kept.x))
		tdm_inject_give(held_bytes(b->kept.x.len));
	else
		root->backlog.counted--;
	free(b);
}

ssize_t tdm_backlog_add(struct tdm_root *root, struct tdm_pair *p,
			const struct tdm_xfer *x)
{
	struct tdm_domain *d = root->ep.domain;
	int inject = is_inject(x);
	size_t copied = inject ? x->len : 0;
	struct pending *b;

	tdm_assert_held(&d->lock);
	if (inject ? tdm_inject_take(held_bytes(copied)) :
		     !d->in_retry && root->backlog.counted >=
					     root->ep.info->tx_attr->size)
		return -FI_EAGAIN;
	b = malloc(sizeof(*b) + copied);
	if (!b || (!p->queue && !queue_open(root, p))) {
		if (inject)
			tdm_inject_give(held_bytes(copied));
		free(b);
		return -FI_ENOMEM;
	}
	b->queue = p->queue;
	tdm_xfer_keep(&b->kept, x, inject ? b->copy : NULL);
	b->kept.x.flags &= ~(uint64_t)FI_MORE;
	tdm_list_init(&b->of_all);
	tdm_list_append(&root->backlog.waiting, &b->of_all);
	tdm_list_init(&b->of_pair);
	tdm_list_append(&p->queue->waiting, &b->of_pair);
	if (!inject)
		root->backlog.counted++;
	if (tdm_engine_watched(&d->engine))
		tdm_loop_wake(d->loop);
	return 0;
}

/* ---- the end ------------------------------------------------------------- */

static void pending_fail(struct tdm_root *root, struct pending *b, int err)
{
	const struct tdm_xfer x = b->kept.x;
	struct tdm_addr peer;
	struct tdm_done done;

	pending_free(root, b);
	tdm_ep_done(&root->ep, TDM_TRANSPORT_TCP, &done);
	tdm_done_send_err(
		&done, x.context, x.flags, x.addr,
		tdm_result_of(tdm_failed(err, 0, 0),
			      tdm_ep_name_of(&root->ep, x.addr, &peer)));
}

/* End @b with @err. Its queue is freed with its last operation. */
static void fail_one(struct tdm_root *root, struct pending *b, int err)
{
	struct tdm_queue *q = b->queue;

	pending_fail(root, b, err);
	if (tdm_list_empty(&q->waiting))
		queue_close(root, q);
}

static void fail_all(struct tdm_root *root, struct tdm_queue *q, int err)
{
	struct tdm_list todo, *node;

	tdm_list_init(&todo);
	tdm_list_splice(&todo, &q->waiting);
	while ((node = tdm_list_pop(&todo)))
		pending_fail(root, of_pair(node), err);
}

/* ---- offering ------------------------------------------------------------ */

int tdm_backlog_over(const struct tdm_pair *p)
{
	uint64_t ns = p->queue ? tdm_os.now_ns() - p->queue->since_ns : 0;

	if (!p->queue)
		return 0;
	return tdm_refused_over(ns, p->brief) ||
	       (tdm_env.conn_timeout_ms &&
		ns >= tdm_env.conn_timeout_ms * 1000000ull);
}

static void in_vain(struct tdm_queue *q, uint64_t now)
{
	uint64_t more;

	if (++q->tries <= TRIES_AT_ONCE)
		return;
	more = (q->tries - TRIES_AT_ONCE) * (uint64_t)TRY_STEP_NS;
	q->next_ns = now + tdm_min(more, TRY_MOST_NS);
}

/* Not 0 when the error @ret concerns the peer rather than the operation. */
static int unreachable(const struct tdm_pair *p, ssize_t ret)
{
	return p->agreed == TDM_PATH_UNKNOWN && ret && ret != -FI_ENOMEM;
}

void tdm_backlog_lost(struct tdm_root *root, struct tdm_pair *p, int err)
{
	struct tdm_queue *q = p->queue;

	if (!q)
		return;
	if (p->path != TDM_PATH_QUEUED) {
		q->lost = err; /* offer() handles it */
		return;
	}
	fail_all(root, q, err);
	queue_close(root, q);
}

/* Offer the operations of @q to the path of its pair, which may free @q. */
static void offer(struct tdm_root *root, struct tdm_queue *q, uint64_t now)
{
	struct tdm_pair *p = q->pair;
	struct pending *b;
	ssize_t ret = 0;

	tdm_pair_release(p);
	q->lost = 0;
	while (!tdm_list_empty(&q->waiting)) {
		b = of_pair(q->waiting.next);
		ret = tdm_route_offer(root, p, &b->kept.x);
		if (ret == -FI_EAGAIN)
			break;
		if (unreachable(p, ret)) {
			fail_all(root, q, (int)-ret);
			break;
		}
		q->tries = 0;
		q->since_ns = now;
		if (ret)
			pending_fail(root, b, (int)-ret);
		else
			pending_free(root, b);
		if (tdm_unlikely(q->lost))
			fail_all(root, q, q->lost);
	}
	if (tdm_list_empty(&q->waiting)) {
		queue_close(root, q);
		return;
	}
	tdm_pair_hold(p);
	in_vain(q, now);
}

static void pass(struct tdm_retry *retry)
{
	struct tdm_root *root =
		tdm_container_of(retry, struct tdm_root, backlog.retry);
	size_t n = tdm_min(root->backlog.queue_count, PASS_QUEUES);
	uint64_t now = tdm_os.now_ns();
	struct tdm_queue *q;

	while (n--) {
		q = tdm_list_entry(tdm_list_pop(&root->backlog.queues),
				   struct tdm_queue, node);
		tdm_list_append(&root->backlog.queues, &q->node);
		if (q->pair->agreed != TDM_PATH_UNKNOWN || now >= q->next_ns)
			offer(root, q, now);
	}
}

void tdm_backlog_init(struct tdm_backlog *backlog)
{
	tdm_list_init(&backlog->waiting);
	tdm_list_init(&backlog->queues);
	tdm_list_init(&backlog->retry.node);
	backlog->retry.pass = pass;
}

/* ---- cancelled and removed operations ------------------------------------ */

int tdm_backlog_cancel(struct tdm_root *root, const void *context)
{
	struct tdm_list_ends ends;
	struct tdm_list *pos;

	if (!context)
		return -FI_ENOENT;
	tdm_list_ends_init(&ends, &root->backlog.waiting);
	while ((pos = tdm_list_ends_next(&ends))) {
		if (of_all(pos)->kept.x.context != context)
			continue;
		fail_one(root, of_all(pos), FI_ECANCELED);
		return 0;
	}
	return -FI_ENOENT;
}

void tdm_backlog_removed(struct tdm_root *root, fi_addr_t addr)
{
	struct tdm_pair *p = addr < root->pairs ? root->pair[addr] : NULL;
	struct tdm_list *pos, *tmp;

	if (!p || !p->queue)
		return;
	/* The indices of one address share the queue. */
	tdm_list_for_each_safe(pos, tmp, &p->queue->waiting) {
		if (of_pair(pos)->kept.x.addr == addr)
			pending_fail(root, of_pair(pos), FI_ECONNABORTED);
	}
	if (tdm_list_empty(&p->queue->waiting))
		queue_close(root, p->queue);
}

void tdm_backlog_drop(struct tdm_root *root,
		      int (*mine)(const struct tdm_xfer *x, const void *arg),
		      const void *arg)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &root->backlog.waiting) {
		struct pending *b = of_all(pos);
		struct tdm_queue *q = b->queue;

		if (!mine(&b->kept.x, arg))
			continue;
		pending_free(root, b);
		if (tdm_list_empty(&q->waiting))
			queue_close(root, q);
	}
}

static int not_injected(const struct tdm_xfer *x, const void *arg)
{
	(void)arg;
	return !is_inject(x);
}

static int any(const struct tdm_xfer *x, const void *arg)
{
	(void)x;
	(void)arg;
	return 1;
}

static void nap(struct tdm_domain *d) TDM_TSA(no_thread_safety_analysis)
{
	tdm_lock_release(&d->lock);
	tdm_os.poll(NULL, 0, CLOSE_STEP_MS);
	tdm_lock_acquire(&d->lock);
}

void tdm_backlog_close(struct tdm_root *root)
{
	struct tdm_domain *d = root->ep.domain;
	uint64_t end;

	tdm_backlog_drop(root, not_injected, NULL);
	if (tdm_list_empty(&root->backlog.waiting))
		return;
	end = tdm_os.now_ns() + CLOSE_NS;
	for (;;) {
		d->engine.progress(&d->engine);
		if (tdm_list_empty(&root->backlog.waiting) ||
		    tdm_os.now_ns() >= end)
			break;
		nap(d);
	}
	tdm_backlog_drop(root, any, NULL);
}
