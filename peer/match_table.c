/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hash table of the matching engine.
 *
 * Tables grow when an insert meets another key in its bucket while there are
 * a quarter more items than buckets: many items of one key (a window of untagged
 * receives) need no more buckets.
 *
 * A table that cannot grow for want of memory works on with longer buckets.
 *
 * Lock: domain held; a table belongs to one receive side.
 */
#include "peer/match_table.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/base.h"

static struct tdm_list *buckets_alloc(size_t n)
{
	struct tdm_list *b = (struct tdm_list *)malloc(n * sizeof(*b));
	size_t i;

	for (i = 0; b && i < n; i++)
		tdm_list_init(&b[i]);
	return b;
}

/*
 * Returns how many items @buckets hold before the table grows: a quarter more
 * than buckets, which makes at most 25.6 bytes of buckets per item.
 */
static size_t room_of(size_t buckets)
{
	return buckets + buckets / 4;
}

int tdm_match_table_init(struct tdm_match_table *t, uint64_t seed)
{
	t->bucket = buckets_alloc(TDM_MATCH_BUCKETS);
	if (!t->bucket)
		return -FI_ENOMEM;
	t->buckets = TDM_MATCH_BUCKETS;
	t->room = room_of(t->buckets);
	t->shift = 64 - (unsigned)__builtin_ctzll(TDM_MATCH_BUCKETS);
	t->seed = seed;
	t->count = 0;
	return 0;
}

void tdm_match_table_fini(struct tdm_match_table *t)
{
	free(t->bucket);
	t->bucket = NULL;
	t->count = 0;
}

/*
 * The top bits choose the bucket, so an old bucket splits into adjacent new
 * ones, in which its items keep their order.
 */
void tdm_match_table_grow(struct tdm_match_table *t)
{
	struct tdm_list *b, *old = t->bucket, *node;
	size_t n = 2 * t->buckets, i;
	unsigned shift;

	while (room_of(n) <= t->count)
		n *= 2;
	b = buckets_alloc(n);
	if (!b)
		return;
	shift = 64 - (unsigned)__builtin_ctzll(n);
	for (i = 0; i < t->buckets; i++) {
		while ((node = tdm_list_pop(&old[i])))
			tdm_list_append(&b[t->hash(t, t->item(node)) >> shift],
					node);
	}
	free(old);
	t->bucket = b;
	t->buckets = n;
	t->room = room_of(n);
	t->shift = shift;
}

void tdm_match_table_insert(struct tdm_match_table *t, struct tdm_list *node)
{
	const struct tdm_match_item *it = t->item(node);
	struct tdm_list *b = tdm_match_bucket(t, t->hash(t, it));
	struct tdm_list *at = b->prev;

	while (at != b && t->item(at)->seq > it->seq)
		at = at->prev;
	tdm_list_add_after(node, at);
	t->count++;
}
