/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an address to a session: connecting, the greetings of both sides, and
 * which of two connections of a pair is kept.
 *
 * The side that connects sends HELLO; the side that accepts decides: it answers
 * HELLO or REJECT. The acceptor has a session when it has written its HELLO,
 * the initiator when it has read that; neither sends a record before.
 *
 * Which connection is kept when both sides connect at once: the one begun by
 * the smaller incarnation id. Each side decides when it reads the other's
 * HELLO while its own is unanswered, and both compare the same two ids. A side
 * that has not sent HELLO yet gives way; one whose HELLO may have been answered
 * on a connection that broke does not (unsure, claim.c).
 *
 * claim.c judges the identity that a peer claims. With keys each side proves
 * that it knows one: the initiator in its HELLO, then the acceptor in its, then
 * the initiator again (prove.c). The acceptor has a session when it has read
 * that proof, the initiator when any byte comes back: until then it tries again.
 *
 * This file is the side that connects, and what both sides need; admit.c is the
 * side that accepts.
 *
 * Spec: doc/PROTOCOL-tcp.md, "Greeting" and "Keys".
 */
#include "tcp/wire/hello.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "tcp/wire/claim.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/idle_close.h"
#include "tcp/wire/layer.h"
#include "tcp/wire/meet.h"
#include "tcp/wire/out.h"
#include "tcp/wire/prove.h"
#include "tcp/wire/resume.h"
#include "tcp/wire/send.h"
#include "tcp/wire/tls.h"
#include "tcp/wire/why.h"

/*
 * Messages that are likely to find their receive are sent unasked up to this many times
 * the length of others.
 */
enum { LONG_TIMES = 8 };

/* The error of operations if @err of connect(2) is the last one. */
static int error_of(int err)
{
	switch (err) {
	case EINVAL: /* a network to which the own address does not belong */
		return FI_ENETUNREACH;
	case EAGAIN: /* no entry in a table of the kernel */
		return FI_ENOMEM;
	default:
		return err;
	}
}

/* Called when connect(2) has failed with @err. */
static void connect_failed(struct tdm_conn *c, int err)
{
	/* A living peer listens; so the peer that we knew is gone. */
	if (err == ECONNREFUSED && c->known)
		tdm_conn_fail(c, FI_ECONNRESET, 0);
	else
		tdm_conn_retry(c, error_of(err));
}

/* Let the attempt end when the connect time-out has passed. */
static void arm_deadline(struct tdm_conn *c)
{
	uint64_t gone = (tdm_os.now_ns() - c->setup->since_ns) / 1000000, left;

	if (!tdm_env.conn_timeout_ms)
		return;
	left = gone < tdm_env.conn_timeout_ms ? tdm_env.conn_timeout_ms - gone :
						1;
	if (tdm_loop_timer_arm(c->tcp->a.loop, &c->setup->timer,
			       (unsigned)left))
		TDM_INFO(EP_CTRL, "no memory for the connect timer");
}

void tdm_hello_connect(struct tdm_conn *c)
{
	int fd, err;

	if (!tdm_setup_get(c)) {
		tdm_conn_fail(c, FI_ENOMEM, 0);
		return;
	}
	if (!c->setup->since_ns)
		c->setup->since_ns = tdm_os.now_ns();
	fd = tdm_sock_open(c);
	if (fd < 0) {
		tdm_conn_retry(c, -fd);
		return;
	}
	tdm_conn_take(c, (struct tdm_sock){ fd, NULL });
	err = tdm_sock_connect(c, fd);
	if (err) {
		connect_failed(c, err);
		return;
	}
	tdm_conn_set_state(c, TDM_CONN_CONNECTING);
	arm_deadline(c);
	tdm_conn_watch(c, TDM_LOOP_WRITE);
}

void tdm_hello_connected(struct tdm_conn *c)
{
	int err = tdm_sock_result(c->io.fd);

	if (err == -FI_EAGAIN)
		return;
	if (err) {
		connect_failed(c, err);
		return;
	}
	tdm_setup_disarm(c);
	if (tdm_conn_wanted(c)) {
		tdm_hello_greet(c);
		return;
	}
	c->setup->backoff_ms = 0;
	tdm_conn_set_state(c, TDM_CONN_SILENT);
	tdm_conn_watch(c, TDM_LOOP_READ);
}

