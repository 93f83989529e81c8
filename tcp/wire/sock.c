/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See sock.h. A socket knows nothing of sessions; hello.c and resume.c agree on
 * those over it.
 *
 * Lock: held in all of this file.
 */
#include "tcp/wire/sock.h"

#include <errno.h>
#include <netinet/tcp.h>

#include <rdma/fi_errno.h>

#include "av/locality.h"
#include "base/congestion.h"
#include "base/env.h"
#include "base/log.h"
#include "tcp/wire/blocks.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/idle_close.h"
#include "tcp/wire/parts.h"
#include "tcp/wire/tclass.h"
#include "tcp/wire/tls.h"

enum {
	KEEPALIVE_IDLE_S = 10,
	KEEPALIVE_GAP_S = 5,
	KEEPALIVE_GAP_MOST_S = 32767, /* tcp(7) */
	KEEPALIVE_COUNT = 6,
	PUT_TRIES = 16, /* calls of send(2) for a greeting */
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

void tdm_sock_prepare(const struct tdm_conn *c, int fd)
{
	const struct tdm_tcp *tcp = c->tcp;
	int dscp = tdm_tclass_dscp(tcp->a.tclass);

	/* The lower two bits belong to the kernel (ECN). */
	if (dscp >= 0 && tcp->addr.u.sa.sa_family == AF_INET)
		set_opt(fd, IPPROTO_IP, IP_TOS, dscp << 2);
	else if (dscp >= 0)
		set_opt(fd, IPPROTO_IPV6, IPV6_TCLASS, dscp << 2);
	set_opt(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	tdm_congestion_set(fd, !tdm_env.congestion &&
				       tdm_locality_is_here(&c->addr));
	if (!tdm_env.peer_timeout_ms)
		return;
	set_opt(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_opt(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	set_opt(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_gap());
	set_opt(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT);
}

int tdm_sock_is_any(const struct tdm_addr *a)
{
	static const struct in6_addr any;

	return a->u.sa.sa_family == AF_INET ?
		       !a->u.in.sin_addr.s_addr :
		       !memcmp(&a->u.in6.sin6_addr, &any, sizeof(any));
}

/* Bind @fd to the endpoint's own IP: the peer compares it with our HELLO. */
static int bind_own(const struct tdm_conn *c, int fd)
{
	struct tdm_addr own = c->tcp->addr;

	if (tdm_sock_is_any(&own) ||
	    own.u.sa.sa_family != c->addr.u.sa.sa_family)
		return 0;
	set_opt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	tdm_addr_set_port(&own, 0);
	return tdm_os.bind(fd, &own.u.sa, (socklen_t)tdm_addr_len(&own));
}

int tdm_sock_open(const struct tdm_conn *c)
{
	int fd = tdm_os.socket(c->addr.u.sa.sa_family,
			       SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0) {
		tdm_idle_close_crowd(c->tcp, fd);
		return fd;
	}
	fd = -errno;
	if (fd == -EMFILE || fd == -ENFILE)
		tdm_idle_close_crowd(c->tcp, -1);
	return fd;
}

int tdm_sock_connect(const struct tdm_conn *c, int fd)
{
	tdm_sock_prepare(c, fd);
	if (bind_own(c, fd) ||
	    (tdm_os.connect(fd, &c->addr.u.sa,
			    (socklen_t)tdm_addr_len(&c->addr)) &&
	     errno != EINPROGRESS && errno != EINTR))
		return errno;
	return 0;
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

int tdm_sock_result(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;

	if (tdm_os.poll(&p, 1, 0) <= 0)
		return -FI_EAGAIN;
	if (tdm_os.getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	return !err && connected_to_itself(fd) ? FI_ECONNREFUSED : err;
}

void tdm_sock_close(struct tdm_conn *c)
{
	c->blocked = 0;
	tdm_setup_forget_greeting(c);
	tdm_blocks_end(c);
	tdm_tls_free(c->tls);
	c->tls = NULL;
	if (c->io.fd < 0)
		return;
	tdm_loop_watch(c->tcp->a.loop, &c->io, 0);
	tdm_os.close(c->io.fd);
	c->io.fd = -1;
	c->tcp->open--;
}

ssize_t tdm_sock_recv(struct tdm_sock s, void *p, size_t room)
{
	return s.tls ? tdm_tls_recv(s.tls, p, room) :
		       tdm_os.recv(s.fd, p, room, MSG_DONTWAIT);
}

ssize_t tdm_sock_peek(struct tdm_sock s)
{
	uint8_t byte;

	return s.tls ? tdm_tls_peek(s.tls) :
		       tdm_os.recv(s.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
}

int tdm_sock_put(struct tdm_sock s, const void *p, size_t n)
{
	const char *from = p;
	int tries = PUT_TRIES;
	ssize_t sent;

	if (s.tls) {
		const struct iovec iov = { (void *)(uintptr_t)p, n };

		sent = tdm_tls_send(s.tls, &iov, 1);
		return sent == (ssize_t)n && !tdm_tls_pending(s.tls) ? 0 : -1;
	}
	/* A new connection has room: what is refused is refused for a moment. */
	while (n && tries--) {
		sent = tdm_os.send(s.fd, from, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent > 0) {
			from += sent;
			n -= (size_t)sent;
		} else if (!tdm_os_later(errno)) {
			return -1;
		}
	}
	return n ? -1 : 0;
}

void tdm_sock_tell(const struct tdm_conn *c)
{
	if (c->tls && *tdm_tls_why(c->tls))
		TDM_CONN_INFO(c, "%s", tdm_tls_why(c->tls));
}

void tdm_sock_drop(struct tdm_sock s)
{
	tdm_tls_free(s.tls);
	tdm_os.close(s.fd);
}

int tdm_sock_encrypt(struct tdm_conn *c, const struct tdm_auth_key *key)
{
	c->tls = tdm_tls_new(c->tcp->tls, c->io.fd, 0, key);
	c->layered = 1;
	return c->tls ? 0 : -FI_ENOMEM;
}

int tdm_sock_flush(int fd, const uint8_t *buf, uint32_t *from, uint32_t *to)
{
	while (*from < *to) {
		ssize_t n = tdm_os.send(fd, buf + *from, *to - *from,
					MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		*from += (uint32_t)n;
	}
	*from = 0;
	*to = 0;
	return 0;
}

int tdm_sock_events(struct tdm_sock s)
{
	return s.tls && tdm_tls_pending(s.tls) ?
		       TDM_LOOP_READ | TDM_LOOP_WRITE :
		       TDM_LOOP_READ;
}

int tdm_sock_shake(struct tdm_conn *c)
{
	int ret = tdm_tls_shake(c->tls);

	if (ret == -FI_ECONNREFUSED)
		tdm_sock_tell(c);
	else
		tdm_conn_watch(c, tdm_sock_events(tdm_sock_of(c)));
	return ret;
}
