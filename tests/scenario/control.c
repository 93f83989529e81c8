/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios of calls beside the transfers: see play.h. Locking: none; the
 * threads of tdt_act_threads() share a flag.
 */
#include "cast.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

static struct tdt_move *one(struct tdt_play *p, enum tdt_call call, size_t ep,
			    size_t other, size_t len)
{
	struct tdt_op op;

	memset(&op, 0, sizeof(op));
	op.call = call;
	op.tagged = 1;
	op.len = len;
	op.tag = 77;
	return tdt_play_op(p, ep, other, &op, NULL);
}

static int ended(struct tdt_play *p, void *arg)
{
	struct tdt_move *m = arg;

	(void)p;
	return m->ended;
}

static void cancel(struct tdt_play *p, struct tdt_move *m)
{
	struct fid *fid = &tdt_play_ep(p, m->ep)->ep->fid;

	while (!m->ended && fi_cancel(fid, m))
		tdt_play_turn(p); /* no memory for it now */
	m->cancelled = 1;
	tdt_play_until(p, ended, m, "a cancelled operation");
}

/* A receive, an announced send, a send without a path; and one that is over. */
void tdt_act_cancel(struct tdt_play *p)
{
	struct tdt_move *m;

	tdt_play_pass(p, 0, 1, 8, 1);
	tdt_play_wait(p);
	m = one(p, TDT_RECV, 1, TDT_PLAY_EPS, 100);
	m->expect = FI_ECANCELED;
	cancel(p, m);
	m = one(p, TDT_SEND, 0, 1, 300000);
	m->expect = FI_ECANCELED;
	tdt_play_turn(p);
	cancel(p, m);
	tdt_play_wait(p);
	m = tdt_play_pass(p, 0, 1, 8, 1);
	if (!tdt_play_until(p, ended, m + 1, "a send") && !m[1].err)
		fi_cancel(&tdt_play_ep(p, 0)->ep->fid, m + 1);
	tdt_play_wait(p);
}

/* An address that is removed under traffic, and inserted again. */
void tdt_act_av(struct tdt_play *p)
{
	struct tdt_ep *ep = tdt_play_ep(p, 0);
	struct tdt_move *m;
	fi_addr_t old = p->addr[0][1];

	tdt_play_pass(p, 0, 1, 2000, 1);
	tdt_play_wait(p);
	m = one(p, TDT_SEND, 0, 1, 300000); /* nobody receives it */
	m->may = m->expect = FI_ECONNABORTED;
	tdt_play_turn(p);
	tdt_play_try(p, "fi_av_remove", fi_av_remove(ep->av, &old, 1, 0));
	tdt_play_wait(p);
	if (tdt_play_know(p, 0, 1))
		return;
	m = one(p, TDT_SEND, 1, 0, 100); /* may find the old pair gone */
	m->may = FI_ECONNRESET;
	tdt_play_until(p, ended, m, "a send after the removal");
	tdt_play_wait(p);
	tdt_play_pass(p, 0, 1, 2000, 1);
	tdt_play_pass(p, 1, 0, 2000, 1);
	tdt_play_wait(p);
}

/* An endpoint that closes with operations under way, at it and to it. */
void tdt_act_ep_close(struct tdt_play *p)
{
	struct tdt_attr attr;
	struct tdt_move *m;
	struct tdt_op op;

	tdt_play_attr(p, &attr);
	attr.eps = 1;
	if (tdt_play_more(p, &attr) || tdt_play_know(p, 0, 2) ||
	    tdt_play_know(p, 2, 0))
		return;
	tdt_play_pass(p, 0, 2, 30, 1);
	tdt_play_wait(p);
	m = one(p, TDT_SEND, 0, 2, 300000);
	m->expect = m->may = FI_ECONNRESET;
	memset(&op, 0, sizeof(op));
	op.call = TDT_SENDMSG;
	op.tagged = 1;
	op.len = 100;
	op.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
	m = tdt_play_op(p, 0, 2, &op, NULL);
	m->expect = m->may = FI_ECONNRESET;
	m = one(p, TDT_SEND, 2, 0, 300000);
	tdt_play_turn(p);
	tdt_play_close_more(p);
	m->ended = 1; /* dropped by its own fi_close */
	tdt_play_wait(p);
}

void tdt_set_wait_fd(struct tdt_attr *attr)
{
	attr->wait = FI_WAIT_FD;
	attr->one_cq = 1;
}

