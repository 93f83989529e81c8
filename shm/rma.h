/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations of the shared-memory peer. A write is a message whose
 * receive entry comes from a memory region; a read is a write in the other
 * direction that the initiator asks for. See doc/PROTOCOL-shm.md, "One-sided
 * operations".
 */
#ifndef TDM_SHM_RMA_H
#define TDM_SHM_RMA_H

#include "shm/path.h"
#include "shm/ranges.h"
#include "tdm_rma.h"

/* tdm_shm_op.step of a read at its initiator. */
enum tdm_shm_read_step {
	TDM_SHM_READ_ASKED,   /* READ was sent */
	TDM_SHM_READ_PULLING, /* RTS_READ came: a pull fetches the bytes */
	TDM_SHM_READ_CONFIRM, /* the bytes are here: was the region closed? */
};

/* Most reads of others that an endpoint serves at once. */
enum { TDM_SHM_SERVES_MOST = 1 << 20 };

/* Set in the low half of an id: the operation is a tdm_shm_serve. */
#define TDM_SHM_ID_SERVED 0x80000000u

/* A read of the peer that is answered by RTS_READ. */
struct tdm_shm_serve {
	struct tdm_shm_ctl ctl; /* its RTS_READ, then its ACK; first member */
	struct tdm_shm_op op;	/* FI_REMOTE_READ; op.node: pair->serves */
	struct fi_peer_rx_entry *entry;
	uint64_t peer_id; /* id of the operation at the initiator */
};

static inline struct tdm_shm_serve *tdm_shm_serve_of(struct tdm_shm_op *op)
{
	return tdm_container_of(op, struct tdm_shm_serve, op);
}

/* The buffers of @op: beyond TDM_IOV_LIMIT, those of the region's entry. */
static inline const struct iovec *tdm_shm_op_iov(struct tdm_shm_op *op)
{
	return tdm_likely(op->count <= TDM_IOV_LIMIT) ?
		       op->iov :
		       tdm_shm_serve_of(op)->entry->iov;
}

/*
 * fi_rma(3) and fi_atomic(3) at the initiator: as tdm_shm_tx_send(), for FI_RMA
 * or FI_ATOMIC with FI_READ or FI_WRITE. A write completes when the target has
 * placed it, whatever level was asked for: only the target can tell whether it
 * is allowed.
 */
ssize_t tdm_shm_rma_send(struct tdm_shm_ep *ep, struct tdm_xfer *x);

/*
 * Handle the record of a one-sided operation at @slot. Returns 0: step over it;
 * -FI_EAGAIN: try again later; else the pair is broken.
 */
int tdm_shm_rma_rx(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		   const uint8_t *slot);

/* An ACK for @op, which is one-sided. Returns 0, or -1: not possible now. */
int tdm_shm_rma_ack(struct tdm_shm_op *op, unsigned status);

/*
 * The pull of the read @op has ended with @err, positive errno or 0. @alone:
 * the target has forgotten the read and confirms nothing.
 */
void tdm_shm_read_pulled(struct tdm_shm_op *op, int err, int alone);

/* Was the region behind @entry closed? 0 for entries of messages. */
static inline int tdm_shm_revoked(const struct tdm_shm_ep *ep,
				  const struct fi_peer_rx_entry *entry)
{
	return entry && (entry->flags & FI_RMA) && ep->rma->revoked(entry);
}

/* The served operation @id of @pair, or NULL. */
struct tdm_shm_op *tdm_shm_serve_find(struct tdm_shm_pair *pair, uint64_t id);

/* Write the body of @ctl, an RTS_READ, to @body. */
void tdm_shm_serve_write(const struct tdm_shm_ctl *ctl, uint8_t *body);

/* Free @op, a served operation, without an answer. */
void tdm_shm_serve_drop(struct tdm_shm_op *op);

/*
 * ---- tx.c: for messages and one-sided operations --------------------------
 */

enum { TDM_SHM_TX_SPARE = 2 }; /* slots kept for control records */

/*
 * As tdm_shm_ring_reserve(); reads the peer's progress when need be and checks
 * from time to time whether the peer is alive: if not, @pair is broken.
 */
uint8_t *tdm_shm_tx_room(struct tdm_shm_pair *pair, uint32_t n, uint32_t spare);

/*
 * After tdm_shm_tx_room() returned NULL: one step of progress. Returns
 * -FI_EAGAIN, or 0 if the peer is gone: @x (NULL: none) ended with
 * FI_ECONNRESET.
 */
ssize_t tdm_shm_tx_full(struct tdm_shm_pair *pair, const struct tdm_xfer *x);

/*
 * FI_FENCE: returns not 0, after one step of progress, while operations to the
 * peer are under way. Those in the ring do not count: they precede later
 * records anyway.
 */
int tdm_shm_tx_fenced(struct tdm_shm_pair *pair);

/* Let the ring grow if it is time, or if @len bytes need it. */
void tdm_shm_tx_grow(struct tdm_shm_pair *pair, size_t len);

/*
 * @pair (NULL: unknown) is not up: take a step towards a session, then send @x.
 */
ssize_t tdm_shm_tx_slow(struct tdm_shm_ep *ep, struct tdm_shm_pair *pair,
			struct tdm_xfer *x);

/*
 * Fill the announcement of @op, whose len, count and iov are set; the buffers'
 * addresses only if there is room for them.
 */
void tdm_shm_rts_of(struct tdm_shm_rts *rts, const struct tdm_shm_op *op);

/*
 * As tdm_shm_tx_room(), for a record of @n slots of @x with room before it for
 * the RANGES that tdm_shm_ranges_put() publishes.
 */
static inline uint8_t *tdm_shm_ranges_room(struct tdm_shm_pair *pair,
					   const struct tdm_xfer *x, uint32_t n)
{
	return tdm_unlikely(x->flags & TDM_RANGES) ?
		       tdm_shm_ranges_take(pair, x, n) :
		       tdm_shm_tx_room(pair, n, TDM_SHM_TX_SPARE);
}

static inline void tdm_shm_ranges_put(struct tdm_shm_pair *pair,
				      const struct tdm_xfer *x)
{
	if (tdm_unlikely(x->flags & TDM_RANGES))
		tdm_shm_ranges_publish(pair, x);
}

/* Fill the announcement of @x, whose buffers @op keeps. */
void tdm_shm_rts_fill(struct tdm_shm_rts *rts, struct tdm_shm_op *op,
		      const struct tdm_xfer *x);

#endif /* TDM_SHM_RMA_H */