uint32_t tdm_hello_features(const struct tdm_tcp *tcp)
{
	return TDM_WIRE_FEATURE_IDLE_CLOSE | TDM_WIRE_FEATURE_ATOMIC |
	       TDM_WIRE_FEATURE_NOW | TDM_WIRE_FEATURE_CREDIT |
	       TDM_WIRE_FEATURE_LEFT | TDM_WIRE_FEATURE_RANGES |
	       TDM_WIRE_FEATURE_WRITES | TDM_WIRE_FEATURE_BLOCKS |
	       TDM_WIRE_FEATURE_WAITED |
	       (tdm_env.crc ? TDM_WIRE_FEATURE_CRC : 0u) |
	       (tdm_env.resume ? TDM_WIRE_FEATURE_RESUME : 0u) |
	       (tcp->offer.len ? TDM_WIRE_FEATURE_LOCAL : 0u) |
	       (tcp->a.groups ? TDM_WIRE_FEATURE_GROUPS : 0u) |
	       (tcp->a.keys ? TDM_WIRE_FEATURE_AUTH : 0u);
}

/* Returns the features that a peer has to understand. */
static uint32_t required(const struct tdm_tcp *tcp)
{
	return tcp->a.keys ? TDM_WIRE_FEATURE_AUTH : 0u;
}

void tdm_hello_fill(const struct tdm_tcp *tcp, int fd,
		    struct tdm_wire_greeting *g)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct tdm_addr local;

	memset(g, 0, sizeof(*g));
	g->kind = TDM_WIRE_HELLO;
	g->oldest = TDM_WIRE_VERSION;
	g->newest = TDM_WIRE_VERSION;
	g->features = tdm_hello_features(tcp);
	g->required = required(tcp);
	g->addr = tcp->addr;
	g->contexts = tcp->contexts;
	if (tdm_sock_is_any(&g->addr) &&
	    !tdm_os.getsockname(fd, (struct sockaddr *)&sa, &len) &&
	    !tdm_addr_from_bind(&local, &sa, len)) {
		tdm_addr_set_port(&local, tdm_addr_port(&g->addr));
		g->addr = local;
	}
	memcpy(g->id, tcp->id, sizeof(g->id));
}

void tdm_hello_put(const struct tdm_tcp *tcp, int fd, uint64_t credit,
		   uint32_t announced, const uint8_t *session, uint8_t *p)
{
	struct tdm_wire_greeting g;

	tdm_hello_fill(tcp, fd, &g);
	g.credit = credit;
	g.eager = TDM_WIRE_EAGER_BYTES;
	g.rts = announced;
	if (session)
		memcpy(g.nonce, session, sizeof(g.nonce));
	tdm_wire_greeting_encode(p, &g);
}

/*
 * Without keys the initiator draws the id of the session, the same for all
 * attempts until one begins it: so an acceptor whose answer was lost knows the
 * next HELLO for the same session. Who does not know it cannot resume it.
 */
static int draw_session(struct tdm_conn *c)
{
	if (!tdm_env.resume || c->tcp->a.keys || c->asks)
		return 0;
	if (tdm_os_random(c->session, sizeof(c->session)))
		return -1;
	c->asks = 1;
	return 0;
}

int tdm_hello_write(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	struct tdm_out *out = tdm_out_room(c, TDM_WIRE_GREETING_BYTES);
	uint8_t *p;

	if (!out || (!g && draw_session(c)))
		return -FI_ENOMEM;
	p = out->bytes + out->tail;
	c->credit = tdm_credit_first(c->tcp, c, g);
	c->announced_most = tdm_credit_announced(c);
	tdm_hello_put(c->tcp, c->io.fd, c->credit, c->announced_most,
		      !g && c->asks ? c->session : NULL, p);
	out->tail += TDM_WIRE_GREETING_BYTES;
	return 0;
}

void tdm_hello_repeat(const struct tdm_conn *c,
		      uint8_t p[TDM_WIRE_GREETING_BYTES])
{
	tdm_hello_put(c->tcp, c->io.fd, c->credit, c->announced_most, NULL, p);
}

const struct tdm_auth_key *tdm_hello_key(const struct tdm_conn *c)
{
	return tdm_auth_find(c->tcp->a.keys, c->addr.key);
}

/* Add the proof to the HELLO just written. */
static int prove_hello(struct tdm_conn *c)
{
	const struct tdm_auth_key *key = tdm_hello_key(c);
	uint8_t *p = c->out->bytes + c->out->tail - TDM_WIRE_GREETING_BYTES;
	int ret = key ? tdm_prove_hello(key, p, NULL) : -FI_EKEYREJECTED;

	if (!ret)
		memcpy(c->setup->greeting + TDM_WIRE_GREETING_BYTES, p,
		       TDM_WIRE_GREETING_BYTES);
	return ret;
}

