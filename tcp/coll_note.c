/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What members tell each other about their group, and what is done when one is
 * lost.
 *
 * A group has no number that its members agree on. Each member numbers its groups
 * itself, and the join tells all others its number, which they put in the tags
 * of messages to it:
 *
 *	63	0
 *	62 .. 32	number of the group at the receiver
 *	31 ..  0	number of the operation; all bits set: a note
 *
 * Messages of a join, when there is no number yet, have bit 63 set; the others
 * are a hash of the members and the receiver's rank. Joins of one set meet in the
 * order of the calls.
 *
 * A member that is gone is noticed by those that have a path to it; each member
 * that waits for another one makes sure that it has, and those that know of a loss
 * tell of it while an operation lasts. Whoever cannot finish an operation tells all
 * others, so that it ends everywhere. Such messages are notes.
 *
 * Lock: domain held.
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/os.h"
#include "tcp/coll_priv.h"
#include "tcp/route.h"

struct sent_note {
	struct tdm_op op;
	struct tdm_list node; /* coll->notes */
	struct tdm_coll *coll;
	fi_addr_t addr;
	uint64_t tag;
	uint32_t word[4]; /* kind, operation, error, 0 */
	int unsent;
};

/* Kinds of notes: the first word of one. */
enum {
	NOTE_CALL = 1,	/* nothing: who calls wants to notice a loss */
	NOTE_ABORT = 2, /* an operation: it cannot end */
	NOTE_LOST = 3,	/* a rank: that member is gone */
};

enum { PATIENCE_MS = 50 };

#define NOTE_SEQ UINT32_MAX
#define JOIN_TAG (1ull << 63)

/* ---- tags ---------------------------------------------------------------- */

static uint64_t tag_of(uint32_t id, uint32_t seq)
{
	return (uint64_t)id << 32 | seq;
}

/* Returns the tag of messages of a join to the member @rank. */
static uint64_t join_tag(const struct tdm_group *g, uint32_t rank)
{
	return JOIN_TAG | tdm_addr_mix(g->tag + rank);
}

uint64_t tdm_coll_tag_to(const struct tdm_coll_op *op, uint32_t rank)
{
	return op->done ? join_tag(op->group, rank) :
			  tag_of(op->group->member[rank].id, op->seq);
}

uint64_t tdm_coll_tag_here(const struct tdm_coll_op *op)
{
	return op->done ? join_tag(op->group, op->group->map.me) :
			  tag_of(op->group->id, op->seq);
}

uint32_t tdm_group_next(struct tdm_group *g)
{
	uint32_t seq = g->seq++;

	if (g->seq == NOTE_SEQ)
		g->seq = 0;
	return seq;
}

/* ---- notes --------------------------------------------------------------- */

static void note_free(struct sent_note *n)
{
	tdm_list_del(&n->node);
	free(n);
}

static void note_sent(struct tdm_op *op, const struct tdm_end *end)
{
	struct sent_note *n = tdm_container_of(op, struct sent_note, op);

	if (end->result.err && end->result.err != FI_ECANCELED &&
	    !n->coll->closing)
		tdm_coll_lost(n->coll->root, n->addr, end->result.err);
	note_free(n);
}

static void note_try(struct sent_note *n)
{
	struct tdm_xfer x;
	ssize_t ret;

	tdm_xfer_init(&x,
		      FI_TAGGED | FI_SEND | TDM_DEFERRED | FI_INJECT_COMPLETE,
		      n->addr, &n->op);
	tdm_xfer_buf(&x, n->word, sizeof(n->word));
	x.tag = n->tag;
	n->unsent = 0;
	ret = tdm_route_in_group(n->coll->root, &x, TDM_COLL_GROUP);
	if (ret == -FI_EAGAIN) {
		n->unsent = 1;
		tdm_coll_put_off(n->coll, NULL);
		return;
	}
	if (!ret)
		return; /* it may have ended already */
	tdm_coll_lost(n->coll->root, n->addr, (int)-ret);
	note_free(n);
}

/* Without memory no note is sent: the member may learn of the end late. */
static void note_send(struct tdm_group *g, uint32_t rank, uint32_t kind,
		      uint32_t seq, int err)
{
	struct sent_note *n = calloc(1, sizeof(*n));

	if (!n)
		return;
	n->op.end = note_sent;
	n->coll = g->coll;
	n->addr = g->member[rank].addr;
	n->tag = tag_of(g->member[rank].id, NOTE_SEQ);
	n->word[0] = kind;
	n->word[1] = seq;
	n->word[2] = (uint32_t)err;
	tdm_list_init(&n->node);
	tdm_list_append(&g->coll->notes, &n->node);
	note_try(n);
}

/* Not 0 when the loss of member @m would be noticed here. */
static int is_met(const struct tdm_group *g, const struct tdm_member *m)
{
	const struct tdm_pair *p = tdm_ep_pair_of(g->coll->root, m->addr);

	return p && (p->agreed == TDM_PATH_LOCAL ||
		     (p->conn && tdm_conn_agreed(p->conn)));
}

/* Act on g->note, which came from outside. */
static void heed(struct tdm_group *g)
{
	uint32_t kind = g->note[0], about = g->note[1];

	if (kind == NOTE_ABORT && !g->broken) {
		g->broken = FI_ECONNABORTED;
		g->broken_seq = about;
	} else if (kind == NOTE_LOST && about < g->map.size &&
		   about != g->map.me && !g->member[about].lost &&
		   !is_met(g, &g->member[about])) {
		g->member[about].lost = FI_ECONNABORTED;
		g->member[about].told = 1;
	}
}

