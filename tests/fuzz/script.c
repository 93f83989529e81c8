/* SPDX-License-Identifier: BSD-2-Clause */
/* Playing scripts, and comparing what they come to: script.h, script_play.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/script_play.h"

_Static_assert(sizeof(struct step) == SCRIPT_STEP_BYTES, "a step has no holes");

/* FNV-1a. */
static uint64_t sum_of(const uint8_t *p, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	while (n--)
		h = (h ^ *p++) * 0x100000001b3u;
	return h;
}

/* Make the calls of @s for @d. Returns what the call returned. */
static ssize_t calls(struct play *p, struct deed *d, const struct step *s)
{
	switch (s->what % KINDS) {
	case 0:
	case 1:
		return tdt_script_send(p, d, s);
	case 2:
	case 3:
		return tdt_script_receive(p, d, s);
	case 4:
		return tdt_script_rma(p, d, s);
	case 5:
		return tdt_script_atomic(p, d, s);
	default:
		return s->flags & 8 ? tdt_script_cancel(p, d, s) :
				      tdt_script_peek(p, d, s);
	}
}

static void play_step(struct play *p, const struct step *s)
{
	struct deed *d;

	if (s->what % KINDS == KINDS - 1) {
		tdt_script_pass(p);
		return;
	}
	d = &p->deeds[p->count++];
	d->ep = &p->w->eps[s->how & 1];
	tdt_script_end_of(p, d)->ret = calls(p, d, s);
}

/* Take the messages that no receive was for. */
static void take_rest(struct play *p, struct tdt_ep *ep, int tagged)
{
	struct tdt_op op = {
		.call = TDT_RECV,
		.tagged = tagged,
		.addr = FI_ADDR_UNSPEC,
		.ignore = ANY_TAG,
	};
	struct fi_context2 ctx;
	struct tdt_comp c = { 0 };
	uint8_t none;

	op.buf = &none;
	op.context = &ctx;
	do {
		if (tdt_post(ep, &op))
			tdt_script_broke(p, "a receive was refused");
		tdt_script_rest(p);
		fi_cancel(&ep->ep->fid, &ctx);
		if (p->broken || tdt_wait(ep, &ctx, &c))
			tdt_script_broke(p, "a receive has no end");
		p->end->left += c.err != FI_ECANCELED;
	} while (!p->broken && c.err != FI_ECANCELED);
}

/* Cancel the receives that no message came for. */
static void clear_up(struct play *p)
{
	size_t i;

	tdt_script_rest(p);
	for (i = 0; i < p->count && !p->broken; i++) {
		struct deed *d = &p->deeds[i];

		if (d->open && d->receive)
			fi_cancel(&d->ep->ep->fid, &d->context);
	}
	tdt_script_rest(p);
	for (i = 0; i < 2 * PLAYERS && !p->broken; i++)
		take_rest(p, &p->w->eps[i / 2], i % 2);
	for (i = 0; i < p->count; i++)
		tdt_script_await(p, &p->deeds[i]);
}

static int expose(struct play *p, size_t i)
{
	struct tdt_ep *ep = &p->w->eps[i];
	int ret;

	p->region[i] = malloc(REGION_BYTES);
	if (!p->region[i])
		abort();
	tdt_fill(p->region[i], REGION_BYTES, (uint32_t)i);
	ret = fi_mr_reg(ep->domain, p->region[i], REGION_BYTES,
			FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE,
			0, 1, 0, &p->mr[i], NULL);
	return ret ? ret :
		     fi_mr_reg(ep->domain, p->region[i], REGION_BYTES,
			       FI_REMOTE_READ, 0, 2, 0, &p->read_only[i], NULL);
}

static void begin(struct play *p, int tcp, struct fi_provider *prov)
{
	struct tdt_attr attr;
	size_t i;

	tdt_attr_init(&attr);
	attr.eps = PLAYERS;
	attr.caps |= FI_RMA | FI_ATOMIC;
	attr.prov = prov;
	attr.tcp_last = tcp;
	attr.no_tcp_only = 1;
	if (tdt_world_open(&attr, &p->w)) {
		tdt_script_broke(p, tdt_error());
		return;
	}
	for (i = 0; i < PLAYERS; i++) {
		if (expose(p, i))
			tdt_script_broke(p, "a region was refused");
	}
}

static void finish(struct play *p)
{
	size_t i;

	for (i = 0; i < PLAYERS && p->w; i++) {
		if ((p->mr[i] && fi_close(&p->mr[i]->fid)) ||
		    (p->read_only[i] && fi_close(&p->read_only[i]->fid)))
			tdt_script_broke(p, "a region does not close");
		if (p->region[i])
			p->end->regions[i] = sum_of(p->region[i], REGION_BYTES);
	}
	if (p->w && tdt_world_close(p->w))
		tdt_script_broke(p, tdt_error());
	for (i = 0; i < PLAYERS; i++)
		free(p->region[i]);
	p->end->steps = p->count;
	for (i = 0; i < p->count; i++) {
		struct deed *d = &p->deeds[i];

		if (d->buf)
			tdt_script_end_of(p, d)->sum = sum_of(d->buf, d->size);
		free(d->buf);
	}
}

const char *tdt_script_play(const uint8_t *data, size_t size, int tcp,
			    struct fi_provider *prov,
			    struct tdt_script_end *end)
{
	struct play *p = calloc(1, sizeof(*p));
	const char *broken;
	struct step s;
	size_t steps = size / sizeof(s), i;

	if (!p)
		abort();
	memset(end, 0, sizeof(*end));
	p->end = end;
	begin(p, tcp, prov);
	for (i = 0; i < steps && i < SCRIPT_STEPS && !p->broken; i++) {
		memcpy(&s, data + i * sizeof(s), sizeof(s));
		play_step(p, &s);
	}
	if (!p->broken)
		clear_up(p);
	finish(p);
	broken = p->broken;
	free(p);
	return broken;
}

/* Say what the first step that differs came to, by each tier. */
static void explain(const struct tdt_script_end *end)
{
	const struct tdt_deed_end *d[2];
	size_t i = 0;
	int tcp;

	while (i < end[0].steps &&
	       !memcmp(&end[0].deeds[i], &end[1].deeds[i], sizeof(**d)))
		i++;
	if (i == end[0].steps) {
		fprintf(stderr, "no step differs\n");
		return;
	}
	for (tcp = 0; tcp < 2; tcp++) {
		d[tcp] = &end[tcp].deeds[i];
		fprintf(stderr,
			"step %zu by %s: returned %zd, ended %d times, error %d, "
			"flags %#jx, %ju bytes, beyond %ju, tag %ju, data %ju, "
			"source %ju, sum %jx\n",
			i, tcp ? "TCP" : "shared memory", d[tcp]->ret,
			d[tcp]->ends, d[tcp]->err, (uintmax_t)d[tcp]->flags,
			(uintmax_t)d[tcp]->len, (uintmax_t)d[tcp]->olen,
			(uintmax_t)d[tcp]->tag, (uintmax_t)d[tcp]->data,
			(uintmax_t)d[tcp]->src, (uintmax_t)d[tcp]->sum);
	}
}

const char *tdt_script_compare(const uint8_t *data, size_t size,
			       struct fi_provider *prov)
{
	static struct tdt_script_end end[2];
	const char *broken = NULL;
	int tcp;

	for (tcp = 0; tcp < 2 && !broken; tcp++)
		broken = tdt_script_play(data, size, tcp, prov, &end[tcp]);
	if (!broken && memcmp(&end[0], &end[1], sizeof(end[0]))) {
		explain(end);
		broken = "the tiers differ";
	}
	return broken;
}
