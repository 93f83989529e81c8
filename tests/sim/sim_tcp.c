/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls for TCP sockets: see sim_net.c. Locking: none, one thread. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "sim_net.h"

enum { KEEP_IDLE_S = 10, KEEP_GAP_S = 5, RETRANSMIT_MS = 200 };

static uint64_t moved_bytes;

uint64_t tds_tcp_moved(void)
{
	return moved_bytes;
}

int tds_tcp_socket(void)
{
	struct tds_sock *s = tds_file_new(TDS_TCP, sizeof(*s));

	s->host = tds_self()->host;
	s->local.sin_family = AF_INET;
	tdm_list_init(&s->queue);
	tdm_list_append(&tds_socks, &s->node);
	return tds_fd_new(&s->f);
}

static int port_taken(const struct sockaddr_in *a)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &tds_socks) {
		struct tds_sock *s = tdm_list_entry(pos, struct tds_sock, node);

		if ((s->state == TDS_BOUND || s->state == TDS_LISTENING) &&
		    s->local.sin_port == a->sin_port &&
		    s->local.sin_addr.s_addr == a->sin_addr.s_addr)
			return 1;
	}
	return 0;
}

int tds_tcp_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct tds_sock *s = tds_kind_of(fd, TDS_TCP);
	struct sockaddr_in a;

	if (!s || len < sizeof(a))
		return tds_fail(s ? EINVAL : EBADF);
	memcpy(&a, addr, sizeof(a));
	if (tds_host_of(a.sin_addr) != s->host)
		return tds_fail(EADDRNOTAVAIL);
	if (a.sin_port && port_taken(&a))
		return tds_fail(EADDRINUSE);
	if (!a.sin_port)
		a.sin_port = tds_port_new();
	s->local = a;
	s->state = TDS_BOUND;
	return tds_did(0);
}

int tds_tcp_listen(int fd, int backlog)
{
	struct tds_sock *s = tds_kind_of(fd, TDS_TCP);

	(void)backlog;
	if (!s)
		return tds_fail(EBADF);
	s->state = TDS_LISTENING;
	return tds_did(0);
}

int tds_tcp_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct tds_sock *l = tds_kind_of(fd, TDS_TCP), *s;
	struct tds_conn *c;

	if (!l || l->state != TDS_LISTENING)
		return tds_fail(l ? EINVAL : EBADF);
	if (tdm_list_empty(&l->queue))
		return tds_fail(EAGAIN);
	c = tdm_list_entry(tdm_list_pop(&l->queue), struct tds_conn, in_queue);
	l->queued--;
	c->queued = 0;
	s = tds_file_new(TDS_TCP, sizeof(*s));
	s->host = l->host;
	s->state = TDS_UP;
	s->conn = c;
	s->side = 1;
	s->local = c->name[1];
	s->remote = c->name[0];
	tdm_list_init(&s->queue);
	tdm_list_append(&tds_socks, &s->node);
	c->end[1] = s;
	if (addr && *len >= sizeof(s->remote))
		memcpy(addr, &s->remote, sizeof(s->remote));
	if (addr)
		*len = sizeof(s->remote);
	tds_trace("accept at port %d from port %d", ntohs(s->local.sin_port),
		  ntohs(s->remote.sin_port));
	return tds_fd_new(&s->f);
}

int tds_tcp_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct tds_sock *s = tds_kind_of(fd, TDS_TCP);
	int to;

	if (!s || len < sizeof(s->remote))
		return tds_fail(s ? EINVAL : EBADF);
	memcpy(&s->remote, addr, sizeof(s->remote));
	to = tds_host_of(s->remote.sin_addr);
	if (to < 0)
		return tds_fail(ENETUNREACH);
	if (s->state == TDS_FRESH) {
		s->local.sin_addr = tds_host_ip(s->host);
		s->local.sin_port = tds_port_new();
	}
	tds_trace("connect %d -> %d:%d", fd, to, ntohs(s->remote.sin_port));
	tds_net_changed();
	s->state = TDS_CONNECTING;
	s->since = tds_now();
	s->due = tds_arrival(s->host, to);
	return tds_fail(EINPROGRESS);
}

