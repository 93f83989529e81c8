/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The listener of an endpoint, and its *guests*: accepted connections that have
 * not sent HELLO yet. A guest gets no answer unless it speaks the protocol. The
 * address is bound in port.c.
 *
 * Bounds, so that strangers cost little and keep nobody out: at most 8 guests
 * from one IP, beyond which the oldest of them is dropped; at most 64 in all.
 * Beyond that, or on a descriptor reserved for peers in the address vector
 * (share.c), a random guest is dropped, first one whose IP is not in the
 * address vector. Most peers have sent HELLO by the time they are accepted and
 * never become guests. A guest has 5 s for its HELLO and 5 s for its proof.
 * Before it is dropped it is read once more, so time in which this process
 * makes no progress does not count against it. At most one log line a second.
 *
 * Out of descriptors: a reserve descriptor is closed so that one caller can be
 * accepted and closed; it will try again. Then the listener pauses, peers of
 * idle connections are asked for an idle close (idle_close.c), and a guest and a
 * stranger's session are dropped.
 *
 * Spec: doc/PROTOCOL-tcp.md, "Guests".
 */
#include "tcp/wire/listen.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "tcp/wire/admit.h"
#include "tcp/wire/idle_close.h"
#include "tcp/wire/port.h"
#include "tcp/wire/share.h"
#include "tcp/wire/tls.h"
#include "tcp/wire/why.h"

enum {
	BACKLOG = 4096,
	GUESTS = 64,
	GUESTS_OF_ONE = 8,
	SWEEP_MS = 1000,
	/* Greatest number of callers accepted at once. */
	BATCH = 16,
	PAUSE_LEAST_MS = 10,
	PAUSE_MOST_MS = 1000,
	LOG_GAP_NS = 1000000000,
	/* The first byte of a TLS connection. */
	TLS_HANDSHAKE = 0x16,
};

/* Time for a HELLO, and for a proof. */
static const uint64_t greeting_ns = 5000000000ull;

struct guest {
	struct tdm_list node; /* tcp->guests, by since_ns */
	struct tdm_tcp *tcp;
	struct tdm_loop_io io;
	struct tdm_tls *tls;  /* or NULL */
	uint64_t since_ns;    /* time of accept, or of our answer to it */
	struct tdm_addr from; /* with its port */
	uint8_t len;	      /* bytes of ch.hello, or of ch.proof */
	uint8_t answered;     /* 1: answered, its proof is awaited */
	struct tdm_challenge ch;
};

/* Log @what once a second. @from: the caller, NULL when none was accepted. */
static void complain(struct tdm_tcp *tcp, const struct tdm_addr *from,
		     const char *what)
{
	uint64_t now = tdm_os.now_ns();
	char text[TDM_ADDR_STR_BYTES];

	if (tcp->log_ns && now - tcp->log_ns < LOG_GAP_NS)
		return;
	tcp->log_ns = now;
	if (!from)
		TDM_INFO(EP_CTRL, "no caller is let in: %s", what);
	else
		TDM_INFO(EP_CTRL, "%s: a caller was turned away: %s",
			 tdm_addr_text(from, text, sizeof(text)), what);
}

static void watch_listener(struct tdm_tcp *tcp)
{
	int on = tcp->listener.fd >= 0 && !tcp->accept_timer.ev &&
		 !tcp->closing;

	if (tdm_loop_watch(tcp->a.loop, &tcp->listener, on ? TDM_LOOP_READ : 0))
		/* No memory: the periodic check tries again. */
		tdm_loop_timer_arm(tcp->a.loop, &tcp->guest_timer, SWEEP_MS);
}

static struct tdm_sock sock_of(const struct guest *g)
{
	const struct tdm_sock s = { g->io.fd, g->tls };

	return s;
}

/* Returns the socket of @g, which does not have it any more. */
static struct tdm_sock take_sock(struct guest *g)
{
	const struct tdm_sock s = sock_of(g);

	tdm_loop_watch(g->tcp->a.loop, &g->io, 0);
	g->io.fd = -1;
	g->tls = NULL;
	return s;
}

static void guest_free(struct guest *g)
{
	struct tdm_tcp *tcp = g->tcp;

	if (g->io.fd >= 0)
		tdm_sock_drop(take_sock(g));
	tdm_list_del(&g->node);
	free(g);
	tcp->guest_count--;
}

