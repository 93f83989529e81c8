/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends, from the request to the completion; tx.c, tx_end.c. Lock: held. */
#ifndef TDM_TCP_WIRE_TX_H
#define TDM_TCP_WIRE_TX_H

#include "tcp/wire/tcp.h"

/* Commit what may be sent now to the output of @c, until that is enough. */
void tdm_tx_fill(struct tdm_conn *c);

/* Has the peer sent something that @c has not acknowledged yet? */
static inline int tdm_tx_owes_ack(const struct tdm_conn *c)
{
	return c->ack_now || c->rx_seq != c->ack_seq ||
	       c->rx_freed != c->ack_freed;
}

/* Is there anything for tdm_tx_fill() to look at, a buffer left empty too? */
static inline int tdm_tx_has_more(const struct tdm_conn *c)
{
	return tdm_tx_owes_ack(c) || !tdm_list_empty(&c->sendq) ||
	       !tdm_list_empty(&c->ctlq) || !tdm_list_empty(&c->dataq) ||
	       (c->out && c->out->head == c->out->tail);
}

/* A peer's CTS, DONE, ACK. 0, or -enum tdm_wire_error. */
int tdm_tx_cts(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_tx_done(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_tx_acked(struct tdm_conn *c, const struct tdm_wire_rec *rec);

/* All bytes of the record that c->gather is part of have been sent. */
void tdm_tx_gathered(struct tdm_conn *c);

/* End all sends of @c with @err and free them. */
void tdm_tx_fail(struct tdm_conn *c, int err, int prov);

/*
 * End all sends of @c with @err (0: without an entry), but keep what the bytes
 * still to be sent need. Errors: -FI_ENOMEM, for a send that is half sent.
 */
int tdm_tx_abandon(struct tdm_conn *c, int err) tdm_must_check;

/* After that: not 0 while @c has bytes of sends that will still be sent. */
int tdm_tx_leaving(const struct tdm_conn *c);

#endif /* TDM_TCP_WIRE_TX_H */
