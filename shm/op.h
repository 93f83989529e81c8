/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations under way between two endpoints. An op is a send that has not
 * ended, a pull a matched receive whose bytes are being fetched, an unexp a
 * message that arrived before its receive; a ctl is a control record that
 * waits for a slot, and lies inside of what it belongs to.
 */
#ifndef TDM_SHM_OP_H
#define TDM_SHM_OP_H

#include <rdma/providers/fi_peer.h>

#include "shm/record.h"
#include "base/list.h"
#include "tdm_place.h"
#include "tdm_xfer.h"

struct tdm_shm_domain;
struct tdm_shm_ep;
struct tdm_shm_pair;

/* The fate of a control record's memory once it is in the ring. */
enum tdm_shm_ctl_kind {
	TDM_SHM_CTL_KEEP,   /* the holder needs it still */
	TDM_SHM_CTL_ALONE,  /* from ep->ctls */
	TDM_SHM_CTL_PULL,   /* first member of a pull that has ended */
	TDM_SHM_CTL_UNEXP,  /* first member of an unexp that has ended */
	TDM_SHM_CTL_SERVE,  /* first member of a serve that has ended */
	TDM_SHM_CTL_RESULT, /* of an atomic operation: amo.c */
};

/* A control record on its way; embedded, so that waiting cannot fail. */
struct tdm_shm_ctl {
	struct tdm_list node; /* pair->ctl */
	uint8_t op;	      /* enum tdm_shm_rec_op */
	uint8_t kind;	      /* enum tdm_shm_ctl_kind */
	uint16_t aux;
	uint64_t tag;
	struct tdm_shm_pull_body body; /* op PULL */
};

/*
 * A send, write, read or atomic operation that has not ended. Lives in ep->ops,
 * found by id, and keeps its index and gen while it is free; or in a struct
 * tdm_shm_serve.
 */
struct tdm_shm_op {
	struct tdm_list node;	   /* pair->ops, or ep->op_free */
	struct tdm_list feed;	   /* pair->feeds while chunks are sent */
	struct tdm_shm_pair *pair; /* NULL: free */
	void *context;
	uint64_t flags; /* of the tdm_xfer */
	uint64_t len;	/* bytes; 0 for a delivered eager message */
	uint64_t bytes; /* of payload, whatever way it goes */
	uint32_t gen;	/* upper half of the id */
	uint32_t index; /* in ep->ops */
	uint32_t count;
	struct iovec iov[TDM_IOV_LIMIT];
	uint64_t at;   /* next byte to feed */
	uint64_t end;  /* end of the range asked for; 0: no PULL yet */
	void *copy;    /* payload of an inject, or NULL */
	int must;      /* 0: feeding is a help, the receiver reads too */
	int told;      /* 1: its completion was written */
	int cancelled; /* 1: FAIL asks the peer to drop it */
	int slow;      /* 1: counted in pair->slow */
	int announced; /* 1: counted in pair->announced */
	int step;      /* what fetches: enum tdm_shm_read_step */
	int err;       /* reads: what came of the pull, positive errno */
};

/* Does the sender of an announced transfer copy too? */
enum tdm_shm_help {
	TDM_SHM_HELP_NONE,  /* it was not asked */
	TDM_SHM_HELP_ASKED, /* a first chunk is waited for, for a moment */
	TDM_SHM_HELP_KNOWN, /* that moment is over, or a chunk came */
};

/*
 * An announced transfer, from RTS to ACK. Chunks fill it from the front, reads
 * of the sender's memory from the back; it is complete when they meet.
 */
struct tdm_shm_pull {
	struct tdm_shm_ctl ctl; /* its PULL, then its ACK; first member */
	struct tdm_list node;	/* pair->pulls once matched */
	struct tdm_shm_pair *pair;
	struct fi_peer_rx_entry *entry; /* NULL for the bytes of a read */
	struct tdm_shm_op *op;		/* this read of ours, or NULL */
	const struct iovec *iov;	/* of entry or op */
	size_t count;
	struct tdm_shm_rts rts; /* as validated */
	uint64_t want;		/* bytes: what fits the receive */
	uint64_t done;		/* bytes that came from the front, in chunks */
	uint64_t tail;		/* bytes from here on were read */
	uint64_t from;		/* the slice being read, [from, end), */
	uint64_t at;		/* and how far it got */
	uint64_t end;
	uint64_t asked; /* ns, when help was asked for */
	int copy;	/* 1: by chunks only */
	int help;	/* enum tdm_shm_help */
	int refused;	/* 1: the region was closed, bytes go nowhere */
	/* A write: its last bytes, placed when all others are (tdm_place.h). */
	uint32_t last;
	uint8_t line[TDM_LINE_BYTES];
};

