/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP between the hosts of the room: see sim_file.h. IPv4, non-blocking.
 *
 * As in Linux: bytes that have arrived are read before an error or the end is
 * told; an error is told once, by send, recv or SO_ERROR; who closes with unread
 * bytes resets, else the end follows what was written, which arrives all the
 * same; what arrives at a closed end is answered by a reset. A partition keeps
 * segments until it is healed, as retransmission does, and TCP_INFO tells it.
 *
 * Invariants:
 *  1. A connection is in the list until both of its ends are closed.
 *  2. What is due happens in tds_net_run(), in the order of the lists, whoever
 *     looks.
 *  3. Nothing is due before quiet_until, which each change sets back to 0.
 * Locking: none, one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim_net.h"
#include "tests/harness/seeded.h"

enum {
	SYN_TIMEOUT_S = 130,
	RTO_MS = 200,
	ACCEPTED = 64, /* of a listener that nobody has taken yet */
};

struct tdm_list tds_socks = { &tds_socks, &tds_socks };
struct tdm_list tds_conns = { &tds_conns, &tds_conns };

static unsigned char parted[TDS_HOSTS][TDS_HOSTS];
static uint64_t slower[TDS_HOSTS][TDS_HOSTS];
static uint16_t next_port;
static uint64_t quiet_until;

void tds_net_changed(void)
{
	quiet_until = 0;
}

void tds_net_begin(void)
{
	tds_net_changed();
	memset(parted, 0, sizeof(parted));
	memset(slower, 0, sizeof(slower));
	next_port = 30000;
}

struct in_addr tds_host_ip(int host)
{
	struct in_addr a = { htonl(0x0a000001u + ((uint32_t)host << 8)) };

	return a;
}

int tds_host_of(struct in_addr ip)
{
	int i;

	for (i = 0; i < TDS_HOSTS; i++) {
		if (tds_host_ip(i).s_addr == ip.s_addr)
			return i;
	}
	return -1;
}

int tds_parted(int a, int b)
{
	return parted[a][b];
}

in_port_t tds_port_new(void)
{
	return htons(next_port++);
}

uint64_t tds_arrival(int a, int b)
{
	uint64_t most = a == b ? 2000 : tds_weather.delay_ns;

	return tds_now() + 1 + tds_random(most) + slower[a][b];
}

/* ---- what is due --------------------------------------------------------- */

static struct tds_sock *listener_at(const struct sockaddr_in *a)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &tds_socks) {
		struct tds_sock *s = tdm_list_entry(pos, struct tds_sock, node);

		if (s->state == TDS_LISTENING &&
		    s->local.sin_port == a->sin_port &&
		    s->local.sin_addr.s_addr == a->sin_addr.s_addr)
			return s;
	}
	return NULL;
}

