/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects that the provider opens for the kit as its owner: a world is a
 * fabric and a domain, a node is an endpoint with all that is bound to it. What
 * fails here ends the rule: with "not offered" if the provider does not grant
 * FI_PEER, else with "broken".
 */
#ifndef KIT_NODE_H
#define KIT_NODE_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "kit/lent.h"
#include "kit/op.h"

enum { KIT_NODES_MOST = 8, KIT_NAME_BYTES = 512, KIT_SIZES = 9 };

/* Those that are open. */
extern struct kit_node *kit_nodes[KIT_NODES_MOST];

/* Lengths of messages: providers treat small and large ones in different ways. */
extern const size_t kit_size[KIT_SIZES];

struct kit_world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	int granted;	  /* fi_getinfo grants FI_PEER */
	int lends_domain; /* fi_domain2 took FI_PEER */
	int user_ids;	  /* fi_av_insert takes FI_AV_USER_ID */
};

enum kit_node_flag {
	KIT_COUNTED = 1,   /* bind counters */
	KIT_SELECTIVE = 2, /* FI_SELECTIVE_COMPLETION for sends */
	KIT_ONE_CQ = 4,	   /* for both directions */
	KIT_NO_ENABLE = 8, /* the caller enables it */
	KIT_NO_BIND = 32,  /* the caller calls kit_node_start() */
	KIT_UNKNOWN = 16,  /* kit_pair(): b does not know a yet */
};

struct kit_node {
	struct kit_world *world;
	int flags;
	/* the provider's */
	struct fid_cq *cq[KIT_QUEUES];
	struct fid_cntr *cntr[KIT_QUEUES];
	struct fid_ep *srx, *ep;
	struct fid_av *av;
	/* lent to it */
	struct kit_queue own_cq[KIT_QUEUES];
	struct kit_count own_cntr[KIT_QUEUES];
	struct kit_srx own_srx;
};

/* Node a sends, node b receives. Each has a domain of its own. */
struct kit_pair {
	struct kit_world world; /* of a */
	struct kit_node a, b;
	fi_addr_t to;	  /* b at a */
	fi_addr_t source; /* a at b, as completions report it */
};

struct kit_message {
	enum kit_kind kind;
	size_t len;
	uint64_t tag, data, flags;
	size_t split; /* two elements: so many bytes, and the rest */
};

/*
 * Ask fi_getinfo for the most that the provider grants, with @caps besides; open
 * nothing else. Returns 0 or the error of fi_getinfo.
 */
int kit_info(struct kit_world *world, uint64_t caps, int mr_mode);

/* The same, and open fabric and domain. */
void kit_world_open(struct kit_world *world, uint64_t caps, int mr_mode);

/* Single calls for an object that is lent; they return what the provider did. */
int kit_open_cq(struct kit_world *world, struct kit_queue *own,
		struct fid_cq **out);
int kit_open_cntr(struct kit_world *world, struct kit_count *own,
		  struct fid_cntr **out);
int kit_open_srx(struct kit_world *world, struct kit_srx *own,
		 struct fid_ep **out);

/* @world is NULL: in a fabric and a domain of its own. */
void kit_node_open(struct kit_node *node, struct kit_world *world, int flags);

/* Bind and enable what was opened with KIT_NO_BIND. */
void kit_node_start(struct kit_node *node);

/*
 * Close the objects that the letters of @order name: e endpoint, s SRX, n
 * counters, a address vector, c queues.
 */
void kit_node_close(struct kit_node *node, const char *order);

void kit_pair_open(struct kit_pair *p, int flags);

/* Close all nodes and worlds that are open. */
void kit_close_all(void);

/* Returns whether @kind of messages is offered. */
int kit_offers(const struct kit_world *world, enum kit_kind kind);

/* The first kind of messages that is offered. */
enum kit_kind kit_kind(const struct kit_world *world);

/* The queue to which the completion of @op belongs. */
const struct kit_queue *kit_queue_of(const struct kit_op *op);

/*
 * @at learns an address, which it knows by the number @user_id if the provider
 * takes numbers. Returns the address to send to; *@source is the one that
 * completions report.
 */
fi_addr_t kit_insert_name(struct kit_node *at, const void *name,
			  fi_addr_t user_id, fi_addr_t *source);
fi_addr_t kit_insert(struct kit_node *at, struct kit_node *of,
		     fi_addr_t user_id, fi_addr_t *source);

/* fi_getname into @name of KIT_NAME_BYTES; returns its length. */
size_t kit_name(struct kit_node *of, void *name);

/* ---- transfers (transfer.c) ----------------------------------------------- */

/* One pass of progress of all nodes. */
void kit_progress(void);

/* So many passes that what is under way in this process arrives. */
void kit_settle(void);

/* Send; -FI_EAGAIN is tried again. Errors end the rule. */
struct kit_op *kit_send(struct kit_node *from, fi_addr_t to,
			const struct kit_message *m);

/* One attempt; *@op has the send if it returns 0. */
ssize_t kit_try_send(struct kit_node *from, fi_addr_t to,
		     const struct kit_message *m, struct kit_op **op);

/* Post a receive of @room bytes. */
struct kit_op *kit_recv(struct kit_node *at, const struct kit_message *m,
			size_t room, fi_addr_t source);

/* Until @op has ended; the rule is broken if it does not. */
void kit_wait(const struct kit_op *op);

/* Until @op, a receive of many, has ended with @n messages. */
void kit_wait_ends(const struct kit_op *op, size_t n);

/* Until @count has the value @n; the rule is broken if it does not get there. */
void kit_wait_count(const struct kit_count *count, size_t n);

/* Until @n messages wait at @at. */
void kit_wait_queued(const struct kit_node *at, size_t n);

/* @recv has ended with the message @m, which @send has sent. */
void kit_check(const struct kit_op *recv, const struct kit_op *send,
	       const struct kit_message *m);

/* The completion of @recv reports @source, if the provider reports sources. */
void kit_check_source(const struct kit_op *recv, fi_addr_t source);

#endif /* KIT_NODE_H */
