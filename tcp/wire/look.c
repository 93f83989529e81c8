/* SPDX-License-Identifier: BSD-2-Clause */
#include "tcp/wire/look.h"

#include "tcp/wire/conn.h"
#include "tcp/wire/parts.h"
#include "tcp/wire/tcp.h"
#include "tdm_look.h"

void tdm_tcp_look(const struct tdm_tcp *tcp, struct tdm_tcp_look *out)
{
	out->open = tcp->open;
	out->used = tcp->tx_used;
	out->account = tcp->held->bytes;
	out->retries = tcp->retries;
}

static uint64_t length(const struct tdm_list *list)
{
	const struct tdm_list *pos;
	uint64_t n = 0;

	tdm_list_for_each(pos, list)
		n++;
	return n;
}

void tdm_conn_look(const struct tdm_conn *c, struct tdm_look *out)
{
	out->queued = length(&c->sendq);
	out->pending = length(&c->ackq) + length(&c->busy->waitq) +
		       length(&c->busy->dataq);
	out->held += c->rx_charged - c->rx_freed + c->kept;
	if (tdm_conn_live(c)) {
		out->credit = c->freed + c->window -
			      tdm_min(c->charged, c->freed + c->window);
		out->given = c->given - c->rx_charged;
		out->full = c->full;
	} else if (c->setup) {
		out->tries = c->setup->tries;
		out->err = c->setup->why;
	}
}
