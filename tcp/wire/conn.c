/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of an endpoint, at most one for each pair, and their states.
 *
 *   IDLE ------------ send, or probe ------------------> CONNECTING
 *   CONNECTING ------ connected, and a send waits -----> GREETING
 *   CONNECTING ------ connected, for a probe only -----> SILENT
 *   SILENT ---------- send ----------------------------> GREETING
 *   SILENT ---------- the peer closed -----------------> IDLE
 *   GREETING -------- the peer's HELLO ----------------> READY
 *   CONNECTING, GREETING --- refused, or lost ---------> BACKOFF
 *   BACKOFF --------- timer, and a send waits ---------> CONNECTING
 *   BACKOFF --------- timer, and no send waits --------> IDLE
 *   READY ----------- YES or GO was written -----------> CLOSING
 *   CLOSING --------- STAY ----------------------------> READY
 *   CLOSING --------- GO ------------------------------> IDLE
 *   any ------------- lost for good, or given up ------> DEAD
 *
 * IDLE: no socket. CONNECTING: connect() under way. SILENT: connected for a
 * probe, nothing sent; a send goes on to GREETING on the same socket.
 * GREETING: our HELLO was sent; lasts until the peer answers, since a stopped
 * or busy peer is not dead, or until the network was silent for the peer time-out. BACKOFF: the timer for the next attempt runs.
 * READY: a session is open; a HELLO of the peer can also open one from IDLE,
 * CONNECTING, SILENT, GREETING and BACKOFF (tdm_admit_guest). CLOSING: the idle
 * close of the session is agreed (idle_close.c) and nothing is sent. DEAD: all
 * operations have ended; unexpected messages may still refer to the memory.
 *
 * Invariants:
 *  1. c->io.fd >= 0 exactly in CONNECTING, SILENT, GREETING, READY, CLOSING, and
 *     during the attempts of RESUMING.
 *  2. A connection that is not DEAD is in the address table, except the
 *     receiving half of a connection to ourselves (mirrored).
 *  3. Records are sent only in READY, and handled only in READY and CLOSING.
 *  4. If c->known is set, the values of the peer's last HELLO are valid, also
 *     while no session is open; a HELLO with another incarnation ends this
 *     connection.
 *
 * Spec: doc/PROTOCOL-tcp.md, "States".
 */
#include "tcp/wire/conn.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "av/av.h"
#include "base/advice.h"
#include "base/env.h"
#include "base/log.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/hello.h"
#include "tcp/wire/keep.h"
#include "tcp/wire/meet.h"
#include "tcp/wire/out.h"
#include "tcp/wire/resume.h"
#include "tcp/wire/rx.h"
#include "tcp/wire/rx_msg.h"
#include "tcp/wire/send.h"
#include "tcp/wire/stall.h"
#include "tcp/wire/tls.h"
#include "tcp/wire/tx.h"

enum {
	BACKOFF_LEAST_MS = 10,
	/*
	 * A probe this long after the previous one starts a new connect
	 * time-out.
	 */
	PROBE_GAP_NS = 2000000000,
	/*
	 * If GREETING lasted this long, the peer's host had accepted: restart the
	 * connect time-out, but not twice in a row where the network was silent.
	 */
	GREETING_LONG_NS = 2000000000,
};

#define BIT(s) (1u << TDM_CONN_##s)

static void silent_readable(struct tdm_conn *c);
static void ready_readable(struct tdm_conn *c);
static void ready_writable(struct tdm_conn *c);
static void greeting_writable(struct tdm_conn *c);

