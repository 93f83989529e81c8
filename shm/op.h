/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations under way between two endpoints. An *op* is a send, or a one-sided
 * operation, that has not ended; a *pull* a matched receive whose bytes are
 * being fetched; an *unexp* a message that arrived before its receive; a *ctl*
 * a control record that waits for a slot, embedded in one of these.
 */
#ifndef TDM_SHM_OP_H
#define TDM_SHM_OP_H

#include <rdma/providers/fi_peer.h>

#include "base/list.h"
#include "shm/record.h"
#include "shm/way.h"
#include "tdm_place.h"
#include "tdm_xfer.h"

struct tdm_shm_domain;
struct tdm_shm_ep;
struct tdm_shm_pair;

/* The fate of a control record's memory once the record is in the ring. */
enum tdm_shm_ctl_kind {
	TDM_SHM_CTL_KEEP,   /* stays in use */
	TDM_SHM_CTL_ALONE,  /* free it to ep->ctls */
	TDM_SHM_CTL_PULL,   /* first member of a pull that has ended */
	TDM_SHM_CTL_UNEXP,  /* first member of an unexp that has ended */
	TDM_SHM_CTL_SERVE,  /* first member of a serve that has ended */
	TDM_SHM_CTL_RESULT, /* of an atomic operation: amo.c */
};

/*
 * A control record that waits for a slot. It is embedded in the object it
 * belongs to, so that waiting needs no memory.
 */
struct tdm_shm_ctl {
	struct tdm_list node; /* pair->ctl */
	uint8_t op;	      /* enum tdm_shm_rec_op */
	uint8_t kind;	      /* enum tdm_shm_ctl_kind */
	uint16_t aux;
	uint64_t tag;
	struct tdm_shm_pull_body body; /* op PULL */
};

/*
 * A send, write, read or atomic operation that has not ended. It is an element
 * of ep->op_slab, found by its id, and keeps its index and gen while it is
 * free; or it is part of a struct tdm_shm_serve.
 */
struct tdm_shm_op {
	struct tdm_list node;	   /* pair->pending, or ep->op_free */
	struct tdm_list feed;	   /* pair->feeds while chunks are sent */
	struct tdm_shm_pair *pair; /* NULL: free */
	void *context;
	uint64_t flags; /* of the tdm_xfer */
	uint64_t len;	/* bytes; 0 for a delivered eager message */
	uint64_t bytes; /* payload, in the ring or fetched */
	uint32_t gen;	/* upper half of the id */
	uint32_t index; /* in ep->op_slab */
	uint32_t count;
	struct iovec iov[TDM_IOV_LIMIT];
	uint64_t at;  /* next byte to send in chunks */
	uint64_t end; /* end of the range in the PULL; 0: no PULL yet */
	void *copy;   /* payload of an inject, or NULL */
	/* 1: the peer can only get chunks; 0: it also reads, chunks help */
	int must;
	int told;      /* 1: its completion was written */
	int cancelled; /* 1: cancelled: FAIL with aux 1 was sent for it */
	int slow;      /* 1: counted in pair->slow */
	int announced; /* 1: counted in pair->announced */
	int step;      /* reads: enum tdm_shm_read_step */
	int err;       /* reads: result of the pull, positive errno */
};

/* Whether the sender of an announced transfer helps by sending chunks. */
enum tdm_shm_help {
	TDM_SHM_HELP_NONE, /* not asked */
	/* asked; the pull waits a moment for the first chunk */
	TDM_SHM_HELP_ASKED,
	TDM_SHM_HELP_KNOWN, /* a chunk came, or none within that moment */
};

/*
 * An announced transfer at its receiving side, from RTS to ACK. Chunks fill it
 * from the front, reads of the sender's memory from the back; it is complete
 * when they meet.
 */
struct tdm_shm_pull {
	struct tdm_shm_ctl ctl; /* the PULL, then the ACK; first member */
	struct tdm_list node;	/* pair->pulls once matched */
	struct tdm_shm_pair *pair;
	struct fi_peer_rx_entry *entry; /* NULL for the bytes of a read */
	/* the read of this process for which it fetches, or NULL */
	struct tdm_shm_op *op;
	const struct iovec *iov; /* of entry or op */
	size_t count;
	struct tdm_shm_rts rts; /* as validated */
	/* number of its RTS_MSG or RTS_TAG in the session; 0: another record */
	uint64_t turn;
	uint64_t want;	 /* bytes: what fits the receive */
	uint64_t placed; /* bytes placed from the front, by chunks */
	/* bytes from here to the end are read */
	uint64_t tail;
	uint64_t from; /* the slice being read is [from, end); */
	uint64_t at;   /* next byte of it */
	uint64_t end;
	uint64_t started; /* ns, when the receive was matched */
	enum tdm_shm_way way;
	int copy;    /* 1: chunks only */
	int help;    /* enum tdm_shm_help */
	int refused; /* 1: the region was closed, bytes are dropped */
	/* A write: the bytes that are placed last (tdm_place.h). */
	uint32_t last;
	uint8_t line[TDM_LINE_BYTES];
};