void tdm_group_noted(struct tdm_op *op, const struct tdm_end *end)
{
	struct tdm_group *g = tdm_container_of(op, struct tdm_group, noted);

	g->listening = 0;
	if (!g->coll || g->coll->closing || end->result.err == FI_ECANCELED)
		return;
	if (!end->result.err && end->result.len == sizeof(g->note))
		heed(g);
	tdm_coll_wake(g->coll, NULL);
}

void tdm_group_hear(struct tdm_group *g)
{
	struct tdm_xfer x;

	if (!g->joined || g->listening)
		return;
	tdm_xfer_init(&x, FI_TAGGED | FI_RECV | TDM_DEFERRED | TDM_IN_SPACE,
		      tdm_space_of(TDM_SPACE_ANY, TDM_COLL_GROUP), &g->noted);
	tdm_xfer_buf(&x, g->note, sizeof(g->note));
	x.tag = tag_of(g->id, NOTE_SEQ);
	g->listening = 1;
	if (tdm_srx_recv(tdm_coll_srx(g->coll->root), &x))
		g->listening = 0;
}

int tdm_group_silence(struct tdm_group *g)
{
	if (g->listening && !g->coll->closing)
		(void)!tdm_srx_cancel(tdm_coll_srx(g->coll->root), &g->noted);
	return g->listening ? -FI_EAGAIN : 0;
}

/* ---- loss ---------------------------------------------------------------- */

void tdm_group_call(struct tdm_group *g, uint32_t rank)
{
	const struct tdm_pair *p;

	/* A join calls by itself. */
	if (!g->joined)
		return;
	p = tdm_ep_pair_of(g->coll->root, g->member[rank].addr);
	if (!p || (p->path == TDM_PATH_UNKNOWN && !p->queue))
		note_send(g, rank, NOTE_CALL, 0, 0);
}

struct tdm_member *tdm_group_member(struct tdm_group *g, fi_addr_t addr)
{
	uint32_t i;

	for (i = 0; i < g->map.size; i++) {
		if (g->member[i].addr == addr)
			return &g->member[i];
	}
	return NULL;
}

void tdm_coll_lost(struct tdm_root *root, fi_addr_t addr, int err)
{
	struct tdm_list *pos;
	struct tdm_member *m;

	if (!root->coll || root->coll->closing ||
	    !tdm_av_has(root->ep.av, addr))
		return;
	addr = tdm_av_lowest(root->ep.av, addr);
	tdm_list_for_each(pos, &root->coll->groups) {
		m = tdm_group_member(
			tdm_list_entry(pos, struct tdm_group, node), addr);
		if (!m || m->lost)
			continue;
		m->lost = err == FI_ESHUTDOWN ? FI_ECONNRESET : err;
		m->group->untold++;
		m->group->lost_ns = tdm_os.now_ns();
		tdm_coll_wake(root->coll, NULL);
	}
}

/* Withdraw the receives of @op from lost members. */
static void unpost_lost(struct tdm_coll_op *op)
{
	struct tdm_srx *srx = tdm_coll_srx(op->group->coll->root);
	size_t i;

	for (i = 0; i < op->used; i++) {
		const struct tdm_coll_xfer *t = &op->xfer[i];

		if (t->active && t->step->what == TDM_COLL_RECV &&
		    op->group->member[t->step->rank].lost)
			(void)!tdm_srx_cancel(srx, &op->xfer[i].op);
	}
}

/*
 * Tell all members of those that are lost, but not before an operation has waited
 * for a while: at the end of a job members go one after the other, and nobody
 * needs them any more.
 */
static void tell_lost(struct tdm_group *g)
{
	uint32_t lost, i;

	if (tdm_os.now_ns() - g->lost_ns < PATIENCE_MS * 1000000ull) {
		tdm_coll_put_off(g->coll, NULL);
		return;
	}
	for (lost = 0; lost < g->map.size; lost++) {
		if (!g->member[lost].lost || g->member[lost].told)
			continue;
		g->member[lost].told = 1;
		for (i = 0; i < g->map.size; i++) {
			if (i != g->map.me && !g->member[i].lost)
				note_send(g, i, NOTE_LOST, lost, 0);
		}
	}
	g->untold = 0;
}

static void mourn(struct tdm_group *g)
{
	struct tdm_list *pos;

	tdm_group_hear(g);
	if (g->untold && g->joined && !g->broken && !tdm_list_empty(&g->ops))
		tell_lost(g);
	tdm_list_for_each(pos, &g->ops) {
		struct tdm_coll_op *op =
			tdm_list_entry(pos, struct tdm_coll_op, node);

		unpost_lost(op);
		if (g->broken && !op->err && !op->done &&
		    (int32_t)(op->seq - g->broken_seq) >= 0)
			tdm_coll_op_fail(op, g->broken);
	}
}

void tdm_coll_mourn(struct tdm_coll *coll)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each(pos, &coll->groups)
		mourn(tdm_list_entry(pos, struct tdm_group, node));
	tdm_list_for_each_safe(pos, tmp, &coll->notes) {
		struct sent_note *n =
			tdm_list_entry(pos, struct sent_note, node);

		if (n->unsent)
			note_try(n);
	}
}

void tdm_group_break(struct tdm_group *g, const struct tdm_coll_op *op)
{
	uint32_t i;

	if (g->broken)
		return;
	g->broken = op->err == FI_ECANCELED ? FI_ECONNABORTED : op->err;
	g->broken_seq = op->seq;
	for (i = 0; i < g->map.size; i++) {
		if (i != g->map.me && !g->member[i].lost)
			note_send(g, i, NOTE_ABORT, op->seq, op->err);
	}
	tdm_coll_wake(g->coll, NULL);
}

void tdm_coll_notes_free(struct tdm_coll *coll)
{
	struct tdm_list *node;

	while ((node = tdm_list_pop(&coll->notes)))
		note_free(tdm_list_entry(node, struct sent_note, node));
}
