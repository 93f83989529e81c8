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
 * that has not sent HELLO yet gives way.
 *
 * claim.c judges the identity that a peer claims. With keys each side proves
 * that it knows one: the initiator in its HELLO, then the acceptor in its, then
 * the initiator again (prove.c). The acceptor has a session when it has read
 * that proof, the initiator when any byte comes back: until then it tries again.
 *
 * Spec: doc/PROTOCOL-tcp.md, "Greeting" and "Keys".
 */
#include "tcp/wire/hello.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "tcp/wire/claim.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/idle_close.h"
#include "tcp/wire/meet.h"
#include "tcp/wire/out.h"
#include "tcp/wire/prove.h"
#include "tcp/wire/send.h"
#include "tcp/wire/tclass.h"
#include "tcp/wire/why.h"

enum {
	KEEPALIVE_IDLE_S = 10,
	KEEPALIVE_GAP_S = 5,
	KEEPALIVE_GAP_MOST_S = 32767, /* tcp(7) */
	KEEPALIVE_COUNT = 6,
};

static void set_opt(int fd, int level, int name, int val)
{
	/* Each of these options helps, but the connection works without it. */
	if (tdm_os.setsockopt(fd, level, name, &val, sizeof(val)))
		TDM_DBG(EP_CTRL, "setsockopt %d/%d: %s", level, name,
			fi_strerror(errno));
}

/* Returns the seconds between probes; the last is due at the peer time-out. */
static int keepalive_gap(void)
{
	unsigned s = tdm_env.peer_timeout_ms / 1000;

	s = s > KEEPALIVE_IDLE_S ? (s - KEEPALIVE_IDLE_S + KEEPALIVE_COUNT -
				    1) / KEEPALIVE_COUNT :
				   0;
	return (int)tdm_clamp(s, KEEPALIVE_GAP_S, KEEPALIVE_GAP_MOST_S);
}

