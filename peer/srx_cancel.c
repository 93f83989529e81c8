/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_cancel(3) of receives: finds the oldest posted one with a context, tagged
 * or not.
 *
 * Some programs cancel thousands of receives, in the order in which they posted
 * them or in another. A search that has compared SCAN_MOST receives without
 * result builds an index by context of all that are posted. Posting and
 * matching do not update it, and so pay nothing for it.
 *
 * Invariants:
 *  1. The index has a mark for each receive that was posted when the index was
 *     built; their numbers are below `until`. A mark is valid while that
 *     receive is still posted. The receive's number tells: when an entry, whose
 *     memory stays in the pool, was freed and used again, it has another
 *     number.
 *  2. The marks of a context are in posting order, so the first valid one is
 *     the oldest receive with it. Receives posted after the index was built are
 *     searched only if there is no valid mark.
 *
 * Lock: domain held.
 */
#include "peer/srx_cancel.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "peer/srx_priv.h"

enum { SCAN_MOST = 32, LEAST_BUCKETS_LOG = 6 };

struct mark {
	struct mark *next; /* next mark of the bucket */
	struct tdm_srx_entry *entry;
	uint64_t seq;
};

struct bucket {
	/* last: used only while the index is built */
	struct mark *first, *last;
};

struct tdm_srx_index {
	struct bucket *bucket; /* [1 << log] */
	unsigned log;
	uint64_t until;
	struct mark mark[];
};

static struct tdm_srx_entry *entry_of(struct tdm_list *all)
{
	return tdm_srx_entry_of_item(
		tdm_list_entry(all, struct tdm_match_item, all));
}

/*
 * An iteration over the posted receives of both kinds, oldest or newest first.
 */
struct walk {
	struct tdm_list *head[TDM_SRX_KINDS], *at[TDM_SRX_KINDS];
	int newest;
};

static struct tdm_list *step(const struct walk *w, struct tdm_list *at)
{
	return w->newest ? at->prev : at->next;
}

static struct walk walk_from(struct tdm_srx *srx, int newest)
{
	struct walk w = { .newest = newest };
	int k;

	for (k = 0; k < TDM_SRX_KINDS; k++) {
		w.head[k] = tdm_match_posted(srx->match[k]);
		w.at[k] = step(&w, w.head[k]);
	}
	return w;
}

/* Returns the next receive, or NULL. */
static struct tdm_srx_entry *walk_next(struct tdm_srx *srx, struct walk *w)
{
	struct tdm_srx_entry *e, *best = NULL;
	int k;

	for (k = 0; k < TDM_SRX_KINDS; k++) {
		if (w->at[k] == w->head[k])
			continue;
		e = entry_of(w->at[k]);
		if (!best || (e->item.seq > best->item.seq) == w->newest)
			best = e;
	}
	if (!best)
		return NULL;
	srx->looked_at++;
	w->at[best->kind] = step(w, w->at[best->kind]);
	return best;
}

static struct bucket *bucket_of(const struct tdm_srx_index *x,
				const void *context)
{
	uint64_t hash = (uint64_t)(uintptr_t)context * 0x9e3779b97f4a7c15ull;

	return &x->bucket[hash >> (64 - x->log)];
}

static struct tdm_srx_index *index_alloc(size_t n)
{
	struct tdm_srx_index *x;
	unsigned log = LEAST_BUCKETS_LOG;

	while (((size_t)1 << log) < n)
		log++;
	x = malloc(sizeof(*x) + n * sizeof(struct mark));
	if (!x)
		return NULL;
	x->log = log;
	x->bucket = calloc((size_t)1 << log, sizeof(*x->bucket));
	if (!x->bucket) {
		free(x);
		return NULL;
	}
	return x;
}

void tdm_srx_index_free(struct tdm_srx *srx)
{
	if (srx->index)
		free(srx->index->bucket);
	free(srx->index);
	srx->index = NULL;
}

/*
 * Build an index of all posted receives. Errors: -FI_ENOMEM; there is no index
 * then.
 */
