/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching of receives and messages: a pure data structure, no locks, no I/O,
 * no callbacks. One engine serves tagged and untagged; an untagged queue is a
 * tagged queue whose tags are all 0 and exact.
 *
 * Expected cost O(1) for exact and masked receives, posted and unexpected
 * (hashing on (source, tag) as in Flajslik, Dinan, Underwood 2016).
 *
 * Order invariants, fi_msg(3) and fi_tagged(3) with FI_ORDER_SAS:
 *  1. An arriving message takes, of all posted entries that match it, the one
 *     posted first, of whatever class (exact, any source, masked).
 *  2. A posted receive takes, of all waiting messages of one source that
 *     match it, the one that arrived first; across sources too, in the order in
 *     which the messages were entered here.
 *  3. A message of unknown source (FI_ADDR_UNSPEC) matches only receives from
 *     any source, until tdm_match_set_source() sets its source, which does not
 *     change its arrival number.
 *
 * Addresses other than FI_ADDR_UNSPEC have bit 31 clear.
 *
 * An engine may support groups and keys (tdm_match_alloc_spaces()); then all
 * addresses are match addresses (include/tdm_space.h), and:
 *  4. A message matches only receives of its own group, whatever their source.
 *  5. A receive whose source is a key takes messages of any source with that
 *     key. Such an engine has its own calls, with "space" in their names, so
 *     that the other calls pay nothing for it.
 */
#ifndef TDM_PEER_MATCH_H
#define TDM_PEER_MATCH_H

#include <rdma/fabric.h>

#include "base/list.h"

/*
 * The engine's part of its user's entry. The user fills in addr, tag and
 * ignore. While the item is queued, all other members belong to the engine,
 * except head[] and middle[]: the engine never touches these, and the user may
 * keep words of its own there. A search reads the first 64 bytes of the items
 * that it passes.
 */
struct tdm_match_item {
	uint64_t head[2]; /* the user's */
	uint64_t tag;	  /* of the receive or of the message */
	fi_addr_t addr;	  /* FI_ADDR_UNSPEC: any (posted), unknown (arrived) */
	uint64_t ignore;  /* posted only: bits that do not matter */
	/*
	 * Node in a hash bucket or list. Posted: the table or the plain list,
	 * once the receive is in one. Arrived: the index on (source, tag), or
	 * the list of unknown sources.
	 */
	struct tdm_list bucket;
	uint64_t middle[3];  /* the user's */
	struct tdm_list all; /* all items of a kind, oldest first */
	uint64_t seq;	     /* order number, given at insert */
	/* class or state of the item; the engine's */
	uint32_t class_;
	/* arrived: its sender's key, spaces only; or 0 */
	uint32_t key;
};

/* An unexpected message: its item, and the nodes by which it is found. */
struct tdm_match_msg {
	struct tdm_match_item item;   /* first */
	struct tdm_match_node *nodes; /* its nodes in mask indexes */
	struct tdm_list by_tag;	      /* index on the tag alone */
};

struct tdm_match;

/* Allocates an engine; NULL: out of memory. */
struct tdm_match *tdm_match_alloc(void);
struct tdm_match *tdm_match_alloc_spaces(void);

/*
 * Number the items of @m and of @with in one sequence from now on. Call it
 * before the first item is added to @m; @with must live as long as @m.
 */
void tdm_match_number_with(struct tdm_match *m, struct tdm_match *with);

/* Returns the order number that the next item will get. */
uint64_t tdm_match_next_seq(const struct tdm_match *m);

/* Free @m, which may be NULL; not the items that are still queued. */
void tdm_match_free(struct tdm_match *m);

/*
 * Add a posted receive. Cannot fail: if a table cannot grow, searches get
 * slower but remain correct.
 */
void tdm_match_post(struct tdm_match *m, struct tdm_match_item *rx);

/*
 * Returns the posted receive that a message from @addr with @tag takes by
 * invariant 1, or NULL. It stays queued: the caller removes it, or leaves it
 * there (a multi-recv buffer).
 */
struct tdm_match_item *tdm_match_find_posted(struct tdm_match *m,
					     fi_addr_t addr, uint64_t tag);

struct tdm_match_item *tdm_match_find_posted_space(struct tdm_match *m,
						   fi_addr_t addr, uint32_t key,
						   uint64_t tag);

/* Add an unexpected message. Cannot fail, as tdm_match_post(). */
void tdm_match_arrive(struct tdm_match *m, struct tdm_match_msg *msg);
void tdm_match_arrive_space(struct tdm_match *m, struct tdm_match_msg *msg);

/*
 * Returns the item of the arrived message that a receive takes by invariant 2,
 * or NULL. It stays queued.
 */
struct tdm_match_item *tdm_match_find_arrived(struct tdm_match *m,
					      fi_addr_t addr, uint64_t tag,
					      uint64_t ignore);

struct tdm_match_item *tdm_match_find_arrived_space(struct tdm_match *m,
						    fi_addr_t addr,
						    uint64_t tag,
						    uint64_t ignore);

/* Remove a queued item of either kind. */
void tdm_match_remove(struct tdm_match *m, struct tdm_match_item *item);

/*
 * Set the source of an arrived message whose source was FI_ADDR_UNSPEC (with
 * spaces: the wildcard of its group).
 */
void tdm_match_set_source(struct tdm_match *m, struct tdm_match_item *msg,
			  fi_addr_t addr);

/*
 * Make the source of an arrived message unknown again, because its address was
 * removed. Among the messages of unknown source it gets the place that its
 * arrival number gives it.
 */
void tdm_match_clear_source(struct tdm_match *m, struct tdm_match_item *msg);

/*
 * Return the list of all posted or of all arrived items, oldest first, linked
 * through item->all. A caller that iterates with the _safe form may remove the
 * item it looks at.
 */
struct tdm_list *tdm_match_posted(struct tdm_match *m);
struct tdm_list *tdm_match_arrived(struct tdm_match *m);

/* Return the number of posted or of arrived items. */
size_t tdm_match_posted_count(const struct tdm_match *m);
size_t tdm_match_arrived_count(const struct tdm_match *m);

#endif /* TDM_PEER_MATCH_H */
