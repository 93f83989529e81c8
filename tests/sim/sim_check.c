/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ledger of a play, see sim_play.h. What it asks for:
 *
 *  - each operation ends once, with an error that fi_tandem(7), FAULTS, allows,
 *    and only after a fault of that pair that allows it;
 *  - a message is received once at most, by an endpoint at the address to which
 *    it was sent, whole, from its source;
 *  - the messages of a sender meet the receives of a class in the order in which
 *    they were sent, and those of an endpoint come before those of its successor;
 *  - a message whose send succeeded is received, unless the pair has come to harm;
 *  - a read gives what the last write has written, and an atomic operation is
 *    carried out once.
 *
 * Locking: none, one thread.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "sim_check.h"

static unsigned char arena[TDS_ARENA_BYTES];

void tds_wrong(struct tds_play *p, const char *format, ...)
{
	va_list args;

	if (p->wrong[0])
		return;
	va_start(args, format);
	vsnprintf(p->wrong, sizeof(p->wrong), format, args);
	va_end(args);
	tds_trace("WRONG: %s", p->wrong);
}

struct tds_op *tds_op_new(struct tds_play *p, struct tds_ep *e,
			  enum tds_op_kind kind, size_t len)
{
	struct tds_op *op = &p->op[p->ops];
	size_t bytes = (len + 64) & ~(size_t)63;
	int again = kind == TDS_OP_RECV && p->spare;

	if (p->ops == TDS_OPS || (!again && p->used + bytes > sizeof(arena)))
		return NULL;
	p->ops++;
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->ep = (int)(e - p->ep);
	op->len = len;
	op->step = p->steps;
	if (again) {
		op->buf = p->spare;
		memcpy(&p->spare, op->buf, sizeof(p->spare));
		return op;
	}
	op->buf = arena + p->used;
	p->used += bytes;
	return op;
}

/* ---- harm and what it excuses -------------------------------------------- */

static void harm_one(struct tds_play *p, int place, int other, unsigned harm)
{
	int i;

	for (i = 0; i < p->eps; i++) {
		struct tds_ep *e = &p->ep[i];

		if (e->place != place)
			continue;
		e->harm[other] |= harm;
		if (harm & TDS_HARM_RESET)
			e->reset_step[other] =
				harm & TDS_HARM_LATER ? UINT64_MAX : p->steps;
	}
}

void tds_harm(struct tds_play *p, int place, int other, unsigned harm)
{
	harm_one(p, place, other, harm);
	harm_one(p, other, place, harm);
}

int tds_may_fail(const struct tds_ep *e, int place, int err)
{
	unsigned harm = 0;
	int i;

	for (i = 0; i < TDS_PLACES; i++)
		harm |= place < 0 || place == i ? e->harm[i] : 0;
	switch (err) {
	case FI_ECONNRESET:
		if (!tdm_env.resume && harm & TDS_HARM_RESET)
			return 1;
		/* Removed while the connection begins: the peer may have had it. */
		return harm & (TDS_HARM_ENDED | TDS_HARM_SILENT |
			       TDS_HARM_REMOVED | TDS_HARM_HEIR);
	case FI_ETIMEDOUT:
		/* The answer that the session has ended may not arrive. */
		return harm & (TDS_HARM_SILENT | TDS_HARM_STOPPED |
			       (tdm_env.resume ? TDS_HARM_ENDED : 0));
	case FI_ECONNREFUSED:
		/* Attempts that break before they are answered look like that. */
		return harm &
		       (TDS_HARM_ENDED | TDS_HARM_STOPPED | TDS_HARM_HEIR |
			(tdm_env.resume ? 0 : TDS_HARM_YOUNG));
	case FI_ECONNABORTED:
		/* At a receiver the sender may have closed its endpoint, too. */
		return harm & (TDS_HARM_REMOVED | TDS_HARM_ENDED);
	default:
		return 0;
	}
}

/* May @m, sent with success, be received by nobody? */
static int may_be_lost(const struct tds_play *p, const struct tds_op *m)
{
	const struct tds_ep *e = &p->ep[m->ep];
	unsigned harm = e->harm[m->place];

	if (harm & (TDS_HARM_ENDED | TDS_HARM_SILENT | TDS_HARM_REMOVED))
		return 1;
	/* An inject has completed before the loss of its connection is seen. */
	return (!tdm_env.resume || harm & TDS_HARM_HEIR) &&
	       harm & TDS_HARM_RESET &&
	       (m->kind == TDS_OP_INJECT || e->reset_step[m->place] >= m->step);
}

/* ---- completions --------------------------------------------------------- */

static int is_send(const struct tds_op *op)
{
	return op->kind == TDS_OP_SEND || op->kind == TDS_OP_INJECT;
}

static int is_recv(const struct tds_op *op)
{
	return op->kind == TDS_OP_RECV || op->kind == TDS_OP_MULTI;
}

