/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tdm_tx is an operation being sent, a tdm_rx one being received. For the
 * files of the TCP transport only. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_OPERATION_H
#define TDM_TCP_WIRE_OPERATION_H

#include <assert.h>

#include <rdma/providers/fi_peer.h>

#include "base/list.h"
#include "tcp/wire/rx_state.h"
#include "tdm_xfer.h"

struct tdm_conn;
struct tdm_rx;

/*
 * The state of a send, and the queue of its connection that it is on.
 *
 *   QUEUED --- payload in the message -------------------> settled
 *    |-------- read, atomic operation: asked for --------> DONE
 *    +-------- announced --> CTS --- CTS came --> DATA --> settled
 *                             +----- close ----> LEFT ---> DONE
 *
 * settled, after its last byte: DONE if the peer answers by DONE, LEAVING if
 * nobody waits for it, else ACK. A reply begins as DATA. When the peer is given
 * up, the one whose bytes are being written becomes LEAVING. An operation may
 * end in any state.
 */
enum tdm_tx_state {
	TDM_TX_QUEUED, /* sendq: no byte has been sent */
	TDM_TX_CTS,    /* waitq: announced, waits for CTS */
	TDM_TX_DATA,   /* dataq: CTS came */
	TDM_TX_LEFT,   /* dataq: announced, and the endpoint closes */
	TDM_TX_DONE,   /* waitq: sent or requested, waits for DONE */
	TDM_TX_ACK,    /* ackq: sent, waits for ACK */
	TDM_TX_LEAVING /* no queue: ends when the kernel has taken its bytes */
};

/*
 * A send; or, at the initiator, a write, read or atomic operation; or, at the
 * target, the reply to a read or atomic operation. For an atomic operation,
 * copy has the operands from the start, and iov is where its results go.
 */
struct tdm_tx {
	struct tdm_list node;
	void *context;
	uint64_t flags; /* of the tdm_xfer */
	uint64_t tag, data;
	uint64_t rma_addr, rma_key; /* TDM_ONE_SIDED: place at the target */
	/* number of its last record; in CTS: announcements before it */
	uint64_t seq;
	size_t len;    /* bytes */
	size_t off;    /* bytes of announced data already sent */
	size_t wanted; /* bytes that the receiver asked for */
	fi_addr_t addr;
	uint32_t id, rid;  /* in a reply: both are the initiator's */
	uint8_t state;	   /* enum tdm_tx_state */
	uint8_t ended;	   /* 1: its entry was written, or none will be */
	uint8_t cancelled; /* CANCEL was sent */
	uint8_t dead;	   /* 1: no further byte of it may be sent */
	uint8_t count;	   /* iov elements */
	uint8_t has_id;
	/* 1: a reply to the peer; more: one that stays, keep.c */
	uint8_t reply;
	uint8_t slow;	    /* counted in busy->slow */
	uint32_t lent;	    /* pieces that refer to it: keep.h */
	uint8_t counted;    /* in tcp->tx_used */
	uint8_t status;	    /* of a reply, enum tdm_wire_status */
	uint16_t rx_ctx;    /* TDM_TO_CTX in flags: the target's context */
	uint32_t group;	    /* likewise: the group of the message */
	struct tdm_amo amo; /* FI_ATOMIC in flags */
	/*
	 * bytes counted in tdm_inject_bytes; if not 0, it does not count as
	 * outstanding
	 */
	uint32_t spared;
	/* FI_ATOMIC: bytes of the operands, and bytes at the target */
	uint32_t operands;
	uint32_t target;
	uint32_t more_count;	 /* TDM_RANGES in flags: further ranges */
	struct fi_rma_iov *more; /* more[more_count], owned; or NULL */
	void *copy;		 /* owned payload, or NULL */
	struct tdm_rx *rx;	 /* for the bytes that come back, or NULL */
	struct fi_peer_rx_entry *entry; /* reply to a read: the region's */
	struct iovec iov[TDM_IOV_LIMIT];
};

