/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an actor posts, and what becomes of it: sends and injects of all classes;
 * a write, delivered, then a read that must give the same bytes; fetch-adds to a
 * counter that is this actor's alone.
 */
#include "actor.h"

#include <stdlib.h>
#include <string.h>

/* In 10,000 of what is posted. */
enum {
	LONG = 5,
	ADD = 25,
	WRITE = 45,
	UNTAGGED = 1000,
	MIDDLE = 1500,
	INJECT = 5500
};

enum { AT_ONCE = 16, INJECT_BYTES = 192 };

/* Where this life's memory is at another actor: FI_MR_VIRT_ADDR is not set. */
static uint64_t area_of(const struct tdt_soak_actor *a)
{
	return offsetof(struct tdt_soak_memory, areas) +
	       (a->me * TDT_SOAK_LIVES + a->life % TDT_SOAK_LIVES) *
		       TDT_SOAK_AREA;
}

static uint64_t counter_of(const struct tdt_soak_actor *a)
{
	return offsetof(struct tdt_soak_memory, counters) +
	       (a->me * TDT_SOAK_LIVES + a->life % TDT_SOAK_LIVES) *
		       sizeof(uint64_t);
}

void tdt_soak_traffic_init(struct tdt_soak_actor *a)
{
	size_t i, k;

	for (i = 0; i < TDT_SOAK_OPS; i++) {
		a->ops[i].buf = malloc(TDT_SOAK_SMALL);
		a->ops[i].next = a->unused;
		a->unused = &a->ops[i];
	}
	for (i = 0; i < TDT_SOAK_ACTORS; i++) {
		for (k = 0; k < 2; k++)
			a->longs[i][k].buf = malloc(TDT_SOAK_LARGE);
		for (k = 0; k < TDT_SOAK_CLASSES; k++)
			a->line->sent[i][k].life = a->life;
		a->writes[i].buf = malloc(TDT_SOAK_AREA);
		a->peers[i].unknown = a->me >= TDT_SOAK_LASTING ||
				      i >= TDT_SOAK_LASTING;
	}
}

void tdt_soak_failed(struct tdt_soak_actor *a, size_t to, int err)
{
	if (to < TDT_SOAK_LASTING)
		tdt_soak_wrong(a, "an operation to %zu, which lives: %s", to,
			       fi_strerror(err));
	switch (err) {
	case FI_ECONNRESET:
	case FI_ECONNREFUSED:
		break;
	default:
		tdt_soak_wrong(a, "an operation to %zu: %s", to,
			       fi_strerror(err));
	}
	a->peers[to].failing = 1;
	a->line->errors++;
}

int tdt_soak_idle(const struct tdt_soak_actor *a)
{
	size_t i;

	for (i = 0; i < TDT_SOAK_ACTORS; i++)
		if (a->peers[i].busy || a->peers[i].unread)
			return 0;
	return 1;
}

/* The call that posts @op returned @ret. Is it under way? */
static int posted(struct tdt_soak_actor *a, struct tdt_soak_op *op, ssize_t ret)
{
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret)
		tdt_soak_wrong(a, "a post to %zu: %s", op->to,
			       fi_strerror((int)-ret));
	op->busy = 1;
	a->peers[op->to].busy++;
	return 1;
}

/* ---- messages ------------------------------------------------------------- */

static size_t length_of(struct tdt_soak_actor *a, size_t most)
{
	return sizeof(struct tdt_soak_head) +
	       tdt_seeded(&a->random, most - sizeof(struct tdt_soak_head) + 1);
}

static struct tdt_soak_head head_of(const struct tdt_soak_actor *a, size_t to,
				    enum tdt_soak_class kind)
{
	const struct tdt_soak_stream *s = &a->line->sent[to][kind];
	struct tdt_soak_head h = { .from = (uint16_t)a->me,
				   .kind = (uint16_t)kind,
				   .life = s->life,
				   .epoch = s->epoch,
				   .number = s->next };

	return h;
}

/* The message of class @kind was accepted. */
static void sent(struct tdt_soak_actor *a, size_t to, enum tdt_soak_class kind)
{
	a->line->sent[to][kind].next++;
}