/* A message that arrived before its receive; entry->peer_context. */
struct tdm_shm_unexp {
	struct tdm_shm_ctl ctl; /* its ACK; first member */
	struct tdm_list node;	/* ep->unexps */
	struct tdm_shm_ep *ep;	/* NULL: the endpoint is gone */
	struct tdm_shm_domain *domain;
	struct tdm_shm_pair *pair;
	struct tdm_shm_pull *pull;	/* announced message, else NULL */
	struct fi_peer_rx_entry *entry; /* of an announced message */
	uint32_t epoch;			/* pair->epoch at arrival */
	uint8_t pool;			/* of domain->unexp; else from malloc */
	uint8_t deliver;		/* 1: ctl.tag wants an ACK */
	uint32_t charge;		/* of pair->unexp_bytes */
	size_t len;
	uint8_t data[];
};

/* The memory charged for an operation with a copy of @len bytes. */
static inline size_t tdm_shm_copy_bytes(size_t len)
{
	return sizeof(struct tdm_shm_op) + len;
}

/* ---- op.c; lock: domain held --------------------------------------------- */

/*
 * A new operation for @x. NULL: out of memory, or as many one-sided ones as
 * tx_size says are under way. Messages are not counted: each is in the ring by
 * now, and may wait there until its receive is posted.
 */
struct tdm_shm_op *tdm_shm_op_new(struct tdm_shm_pair *pair,
				  const struct tdm_xfer *x);

/*
 * The bytes of @x, an inject that the peer takes no payload of now, become those
 * of @op, and @x is changed to name them. Errors: -FI_ENOMEM.
 */
int tdm_shm_op_own(struct tdm_shm_op *op, struct tdm_xfer *x) tdm_must_check;

/* @op, which is one-sided and has begun, is slow: include/tdm_order.h. */
void tdm_shm_op_slow(struct tdm_shm_op *op);

/*
 * Not 0, after one step of progress, while slow operations precede what @flags
 * say, an operation or a message.
 */
int tdm_shm_op_held(struct tdm_shm_pair *pair, uint64_t flags);

/* Free the memory of all operations of @ep, none of which is under way. */
void tdm_shm_ops_free(struct tdm_shm_ep *ep);

/* The operation @id of @pair, or NULL when it is none of its own. */
struct tdm_shm_op *tdm_shm_op_find(struct tdm_shm_pair *pair, uint64_t id);

/* The id by which the peer names @op, which is under way. */
uint64_t tdm_shm_op_id(const struct tdm_shm_op *op);

/* The address that the owner reports for the peer of @pair. */
fi_addr_t tdm_shm_op_peer(const struct tdm_shm_pair *pair);

/* End @op: positive errno @err or 0. */
void tdm_shm_op_end(struct tdm_shm_op *op, int err);

/* Give @op back without a completion; nothing refers to it by then. */
void tdm_shm_op_free(struct tdm_shm_ep *ep, struct tdm_shm_op *op);

/*
 * The address of @pair was removed: sends to it end with FI_ECONNABORTED, but
 * for those whose bytes are leaving. The peer may still name them.
 */
void tdm_shm_op_forget(struct tdm_shm_pair *pair);

/*
 * fi_cancel(3) of an announced send: the peer's ACK will say whether it was in
 * time. Returns 0, -FI_ENOENT, or -FI_EAGAIN without memory.
 */
int tdm_shm_op_cancel(struct tdm_shm_ep *ep, const void *context);

/* An ACK arrived. Returns 0, or -1: no such operation. */
int tdm_shm_op_ack(struct tdm_shm_pair *pair, uint64_t id, unsigned status);

#endif /* TDM_SHM_OP_H */
