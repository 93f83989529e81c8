/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Injects that leave while their endpoint closes. All functions: domain lock
 * held.
 */
#ifndef TDM_TCP_WIRE_LEFT_H
#define TDM_TCP_WIRE_LEFT_H

#include "tcp/wire/tcp.h"

/*
 * The endpoint of @c closes and tdm_tx_abandon() was called: injects leave from
 * now on without credit.
 */
void tdm_left_begin(struct tdm_conn *c);

/*
 * Not 0 while the peer's kernel has not acknowledged all bytes of the stream.
 */
int tdm_left_in_flight(const struct tdm_conn *c);

/*
 * Write the payload of @op, in state TDM_TX_LEFT, to the stream. Returns 1:
 * done; 0: not possible now, nothing was changed.
 */
int tdm_left_commit(struct tdm_conn *c, struct tdm_tx *op);

/* A LEFT arrived. 0, -enum tdm_wire_error, or -TDM_RX_NO_MEMORY. */
int tdm_rx_left(struct tdm_conn *c, const struct tdm_wire_rec *rec);

#endif /* TDM_TCP_WIRE_LEFT_H */