static const struct {
	const char *name;
	unsigned next; /* states that may follow */
	void (*readable)(struct tdm_conn *c);
	void (*writable)(struct tdm_conn *c);
} states[] = {
	[TDM_CONN_IDLE] = { "idle",
			    BIT(CONNECTING) | BIT(BACKOFF) | BIT(READY) |
				    BIT(DEAD),
			    NULL, NULL },
	[TDM_CONN_CONNECTING] = { "connecting",
				  BIT(SILENT) | BIT(GREETING) | BIT(BACKOFF) |
					  BIT(IDLE) | BIT(READY) | BIT(DEAD),
				  NULL, tdm_hello_connected },
	[TDM_CONN_SILENT] = { "silent",
			      BIT(GREETING) | BIT(IDLE) | BIT(BACKOFF) |
				      BIT(READY) | BIT(DEAD),
			      silent_readable, NULL },
	[TDM_CONN_GREETING] = { "greeting",
				BIT(IDLE) | BIT(BACKOFF) | BIT(READY) |
					BIT(DEAD),
				tdm_hello_answer, greeting_writable },
	[TDM_CONN_BACKOFF] = { "backoff",
			       BIT(CONNECTING) | BIT(IDLE) | BIT(BACKOFF) |
				       BIT(READY) | BIT(DEAD),
			       NULL, NULL },
	[TDM_CONN_DEAD] = { "dead", 0, NULL, NULL },
	[TDM_CONN_RESUMING] = { "resuming",
				BIT(READY) | BIT(CLOSING) | BIT(DEAD),
				tdm_resume_readable, tdm_resume_writable },
	[TDM_CONN_READY] = { "ready", BIT(CLOSING) | BIT(RESUMING) | BIT(DEAD),
			     ready_readable, ready_writable },
	[TDM_CONN_CLOSING] = { "closing",
			       BIT(READY) | BIT(RESUMING) | BIT(IDLE) |
				       BIT(DEAD),
			       ready_readable, ready_writable },
};

void tdm_conn_set_state(struct tdm_conn *c, enum tdm_conn_state state)
{
	assert(states[c->state].next & (1u << state));
	TDM_DBG(EP_CTRL, "connection %s -> %s", states[c->state].name,
		states[state].name);
	c->state = (uint8_t)state;
	if (c->setup)
		c->setup->entered_ns = tdm_os.now_ns();
}

static void silent_readable(struct tdm_conn *c)
{
	char byte;

	if (tdm_os.recv(c->io.fd, &byte, 1, MSG_DONTWAIT) < 0 &&
	    (errno == EAGAIN || errno == EINTR))
		return;
	/*
	 * The peer closed the probe's connection because it sent no HELLO. The
	 * peer is alive, so the probe has succeeded.
	 */
	tdm_conn_close_fd(c);
	tdm_conn_set_state(c, TDM_CONN_IDLE);
}

static void ready_readable(struct tdm_conn *c)
{
	tdm_rx_ready(c);
}

static void ready_writable(struct tdm_conn *c)
{
	c->blocked = 0;
	tdm_conn_push(c);
	/* The state may have changed to IDLE, and to CONNECTING again. */
	if (!c->blocked && c->io.fd >= 0 && c->state != TDM_CONN_CONNECTING)
		tdm_conn_watch(c, TDM_LOOP_READ);
}

static void greeting_writable(struct tdm_conn *c)
{
	if (c->tls && !tdm_tls_ready(c->tls))
		tdm_hello_answer(c); /* goes on with the handshake */
	else
		ready_writable(c);
}

static void ready(struct tdm_loop_io *io, int events)
{
	struct tdm_conn *c = tdm_container_of(io, struct tdm_conn, io);

	if ((events & TDM_LOOP_WRITE) && states[c->state].writable)
		states[c->state].writable(c);
	if ((events & TDM_LOOP_READ) && states[c->state].readable)
		states[c->state].readable(c);
}

void tdm_conn_timer(struct tdm_loop_timer *timer)
{
	struct tdm_conn *c =
		tdm_container_of(timer, struct tdm_setup, timer)->conn;

	switch (c->state) {
	case TDM_CONN_BACKOFF:
		if (tdm_conn_wanted(c))
			tdm_hello_connect(c);
		else
			tdm_conn_set_state(c, TDM_CONN_IDLE);
		break;
	case TDM_CONN_CONNECTING:
		tdm_conn_retry(c, FI_ETIMEDOUT);
		break;
	case TDM_CONN_READY:
	case TDM_CONN_CLOSING:
		tdm_setup_free(c);
		c->blocked = 0;
		tdm_conn_push(c);
		break;
	case TDM_CONN_GREETING:
		c->blocked = 0;
		tdm_conn_push(c);
		break;
	case TDM_CONN_RESUMING:
		tdm_resume_timer(c);
		break;
	default:
		break;
	}
}

