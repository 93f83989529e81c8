/* SPDX-License-Identifier: BSD-2-Clause */
/* The ledger of scenarios: see play.h. Locking: none, one thread. */
#include "play.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "stage.h"
#include "tests/harness/fault.h"
#include "tests/harness/os_fault.h"

static unsigned char room[TDT_PLAY_BYTES];

void tdt_play_wrong(struct tdt_play *p, const char *format, ...)
{
	va_list args;

	if (p->problem[0])
		return;
	va_start(args, format);
	vsnprintf(p->problem, sizeof(p->problem), format, args);
	va_end(args);
}

int tdt_play_struck(const struct tdt_play *p)
{
	return p->lenient || tdt_os_struck() || tdt_alloc_failed();
}

int tdt_play_may_fail(const struct tdt_play *p, int err)
{
	if ((p->invisible && !p->lenient) || !tdt_play_struck(p))
		return 0;
	switch (err) {
	case FI_ECONNRESET:
	case FI_ECONNREFUSED:
	case FI_ECONNABORTED:
	case FI_ETIMEDOUT:
	case FI_EHOSTUNREACH:
	case FI_ENETUNREACH:
	case FI_ENOMEM:
	case FI_EMFILE:
		return 1;
	case FI_EIO: /* the sender's memory cannot be read */
		return p->err == FI_EFAULT;
	default:
		return err == p->err && err != FI_EAGAIN && err != FI_EINTR;
	}
}

int tdt_play_try(struct tdt_play *p, const char *what, int ret)
{
	if (ret < 0 && !tdt_play_may_fail(p, -ret))
		tdt_play_wrong(p, "%s: %s", what, fi_strerror(-ret));
	return ret;
}

uint64_t tdt_play_random(struct tdt_play *p, uint64_t below)
{
	p->random = p->random * 6364136223846793005u + 1442695040888963407u;
	return (p->random >> 33) % below;
}

unsigned char *tdt_play_room(struct tdt_play *p, size_t len)
{
	unsigned char *at = room + p->used;

	if (len > sizeof(room) - p->used) {
		tdt_play_wrong(p, "a scenario of too many bytes");
		return room;
	}
	p->used += (len + 63) & ~(size_t)63;
	return at;
}

struct tdt_move *tdt_play_move(struct tdt_play *p, enum tdt_move_kind kind,
			       size_t ep, size_t len)
{
	struct tdt_move *m;

	if (p->count == TDT_PLAY_MOVES) {
		tdt_play_wrong(p, "a scenario of too many moves");
		p->count--;
	}
	m = &p->moves[p->count];
	memset(m, 0, sizeof(*m));
	m->kind = kind;
	m->ep = ep;
	m->pair = -1;
	m->buf = tdt_play_room(p, len);
	m->len = len;
	m->seed = (uint32_t)p->seed + (uint32_t)p->count++;
	if (kind == TDT_MOVE_RECV)
		memset(m->buf, 0, len);
	else
		tdt_fill(m->buf, len, m->seed);
	return m;
}

void tdt_play_post(struct tdt_play *p, struct tdt_move *m, tdt_play_call call,
		   void *arg)
{
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	ssize_t ret;

	m->posted = 1;
	if (!tdt_play_ep(p, m->ep))
		return;
	do {
		ret = call(p, m, arg);
		if (ret == -FI_EAGAIN)
			tdt_play_turn(p);
		else if (ret && !m->refused) /* once, and the next is taken */
			m->refused = tdt_play_may_fail(p, (int)-ret);
		else
			break;
		if (tdt_now_ms() > end) {
			tdt_play_wrong(p, "a call gives -FI_EAGAIN for ever");
			break;
		}
	} while (ret == -FI_EAGAIN || m->refused);
	m->refused = ret != 0;
	if (ret) {
		m->ended = 1;
		m->err = (int)-ret;
	} else if (m->kind == TDT_MOVE_INJECT) {
		m->ended = 1;
	}
}

static ssize_t post_op(struct tdt_play *p, struct tdt_move *m, void *arg)
{
	return tdt_post_once(tdt_play_ep(p, m->ep), arg);
}

static enum tdt_move_kind kind_of(enum tdt_call call)
{
	if (call == TDT_INJECT || call == TDT_INJECTDATA)
		return TDT_MOVE_INJECT;
	return call < TDT_RECV ? TDT_MOVE_SEND : TDT_MOVE_RECV;
}

struct tdt_move *tdt_play_op(struct tdt_play *p, size_t ep, size_t other,
			     struct tdt_op *op, struct tdt_move *pair)
{
	struct tdt_move *m = tdt_play_move(p, kind_of(op->call), ep, op->len);