/* A message that arrived before its receive; entry->peer_context is this. */
struct tdm_shm_unexp {
	struct tdm_shm_ctl ctl; /* the ACK; first member */
	struct tdm_list node;	/* ep->unexps */
	struct tdm_shm_ep *ep;	/* NULL: the endpoint is gone */
	struct tdm_shm_domain *domain;
	struct tdm_shm_pair *pair;
	struct tdm_shm_pull *pull;	/* announced message, else NULL */
	struct fi_peer_rx_entry *entry; /* of an announced message */
	uint32_t epoch;			/* pair->epoch at arrival */
	uint8_t pool;			/* of domain->unexp; else from malloc */
	/* 1: the sender wants an ACK with id ctl.tag */
	uint8_t deliver;
	uint32_t charge; /* its part of pair->unexp_bytes */
	size_t len;
	uint8_t data[];
};

/* ---- op.c; lock: domain held --------------------------------------------- */

/*
 * Allocates an operation for @x. NULL: out of memory, or tx_size one-sided
 * operations are under way. Messages do not count: an announced one may wait at
 * the peer until its receive is posted.
 */
struct tdm_shm_op *tdm_shm_op_new(struct tdm_shm_pair *pair,
				  const struct tdm_xfer *x);

/*
 * Copy the payload of @x, an inject whose payload the peer does not accept now,
 * to @op, and let @x point to the copy. Errors: -FI_ENOMEM.
 */
int tdm_shm_op_own(struct tdm_shm_op *op, struct tdm_xfer *x) tdm_must_check;

/* Count @op, a one-sided operation that has begun, as slow: tdm_order.h. */
void tdm_shm_op_slow(struct tdm_shm_op *op);

/*
 * Not 0 when an operation or message with @flags must wait for slow operations;
 * makes one step of progress in that case.
 */
int tdm_shm_op_held(struct tdm_shm_pair *pair, uint64_t flags);

/* Free the memory of all operations of @ep, none of which is under way. */
void tdm_shm_op_fini(struct tdm_shm_ep *ep);

/* Returns the operation of @pair with id @id, or NULL: there is none. */
struct tdm_shm_op *tdm_shm_op_find(struct tdm_shm_pair *pair, uint64_t id);

/* Returns the id by which the peer names @op, which is under way. */
uint64_t tdm_shm_op_id(const struct tdm_shm_op *op);

/* Returns the address that the owner reports for the peer of @pair. */
fi_addr_t tdm_shm_op_peer(const struct tdm_shm_pair *pair);

/* End @op and report it: @err is a positive errno, or 0. */
void tdm_shm_op_end(struct tdm_shm_op *op, int err);

/* Free @op without a completion. Nothing may refer to it any more. */
void tdm_shm_op_free(struct tdm_shm_ep *ep, struct tdm_shm_op *op);

/*
 * Called when the address of @pair was removed: reports sends to it as failed
 * with FI_ECONNABORTED, except those whose bytes are being transferred. The
 * operations stay in ep->op_slab, since the peer may still name them.
 */
void tdm_shm_op_forget(struct tdm_shm_pair *pair);

/*
 * fi_cancel(3) of an announced send whose bytes the peer has not asked for:
 * sends FAIL with aux 1, which asks the peer to drop the message if no receive
 * has matched it. Returns 0, and the peer's ACK then ends the send, as
 * cancelled or as sent; -FI_ENOENT: there is no such send; -FI_EAGAIN: out of
 * memory.
 */
int tdm_shm_op_cancel(struct tdm_shm_ep *ep, const void *context);

/* Handle the ACK of operation @id. Returns 0, or -1: no such operation. */
int tdm_shm_op_ack(struct tdm_shm_pair *pair, uint64_t id, unsigned status);

#endif /* TDM_SHM_OP_H */
