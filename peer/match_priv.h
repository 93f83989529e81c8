/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the matching engine. Included by match.c and match_mask.c, and by
 * srx_export.c for tdm_match_first() alone.
 */
#ifndef TDM_PEER_MATCH_PRIV_H
#define TDM_PEER_MATCH_PRIV_H

#include <assert.h>

#include "base/pool.h"
#include "peer/match.h"
#include "peer/match_table.h"
#include "tdm_space.h"

enum {
	TDM_MATCH_MASKS = 8, /* ignore masks that have a slot */
	TDM_MATCH_SLOTS = TDM_MATCH_MASKS + 1, /* slot 0: nothing ignored */
	/* Class of a posted receive: 2 * slot + (any source ? 1 : 0), or: */
	TDM_MATCH_LIST = 2 * TDM_MATCH_SLOTS,
	TDM_MATCH_CLASSES = TDM_MATCH_LIST + 1,
	TDM_MATCH_ARRIVED = TDM_MATCH_CLASSES, /* class_ of arrived items */
	TDM_MATCH_UNFILED, /* class_ of receives on all_posted only */
};

/* The node of an arrived item in one mask index. */
struct tdm_match_node {
	struct tdm_list any; /* bucket of index->any */
	struct tdm_list dir; /* bucket of index->dir; unlinked: no source */
	struct tdm_match_msg *msg;
	struct tdm_match_node *next; /* the item's next node */
	struct tdm_match_index *index;
};

/* An index of all arrived items that leaves out the bits of one ignore mask. */
struct tdm_match_index {
	int live;
	uint64_t ignore;
	size_t idle;		    /* arrivals since a search last used it */
	struct tdm_match_table any; /* by tag & ~ignore */
	struct tdm_match_table dir; /* by source and tag & ~ignore */
};

struct tdm_match {
	uint32_t live;	    /* bit per class that has filed receives */
	uint32_t spaces;    /* 1: addresses are match addresses (tdm_space.h) */
	uint64_t *next_seq; /* own_seq, or that of another engine */
	uint64_t own_seq;
	/* the ignore mask of each slot in use */
	uint64_t mask[TDM_MATCH_SLOTS];
	/* the table of receives, except those on `list` */
	struct tdm_match_table posted;
	size_t n_posted;
	size_t n_arrived;
	struct tdm_list all_posted;    /* through item->all */
	struct tdm_list all_arrived;   /* through item->all */
	struct tdm_match_table by_src; /* arrived, source known */
	struct tdm_match_table by_tag; /* arrived */
	struct tdm_list unknown;       /* arrived, through item->bucket */
	/* receives that left UNFILED but whose mask has no slot */
	struct tdm_list list;
	/* receives in `posted` or `list`, by class */
	size_t count[TDM_MATCH_CLASSES];
	unsigned n_index; /* live members of index[] */
	struct tdm_match_index index[TDM_MATCH_MASKS];
	struct tdm_pool nodes; /* struct tdm_match_node */
};

/* Returns the message of an arrived item. */
static inline struct tdm_match_msg *
tdm_match_msg_of(struct tdm_match_item *item)
{
	return tdm_container_of(item, struct tdm_match_msg, item);
}

/*
 * Returns the list of waiting messages whose source is unknown, oldest first,
 * linked through item->bucket. tdm_match_set_source() takes an item off this
 * list.
 */
static inline struct tdm_list *tdm_match_unknown(struct tdm_match *m)
{
	return &m->unknown;
}

/*
 * Source and tag are multiplied separately, so that common layouts (dense
 * sources, rank bits within the tag) do not collide in the top bits, which
 * choose the bucket.
 */
static inline uint64_t tdm_match_hash(uint64_t seed, uint64_t class_,
				      fi_addr_t addr, uint64_t tag)
{
	uint64_t h = seed + class_ * 0xd6e8feb86659fd93ull +
		     tag * 0x9e3779b97f4a7c15ull +
		     (uint64_t)addr * 0xc2b2ae3d27d4eb4full;

	h ^= h >> 31;
	return h * 0xbf58476d1ce4e5b9ull;
}

static inline uint64_t tdm_match_hash_src(const struct tdm_match_table *t,
					  const struct tdm_match_item *it)
{
	return tdm_match_hash(t->seed, 0, it->addr, it->tag & ~t->ignore);
}

/* Returns the match address of any source in the group of @addr. */
static inline fi_addr_t tdm_match_anybody(fi_addr_t addr)
{
	return addr | UINT32_MAX;
}

/*
 * Not 0 when a receive from @addr accepts the source of @it. Tags are not
 * compared.
 */
static inline int tdm_match_from(const struct tdm_match *m,
				 const struct tdm_match_item *it,
				 fi_addr_t addr)
{
	if (!m->spaces)
		return addr == FI_ADDR_UNSPEC || it->addr == addr;
	if (it->addr == addr)
		return 1;
	if ((it->addr ^ addr) >> 32 || !tdm_space_is_wild(addr))
		return 0;
	return (uint32_t)addr == TDM_SPACE_ANY ||
	       tdm_space_key(addr) == it->key;
}

static inline int tdm_match_tag(const struct tdm_match_item *it, uint64_t tag,
				uint64_t ignore)
{
	return !((it->tag ^ tag) & ~ignore);
}

/*
 * Returns the oldest posted receive of all if it is not in the table yet and
 * matches a message from @addr with @tag, else NULL: messages often arrive in
 * the order in which their receives were posted. It stays queued;
 * tdm_match_remove_first() removes it. Not for engines with spaces.
 */
static inline struct tdm_match_item *
tdm_match_first(const struct tdm_match *m, fi_addr_t addr, uint64_t tag)
{
	struct tdm_list *pos = m->all_posted.next;
	struct tdm_match_item *it;

	assert(!m->spaces);
	if (tdm_unlikely(pos == &m->all_posted))
		return NULL;
	it = tdm_list_entry(pos, struct tdm_match_item, all);
	return (it->addr == addr || it->addr == FI_ADDR_UNSPEC) &&
			       it->class_ == TDM_MATCH_UNFILED &&
			       tdm_match_tag(it, tag, it->ignore) ?
		       it :
		       NULL;
}

static inline void tdm_match_remove_first(struct tdm_match *m,
					  struct tdm_match_item *it)
{
	m->n_posted--;
	tdm_list_del(&it->all);
}

/* match_mask.c: arrived messages for receives that ignore tag bits. */

/*
 * Returns the oldest arrived item that matches (@addr, @tag, @ignore), or NULL.
 */
struct tdm_match_item *tdm_match_find_masked(struct tdm_match *m,
					     fi_addr_t addr, uint64_t tag,
					     uint64_t ignore);

/* Add @it, which must be the newest arrival, to all indexes. */
void tdm_match_mask_arrive(struct tdm_match *m, struct tdm_match_msg *it);

/* Remove @it from all indexes. */
void tdm_match_mask_remove(struct tdm_match *m, struct tdm_match_msg *it);

/* Called after the address of @it, FI_ADDR_UNSPEC before, has been set. */
void tdm_match_mask_source(struct tdm_match_msg *it);

/* Called before the address of @it becomes FI_ADDR_UNSPEC. */
void tdm_match_mask_unsource(struct tdm_match_msg *it);

/* Free the memory of all indexes. */
void tdm_match_mask_fini(struct tdm_match *m);

#endif /* TDM_PEER_MATCH_PRIV_H */