/* The head of the chain that a pair with the address @addr is in. */
static struct tdm_conn **chain(const struct tdm_tcp *tcp,
			       const struct tdm_addr *addr)
{
	return &tcp->bucket[tdm_addr_hash(addr) & (tcp->buckets - 1)];
}

static void chain_add(struct tdm_conn *c)
{
	struct tdm_conn **head = chain(c->tcp, &c->addr);

	c->next = *head;
	*head = c;
}

/* Not 0: @c was in the table, and is not any more. */
static int chain_del(struct tdm_conn *c)
{
	struct tdm_conn **at = chain(c->tcp, &c->addr);

	while (*at && *at != c)
		at = &(*at)->next;
	if (!*at)
		return 0;
	*at = c->next;
	return 1;
}

/* Keep the chains short; without memory they stay long. */
static void grow(struct tdm_tcp *tcp)
{
	size_t n = tcp->buckets * 2;
	struct tdm_conn **fresh = calloc(n, sizeof(*fresh));
	struct tdm_list *pos;

	if (!fresh)
		return;
	free(tcp->bucket);
	tcp->bucket = fresh;
	tcp->buckets = n;
	tdm_list_for_each(pos, &tcp->conns) {
		struct tdm_conn *c = tdm_list_entry(pos, struct tdm_conn, all);

		if (!c->mirrored)
			chain_add(c);
	}
}

void tdm_conn_set_source(struct tdm_conn *c, fi_addr_t fi_addr, uint32_t group)
{
	c->fi_addr = fi_addr;
	c->rx_group = group;
	if (!c->tcp->a.spaces)
		c->from = fi_addr;
	else if (fi_addr == FI_ADDR_UNSPEC)
		c->from = tdm_space_by_key(tdm_space_of(0, group), c->addr.key);
	else
		c->from = tdm_space_of(fi_addr, group);
}

struct tdm_conn *tdm_conn_new(struct tdm_tcp *tcp, const struct tdm_addr *addr)
{
	struct tdm_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->tcp = tcp;
	tdm_busy_init(c);
	c->io.fd = -1;
	c->io.ready = ready;
	c->addr = *addr;
	tdm_conn_set_source(c, tdm_av_find(tcp->a.av, addr), 0);
	c->tx_pass = UINT32_MAX;
	tdm_list_init(&c->sendq);
	tdm_list_init(&c->ackq);
	tdm_list_init(&c->flush_node);
	tdm_list_init(&c->ack_node);
	tdm_list_init(&c->unacked_node);
	tdm_list_init(&c->all);
	tdm_list_append(&tcp->conns, &c->all);
	return c;
}

struct tdm_conn *tdm_conn_find(struct tdm_tcp *tcp, const struct tdm_addr *addr)
{
	struct tdm_conn *c = *chain(tcp, addr);

	while (c && !tdm_addr_equal(&c->addr, addr))
		c = c->next;
	return c;
}

struct tdm_conn *tdm_conn_get(struct tdm_tcp *tcp, const struct tdm_addr *addr,
			      fi_addr_t fi_addr)
{
	struct tdm_conn *c = tdm_conn_find(tcp, addr);

	if (!c) {
		c = tdm_conn_new(tcp, addr);
		if (!c)
			return NULL;
		chain_add(c);
		if (++tcp->pairs > tcp->buckets)
			grow(tcp);
	}
	if (c->fi_addr == FI_ADDR_UNSPEC)
		tdm_conn_set_source(c, fi_addr, c->rx_group);
	return c;
}

void tdm_conn_take(struct tdm_conn *c, struct tdm_sock s)
{
	c->io.fd = s.fd;
	c->tls = s.tls;
	c->layered |= s.tls != NULL;
	c->tcp->open++;
	c->tx_err = 0;
	c->unheard_ns = 0;
}

