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
 * it.
 */
#include "tcp/wire/out.h"

#include <stdlib.h>

struct tdm_out *tdm_out_make_room(struct tdm_conn *c, size_t n)
{
	struct tdm_out *out = c->out;

	if (!out) {
		out = malloc(sizeof(*out));
		if (!out) {
			tdm_out_later(c);
			return NULL;
		}
		tdm_out_begin(c, out);
	}
	if (sizeof(out->bytes) - out->tail < n && out->head) {
		memmove(out->bytes, out->bytes + out->head,
			out->tail - out->head);
		out->tail -= out->head;
		out->head = 0;
	}
	return sizeof(out->bytes) - out->tail < n ? NULL : out;
}

void tdm_out_later(struct tdm_conn *c)
{
	if (tdm_list_linked(&c->flush_node))
		return;
	tdm_list_append(&c->tcp->flush, &c->flush_node);
	tdm_tcp_nudge(c->tcp);
}
