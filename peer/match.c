/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The matching engine. peer/match.h states the order invariants 1-3.
 *
 * Posted receives are filed by class: a slot for the ignore mask (slot 0 is
 * "no bit ignored", the others belong to the masks in use) times directed or
 * any source. All classes share one hash table keyed by (class, source, tag
 * without the ignored bits). Receives whose mask got no slot are on a plain
 * list. An arriving message is first compared with the oldest receive of all.
 * If that does not match, the receives that are not in the table yet are filed,
 * each class that has receives is searched, and the match with the lowest post
 * number is taken. So a receive is never put into the table if it is the oldest
 * one when its message arrives.
 *
 * Arrived messages are on one list in arrival order and in two hash tables, by
 * (source, tag) and by tag alone; match_mask.c serves receives with masks.
 *
 * Invariants:
 *  a. A message of unknown source is on the list of unknown sources instead
 *     of in the tables keyed by source.
 *  b. The receives that are not filed are the newest ones.
 *  c. With spaces (tdm_space.h), an address contains its group, and "any
 *  source" means any source of a group, or any of a group that has a certain
 *  key. The table by tag is then keyed by group and tag. Callers pass @spaces
 *  as a constant.
 *
 * No locks: the user serialises.
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "peer/match_priv.h"

/* The bits of the classes whose receives take messages of any source. */
#define ANY_CLASSES                                                            \
	((0xaaaaaaaau & ((1u << TDM_MATCH_LIST) - 1)) | 1u << TDM_MATCH_LIST)

tdm_static_assert(offsetof(struct tdm_match_item, middle) <=
			  TDM_CACHE_LINE_BYTES,
		  "a search looks at one line of the items that it passes");
tdm_static_assert(offsetof(struct tdm_match_msg, item) == 0,
		  "NULL is no message either way");
tdm_static_assert(TDM_MATCH_CLASSES < 32, "tdm_match.live has 32 bits");

static uint64_t hash_posted(const struct tdm_match_table *t,
			    const struct tdm_match_item *it)
{
	return tdm_match_hash(t->seed, it->class_, it->addr,
			      it->tag & ~it->ignore);
}

static uint64_t hash_tag(const struct tdm_match_table *t,
			 const struct tdm_match_item *it)
{
	return tdm_match_hash(t->seed, 1, FI_ADDR_UNSPEC, it->tag & ~t->ignore);
}

/* As hash_tag(), but of the item's group and tag. */
static uint64_t hash_group(const struct tdm_match_table *t,
			   const struct tdm_match_item *it)
{
	return tdm_match_hash(t->seed, 1, tdm_match_anybody(it->addr),
			      it->tag & ~t->ignore);
}

static struct tdm_match_item *item_bucket(struct tdm_list *node)
{
	return tdm_list_entry(node, struct tdm_match_item, bucket);
}

static struct tdm_match_item *item_by_tag(struct tdm_list *node)
{
	return &tdm_list_entry(node, struct tdm_match_msg, by_tag)->item;
}

static struct tdm_match_item *item_of_all(struct tdm_list *node)
{
	return tdm_list_entry(node, struct tdm_match_item, all);
}

/*
 * Returns the slot of @ignore, taking a free one if it has none; SLOTS: all are
 * in use.
 */
static unsigned slot_of(struct tdm_match *m, uint64_t ignore)
{
	unsigned s, room = TDM_MATCH_SLOTS;

	if (!ignore)
		return 0;
	for (s = 1; s < TDM_MATCH_SLOTS; s++) {
		if (!(m->live >> 2 * s & 3))
			room = s < room ? s : room;
		else if (m->mask[s] == ignore)
			return s;
	}
	if (room < TDM_MATCH_SLOTS)
		m->mask[room] = ignore;
	return room;
}

void tdm_match_post(struct tdm_match *m, struct tdm_match_item *rx)
{
	rx->seq = (*m->next_seq)++;
	rx->class_ = TDM_MATCH_UNFILED;
	tdm_list_append(&m->all_posted, &rx->all);
	m->n_posted++;
}

static void file(struct tdm_match *m, struct tdm_match_item *rx)
{
	unsigned slot = slot_of(m, rx->ignore);

	if (tdm_unlikely(slot == TDM_MATCH_SLOTS)) {
		rx->class_ = TDM_MATCH_LIST;
		tdm_list_append(&m->list, &rx->bucket);
	} else {
		rx->class_ = 2 * slot + (unsigned)tdm_space_is_wild(rx->addr);
		tdm_match_table_append(&m->posted, &rx->bucket,
				       hash_posted(&m->posted, rx));
	}
	m->count[rx->class_]++;
	m->live |= 1u << rx->class_;
}