/*
 * Returns the error of an attempt that the peer closed without an answer. An
 * endpoint with keys answers no caller that proves none of them: if we have keys,
 * ours was refused; if we have none, this looks like a refused connection. With TLS
 * it may be our certificate, or that the peer has no TLS.
 */
static int no_answer(const struct tdm_conn *c)
{
	return c->tcp->a.keys || c->tcp->tls ? FI_EKEYREJECTED :
					       FI_ECONNREFUSED;
}

/* Send our HELLO: @c is GREETING. */
static void greet(struct tdm_conn *c)
{
	int keyed = c->tcp->a.keys != NULL, ret;

	c->setup->proving = 0;
	c->setup->greeting = malloc((keyed ? 2 : 1) * TDM_WIRE_GREETING_BYTES);
	ret = c->setup->greeting ? tdm_hello_write(c, NULL) : -FI_ENOMEM;
	if (!ret && keyed)
		ret = prove_hello(c);
	if (ret) {
		tdm_conn_retry(c, -ret);
		return;
	}
	c->unsure = c->asks;
	tdm_conn_push(c);
}

/* Go on with the TLS handshake of @c, and greet when it is done. */
static void shake(struct tdm_conn *c)
{
	int ret = tdm_sock_shake(c);

	if (!ret)
		greet(c);
	else if (ret != -FI_EAGAIN)
		tdm_conn_retry(c, no_answer(c));
}

void tdm_hello_greet(struct tdm_conn *c)
{
	tdm_conn_set_state(c, TDM_CONN_GREETING);
	tdm_conn_watch(c, TDM_LOOP_READ);
	if (!c->tcp->tls)
		greet(c);
	else if (tdm_sock_encrypt(c, tdm_hello_key(c)))
		tdm_conn_retry(c, FI_ENOMEM);
	else
		shake(c);
}

/* Not 0 when one side asks for checksums, and both know them. */
static int in_blocks(const struct tdm_wire_greeting *g)
{
	return (g->features & TDM_WIRE_FEATURE_BLOCKS) &&
	       (tdm_env.crc || (g->features & TDM_WIRE_FEATURE_CRC));
}

/*
 * Returns the length up to which messages that are likely to find their receive are sent
 * unasked. The peer says that one waits only if it is longer than TDM_TCP_HOLD_BYTES.
 */
static uint32_t longest_unasked(const struct tdm_wire_greeting *g)
{
	size_t usual = tdm_env.eager_bytes;

	return (uint32_t)tdm_min(
		usual < TDM_TCP_HOLD_BYTES ? usual : LONG_TIMES * usual,
		(size_t)g->eager);
}

void tdm_hello_establish(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	tdm_setup_free(c);
	memcpy(c->id, g->id, sizeof(c->id));
	c->asks = 0;
	c->unsure = 0;
	c->window = g->credit;
	c->full = !g->credit;
	c->thirsty = 0;
	c->eager = (uint32_t)tdm_min(tdm_env.eager_bytes, g->eager);
	c->posted.eager = longest_unasked(g);
	c->posted.hits = 0;
	c->posted.waited = 0;
	c->rts_max = g->rts;
	c->contexts = g->contexts;
	c->features =
		g->features &
		(tdm_env.resume ? ~0u : ~(uint32_t)TDM_WIRE_FEATURE_RESUME);
	c->layered = c->tls || in_blocks(g);
	tdm_resume_ready(c);
	tdm_credit_begin(c);
	c->known = 1;
	c->used = c->tcp->pass;
	c->seen_used = c->used;
	c->seen_ns = tdm_os.now_ns();
	c->unheard_ns = 0;
	c->tx_group = 0;
	tdm_conn_set_source(c, c->fi_addr, 0);
	c->read_bytes = TDM_STAGE_BYTES / 4;
	tdm_conn_set_state(c, TDM_CONN_READY);
	tdm_conn_watch(c, c->blocked ? TDM_LOOP_READ | TDM_LOOP_WRITE :
				       TDM_LOOP_READ);
	if (tdm_layer_begin(c, tdm_out_bytes(c))) {
		c->tx_err = FI_ENOMEM;
		tdm_conn_again(c);
	}
	tdm_meet_begin(c);
}

/* Handle the peer's REJECT. */
static void rejected(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	TDM_CONN_INFO(c, "refused by the peer: %s", tdm_wire_why(g, g->reason));
	if (g->reason != TDM_WIRE_R_BUSY)
		c->unsure = 0;
	if (g->reason == TDM_WIRE_R_FEATURE && c->tcp->a.keys) {
		tdm_conn_fail(c, FI_EKEYREJECTED, 0);
		return;
	}
	if (g->reason == TDM_WIRE_R_VERSION ||
	    g->reason == TDM_WIRE_R_FEATURE) {
		tdm_conn_fail(c, FI_ENOPROTOOPT, 0);
		return;
	}
	/* DUPLICATE: the peer's own connection waits in our listen queue, or comes. */
	tdm_conn_retry(c, FI_ECONNREFUSED);
}

