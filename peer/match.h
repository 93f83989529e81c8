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
 *     any source, until tdm_match_set_source() names its source; its arrival
 *     number does not change then.
 *
 * Addresses have bit 31 clear, but for FI_ADDR_UNSPEC.
 *
 * An engine may support groups and keys (tdm_match_alloc_spaces()); then all
 * addresses are names of include/tdm_space.h, and:
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
 * ignore; the other members belong to the engine while the item is queued, but
 * for head[] and middle[], which the engine never touches: the user may keep
 * words of its own there. A search reads the first 64 bytes of the items that
 * it passes.
 */
struct tdm_match_item {
	uint64_t head[2]; /* the user's */
	uint64_t tag;	  /* of the receive or of the message */
	fi_addr_t addr;	  /* FI_ADDR_UNSPEC: any (posted), unknown (arrived) */
	uint64_t ignore;  /* posted only: bits that do not matter */
	/*
	 * Posted: a hash bucket or the plain list, once filed. Arrived: a
	 * bucket of the index on (source, tag), or the list of unknown sources.
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

/* Errors: NULL when memory is out. */
struct tdm_match *tdm_match_alloc(void);
struct tdm_match *tdm_match_alloc_spaces(void);

/*
 * From now on items of @m and of @with have order numbers of one sequence. Call
 * it before the first item is added to @m; @with must live as long.
 */
void tdm_match_number_with(struct tdm_match *m, struct tdm_match *with);

/* The order number of the next item. */
uint64_t tdm_match_next_seq(const struct tdm_match *m);

/* Items still queued are not freed. NULL is fine. */
void tdm_match_free(struct tdm_match *m);

/*
 * Add a posted receive. Cannot fail: when the tables cannot grow, searches get
 * slower and stay right.
 */
void tdm_match_post(struct tdm_match *m, struct tdm_match_item *rx);

/*
 * The posted receive a message from @addr with @tag takes by invariant 1, or
 * NULL. It stays queued: the caller removes it (or leaves it, multi-recv).
 */
struct tdm_match_item *tdm_match_find_posted(struct tdm_match *m,
					     fi_addr_t addr, uint64_t tag);

struct tdm_match_item *tdm_match_find_posted_space(struct tdm_match *m,
						   fi_addr_t addr, uint32_t key,
						   uint64_t tag);

/* Add an unexpected message. Cannot fail either. */
void tdm_match_arrive(struct tdm_match *m, struct tdm_match_msg *msg);
void tdm_match_arrive_space(struct tdm_match *m, struct tdm_match_msg *msg);

/*
 * The item of the arrived message a receive takes by invariant 2, or NULL; it
 * stays queued.
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
 * spaces: a wildcard name of its group).
 */
void tdm_match_set_source(struct tdm_match *m, struct tdm_match_item *msg,
			  fi_addr_t addr);

/*
 * Make the source of an arrived message unknown again, because its address was
 * removed. It takes its place by arrival among those of unknown source.
 */
void tdm_match_clear_source(struct tdm_match *m, struct tdm_match_item *msg);

/*
 * All posted, all arrived items, oldest first, linked through item->all. The
 * caller may remove the item it looks at when it iterates with the _safe form.
 */
struct tdm_list *tdm_match_posted(struct tdm_match *m);
struct tdm_list *tdm_match_arrived(struct tdm_match *m);

/* Number of queued items of each kind. */
size_t tdm_match_posted_count(const struct tdm_match *m);
size_t tdm_match_arrived_count(const struct tdm_match *m);

#endif /* TDM_PEER_MATCH_H */
