/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Injects that are sent while their endpoint closes. All functions: domain lock
 * held.
 */
#ifndef TDM_TCP_WIRE_LEFT_H
#define TDM_TCP_WIRE_LEFT_H

#include "tcp/wire/tcp.h"

/*
 * Called when the endpoint of @c closes, after tdm_tx_abandon(): sends injects
 * without credit from now on.
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

/* Handle a LEFT. Returns 0, -enum tdm_wire_error, or -TDM_RX_NO_MEMORY. */
int tdm_rx_left(struct tdm_conn *c, const struct tdm_wire_rec *rec);

#endif /* TDM_TCP_WIRE_LEFT_H */