static void prepare(const struct tdm_conn *c, int fd)
{
	int dscp = tdm_tclass_dscp(c->tcp->a.tclass);

	/* The lower two bits belong to the kernel (ECN). */
	if (dscp >= 0 && c->tcp->addr.u.sa.sa_family == AF_INET)
		set_opt(fd, IPPROTO_IP, IP_TOS, dscp << 2);
	else if (dscp >= 0)
		set_opt(fd, IPPROTO_IPV6, IPV6_TCLASS, dscp << 2);
	set_opt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (!tdm_env.peer_timeout_ms)
		return;
	set_opt(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_opt(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	set_opt(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_gap());
	set_opt(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT);
}

static int is_any(const struct tdm_addr *a)
{
	static const struct in6_addr any;

	return a->u.sa.sa_family == AF_INET ?
		       !a->u.in.sin_addr.s_addr :
		       !memcmp(&a->u.in6.sin6_addr, &any, sizeof(any));
}

/* Bind @fd to the endpoint's own IP: the peer compares it with our HELLO. */
static int bind_own(struct tdm_conn *c, int fd)
{
	struct tdm_addr own = c->tcp->addr;

	if (is_any(&own) || own.u.sa.sa_family != c->addr.u.sa.sa_family)
		return 0;
	set_opt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	tdm_addr_set_port(&own, 0);
	return tdm_os.bind(fd, &own.u.sa, (socklen_t)tdm_addr_len(&own));
}

/* Called when connect(2) has failed with @err. */
static void connect_failed(struct tdm_conn *c, int err)
{
	/* A living peer listens; so the peer that we knew is gone. */
	if (err == ECONNREFUSED && c->known)
		tdm_conn_fail(c, FI_ECONNRESET, 0);
	else
		tdm_conn_retry(c, err == EINVAL ? FI_ENETUNREACH : err);
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
	fd = tdm_os.socket(c->addr.u.sa.sa_family,
			   SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		err = errno;
		if (err == EMFILE || err == ENFILE)
			tdm_idle_close_crowd(c->tcp, -1);
		tdm_conn_retry(c, err);
		return;
	}
	tdm_idle_close_crowd(c->tcp, fd);
	tdm_conn_take_fd(c, fd);
	prepare(c, fd);
	if (bind_own(c, fd) ||
	    (tdm_os.connect(fd, &c->addr.u.sa,
			    (socklen_t)tdm_addr_len(&c->addr)) &&
	     errno != EINPROGRESS && errno != EINTR)) {
		connect_failed(c, errno);
		return;
	}
	tdm_conn_set_state(c, TDM_CONN_CONNECTING);
	arm_deadline(c);
	tdm_conn_watch(c, TDM_LOOP_WRITE);
}

/* TCP connects a socket to itself if its own port is the one it connects to. */
static int connected_to_itself(int fd)
{
	struct sockaddr_storage own, peer;
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
	struct tdm_addr a, b;

	return !tdm_os.getsockname(fd, (struct sockaddr *)&own, &own_len) &&
	       !tdm_os.getpeername(fd, (struct sockaddr *)&peer, &peer_len) &&
	       !tdm_addr_from_bind(&a, &own, own_len) &&
	       !tdm_addr_from_bind(&b, &peer, peer_len) &&
	       tdm_addr_equal(&a, &b);
}

void tdm_hello_connected(struct tdm_conn *c)
{
	struct pollfd p = { .fd = c->io.fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;

	if (tdm_os.poll(&p, 1, 0) <= 0)
		return;
	if (tdm_os.getsockopt(c->io.fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (!err && connected_to_itself(c->io.fd))
		err = FI_ECONNREFUSED;
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

/* Returns the features that this side understands. */
static uint32_t features(const struct tdm_tcp *tcp)
{
	return TDM_WIRE_FEATURE_IDLE_CLOSE | TDM_WIRE_FEATURE_ATOMIC |
	       TDM_WIRE_FEATURE_NOW | TDM_WIRE_FEATURE_CREDIT |
	       TDM_WIRE_FEATURE_LEFT | TDM_WIRE_FEATURE_RANGES |
	       TDM_WIRE_FEATURE_WRITES |
	       (tcp->offer.len ? TDM_WIRE_FEATURE_LOCAL : 0u) |
	       (tcp->a.groups ? TDM_WIRE_FEATURE_GROUPS : 0u) |
	       (tcp->a.keys ? TDM_WIRE_FEATURE_AUTH : 0u);
}

/* Returns the features that a peer has to understand. */
static uint32_t required(const struct tdm_tcp *tcp)
{
	return tcp->a.keys ? TDM_WIRE_FEATURE_AUTH : 0u;
}

/* Write our HELLO, without its proof, for the connection @fd to @p. */
static void put_hello(const struct tdm_tcp *tcp, int fd, uint64_t credit,
		      uint32_t announced, uint8_t *p)
{
	struct tdm_wire_greeting g = {
		.kind = TDM_WIRE_HELLO,
		.oldest = TDM_WIRE_VERSION,
		.newest = TDM_WIRE_VERSION,
		.features = features(tcp),
		.required = required(tcp),
		.addr = tcp->addr,
		.credit = credit,
		.eager = TDM_WIRE_EAGER_BYTES,
		.rts = announced,
		.contexts = tcp->contexts,
	};
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct tdm_addr local;

	if (is_any(&g.addr) &&
	    !tdm_os.getsockname(fd, (struct sockaddr *)&sa, &len) &&
	    !tdm_addr_from_bind(&local, &sa, len)) {
		tdm_addr_set_port(&local, tdm_addr_port(&g.addr));
		g.addr = local;
	}
	memcpy(g.id, tcp->id, sizeof(g.id));
	tdm_wire_greeting_encode(p, &g);
}

/* Append our HELLO to the output of @c; @g: the peer's HELLO, or NULL. */
static int write_hello(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	struct tdm_out *out = tdm_out_room(c, TDM_WIRE_GREETING_BYTES);
	uint8_t *p;

	if (!out)
		return -FI_ENOMEM;
	p = out->bytes + out->tail;
	c->credit = tdm_credit_first(c->tcp, c, g);
	c->announced_most = tdm_credit_announced(c->tcp);
	put_hello(c->tcp, c->io.fd, c->credit, c->announced_most, p);
	out->tail += TDM_WIRE_GREETING_BYTES;
	return 0;
}

static const struct tdm_auth_key *key_of(const struct tdm_conn *c)
{
	return tdm_auth_find(c->tcp->a.keys, c->addr.key);
}

/* Add the proof to the HELLO just written. */
static int prove_hello(struct tdm_conn *c)
{
	const struct tdm_auth_key *key = key_of(c);
	uint8_t *p = c->out->bytes + c->out->tail - TDM_WIRE_GREETING_BYTES;
	int ret = key ? tdm_prove_hello(key, p, NULL) : -FI_EKEYREJECTED;

	if (!ret)
		memcpy(c->setup->greeting + TDM_WIRE_GREETING_BYTES, p,
		       TDM_WIRE_GREETING_BYTES);
	return ret;
}

void tdm_hello_greet(struct tdm_conn *c)
{
	int keyed = c->tcp->a.keys != NULL, ret;

	c->setup->proving = 0;
	c->setup->greeting = malloc((keyed ? 2 : 1) * TDM_WIRE_GREETING_BYTES);
	ret = c->setup->greeting ? write_hello(c, NULL) : -FI_ENOMEM;
	if (!ret && keyed)
		ret = prove_hello(c);
	if (ret) {
		tdm_conn_retry(c, -ret);
		return;
	}
	tdm_conn_set_state(c, TDM_CONN_GREETING);
	tdm_conn_watch(c, TDM_LOOP_READ);
	tdm_conn_push(c);
}

/*
 * Our HELLO has been sent, or is the first in c->out; @g is the peer's: begin
 * the session.
 */
static void establish(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	tdm_setup_free(c);
	memcpy(c->id, g->id, sizeof(c->id));
	c->window = g->credit;
	c->full = !g->credit;
	c->thirsty = 0;
	c->eager = (uint32_t)tdm_min(tdm_env.eager_bytes, g->eager);
	c->rts_max = g->rts;
	c->contexts = g->contexts;
	c->features = g->features;
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
	tdm_meet_begin(c);
}

/* Handle the peer's REJECT. */
static void rejected(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	TDM_CONN_INFO(c, "refused by the peer: %s", tdm_wire_why(g, g->reason));
	if (g->reason == TDM_WIRE_R_FEATURE && c->tcp->a.keys) {
		tdm_conn_fail(c, FI_EKEYREJECTED, 0);
		return;
	}
	if (g->reason == TDM_WIRE_R_VERSION ||
	    g->reason == TDM_WIRE_R_FEATURE) {
		tdm_conn_fail(c, FI_ENOPROTOOPT, 0);
		return;
	}
	/* DUPLICATE: the peer's own connection waits in our listen queue. */
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

/*
 * Returns the error of an attempt that the peer closed without an answer. An
 * endpoint with keys answers no caller that proves none of them: if we have keys,
 * ours was refused; if we have none, this looks like a refused connection.
 */
static int no_answer(const struct tdm_conn *c)
{
	return c->tcp->a.keys ? FI_EKEYREJECTED : FI_ECONNREFUSED;
}

/* Called at the first input after our last proof: it was accepted. */
static void confirmed(struct tdm_conn *c)
{
	struct tdm_wire_greeting g;
	uint8_t byte;
	ssize_t n;

	n = tdm_os.recv(c->io.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
	if (n < 0 && tdm_os_later(errno))
		return;
	if (n <= 0 || tdm_wire_greeting_decode(c->setup->greeting, &g)) {
		tdm_conn_retry(c, no_answer(c));
		return;
	}
	establish(c, &g);
	tdm_conn_again(c);
	tdm_conn_push(c);
}

/* Called when the peer's HELLO is valid: check its proof and send ours. */
static void prove(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	const struct tdm_auth_key *key = key_of(c);

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

	if (c->setup->proving) {
		confirmed(c);
		return;
	}
	n = tdm_os.recv(c->io.fd, c->setup->greeting + c->setup->greeting_len,
			TDM_WIRE_GREETING_BYTES - c->setup->greeting_len,
			MSG_DONTWAIT);
	if (n < 0 && tdm_os_later(errno))
		return;
	if (n <= 0) {
		tdm_conn_retry(c, no_answer(c));
		return;
	}
	c->setup->greeting_len += (uint8_t)n;
	if (!tdm_wire_is_greeting(c->setup->greeting, c->setup->greeting_len))
		goto stranger;
	if (c->setup->greeting_len < TDM_WIRE_GREETING_BYTES)
		return;
	if (tdm_wire_greeting_decode(c->setup->greeting, &g))
		goto stranger;
	if (g.kind == TDM_WIRE_REJECT) {
		rejected(c, &g);
		return;
	}
	if (!tdm_wire_version_ok(&g) || (g.required & ~features(c->tcp))) {
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
	establish(c, &g);
	tdm_conn_push(c);
	return;
stranger:
	TDM_CONN_INFO(c, "what listens there is not the peer");
	tdm_conn_retry(c, FI_ECONNREFUSED);
}

/*
 * Make @fd the connection of @c, which has no session. @promised: the credit in
 * our HELLO if that has been sent, else NULL.
 */
static int adopt(struct tdm_conn *c, int fd, const struct tdm_wire_greeting *g,
		 const uint64_t *promised)
{
	tdm_conn_close_fd(c);
	tdm_conn_take_fd(c, fd);
	prepare(c, fd);
	if (promised) {
		c->credit = *promised;
		c->announced_most = TDM_WIRE_RTS_COUNT;
		c->ack_now = 1; /* the peer waits for a first byte */
	} else if (write_hello(c, g)) {
		c->io.fd = -1; /* still the caller's */
		c->tcp->open--;
		if (c->state != TDM_CONN_IDLE && c->state != TDM_CONN_BACKOFF)
			tdm_conn_retry(c, FI_ENOMEM);
		return -1;
	}
	establish(c, g);
	if (!c->mirrored)
		c->tcp->a.accepted(c->tcp->a.arg, c, c->fi_addr);
	tdm_conn_push(c);
	return 0;
}

/* Our endpoint has connected to itself: make the half that only receives. */
static int adopt_mirror(struct tdm_tcp *tcp, int fd,
			const struct tdm_wire_greeting *g,
			const uint64_t *promised)
{
	struct tdm_conn *own = tdm_conn_find(tcp, &g->addr), *c;

	if (!own || own->state != TDM_CONN_GREETING)
		return -1;
	c = tdm_conn_new(tcp, &g->addr);
	if (!c)
		return -1;
	c->mirrored = 1;
	if (!adopt(c, fd, g, promised))
		return 0;
	tdm_conn_free(c);
	return -1;
}

/* As tdm_hello_guest(), but only decides: 0: it may have a connection. */
static int judge(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		 struct tdm_wire_greeting *g)
{
	if (!tdm_wire_version_ok(g))
		return TDM_WIRE_R_VERSION;
	if (g->required & ~features(tcp))
		return TDM_WIRE_R_FEATURE;
	/*
	 * A caller that needs credit in the HELLO gets BUSY when there is none.
	 */
	if (!(g->features & TDM_WIRE_FEATURE_CREDIT) &&
	    !tdm_held_room(tcp->held))
		return TDM_WIRE_R_BUSY;
	return tdm_claim_check(tcp, fd, from, g);
}

/* Make @fd, whose HELLO @g was accepted, a connection. */
static int take_guest(struct tdm_tcp *tcp, int fd,
		      const struct tdm_wire_greeting *g,
		      const uint64_t *promised)
{
	struct tdm_conn *c;

	if (!memcmp(g->id, tcp->id, sizeof(tcp->id)))
		return adopt_mirror(tcp, fd, g, promised);
	c = tdm_conn_find(tcp, &g->addr);
	if (c && (c->state == TDM_CONN_DEAD || tdm_idle_close_reborn(c, g)))
		c = NULL;
	if (!c)
		c = tdm_conn_get(tcp, &g->addr, FI_ADDR_UNSPEC);
	return c ? adopt(c, fd, g, promised) : -1;
}

int tdm_hello_guest(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		    struct tdm_wire_greeting *g)
{
	int ret = judge(tcp, fd, from, g);

	return ret ? ret : take_guest(tcp, fd, g, NULL);
}

int tdm_hello_challenge(struct tdm_tcp *tcp, int fd,
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
	ret = judge(tcp, fd, from, &g);
	if (ret)
		return ret;
	ch->credit = tdm_credit_first(tcp, tdm_conn_find(tcp, &g.addr), &g);
	put_hello(tcp, fd, ch->credit, TDM_WIRE_RTS_COUNT, ch->answer);
	if (tdm_prove_hello(ch->key, ch->answer, ch->hello))
		return -1;
	/*
	 * The send buffer of a new socket is empty, so this fits. If the send
	 * fails all the same, the guest connects again.
	 */
	return tdm_os.send(fd, ch->answer, sizeof(ch->answer),
			   MSG_NOSIGNAL | MSG_DONTWAIT) ==
			       (ssize_t)sizeof(ch->answer) ?
		       0 :
		       -1;
}

int tdm_hello_proven(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		     const struct tdm_challenge *ch)
{
	const struct tdm_auth_text text = { ch->hello, sizeof(ch->hello),
					    ch->answer, sizeof(ch->answer) };
	struct tdm_wire_greeting g;

	if (!tdm_auth_check(ch->key, TDM_AUTH_TCP_CLIENT, &text, ch->proof) ||
	    tdm_wire_greeting_decode(ch->hello, &g))
		return -1;
	g.addr.key = ch->key->id;
	/* The state may have changed since the guest was answered. */
	if (judge(tcp, fd, from, &g))
		return -1;
	return take_guest(tcp, fd, &g, &ch->credit);
}
