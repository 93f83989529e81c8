/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by rx_msg.c and rx_rma.c, and used by nobody else. All functions:
 * domain lock held.
 */
#ifndef TDM_TCP_WIRE_RX_PRIV_H
#define TDM_TCP_WIRE_RX_PRIV_H

#include "tcp/wire/tcp.h"

/* Allocates a tdm_rx for the record @rec, in state NEW. NULL: out of memory. */
struct tdm_rx *tdm_rx_new(struct tdm_conn *c, const struct tdm_wire_rec *rec);

/*
 * Reserve memory for the numbers of all announced operations waiting on @c and
 * one more, since a matched receive cannot wait for memory. Call before
 * announcing and before taking a number.
 */
static inline int tdm_rx_rid_ready(struct tdm_conn *c)
{
	return tdm_busy_need(c) ?
		       -FI_ENOMEM :
		       tdm_ids_ready(&c->busy->rids, c->busy->announced + 1);
}

/* Let the bytes of @rx go to @entry from now on: state PLACING. */
void tdm_rx_place(struct tdm_rx *rx, struct fi_peer_rx_entry *entry);

/* Send CTS or DONE for @rx. */
void tdm_rx_answer(struct tdm_rx *rx, enum tdm_wire_op op);

/*
 * Called when all operands of @rx, which is OPERANDS, have arrived: carries out
 * the operation, or sends a DONE which says that there is no memory.
 */
void tdm_rx_operands(struct tdm_rx *rx);

/* Keep the next @n bytes of operands. */
void tdm_rx_keep_operands(struct tdm_rx *rx, const uint8_t *p, size_t n);

/* Called when all expected bytes of @rx have arrived. */
void tdm_rx_arrived(struct tdm_rx *rx);

/* Called when the region of @rx was closed: discards its further bytes. */
void tdm_rx_revoke(struct tdm_rx *rx);

/* Returns the receive side for messages to context @ctx, which must exist. */
static inline struct fid_peer_srx *tdm_rx_srx(const struct tdm_tcp *tcp,
					      uint16_t ctx)
{
	if (tdm_likely(!tcp->a.done.ctx))
		return tcp->a.srx;
	return tcp->a.done.ctx->srx(tcp->a.srx, ctx);
}

#endif /* TDM_TCP_WIRE_RX_PRIV_H */