int tds_tcp_name(int fd, struct sockaddr *addr, socklen_t *len, int peer)
{
	struct tds_sock *s = tds_kind_of(fd, TDS_TCP);

	if (!s || *len < sizeof(s->local))
		return tds_fail(s ? EINVAL : EBADF);
	if (peer && (s->state != TDS_UP || s->reset))
		return tds_fail(ENOTCONN);
	memcpy(addr, peer ? &s->remote : &s->local, sizeof(s->local));
	*len = sizeof(s->local);
	return tds_did(0);
}

static void get_info(const struct tds_sock *s, struct tcp_info *info)
{
	const struct tds_conn *c = s->conn;
	const struct tds_flow *f = &c->to[!s->side];
	uint64_t ago = tds_now() - c->heard;

	if (f->tail > f->arrived && f->arrived - f->head < tds_weather.rcvbuf)
		info->tcpi_unacked = 1;
	info->tcpi_last_ack_recv = (uint32_t)(ago / TDS_MS);
	if (!tds_parted(c->host[0], c->host[1]))
		return;
	if (info->tcpi_unacked && ago > RETRANSMIT_MS * TDS_MS)
		info->tcpi_retransmits = 1;
	if (ago > KEEP_IDLE_S * TDS_S)
		info->tcpi_probes =
			(uint8_t)(1 + (ago / TDS_S - KEEP_IDLE_S) / KEEP_GAP_S);
}

int tds_tcp_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	struct tds_sock *s = tds_kind_of(fd, TDS_TCP);

	if (!s)
		return tds_fail(EBADF);
	if (level == SOL_SOCKET && name == SO_ERROR && *len >= sizeof(int)) {
		memcpy(val, &s->err, sizeof(int));
		s->err = 0;
	} else if (level == IPPROTO_TCP && name == TCP_INFO) {
		memset(val, 0, *len);
		if (s->conn && *len >= sizeof(struct tcp_info))
			get_info(s, val);
	} else {
		return tds_fail(ENOPROTOOPT);
	}
	return tds_did(0);
}

static void finish(struct tds_conn *c, int side)
{
	struct tds_flow *f = &c->to[!side];

	if (f->fin)
		return;
	tds_net_changed();
	f->fin = 1;
	f->fin_due = tds_arrival(c->host[side], c->host[!side]);
}

int tds_tcp_shutdown(int fd, int how)
{
	struct tds_sock *s = tds_kind_of(fd, TDS_TCP);

	if (!s || s->state != TDS_UP || s->reset)
		return tds_fail(s ? ENOTCONN : EBADF);
	if (how != SHUT_RD)
		finish(s->conn, s->side);
	return tds_did(0);
}

int tds_tcp_outq(int fd, int *bytes)
{
	struct tds_sock *s = tds_kind_of(fd, TDS_TCP);
	const struct tds_flow *f;

	if (!s)
		return tds_fail(EBADF);
	f = s->conn ? &s->conn->to[!s->side] : NULL;
	*bytes = f ? (int)(f->tail - f->arrived) : 0;
	return tds_did(*bytes) * 0;
}

static size_t total(const struct iovec *iov, size_t count)
{
	size_t n = 0;

	while (count--)
		n += iov++->iov_len;
	return n;
}

/* Bytes that a call may move of @len; 0: none, errno is set. */
static size_t moved(size_t len, const int *errs)
{
	if (tds_one_of(tds_weather.again)) {
		tds_fail(errs[tds_random(3)]);
		return 0;
	}
	if (len > 1 && tds_one_of(tds_weather.short_io))
		len = 1 + tds_random(tds_one_of(2) ? 8 : len - 1) % len;
	return len;
}

static int take_error(struct tds_sock *s)
{
	int err = s->err;

	s->err = 0;
	return err;
}

ssize_t tds_tcp_send(int fd, const struct iovec *iov, size_t count)
{
	static const int errs[] = { EAGAIN, EINTR, ENOBUFS };
	struct tds_sock *s = tds_kind_of(fd, TDS_TCP);
	size_t len = total(iov, count), room;
	struct tds_flow *f;

	if (!s)
		return tds_fail(EBADF);
	if (s->err)
		return tds_fail(take_error(s));
	if (s->state != TDS_UP)
		return tds_fail(EAGAIN);
	f = &s->conn->to[!s->side];
	if (s->reset || f->fin)
		return tds_fail(EPIPE);
	room = tds_weather.sndbuf -
	       tdm_min(f->tail - f->arrived, tds_weather.sndbuf);
	if (!room)
		return tds_fail(EAGAIN);
	len = moved(tdm_min(len, room), errs);
	if (!len)
		return -1;
	moved_bytes += len;
	tds_net_changed();
	tds_flow_write(f, iov, count, len,
		       tds_arrival(s->host, s->conn->host[!s->side]));
	return tds_did((int)len);
}

