/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See work.h. Side 0 measures: from the moment when both sides stand at the
 * start to the last answer.
 */
#include "bench/work.h"

#include <errno.h>

enum { TAG = 1, TAG_ANSWER = 1 << 20, CALM_NS = 100 * 1000 * 1000 };

/* ---- half round trip ----------------------------------------------------- */

static void send_short(struct bench_subject *s, size_t len, unsigned slot)
{
	if (bench_short(s, len))
		s->ops->inject(s, s->tx, len, TAG);
	else
		s->ops->send(s, s->tx, len, TAG, slot);
}

/* One receive is posted ahead of that of the message that comes next. */
static void latency(struct bench_subject *s, const struct bench_order *o)
{
	uint32_t i;

	for (i = 0; i < o->count; i++) {
		int last = i + 1 == o->count;

		if (!s->side)
			send_short(s, o->bytes, i % 2);
		s->ops->wait_recv(s, last ? 0 : 1);
		if (s->side)
			send_short(s, o->bytes, i % 2);
		if (i + 2 < o->count)
			s->ops->recv(s, s->rx, o->bytes, TAG, i % 2);
		s->ops->wait_send(s);
	}
}

static void latency_prepare(struct bench_subject *s,
			    const struct bench_order *o)
{
	s->ops->recv(s, s->rx, o->bytes, TAG, 0);
	if (o->count > 1)
		s->ops->recv(s, s->rx, o->bytes, TAG, 1);
}

/* Send, wait for its completion, post the receive, wait for it. */
static void late(struct bench_subject *s, const struct bench_order *o)
{
	uint32_t i;

	for (i = 0; i < o->count; i++) {
		if (!s->side) {
			s->ops->send(s, s->tx, o->bytes, TAG, 0);
			s->ops->wait_send(s);
			s->ops->recv(s, s->rx, o->bytes, TAG, 0);
			s->ops->wait_recv(s, 0);
		} else {
			s->ops->recv(s, s->rx, o->bytes, TAG, 0);
			s->ops->wait_recv(s, 0);
			s->ops->send(s, s->tx, o->bytes, TAG, 0);
			s->ops->wait_send(s);
		}
	}
}

static void wake(struct bench_subject *s, const struct bench_order *o)
{
	uint32_t i;

	for (i = 0; i < o->count; i++) {
		s->ops->recv(s, s->rx, o->bytes, TAG, i % 2);
		if (!s->side)
			send_short(s, o->bytes, i % 2);
		s->ops->sleep_recv(s);
		if (s->side)
			send_short(s, o->bytes, i % 2);
	}
	s->ops->wait_send(s);
}

/* ---- a window in one direction, then an answer ---------------------------- */

static void answer(struct bench_subject *s)
{
	if (s->side) {
		s->ops->send(s, s->tx, 0, TAG_ANSWER, 0);
		s->ops->wait_send(s);
	} else {
		s->ops->wait_send(s);
		s->ops->wait_recv(s, 0);
	}
}

static void rate(struct bench_subject *s, const struct bench_order *o)
{
	uint32_t i, w;

	for (i = 0; i < o->count; i += o->window) {
		if (!s->side)
			s->ops->recv(s, s->rx, 8, TAG_ANSWER, 0);
		for (w = 0; w < o->window; w++) {
			if (s->side)
				s->ops->recv(s, s->rx, o->bytes, TAG, w);
			else if (o->kind == BENCH_INJECT)
				s->ops->inject(s, s->tx, o->bytes, TAG);
			else
				s->ops->send(s, s->tx, o->bytes, TAG, w);
		}
		if (s->side)
			s->ops->wait_recv(s, 0);
		answer(s);
	}
}

/* Where message @k of a stream lies in either buffer. */
static size_t place(const struct bench_order *o, uint32_t k)
{
	size_t step = (o->bytes + 4095) & ~(size_t)4095;

	if (o->kind != BENCH_STREAM_FRESH)
		return 0;
	return k % (BENCH_BUFFER_BYTES / step) * step;
}

/* Messages so far with BENCH_STREAM_FRESH. */
static uint32_t fresh;

static void stream(struct bench_subject *s, const struct bench_order *o)
{
	uint32_t i, w;

	for (i = 0; i < o->count; i += o->window) {
		if (!s->side)
			s->ops->recv(s, s->rx, 8, TAG_ANSWER, 0);
		else if (o->kind == BENCH_STREAM_LATE)
			/* the first message is there, or announced */
			for (w = 0; w < 64; w++)
				s->ops->poll(s);
		for (w = 0; w < o->window; w++, fresh++) {
			size_t at = place(o, fresh);

			if (s->side)
				s->ops->recv(s, s->rx + at, o->bytes, TAG, w);
			else
				s->ops->send(s, s->tx + at, o->bytes, TAG, w);
		}
		if (s->side)
			s->ops->wait_recv(s, 0);
		answer(s);
	}
}