static int index_make(struct tdm_srx *srx)
{
	size_t n = tdm_match_posted_count(srx->match[TDM_SRX_MSG]) +
		   tdm_match_posted_count(srx->match[TDM_SRX_TAG]);
	struct walk w = walk_from(srx, 0);
	struct tdm_srx_index *x;
	struct tdm_srx_entry *e;
	struct mark *m;

	tdm_srx_index_free(srx);
	x = index_alloc(n);
	if (!x)
		return -FI_ENOMEM;
	for (m = x->mark; (e = walk_next(srx, &w)); m++) {
		struct bucket *b = bucket_of(x, e->rx.context);

		*m = (struct mark){ NULL, e, e->item.seq };
		if (b->first)
			b->last->next = m;
		else
			b->first = m;
		b->last = m;
	}
	x->until = tdm_match_next_seq(srx->match[TDM_SRX_MSG]);
	srx->index = x;
	return 0;
}

/*
 * Returns the oldest receive with @context in the index, or NULL. Drops the
 * invalid marks that it meets.
 */
static struct tdm_srx_entry *find_marked(struct tdm_srx *srx,
					 const void *context)
{
	struct mark **at, *m;

	if (!srx->index)
		return NULL;
	at = &bucket_of(srx->index, context)->first;
	while ((m = *at)) {
		const struct tdm_srx_entry *e = m->entry;

		srx->looked_at++;
		if (e->state != TDM_SRX_POSTED || e->item.seq != m->seq) {
			*at = m->next;
			continue;
		}
		if (e->rx.context == context)
			return m->entry;
		at = &m->next;
	}
	return NULL;
}

/*
 * Returns the oldest receive with @context among the @most oldest of all, or
 * NULL. *@all becomes 1 when there are no others.
 */
static struct tdm_srx_entry *
find_first(struct tdm_srx *srx, const void *context, size_t most, int *all)
{
	struct walk w = walk_from(srx, 0);
	struct tdm_srx_entry *e = NULL;

	*all = 0;
	while (most-- && (e = walk_next(srx, &w))) {
		if (e->rx.context == context)
			return e;
	}
	*all = !e;
	return NULL;
}

/*
 * Returns the oldest receive with @context that was posted after the index was
 * built, or NULL. *@all as in find_first().
 */
static struct tdm_srx_entry *find_new(struct tdm_srx *srx, const void *context,
				      int *all)
{
	struct walk w = walk_from(srx, 1);
	struct tdm_srx_entry *e, *found = NULL;
	size_t most = SCAN_MOST;

	while (srx->index && (e = walk_next(srx, &w)) &&
	       e->item.seq >= srx->index->until) {
		if (e->rx.context == context)
			found = e;
		if (!--most)
			break;
	}
	*all = srx->index && most;
	return found;
}

static struct tdm_srx_entry *find(struct tdm_srx *srx, const void *context)
{
	struct tdm_srx_entry *e;
	int all;

	e = find_first(srx, context, SCAN_MOST, &all);
	if (!e && !all)
		e = find_marked(srx, context);
	if (e || all)
		return e;
	e = find_new(srx, context, &all);
	if (all)
		return e;
	if (index_make(srx))
		return find_first(srx, context, SIZE_MAX, &all);
	return find_marked(srx, context);
}

ssize_t tdm_srx_cancel(struct tdm_srx *srx, void *context)
{
	struct tdm_srx_entry *e;

	tdm_assert_held(srx->engine->lock);
	e = context ? find(srx, context) : NULL;
	if (!e)
		return -FI_ENOENT;
	tdm_match_remove(srx->match[e->kind], &e->item);
	tdm_srx_entry_unpost(srx, e);
	if (e->form == TDM_SRX_MULTI && e->side->refs) {
		tdm_srx_step(&e->state, TDM_SRX_SPENT);
		e->side->cancelled = 1;
		return 0;
	}
	e->rx.addr = tdm_srx_reported(&srx->done, e->rx.addr);
	tdm_done_recv_err(&srx->done, &e->rx, tdm_failed(FI_ECANCELED, 0, 0));
	tdm_srx_entry_free(srx, e);
	return 0;
}
