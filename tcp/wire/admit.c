/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a guest to a session: the side of the greetings that accepts. hello.c says
 * which of two connections is kept, claim.c judges the identity that a guest
 * claims, resume.c has sessions that go on.
 *
 * With keys a guest is answered when its HELLO proves one (tdm_admit_challenge()),
 * and admitted when it has proven it once more (tdm_admit_proven()).
 *
 * Lock: held in all of this file.
 * Spec: doc/PROTOCOL-tcp.md, "Greeting" and "Keys".
 */
#include "tcp/wire/admit.h"

#include "tcp/wire/claim.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/hello.h"
#include "tcp/wire/idle_close.h"
#include "tcp/wire/resume.h"
#include "tcp/wire/send.h"
#include "tcp/wire/sock.h"

/*
 * Make @s the connection of @c, which has no session. @ch: has our HELLO if
 * that has been sent; else NULL.
 */
static int adopt(struct tdm_conn *c, struct tdm_sock s,
		 const struct tdm_wire_greeting *g,
		 const struct tdm_challenge *ch)
{
	tdm_conn_close_fd(c);
	tdm_conn_take(c, s);
	tdm_sock_prepare(c, s.fd);
	if (ch) {
		c->credit = ch->credit;
		memcpy(c->session,
		       ch->answer + TDM_WIRE_PROVEN_BYTES - sizeof(c->session),
		       sizeof(c->session));
		c->announced_most = TDM_WIRE_RTS_COUNT;
		c->ack_now = 1; /* the peer waits for a first byte */
	} else if (tdm_hello_write(c, g)) {
		c->io.fd = -1; /* still the caller's */
		c->tls = NULL;
		c->tcp->open--;
		if (c->state != TDM_CONN_IDLE && c->state != TDM_CONN_BACKOFF)
			tdm_conn_retry(c, FI_ENOMEM);
		return -1;
	} else {
		memcpy(c->session, g->nonce, sizeof(c->session));
	}
	tdm_hello_establish(c, g);
	if (!c->mirrored)
		c->tcp->a.accepted(c->tcp->a.arg, c, c->fi_addr);
	tdm_conn_push(c);
	return 0;
}

/* Our endpoint has connected to itself: make the half that only receives. */
static int adopt_mirror(struct tdm_tcp *tcp, struct tdm_sock s,
			const struct tdm_wire_greeting *g,
			const struct tdm_challenge *ch)
{
	struct tdm_conn *own = tdm_conn_find(tcp, &g->addr), *c;

	if (!own || own->state != TDM_CONN_GREETING)
		return -1;
	c = tdm_conn_new(tcp, &g->addr);
	if (!c)
		return -1;
	c->mirrored = 1;
	if (!adopt(c, s, g, ch))
		return 0;
	tdm_conn_free(c);
	return -1;
}

/* As tdm_admit_guest(), but only decides: 0: it may have a connection. */
static int judge(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		 struct tdm_wire_greeting *g)
{
	if (!tdm_wire_version_ok(g))
		return TDM_WIRE_R_VERSION;
	if (g->required & ~tdm_hello_features(tcp))
		return TDM_WIRE_R_FEATURE;
	/*
	 * A caller that needs credit in the HELLO gets BUSY when there is none.
	 */
	if (!(g->features & TDM_WIRE_FEATURE_CREDIT) &&
	    !tdm_held_room(tcp->held))
		return TDM_WIRE_R_BUSY;
	return tdm_claim_check(tcp, fd, from, g);
}

/* Make @s, whose HELLO @g was accepted, a connection. */
static int take_guest(struct tdm_tcp *tcp, struct tdm_sock s,
		      const struct tdm_wire_greeting *g,
		      const struct tdm_challenge *ch)
{
	struct tdm_conn *c;

	if (!memcmp(g->id, tcp->id, sizeof(tcp->id)))
		return adopt_mirror(tcp, s, g, ch);
	c = tdm_conn_find(tcp, &g->addr);
	if (c && tdm_resume_asked_again(c, g))
		return tdm_resume_greet_again(c, s);
	if (c && (c->state == TDM_CONN_DEAD || tdm_idle_close_reborn(c, g)))
		c = NULL;
	if (!c)
		c = tdm_conn_get(tcp, &g->addr, FI_ADDR_UNSPEC);
	return c ? adopt(c, s, g, ch) : -1;
}

int tdm_admit_guest(struct tdm_tcp *tcp, struct tdm_sock s,
		    const struct tdm_addr *from, struct tdm_wire_greeting *g)
{
	int ret;

	if (g->kind == TDM_WIRE_RESUME)
		return tdm_resume_guest(tcp, s, from, g);
	ret = judge(tcp, s.fd, from, g);
	return ret ? ret : take_guest(tcp, s, g, NULL);
}

int tdm_admit_challenge(struct tdm_tcp *tcp, struct tdm_sock s,
			const struct tdm_addr *from, struct tdm_challenge *ch)
{
	struct tdm_wire_greeting g;
	int ret;

	if (tdm_wire_greeting_decode(ch->hello, &g) || !tdm_wire_version_ok(&g))
		return -1;
	ch->key = tdm_prove_guest(tcp->a.keys, &g, ch->hello);
	if (!ch->key)
		return -1;
	g.addr.key = ch->key->id;
	if (g.kind == TDM_WIRE_RESUME) {
		ret = tdm_resume_challenge(tcp, s.fd, from, &g, ch);
		if (ret)
			return ret;
	} else {
		ret = judge(tcp, s.fd, from, &g);
		if (ret)
			return ret;
		ch->credit =
			tdm_credit_first(tcp, tdm_conn_find(tcp, &g.addr), &g);
		tdm_hello_put(tcp, s.fd, ch->credit, TDM_WIRE_RTS_COUNT, NULL,
			      ch->answer);
	}
	if (tdm_prove_hello(ch->key, ch->answer, ch->hello))
		return -1;
	return tdm_sock_put(s, ch->answer, sizeof(ch->answer));
}

int tdm_admit_proven(struct tdm_tcp *tcp, struct tdm_sock s,
		     const struct tdm_addr *from,
		     const struct tdm_challenge *ch)
{
	const struct tdm_auth_text text = { ch->hello, sizeof(ch->hello),
					    ch->answer, sizeof(ch->answer) };
	struct tdm_wire_greeting g;

	if (!tdm_auth_check(ch->key, TDM_AUTH_TCP_CLIENT, &text, ch->proof) ||
	    tdm_wire_greeting_decode(ch->hello, &g))
		return -1;
	g.addr.key = ch->key->id;
	if (g.kind == TDM_WIRE_RESUME)
		return tdm_resume_proven(tcp, s, &g, ch);
	/* The state may have changed since the guest was answered. */
	if (judge(tcp, s.fd, from, &g))
		return -1;
	return take_guest(tcp, s, &g, ch);
}
