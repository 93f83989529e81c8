/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lost connection is not the end of its session: both sides keep what the
 * other one has not acknowledged (keep.h), and connect again. RESUME, the
 * greeting of the new connection, says how much of the stream its sender has
 * received; the other side sends what follows. All state of the session stays:
 * operations, credit, numbers, a record that is half received.
 *
 *   READY, CLOSING --- lost ---> RESUMING --- RESUME both ways ---> as before
 *                                   +------- refused, too late ---> DEAD
 *
 *   RESUMING:  WAIT --- timer ---> CONNECT ---> GREET ---> (PROVE, with keys)
 *               ^                     |           |          |
 *               +---------------------+-----------+----------+ lost, not now
 *   With TLS, ENCRYPT is between CONNECT and GREET.
 *
 * Both sides connect. Of two attempts that cross, that of the smaller
 * incarnation id is kept, as with HELLO.
 *
 * The session ends when nobody listens at the peer's address, or an endpoint that
 * has no such session (REJECT, LOST); when the peer closes its endpoint; at a
 * breach of the protocol; and at the peer time-out, which does not count while
 * the kernel of the peer's host has accepted the connection and answers, nor while
 * this process made no pass for long.
 *
 * Invariants:
 *  1. A RESUME is believed if it names the id of the session, which only the two
 *     sides know, or with keys proves the key of the session.
 *  2. No record is sent or handled while RESUMING.
 *  3. The number that a RESUME says is final: the old connection was closed
 *     before, and with it all input that was not read. Only the RESUME of an
 *     attempt that its sender gave up says less than the sender has received:
 *     where it is below c->kept_pos it is refused, elsewhere bytes are repeated
 *     on a connection that ends.
 *
 * Lock: held in all of this file.
 * Spec: doc/PROTOCOL-tcp.md, "Resume"; doc/adr/0043-sessions-are-resumed.md.
 */
#include "tcp/wire/resume.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/auth.h"
#include "base/env.h"
#include "base/log.h"
#include "base/trace.h"
#include "tcp/wire/claim.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/hello.h"
#include "tcp/wire/keep.h"
#include "tcp/wire/layer.h"
#include "tcp/wire/prove.h"
#include "tcp/wire/resume_time.h"
#include "tcp/wire/rx.h"
#include "tcp/wire/send.h"
#include "tcp/wire/stall.h"
#include "tcp/wire/tx.h"

enum { WAIT, CONNECT, ENCRYPT, GREET, PROVE };

/* Attempts that a host accepted and said nothing: they do not count at first. */
enum { HOLLOW_MOST = 8 };

void tdm_resume_ready(struct tdm_conn *c)
{
	tdm_keep_end(c);
	c->rx_pos = 0;
	c->rx_said = 0;
	c->kept_pos = 0;
	c->keeps = tdm_conn_resumes(c) && !c->mirrored &&
		   memcmp(c->id, c->tcp->id, sizeof(c->id));
	/* The HELLO in it is not a part of the stream. */
	if (c->keeps && c->out)
		c->out->base = c->out->tail;
}

static void hang_up(struct tdm_conn *c)
{
	tdm_setup_disarm(c);
	tdm_sock_close(c);
}

/*
 * Returns the error of an attempt whose socket gives @err of the system: silence of the
 * network is FI_ETIMEDOUT.
 */
static int broken_by(int err)
{
	return err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH ?
		       FI_ETIMEDOUT :
		       FI_ECONNRESET;
}

/* Let @c wait for its next attempt, or fail: the last one ended with @err. */
static void later(struct tdm_conn *c, int err)
{
	/*
	 * Time after the connect counts when the network was silent; and when one
	 * attempt after the other ends without a byte: a proxy may have accepted.
	 */
	if (c->setup->phase <= CONNECT ||
	    (err != FI_ETIMEDOUT &&
	     (c->setup->greeting_len || c->setup->hollow++ < HOLLOW_MOST)))
		tdm_resume_leave_out(c);
	hang_up(c);
	c->setup->phase = WAIT;
	if (err == FI_ECONNREFUSED) {
		tdm_conn_fail(c, FI_ECONNRESET, 0);
		return;
	}
	if (tdm_resume_is_late(c)) {
		tdm_conn_fail(c, FI_ETIMEDOUT, 0);
		return;
	}
	tdm_resume_count(c, TDM_BACKOFF_MOST_MS);
	tdm_conn_back_off(c);
}

