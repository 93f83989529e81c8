/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Works with a set of their own. See fab.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "bench/fab.h"

enum {
	MULTI_BUFFERS = 2,
	MULTI_BYTES = 1 << 16,
	MULTI_LEAST = 64, /* a buffer with less room is given back */
};

static struct bench_set held;
static enum bench_kind held_for;
static uint64_t held_peers;

static void open_held(struct bench_subject *s, uint64_t caps, size_t count)
{
	bench_set_open(&held, bench_fab_info(s->provider, caps), FI_WAIT_NONE,
		       count);
}

/* One completion of the set, if there is one: -1 if not. */
static int look(struct fi_cq_tagged_entry *e)
{
	struct fi_cq_err_entry err = { 0 };
	ssize_t n = fi_cq_read(held.cq, e, 1);

	if (n == 1)
		return 0;
	if (n == -FI_EAVAIL) {
		fi_cq_readerr(held.cq, &err, 0);
		bench_fab_check("completion", -err.err);
	}
	if (n != -FI_EAGAIN)
		bench_fab_check("fi_cq_read", n);
	return -1;
}

/* ---- multi-receive ------------------------------------------------------- */

/* The last is of the answer's receive, on side 0. */
static struct fi_context2 multi_ctx[MULTI_BUFFERS + 1], *multi_tx;
static unsigned char *multi_buf;
static uint64_t multi_received, multi_sent;

static void multi_post(unsigned which)
{
	struct iovec iov = { .iov_base = multi_buf + which * MULTI_BYTES,
			     .iov_len = MULTI_BYTES };
	struct fi_msg msg = { .msg_iov = &iov,
			      .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC,
			      .context = &multi_ctx[which] };

	bench_fab_check("fi_recvmsg",
			fi_recvmsg(held.ep[0], &msg, FI_MULTI_RECV));
}

static void multi_open(struct bench_subject *s)
{
	size_t least = MULTI_LEAST;
	unsigned i;

	open_held(s, FI_MSG | FI_MULTI_RECV, 1);
	bench_fab_check("FI_OPT_MIN_MULTI_RECV",
			fi_setopt(&held.ep[0]->fid, FI_OPT_ENDPOINT,
				  FI_OPT_MIN_MULTI_RECV, &least,
				  sizeof(least)));
	bench_set_meet(s, &held, 1);
	multi_buf = calloc(MULTI_BUFFERS, MULTI_BYTES);
	multi_tx = calloc(BENCH_SLOTS, sizeof(*multi_tx));
	if (!multi_buf || !multi_tx)
		bench_die("calloc", ENOMEM);
	for (i = 0; s->side && i < MULTI_BUFFERS; i++)
		multi_post(i);
	bench_ctl_meet(s->ctl, s->side);
}

static void multi_close(void)
{
	free(multi_buf);
	free(multi_tx);
	multi_buf = NULL;
	multi_tx = NULL;
}

static void multi_look(struct bench_subject *s)
{
	struct fi_cq_tagged_entry e;
	unsigned i;

	if (look(&e))
		return;
	if ((uintptr_t)e.op_context - (uintptr_t)multi_ctx >=
	    sizeof(multi_ctx)) {
		multi_sent--;
		return;
	}
	/* The notice that a buffer is given back may come by itself. */
	if (!s->side || e.len)
		multi_received++;
	for (i = 0; e.flags & FI_MULTI_RECV && i < MULTI_BUFFERS; i++) {
		if (e.op_context == &multi_ctx[i])
			multi_post(i);
	}
}

static void multi_send(struct bench_subject *s, size_t len, unsigned slot)
{
	ssize_t ret;

	while ((ret = fi_send(held.ep[0], s->tx, len, NULL, held.peer[0],
			      &multi_tx[slot])) == -FI_EAGAIN)
		multi_look(s);
	bench_fab_check("fi_send", ret);
	multi_sent++;
}

static void multi_wait(struct bench_subject *s, uint64_t messages)
{
	while (multi_sent || multi_received < messages)
		multi_look(s);
	multi_received -= messages;
}

static void multi(struct bench_subject *s, const struct bench_order *o)
{
	uint32_t i, w;

	for (i = 0; i < o->count; i += o->window) {
		if (s->side) {
			multi_wait(s, o->window);
			multi_send(s, 0, 0);
			multi_wait(s, 0);
			continue;
		}
		bench_fab_check("fi_recv", fi_recv(held.ep[0], s->rx, 8, NULL,
						   FI_ADDR_UNSPEC,
						   &multi_ctx[MULTI_BUFFERS]));
		for (w = 0; w < o->window; w++)
			multi_send(s, o->bytes, w);
		multi_wait(s, 1);
	}
}