static int inject(struct tdt_soak_actor *a, size_t to)
{
	struct tdt_soak_head h = head_of(a, to, TDT_SOAK_TAGGED);
	size_t len = length_of(a, INJECT_BYTES);
	unsigned char buf[INJECT_BYTES];
	ssize_t ret;

	tdt_soak_write(buf, &h, len);
	ret = fi_tinject(a->ep->ep, buf, len, a->peers[to].addr,
			 TDT_SOAK_TAGGED);
	memset(buf, 0, sizeof(buf));
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret)
		tdt_soak_wrong(a, "fi_tinject to %zu: %s", to,
			       fi_strerror((int)-ret));
	sent(a, to, TDT_SOAK_TAGGED);
	return 1;
}

static int send_op(struct tdt_soak_actor *a, struct tdt_soak_op *op, size_t to,
		   enum tdt_soak_class kind, size_t len)
{
	struct tdt_soak_head h = head_of(a, to, kind);
	fi_addr_t addr = a->peers[to].addr;
	ssize_t ret;

	op->what = TDT_SOAK_SEND;
	op->to = to;
	op->kind = kind;
	tdt_soak_write(op->buf, &h, len);
	if (kind == TDT_SOAK_MULTI)
		ret = fi_send(a->ep->ep, op->buf, len, NULL, addr,
			      &op->context);
	else
		ret = fi_tsend(a->ep->ep, op->buf, len, NULL, addr, kind,
			       &op->context);
	if (!posted(a, op, ret))
		return 0;
	sent(a, to, kind);
	return 1;
}

static int send_small(struct tdt_soak_actor *a, size_t to,
		      enum tdt_soak_class kind, size_t most)
{
	struct tdt_soak_op *op = a->unused;

	if (!op || !send_op(a, op, to, kind, length_of(a, most)))
		return 0;
	a->unused = op->next;
	return 1;
}

static int send_long(struct tdt_soak_actor *a, size_t to)
{
	/* as many of 2 KiB to 4 KiB as of 512 KiB to 1 MiB */
	size_t most = TDT_SOAK_LARGE >> tdt_seeded(&a->random, 9);
	struct tdt_soak_op *op = a->longs[to];

	if (op->busy)
		op++;
	return !op->busy &&
	       send_op(a, op, to, TDT_SOAK_LONG, length_of(a, most));
}

/* ---- one-sided ------------------------------------------------------------ */

/* Is the process that began life @life of actor @to the one that lives? */
static int lives(const struct tdt_soak_actor *a, size_t to, uint64_t life)
{
	return TDT_SOAK_GET(a->board->lines[to].life) == life;
}

static int start_write(struct tdt_soak_actor *a, size_t to)
{
	struct tdt_soak_peer *p = &a->peers[to];
	struct tdt_soak_op *op = &a->writes[to];
	struct fi_rma_iov there;
	struct fi_msg_rma msg;
	struct iovec iov;

	if (p->writing)
		return 0;
	p->write_life = TDT_SOAK_GET(a->board->lines[to].life);
	p->write_key = a->random ^ to;
	op->what = TDT_SOAK_WRITE;
	op->to = to;
	op->len = 1 + tdt_seeded(&a->random, TDT_SOAK_AREA);
	if (tdt_seeded(&a->random, 4))
		op->len = 1 + op->len % 256;
	tdt_seeded_fill(op->buf, op->len, p->write_key);
	iov.iov_base = op->buf;
	iov.iov_len = op->len;
	there.addr = area_of(a);
	there.len = op->len;
	there.key = TDT_SOAK_KEY;
	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = &iov;
	msg.iov_count = 1;
	msg.addr = p->addr;
	msg.rma_iov = &there;
	msg.rma_iov_count = 1;
	msg.context = &op->context;
	if (!posted(a, op,
		    fi_writemsg(a->ep->ep, &msg,
				FI_COMPLETION | FI_DELIVERY_COMPLETE)))
		return 0;
	p->writing = 1;
	return 1;
}

void tdt_soak_read_back(struct tdt_soak_actor *a)
{
	size_t to;

	for (to = 0; to < TDT_SOAK_ACTORS; to++) {
		struct tdt_soak_peer *p = &a->peers[to];
		struct tdt_soak_op *op = &a->writes[to];

		if (p->unread &&
		    posted(a, op,
			   fi_read(a->ep->ep, op->buf, op->len, NULL, p->addr,
				   area_of(a), TDT_SOAK_KEY, &op->context)))
			p->unread = 0;
	}
}