/* Not 0 when an operation may go from state @from to @to. */
static inline int tdm_tx_may_step(enum tdm_tx_state from, enum tdm_tx_state to)
{
	/* The states that may follow, by state, in the order of the enum. */
	static const uint8_t next[] = {
		/* QUEUED */ 1 << TDM_TX_CTS | 1 << TDM_TX_DONE |
			1 << TDM_TX_ACK | 1 << TDM_TX_LEAVING,
		/* CTS */ 1 << TDM_TX_DATA | 1 << TDM_TX_LEFT,
		/* DATA */ 1 << TDM_TX_DONE | 1 << TDM_TX_ACK |
			1 << TDM_TX_LEAVING,
		/* LEFT */ 1 << TDM_TX_DONE,
		/* DONE */ 0,
		/* ACK */ 1 << TDM_TX_LEAVING,
		/* LEAVING */ 0,
	};

	return next[from] >> to & 1;
}

/* Change the state of @op to @state. The step must be legal (asserted). */
static inline void tdm_tx_set_state(struct tdm_tx *op, enum tdm_tx_state state)
{
	assert(tdm_tx_may_step((enum tdm_tx_state)op->state, state));
	op->state = (uint8_t)state;
}

/*
 * Returns the op->count buffers of @op: those of its entry if they are too many
 * for iov.
 */
static inline const struct iovec *tdm_tx_iov(const struct tdm_tx *op)
{
	return tdm_likely(op->count <= TDM_IOV_LIMIT) ? op->iov :
							op->entry->iov;
}

/* A message being received that could not be completed where it was parsed. */
struct tdm_rx {
	struct tdm_list node;  /* busy->rxs */
	struct tdm_list ctl;   /* busy->ctlq: CTS or DONE to be sent */
	struct tdm_conn *conn; /* stays allocated while it has any tdm_rx */
	struct fi_peer_rx_entry *entry;
	uint8_t *buf;	 /* unexpected payload, owned, or NULL */
	uint64_t len;	 /* bytes of the message */
	uint64_t want;	 /* bytes expected */
	uint64_t got;	 /* bytes received */
	uint64_t room;	 /* bytes of the user's buffer (PLACING) */
	uint64_t charge; /* credit to give back */
	/* bytes in held->bytes (credit.c) that no credit of the session covers */
	uint64_t kept;
	/* number of its announcement, from 1; 0: not announced */
	uint64_t turn;
	uint32_t id, rid;
	uint32_t buf_bytes; /* of buf if it is from tdm_spares_take(), else 0 */
	uint8_t state;	    /* enum tdm_rx_state */
	uint8_t announced;  /* came by RTS or AWRITE */
	uint8_t has_rid;
	uint8_t answer;	    /* enum tdm_wire_op to send: CTS, DONE or 0 */
	uint8_t wants_done; /* the sender waits for DONE */
	uint8_t lingers;    /* which may wait for a reply: prompt.h */
	uint8_t waited;	    /* it has waited for its receive */
	uint8_t status;	    /* in the DONE, enum tdm_wire_status */
	/* the read of this process for which it receives, or NULL */
	struct tdm_tx *op;
};

/*
 * Discard all further bytes of @rx. Returns its receive entry, which the caller
 * must free, or NULL if it has none.
 */
static inline struct fi_peer_rx_entry *tdm_rx_stop(struct tdm_rx *rx)
{
	struct fi_peer_rx_entry *entry = rx->entry;

	rx->entry = NULL;
	if (rx->state != TDM_RX_DROPPING)
		tdm_rx_step(&rx->state, TDM_RX_DROPPING);
	return entry;
}

/* rx_msg.c: drop the announced @rx, which is WAITING, and tell the sender. */
void tdm_rx_withdraw(struct tdm_rx *rx);

#endif /* TDM_TCP_WIRE_OPERATION_H */