/*
 * Put the receives that were posted since the previous call of this function,
 * and still wait, into the table or the list, oldest first.
 */
static void file_new(struct tdm_match *m)
{
	struct tdm_list *pos = m->all_posted.prev;

	while (pos != &m->all_posted &&
	       item_of_all(pos)->class_ == TDM_MATCH_UNFILED)
		pos = pos->prev;
	for (pos = pos->next; pos != &m->all_posted; pos = pos->next)
		file(m, item_of_all(pos));
}

/* The sources that a receive may give to match a message. */
struct sender {
	fi_addr_t addr;	  /* the sender's own address */
	fi_addr_t by_key; /* any source with its key, or any; spaces only */
	fi_addr_t any;	  /* any source */
};

static inline int wanted(const struct tdm_match_item *it,
			 const struct sender *from, int spaces)
{
	return it->addr == from->addr || it->addr == from->any ||
	       (spaces && it->addr == from->by_key);
}

static struct tdm_match_item *
find_listed(struct tdm_match *m, const struct sender *from, uint64_t tag)
{
	struct tdm_match_item *it;
	struct tdm_list *pos;

	tdm_list_for_each(pos, &m->list) {
		it = item_bucket(pos);
		if (wanted(it, from, 1) && tdm_match_tag(it, tag, it->ignore))
			return it;
	}
	return NULL;
}

static inline struct tdm_match_item *
find_hashed(struct tdm_match *m, unsigned class_, fi_addr_t addr, uint64_t tag)
{
	uint64_t ignore = m->mask[class_ >> 1];
	struct tdm_match_item *it;
	struct tdm_list *pos, *b;

	b = tdm_match_bucket(&m->posted, tdm_match_hash(m->posted.seed, class_,
							addr, tag & ~ignore));
	tdm_list_for_each(pos, b) {
		it = item_bucket(pos);
		if (it->addr == addr && tdm_match_tag(it, tag, ignore) &&
		    it->class_ == class_)
			return it;
	}
	return NULL;
}

/*
 * Receives are often met in the order they were posted: the oldest one of all,
 * if it matches, is the answer whatever its class.
 */
static inline struct tdm_match_item *find_first(struct tdm_match *m,
						const struct sender *from,
						uint64_t tag, int spaces)
{
	struct tdm_list *pos = m->all_posted.next;
	struct tdm_match_item *it;

	if (tdm_unlikely(pos == &m->all_posted))
		return NULL;
	it = item_of_all(pos);
	return wanted(it, from, spaces) && tdm_match_tag(it, tag, it->ignore) ?
		       it :
		       NULL;
}

static inline struct tdm_match_item *older(struct tdm_match_item *a,
					   struct tdm_match_item *b)
{
	return !a || (b && b->seq < a->seq) ? b : a;
}

/* Find the match of each class; of these, return the one posted first. */
static inline struct tdm_match_item *find_oldest(struct tdm_match *m,
						 const struct sender *from,
						 uint64_t tag, int spaces)
{
	struct tdm_match_item *best = NULL;
	uint32_t live;
	unsigned c;

	file_new(m);
	live = m->live;
	if (tdm_space_is_wild(from->addr))
		live &= ANY_CLASSES;
	for (; live; live &= live - 1) {
		c = (unsigned)__builtin_ctz(live);
		if (c == TDM_MATCH_LIST) {
			best = older(best, find_listed(m, from, tag));
			continue;
		}
		best = older(best,
			     find_hashed(m, c, c & 1 ? from->any : from->addr,
					 tag));
		if (spaces && (c & 1) && from->by_key != from->any)
			best = older(best,
				     find_hashed(m, c, from->by_key, tag));
	}
	return best;
}

static tdm_noinline struct tdm_match_item *
find_oldest_plain(struct tdm_match *m, fi_addr_t addr, uint64_t tag)
{
	const struct sender from = { addr, FI_ADDR_UNSPEC, FI_ADDR_UNSPEC };

	return find_oldest(m, &from, tag, 0);
}

struct tdm_match_item *tdm_match_find_posted(struct tdm_match *m,
					     fi_addr_t addr, uint64_t tag)
{
	const struct sender from = { addr, FI_ADDR_UNSPEC, FI_ADDR_UNSPEC };
	struct tdm_match_item *it = find_first(m, &from, tag, 0);

	return it ? it : find_oldest_plain(m, addr, tag);
}