void tdm_conn_close_fd(struct tdm_conn *c)
{
	tdm_sock_close(c);
	tdm_out_free(c);
}

void tdm_conn_watch(struct tdm_conn *c, int events)
{
	if (c->io.events == events ||
	    !tdm_loop_watch(c->tcp->a.loop, &c->io, events))
		return;
	c->tx_err = FI_ENOMEM;
	tdm_conn_again(c);
}

/*
 * Not 0 when the connect time-out has passed at time @now, or that of refusals
 * at time @failed, when the last attempt failed.
 */
static int over(const struct tdm_conn *c, uint64_t now, uint64_t failed)
{
	const struct tdm_setup *s = c->setup;

	if (s->refused_ns && tdm_refused_over(failed - s->refused_ns, c->brief))
		return 1;
	return tdm_env.conn_timeout_ms &&
	       now - s->since_ns >= tdm_env.conn_timeout_ms * 1000000ull;
}

/*
 * Keep the result @err of an attempt. Only a refusal by the kernel says that
 * nobody listens; in GREETING somebody has accepted.
 */
static void keep_result(const struct tdm_conn *c, int err, uint64_t now)
{
	struct tdm_setup *s = c->setup;

	s->why = err;
	if (err != FI_ECONNREFUSED || c->state == TDM_CONN_GREETING)
		s->refused_ns = 0;
	else if (!s->refused_ns)
		s->refused_ns = now;
}

void tdm_conn_brief(struct tdm_conn *c)
{
	c->brief = 1;
}

static void tell_unreached(struct tdm_conn *c, int err)
{
	const char *advice = tdm_advice(err);

	TDM_CONN_INFO(c, "cannot be reached by tcp: %s%s%s", fi_strerror(err),
		      *advice ? ": " : "", advice);
}

void tdm_conn_back_off(struct tdm_conn *c)
{
	struct tdm_setup *s = c->setup;
	unsigned ms;

	s->backoff_ms = (unsigned)tdm_clamp(
		s->backoff_ms * 2ull, BACKOFF_LEAST_MS, TDM_BACKOFF_MOST_MS);
	/* Random, so that two sides do not collide again and again. */
	c->tcp->dice = c->tcp->dice * 1664525u + 1013904223u;
	ms = s->backoff_ms - (c->tcp->dice >> 16) % (s->backoff_ms / 2);
	if (tdm_loop_timer_arm(c->tcp->a.loop, &s->timer, ms))
		tdm_conn_fail(c, FI_ENOMEM, 0);
}

void tdm_conn_retry(struct tdm_conn *c, int err)
{
	uint64_t now = tdm_os.now_ns();
	struct tdm_setup *s = c->setup;

	assert(s);
	if (c->state == TDM_CONN_GREETING &&
	    now - s->entered_ns > GREETING_LONG_NS &&
	    !(err == FI_ETIMEDOUT && s->why == FI_ETIMEDOUT))
		s->since_ns = now;
	tdm_conn_close_fd(c);
	tdm_loop_timer_disarm(&s->timer);
	keep_result(c, err, now);
	s->tries++;
	c->tcp->retries++;
	if (tdm_conn_wanted(c) && over(c, now, now)) {
		tell_unreached(c, err);
		tdm_conn_fail(c, err, 0);
		return;
	}
	tdm_conn_set_state(c, TDM_CONN_BACKOFF);
	tdm_conn_back_off(c);
}