/* Not 0 when the addresses are equal but for the scope, which is not sent. */
static int same_addr(struct tdm_addr x, struct tdm_addr y)
{
	if (x.u.sa.sa_family == AF_INET6)
		x.u.in6.sin6_scope_id = 0;
	if (y.u.sa.sa_family == AF_INET6)
		y.u.in6.sin6_scope_id = 0;
	return tdm_addr_equal(&x, &y);
}

int tdm_hello_confirmed(const struct tdm_conn *c, struct tdm_wire_greeting *g)
{
	ssize_t n = tdm_sock_peek(tdm_sock_of(c));

	if (n < 0 && tdm_os_later(errno))
		return -FI_EAGAIN;
	return n <= 0 || tdm_wire_greeting_decode(c->setup->greeting, g) ?
		       -FI_ECONNRESET :
		       0;
}

static void confirmed(struct tdm_conn *c)
{
	struct tdm_wire_greeting g;
	int ret = tdm_hello_confirmed(c, &g);

	if (ret == -FI_EAGAIN)
		return;
	if (ret) {
		tdm_conn_retry(c, no_answer(c));
		return;
	}
	memcpy(c->session, g.nonce, sizeof(c->session));
	tdm_hello_establish(c, &g);
	tdm_conn_again(c);
	tdm_conn_push(c);
}

/* Called when the peer's HELLO is valid: check its proof and send ours. */
static void prove(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	const struct tdm_auth_key *key = tdm_hello_key(c);

	if (!key ||
	    !tdm_prove_check(key, c->setup->greeting,
			     c->setup->greeting + TDM_WIRE_GREETING_BYTES)) {
		TDM_CONN_INFO(c, "the peer does not know the key");
		tdm_conn_retry(c, FI_EKEYREJECTED);
		return;
	}
	if (tdm_idle_close_reborn(c, g))
		return;
	if (tdm_prove_last(c, key)) {
		tdm_conn_retry(c, FI_ENOMEM);
		return;
	}
	c->setup->proving = 1;
	tdm_conn_push(c);
}

void tdm_hello_answer(struct tdm_conn *c)
{
	struct tdm_wire_greeting g;
	ssize_t n;

	if (c->tls && !tdm_tls_ready(c->tls)) {
		shake(c);
		return;
	}
	if (c->setup->proving) {
		confirmed(c);
		return;
	}
	n = tdm_sock_recv(tdm_sock_of(c),
			  c->setup->greeting + c->setup->greeting_len,
			  TDM_WIRE_GREETING_BYTES - c->setup->greeting_len);
	if (n < 0 && tdm_os_later(errno))
		return;
	if (n <= 0) {
		/* It has read our HELLO, and begun nothing. */
		if (!n && !c->setup->greeting_len)
			c->unsure = 0;
		tdm_sock_tell(c);
		tdm_conn_retry(c, no_answer(c));
		return;
	}
	c->setup->greeting_len += (uint8_t)n;
	if (!tdm_wire_is_greeting(c->setup->greeting, c->setup->greeting_len))
		goto stranger;
	if (c->setup->greeting_len < TDM_WIRE_GREETING_BYTES)
		return;
	if (tdm_wire_greeting_decode(c->setup->greeting, &g) ||
	    g.kind == TDM_WIRE_RESUME)
		goto stranger;
	if (g.kind == TDM_WIRE_REJECT) {
		rejected(c, &g);
		return;
	}
	if (!tdm_wire_version_ok(&g) ||
	    (g.required & ~tdm_hello_features(c->tcp))) {
		TDM_CONN_INFO(c, "refused: %s", tdm_wire_why(&g, 0));
		tdm_conn_fail(c, FI_ENOPROTOOPT, 0);
		return;
	}
	g.addr.key = c->addr.key;
	if (!same_addr(g.addr, c->addr))
		goto stranger;
	if (c->tcp->a.keys) {
		prove(c, &g);
		return;
	}
	if (tdm_idle_close_reborn(c, &g))
		return;
	tdm_hello_establish(c, &g);
	tdm_conn_push(c);
	return;
stranger:
	TDM_CONN_INFO(c, "what listens there is not the peer");
	tdm_conn_retry(c, FI_ECONNREFUSED);
}
