/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Passes of a script, and what they complete: script_play.h. Spec: fi_cq(3).
 */
#include "tests/fuzz/script_play.h"

#include <string.h>

void tdt_script_broke(struct play *p, const char *what)
{
	if (!p->broken)
		p->broken = what;
}

static struct deed *deed_of(struct play *p, const struct tdt_ep *ep,
			    const void *context)
{
	size_t i;

	for (i = 0; i < p->count; i++) {
		struct deed *d = &p->deeds[i];

		if (d->ep == ep && context == &d->context)
			return d;
	}
	return NULL;
}

static void ended(struct play *p, struct deed *d, const struct tdt_comp *c)
{
	struct tdt_deed_end *e = tdt_script_end_of(p, d);

	if (!d->open) {
		tdt_script_broke(p, "an operation ended twice");
		return;
	}
	/* A message that does not fit leaves the buffer where it is. */
	d->open = d->multi && c->err != FI_ECANCELED &&
		  !(c->flags & FI_MULTI_RECV);
	e->ends++;
	e->err = c->err;
	e->flags |= c->flags;
	e->len += c->len;
	e->olen += c->olen;
	if (!c->err && c->flags & FI_RECV) {
		e->tag += c->tag;
		e->src = c->src == FI_ADDR_NOTAVAIL ? 0 : 1 + c->src;
	}
	if (c->flags & FI_REMOTE_CQ_DATA)
		e->data += c->data;
}

/* Take what the queues gave. */
static void sort_out(struct play *p, struct tdt_ep *ep)
{
	size_t i, kept = 0;

	for (i = 0; i < ep->comp_count; i++) {
		struct tdt_comp *c = &ep->comps[i];
		struct deed *d = deed_of(p, ep, c->context);

		if (d)
			ended(p, d, c);
		else if (c->context) /* of tdt_script_rest(), which waits for it */
			ep->comps[kept++] = *c;
		else if (c->err)
			p->end->nobody[c->err % SCRIPT_NOBODY]++;
		else if (c->flags & FI_REMOTE_WRITE)
			p->end->data += 1 + c->data;
		else
			tdt_script_broke(p, "a completion of nobody");
	}
	ep->comp_count = kept;
}

void tdt_script_pass(struct play *p)
{
	size_t i;

	tdt_progress(p->w);
	if (p->w->bad)
		tdt_script_broke(p, "a queue could not be read");
	for (i = 0; i < PLAYERS; i++)
		sort_out(p, &p->w->eps[i]);
}

void tdt_script_await(struct play *p, const struct deed *d)
{
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();

	while (d->open && !p->broken) {
		tdt_script_pass(p);
		if (tdt_now_ms() > end)
			tdt_script_broke(p, "an operation did not end");
	}
}

int tdt_script_again(struct play *p, ssize_t ret, uint64_t end)
{
	if (ret != -FI_EAGAIN || p->broken)
		return 0;
	tdt_script_pass(p);
	if (tdt_now_ms() > end)
		tdt_script_broke(p, "a call gave -FI_EAGAIN for ever");
	return 1;
}

void tdt_script_rest(struct play *p)
{
	struct fi_context2 ctx[2];
	unsigned round, i, k;
	uint8_t byte[2];

	for (round = 0; round < 2 * PLAYERS * PLAYERS; round++) {
		struct tdt_ep *from = &p->w->eps[round % PLAYERS], *to;
		struct tdt_op op[2];

		to = &p->w->eps[round / PLAYERS % PLAYERS];
		memset(op, 0, sizeof(op));
		for (k = 0; k < 2; k++) {
			op[k].tagged = 1;
			op[k].buf = &byte[k];
			op[k].len = 1;
			op[k].tag = (uint64_t)1 << REST_TAG_BIT;
			op[k].context = &ctx[k];
		}
		op[0].call = TDT_RECV;
		op[0].addr = to->peers[from->index];
		op[1].call = TDT_SEND;
		op[1].addr = from->peers[to->index];
		byte[1] = 0;
		if (tdt_post(to, &op[0]) || tdt_post(from, &op[1]) ||
		    tdt_wait(from, &ctx[1], NULL) ||
		    tdt_wait(to, &ctx[0], NULL)) {
			tdt_script_broke(p, "messages do not pass any more");
			return;
		}
	}
	for (i = 0; i < PLAYERS; i++)
		sort_out(p, &p->w->eps[i]);
}
