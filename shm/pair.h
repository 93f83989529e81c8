/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair: what an endpoint keeps for one remote endpoint to which it has sent
 * or from which it has received. op.h has the operations under way.
 *
 * pair.c has the diagram of its states. A session exists in ATTACHING,
 * ACCEPTING and UP (except for the pair of the endpoint with itself).
 */
#ifndef TDM_SHM_PAIR_H
#define TDM_SHM_PAIR_H

#include <rdma/providers/fi_peer.h>

#include "base/list.h"
#include "shm/addr.h"
#include "shm/op.h"
#include "shm/region.h"
#include "shm/ring_rx.h"
#include "tdm_order.h"
#include "tdm_provider.h"

struct tdm_shm_ep;
struct tdm_shm_session;

enum tdm_shm_pair_state {
	TDM_SHM_PAIR_NONE,
	TDM_SHM_PAIR_ATTACHING, /* we sent HELLO */
	TDM_SHM_PAIR_ACCEPTING, /* we answered a HELLO */
	TDM_SHM_PAIR_UP,
	/* another transport is used until the address is removed */
	TDM_SHM_PAIR_FAILED,
};

struct tdm_shm_pair {
	/* send, hot */
	enum tdm_shm_pair_state state; /* tdm_shm_pair_set_state() */
	int broken;	   /* positive errno: the pair waits to be reaped */
	int send_waits;	   /* 1: slow operations precede messages */
	int fence;	   /* 1: full fence between publish and bell test */
	uint32_t grow_in;  /* sends until the ring grows; 0: not planned */
	size_t eager_most; /* largest payload of a record in this ring, bytes */
	const struct tdm_shm_seg *peer; /* the peer's, read-only */
	struct tdm_shm_seg *own;
	struct tdm_shm_ring_tx tx;
	uint64_t tx_msgs;  /* successful sends of this session */
	uint64_t tx_bytes; /* their payload */
	/* receive, hot */
	struct tdm_shm_ring_rx rx;
	/* source in the offers of messages: owner_addr, or its match address */
	fi_addr_t from;
	struct tdm_shm_ep *ep;
	/* SRX of the context that the peer selected; NULL: closed */
	struct fid_peer_srx *srx;
	uint32_t bell;	    /* TDM_SHM_BELL_* as last written to own->bell */
	uint32_t rx_since;  /* records since the last review of the hot set */
	uint32_t rx_window; /* most records per poll: 1, 2, 4, ... */
	uint32_t rx_talk;   /* empty polls until a ping-pong counts as over */
	uint32_t warm_at, warm_end; /* bytes of the next record: warm() */
	uint32_t talk_idx; /* tx.idx when a poll last found one record or two */
	uint64_t rx_msgs;  /* messages received in this session */
	uint64_t rx_bytes; /* their payload */

	fi_addr_t owner_addr; /* in the owner's space, or FI_ADDR_UNSPEC */
	struct tdm_shm_session *sess; /* NULL for self */
	int self;		      /* 1: the endpoint with itself */
	int cma;		      /* 1: process_vm_readv works */
	uint32_t large_tx;	      /* how the peer took the last large
					 message: enum tdm_report_large */
	int ready;		      /* 1: cold, but may hold records */
	int want_space;		      /* 1: a send found the ring full */
	int no_grow;		      /* 1: the ring stays as it is */
	uint16_t tx_ctx;	      /* context selected at the peer */
	uint32_t tx_group;	      /* group selected at the peer */
	uint32_t rx_group;	      /* group that the peer selected here */
	uint32_t peer_contexts;	      /* receive contexts the peer has */
	int peer_groups;	      /* 1: the peer supports groups */
	int peer_atomics;	      /* 1: the peer has atomic operations */
	int ending;		      /* 1: in tdm_shm_pair_lose() */
	int peer_ranges;	      /* 1: the peer supports RANGES */
	int peer_streams; /* 1: it takes the ring of a stream, not tried yet */
	uint32_t epoch;	  /* sessions this pair has had */
	uint32_t stalls;  /* sends that found the ring full */
	uint32_t look_slots; /* from one look whether it lives to the next */
	/* slots by which long records may move that look; 1: the first of two */
	int32_t look_stretch, look_odd;
	uint64_t looked_ns; /* when the peer was last seen alive; 0: never */
	uint64_t look_end;  /* head at the next check; tx.look may be before */
	uint64_t looked_credit; /* the peer's ring progress at that time */
	/* to recognise a stream: values and time when measuring began */
	uint64_t paced_head, paced_msgs, paced_ns;
	int paced_ahead; /* 1: since then the peer was some records behind */
	int stream;	 /* 1: the next ring is that of a stream */
	struct tdm_list busy;  /* ep->busy: work for each progress call */
	struct tdm_list awake; /* ep->awake: own->bell without ASLEEP */
	struct tdm_list reap;  /* ep->reap */
	struct tdm_list held;  /* ep->held: the peer must send no payload */
	struct tdm_list ctl;   /* control records that wait for slots */
	struct tdm_list pending;
	struct tdm_slow slow;  /* ones of pending, with order: ep->order */
	struct tdm_list feeds; /* operations that send chunks, in this order */
	struct tdm_list pulls;
	/* bytes of the slices that a pass has begun; which: ep->ticks */
	uint32_t begun_bytes, begun_pass;
	/* announced messages without an answer; the peer's that wait here */
	uint32_t announced, waiting;
	/* RTS_MSG and RTS_TAG in this session: sent, received */
	uint64_t rts_sent, rts_heard;
	struct tdm_list serves; /* operations for reads of the peer */
	/* serves, and results on their way */
	uint32_t nserves;
	uint32_t next_serve;  /* id of the next serve */
	uint64_t dirty_small; /* tdm_shm_ring_tx.dirty of the small ring */
	uint64_t bounce_tx;   /* chunks written, free-running */
	/* ns: next attempt to make the area; first one that failed, or 0 */
	uint64_t area_at_ns, area_since_ns;
	int help; /* 0..4: does the peer help when asked? */
	/* ns: when the last chunk came; when the last measured pull ended */
	uint64_t chunk_ns, pulled_ns;
	uint64_t alive_ns;	   /* when the kernel last confirmed it */
	struct tdm_shm_ways *ways; /* NULL until the first large message */
	/* large messages since the peer was last asked to help */
	uint32_t help_turn;
	uint64_t bounce_rx;	/* chunks consumed */
	uint64_t bounce_credit; /* of ours: consumed by the peer */

