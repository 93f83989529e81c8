/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends, from the request to the completion; tx.c, tx_end.c. Lock: held. */
#ifndef TDM_TCP_WIRE_TX_H
#define TDM_TCP_WIRE_TX_H

#include "tcp/wire/tcp.h"

/* Append what may leave now to the output of @c, until it is enough. */
void tdm_tx_fill(struct tdm_conn *c);

/* A peer's CTS, DONE, ACK. 0, or -enum tdm_wire_error. */
int tdm_tx_cts(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_tx_done(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_tx_acked(struct tdm_conn *c, const struct tdm_wire_rec *rec);

/* All bytes of the record that c->gather stood for have left. */
void tdm_tx_gathered(struct tdm_conn *c);

/* End all sends of @c with @err and forget them. */
void tdm_tx_fail(struct tdm_conn *c, int err, int prov);

/*
 * End all sends of @c with @err (0: without an entry), keeping what the bytes
 * on the connection need. Errors: -FI_ENOMEM, for a send half gone.
 */
int tdm_tx_abandon(struct tdm_conn *c, int err) tdm_must_check;

/* After that: not 0 while @c has bytes of sends that will still leave. */
int tdm_tx_leaving(const struct tdm_conn *c);

#endif /* TDM_TCP_WIRE_TX_H */
