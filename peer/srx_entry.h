/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of the receive side: posted receives, and messages. Included by
 * srx*.c only. srx_state.h has the states of an entry.
 */
#ifndef TDM_PEER_SRX_ENTRY_H
#define TDM_PEER_SRX_ENTRY_H

#include <rdma/providers/fi_peer.h>

#include "peer/match.h"
#include "peer/srx_state.h"
#include "tdm_xfer.h"

enum tdm_srx_kind { TDM_SRX_MSG, TDM_SRX_TAG, TDM_SRX_KINDS };

/* The part of a receive that only vectors and multi-recv buffers need. */
struct tdm_srx_side {
	/* a vector of more than one element, or none */
	struct iovec iov[TDM_IOV_LIMIT];
	void *desc[TDM_IOV_LIMIT]; /* multi: desc[0] is that of the buffer */
	/* multi only: */
	size_t used; /* bytes that messages have taken */
	size_t min;  /* the buffer is SPENT when fewer are left */
	/* through which the message that ended last came, or NULL */
	struct fid_peer_srx *port;
	/* messages in the buffer, and users of this */
	uint32_t refs;
	int cancelled; /* 1: fi_cancel made the buffer SPENT */
};

/* The buffers of an entry. */
enum tdm_srx_form {
	TDM_SRX_PLAIN, /* no buffer or one: e->iov and e->desc */
	TDM_SRX_WIDE,  /* buffers in e->side; e->iov.iov_len is their length */
	TDM_SRX_MULTI, /* a multi-recv buffer: e->iov; the rest is in e->side */
};

/*
 * While a receive is POSTED, the item of the match queue lies in the memory of
 * those members of rx that have no value before a message is matched. iov,
 * rx.flags, rx.context and rx.count are valid in all states. So a posted
 * receive takes two cache lines.
 */
struct tdm_srx_entry {
	union {
		struct tdm_match_item item; /* POSTED */
		struct fi_peer_rx_entry rx; /* all other states */
		struct iovec iov;	    /* all states */
	};
	uint8_t state;	    /* enum tdm_srx_state */
	uint8_t kind;	    /* enum tdm_srx_kind */
	uint8_t form;	    /* enum tdm_srx_form */
	uint8_t unexpected; /* 1: part of a tdm_srx_msg */
	uint32_t from; /* spaces only: low bits of the source's match address */
	union {
		void *desc;		   /* PLAIN */
		struct tdm_srx_side *side; /* WIDE, MULTI */
	};
} __attribute__((aligned(TDM_CACHE_LINE_BYTES)));

/* An unexpected message, or a part of a multi-recv buffer. */
struct tdm_srx_msg {
	struct tdm_srx_entry e; /* first; never POSTED */
	struct tdm_match_msg match;
	struct tdm_srx_entry *parent; /* the buffer of which this is a part */
	/*
	 * CLAIMED, LOST: node in srx->claimed; rx.context is the claimer's
	 * context. WAITING: node in srx->pending, or unlinked.
	 */
	struct tdm_list link;
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

/* Returns the message whose entry is @e. */
static inline struct tdm_srx_msg *tdm_srx_msg_of(struct tdm_srx_entry *e)
{
	return tdm_container_of(e, struct tdm_srx_msg, e);
}

/* Returns the message of an arrived item. */
static inline struct tdm_srx_msg *
tdm_srx_msg_of_item(struct tdm_match_item *item)
{
	return tdm_container_of(item, struct tdm_srx_msg, match.item);
}

/* Returns the message of which @node is item.all, or is the member link. */
static inline struct tdm_srx_msg *tdm_srx_msg_of_all(struct tdm_list *node)
{
	return tdm_container_of(node, struct tdm_srx_msg, match.item.all);
}

static inline struct tdm_srx_msg *tdm_srx_msg_of_link(struct tdm_list *node)
{
	return tdm_container_of(node, struct tdm_srx_msg, link);
}

/*
 * Called when the PLAIN entry @e is no longer POSTED and is off its queue:
 * fills in the members of rx that fi_peer(3) demands, except srx, addr,
 * msg_size and tag, which the caller sets.
 */
static inline void tdm_srx_entry_show(struct tdm_srx_entry *e)
{
	e->rx.cq_data = 0;
	e->rx.peer_context = NULL;
	e->rx.owner_context = NULL;
	e->rx.iov = &e->iov;
	e->rx.desc = &e->desc;
}

#endif /* TDM_PEER_SRX_ENTRY_H */