struct tdm_match_item *tdm_match_find_posted_space(struct tdm_match *m,
						   fi_addr_t addr, uint32_t key,
						   uint64_t tag)
{
	const struct sender from = { addr, tdm_space_by_key(addr, key),
				     tdm_match_anybody(addr) };
	struct tdm_match_item *it = find_first(m, &from, tag, 1);

	return it ? it : find_oldest(m, &from, tag, 1);
}

static inline void arrive(struct tdm_match *m, struct tdm_match_msg *msg,
			  uint64_t tag_hash, int wild)
{
	struct tdm_match_item *it = &msg->item;

	it->class_ = TDM_MATCH_ARRIVED;
	it->seq = (*m->next_seq)++;
	msg->nodes = NULL;
	tdm_list_append(&m->all_arrived, &it->all);
	m->n_arrived++;
	tdm_match_table_append(&m->by_tag, &msg->by_tag, tag_hash);
	if (wild)
		tdm_list_append(&m->unknown, &it->bucket);
	else
		tdm_match_table_append(&m->by_src, &it->bucket,
				       tdm_match_hash_src(&m->by_src, it));
	if (tdm_unlikely(m->n_index))
		tdm_match_mask_arrive(m, msg);
}

void tdm_match_arrive(struct tdm_match *m, struct tdm_match_msg *msg)
{
	arrive(m, msg, hash_tag(&m->by_tag, &msg->item),
	       msg->item.addr == FI_ADDR_UNSPEC);
}

void tdm_match_arrive_space(struct tdm_match *m, struct tdm_match_msg *msg)
{
	arrive(m, msg, hash_group(&m->by_tag, &msg->item),
	       tdm_space_is_wild(msg->item.addr));
}

static struct tdm_match_item *find_by_src(struct tdm_match *m, fi_addr_t addr,
					  uint64_t tag)
{
	struct tdm_match_item *it;
	struct tdm_list *pos, *b;

	b = tdm_match_bucket(&m->by_src,
			     tdm_match_hash(m->by_src.seed, 0, addr, tag));
	tdm_list_for_each(pos, b) {
		it = item_bucket(pos);
		if (it->addr == addr && it->tag == tag)
			return it;
	}
	return NULL;
}

/*
 * Returns the oldest message with @tag in the bucket of @hash from a source
 * that @addr includes, or NULL.
 */
static inline struct tdm_match_item *find_by_tag(struct tdm_match *m,
						 uint64_t hash, fi_addr_t addr,
						 uint64_t tag, int spaces)
{
	struct tdm_match_item *it;
	struct tdm_list *pos, *b;

	b = tdm_match_bucket(&m->by_tag, hash);
	tdm_list_for_each(pos, b) {
		it = item_by_tag(pos);
		if (it->tag == tag && (!spaces || tdm_match_from(m, it, addr)))
			return it;
	}
	return NULL;
}

struct tdm_match_item *tdm_match_find_arrived(struct tdm_match *m,
					      fi_addr_t addr, uint64_t tag,
					      uint64_t ignore)
{
	if (!m->n_arrived)
		return NULL;
	if (ignore)
		return tdm_match_find_masked(m, addr, tag, ignore);
	if (addr != FI_ADDR_UNSPEC)
		return find_by_src(m, addr, tag);
	return find_by_tag(
		m, tdm_match_hash(m->by_tag.seed, 1, FI_ADDR_UNSPEC, tag), addr,
		tag, 0);
}

struct tdm_match_item *tdm_match_find_arrived_space(struct tdm_match *m,
						    fi_addr_t addr,
						    uint64_t tag,
						    uint64_t ignore)
{
	if (!m->n_arrived)
		return NULL;
	if (ignore)
		return tdm_match_find_masked(m, addr, tag, ignore);
	if (!tdm_space_is_wild(addr))
		return find_by_src(m, addr, tag);
	return find_by_tag(m,
			   tdm_match_hash(m->by_tag.seed, 1,
					  tdm_match_anybody(addr), tag),
			   addr, tag, 1);
}

static void unfile(struct tdm_match *m, struct tdm_match_item *it)
{
	if (tdm_unlikely(it->class_ == TDM_MATCH_LIST))
		tdm_list_del(&it->bucket);
	else
		tdm_match_table_remove(&m->posted, &it->bucket);
	if (!--m->count[it->class_])
		m->live &= ~(1u << it->class_);
}