static void attempt(struct tdm_conn *c)
{
	int fd = tdm_sock_open(c), err;

	tdm_resume_count_attempt(c, TDM_CONNECT_LONG_MS);
	if (fd < 0) {
		later(c, -fd);
		return;
	}
	tdm_conn_take(c, (struct tdm_sock){ fd, NULL });
	c->setup->phase = CONNECT;
	err = tdm_sock_connect(c, fd);
	if (!err && tdm_loop_timer_arm(c->tcp->a.loop, &c->setup->timer,
				       TDM_CONNECT_LONG_MS))
		err = FI_ENOMEM;
	if (err)
		later(c, err);
	else
		tdm_conn_watch(c, TDM_LOOP_WRITE);
}

/* Make @c RESUMING, without an attempt. Returns not 0: it cannot be. */
static int lose(struct tdm_conn *c, int err)
{
	if (!c->keeps || c->bye || c->closing || c->tcp->closing ||
	    err == FI_ENOMEM || err == ENOBUFS || !tdm_keep_get(c) ||
	    !tdm_setup_get(c))
		return -1;
	TDM_TRACE2(reconnect, c, err);
	TDM_CONN_INFO(c, "tcp is lost: %s; connecting again", fi_strerror(err));
	hang_up(c);
	/* The peer sends again the input that is not handled yet. */
	tdm_stall_forget(c);
	c->head_len = 0;
	c->tx_err = 0;
	c->again = 0;
	tdm_list_del(&c->flush_node);
	tdm_list_del(&c->ack_node);
	c->setup->then = c->state;
	c->setup->phase = WAIT;
	c->setup->why = err;
	tdm_resume_count_loss(c);
	tdm_conn_set_state(c, TDM_CONN_RESUMING);
	return 0;
}

int tdm_resume_begin(struct tdm_conn *c, int err)
{
	if (lose(c, err))
		return -1;
	if (c->setup->backoff_ms)
		later(c, FI_ECONNRESET);
	else
		attempt(c);
	return 0;
}

void tdm_resume_timer(struct tdm_conn *c)
{
	if (c->setup->phase == WAIT)
		attempt(c);
	else
		later(c, FI_ETIMEDOUT);
}

void tdm_resume_hurry(struct tdm_conn *c)
{
	int err = c->tx_err; /* the socket is of no use */

	c->tx_err = 0;
	if (c->setup->phase == WAIT) {
		tdm_setup_disarm(c);
		attempt(c);
	} else if (err) {
		later(c, err);
	}
}

/* Write our RESUME, without a proof, for the connection @fd to @p. */
static void put_resume(const struct tdm_conn *c, int fd, uint8_t *p)
{
	struct tdm_wire_greeting g;

	tdm_hello_fill(c->tcp, fd, &g);
	g.kind = TDM_WIRE_RESUME;
	g.received = c->rx_pos;
	if (c->tcp->a.keys)
		memcpy(&g.session, c->session, sizeof(g.session));
	else
		memcpy(g.nonce, c->session, sizeof(g.nonce));
	tdm_wire_greeting_encode(p, &g);
}

/* Not 0 when @g, from the peer, is about the session of @c. */
static int is_ours(const struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	uint64_t session;

	if (!c->keeps || memcmp(c->id, g->id, sizeof(c->id)))
		return 0;
	memcpy(&session, c->session, sizeof(session));
	return c->tcp->a.keys ?
		       g->session == session :
		       tdm_auth_equal(g->nonce, c->session, sizeof(c->session));
}

/*
 * Called when both sides have said RESUME: the session goes on; the peer has
 * received the stream up to @pos.
 */
static void resumed(struct tdm_conn *c, uint64_t pos)
{
	enum tdm_conn_state then = (enum tdm_conn_state)c->setup->then;

	tdm_resume_leave_out(c);
	if (tdm_keep_rewind(c, pos)) {
		TDM_CONN_INFO(c, "the session cannot be resumed: the peer has "
				 "received what is not kept, or was not sent");
		tdm_conn_fail(c, FI_ECONNRESET, EPROTO);
		return;
	}
	if (c->borrow && c->busy->borrow_off == c->busy->borrow_end)
		tdm_tx_borrowed_sent(c);
	if (tdm_layer_begin(c, 0)) {
		tdm_conn_fail(c, FI_ENOMEM, 0);
		return;
	}
	TDM_TRACE2(resumed, c, pos);
	TDM_CONN_INFO(c, "the session is resumed");
	tdm_setup_free(c);
	c->blocked = 0;
	c->unheard_ns = 0;
	c->used = c->tcp->pass;
	tdm_conn_set_state(c, then);
	tdm_conn_watch(c, TDM_LOOP_READ);
	/* So the peer hears at once what need not be kept. */
	c->ack_now = then == TDM_CONN_READY;
	tdm_conn_push(c);
}

static int put(const struct tdm_conn *c, const void *p, size_t n)
{
	return tdm_sock_put(tdm_sock_of(c), p, n);
}