ssize_t tds_tcp_recv(int fd, const struct iovec *iov, size_t count)
{
	static const int errs[] = { EAGAIN, EINTR, ENOMEM };
	struct tds_sock *s = tds_kind_of(fd, TDS_TCP);
	size_t len = total(iov, count), n;
	struct tds_flow *f;

	if (!s)
		return tds_fail(EBADF);
	f = s->conn ? &s->conn->to[s->side] : NULL;
	if (!f || f->arrived == f->head) {
		if (s->err)
			return tds_fail(take_error(s));
		return s->reset || (f && f->fin_arrived) ? tds_did(0) :
							   tds_fail(EAGAIN);
	}
	n = moved(tdm_min(len, (size_t)(f->arrived - f->head)), errs);
	if (!n)
		return -1;
	n = tds_flow_read(f, iov, count, n);
	moved_bytes += n;
	tds_net_changed();
	tds_flow_arrive(f, tds_weather.rcvbuf);
	return tds_did((int)n);
}

ssize_t tds_tcp_peek(int fd)
{
	struct tds_sock *s = tds_kind_of(fd, TDS_TCP);
	const struct tds_flow *f;

	if (!s)
		return tds_fail(EBADF);
	f = s->conn ? &s->conn->to[s->side] : NULL;
	if (f && f->arrived > f->head)
		return tds_did(1);
	if (s->err)
		return tds_fail(take_error(s));
	if (s->reset || (f && f->fin_arrived))
		return tds_did(0);
	return tds_fail(EAGAIN);
}

static unsigned tcp_events(struct tds_file *file)
{
	struct tds_sock *s = (struct tds_sock *)file;
	const struct tds_flow *in, *out;
	unsigned ev = 0;

	if (s->state == TDS_LISTENING)
		return tdm_list_empty(&s->queue) ? 0 : POLLIN;
	if (s->state == TDS_FAILED || s->reset)
		return POLLIN | POLLOUT | POLLHUP | POLLRDHUP |
		       (s->err ? POLLERR : 0u);
	if (s->state != TDS_UP)
		return s->state == TDS_CONNECTING ? 0 : POLLOUT | POLLHUP;
	in = &s->conn->to[s->side];
	out = &s->conn->to[!s->side];
	if (in->arrived > in->head || in->fin_arrived)
		ev |= POLLIN;
	if (in->fin_arrived)
		ev |= POLLRDHUP | (out->fin ? POLLHUP : 0u);
	if (out->tail - out->arrived < tds_weather.sndbuf || out->fin)
		ev |= POLLOUT;
	return ev;
}

/* ---- closing ------------------------------------------------------------- */

static void conn_free(struct tds_conn *c)
{
	tdm_list_del(&c->node);
	if (c->queued)
		tdm_list_del(&c->in_queue);
	tds_flow_free(&c->to[0]);
	tds_flow_free(&c->to[1]);
	free(c);
}

static void close_end(struct tds_conn *c, int side)
{
	struct tds_flow *in = &c->to[side];

	c->end[side] = NULL;
	c->closed[side] = 1;
	if (c->closed[!side]) {
		conn_free(c);
		return;
	}
	if (in->arrived > in->head) {
		tds_flow_cut(&c->to[!side]);
		c->rst_due[!side] = tds_arrival(c->host[side], c->host[!side]);
	} else {
		finish(c, side);
	}
}

static void tcp_close(struct tds_file *file)
{
	struct tds_sock *s = (struct tds_sock *)file;

	tds_net_changed();
	while (!tdm_list_empty(&s->queue)) {
		struct tds_conn *c = tdm_list_entry(tdm_list_pop(&s->queue),
						    struct tds_conn, in_queue);

		c->queued = 0;
		c->rst_due[0] = tds_arrival(c->host[1], c->host[0]);
		c->closed[1] = 1;
		if (c->closed[0])
			conn_free(c);
	}
	if (s->conn)
		close_end(s->conn, s->side);
	tdm_list_del(&s->node);
	free(s);
}

const struct tds_kind_ops tds_tcp_ops = { tcp_events, tcp_close };