/*
 * Sleep on the queue of endpoint @ep until it is readable, or until the send @s,
 * for which it waits, has failed.
 */
static void doze(struct tdt_play *p, size_t ep, const struct tdt_move *s)
{
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	struct tdt_ep *a = tdt_play_ep(p, ep), *b = tdt_play_ep(p, !ep);
	struct fid *fid = &a->rx_cq->fid;
	struct pollfd fd = { .events = POLLIN };
	struct fi_cq_tagged_entry none;

	if (fi_control(fid, FI_GETWAIT, &fd.fd))
		tdt_play_wrong(p, "no descriptor to wait for");
	while (!p->problem[0] && !s->ended) {
		if (fi_trywait(p->w->fabric, &fid, 1))
			return;
		if (poll(&fd, 1, 1) > 0)
			return;
		if (fi_cq_read(b->rx_cq, &none, 0) == -FI_EAVAIL)
			return;
		if (tdt_now_ms() > end)
			tdt_play_wrong(p, "hang: nobody woke the sleeper");
	}
}

void tdt_act_wait_fd(struct tdt_play *p)
{
	static const size_t len[] = { 8, 6000, 100000 };
	struct tdt_move *r;
	size_t i;

	for (i = 0; i < 3; i++) {
		r = one(p, TDT_RECV, i % 2, TDT_PLAY_EPS, len[i]);
		tdt_play_turn(p);
		one(p, TDT_SEND, !(i % 2), i % 2, len[i]);
		r->pair = (int)(r + 1 - p->moves);
		r[1].pair = (int)(r - p->moves);
		doze(p, i % 2, r + 1);
		tdt_play_wait(p);
	}
}

void tdt_set_cntrs(struct tdt_attr *attr)
{
	attr->cntrs = 1;
	attr->cntr_wait = FI_WAIT_UNSPEC;
}

/* Successes and errors add up to the operations. */
void tdt_act_cntrs(struct tdt_play *p)
{
	static const size_t len[] = { 8, 3000, 40000 };
	struct tdt_ep *ep = tdt_play_ep(p, 0);
	unsigned good = 0, taken = 0;
	int i;

	for (i = 0; i < 9; i++)
		tdt_play_pass(p, 0, 1, len[i % 3], i & 1);
	tdt_play_wait(p);
	for (i = 0; ep && i < 18; i++) {
		if (p->moves[i].kind != TDT_MOVE_SEND || p->moves[i].refused)
			continue;
		taken++;
		good += !p->moves[i].err;
	}
	if (!ep || p->lost) /* others were sent to find that out */
		return;
	if (fi_cntr_read(ep->tx_cntr) != good ||
	    fi_cntr_readerr(ep->tx_cntr) != taken - good)
		tdt_play_wrong(p, "counted %ju and %ju, not %u and %u",
			       (uintmax_t)fi_cntr_read(ep->tx_cntr),
			       (uintmax_t)fi_cntr_readerr(ep->tx_cntr), good,
			       taken - good);
}

void tdt_set_small_cq(struct tdt_attr *attr)
{
	attr->cq_size = 4;
	attr->tx_size = 8;
}

/* More operations than the queue has entries: calls give -FI_EAGAIN. */
void tdt_act_full_cq(struct tdt_play *p)
{
	int i;

	for (i = 0; i < 30; i++)
		tdt_play_pass(p, 0, 1, 1 + tdt_play_random(p, 3000), i & 1);
	tdt_play_wait(p);
}

static int stop;

static void *drive(void *arg)
{
	struct tdt_world *w = arg;
	struct fi_cq_tagged_entry none;
	size_t i = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		fi_cq_read(w->eps[i % 2].rx_cq, &none, 0);
		fi_cq_read(w->eps[i % 2].tx_cq, &none, 0);
		i++;
	}
	return NULL;
}

/* Three threads make progress beside the one that posts and reads. */
void tdt_act_threads(struct tdt_play *p)
{
	pthread_t thread[3];
	int i, n = 0;

	__atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
	while (n < 3 && !pthread_create(&thread[n], NULL, drive, p->w))
		n++;
	for (i = 0; i < 12; i++)
		tdt_play_pass(p, (size_t)i % 2, !(i % 2),
			      1 + tdt_play_random(p, 30000), i & 2);
	tdt_play_wait(p);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}