/* @op of @e, whose context came back, has ended. Not 0: that is wrong. */
static int end(struct tds_play *p, struct tds_ep *e, struct tds_op *op, int err)
{
	if (op < p->op || op >= p->op + p->ops ||
	    ((char *)op - (char *)p->op) % (ptrdiff_t)sizeof(*op)) {
		tds_wrong(p, "a completion of nobody: %s", fi_strerror(err));
		return -1;
	}
	if (!op->posted || op->ended || &p->ep[op->ep] != e) {
		tds_wrong(p, "op %d ends twice, or elsewhere: %s",
			  (int)(op - p->op), fi_strerror(err));
		return -1;
	}
	return 0;
}

static void over(struct tds_play *p, struct tds_op *op, int err)
{
	struct tds_ep *e = &p->ep[op->ep];

	/* Nobody may write to it any more. */
	op->ended = 1;
	op->err = err;
	e->outstanding--;
	if (op->kind == TDS_OP_RECV && !err) {
		memcpy(op->buf, &p->spare, sizeof(p->spare));
		p->spare = op->buf;
	}
	if (is_recv(op) && op->place < 0)
		e->open_any[op->cls]--;
	else if (is_recv(op))
		e->open_directed[op->place]--;
}

static void received(struct tds_play *p, struct tds_ep *e, struct tds_op *op,
		     const struct fi_cq_tagged_entry *c, fi_addr_t src)
{
	uint64_t id = op->cls ? c->tag : c->data;
	uint64_t n = id & ~(3ull << 62);
	struct tds_op *m = &p->op[n < TDS_OPS ? n : 0];
	const unsigned char *buf = op->kind == TDS_OP_MULTI ? c->buf : op->buf;

	if (n >= (uint64_t)p->ops || !is_send(m) || m->cls != op->cls ||
	    m->place != e->place || (int)(id >> 62) != op->cls)
		tds_wrong(p,
			  "op %d of ep %d receives %#jx, which nobody sent "
			  "there",
			  (int)(op - p->op), op->ep, (uintmax_t)id);
	else if (m->got++)
		tds_wrong(p, "message %ju is received twice", (uintmax_t)n);
	else if (c->len != m->len ||
		 !tdt_seeded_same(buf, m->len, (uint32_t)id))
		tds_wrong(p, "message %ju: %zu bytes of %zu, or wrong ones",
			  (uintmax_t)n, c->len, m->len);
	else if (op->place >= 0 && op->place != p->ep[m->ep].place)
		tds_wrong(p, "message %ju matches a receive from another",
			  (uintmax_t)n);
	else if (src != e->addr[p->ep[m->ep].place] &&
		 !(e->harm[p->ep[m->ep].place] & TDS_HARM_REMOVED))
		tds_wrong(p, "message %ju comes from %jd", (uintmax_t)n,
			  (intmax_t)src);
	m->got_by = op->ep;
	m->got_at = (uint64_t)op->seq << 32 |
		    (uint64_t)(op->kind == TDS_OP_MULTI ? buf - op->buf : 0);
	p->received++;
}

static void onesided_done(struct tds_play *p, struct tds_op *op, int err)
{
	struct tds_ep *e = &p->ep[op->ep];
	struct tds_cell *c = &e->cell[op->place][op->cell];
	uint64_t add, was;

	c->busy = 0;
	p->onesided += !err;
	/* Another life has another region, or it is unknown who did it. */
	if (op->epoch != p->life[op->place] || (err && op->kind != TDS_OP_READ))
		c->known = 0;
	if (err || op->epoch != p->life[op->place] ||
	    e->harm[op->place] & TDS_HARM_ENDED)
		return;
	if (op->kind == TDS_OP_WRITE) {
		c->known = 1;
		c->fill = (uint32_t)(op - p->op);
	} else if (op->kind == TDS_OP_READ) {
		if (c->known && !tdt_seeded_same(op->buf, op->len, c->fill))
			tds_wrong(p, "op %d reads what was not written last",
				  (int)(op - p->op));
	} else {
		memcpy(&add, op->buf, 8);
		memcpy(&was, op->buf + 8, 8);
		if (c->known && was != c->sum)
			tds_wrong(p, "op %d finds %ju, not %ju",
				  (int)(op - p->op), (uintmax_t)was,
				  (uintmax_t)c->sum);
		c->known = 1;
		c->sum = was + add;
	}
}

void tds_op_done(struct tds_play *p, struct tds_ep *e,
		 const struct fi_cq_tagged_entry *c, fi_addr_t src)
{
	struct tds_op *op = c->op_context;

	tds_note(c->flags ^ c->len ^ c->tag);
	if (end(p, e, op, 0))
		return;
	tds_trace("ep %d op %d done, tag %#jx data %#jx len %zu", op->ep,
		  (int)(op - p->op), (uintmax_t)c->tag, (uintmax_t)c->data,
		  c->len);
	if (is_recv(op)) {
		if (c->flags & FI_RECV)
			received(p, e, op, c, src);
		if (op->kind == TDS_OP_RECV || c->flags & FI_MULTI_RECV)
			over(p, op, 0);
		return;
	}
	over(p, op, 0);
	p->sent_ok += is_send(op);
	if (!is_send(op))
		onesided_done(p, op, 0);
}

