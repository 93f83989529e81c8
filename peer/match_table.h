/* SPDX-License-Identifier: BSD-2-Clause */
/* The hash table of the matching engine's parts. Lock: the caller's. */
#ifndef TDM_PEER_MATCH_TABLE_H
#define TDM_PEER_MATCH_TABLE_H

#include "peer/match.h"

enum { TDM_MATCH_BUCKETS = 64 }; /* of a new table */

/*
 * A hash table of items in which each bucket is in order of item->seq, so
 * that the first item of a bucket with some key is the oldest with that key.
 */
struct tdm_match_table {
	struct tdm_list *bucket; /* bucket[buckets] */
	unsigned shift;		 /* 64 - log2(buckets) */
	size_t buckets;		 /* power of two */
	size_t room;		 /* items it holds before it grows */
	size_t count;		 /* items */
	uint64_t seed;
	uint64_t ignore; /* of the mask index it belongs to, else 0 */
	struct tdm_match_item *(*item)(struct tdm_list *node);
	uint64_t (*hash)(const struct tdm_match_table *t,
			 const struct tdm_match_item *item);
};

static inline struct tdm_list *tdm_match_bucket(const struct tdm_match_table *t,
						uint64_t hash)
{
	return &t->bucket[hash >> t->shift];
}

/* Prepare an empty table with @seed for its hashes. Errors: -FI_ENOMEM. */
int tdm_match_table_init(struct tdm_match_table *t, uint64_t seed);
void tdm_match_table_fini(struct tdm_match_table *t);

/*
 * Grow to the smallest number of buckets that has room for the items; without
 * memory the table stays as it is.
 */
void tdm_match_table_grow(struct tdm_match_table *t);

/* Insert @node in its bucket, at the place that its item's seq gives it. */
void tdm_match_table_insert(struct tdm_match_table *t, struct tdm_list *node);

/*
 * Append @node, whose item must be the newest, to its bucket; @hash is its
 * hash.
 */
static inline void tdm_match_table_append(struct tdm_match_table *t,
					  struct tdm_list *node, uint64_t hash)
{
	struct tdm_list *b = tdm_match_bucket(t, hash);

	if (tdm_unlikely(t->count >= t->room) && !tdm_list_empty(b) &&
	    t->hash(t, t->item(b->prev)) != hash) {
		tdm_match_table_grow(t);
		b = tdm_match_bucket(t, hash);
	}
	tdm_list_append(b, node);
	t->count++;
}

static inline void tdm_match_table_remove(struct tdm_match_table *t,
					  struct tdm_list *node)
{
	tdm_list_del(node);
	t->count--;
}

#endif /* TDM_PEER_MATCH_TABLE_H */