static void remove_arrived(struct tdm_match *m, struct tdm_match_item *it)
{
	struct tdm_match_msg *msg = tdm_match_msg_of(it);

	tdm_match_table_remove(&m->by_tag, &msg->by_tag);
	if (tdm_space_is_wild(it->addr))
		tdm_list_del(&it->bucket);
	else
		tdm_match_table_remove(&m->by_src, &it->bucket);
	if (tdm_unlikely(msg->nodes != NULL))
		tdm_match_mask_remove(m, msg);
	m->n_arrived--;
}

void tdm_match_remove(struct tdm_match *m, struct tdm_match_item *item)
{
	if (item->class_ == TDM_MATCH_ARRIVED) {
		remove_arrived(m, item);
	} else {
		if (item->class_ != TDM_MATCH_UNFILED)
			unfile(m, item);
		m->n_posted--;
	}
	tdm_list_del(&item->all);
}

void tdm_match_set_source(struct tdm_match *m, struct tdm_match_item *msg,
			  fi_addr_t addr)
{
	if (!tdm_space_is_wild(msg->addr) || tdm_space_is_wild(addr))
		return;
	tdm_list_del(&msg->bucket);
	msg->addr = addr;
	tdm_match_table_insert(&m->by_src, &msg->bucket);
	tdm_match_mask_source(tdm_match_msg_of(msg));
}

void tdm_match_clear_source(struct tdm_match *m, struct tdm_match_item *msg)
{
	struct tdm_list *at = m->unknown.prev;

	if (tdm_space_is_wild(msg->addr))
		return;
	tdm_match_table_remove(&m->by_src, &msg->bucket);
	tdm_match_mask_unsource(tdm_match_msg_of(msg));
	msg->addr = m->spaces ? tdm_space_by_key(msg->addr, msg->key) :
				FI_ADDR_UNSPEC;
	while (at != &m->unknown && item_bucket(at)->seq > msg->seq)
		at = at->prev;
	tdm_list_add_after(&msg->bucket, at);
}

static int match_init(struct tdm_match *m)
{
	uint64_t seed;
	int ret;

	/*
	 * The seed depends on the address of @m, which differs between
	 * processes: strangers cannot choose tags that all fall into one
	 * bucket.
	 */
	seed = (uint64_t)(uintptr_t)m * 0xa0761d6478bd642full;
	m->next_seq = &m->own_seq;
	tdm_list_init(&m->list);
	tdm_list_init(&m->all_posted);
	tdm_list_init(&m->all_arrived);
	tdm_list_init(&m->unknown);
	tdm_pool_init(&m->nodes, sizeof(struct tdm_match_node), 0);
	m->posted.item = item_bucket;
	m->posted.hash = hash_posted;
	m->by_src.item = item_bucket;
	m->by_src.hash = tdm_match_hash_src;
	m->by_tag.item = item_by_tag;
	m->by_tag.hash = hash_tag;
	ret = tdm_match_table_init(&m->posted, seed);
	if (!ret)
		ret = tdm_match_table_init(&m->by_src, seed);
	if (!ret)
		ret = tdm_match_table_init(&m->by_tag, seed);
	return ret;
}

struct tdm_match *tdm_match_alloc(void)
{
	struct tdm_match *m = (struct tdm_match *)calloc(1, sizeof(*m));

	if (m && match_init(m)) {
		tdm_match_free(m);
		m = NULL;
	}
	return m;
}

struct tdm_match *tdm_match_alloc_spaces(void)
{
	struct tdm_match *m = tdm_match_alloc();

	if (!m)
		return NULL;
	m->spaces = 1;
	m->by_tag.hash = hash_group;
	return m;
}

void tdm_match_number_with(struct tdm_match *m, struct tdm_match *with)
{
	m->next_seq = with->next_seq;
}

uint64_t tdm_match_next_seq(const struct tdm_match *m)
{
	return *m->next_seq;
}

void tdm_match_free(struct tdm_match *m)
{
	if (!m)
		return;
	tdm_match_mask_fini(m);
	tdm_match_table_fini(&m->posted);
	tdm_match_table_fini(&m->by_src);
	tdm_match_table_fini(&m->by_tag);
	free(m);
}

struct tdm_list *tdm_match_posted(struct tdm_match *m)
{
	return &m->all_posted;
}

struct tdm_list *tdm_match_arrived(struct tdm_match *m)
{
	return &m->all_arrived;
}

size_t tdm_match_posted_count(const struct tdm_match *m)
{
	return m->n_posted;
}

size_t tdm_match_arrived_count(const struct tdm_match *m)
{
	return m->n_arrived;
}
