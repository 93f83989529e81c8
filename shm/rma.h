/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations of the shared-memory peer. A write is a message whose
 * receive entry comes from a memory region; a read makes the target send a
 * message back whose receive is the buffer of the read. See
 * doc/PROTOCOL-shm.md, "One-sided operations".
 */
#ifndef TDM_SHM_RMA_H
#define TDM_SHM_RMA_H

#include "shm/ep.h"
#include "shm/ranges.h"
#include "shm/serve.h"
#include "shm/tx.h"
#include "tdm_rma.h"

/*
 * tdm_shm_op.step of a read at its initiator:
 *
 *   ASKED --> PULLING --> CONFIRM
 *
 * and from each to the end of the operation. Only rma.c changes it.
 */
enum tdm_shm_read_step {
	TDM_SHM_READ_ASKED,   /* READ was sent */
	TDM_SHM_READ_PULLING, /* RTS_READ came: a pull fetches the bytes */
	/* the bytes are here; is the region still open? */
	TDM_SHM_READ_CONFIRM,
};

/*
 * fi_rma(3) and fi_atomic(3) at the initiator: as tdm_shm_tx_send(), for FI_RMA
 * or FI_ATOMIC with FI_READ or FI_WRITE. A write completes when the target has
 * placed it, whatever completion level was requested: only the target can tell
 * whether the write is allowed.
 */
ssize_t tdm_shm_rma_send(struct tdm_shm_ep *ep, struct tdm_xfer *x);

/*
 * Handle the record of a one-sided operation at @slot. Returns 0: the caller
 * steps over the record; -FI_EAGAIN: try again later; else the pair is broken.
 */
int tdm_shm_rma_rx(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		   const uint8_t *slot);

/*
 * Handle an ACK for the one-sided @op. Returns 0, or -1: @op does not wait for
 * one.
 */
int tdm_shm_rma_ack(struct tdm_shm_op *op, unsigned status);

/*
 * Called when the pull of the read @op has ended with @err, positive errno or
 * 0. @alone: the target has forgotten the read and will not confirm it.
 */
void tdm_shm_read_pulled(struct tdm_shm_op *op, int err, int alone);

/* Not 0 when a region of @entry was closed; 0 for entries of messages. */
static inline int tdm_shm_revoked(const struct tdm_shm_ep *ep,
				  const struct fi_peer_rx_entry *entry)
{
	return entry && (entry->flags & FI_RMA) && ep->rma->revoked(entry);
}

/*
 * Set *@entry to the entry of the region that @req names. Errors: -FI_EAGAIN:
 * try again later; any other: refused.
 */
int tdm_shm_rma_region(const struct tdm_shm_pair *pair,
		       const struct tdm_rma_request *req,
		       struct fi_peer_rx_entry **entry);

/* Set up *@req for @access to the ranges at @where, except its length. */
void tdm_shm_rma_request(struct tdm_rma_request *req,
			 const struct tdm_shm_pair *pair,
			 const struct tdm_shm_where *where, uint64_t access);

/* Send the ACK for the peer's operation @id, in @ctl. */
void tdm_shm_rma_answer(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl,
			uint64_t id, unsigned status);

/*
 * As tdm_shm_tx_room(), for a record of @n slots of @x, with room in front of
 * it for the RANGES that tdm_shm_ranges_put() publishes.
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

#endif /* TDM_SHM_RMA_H */