	m->untagged = !op->tagged;
	op->addr = other < TDT_PLAY_EPS ? p->addr[ep][other] : FI_ADDR_UNSPEC;
	tdt_play_again(p, m, op, pair);
	return m;
}

void tdt_play_again(struct tdt_play *p, struct tdt_move *m, struct tdt_op *op,
		    struct tdt_move *pair)
{
	if (m->len < op->len)
		m->buf = tdt_play_room(p, op->len);
	m->len = op->len;
	m->ended = 0;
	op->buf = m->buf;
	op->context = m;
	if (pair) {
		m->pair = (int)(pair - p->moves);
		pair->pair = (int)(m - p->moves);
	}
	tdt_play_post(p, m, post_op, op);
}

struct tdt_move *tdt_play_pass(struct tdt_play *p, size_t from, size_t to,
			       size_t len, int tagged)
{
	struct tdt_op op;
	struct tdt_move *in;

	memset(&op, 0, sizeof(op));
	op.call = TDT_RECV;
	op.tagged = tagged;
	op.len = len;
	op.tag = ++p->tag;
	in = tdt_play_op(p, to, from, &op, NULL);
	op.call = TDT_SEND;
	tdt_play_op(p, from, to, &op, in);
	return in;
}

/* ---- completions ---------------------------------------------------------- */

/* A completion of @m: a message in its buffer, in the order of the sends. */
static void enter_multi(struct tdt_play *p, struct tdt_move *m,
			const struct tdt_comp *c)
{
	const struct tdt_move *s = m + 1 + m->got;

	if (c->flags & FI_MULTI_RECV)
		m->ended = 1;
	if (c->err) {
		m->err = c->err;
		m->ended = 1;
		return;
	}
	while (s < p->moves + p->count && s->len != c->len)
		s++; /* it failed */
	if (s >= p->moves + p->count ||
	    tdt_differs(c->buf, c->len, s->seed) >= 0)
		tdt_play_wrong(p, "message %d into one buffer is wrong",
			       m->got);
	m->got++;
}

static void enter(struct tdt_play *p, const struct tdt_ep *ep,
		  const struct tdt_comp *c)
{
	struct tdt_move *m = c->context;

	if (p->other && p->other(p, ep, c))
		return;
	if (!m && c->err) {
		p->lost_injects++;
		if (!p->alone && !tdt_play_may_fail(p, c->err))
			tdt_play_wrong(p, "an inject failed: %s",
				       fi_strerror(c->err));
		return;
	}
	if (!m && (c->flags & (FI_REMOTE_WRITE | FI_REMOTE_READ)))
		return;
	if (m < p->moves || m >= p->moves + p->count) {
		tdt_play_wrong(p, "endpoint %zu: a completion of nobody, %s",
			       ep->index, fi_strerror(c->err));
		return;
	}
	if (m->multi) {
		enter_multi(p, m, c);
		return;
	}
	if (m->ended)
		tdt_play_wrong(p, "move %d ended twice, %s then %s",
			       (int)(m - p->moves), fi_strerror(m->err),
			       fi_strerror(c->err));
	m->ended = 1;
	m->err = c->err;
	m->comp = *c;
}

static void read_world(struct tdt_play *p, struct tdt_world *w)
{
	size_t i, k;

	tdt_progress(w);
	if (w->bad)
		tdt_play_wrong(p, "a queue cannot be read: %s",
			       fi_strerror(-w->bad));
	for (i = 0; i < w->count; i++) {
		for (k = 0; k < w->eps[i].comp_count; k++)
			enter(p, &w->eps[i], &w->eps[i].comps[k]);
		w->eps[i].comp_count = 0;
	}
}

void tdt_play_turn(struct tdt_play *p)
{
	read_world(p, p->w);
	if (p->more)
		read_world(p, p->more);
}

int tdt_play_until(struct tdt_play *p, int (*cond)(struct tdt_play *, void *),
		   void *arg, const char *what)
{
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();

	while (!cond(p, arg)) {
		if (p->problem[0])
			return -1;
		tdt_play_turn(p);
		if (tdt_now_ms() > end) {
			tdt_play_wrong(p, "hang: %s", what);
			return -1;
		}
	}
	return 0;
}

/* ---- the other process ---------------------------------------------------- */

/* How a move ended, as it is told. */
static int16_t outcome(struct tdt_play *p, const struct tdt_move *m)
{
	return (int16_t)(m->ended && tdt_play_ep(p, m->ep) ? m->err + 1 : 0);
}

static int heard(struct tdt_play *p, void *arg)
{
	int16_t *told = arg;
	ssize_t n = tdt_hear_now(p->fd, told, TDT_PLAY_MOVES * sizeof(*told));

	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		p->alone = 1;
	return 1;
}

