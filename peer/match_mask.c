/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arrived messages for receives that ignore tag bits. A search walks the list
 * of arrivals; after SCAN_LIMIT messages without a match, it builds an index
 * for its mask over all of them. Every arrival updates the index from then on,
 * until no search has used it for IDLE_LIMIT arrivals and twice the length of
 * the queue. So neither a queue that is searched often nor one that is never
 * searched with masks costs more than O(1) per message.
 *
 * An index that cannot get memory is dropped: searches walk the list again.
 * No locks: the user serialises.
 */
#include <rdma/fi_errno.h>

#include "peer/match_priv.h"

enum {
	SCAN_LIMIT = 32,   /* messages compared before an index is built */
	IDLE_LIMIT = 1024, /* arrivals after which an unused index is dropped */
};

static struct tdm_match_item *item_any(struct tdm_list *node)
{
	return &tdm_list_entry(node, struct tdm_match_node, any)->msg->item;
}

static struct tdm_match_item *item_dir(struct tdm_list *node)
{
	return &tdm_list_entry(node, struct tdm_match_node, dir)->msg->item;
}

static struct tdm_match_item *item_all(struct tdm_list *node)
{
	return tdm_list_entry(node, struct tdm_match_item, all);
}

/* Drop @idx and free the nodes that items have in it. */
static void index_drop(struct tdm_match *m, struct tdm_match_index *idx)
{
	struct tdm_match_node **link, *node;
	struct tdm_list *pos;

	tdm_list_for_each(pos, &m->all_arrived) {
		link = &tdm_match_msg_of(item_all(pos))->nodes;
		while (*link && (*link)->index != idx)
			link = &(*link)->next;
		if (!*link)
			continue;
		node = *link;
		*link = node->next;
		tdm_pool_free(&m->nodes, node);
	}
	tdm_match_table_fini(&idx->any);
	tdm_match_table_fini(&idx->dir);
	idx->live = 0;
	m->n_index--;
}

/* Add @msg, which must be newer than all other items, to @idx. */
static int index_add(struct tdm_match *m, struct tdm_match_index *idx,
		     struct tdm_match_msg *msg)
{
	const struct tdm_match_item *it = &msg->item;
	struct tdm_match_node *node;

	node = (struct tdm_match_node *)tdm_pool_alloc(&m->nodes);
	if (!node)
		return -FI_ENOMEM;
	node->msg = msg;
	node->index = idx;
	node->next = msg->nodes;
	msg->nodes = node;
	tdm_list_init(&node->dir);
	tdm_match_table_append(&idx->any, &node->any,
			       idx->any.hash(&idx->any, it));
	if (!tdm_space_is_wild(it->addr))
		tdm_match_table_append(&idx->dir, &node->dir,
				       tdm_match_hash_src(&idx->dir, it));
	return 0;
}

static struct tdm_match_index *index_of(struct tdm_match *m, uint64_t ignore)
{
	unsigned i;

	for (i = 0; m->n_index && i < TDM_MATCH_MASKS; i++) {
		if (m->index[i].live && m->index[i].ignore == ignore)
			return &m->index[i];
	}
	return NULL;
}

/*
 * Returns a free index; if there is none, drops the one whose mask was searched
 * least recently and returns that.
 */
static struct tdm_match_index *index_take(struct tdm_match *m)
{
	struct tdm_match_index *idlest = &m->index[0];
	unsigned i;

	for (i = 0; i < TDM_MATCH_MASKS; i++) {
		if (!m->index[i].live)
			return &m->index[i];
		if (m->index[i].idle > idlest->idle)
			idlest = &m->index[i];
	}
	index_drop(m, idlest);
	return idlest;
}

/* Build an index for @ignore over all arrived messages. NULL: out of memory. */
static struct tdm_match_index *index_build(struct tdm_match *m, uint64_t ignore)
{
	struct tdm_match_index *idx = index_take(m);
	struct tdm_list *pos;

