/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the receive side. Included by srx*.c only. srx_state.h has the
 * states of an entry.
 */
#ifndef TDM_PEER_SRX_PRIV_H
#define TDM_PEER_SRX_PRIV_H

#include "base/pool.h"
#include "peer/match.h"
#include "peer/srx.h"
#include "peer/srx_port.h"
#include "peer/srx_state.h"
#include "tdm_held.h"

enum tdm_srx_kind { TDM_SRX_MSG, TDM_SRX_TAG, TDM_SRX_KINDS };

enum { TDM_SRX_KEPT = 4 }; /* vector elements inside an entry */

/* In rx.flags of an entry: rx.iov was allocated, for more elements. */
#define TDM_SRX_WIDE (1ULL << 58)

struct tdm_srx_entry {
	struct tdm_match_item item; /* first: searches read it */
	struct fi_peer_rx_entry rx;
	size_t len;	   /* bytes of the receive's buffers */
	uint8_t state;	   /* enum tdm_srx_state; tdm_srx_step() */
	uint8_t kind;	   /* enum tdm_srx_kind */
	uint8_t multi;	   /* a multi-recv buffer */
	uint8_t cancelled; /* 1: SPENT because of fi_cancel */
	uint32_t refs;	   /* multi: its messages, and users */
	struct iovec iov[TDM_SRX_KEPT];
	void *desc[TDM_SRX_KEPT];
	struct tdm_srx_entry *parent; /* the buffer this is a part of */
	uint64_t post_no;	      /* order over both kinds */
	size_t used;		      /* multi: bytes given to messages */
	size_t min;		      /* multi: spent when less is left */
	/*
	 * CLAIMED, LOST: on srx->claimed; rx.context is the claimer's context.
	 * WAITING: on srx->pending, or unlinked.
	 */
	struct tdm_list link;
} __attribute__((aligned(TDM_CACHE_LINE_BYTES)));

struct tdm_srx {
	struct tdm_srx_port port[TDM_TRANSPORTS];
	struct tdm_match *match[TDM_SRX_KINDS];
	struct tdm_engine *engine;
	void (*free_rma)(struct fi_peer_rx_entry *entry);
	fi_addr_t any[TDM_SRX_KINDS]; /* FI_ADDR_UNSPEC: sources are ignored */
	int spaces, flushed; /* flushed: 1: nothing is reported any more */
	int settling;	     /* 1: tdm_srx_settle() runs: new messages queue */
	size_t size;
	size_t min_multi_recv; /* bytes, for receives posted from now on */
	struct tdm_held held;  /* account of unexpected messages */
	uint64_t next_post_no;
	struct tdm_srx_index *index; /* of posted ones, or NULL: srx_cancel.c */
	uint64_t looked_at;	     /* compared by fi_cancel */
	struct tdm_done done;
	struct tdm_pool pool;	 /* struct tdm_srx_entry */
	struct tdm_list seats;	 /* struct tdm_srx_seat, oldest first */
	struct tdm_list claimed; /* oldest first */
	struct tdm_list pending; /* WAITING, for tdm_srx_settle() */
	uint32_t (*key_of)(void *arg, fi_addr_t addr);
	void *key_arg;
};

static inline struct tdm_srx_entry *
tdm_srx_entry_of_item(struct tdm_match_item *item)
{
	return tdm_container_of(item, struct tdm_srx_entry, item);
}

static inline struct tdm_srx_entry *
tdm_srx_entry_of_rx(struct fi_peer_rx_entry *rx)
{
	return tdm_container_of(rx, struct tdm_srx_entry, rx);
}

/* The source that completions by @done report for @addr. */
static inline fi_addr_t tdm_srx_reported(const struct tdm_done *done,
					 fi_addr_t addr)
{
	return tdm_unlikely(done->ids != NULL) ? tdm_id(done->ids, addr) : addr;
}

