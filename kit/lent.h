/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kit lends to a peer: completion queues, counters, a receive queue, an
 * event queue and a domain, as fi_peer(3) describes them. Calls that break the
 * contract become a breach (rule.h).
 */
#ifndef KIT_LENT_H
#define KIT_LENT_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_peer.h>

#include "kit/op.h"

/* Members of a node, by number. */
enum kit_queue_kind { KIT_TX, KIT_RX, KIT_QUEUES };

struct kit_queue {
	struct fid_peer_cq fid;
	const char *closed; /* what was closed, so that no call may come */
};

struct kit_count {
	struct fid_peer_cntr fid;
	uint64_t value, errors;
	const char *closed;
};

enum kit_state {
	KIT_POSTED,    /* ours: a receive that waits */
	KIT_MATCHED,   /* the peer's: a receive that a message got */
	KIT_ASKED,     /* the peer's: a message without a receive */
	KIT_QUEUED,    /* ours: the peer has queued it */
	KIT_STARTED,   /* the peer's again, with a receive */
	KIT_DISCARDED, /* ours: nobody wants the message */
	KIT_FREED,
};

struct kit_entry {
	void *lead[2]; /* see kit_rx() */
	struct fi_peer_rx_entry rx;
	struct kit_entry *next;
	struct kit_srx *srx;
	struct kit_op *op; /* of the receive */
	enum kit_state state;
	enum kit_kind kind;
	unsigned ends; /* completions since the peer got it */
	size_t taken;  /* bytes of a receive of many */
	struct iovec iov[2];
	void *desc[2];
};

struct kit_srx {
	struct fid_peer_srx fid;
	struct kit_entry *posted, *queued;
	const struct kit_entry *asked; /* state ASKED: it is queued next */
	struct fi_peer_match_attr ask; /* of the last get_* */
	size_t asks, frees, resolves;  /* calls */
	const char *closed;
	int closing; /* entries that wait may be given back */
};

void kit_queue_init(struct kit_queue *q);
void kit_count_init(struct kit_count *c);
void kit_srx_init(struct kit_srx *srx);

/* The owner's domain and event queue; one each. */
struct fid_domain *kit_lent_domain(void);
struct fid_eq *kit_lent_eq(void);

/* How many events were written to the queue of events. */
size_t kit_lent_events(void);

/* Returns whether a table or an exported object differs from what was lent. */
int kit_lent_changed(const struct kit_queue *q, const struct kit_srx *srx);
int kit_srx_changed(const struct kit_srx *srx);

/*
 * Post a receive with the context @op for messages of @source (or
 * FI_ADDR_UNSPEC) and @tag. A message that waits is started at once. Two
 * elements describe the buffer if @split is not 0: so many bytes and the rest.
 */
void kit_srx_post(struct kit_srx *srx, struct kit_op *op, fi_addr_t source,
		  uint64_t tag, size_t split);

/* Discard the oldest message that waits, which there is. */
void kit_srx_discard(struct kit_srx *srx);

/* Returns how many messages wait. */
size_t kit_srx_waiting(const struct kit_srx *srx);

/* Returns how many entries the peer has not given back, all nodes together. */
size_t kit_entries_out(void);

/* Take back a receive that waits for a message. */
void kit_srx_cancel(struct kit_srx *srx);

/* A call of a peer from a thread that the kit did not call is a breach. */
void kit_check_call(const char *call, const char *closed);

/* The entry of @op that the peer has, or NULL. */
struct kit_entry *kit_entry_of(const struct kit_op *op);

/* As the provider sees the entry. */
struct fi_peer_rx_entry *kit_rx(struct kit_entry *e);

#endif /* KIT_LENT_H */
