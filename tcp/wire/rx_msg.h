/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records that bring payload or announce it, between the wire and the owner:
 * messages and the data that our reads asked for (rx_msg.c), writes and atomic
 * operations (rx_rma.c).
 * Lock: held.
 */
#ifndef TDM_TCP_WIRE_RX_MSG_H
#define TDM_TCP_WIRE_RX_MSG_H

#include "tcp/wire/tcp.h"

extern struct fi_ops_srx_peer tdm_rx_peer_ops;

/* An error beside enum tdm_wire_error, which is not the peer's fault. */
enum { TDM_RX_NO_MEMORY = 1000 };

/*
 * Handle a record that arrived; @n bytes after its header are at @p. Returns
 * how many payload bytes it has used, tdm_rx_put() gets the others; or -enum
 * tdm_wire_error, or -TDM_RX_NO_MEMORY.
 */
int tdm_rx_eager(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		 const uint8_t *p, size_t n);
int tdm_rx_atomic(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		  const uint8_t *p, size_t n);
int tdm_rx_rts(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_rx_data(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_rx_write(struct tdm_conn *c, const struct tdm_wire_rec *rec);
int tdm_rx_awrite(struct tdm_conn *c, const struct tdm_wire_rec *rec);

/*
 * Describe the place of the next payload bytes in @iov. Returns the number of
 * elements; 0: use tdm_rx_put().
 */
size_t tdm_rx_target(const struct tdm_conn *c, struct iovec *iov);

/* Process @n bytes of payload, at @p or (NULL) already at tdm_rx_target(). */
void tdm_rx_put(struct tdm_conn *c, const uint8_t *p, size_t n);

/* Called when the CTS or DONE of @rx has been written. */
void tdm_rx_answered(struct tdm_rx *rx);

void tdm_rx_free(struct tdm_rx *rx);

/* Free the announced @rx, which must be WAITING. */
void tdm_rx_drop(struct tdm_rx *rx);

/* End all receives of @c with @err; messages that are complete stay. */
void tdm_rx_fail(struct tdm_conn *c, int err, int prov);

/*
 * Called when the endpoint closes: gives all entries back without a completion.
 */
void tdm_rx_abandon(struct tdm_conn *c);

/* Free the remaining tdm_rx. Their entries belong to the owner already. */
void tdm_rx_free_all(struct tdm_conn *c);

/* Returns the source of a queued entry, for foreach_unspec_addr(). */
fi_addr_t tdm_rx_source(struct fi_peer_rx_entry *entry);

#endif /* TDM_TCP_WIRE_RX_MSG_H */