/* Send our RESUME on the connected socket of @c. */
static void greet(struct tdm_conn *c)
{
	const struct tdm_auth_key *key = tdm_hello_key(c);
	struct tdm_setup *s = c->setup;
	uint8_t *own;

	s->greeting = malloc(2 * (size_t)TDM_WIRE_GREETING_BYTES);
	if (!s->greeting) {
		later(c, FI_ENOMEM);
		return;
	}
	own = s->greeting + TDM_WIRE_GREETING_BYTES;
	put_resume(c, c->io.fd, own);
	if (c->tcp->a.keys && (!key || tdm_prove_hello(key, own, NULL))) {
		later(c, FI_ENOMEM);
		return;
	}
	s->phase = GREET;
	c->tx_err = 0; /* of an earlier attempt to watch it */
	if (put(c, own, TDM_WIRE_GREETING_BYTES))
		later(c, FI_ECONNRESET);
	else
		tdm_conn_watch(c, TDM_LOOP_READ);
}

/* Go on with the TLS handshake of @c, and greet when it is done. */
static void encrypt(struct tdm_conn *c)
{
	int ret = tdm_sock_shake(c);

	if (!ret)
		greet(c);
	else if (ret != -FI_EAGAIN)
		later(c, FI_ECONNRESET);
}

/* Called when the socket of @c may be connected. */
static void connected(struct tdm_conn *c)
{
	int err = tdm_sock_result(c->io.fd);

	if (err == -FI_EAGAIN)
		return;
	if (err) {
		later(c, err);
		return;
	}
	tdm_loop_timer_disarm(&c->setup->timer);
	/* The peer's kernel has answered. */
	tdm_resume_count_nothing(c);
	if (!c->tcp->tls) {
		greet(c);
		return;
	}
	c->setup->phase = ENCRYPT;
	if (tdm_sock_encrypt(c, tdm_hello_key(c)))
		later(c, FI_ENOMEM);
	else
		encrypt(c);
}

void tdm_resume_writable(struct tdm_conn *c)
{
	if (c->setup->phase == CONNECT)
		connected(c);
	else if (c->setup->phase == ENCRYPT)
		encrypt(c);
}

/* Called when the peer's whole answer is there. */
static void answered(struct tdm_conn *c)
{
	const struct tdm_auth_key *key = tdm_hello_key(c);
	uint8_t *p = c->setup->greeting, proof[TDM_AUTH_PROOF_BYTES];
	struct tdm_wire_greeting g;

	if (tdm_wire_greeting_decode(p, &g)) {
		later(c, FI_ECONNRESET);
		return;
	}
	if (g.kind == TDM_WIRE_REJECT && g.reason != TDM_WIRE_R_LOST) {
		later(c, FI_ECONNRESET);
		return;
	}
	if (g.kind != TDM_WIRE_RESUME || !is_ours(c, &g)) {
		TDM_CONN_INFO(c, "the peer has no session to resume");
		tdm_conn_fail(c, FI_ECONNRESET, 0);
		return;
	}
	if (!c->tcp->a.keys) {
		resumed(c, g.received);
		return;
	}
	if (!key || !tdm_prove_check(key, p, p + TDM_WIRE_GREETING_BYTES) ||
	    tdm_prove_end(c, key, proof) || put(c, proof, sizeof(proof)))
		later(c, FI_ECONNRESET);
	else
		c->setup->phase = PROVE;
}

static void confirmed(struct tdm_conn *c)
{
	struct tdm_wire_greeting g;
	int ret = tdm_hello_confirmed(c, &g);

	if (!ret)
		resumed(c, g.received);
	else if (ret != -FI_EAGAIN)
		later(c, FI_ECONNRESET);
}

void tdm_resume_readable(struct tdm_conn *c)
{
	struct tdm_setup *s = c->setup;
	ssize_t n;

	if (s->phase == ENCRYPT)
		encrypt(c);
	else if (s->phase == PROVE)
		confirmed(c);
	if (c->state != TDM_CONN_RESUMING || s->phase != GREET)
		return;
	n = tdm_sock_recv(tdm_sock_of(c), s->greeting + s->greeting_len,
			  TDM_WIRE_GREETING_BYTES - s->greeting_len);
	if (n < 0 && tdm_os_later(errno))
		return;
	if (n <= 0) {
		int err = broken_by(n < 0 ? errno : 0);

		tdm_sock_tell(c);
		later(c, err);
		return;
	}
	s->greeting_len += (uint8_t)n;
	if (s->greeting_len == TDM_WIRE_GREETING_BYTES)
		answered(c);
}

/*
 * Not 0 when the session that the RESUME @g is about is the one for which @c
 * asks: its HELLO was answered, and the answer is lost.
 */
static int is_asked_for(const struct tdm_conn *c,
			const struct tdm_wire_greeting *g)
{
	return c->asks && !c->tcp->a.keys &&
	       tdm_auth_equal(g->nonce, c->session, sizeof(c->session));
}

