/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends of transmit contexts that cannot be taken yet: the route to the peer
 * is not agreed, or its queue is full. They wait here, since the context has
 * room for them, and are offered again at each pass of progress. So is what
 * else waits for a pass: struct tdm_late of tcp/domain.h.
 *
 * Invariants:
 *  1. Sends of one context to one peer are offered in the order they were
 *     posted: none is offered while an earlier one waits.
 *  2. sep->offer is linked to domain->late while sep->late has something.
 *
 * Lock: domain held.
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "tcp/path.h"
#include "tcp/sep.h"

/* Peers that a pass may find not ready before it stops. */
enum { STUCK_MOST = 16, RETRY_MS = 10 };

struct late {
	struct tdm_list node; /* sep->late, in the order of posting */
	struct tdm_sep_op *op;
	struct tdm_xfer_kept kept;
	uint8_t copy[]; /* payload of an inject */
};

static struct late *late_of(struct tdm_list *node)
{
	return tdm_list_entry(node, struct late, node);
}

/* The peer of an address, without context and group. */
static fi_addr_t peer_of(const struct tdm_ep *whole, fi_addr_t addr)
{
	return tdm_space_index(tdm_av_space(whole->av), addr);
}

int tdm_late_waits(const struct tdm_ep *ctx, fi_addr_t addr)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &ctx->of->sep->late) {
		const struct late *l = late_of(pos);

		if (l->op->ctx == ctx &&
		    peer_of(ctx->of, l->kept.x.addr) == peer_of(ctx->of, addr))
			return 1;
	}
	return 0;
}

int tdm_late_add(struct tdm_sep_op *op, const struct tdm_xfer *x)
{
	int inject = !!(x->flags & FI_INJECT);
	struct tdm_ep *whole = op->ctx->of;
	struct late *l = malloc(sizeof(*l) + (inject ? x->len : 0));

	if (!l)
		return -FI_ENOMEM;
	l->op = op;
	tdm_xfer_keep(&l->kept, x, inject ? l->copy : NULL);
	tdm_list_init(&l->node);
	tdm_list_append(&whole->sep->late, &l->node);
	if (!tdm_list_linked(&whole->sep->offer.node))
		tdm_list_append(&whole->domain->late, &whole->sep->offer.node);
	return 0;
}

static void late_free(struct tdm_sep *sep, struct late *l)
{
	tdm_list_del(&l->node);
	free(l);
	if (tdm_list_empty(&sep->late))
		tdm_list_del(&sep->offer.node);
}

/* @l will never be sent: @err, a positive fi_errno. */
static void late_fail(struct tdm_sep *sep, struct late *l, int err)
{
	struct tdm_sep_op *op = l->op;
	fi_addr_t addr = l->kept.x.addr;

	late_free(sep, l);
	tdm_sep_fail(op, err, addr);
}

static int is_stuck(const fi_addr_t *stuck, size_t count, fi_addr_t peer)
{
	size_t i;

	for (i = 0; i < count && stuck[i] != peer; i++)
		;
	return i < count;
}

/* Contexts of one endpoint share the order: that is stricter than needed. */
static void pass(struct tdm_late *late)
{
	struct tdm_sep *sep = tdm_container_of(late, struct tdm_sep, offer);
	fi_addr_t stuck[STUCK_MOST], peer;
	struct tdm_list *pos, *tmp;
	size_t count = 0;
	ssize_t ret;

	tdm_list_for_each_safe(pos, tmp, &sep->late) {
		struct late *l = late_of(pos);
		struct tdm_ep *whole = l->op->ctx->of;

		peer = peer_of(whole, l->kept.x.addr);
		if (is_stuck(stuck, count, peer))
			continue;
		ret = tdm_route_locked(whole, &l->kept.x);
		if (!ret) {
			late_free(sep, l);
		} else if (ret != -FI_EAGAIN) {
			late_fail(sep, l, (int)-ret);
		} else {
			stuck[count++] = peer;
			if (count == STUCK_MOST)
				break;
		}
	}
}

void tdm_late_open(struct tdm_sep *sep)
{
	tdm_list_init(&sep->late);
	tdm_list_init(&sep->offer.node);
	sep->offer.pass = pass;
}

void tdm_late_pass(struct tdm_domain *d)
{
	struct tdm_list *pos, *tmp;

	/* A send that finds no room makes progress itself. */
	if (d->in_late)
		return;
	d->in_late = 1;
	tdm_list_for_each_safe(pos, tmp, &d->late) {
		struct tdm_late *late =
			tdm_list_entry(pos, struct tdm_late, node);

		late->pass(late);
	}
	d->in_late = 0;
}

/* Sleeping is no progress: wake up for the next pass. */
void tdm_late_arm(struct tdm_domain *d)
{
	if (!tdm_list_empty(&d->late))
		(void)!tdm_loop_timer_arm(d->loop, &d->late_timer, RETRY_MS);
}

static void nothing(struct tdm_loop_timer *timer)
{
	(void)timer; /* to wake up was all */
}

void tdm_late_init(struct tdm_domain *d)
{
	tdm_list_init(&d->late);
	d->late_timer.fired = nothing;
}

int tdm_late_cancel(struct tdm_sep *sep, const struct tdm_sep_op *op)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &sep->late) {
		if (late_of(pos)->op != op)
			continue;
		late_fail(sep, late_of(pos), FI_ECANCELED);
		return 0;
	}
	return -FI_ENOENT;
}

void tdm_late_drop(const struct tdm_ep *ctx)
{
	struct tdm_sep *sep = ctx->of->sep;
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &sep->late) {
		struct late *l = late_of(pos);
		struct tdm_sep_op *op = l->op;

		if (op->ctx != ctx)
			continue;
		late_free(sep, l);
		tdm_sep_op_free(op);
	}
}

void tdm_late_removed(struct tdm_ep *whole, fi_addr_t addr)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &whole->sep->late) {
		struct late *l = late_of(pos);

		if (peer_of(whole, l->kept.x.addr) == addr)
			late_fail(whole->sep, l, FI_ECONNABORTED);
	}
}