/* ---- start-up and first contact ------------------------------------------ */

enum { TAG = 1 };

static void start_up(struct bench_subject *s, const struct bench_order *o)
{
	uint32_t i;

	for (i = 0; i < o->count; i++) {
		open_held(s, FI_TAGGED, 1);
		bench_set_close(&held);
	}
}

/*
 * Side 0 has one endpoint, side 1 many: each of them gets a message with its
 * number as tag, and answers.
 */
static struct contact {
	struct fi_context2 rx, tx;
	uint64_t word;
} *contacts;
static uint32_t *ready, nready; /* numbers that are to be sent to */
static uint64_t to_finish;	/* sends and receives */

static void receive_number(struct bench_subject *s, uint32_t k)
{
	bench_fab_check("fi_trecv",
			fi_trecv(held.ep[s->side ? k : 0], &contacts[k].word, 8,
				 NULL, FI_ADDR_UNSPEC, TAG + k, 0,
				 &contacts[k].rx));
}

static void contacts_close(void)
{
	free(contacts);
	free(ready);
	contacts = NULL;
	ready = NULL;
}

static void contacts_open(struct bench_subject *s, uint32_t n)
{
	uint32_t k;

	contacts_close();
	bench_set_close(&held);
	open_held(s, FI_TAGGED, s->side ? n : 1);
	bench_set_meet(s, &held, s->side ? 1 : n);
	contacts = calloc(n + 1, sizeof(*contacts));
	ready = calloc(n + 1, sizeof(*ready));
	if (!contacts || !ready)
		bench_die("calloc", ENOMEM);
	for (k = 0; k < n; k++) {
		receive_number(s, k);
		ready[k] = k;
	}
	nready = s->side ? 0 : n;
	to_finish = 2 * (uint64_t)n;
	bench_ctl_meet(s->ctl, s->side);
}

static ssize_t send_number(struct bench_subject *s, uint32_t k)
{
	return fi_tsend(held.ep[s->side ? k : 0], &contacts[k].word, 8, NULL,
			held.peer[s->side ? 0 : k], TAG + k, &contacts[k].tx);
}

/* To all, or from all and back. */
static void contact(struct bench_subject *s)
{
	struct fi_cq_tagged_entry e;
	uint32_t k, next = 0;
	ssize_t ret = 0;

	while (to_finish) {
		if (!look(&e)) {
			k = (uint32_t)((struct contact *)e.op_context -
				       contacts);
			if (s->side && e.op_context == &contacts[k].rx)
				ready[nready++] = k;
			to_finish--;
		}
		for (; next < nready; next++) {
			ret = send_number(s, ready[next]);
			if (ret == -FI_EAGAIN)
				break;
			bench_fab_check("fi_tsend", ret);
		}
	}
}

/* ---- idle peers ---------------------------------------------------------- */

/* All have had a message and have answered; now nothing happens. */
static void idle_open(struct bench_subject *s, uint32_t peers)
{
	contacts_open(s, peers);
	contact(s);
	bench_ctl_meet(s->ctl, s->side);
}

static void idle(const struct bench_order *o)
{
	struct fi_cq_tagged_entry e;
	uint32_t i;

	for (i = 0; i < o->count; i++)
		look(&e);
}

/* ---- a batch ------------------------------------------------------------- */

void bench_extra_begin(struct bench_subject *s, const struct bench_order *o)
{
	(void)s;
	if (!held.info || (o->kind == held_for && o->bytes == held_peers))
		return;
	multi_close();
	contacts_close();
	bench_set_close(&held);
}

void bench_extra_prepare(struct bench_subject *s, const struct bench_order *o)
{
	if (o->kind == BENCH_MULTI && !held.info)
		multi_open(s);
	else if (o->kind == BENCH_FIRST)
		contacts_open(s, (uint32_t)o->bytes);
	else if (o->kind == BENCH_IDLE && !held.info)
		idle_open(s, (uint32_t)o->bytes);
	held_for = o->kind;
	held_peers = o->bytes;
}

void bench_extra_work(struct bench_subject *s, const struct bench_order *o)
{
	if (o->kind == BENCH_MULTI)
		multi(s, o);
	else if (o->kind == BENCH_FIRST)
		contact(s);
	else if (o->kind == BENCH_IDLE)
		idle(o);
	else
		start_up(s, o);
}