/* The source that the receive @x names; any, if its kind ignores sources. */
static inline fi_addr_t tdm_srx_source(const struct tdm_srx *srx,
				       enum tdm_srx_kind kind,
				       const struct tdm_xfer *x)
{
	return x->addr | srx->any[kind]; /* FI_ADDR_UNSPEC has all bits set */
}

/* Free @e, which is not wide. */
static inline void tdm_srx_entry_put(struct tdm_srx *srx,
				     struct tdm_srx_entry *e)
{
	tdm_srx_step(&e->state, TDM_SRX_FREE);
	tdm_pool_free(&srx->pool, e);
}

/* srx.c */

/* A new entry without buffers and state; NULL: no memory. */
struct tdm_srx_entry *tdm_srx_entry_alloc(struct tdm_srx *srx,
					  enum tdm_srx_kind kind);

void tdm_srx_entry_free(struct tdm_srx *srx, struct tdm_srx_entry *e);

/* Make room in @e for @count elements. Errors: -FI_ENOMEM, @e is as it was. */
int tdm_srx_entry_widen(struct tdm_srx_entry *e, size_t count) tdm_must_check;

/*
 * Give @e, which has room for them, the buffers, context and flags of @x. Keeps
 * FI_REMOTE_CQ_DATA.
 */
void tdm_srx_entry_fill(struct tdm_srx_entry *e, const struct tdm_xfer *x);

/* Take a WAITING entry off the queues; the caller gives it a new state. */
void tdm_srx_take(struct tdm_srx *srx, struct tdm_srx_entry *e);

/* Have its transport fill @e, which has buffers and is off all queues. */
void tdm_srx_start(struct tdm_srx_entry *e);

/* Have its transport drop the message of @e, off all queues; free @e. */
void tdm_srx_discard(struct tdm_srx *srx, struct tdm_srx_entry *e);

/* Give the WAITING entry @msg to the POSTED entry @rx and start it. */
void tdm_srx_join(struct tdm_srx *srx, struct tdm_srx_entry *rx,
		  struct tdm_srx_entry *msg);

/* Post a filled entry as the receive @x. */
void tdm_srx_post(struct tdm_srx *srx, struct tdm_srx_entry *e,
		  const struct tdm_xfer *x);

/*
 * The receive @x, of one buffer vector, takes the waiting message @item, or is
 * posted (@item NULL). Returns as tdm_srx_recv().
 */
ssize_t tdm_srx_meet(struct tdm_srx *srx, const struct tdm_xfer *x,
		     enum tdm_srx_kind kind, struct tdm_match_item *item);

/* Match srx->pending against posted receives, in arrival order. */
void tdm_srx_settle_pending(struct tdm_srx *srx);
static inline void tdm_srx_settle(struct tdm_srx *srx)
{
	if (!srx->settling && !tdm_list_empty(&srx->pending))
		tdm_srx_settle_pending(srx);
}

/* srx_source.c: the source of @e, which is about to be filled, is unknown. */
void tdm_srx_miss_source(struct tdm_srx_entry *e);

/* srx_multi.c */

/* Post a multi-recv buffer and fill it from what waits. As tdm_srx_recv(). */
ssize_t tdm_srx_multi_recv(struct tdm_srx *srx, const struct tdm_xfer *x,
			   enum tdm_srx_kind kind);

/*
 * Give a message of @size bytes its part of @parent, which is POSTED: @child
 * gets the buffer (less than @size when the message has to be truncated) and a
 * reference on @parent, which may be SPENT afterwards.
 */
void tdm_srx_multi_take(struct tdm_srx *srx, struct tdm_srx_entry *parent,
			struct tdm_srx_entry *child, size_t size);

/* Drop a reference; the last one of a SPENT buffer releases it. */
void tdm_srx_multi_put(struct tdm_srx *srx, struct tdm_srx_entry *parent);

/* srx_peek.c: tdm_srx_recv() with FI_PEEK, FI_CLAIM or FI_DISCARD. */
ssize_t tdm_srx_peek(struct tdm_srx *srx, const struct tdm_xfer *x,
		     enum tdm_srx_kind kind);

#endif /* TDM_PEER_SRX_PRIV_H */
