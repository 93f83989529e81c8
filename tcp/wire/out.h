/* SPDX-License-Identifier: BSD-2-Clause */
/* The transmit buffer of a connection; out.c. Lock: held. */
#ifndef TDM_TCP_WIRE_OUT_H
#define TDM_TCP_WIRE_OUT_H

#include "tcp/wire/tcp.h"

/* tdm_out_room() when there is no buffer, or no room at its end. */
struct tdm_out *tdm_out_make_room(struct tdm_conn *c, size_t n);

/*
 * Returns a transmit buffer with room for @n bytes at out->bytes + out->tail,
 * or NULL.
 */
static inline struct tdm_out *tdm_out_room(struct tdm_conn *c, size_t n)
{
	struct tdm_out *out = c->out;

	return out && sizeof(out->bytes) - out->tail >= n ?
		       out :
		       tdm_out_make_room(c, n);
}

void tdm_out_free(struct tdm_conn *c);

/* Let the next pass of progress call tdm_conn_push(). */
void tdm_out_later(struct tdm_conn *c);

static inline size_t tdm_out_bytes(const struct tdm_conn *c)
{
	return c->out ? c->out->tail - c->out->head : 0;
}

#endif /* TDM_TCP_WIRE_OUT_H */
