/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the receive side. Included by srx*.c only. srx_entry.h has the
 * entries, srx_state.h their states.
 */
#ifndef TDM_PEER_SRX_PRIV_H
#define TDM_PEER_SRX_PRIV_H

#include "base/pool.h"
#include "peer/srx.h"
#include "peer/srx_entry.h"
#include "peer/srx_port.h"
#include "tdm_held.h"

struct tdm_srx {
	struct tdm_srx_port port[TDM_TRANSPORTS];
	struct tdm_match *match[TDM_SRX_KINDS];
	struct tdm_engine *engine;
	void (*free_rma)(struct fi_peer_rx_entry *entry);
	fi_addr_t any[TDM_SRX_KINDS]; /* FI_ADDR_UNSPEC: sources are ignored */
	int spaces, flushed; /* flushed: 1: nothing is reported any more */
	int settling; /* 1: tdm_srx_settle() runs: new messages are queued */
	size_t size;
	size_t min_multi_recv; /* bytes, for receives posted from now on */
	struct tdm_held held;  /* account of unexpected messages */
	/* of posted receives, or NULL: srx_cancel.c */
	struct tdm_srx_index *index;
	uint64_t looked_at; /* receives that fi_cancel has compared */
	struct tdm_done done;
	struct tdm_pool pool;	 /* struct tdm_srx_entry */
	struct tdm_pool msgs;	 /* struct tdm_srx_msg */
	struct tdm_pool sides;	 /* struct tdm_srx_side */
	struct tdm_list seats;	 /* struct tdm_srx_seat, oldest first */
	struct tdm_list claimed; /* oldest first */
	struct tdm_list pending; /* WAITING, for tdm_srx_settle() */
	struct tdm_list watches; /* struct tdm_srx_watch */
	uint32_t (*key_of)(void *arg, fi_addr_t addr);
	void *key_arg;
};

/* Returns the source that completions by @done report for @addr. */
static inline fi_addr_t tdm_srx_reported(const struct tdm_done *done,
					 fi_addr_t addr)
{
	return tdm_unlikely(done->user_ids != NULL) ?
		       tdm_user_id(done->user_ids, addr) :
		       addr;
}

/*
 * Returns the source from which the receive @x takes messages; any source, if
 * receives of @kind ignore it.
 */
static inline fi_addr_t tdm_srx_source(const struct tdm_srx *srx,
				       enum tdm_srx_kind kind,
				       const struct tdm_xfer *x)
{
	return x->addr | srx->any[kind]; /* FI_ADDR_UNSPEC has all bits set */
}

/* Free @e, which must have neither a side nor an unexpected message. */
static inline void tdm_srx_entry_put(struct tdm_srx *srx,
				     struct tdm_srx_entry *e)
{
	tdm_srx_step(&e->state, TDM_SRX_FREE);
	tdm_pool_free(&srx->pool, e);
}

/* srx.c */

/* Allocates a message without buffers and state. NULL: out of memory. */
struct tdm_srx_msg *tdm_srx_msg_alloc(struct tdm_srx *srx,
				      enum tdm_srx_kind kind);

/* Free @e, an entry of any form; also its message, if it is part of one. */
void tdm_srx_entry_free(struct tdm_srx *srx, struct tdm_srx_entry *e);

/*
 * As tdm_srx_entry_show() for an entry of any form that was POSTED: addr and
 * tag are those of the receive, and srx is NULL.
 */
void tdm_srx_entry_unpost(struct tdm_srx *srx, struct tdm_srx_entry *e);

/*
 * Give @msg the buffers, context and flags of @x; keeps FI_REMOTE_CQ_DATA.
 * Errors: -FI_ENOMEM; @msg is unchanged then.
 */
int tdm_srx_msg_fill(struct tdm_srx *srx, struct tdm_srx_msg *msg,
		     const struct tdm_xfer *x) tdm_must_check;

/*
 * Take @msg, which is WAITING, off the queues. The caller must then give it
 * another state.
 */
void tdm_srx_take(struct tdm_srx *srx, struct tdm_srx_msg *msg);

/*
 * Tell the transport of @msg to deliver it. @msg must have buffers and be off
 * all queues.
 */
void tdm_srx_start(struct tdm_srx_msg *msg);

/*
 * Tell the transport of @msg to discard it, and free it. @msg must be off all
 * queues.
 */
void tdm_srx_discard(struct tdm_srx *srx, struct tdm_srx_msg *msg);

/*
 * Let the POSTED receive @rx take the WAITING message @msg, and start its
 * delivery.
 */
void tdm_srx_join(struct tdm_srx *srx, struct tdm_srx_entry *rx,
		  struct tdm_srx_msg *msg);

/*
 * Post the receive @x, which may have several elements or FI_MULTI_RECV. Out:
 * *@e, POSTED. Errors: -FI_ENOMEM.
 */
int tdm_srx_post(struct tdm_srx *srx, const struct tdm_xfer *x,
		 enum tdm_srx_kind kind,
		 struct tdm_srx_entry **e) tdm_must_check;

/*
 * Let the receive @x, which has one vector of buffers, take the waiting message
 * @item; post it if @item is NULL. Returns as tdm_srx_recv().
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

/* srx_source.c: called before @e is filled with a message of unknown source. */
void tdm_srx_miss_source(struct tdm_srx_entry *e);

/* srx_watch.c: call changed() of all observers for @msg. */
void tdm_srx_tell(struct tdm_srx *srx, const struct tdm_srx_msg *msg,
		  int matched);

/* srx_multi.c */

/*
 * Post a multi-recv buffer and let the messages that wait fill it. Returns as
 * tdm_srx_recv().
 */
ssize_t tdm_srx_multi_recv(struct tdm_srx *srx, const struct tdm_xfer *x,
			   enum tdm_srx_kind kind);

/*
 * Give the message @child, of @size bytes, its part of the POSTED buffer
 * @parent: the buffer (smaller than @size when the message has to be truncated)
 * and a reference on @parent, which may be SPENT afterwards.
 */
void tdm_srx_multi_take(struct tdm_srx *srx, struct tdm_srx_entry *parent,
			struct tdm_srx_msg *child, size_t size);

/*
 * Drop a reference on @parent. Dropping the last one of a SPENT buffer releases
 * it.
 */
void tdm_srx_multi_put(struct tdm_srx *srx, struct tdm_srx_entry *parent);

/* srx_peek.c: tdm_srx_recv() with FI_PEEK, FI_CLAIM or FI_DISCARD. */
ssize_t tdm_srx_peek(struct tdm_srx *srx, const struct tdm_xfer *x,
		     enum tdm_srx_kind kind);

#endif /* TDM_PEER_SRX_PRIV_H */