/* Not 0 when our own attempt is kept, of it and the one that @g came by. */
static int is_kept(const struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	return c->setup->phase >= GREET &&
	       memcmp(g->id, c->tcp->id, sizeof(g->id)) > 0;
}

/*
 * Find the connection whose session @g, from @from, asks for, and take it off
 * its old socket. Out: *@out. Returns 0, -1, or an enum tdm_wire_reason.
 */
static int find(struct tdm_tcp *tcp, const struct tdm_addr *from,
		struct tdm_wire_greeting *g, struct tdm_conn **out)
{
	struct tdm_conn *c;

	if (!tdm_wire_version_ok(g))
		return TDM_WIRE_R_VERSION;
	if (!tdm_claim_same_ip(from, g))
		return -1;
	c = tdm_conn_find(tcp, &g->addr);
	if (c && !tdm_conn_live(c) && is_asked_for(c, g)) {
		/* The peer has it, even if nothing of ours waits for it now. */
		c->wanted = 1;
		tdm_send_begin(c);
		return TDM_WIRE_R_DUPLICATE;
	}
	if (!c || !tdm_conn_live(c) || !is_ours(c, g))
		return TDM_WIRE_R_LOST;
	/* It may not have noticed yet that its connection is lost. */
	tdm_rx_drain(c);
	if (!tdm_conn_live(c))
		return TDM_WIRE_R_LOST;
	/*
	 * Of an attempt that the peer gave up when another one succeeded: it has
	 * said more since.
	 */
	if (g->received < c->kept_pos)
		return TDM_WIRE_R_DUPLICATE;
	if (tdm_conn_open(c) && lose(c, FI_ECONNRESET))
		return TDM_WIRE_R_LOST;
	if (is_kept(c, g))
		return TDM_WIRE_R_DUPLICATE;
	*out = c;
	return 0;
}

/* Give @c the connection @s. */
static void adopt(struct tdm_conn *c, struct tdm_sock s)
{
	hang_up(c);
	tdm_conn_take(c, s);
	tdm_sock_prepare(c, s.fd);
}

int tdm_resume_asked_again(const struct tdm_conn *c,
			   const struct tdm_wire_greeting *g)
{
	return tdm_conn_live(c) && !c->tcp->a.keys && !c->rx_pos &&
	       !c->kept_pos && is_ours(c, g);
}

int tdm_resume_greet_again(struct tdm_conn *c, struct tdm_sock s)
{
	uint8_t answer[TDM_WIRE_GREETING_BYTES];

	if (tdm_conn_open(c) && lose(c, FI_ECONNRESET))
		return -1;
	adopt(c, s);
	tdm_hello_repeat(c, answer);
	if (put(c, answer, sizeof(answer)))
		later(c, FI_ECONNRESET);
	else
		resumed(c, 0);
	return 0;
}

int tdm_resume_guest(struct tdm_tcp *tcp, struct tdm_sock s,
		     const struct tdm_addr *from, struct tdm_wire_greeting *g)
{
	uint8_t answer[TDM_WIRE_GREETING_BYTES];
	struct tdm_conn *c;
	int ret = find(tcp, from, g, &c);

	if (ret)
		return ret;
	adopt(c, s);
	put_resume(c, s.fd, answer);
	if (put(c, answer, sizeof(answer)))
		later(c, FI_ECONNRESET);
	else
		resumed(c, g->received);
	return 0;
}

int tdm_resume_challenge(struct tdm_tcp *tcp, int fd,
			 const struct tdm_addr *from,
			 struct tdm_wire_greeting *g, struct tdm_challenge *ch)
{
	struct tdm_conn *c;
	int ret = find(tcp, from, g, &c);

	if (ret)
		return ret;
	/* A guest that does not go on must not hold up the session. */
	if (c->setup->phase == WAIT && !c->setup->timer.ev)
		later(c, FI_ECONNRESET);
	if (!tdm_conn_live(c))
		return TDM_WIRE_R_LOST;
	ch->credit = c->rx_pos;
	put_resume(c, fd, ch->answer);
	return 0;
}

int tdm_resume_proven(struct tdm_tcp *tcp, struct tdm_sock s,
		      const struct tdm_wire_greeting *g,
		      const struct tdm_challenge *ch)
{
	struct tdm_conn *c = tdm_conn_find(tcp, &g->addr);

	/*
	 * It may have been resumed meanwhile, or have ended; or our own attempt
	 * has come so far that the peer keeps that one.
	 */
	if (!c || c->state != TDM_CONN_RESUMING || !is_ours(c, g) ||
	    c->rx_pos != ch->credit || is_kept(c, g))
		return -1;
	adopt(c, s);
	resumed(c, g->received);
	return 0;
}
