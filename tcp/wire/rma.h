/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations; tx_rma.c at the initiator, rx_rma.c at the target.
 * Lock: held.
 */
#ifndef TDM_TCP_WIRE_RMA_H
#define TDM_TCP_WIRE_RMA_H

#include "tcp/wire/tcp.h"

/*
 * Handle a peer's READ. Returns 0, -enum tdm_wire_error or -TDM_RX_NO_MEMORY.
 */
int tdm_tx_read(struct tdm_conn *c, const struct tdm_wire_rec *rec);

/*
 * Carry out a peer's ATOMIC; the caller has counted it in busy->announced.
 * Returns 0 or -TDM_RX_NO_MEMORY.
 */
int tdm_tx_atomic(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		  const void *operands);

/*
 * Ask the owner for the region of @rec, a WRITE, AWRITE or READ. @access:
 * FI_REMOTE_WRITE or FI_REMOTE_READ. Out: *@entry, with TDM_WIRE_S_OK.
 */
enum tdm_wire_status tdm_rma_get(struct tdm_conn *c,
				 const struct tdm_wire_rec *rec,
				 uint64_t access,
				 struct fi_peer_rx_entry **entry);

/*
 * ranges.c: handle a RANGE, for the next one-sided operation; returns as in
 * rx_msg.h.
 */
int tdm_rx_range(struct tdm_conn *c, const struct tdm_wire_rec *rec);

/*
 * Allocates a tdm_rx, with a number, for the bytes that @op asks for. NULL: out
 * of memory.
 */
struct tdm_rx *tdm_rx_reading(struct tdm_conn *c, struct tdm_tx *op);

#endif /* TDM_TCP_WIRE_RMA_H */