static void send_reject(struct tdm_sock s, int reason)
{
	uint8_t bytes[TDM_WIRE_GREETING_BYTES];
	struct tdm_wire_greeting g = {
		.kind = TDM_WIRE_REJECT,
		.reason = (uint8_t)reason,
		.oldest = TDM_WIRE_VERSION,
		.newest = TDM_WIRE_VERSION,
	};

	tdm_wire_greeting_encode(bytes, &g);
	/* If that fails, the peer connects again. */
	if (!tdm_sock_put(s, bytes, sizeof(bytes)))
		tdm_os.shutdown(s.fd, SHUT_WR);
}

/*
 * Called when @g has sent a whole HELLO or a whole proof. Returns 1: it was
 * answered and stays a guest; 0: it is no guest any more.
 */
static int guest_proves(struct guest *g)
{
	struct tdm_tcp *tcp = g->tcp;
	struct tdm_wire_greeting hello;
	struct tdm_sock s;
	int ret;

	if (!g->answered) {
		ret = tdm_admit_challenge(tcp, sock_of(g), &g->from, &g->ch);
		if (!ret) {
			g->answered = 1;
			g->len = 0;
			g->since_ns = tdm_os.now_ns();
			tdm_list_del(&g->node);
			tdm_list_append(&tcp->guests, &g->node);
			return 1;
		}
		if (ret > 0)
			send_reject(sock_of(g), ret);
		if (tdm_wire_greeting_decode(g->ch.hello, &hello))
			ret = -1;
		else if (!tdm_wire_version_ok(&hello))
			ret = TDM_WIRE_R_VERSION;
		complain(tcp, &g->from, tdm_wire_why(&hello, ret));
		guest_free(g);
		return 0;
	}
	s = take_sock(g);
	if (tdm_admit_proven(tcp, s, &g->from, &g->ch)) {
		complain(tcp, &g->from, tdm_wire_why(NULL, -1));
		tdm_sock_drop(s);
	}
	guest_free(g);
	return 0;
}

/* Called when @g has sent a whole HELLO. */
static void guest_speaks(struct guest *g)
{
	struct tdm_tcp *tcp = g->tcp;
	struct tdm_wire_greeting hello;
	struct tdm_sock s;
	int ret;

	if (tdm_wire_greeting_decode(g->ch.hello, &hello) ||
	    hello.kind == TDM_WIRE_REJECT) {
		complain(tcp, &g->from, "not a greeting");
		guest_free(g);
		return;
	}
	/* The connection watches the descriptor itself. */
	s = take_sock(g);
	ret = tdm_admit_guest(tcp, s, &g->from, &hello);
	if (ret) {
		complain(tcp, &g->from, tdm_wire_why(&hello, ret));
		if (ret > 0)
			send_reject(s, ret);
		tdm_sock_drop(s);
	}
	guest_free(g);
}