	struct tdm_shm_addr addr;
	struct tdm_list all;	   /* ep->pairs */
	struct tdm_shm_pair *hash; /* chain of ep->hash */
	size_t unexp_bytes;	   /* part of ep->unexp_bytes */
	uint32_t refs;		   /* unexps, and slots of ep->by_addr */
	struct fi_rma_iov *more;   /* of the last RANGES, or NULL */
	uint32_t more_count;	   /* 0: used by an operation */
	uint8_t refused_told;	   /* 1: TDM_PEER_REFUSED was written */
	uint8_t silent; /* attaches in a row that were not answered */
};

/* Change the state of @pair to @state. The step must be legal (asserted). */
void tdm_shm_pair_set_state(struct tdm_shm_pair *pair,
			    enum tdm_shm_pair_state state);

/* Called when the source of @pair's messages, or their group, has changed. */
void tdm_shm_pair_source(struct tdm_shm_pair *pair, fi_addr_t owner_addr,
			 uint32_t group);

/*
 * Returns the pair with @addr, or NULL. With @make, makes it if there is none.
 */
struct tdm_shm_pair *tdm_shm_pair_find(struct tdm_shm_ep *ep,
				       const struct tdm_shm_addr *addr,
				       int make);

/* Free @pair if it has no session, no reference and no state to keep. */
void tdm_shm_pair_release(struct tdm_shm_pair *pair);

/* Returns how large messages arrive from the peer: enum tdm_report_large. */
uint32_t tdm_shm_pair_large_rx(const struct tdm_shm_pair *pair);

/*
 * Called when the pair has broken with @err (positive errno). It is marked and
 * put on the reap list; its session ends after the current step, or in the next
 * progress call if its hot ring broke it. No thread can go to sleep before that
 * (tdm_shm_bell_arm()).
 */
void tdm_shm_pair_break(struct tdm_shm_pair *pair, int err);
void tdm_shm_reap(struct tdm_shm_ep *ep);

/*
 * End the session of @pair now. If the peer has died or closed, the records
 * that it had published are delivered first. Then all operations with it end
 * with FI_ECONNRESET, and the owner gets TDM_PEER_LOST with @err.
 */
void tdm_shm_pair_lose(struct tdm_shm_pair *pair, int err);

/*
 * Make the pair FAILED: it uses another transport from now on. Tells the owner.
 */
void tdm_shm_pair_fail(struct tdm_shm_pair *pair, enum tdm_reason reason);

/*
 * Take the pair back to NONE: nobody listens, or (@silent) the peer closed the
 * attach without an answer. After several silent ones the pair has FAILED.
 */
void tdm_shm_pair_refused(struct tdm_shm_pair *pair, int silent);

/* Take the pair back to NONE without an event: this attach does not count. */
void tdm_shm_pair_reset(struct tdm_shm_pair *pair);

/*
 * Called when pair->sess is complete (NULL for self): sets up rings and
 * doorbell and tells the owner.
 */
void tdm_shm_pair_up(struct tdm_shm_pair *pair, uint32_t peer_slots);

/* Begin the session of the endpoint with itself, by one ring. -FI_ENOMEM. */
int tdm_shm_pair_self(struct tdm_shm_pair *pair) tdm_must_check;

/* fi_close: end all sessions of @ep without a completion, free all pairs. */
void tdm_shm_pairs_close(struct tdm_shm_ep *ep);

#endif /* TDM_SHM_PAIR_H */
