/* SPDX-License-Identifier: BSD-2-Clause */
/* The transmit buffer of a connection; out.c. Lock: held. */
#ifndef TDM_TCP_WIRE_OUT_H
#define TDM_TCP_WIRE_OUT_H

#include <stdlib.h>

#include "tcp/wire/tcp.h"

enum {
	TDM_TCP_OUT_BYTES = 64 << 10, /* one transmit buffer */
	/* output held back is sent at this size */
	TDM_TCP_FLUSH_BYTES = 32 << 10,
	/* longest payload copied to the buffer */
	TDM_TCP_COPY_BYTES = 2 << 10,
	/* the same, of a message that is held back to be sent with others */
	TDM_TCP_HOLD_BYTES = 16 << 10,
};

/*
 * A transmit buffer; a connection has one only while it holds bytes that are to
 * be sent, or that its peer has not acknowledged. head may be below base: bytes
 * outside of the stream (a greeting, a POSITION) come first.
 */
struct tdm_out {
	struct tdm_out *next; /* in tcp->spare_out */
	uint32_t base;	     /* bytes [base, head) are sent, and kept: keep.h */
	uint32_t head, tail; /* bytes [head, tail) are to be sent */
	uint32_t msgs;	     /* messages in it since the last send */
	/* when a message of more than TDM_TCP_COPY_BYTES was held back; or 0 */
	uint64_t held_ns;
	uint8_t bytes[TDM_TCP_OUT_BYTES];
};

/*
 * Most transmit buffers of an endpoint that wait for reuse. Those that were not
 * needed for TDM_OUT_PASSES passes are freed, but for one.
 */
enum { TDM_OUT_SPARES = 16, TDM_OUT_PASSES = 256 };

/* Make the buffer @out, which is empty, that of @c. Returns @out. */
static inline struct tdm_out *tdm_out_begin(struct tdm_conn *c,
					    struct tdm_out *out)
{
	out->base = 0;
	out->head = 0;
	out->tail = 0;
	out->msgs = 0;
	out->held_ns = 0;
	c->out = out;
	return out;
}

/* Give @c, which has no buffer, a spare one. NULL: there is none. */
static inline struct tdm_out *tdm_out_reuse(struct tdm_conn *c)
{
	struct tdm_tcp *tcp = c->tcp;
	struct tdm_out *out = tcp->spare_out;

	if (tdm_unlikely(!out))
		return NULL;
	tcp->spare_out = out->next;
	tcp->spares--;
	tcp->spares_low = tdm_min(tcp->spares_low, tcp->spares);
	return tdm_out_begin(c, out);
}

/* Give @c, which has no buffer, one. NULL: out of memory. */
struct tdm_out *tdm_out_new(struct tdm_conn *c);

/* tdm_out_room() when there is no spare buffer, or no room at its end. */
struct tdm_out *tdm_out_make_room(struct tdm_conn *c, size_t n);

/*
 * Returns a transmit buffer with room for @n bytes at out->bytes + out->tail,
 * or NULL.
 */
static inline struct tdm_out *tdm_out_room(struct tdm_conn *c, size_t n)
{
	struct tdm_out *out = c->out ? c->out : tdm_out_reuse(c);

	return out && sizeof(out->bytes) - out->tail >= n ?
		       out :
		       tdm_out_make_room(c, n);
}

/* Free the buffer of @c, or keep it for reuse; @c may have none. */
static inline void tdm_out_free(struct tdm_conn *c)
{
	struct tdm_tcp *tcp = c->tcp;

	if (!c->out)
		return;
	if (tdm_likely(tcp->spares < TDM_OUT_SPARES)) {
		c->out->next = tcp->spare_out;
		tcp->spare_out = c->out;
		tcp->spares++;
	} else {
		free(c->out);
	}
	c->out = NULL;
}

/* Called each TDM_OUT_PASSES passes: frees spare buffers. */
void tdm_out_trim(struct tdm_tcp *tcp);

/* Let the next pass of progress call tdm_conn_push(). */
void tdm_out_later(struct tdm_conn *c);

/* Not 0 when @out has nothing to send and nothing to keep. */
static inline int tdm_out_empty(const struct tdm_out *out)
{
	return out->head == out->tail && out->base == out->tail;
}

/* Returns how many bytes are to be sent from the buffer of @c. */
static inline size_t tdm_out_bytes(const struct tdm_conn *c)
{
	return c->out ? c->out->tail - c->out->head : 0;
}

#endif /* TDM_TCP_WIRE_OUT_H */