/* Read from @g. Returns 0 when it is no guest any more. */
static int guest_read(struct guest *g)
{
	uint8_t *to = g->answered ? g->ch.proof : g->ch.hello;
	size_t all = g->answered ? sizeof(g->ch.proof) : sizeof(g->ch.hello);
	int answered = g->answered;
	uint8_t byte;
	ssize_t n;

	n = tdm_sock_recv(sock_of(g), to + g->len, all - g->len);
	if (n < 0 && tdm_os_later(errno))
		return 1;
	if (n <= 0) {
		if (n && g->tls && *tdm_tls_why(g->tls))
			complain(g->tcp, &g->from, tdm_tls_why(g->tls));
		guest_free(g);
		return 0;
	}
	g->len += (uint8_t)n;
	if (!answered && !tdm_wire_is_greeting(g->ch.hello, g->len)) {
		complain(g->tcp, &g->from,
			 !g->tls && g->ch.hello[0] == TLS_HANDSHAKE ?
				 "it speaks TLS: FI_TANDEM_TLS is set there" :
				 "not a greeting");
		guest_free(g);
		return 0;
	}
	if (g->len < all)
		return 1;
	/* One that has closed may have a session by another connection. */
	n = tdm_os.recv(g->io.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
	if (!n || (n < 0 && !tdm_os_later(errno))) {
		guest_free(g);
		return 0;
	}
	if (!g->tcp->a.keys) {
		guest_speaks(g);
		return 0;
	}
	return guest_proves(g);
}

/* Wait for input of @g, and for room while TLS has something to say. */
static int watch_guest(struct guest *g)
{
	int events = tdm_sock_events(sock_of(g));

	return g->io.events == events ?
		       0 :
		       tdm_loop_watch(g->tcp->a.loop, &g->io, events);
}

static void guest_ready(struct tdm_loop_io *io, int events)
{
	struct guest *g = tdm_container_of(io, struct guest, io);

	if (guest_read(g) && watch_guest(g))
		guest_free(g);
}

static void sweep(struct tdm_loop_timer *timer)
{
	struct tdm_tcp *tcp =
		tdm_container_of(timer, struct tdm_tcp, guest_timer);
	struct tdm_list *pos, *tmp;
	uint64_t now = tdm_os.now_ns();

	tdm_list_for_each_safe(pos, tmp, &tcp->guests) {
		struct guest *g = tdm_list_entry(pos, struct guest, node);

		if (now - g->since_ns < greeting_ns)
			break;
		if (guest_read(g) && g->since_ns < now)
			guest_free(g);
	}
	if (tcp->guest_count)
		tdm_loop_timer_arm(tcp->a.loop, timer, SWEEP_MS);
	watch_listener(tcp);
}

/* Returns a random number below @n, which must not be 0. */
static size_t roll(struct tdm_tcp *tcp, size_t n)
{
	tcp->dice = tcp->dice * 1664525u + 1013904223u;
	return (tcp->dice >> 16) % n;
}

/*
 * Returns a random guest; with @strangers, one whose IP is not in the AV. NULL:
 * none.
 */
static struct guest *draw(struct tdm_tcp *tcp, int strangers)
{
	struct guest *drawn = NULL;
	struct tdm_list *pos;
	size_t n = 0;

	tdm_list_for_each(pos, &tcp->guests) {
		struct guest *g = tdm_list_entry(pos, struct guest, node);

		if (strangers && tdm_share_known(tcp, &g->from))
			continue;
		if (!roll(tcp, ++n))
			drawn = g;
	}
	return drawn;
}

/* Drop a random guest; without @all only one whose IP is not in the AV. */
static void drop_one(struct tdm_tcp *tcp, int all)
{
	struct guest *g = draw(tcp, 1);

	if (!g && all)
		g = draw(tcp, 0);
	if (!g)
		return;
	complain(tcp, &g->from, "too many that have not said who they are");
	guest_free(g);
}

/*
 * Returns how many guests are from the IP of @from; if they are too many, drops
 * the oldest of them.
 */
static int crowd_of(struct tdm_tcp *tcp, const struct tdm_addr *from)
{
	struct guest *oldest = NULL;
	struct tdm_list *pos;
	unsigned n = 0;

	tdm_list_for_each(pos, &tcp->guests) {
		struct guest *g = tdm_list_entry(pos, struct guest, node);

		if (!tdm_addr_same_ip(&g->from, from))
			continue;
		if (!n++)
			oldest = g;
	}
	if (n <= GUESTS_OF_ONE)
		return 0;
	complain(tcp, from, "too many from one address");
	guest_free(oldest);
	return 1;
}

/*
 * Called when the last guest in the list, on @fd from @from, has not sent HELLO
 * at once: drops another guest if need be.
 */
static void make_room(struct tdm_tcp *tcp, const struct tdm_addr *from, int fd)
{
	int over = tcp->guest_count > GUESTS;

	if (!crowd_of(tcp, from) && (over || tdm_share_reserved(fd)))
		drop_one(tcp, over);
}

static void welcome(struct tdm_tcp *tcp, int fd, const struct tdm_addr *from)
{
	struct guest *g = calloc(1, sizeof(*g));

	if (g && tcp->tls)
		g->tls = tdm_tls_new(tcp->tls, fd, 1, NULL);
	if (!g || (tcp->tls && !g->tls)) {
		free(g);
		tdm_os.close(fd);
		return;
	}
	g->tcp = tcp;
	g->io.fd = fd;
	g->io.ready = guest_ready;
	g->from = *from;
	g->since_ns = tdm_os.now_ns();
	tdm_list_init(&g->node);
	tdm_list_append(&tcp->guests, &g->node);
	tcp->guest_count++;
	/* Most have sent HELLO before they are accepted. */
	if (!guest_read(g))
		return;
	if (watch_guest(g) ||
	    (!tcp->guest_timer.ev &&
	     tdm_loop_timer_arm(tcp->a.loop, &tcp->guest_timer, SWEEP_MS))) {
		guest_free(g);
		return;
	}
	make_room(tcp, from, fd);
}

/*
 * Open the descriptor that is closed when there is no other: without it a
 * caller could be neither accepted nor refused, and would wait without end.
 */
static int take_reserve(struct tdm_tcp *tcp)
{
	if (tcp->reserve_fd < 0)
		tcp->reserve_fd = tdm_os.eventfd(0, EFD_CLOEXEC);
	return tcp->reserve_fd < 0 ? -errno : 0;
}

static void resume(struct tdm_loop_timer *timer)
{
	watch_listener(tdm_container_of(timer, struct tdm_tcp, accept_timer));
}

/*
 * Called when there is no descriptor, or no memory, for the first caller in the
 * queue: pauses the listener.
 */
static void pause_listener(struct tdm_tcp *tcp, int err)
{
	int fd;

	complain(tcp, NULL, "out of descriptors");
	if (err == EMFILE || err == ENFILE) {
		tdm_idle_close_crowd(tcp, -1);
		drop_one(tcp, 0);
	}
	if ((err == EMFILE || err == ENFILE) && tcp->reserve_fd >= 0) {
		tdm_os.close(tcp->reserve_fd);
		tcp->reserve_fd = -1;
		fd = tdm_os.accept4(tcp->listener.fd, NULL, NULL,
				    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			tdm_os.close(fd);
		(void)take_reserve(tcp);
	}
	tcp->accept_ms = (unsigned)tdm_clamp(tcp->accept_ms * 2ull,
					     PAUSE_LEAST_MS, PAUSE_MOST_MS);
	tdm_loop_timer_arm(tcp->a.loop, &tcp->accept_timer, tcp->accept_ms);
	watch_listener(tcp);
}

static void accept_ready(struct tdm_loop_io *io, int events)
{
	struct tdm_tcp *tcp = tdm_container_of(io, struct tdm_tcp, listener);
	int i;

	/* After a refusal another thread may have taken that descriptor. */
	(void)take_reserve(tcp);
	for (i = 0; i < BATCH; i++) {
		struct sockaddr_storage sa;
		socklen_t len = sizeof(sa);
		struct tdm_addr from;
		int fd;

		fd = tdm_os.accept4(io->fd, (struct sockaddr *)&sa, &len,
				    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE ||
			    errno == ENOBUFS || errno == ENOMEM)
				pause_listener(tcp, errno);
			/* No caller, or one that has closed already. */
			break;
		}
		tcp->accept_ms = 0;
		tdm_idle_close_crowd(tcp, fd);
		if (tdm_addr_from_bind(&from, &sa, len))
			tdm_os.close(fd);
		else
			welcome(tcp, fd, &from);
	}
	watch_listener(tcp);
}

int tdm_tcp_listen(struct tdm_tcp *tcp)
{
	int ret;

	tdm_assert_held(tcp->a.engine->lock);
	ret = take_reserve(tcp);
	if (ret)
		return ret;
	if (tdm_os.listen(tcp->listener.fd, BACKLOG))
		return -errno;
	/*
	 * Connections inherit the option; without it they would block the port
	 * after this process has ended.
	 */
	ret = tdm_port_reuse(tcp->listener.fd);
	if (ret)
		return ret;
	tcp->listener.lazy = 1;
	tcp->listener.ready = accept_ready;
	tcp->accept_timer.fired = resume;
	tcp->guest_timer.fired = sweep;
	return tdm_loop_watch(tcp->a.loop, &tcp->listener, TDM_LOOP_READ);
}

void tdm_listen_stop(struct tdm_tcp *tcp)
{
	tcp->closing = 1;
	while (!tdm_list_empty(&tcp->guests))
		guest_free(
			tdm_list_entry(tcp->guests.next, struct guest, node));
	tdm_loop_timer_disarm(&tcp->accept_timer);
	tdm_loop_timer_disarm(&tcp->guest_timer);
	tdm_loop_watch(tcp->a.loop, &tcp->listener, 0);
}

void tdm_listen_close(struct tdm_tcp *tcp)
{
	tdm_listen_stop(tcp);
	if (tcp->listener.fd >= 0)
		tdm_os.close(tcp->listener.fd);
	if (tcp->reserve_fd >= 0)
		tdm_os.close(tcp->reserve_fd);
	tcp->listener.fd = -1;
	tcp->reserve_fd = -1;
}
