/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One operation on its way out, and one on its way in. For the files of the
 * TCP transport and nobody else. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_OPS_H
#define TDM_TCP_WIRE_OPS_H

#include <rdma/providers/fi_peer.h>

#include "base/list.h"
#include "tdm_xfer.h"

struct tdm_conn;
struct tdm_rx;

/* Where a send is; it is on the queue of its connection that is named. */
enum tdm_tx_state {
	TDM_TX_QUEUED, /* sendq: nothing of it has left */
	TDM_TX_CTS,    /* waitq: announced */
	TDM_TX_DATA,   /* dataq: wanted */
	TDM_TX_LEFT,   /* dataq: announced, and the endpoint closes */
	TDM_TX_DONE,   /* waitq: sent or asked for, waits for DONE */
	TDM_TX_ACK,    /* ackq: sent, waits for ACK */
	TDM_TX_LEAVING /* none: ends when the kernel has taken it */
};

/*
 * One send, or as initiator a write, read or atomic operation, or as target the
 * reply to a read or atomic operation. Operands are in copy from the beginning,
 * and iov is what comes back.
 */
struct tdm_tx {
	struct tdm_list node;
	void *context;
	uint64_t flags; /* of the tdm_xfer */
	uint64_t tag, data;
	uint64_t rma_addr, rma_key; /* TDM_ONE_SIDED: place at the target */
	uint64_t seq;		    /* of its last record; CTS: announced */
				    /* before it in the session */
	size_t len;		    /* bytes */
	size_t off;		    /* bytes of announced data that have left */
	size_t wanted;		    /* bytes of it the receiver asked for */
	fi_addr_t addr;
	uint32_t id, rid;  /* reply: both the initiator's */
	uint8_t state;	   /* enum tdm_tx_state */
	uint8_t ended;	   /* its entry is written, or never will be */
	uint8_t cancelled; /* CANCEL was said */
	uint8_t dead;	   /* what has not begun to leave will not */
	uint8_t count;	   /* iov elements */
	uint8_t has_id;
	uint8_t reply;	    /* not the application's */
	uint8_t slow;	    /* counted in conn->slow */
	uint8_t counted;    /* in tcp->tx_used */
	uint8_t status;	    /* of a reply, enum tdm_wire_status */
	uint16_t rx_ctx;    /* TDM_TO_CTX in flags: the target's context */
	uint32_t group;	    /* likewise: the group of the message */
	struct tdm_amo amo; /* FI_ATOMIC in flags */
	uint32_t spared;    /* not outstanding: bytes of tdm_inject_bytes */
	uint32_t operands;  /* FI_ATOMIC: bytes of them, and of the target */
	uint32_t target;
	uint32_t more_count;	 /* TDM_RANGES in flags: further ranges */
	struct fi_rma_iov *more; /* more[more_count], owned; or NULL */
	void *copy;		 /* owned payload, or NULL */
	struct tdm_rx *rx;	 /* where bytes that come back go, or NULL */
	struct fi_peer_rx_entry *entry; /* reply to a read: the region's */
	struct iovec iov[TDM_IOV_LIMIT];
};

/* The memory of @op, op->count elements: more than it holds are the entry's. */
static inline const struct iovec *tdm_tx_iov(const struct tdm_tx *op)
{
	return tdm_likely(op->count <= TDM_IOV_LIMIT) ? op->iov :
							op->entry->iov;
}

enum tdm_rx_state {
	TDM_RX_WAITING,	 /* unexpected: the entry is queued at the owner */
	TDM_RX_PLACING,	 /* matched: bytes go to the entry's buffer */
	TDM_RX_READING,	 /* bytes go to the buffer of a read of ours */
	TDM_RX_OPERANDS, /* bytes are gathered: rx_rma.c */
	TDM_RX_DROPPING, /* no entry: bytes go nowhere */
};

/* One message on its way in that could not be ended where it was parsed. */
struct tdm_rx {
	struct tdm_list node;  /* conn->rxs */
	struct tdm_list ctl;   /* conn->ctlq: CTS or DONE to be sent */
	struct tdm_conn *conn; /* lives as long as it has any tdm_rx */
	struct fi_peer_rx_entry *entry;
	uint8_t *buf;	 /* unexpected payload, owned, or NULL */
	uint64_t len;	 /* bytes of the message */
	uint64_t want;	 /* bytes that will come */
	uint64_t got;	 /* bytes that came */
	uint64_t room;	 /* bytes of the user's buffer (PLACING) */
	uint64_t charge; /* credit to give back */
	uint64_t kept;	 /* in the account without being of its credit */
	uint64_t turn;	 /* its announcement's, from 1; 0: it had none */
	uint32_t id, rid;
	uint8_t state;	   /* enum tdm_rx_state */
	uint8_t announced; /* came by RTS or AWRITE */
	uint8_t has_rid;
	uint8_t answer;	   /* enum tdm_wire_op to send: CTS, DONE or 0 */
	uint8_t done;	   /* the sender waits for DONE */
	uint8_t status;	   /* said in it, enum tdm_wire_status */
	struct tdm_tx *op; /* the read whose bytes come, or NULL */
};

/* Drop the announced @rx, which is WAITING, and say so to the sender. */
void tdm_rx_withdraw(struct tdm_rx *rx);

#endif /* TDM_TCP_WIRE_OPS_H */