int tdm_conn_probe(struct tdm_conn *c)
{
	uint64_t now;

	tdm_assert_held(c->tcp->a.engine->lock);
	if (c->state == TDM_CONN_IDLE) {
		if (!tdm_setup_get(c))
			return -FI_EAGAIN;
		now = tdm_os.now_ns();
		if (now - c->setup->entered_ns > PROBE_GAP_NS) {
			c->setup->since_ns = 0;
			c->setup->refused_ns = 0;
		}
		tdm_hello_connect(c);
	}
	if (c->state == TDM_CONN_CONNECTING)
		tdm_hello_connected(c);
	switch (c->state) {
	case TDM_CONN_SILENT:
	case TDM_CONN_GREETING:
	case TDM_CONN_RESUMING:
	case TDM_CONN_READY:
	case TDM_CONN_CLOSING:
		return 0;
	case TDM_CONN_BACKOFF:
		break;
	case TDM_CONN_DEAD:
		return -FI_ECONNREFUSED;
	default:
		return -FI_EAGAIN;
	}
	now = tdm_os.now_ns();
	if (over(c, now, c->setup->entered_ns)) {
		tell_unreached(c, c->setup->why);
		c->setup->since_ns = now;
		c->setup->refused_ns = 0;
		c->setup->backoff_ms = 0;
		c->brief = 1;
		return c->setup->why == FI_ECONNREFUSED ? -FI_ETIMEDOUT :
							  -c->setup->why;
	}
	return c->setup->why == FI_ECONNREFUSED ? -FI_ECONNREFUSED : -FI_EAGAIN;
}

/* Take @c off all lists except those of its own operations. */
static void unlink_conn(struct tdm_conn *c)
{
	struct tdm_tcp *tcp = c->tcp;

	tdm_conn_close_fd(c);
	tdm_setup_free(c);
	tdm_stall_forget(c);
	tcp->pairs -= (size_t)chain_del(c);
	tdm_list_del(&c->flush_node);
	tdm_list_del(&c->ack_node);
	tdm_list_del(&c->unacked_node);
	tdm_list_del(&c->all);
	tdm_list_append(&tcp->dead, &c->all);
}

void tdm_conn_drop(struct tdm_conn *c)
{
	tdm_assert_held(c->tcp->a.engine->lock);
	c->wanted = 0;
	if (tdm_conn_live(c) || c->state == TDM_CONN_DEAD || tdm_conn_wanted(c))
		return;
	unlink_conn(c);
	tdm_conn_set_state(c, TDM_CONN_DEAD);
}

void tdm_conn_fail(struct tdm_conn *c, int err, int prov)
{
	struct tdm_tcp *tcp = c->tcp;

	if (c->state == TDM_CONN_DEAD)
		return;
	unlink_conn(c);
	tdm_conn_set_state(c, TDM_CONN_DEAD);
	tdm_keep_end(c);
	tdm_tx_fail(c, err, prov);
	tdm_rx_fail(c, err, prov);
	tdm_credit_end(c, 1);
	if (tcp->closing || c->mirrored)
		return;
	TDM_CONN_INFO(c, "tcp ends: %s",
		      c->bye ? "the peer closed its endpoint" :
			       fi_strerror(err));
	tcp->a.lost(tcp->a.arg, c, c->fi_addr, c->bye ? FI_ESHUTDOWN : err);
}

void tdm_conn_free(struct tdm_conn *c)
{
	tdm_keep_end(c);
	(void)!tdm_tx_abandon(c, 0); /* cannot fail when err is 0 */
	unlink_conn(c);
	tdm_tx_fail(c, FI_ECANCELED, 0);
	tdm_credit_end(c, 0);
	tdm_meet_end(c);
	tdm_rx_free_all(c);
	tdm_list_del(&c->all);
	tdm_busy_free(c);
	free(c);
}

void tdm_conn_reap(struct tdm_tcp *tcp)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &tcp->dead) {
		struct tdm_conn *c = tdm_list_entry(pos, struct tdm_conn, all);

		if (tdm_list_empty(&c->busy->rxs))
			tdm_conn_free(c);
	}
}

int tdm_conn_agreed(const struct tdm_conn *c)
{
	return tdm_conn_live(c);
}

int tdm_conn_waits(const struct tdm_conn *c)
{
	return !tdm_conn_live(c) && !tdm_list_empty(&c->sendq);
}

const struct tdm_addr *tdm_conn_addr(const struct tdm_conn *c)
{
	return &c->addr;
}

const struct tdm_conn_stats *tdm_conn_stats(const struct tdm_conn *c)
{
	return &c->stats;
}