/* The bytes are there. */
static void written(struct tdt_soak_actor *a, struct tdt_soak_op *op, int err)
{
	struct tdt_soak_peer *p = &a->peers[op->to];

	p->unread = !err;
	p->writing = !err;
	op->what = TDT_SOAK_READ;
	memset(op->buf, 0x5a, op->len);
}

static int start_add(struct tdt_soak_actor *a, size_t to)
{
	struct tdt_soak_peer *p = &a->peers[to];
	struct tdt_soak_op *op = &a->adds[to];
	static const uint64_t one = 1;

	if (p->adding)
		return 0;
	p->unknown |= !lives(a, to, p->add_life) && to >= TDT_SOAK_LASTING;
	p->add_life = TDT_SOAK_GET(a->board->lines[to].life);
	op->what = TDT_SOAK_ADD;
	op->to = to;
	if (!posted(a, op,
		    fi_fetch_atomic(a->ep->ep, &one, 1, NULL, &a->old[to], NULL,
				    p->addr, counter_of(a), TDT_SOAK_KEY,
				    FI_UINT64, FI_SUM, &op->context)))
		return 0;
	p->adding = 1;
	return 1;
}

static void added(struct tdt_soak_actor *a, size_t to, int err)
{
	struct tdt_soak_peer *p = &a->peers[to];
	uint64_t *sum = &a->line->added[to];

	p->adding = 0;
	if (err || !lives(a, to, p->add_life)) {
		p->unknown = 1; /* executed or not */
		return;
	}
	if (p->unknown)
		*sum = a->old[to];
	p->unknown = 0;
	if (a->old[to] != *sum)
		tdt_soak_wrong(a, "a fetch-add at %zu gave %llu, not %llu", to,
			       (unsigned long long)a->old[to],
			       (unsigned long long)*sum);
	++*sum;
	a->line->atomics++;
}

static void read_ended(struct tdt_soak_actor *a, struct tdt_soak_op *op,
		       int err)
{
	struct tdt_soak_peer *p = &a->peers[op->to];

	p->writing = 0;
	if (err || !lives(a, op->to, p->write_life))
		return;
	if (!tdt_seeded_same(op->buf, op->len, p->write_key))
		tdt_soak_wrong(a,
			       "%zu bytes read from %zu are not those "
			       "written",
			       op->len, op->to);
	a->line->writes++;
}

/* ---- both ----------------------------------------------------------------- */

void tdt_soak_ended(struct tdt_soak_actor *a, struct tdt_soak_op *op, int err)
{
	struct tdt_soak_peer *p = &a->peers[op->to];

	if (!op->busy)
		tdt_soak_wrong(a, "an operation to %zu ended twice", op->to);
	op->busy = 0;
	p->busy--;
	if (err)
		tdt_soak_failed(a, op->to, err);
	switch (op->what) {
	case TDT_SOAK_WRITE:
		written(a, op, err);
		break;
	case TDT_SOAK_READ:
		read_ended(a, op, err);
		break;
	case TDT_SOAK_ADD:
		added(a, op->to, err);
		break;
	default:
		if (op->kind == TDT_SOAK_LONG)
			break;
		op->next = a->unused;
		a->unused = op;
	}
}

static int post_one(struct tdt_soak_actor *a, size_t to)
{
	uint64_t r = tdt_seeded(&a->random, 10000);

	if (r < LONG)
		return send_long(a, to);
	if (r < ADD)
		return start_add(a, to);
	if (r < WRITE)
		return start_write(a, to);
	if (r < UNTAGGED)
		return send_small(a, to, TDT_SOAK_MULTI, TDT_SOAK_UNTAGGED);
	if (r < MIDDLE)
		return send_small(a, to, TDT_SOAK_TAGGED, TDT_SOAK_SMALL);
	if (r < INJECT)
		return inject(a, to);
	return send_small(a, to, TDT_SOAK_TAGGED, 256);
}

unsigned tdt_soak_post(struct tdt_soak_actor *a, size_t to)
{
	struct tdt_soak_peer *p = &a->peers[to];
	unsigned i, n = 0;

	if (p->failing) {
		if (p->busy)
			return 0;
		p->failing = 0;
		for (i = 0; i < TDT_SOAK_CLASSES; i++) {
			a->line->sent[to][i].epoch++;
			a->line->sent[to][i].next = 0;
		}
	}
	for (i = 0; i < AT_ONCE && p->busy < TDT_SOAK_WINDOW; i++)
		n += (unsigned)post_one(a, to);
	return n;
}