static void connect_ends(struct tds_sock *s)
{
	struct tds_sock *l = listener_at(&s->remote);
	struct tds_conn *c;

	if (!l || l->queued >= ACCEPTED) {
		s->state = TDS_FAILED;
		s->err = ECONNREFUSED;
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	c->name[0] = s->local;
	c->name[1] = s->remote;
	c->host[0] = s->host;
	c->host[1] = l->host;
	c->heard = tds_now();
	c->end[0] = s;
	tdm_list_append(&tds_conns, &c->node);
	tdm_list_append(&l->queue, &c->in_queue);
	l->queued++;
	c->queued = 1;
	s->conn = c;
	s->state = TDS_UP;
}

static void run_connect(struct tds_sock *s)
{
	int to = tds_host_of(s->remote.sin_addr);

	if (tds_now() - s->since > SYN_TIMEOUT_S * TDS_S) {
		s->state = TDS_FAILED;
		s->err = ETIMEDOUT;
	} else if (s->due <= tds_now() && !parted[s->host][to]) {
		connect_ends(s);
	}
}

static void take_reset(struct tds_conn *c, int side)
{
	struct tds_sock *s = c->end[side];

	c->rst_due[side] = 0;
	tds_flow_cut(&c->to[side]);
	tds_flow_cut(&c->to[!side]);
	if (!s || s->reset)
		return;
	s->reset = 1;
	s->err = ECONNRESET;
	tds_trace("reset arrives at %d:%d", c->host[side],
		  ntohs(c->name[side].sin_port));
}

static size_t window_of(const struct tds_conn *c, int side)
{
	return c->closed[side] ? SIZE_MAX / 2 : tds_weather.rcvbuf;
}

static void run_side(struct tds_conn *c, int side)
{
	if (c->rst_due[side] && c->rst_due[side] <= tds_now())
		take_reset(c, side);
	if (!tds_flow_arrive(&c->to[side], window_of(c, side)))
		return;
	c->heard = tds_now();
	if (c->closed[side] && !c->rst_due[!side])
		c->rst_due[!side] = tds_arrival(c->host[side], c->host[!side]);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t tds_net_next(void)
{
	uint64_t first = TDS_NEVER;
	struct tdm_list *pos;
	int i;

	if (tds_now() < quiet_until)
		return quiet_until;
	tdm_list_for_each(pos, &tds_socks) {
		struct tds_sock *s = tdm_list_entry(pos, struct tds_sock, node);

		if (s->state == TDS_CONNECTING)
			first = earlier(
				first,
				s->due > tds_now() ?
					s->due :
					s->since + SYN_TIMEOUT_S * TDS_S + 1);
	}
	tdm_list_for_each(pos, &tds_conns) {
		struct tds_conn *c = tdm_list_entry(pos, struct tds_conn, node);

		if (parted[c->host[0]][c->host[1]])
			continue;
		for (i = 0; i < 2; i++) {
			first = earlier(first, tds_flow_next(&c->to[i],
							     window_of(c, i)));
			if (c->rst_due[i])
				first = earlier(first, c->rst_due[i]);
		}
	}
	return first;
}

void tds_net_run(void)
{
	struct tdm_list *pos, *tmp;

	if (tds_now() < quiet_until)
		return;
	tdm_list_for_each(pos, &tds_socks) {
		struct tds_sock *s = tdm_list_entry(pos, struct tds_sock, node);

		if (s->state == TDS_CONNECTING)
			run_connect(s);
	}
	tdm_list_for_each_safe(pos, tmp, &tds_conns) {
		struct tds_conn *c = tdm_list_entry(pos, struct tds_conn, node);

		if (parted[c->host[0]][c->host[1]])
			continue;
		run_side(c, 0);
		run_side(c, 1);
	}
	quiet_until = tds_net_next();
}

/* ---- faults -------------------------------------------------------------- */

static void heal(int a, int b)
{
	struct tdm_list *pos;

	parted[a][b] = parted[b][a] = 0;
	tdm_list_for_each(pos, &tds_conns) {
		struct tds_conn *c = tdm_list_entry(pos, struct tds_conn, node);
		uint64_t later = tds_now() + tds_random(RTO_MS) * TDS_MS;

		if ((c->host[0] == a && c->host[1] == b) ||
		    (c->host[0] == b && c->host[1] == a)) {
			tds_flow_delay(&c->to[0], later);
			tds_flow_delay(&c->to[1], later);
		}
	}
}

void tds_part(int a, int b, int on)
{
	tds_trace("%s: hosts %d and %d", on ? "partition" : "healed", a, b);
	if (a == b)
		return;
	tds_net_changed();
	if (on)
		parted[a][b] = parted[b][a] = 1;
	else if (parted[a][b])
		heal(a, b);
}

void tds_heal_all(void)
{
	int a, b;

	for (a = 0; a < TDS_HOSTS; a++) {
		for (b = 0; b <= a; b++) {
			slower[a][b] = slower[b][a] = 0;
			if (parted[a][b])
				tds_part(a, b, 0);
		}
	}
}

void tds_clog(int a, int b, uint64_t ns)
{
	tds_trace("clogged: hosts %d and %d, %.3f ms", a, b, (double)ns / 1e6);
	slower[a][b] = slower[b][a] = ns;
}

/* Is @c between the processes @a and @b? By address: its ends tell. */
static int between(const struct tds_conn *c, const struct tds_proc *a,
		   const struct tds_proc *b)
{
	int fd, found[2] = { 0, 0 };

	for (fd = 0; fd < TDS_FDS; fd++) {
		const void *x = a->fds[fd], *y = b->fds[fd];

		found[0] |= x && (x == c->end[0] || x == c->end[1]);
		found[1] |= y && (y == c->end[0] || y == c->end[1]);
	}
	return found[0] && found[1];
}

static int same_ip(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return a->sin_addr.s_addr == b->sin_addr.s_addr;
}

static int same_name(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return same_ip(a, b) && a->sin_port == b->sin_port;
}

int tds_unmet(const struct sockaddr_in *old, const struct sockaddr_in *other)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &tds_socks) {
		struct tds_sock *s = tdm_list_entry(pos, struct tds_sock, node);

		if (s->state == TDS_CONNECTING && same_name(&s->remote, old) &&
		    same_ip(&s->local, other))
			return 1;
	}
	tdm_list_for_each(pos, &tds_conns) {
		struct tds_conn *c = tdm_list_entry(pos, struct tds_conn, node);

		if (!c->end[0] && same_name(&c->name[1], other) &&
		    same_ip(&c->name[0], old))
			return 1;
	}
	return 0;
}

/* A connection between @a and @b, in use: with bytes under way; or NULL. */
static struct tds_conn *draw(const struct tds_proc *a, const struct tds_proc *b,
			     int in_use)
{
	struct tds_conn *drawn = NULL;
	struct tdm_list *pos;
	uint64_t n = 0;

	tdm_list_for_each(pos, &tds_conns) {
		struct tds_conn *c = tdm_list_entry(pos, struct tds_conn, node);

		if (in_use && c->to[0].tail == c->to[0].head &&
		    c->to[1].tail == c->to[1].head)
			continue;
		if (between(c, a, b) && !tds_random(++n))
			drawn = c;
	}
	return drawn;
}

static int is_young(const struct tds_conn *c, uint64_t greeting)
{
	return c->to[0].head < greeting || c->to[1].head < greeting;
}

int tds_reset(const struct tds_proc *a, const struct tds_proc *b,
	      uint64_t greeting)
{
	struct tds_conn *c = draw(a, b, 0);
	int young;

	if (!c)
		return 0;
	tds_trace("reset injected");
	young = is_young(c, greeting);
	tds_net_changed();
	take_reset(c, 0);
	take_reset(c, 1);
	return 1 + young;
}

int tds_flip(const struct tds_proc *a, const struct tds_proc *b,
	     uint64_t greeting)
{
	struct tds_conn *c = draw(a, b, 1);
	struct tds_flow *f;
	uint64_t bit;

	if (!c)
		return 0;
	f = &c->to[tds_random(2)];
	if (f->tail == f->head)
		f = &c->to[f == c->to];
	bit = tds_random(8 * (f->tail - f->head));
	tds_trace("bit flipped at offset %ju", (uintmax_t)(f->head + bit / 8));
	tdt_flip_bit(f->bytes, f->tail - f->head, bit);
	return 1 + is_young(c, greeting);
}