/* ---- one-sided ----------------------------------------------------------- */

static int is_write(const struct bench_order *o)
{
	return o->kind == BENCH_WRITE || o->kind == BENCH_WRITE_PLACED;
}

static enum bench_write write_kind(const struct bench_order *o)
{
	return o->kind == BENCH_WRITE ? BENCH_WRITE_PLAIN :
					BENCH_WRITE_TO_PLACE;
}

static void write_data(struct bench_subject *s, const struct bench_order *o)
{
	uint32_t i;

	for (i = 0; i < o->count; i++) {
		if (s->side)
			s->ops->wait_written(s);
		s->ops->write(s, s->tx, o->bytes, BENCH_BUFFER_BYTES, i % 2,
			      BENCH_WRITE_TELL);
		if (!s->side)
			s->ops->wait_written(s);
		s->ops->wait_send(s);
	}
}

static void one_sided(struct bench_subject *s, const struct bench_order *o)
{
	uint32_t i, w;

	for (i = 0; !s->side && i < o->count; i += o->window) {
		for (w = 0; w < o->window; w++) {
			if (is_write(o))
				s->ops->write(s, s->tx, o->bytes,
					      BENCH_BUFFER_BYTES, w,
					      write_kind(o));
			else if (o->kind == BENCH_READ)
				s->ops->read(s, s->rx, o->bytes, 0, w);
			else
				s->ops->fetch_add(s, BENCH_BUFFER_BYTES, w);
		}
		s->ops->wait_send(s);
	}
}

/* The target of one-sided operations makes progress until side 0 is done. */
static void serve(struct bench_subject *s, uint64_t until)
{
	volatile uint64_t *other = &s->ctl->meet[0][1];

	while (__atomic_load_n(other, __ATOMIC_ACQUIRE) < until)
		s->ops->poll(s);
}

/* ---- matching ------------------------------------------------------------ */

/* The receives of a whole queue, tag by tag. */
static void post_all(struct bench_subject *s, const struct bench_order *o,
		     int reverse)
{
	uint32_t k;

	for (k = 0; k < o->window; k++)
		s->ops->recv(s, s->rx, o->bytes,
			     TAG + (reverse ? o->window - 1 - k : k), k);
}

static void send_all(struct bench_subject *s, const struct bench_order *o)
{
	uint32_t k;

	for (k = 0; k < o->window; k++)
		s->ops->send(s, s->tx, o->bytes, TAG + k, k);
}

static void match(struct bench_subject *s, const struct bench_order *o)
{
	if (s->side) {
		s->ops->wait_recv(s, 0);
	} else {
		s->ops->recv(s, s->rx, 8, TAG_ANSWER, 0);
		send_all(s, o);
	}
	answer(s);
}

static void unexpected(struct bench_subject *s, const struct bench_order *o)
{
	if (!s->side) {
		s->ops->wait_send(s);
		return;
	}
	post_all(s, o, 1);
	s->ops->wait_recv(s, 0);
}

static void unexpected_prepare(struct bench_subject *s,
			       const struct bench_order *o)
{
	uint32_t k;

	if (!s->side) {
		send_all(s, o);
		s->ops->send(s, s->tx, 0, TAG_ANSWER, o->window);
		/* the peer gets all of them before it answers */
		s->ops->recv(s, s->rx, 8, TAG_ANSWER, 0);
		s->ops->wait_recv(s, 0);
	} else {
		s->ops->recv(s, s->rx, 8, TAG_ANSWER, 0);
		s->ops->wait_recv(s, 0);
		s->ops->send(s, s->tx, 0, TAG_ANSWER, 0);
		s->ops->wait_send(s);
	}
	for (k = 0; k < 64; k++)
		s->ops->poll(s);
}

static void empty(struct bench_subject *s, const struct bench_order *o)
{
	uint32_t i;

	for (i = 0; !s->side && i < o->count; i++)
		s->ops->poll(s);
}

/* ---- a batch ------------------------------------------------------------- */

