/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an address to a session: connecting, the greetings of both sides, and
 * which of two connections of a pair is kept.
 *
 * The side that connects says HELLO; the side that accepts decides: HELLO
 * back, or REJECT. The session exists for the acceptor when its HELLO is
 * written and for the initiator when it is read; no record leaves before.
 *
 * Which connection is kept when both sides connect at once: the one begun by
 * the smaller incarnation id. Each side decides when it reads the other's
 * HELLO while its own is unanswered, and both compare the same two ids. A
 * side that has not said HELLO yet gives way.
 *
 * A live session is never displaced: the newcomer with its address is told
 * BUSY or DUPLICATE and comes again; meanwhile the old connection is made to
 * carry a record, so that the kernel finds out whether it is dead.
 *
 * Spec: doc/PROTOCOL-tcp.md, "Greeting".
 */
#include "tcp/steps.h"

#include "tdm_log.h"
#include "tdm_provider.h"

#include <rdma/fi_errno.h>

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>

enum {
	KEEPALIVE_IDLE_S = 10,
	KEEPALIVE_GAP_S = 5,
	KEEPALIVE_COUNT = 6,
};

/* Optional features this version understands: none yet. */
#define FEATURES 0u

static void set_opt(int fd, int level, int name, int val)
{
	/* Each of these is an improvement, not a need. */
	if (tdm_os.setsockopt(fd, level, name, &val, sizeof(val)))
		TDM_DBG(EP_CTRL, "setsockopt %d/%d: %s", level, name,
			fi_strerror(errno));
}

static void prepare(int fd)
{
	set_opt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_opt(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_opt(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	set_opt(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_GAP_S);
	set_opt(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT);
}

static int is_any(const struct tdm_addr *a)
{
	static const struct in6_addr any;

	return a->u.sa.sa_family == AF_INET ?
		       !a->u.in.sin_addr.s_addr :
		       !memcmp(&a->u.in6.sin6_addr, &any, sizeof(any));
}

/* Leave from the endpoint's own IP: the peer compares. */
static int bind_own(struct tdm_conn *c, int fd)
{
	struct tdm_addr own = c->tcp->addr;

	if (is_any(&own) || own.u.sa.sa_family != c->addr.u.sa.sa_family)
		return 0;
	set_opt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	tdm_addr_set_port(&own, 0);
	return tdm_os.bind(fd, &own.u.sa, (socklen_t)tdm_addr_len(&own));
}

/* What the operation is told when the system says @err to a connect. */
static int connect_error(int err)
{
	return err == EINVAL ? FI_ENETUNREACH : err;
}

/* Limit the attempt by what is left of the connect time-out. */
static void arm_deadline(struct tdm_conn *c)
{
	uint64_t gone = (tdm_os.now_ns() - c->since_ns) / 1000000, left;

	if (!tdm_env.conn_timeout_ms)
		return;
	left = gone < tdm_env.conn_timeout_ms ? tdm_env.conn_timeout_ms - gone :
						1;
	if (tdm_loop_timer_arm(c->tcp->a.loop, &c->timer, (unsigned)left))
		TDM_INFO(EP_CTRL, "no memory for the connect timer");
}

void tdm_hello_connect(struct tdm_conn *c)
{
	int fd;

	if (!c->since_ns)
		c->since_ns = tdm_os.now_ns();
	fd = tdm_os.socket(c->addr.u.sa.sa_family,
			   SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		tdm_conn_retry(c, errno);
		return;
	}
	tdm_conn_take_fd(c, fd);
	prepare(fd);
	if (bind_own(c, fd) ||
	    (tdm_os.connect(fd, &c->addr.u.sa,
			    (socklen_t)tdm_addr_len(&c->addr)) &&
	     errno != EINPROGRESS && errno != EINTR)) {
		tdm_conn_retry(c, connect_error(errno));
		return;
	}
	tdm_conn_set_state(c, TDM_CONN_CONNECTING);
	arm_deadline(c);
	tdm_conn_watch(c, TDM_LOOP_WRITE);
}

/* TCP may connect a socket to itself when it tries its own free port. */
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
		tdm_conn_retry(c, connect_error(err));
		return;
	}
	tdm_loop_timer_disarm(&c->timer);
	if (!tdm_list_empty(&c->sendq)) {
		tdm_hello_greet(c);
		return;
	}
	c->backoff_ms = 0;
	tdm_conn_set_state(c, TDM_CONN_SILENT);
	tdm_conn_watch(c, TDM_LOOP_READ);
}