void tdt_play_meet(struct tdt_play *p)
{
	int16_t told[TDT_PLAY_MOVES] = { 0 };
	int i;

	if (!p->two || p->problem[0])
		return;
	for (i = 0; i < p->count; i++)
		told[i] = outcome(p, &p->moves[i]);
	if (!p->alone &&
	    tdt_tell(p->fd, told, (size_t)(p->count + 1) * sizeof(*told)))
		p->alone = 1;
	memset(told, 0, sizeof(told));
	if (!p->alone && tdt_play_until(p, heard, told, "the other process"))
		return;
	for (i = 0; i < p->count; i++) {
		struct tdt_move *m = &p->moves[i];

		if (tdt_play_ep(p, m->ep) || m->ended)
			continue;
		m->ended = told[i] != 0 || p->alone;
		if (m->ended)
			m->err = p->alone ? FI_ECONNRESET : told[i] - 1;
	}
}

/* ---- the end of moves ----------------------------------------------------- */

/* Have all moves of this process ended, receives (@arg not NULL) or others? */
static int all_ended(struct tdt_play *p, void *arg)
{
	int i, receives = arg != NULL;

	for (i = 0; i < p->count; i++) {
		struct tdt_move *m = &p->moves[i];

		if (m->posted && !m->ended && tdt_play_ep(p, m->ep) &&
		    (m->kind == TDT_MOVE_RECV) == receives)
			return 0;
	}
	return 1;
}

static int ended(struct tdt_play *p, void *arg)
{
	struct tdt_move *m = arg;

	(void)p;
	return m->ended;
}

static void cancel(struct tdt_play *p, struct tdt_move *m)
{
	struct tdt_ep *ep = tdt_play_ep(p, m->ep);

	if (!ep || m->ended || m->cancelled)
		return;
	m->cancelled = 1;
	if (fi_cancel(&ep->ep->fid, m) == -FI_ENOMEM)
		fi_cancel(&ep->ep->fid, m);
}

/* Has the other process ended? What it had injected may be lost with it. */
static void look_for_other(struct tdt_play *p)
{
	struct pollfd fd = { .fd = p->fd };

	if (p->two && poll(&fd, 1, 0) > 0)
		p->alone = 1;
}

/* Receives whose sends have failed get nothing. */
static int receives_end(struct tdt_play *p, void *arg)
{
	int i;

	look_for_other(p);
	for (i = 0; i < p->count; i++) {
		struct tdt_move *m = &p->moves[i], *s;

		if (m->kind != TDT_MOVE_RECV || m->ended || m->pair < 0)
			continue;
		s = &p->moves[m->pair];
		if ((s->ended && s->err) || p->alone ||
		    (s->kind == TDT_MOVE_INJECT && p->lost_injects))
			cancel(p, m);
	}
	return all_ended(p, arg);
}

/*
 * Is @m a receive without a tag, in a batch of which a message is missing? Then
 * it may have taken another one than that of its line.
 */
static int shifted(const struct tdt_play *p, const struct tdt_move *m)
{
	int i, missing = p->lost != 0;

	for (i = 0; i < p->count && !missing; i++)
		missing = p->moves[i].err || p->moves[i].cancelled;
	return m->untagged && missing && !p->invisible && tdt_play_struck(p);
}

/*
 * May a message be lost that was sent with success? When a connection is lost, so
 * are messages that the peer's host has acknowledged and the peer has not read:
 * fi_tandem(7), FI_TRANSMIT_COMPLETE. The receive of such a message gets nothing,
 * or part of it.
 */
static int may_lose(const struct tdt_play *p)
{
	return !p->two && !p->invisible && tdt_play_struck(p);
}

/* The error of a receive that had a part of a message when that was lost. */
static int cut_off(const struct tdt_play *p, int err)
{
	return p->tier == TDT_TIER_TCP && may_lose(p) &&
	       (err == FI_ECONNRESET || err == FI_ETIMEDOUT || err == p->err);
}

static void judge_pair(struct tdt_play *p, const struct tdt_move *m)
{
	const struct tdt_move *s = &p->moves[m->pair];
	ssize_t at;

	if (p->alone && !tdt_play_ep(p, m->ep))
		return; /* nobody knows */
	if (shifted(p, m))
		return;
	if (m->err) {
		if (s->err || !s->ended || s->kind != TDT_MOVE_SEND ||
		    m->cancelled || m->err == m->expect || m->err == m->may)
			return;
		if (cut_off(p, m->err))
			p->lost++;
		else
			tdt_play_wrong(p, "move %d was sent, but received: %s",
				       m->pair, fi_strerror(m->err));
		return;
	}
	if (!tdt_play_ep(p, m->ep))
		return;
	if (!tdt_play_struck(p) && m->comp.src != p->addr[m->ep][s->ep])
		tdt_play_wrong(p, "move %d came from %ju", m->pair,
			       (uintmax_t)m->comp.src);
	if (m->comp.len != s->len)
		tdt_play_wrong(p, "move %d: %zu bytes of %zu", m->pair,
			       m->comp.len, s->len);
	at = tdt_differs(m->buf, s->len, s->seed);
	if (at >= 0)
		tdt_play_wrong(p, "move %d: byte %zd is wrong", m->pair, at);
}