void tds_op_failed(struct tds_play *p, struct tds_ep *e,
		   const struct fi_cq_err_entry *c)
{
	struct tds_op *op = c->op_context;

	tds_note((uint64_t)c->err);
	tds_trace("ep %d op %d fails: %s", (int)(e - p->ep),
		  op ? (int)(op - p->op) : -1, fi_strerror(c->err));
	p->failed++;
	if (!op) { /* an inject */
		e->failed_injects++;
		if (!tds_may_fail(e, -1, c->err))
			tds_wrong(p, "an inject of ep %d fails: %s",
				  (int)(e - p->ep), fi_strerror(c->err));
		return;
	}
	if (end(p, e, op, c->err))
		return;
	/* A message is lost, and the buffer stays for others. */
	if (op->kind != TDS_OP_MULTI || c->flags & FI_MULTI_RECV)
		over(p, op, c->err);
	if (!(c->err == FI_ECANCELED && op->cancelled) &&
	    !tds_may_fail(e, op->place, c->err))
		tds_wrong(p, "op %d of ep %d with place %d fails: %s",
			  (int)(op - p->op), op->ep, op->place,
			  fi_strerror(c->err));
	if (is_send(op) && op->got && c->err == FI_ECANCELED)
		tds_wrong(p, "op %d was received, and canceled",
			  (int)(op - p->op));
	if (!is_recv(op) && !is_send(op))
		onesided_done(p, op, c->err);
}

/* ---- the end ------------------------------------------------------------- */

int tds_open_sends(struct tds_play *p)
{
	int i;

	for (i = 0; i < p->ops; i++) {
		if (p->op[i].posted && !p->op[i].ended && !is_recv(&p->op[i]) &&
		    p->ep[p->op[i].ep].alive)
			return i + 1;
	}
	return 0;
}

/* Was @m sent with success, and nobody has it, and no excuse? */
static int missing(const struct tds_play *p, const struct tds_op *m)
{
	return m->posted && is_send(m) && m->ended && !m->err && !m->got &&
	       !may_be_lost(p, m);
}

/*
 * Set @left[i] to the number of injects that endpoint i has reported as failed, for
 * excused().
 */
static void begin_excuses(const struct tds_play *p, int left[TDS_EPS])
{
	int i;

	for (i = 0; i < TDS_EPS; i++)
		left[i] = p->ep[i].failed_injects;
}

/*
 * The error of an inject does not say which one failed: it excuses one, any of a pair
 * that came to harm.
 */
static int excused(const struct tds_play *p, const struct tds_op *m,
		   int left[TDS_EPS])
{
	return m->kind == TDS_OP_INJECT && p->ep[m->ep].harm[m->place] &&
	       left[m->ep]-- > 0;
}

int tds_missing(struct tds_play *p)
{
	int left[TDS_EPS], i;

	begin_excuses(p, left);
	for (i = 0; i < p->ops; i++) {
		if (missing(p, &p->op[i]) && !excused(p, &p->op[i], left))
			return i + 1;
	}
	return 0;
}

static const struct tds_play *sorting;

static int by_receive(const void *a, const void *b)
{
	const struct tds_op *x = *(struct tds_op *const *)a;
	const struct tds_op *y = *(struct tds_op *const *)b;
	const struct tds_ep *ex = &sorting->ep[x->ep],
			    *ey = &sorting->ep[y->ep];

	if (x->got_by != y->got_by)
		return x->got_by - y->got_by;
	if (x->cls != y->cls)
		return x->cls - y->cls;
	if (ex->place != ey->place)
		return ex->place - ey->place;
	if (x->got_at != y->got_at)
		return x->got_at < y->got_at ? -1 : 1;
	if (ex->life != ey->life)
		return ex->life - ey->life;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* @a was received before @b. */
static void judge_order(struct tds_play *p, const struct tds_op *a,
			const struct tds_op *b)
{
	const struct tds_ep *ea = &p->ep[a->ep], *eb = &p->ep[b->ep];

	if (a->got_by != b->got_by || a->cls != b->cls ||
	    ea->place != eb->place)
		return;
	if (ea->life > eb->life || (ea->life == eb->life && a->seq > b->seq))
		tds_wrong(p, "messages %d and %d are received in wrong order",
			  (int)(b - p->op), (int)(a - p->op));
}

void tds_judge(struct tds_play *p)
{
	static struct tds_op *list[TDS_OPS];
	int left[TDS_EPS], i;
	size_t n = 0, k;

	begin_excuses(p, left);
	for (i = 0; i < p->ops; i++) {
		struct tds_op *m = &p->op[i];

		if (m->posted && is_send(m) && m->got)
			list[n++] = m;
		if (missing(p, m) && !excused(p, m, left))
			tds_wrong(p, "message %d was sent and is lost", i);
		else if (m->posted && is_send(m) && m->ended && !m->err &&
			 !m->got)
			p->lost++;
	}
	sorting = p;
	qsort(list, n, sizeof(list[0]), by_receive);
	for (k = 1; k < n; k++)
		judge_order(p, list[k - 1], list[k]);
}