static void prepare(struct bench_subject *s, const struct bench_order *o)
{
	if (o->kind == BENCH_LATENCY)
		latency_prepare(s, o);
	else if (o->kind == BENCH_MATCH && s->side)
		post_all(s, o, 1);
	else if (o->kind == BENCH_UNEXPECTED)
		unexpected_prepare(s, o);
	else if (s->ops->prepare)
		s->ops->prepare(s, o);
}

static void carry_out(struct bench_subject *s, const struct bench_order *o)
{
	switch (o->kind) {
	case BENCH_LATENCY:
		latency(s, o);
		break;
	case BENCH_LATE:
		late(s, o);
		break;
	case BENCH_RATE:
	case BENCH_INJECT:
		rate(s, o);
		break;
	case BENCH_STREAM:
	case BENCH_STREAM_LATE:
	case BENCH_STREAM_FRESH:
		stream(s, o);
		break;
	case BENCH_WRITE:
	case BENCH_WRITE_PLACED:
	case BENCH_READ:
	case BENCH_FETCH_ADD:
		one_sided(s, o);
		break;
	case BENCH_WRITE_DATA:
		write_data(s, o);
		break;
	case BENCH_MATCH:
		match(s, o);
		break;
	case BENCH_UNEXPECTED:
		unexpected(s, o);
		break;
	case BENCH_EMPTY:
		empty(s, o);
		break;
	case BENCH_WAKE:
		wake(s, o);
		break;
	case BENCH_MULTI:
	case BENCH_START:
	case BENCH_FIRST:
	case BENCH_IDLE:
		s->ops->work(s, o);
		break;
	default:
		bench_die("unknown work", EINVAL);
	}
}

/* Does side 1 only make progress while side 0 works? */
static int passive(const struct bench_order *o)
{
	return is_write(o) || o->kind == BENCH_READ ||
	       o->kind == BENCH_FETCH_ADD || o->kind == BENCH_EMPTY ||
	       o->kind == BENCH_UNEXPECTED || o->kind == BENCH_START ||
	       o->kind == BENCH_IDLE;
}

/*
 * Carry out @o, or with matching one queue of it, prepared beforehand. Returns
 * the time that the leading side took, in ns.
 */
static uint64_t timed(struct bench_subject *s, const struct bench_order *o)
{
	volatile uint64_t *done = &s->ctl->meet[0][1];
	uint64_t start, end, until = *done + 1;
	int leads = o->kind != BENCH_UNEXPECTED ? !s->side : s->side;

	bench_meet(s, o);
	prepare(s, o);
	bench_meet(s, o);
	start = bench_now();
	if (leads || !passive(o))
		carry_out(s, o);
	if (o->pairs)
		bench_meet(s, o);
	end = bench_now();
	if (leads)
		__atomic_store_n(done, until, __ATOMIC_RELEASE);
	else if (passive(o))
		serve(s, until);
	if (o->kind == BENCH_UNEXPECTED && !leads)
		s->ops->wait_send(s);
	if (leads)
		s->ctl->meet[0][2] = end - start;
	bench_meet(s, o);
	return s->ctl->meet[0][2];
}

uint64_t bench_work_batch(struct bench_subject *s, const struct bench_order *o)
{
	uint64_t ns = 0;
	uint32_t i;

	if (o->kind != BENCH_MATCH && o->kind != BENCH_UNEXPECTED)
		return timed(s, o);
	for (i = 0; i < o->count; i += o->window)
		ns += timed(s, o);
	return ns;
}

void bench_work_calm(struct bench_subject *s, const struct bench_order *o)
{
	struct bench_order some = *o;
	uint64_t until = bench_now() + CALM_NS;

	if (s->side || (o->kind != BENCH_EMPTY && o->kind != BENCH_IDLE))
		return;
	some.count = 64;
	while (bench_now() < until)
		carry_out(s, &some);
}

int bench_work_possible(const struct bench_subject *s,
			const struct bench_order *o)
{
	const struct bench_ops *ops = s->ops;

	switch (o->kind) {
	case BENCH_INJECT:
		return ops->inject && o->bytes <= s->inject_most;
	case BENCH_WRITE:
	case BENCH_WRITE_PLACED:
	case BENCH_WRITE_DATA:
		return ops->write != NULL;
	case BENCH_READ:
		return ops->read != NULL;
	case BENCH_FETCH_ADD:
		return ops->fetch_add != NULL;
	case BENCH_MULTI:
	case BENCH_START:
	case BENCH_FIRST:
	case BENCH_IDLE:
		return ops->work != NULL;
	case BENCH_WAKE:
		return ops->sleep_recv != NULL;
	default:
		return 1;
	}
}