/* The credit for one more peer: their sum is bounded, a least share is not. */
static uint64_t credit(const struct tdm_tcp *tcp)
{
	return tdm_clamp(tdm_env.unexp_max_bytes / (tcp->pairs + 1),
			 TDM_WIRE_CREDIT_LEAST, TDM_TCP_CREDIT_BYTES);
}

/* Append our HELLO to the output of @c. 0, or -FI_ENOMEM. */
static int write_hello(struct tdm_conn *c)
{
	struct tdm_out *out = tdm_out_room(c, TDM_WIRE_GREETING_BYTES);
	struct tdm_wire_greeting g = {
		.kind = TDM_WIRE_HELLO,
		.oldest = TDM_WIRE_VERSION,
		.newest = TDM_WIRE_VERSION,
		.features = FEATURES,
		.addr = c->tcp->addr,
		.eager = TDM_WIRE_EAGER_BYTES,
		.rts = TDM_WIRE_RTS_COUNT,
	};
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct tdm_addr local;

	if (!out)
		return -FI_ENOMEM;
	if (is_any(&g.addr) &&
	    !tdm_os.getsockname(c->io.fd, (struct sockaddr *)&sa, &len) &&
	    !tdm_addr_from_bind(&local, &sa, len)) {
		tdm_addr_set_port(&local, tdm_addr_port(&g.addr));
		g.addr = local;
	}
	memcpy(g.id, c->tcp->id, sizeof(g.id));
	c->credit = credit(c->tcp);
	g.credit = c->credit;
	g.contexts = c->tcp->contexts;
	tdm_wire_greeting_encode(out->bytes + out->tail, &g);
	out->tail += TDM_WIRE_GREETING_BYTES;
	return 0;
}

void tdm_hello_greet(struct tdm_conn *c)
{
	c->greeting = malloc(TDM_WIRE_GREETING_BYTES);
	if (!c->greeting || write_hello(c)) {
		tdm_conn_retry(c, FI_ENOMEM);
		return;
	}
	tdm_conn_set_state(c, TDM_CONN_GREETING);
	tdm_conn_watch(c, TDM_LOOP_READ);
	tdm_out_push(c);
}

/* The peer said @g, and so have we: a session. */
static void establish(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	tdm_loop_timer_disarm(&c->timer);
	free(c->greeting);
	c->greeting = NULL;
	c->greeting_len = 0;
	c->since_ns = 0;
	c->backoff_ms = 0;
	memcpy(c->id, g->id, sizeof(c->id));
	c->window = g->credit;
	c->eager = (uint32_t)tdm_min(tdm_env.eager_bytes, g->eager);
	c->rts_max = g->rts;
	c->contexts = g->contexts;
	c->read_bytes = TDM_TCP_STAGE_BYTES / 4;
	tdm_conn_set_state(c, TDM_CONN_READY);
	tdm_conn_watch(c, c->blocked ? TDM_LOOP_READ | TDM_LOOP_WRITE :
				       TDM_LOOP_READ);
}

/* The peer answered REJECT. */
static void rejected(struct tdm_conn *c, const struct tdm_wire_greeting *g)
{
	TDM_INFO(EP_CTRL, "a peer refused the connection, reason %u",
		 g->reason);
	if (g->reason == TDM_WIRE_R_VERSION ||
	    g->reason == TDM_WIRE_R_FEATURE) {
		tdm_conn_fail(c, FI_ENOPROTOOPT, 0);
		return;
	}
	/* DUPLICATE: the peer's own connection waits to be accepted here. */
	tdm_conn_retry(c, FI_ECONNREFUSED);
}

/* Same endpoint address, scope apart, which is not transmitted. */
static int same_addr(const struct tdm_addr *a, const struct tdm_addr *b)
{
	struct tdm_addr x = *a, y = *b;

	if (x.u.sa.sa_family == AF_INET6)
		x.u.in6.sin6_scope_id = 0;
	if (y.u.sa.sa_family == AF_INET6)
		y.u.in6.sin6_scope_id = 0;
	return tdm_addr_equal(&x, &y);
}