	idx->ignore = ignore;
	idx->idle = 0;
	idx->any.ignore = ignore;
	idx->any.item = item_any;
	idx->any.hash = m->by_tag.hash;
	idx->dir.ignore = ignore;
	idx->dir.item = item_dir;
	idx->dir.hash = tdm_match_hash_src;
	if (tdm_match_table_init(&idx->any, m->posted.seed))
		return NULL;
	if (tdm_match_table_init(&idx->dir, m->posted.seed)) {
		tdm_match_table_fini(&idx->any);
		return NULL;
	}
	idx->live = 1;
	m->n_index++;
	tdm_list_for_each(pos, &m->all_arrived) {
		if (index_add(m, idx, tdm_match_msg_of(item_all(pos)))) {
			index_drop(m, idx);
			return NULL;
		}
	}
	return idx;
}

void tdm_match_mask_arrive(struct tdm_match *m, struct tdm_match_msg *it)
{
	struct tdm_match_index *idx;
	unsigned i;

	for (i = 0; i < TDM_MATCH_MASKS; i++) {
		idx = &m->index[i];
		if (!idx->live)
			continue;
		if (++idx->idle > IDLE_LIMIT + 2 * m->n_arrived ||
		    index_add(m, idx, it))
			index_drop(m, idx);
	}
}

void tdm_match_mask_remove(struct tdm_match *m, struct tdm_match_msg *it)
{
	struct tdm_match_node *node;

	while ((node = it->nodes)) {
		it->nodes = node->next;
		tdm_match_table_remove(&node->index->any, &node->any);
		if (tdm_list_linked(&node->dir))
			tdm_match_table_remove(&node->index->dir, &node->dir);
		tdm_pool_free(&m->nodes, node);
	}
}

void tdm_match_mask_unsource(struct tdm_match_msg *it)
{
	struct tdm_match_node *node;

	for (node = it->nodes; node; node = node->next)
		tdm_match_table_remove(&node->index->dir, &node->dir);
}

void tdm_match_mask_source(struct tdm_match_msg *it)
{
	struct tdm_match_node *node;

	for (node = it->nodes; node; node = node->next)
		tdm_match_table_insert(&node->index->dir, &node->dir);
}

static struct tdm_match_item *find_indexed(struct tdm_match *m,
					   struct tdm_match_index *idx,
					   fi_addr_t addr, uint64_t tag)
{
	int any = tdm_space_is_wild(addr);
	struct tdm_match_table *t = any ? &idx->any : &idx->dir;
	fi_addr_t by = any && m->spaces ? tdm_match_anybody(addr) : addr;
	struct tdm_match_item *it;
	struct tdm_list *pos, *b;

	idx->idle = 0;
	b = tdm_match_bucket(t, tdm_match_hash(t->seed, (uint64_t)any, by,
					       tag & ~idx->ignore));
	tdm_list_for_each(pos, b) {
		it = t->item(pos);
		if (tdm_match_from(m, it, addr) &&
		    tdm_match_tag(it, tag, idx->ignore))
			return it;
	}
	return NULL;
}

struct tdm_match_item *tdm_match_find_masked(struct tdm_match *m,
					     fi_addr_t addr, uint64_t tag,
					     uint64_t ignore)
{
	struct tdm_match_index *idx = index_of(m, ignore);
	struct tdm_match_item *it;
	struct tdm_list *pos;
	int tried = 0;

	if (idx)
		return find_indexed(m, idx, addr, tag);
	tdm_list_for_each(pos, &m->all_arrived) {
		it = item_all(pos);
		if (tdm_match_from(m, it, addr) &&
		    tdm_match_tag(it, tag, ignore))
			return it;
		if (++tried != SCAN_LIMIT)
			continue;
		idx = index_build(m, ignore);
		if (idx)
			return find_indexed(m, idx, addr, tag);
	}
	return NULL;
}

void tdm_match_mask_fini(struct tdm_match *m)
{
	unsigned i;

	for (i = 0; i < TDM_MATCH_MASKS; i++) {
		tdm_match_table_fini(&m->index[i].any);
		tdm_match_table_fini(&m->index[i].dir);
	}
	tdm_pool_fini(&m->nodes);
}
