/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transmit buffer of a connection, in which tx.c and the greeting commit
 * bytes. To commit bytes is to fix their place in the stream.
 *
 * The committed stream is the transmit buffer (headers, short payloads) and
 * behind it at most one *borrowed* range: bytes that are sent from a user's
 * buffer without a copy (c->borrow). No bytes are committed behind a borrowed
 * range, so all are sent in the order of the commits. send.c writes them.
 *
 * Invariant: a connection holds a transmit buffer only while it has bytes in
 * it, to be sent or kept (keep.h).
 */
#include "tcp/wire/out.h"

#include <stdlib.h>

#include "tcp/wire/keep.h"

struct tdm_out *tdm_out_new(struct tdm_conn *c)
{
	struct tdm_out *out = tdm_out_reuse(c);

	if (out)
		return out;
	out = malloc(sizeof(*out));
	if (out)
		return tdm_out_begin(c, out);
	tdm_out_later(c);
	return NULL;
}

static int lacks(const struct tdm_out *out, size_t n)
{
	return sizeof(out->bytes) - out->tail < n;
}

/* Move the bytes of @out to its start. */
static void compact(struct tdm_out *out)
{
	uint32_t first = tdm_min(out->base, out->head);

	memmove(out->bytes, out->bytes + first, out->tail - first);
	out->base -= first;
	out->head -= first;
	out->tail -= first;
}

struct tdm_out *tdm_out_make_room(struct tdm_conn *c, size_t n)
{
	struct tdm_out *out = c->out ? c->out : tdm_out_new(c);

	/* Where much is kept, moving it again and again would take long. */
	if (out && lacks(out, n) && out->base < out->head &&
	    out->head - out->base > sizeof(out->bytes) / 2)
		out = tdm_keep_full(c);
	if (!out)
		return NULL;
	if (lacks(out, n))
		compact(out);
	return lacks(out, n) ? NULL : out;
}

void tdm_out_trim(struct tdm_tcp *tcp)
{
	for (; tcp->spares_low > 1; tcp->spares_low--) {
		struct tdm_out *out = tcp->spare_out;

		tcp->spare_out = out->next;
		tcp->spares--;
		free(out);
	}
	tcp->spares_low = tcp->spares;
}

void tdm_out_later(struct tdm_conn *c)
{
	if (tdm_list_linked(&c->flush_node))
		return;
	tdm_list_append(&c->tcp->flush, &c->flush_node);
	tdm_tcp_nudge(c->tcp);
}
