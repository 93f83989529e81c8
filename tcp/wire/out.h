/* SPDX-License-Identifier: BSD-2-Clause */
/* Output of a connection; out.c. Lock: held. */
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

/* Let the next pass of progress call tdm_out_push(). */
void tdm_out_later(struct tdm_conn *c);

/*
 * Give the kernel as many committed bytes as it takes, within the limit of a
 * pass.
 */
void tdm_out_push(struct tdm_conn *c);

/*
 * Called when output was committed: sends it now if nothing was sent in this
 * pass yet, else in the next pass.
 */
void tdm_out_kick(struct tdm_conn *c);

/*
 * Called when a message with @flags, of a struct tdm_xfer, was committed: sends
 * it now, or holds it back to send it with later ones; out.c has the rule.
 */
void tdm_out_message(struct tdm_conn *c, uint64_t flags);

static inline size_t tdm_out_bytes(const struct tdm_conn *c)
{
	return c->out ? c->out->tail - c->out->head : 0;
}

#endif /* TDM_TCP_WIRE_OUT_H */
