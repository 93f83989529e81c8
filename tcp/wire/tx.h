/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends, from the queue to the completion; tx.c, tx_end.c. Lock: held. */
#ifndef TDM_TCP_WIRE_TX_H
#define TDM_TCP_WIRE_TX_H

#include "tcp/wire/out.h"

/*
 * Commit the records that may be sent now to the output of @c, as many as one
 * pass sends.
 */
void tdm_tx_fill(struct tdm_conn *c);

/* Not 0 when the peer has sent something that @c has not acknowledged yet. */
static inline int tdm_tx_owes_ack(const struct tdm_conn *c)
{
	return c->ack_now || c->rx_seq != c->ack_seq ||
	       c->rx_freed != c->ack_freed;
}

/*
 * Not 0 when an operation to the peer is under way. Those in LEAVING do not
 * count: their bytes precede all later ones in the stream.
 */
static inline int tdm_tx_outstanding(const struct tdm_conn *c)
{
	return !tdm_list_empty(&c->sendq) || !tdm_list_empty(&c->ackq) ||
	       !tdm_list_empty(&c->busy->waitq) ||
	       !tdm_list_empty(&c->busy->dataq);
}

/*
 * Not 0 when tdm_tx_fill() has something to look at, be it an empty buffer to
 * free.
 */
static inline int tdm_tx_has_more(const struct tdm_conn *c)
{
	return tdm_tx_owes_ack(c) || !tdm_list_empty(&c->sendq) ||
	       !tdm_list_empty(&c->busy->ctlq) ||
	       !tdm_list_empty(&c->busy->dataq) ||
	       (c->out && tdm_out_empty(c->out));
}

/* Handle a peer's CTS, DONE or ACK. Returns 0, or -enum tdm_wire_error. */
int tdm_tx_cts(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_tx_done(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_tx_acked(struct tdm_conn *c, const struct tdm_wire_rec *rec);

/* Called when all bytes of the record of c->borrow have been sent. */
void tdm_tx_borrowed_sent(struct tdm_conn *c);

/*
 * End all operations that @c sends with @err and the provider error @prov, and
 * free them.
 */
void tdm_tx_fail(struct tdm_conn *c, int err, int prov);

/*
 * End all sends of @c with @err (0: without an entry), but keep what is needed
 * for the bytes that must still be sent. Errors: -FI_ENOMEM: a send that is
 * half sent could not be copied.
 */
int tdm_tx_abandon(struct tdm_conn *c, int err) tdm_must_check;

/*
 * After tdm_tx_abandon(): not 0 while @c has bytes of sends that will still be
 * sent.
 */
int tdm_tx_leaving(const struct tdm_conn *c);

/*
 * After tdm_tx_abandon(): not 0 while one of these sends is an inject. The rest of
 * another send, whose first bytes are in the stream, is not.
 */
int tdm_tx_injects_leaving(const struct tdm_conn *c);

#endif /* TDM_TCP_WIRE_TX_H */