void tdm_hello_answer(struct tdm_conn *c)
{
	struct tdm_wire_greeting g;
	ssize_t n;

	n = tdm_os.recv(c->io.fd, c->greeting + c->greeting_len,
			TDM_WIRE_GREETING_BYTES - c->greeting_len,
			MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		tdm_conn_retry(c, FI_ECONNREFUSED);
		return;
	}
	c->greeting_len += (uint8_t)n;
	if (!tdm_wire_is_greeting(c->greeting, c->greeting_len))
		goto stranger;
	if (c->greeting_len < TDM_WIRE_GREETING_BYTES)
		return;
	if (tdm_wire_greeting_decode(c->greeting, &g))
		goto stranger;
	if (g.kind == TDM_WIRE_REJECT) {
		rejected(c, &g);
		return;
	}
	if (!tdm_wire_version_ok(&g) || (g.required & ~FEATURES)) {
		tdm_conn_fail(c, FI_ENOPROTOOPT, 0);
		return;
	}
	if (!same_addr(&g.addr, &c->addr))
		goto stranger;
	establish(c, &g);
	tdm_out_push(c);
	return;
stranger:
	TDM_INFO(EP_CTRL, "what listens at a peer's address is not the peer");
	tdm_conn_retry(c, FI_ECONNREFUSED);
}

/* Has the peer of @old hung up? Reads what it had said before. */
static int gone(struct tdm_conn *old)
{
	while (old->state == TDM_CONN_READY && tdm_rx_ready(old))
		;
	if (old->state != TDM_CONN_READY)
		return 1;
	/* Say something: if nobody is there, the kernel will know soon. */
	old->ack_now = 1;
	tdm_out_push(old);
	return 0;
}

/* Make @fd the connection of @c, which has no session. */
static int adopt(struct tdm_conn *c, int fd, const struct tdm_wire_greeting *g)
{
	tdm_conn_close_fd(c);
	tdm_conn_take_fd(c, fd);
	prepare(fd);
	if (write_hello(c)) {
		c->io.fd = -1; /* still the caller's */
		c->tcp->open--;
		if (c->state != TDM_CONN_IDLE && c->state != TDM_CONN_BACKOFF)
			tdm_conn_retry(c, FI_ENOMEM);
		return -1;
	}
	establish(c, g);
	if (!c->mirrored)
		c->tcp->a.accepted(c->tcp->a.arg, c, c->fi_addr);
	tdm_out_push(c);
	return 0;
}

/* Our own endpoint connected to itself: a half that only receives. */
static int adopt_mirror(struct tdm_tcp *tcp, int fd,
			const struct tdm_wire_greeting *g)
{
	struct tdm_conn *own = tdm_conn_find(tcp, &g->addr), *c;

	if (!own || own->state != TDM_CONN_GREETING)
		return -1;
	c = tdm_conn_new(tcp, &g->addr);
	if (!c)
		return -1;
	c->mirrored = 1;
	if (!adopt(c, fd, g))
		return 0;
	tdm_conn_free(c);
	return -1;
}

int tdm_hello_guest(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from,
		    struct tdm_wire_greeting *g)
{
	struct tdm_conn *c;
	int order;

	if (!tdm_wire_version_ok(g))
		return TDM_WIRE_R_VERSION;
	if (g->required & ~FEATURES)
		return TDM_WIRE_R_FEATURE;
	if (from->u.sa.sa_family == AF_INET6 &&
	    g->addr.u.sa.sa_family == AF_INET6)
		g->addr.u.in6.sin6_scope_id = from->u.in6.sin6_scope_id;
	if (!tdm_addr_same_ip(&g->addr, from))
		return -1;
	order = memcmp(g->id, tcp->id, sizeof(tcp->id));
	if (!order)
		return adopt_mirror(tcp, fd, g);
	c = tdm_conn_find(tcp, &g->addr);
	if (c && c->state == TDM_CONN_READY && !gone(c))
		return memcmp(c->id, g->id, sizeof(c->id)) ?
			       TDM_WIRE_R_BUSY :
			       TDM_WIRE_R_DUPLICATE;
	if (c && c->state == TDM_CONN_GREETING && order > 0)
		return TDM_WIRE_R_DUPLICATE;
	if (c && c->state == TDM_CONN_DEAD)
		c = NULL;
	if (!c)
		c = tdm_conn_get(tcp, &g->addr, FI_ADDR_UNSPEC);
	return c ? adopt(c, fd, g) : -1;
}
