/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes from the kernel, and the acknowledgement of records; rx.c.
 * Lock: held.
 */
#ifndef TDM_TCP_WIRE_RX_H
#define TDM_TCP_WIRE_RX_H

#include "tcp/wire/conn.h"

/*
 * Read and handle input of @c. Returns not 0 when there is more than one pass
 * may handle.
 */
int tdm_rx_ready(struct tdm_conn *c);

/* Read and handle all input of @c, if it has a connection. */
static inline void tdm_rx_drain(struct tdm_conn *c)
{
	while (tdm_conn_open(c) && tdm_rx_ready(c))
		;
}

/*
 * Called when the peer of @c has been asked for @len bytes of payload: the next
 * read leaves long payload in the kernel, from where it goes to its place.
 */
void tdm_rx_expect(struct tdm_conn *c, uint64_t len);

#endif /* TDM_TCP_WIRE_RX_H */