static void judge(struct tdt_play *p, const struct tdt_move *m)
{
	int n = (int)(m - p->moves);

	if (!m->posted)
		return;
	if (m->err != m->expect && m->err && m->err != m->may &&
	    !(m->err == FI_ECANCELED && m->cancelled) &&
	    !(m->err == FI_ETRUNC && shifted(p, m)) && tdt_play_ep(p, m->ep) &&
	    !tdt_play_may_fail(p, m->err))
		tdt_play_wrong(p, "move %d of %s failed: %s%s", n,
			       p->scenario->name, fi_strerror(m->err),
			       tdt_play_struck(p) ? "" : ", by itself");
	if (m->expect && !m->err && !tdt_play_struck(p))
		tdt_play_wrong(p, "move %d succeeded, not %s", n,
			       fi_strerror(m->expect));
	if (m->kind == TDT_MOVE_RECV && m->pair >= 0)
		judge_pair(p, m);
}

static void judge_all(struct tdt_play *p)
{
	int i;

	for (i = 0; i < p->count && !p->problem[0]; i++)
		judge(p, &p->moves[i]);
	if (!p->problem[0])
		p->count = 0;
	p->used = 0;
	p->lost_injects = 0;
}

/*
 * A message that is sent behind @lost, and received, tells that @lost does not
 * come.
 */
static int behind(struct tdt_play *p, const struct tdt_move *lost)
{
	size_t from = p->moves[lost->pair].ep, to = lost->ep;
	struct tdt_move *in;
	int n = p->count, i;

	for (i = 0; i < 5 && !p->problem[0]; i++) {
		in = tdt_play_pass(p, from, to, 4, 1);
		if (tdt_play_until(p, all_ended, NULL,
				   "a send behind the lost"))
			return -1;
		if (in[1].err)
			cancel(p, in);
		if (tdt_play_until(p, ended, in, "a receive behind the lost"))
			return -1;
		if (!in->err)
			break;
		p->count = n; /* the next one tries again */
	}
	return 0;
}

/* Cancel the receives of messages that are lost. */
static void find_lost(struct tdt_play *p)
{
	int i, n = p->count;

	for (i = 0; i < n && !p->problem[0]; i++) {
		struct tdt_move *m = &p->moves[i];

		if (m->kind != TDT_MOVE_RECV || m->ended || m->pair < 0 ||
		    p->moves[m->pair].err || behind(p, m) || m->ended)
			continue;
		cancel(p, m);
		p->lost++;
	}
}

/* The operations that have not ended, for the message of a hang. */
static void say_what_hangs(struct tdt_play *p)
{
	char *s = p->problem + strlen(p->problem);
	int i;

	if (strncmp(p->problem, "hang", 4))
		return;
	for (i = 0; i < p->count; i++) {
		struct tdt_move *m = &p->moves[i];
		size_t left = sizeof(p->problem) - (size_t)(s - p->problem);

		if (left < 64)
			return;
		if (!m->ended || m->err)
			s += snprintf(s, left, "; move %d %s at %zu: %s", i,
				      m->kind == TDT_MOVE_RECV ? "in" : "out",
				      m->ep,
				      m->ended ? fi_strerror(m->err) : "open");
	}
}

/* Have the receives ended, or has the first thing struck meanwhile? */
static int receives_end_or_lose(struct tdt_play *p, void *arg)
{
	return receives_end(p, arg) || may_lose(p);
}

static void wait_receives(struct tdt_play *p)
{
	if (!may_lose(p))
		tdt_play_until(p, receives_end_or_lose, p, "receives");
	if (may_lose(p))
		find_lost(p);
	tdt_play_until(p, receives_end, p, "receives");
}

void tdt_play_wait(struct tdt_play *p)
{
	if (p->problem[0])
		return;
	if (!tdt_play_until(p, all_ended, NULL, "sends")) {
		tdt_play_meet(p);
		wait_receives(p);
		tdt_play_meet(p);
	}
	say_what_hangs(p);
	judge_all(p);
}

void tdt_play_drop(struct tdt_play *p)
{
	int i;

	for (i = 0; i < p->count; i++)
		cancel(p, &p->moves[i]);
	tdt_play_wait(p);
}
