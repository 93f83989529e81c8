/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See perf_control.h.
 *
 * Invariant: bytes of the other side are used as a line only when its end has
 * come, and a line is shorter than PERF_LINE_BYTES.
 * No lock: one thread.
 */
#include "config.h"

#include "tools/perf_control.h"

#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabtests/demo_util.h"

enum { NAP_MS = 1, LONG_NAP_MS = 100 };

static const char magic[] = "tandem-perf";

int perf_control_fail(struct perf_control *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->error, sizeof(c->error), format, args);
	va_end(args);
	return -1;
}

/* ---- lines --------------------------------------------------------------- */

int perf_control_say(struct perf_control *c, const char *format, ...)
{
	char line[PERF_LINE_BYTES];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(line) - 1)
		return perf_control_fail(c, "a line is too long");
	line[n++] = '\n';
	if (send(c->fd, line, (size_t)n, MSG_NOSIGNAL) == (ssize_t)n)
		return 0;
	return perf_control_fail(c, "%s has ended (%s)", c->peer,
				 strerror(errno));
}

/* Take the first line of what was received. Returns 1, 0: none is there. */
static int take(struct perf_control *c, char *line)
{
	char *end = memchr(c->in, '\n', c->have);
	size_t len;

	if (!end)
		return 0;
	len = (size_t)(end - c->in);
	memcpy(line, c->in, len);
	line[len] = 0;
	c->have -= len + 1;
	memmove(c->in, end + 1, c->have);
	return 1;
}

/*
 * Receive what there is. Returns 0, or -1: nothing more will come. Lines that are
 * there already count all the same.
 */
static int fill(struct perf_control *c)
{
	ssize_t n;

	if (c->have == sizeof(c->in))
		return memchr(c->in, '\n', c->have) ?
			       0 :
			       perf_control_fail(c,
						 "%s sends no lines: it is not "
						 "%s",
						 c->peer, magic);
	n = recv(c->fd, c->in + c->have, sizeof(c->in) - c->have, MSG_DONTWAIT);
	if (n > 0) {
		c->have += (size_t)n;
		return 0;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	c->closed = !n;
	return perf_control_fail(c, "%s has ended (%s)", c->peer,
				 n ? strerror(errno) : "connection closed");
}

int perf_control_look(struct perf_control *c, char *line)
{
	int ret = fill(c);

	if (!take(c, line))
		return ret;
	if (!strncmp(line, "error ", 6)) {
		c->told = 1;
		return perf_control_fail(c, "%s: %s", c->peer, line + 6);
	}
	return 1;
}

int perf_control_check(struct perf_control *c)
{
	char line[PERF_LINE_BYTES];
	int ret = fill(c);

	if (c->have < 6 || memcmp(c->in, "error ", 6))
		return ret;
	return perf_control_look(c, line);
}

int perf_control_hear(struct perf_control *c, char *line, int patient)
{
	uint64_t end = demo_now_ns() + c->timeout_s * UINT64_C(1000000000);
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	int ret;

	while (!(ret = perf_control_look(c, line))) {
		if (!patient && demo_now_ns() > end)
			return perf_control_fail(c,
						 "%s has not answered for %u s",
						 c->peer, c->timeout_s);
		if (c->progress && c->progress(c->arg))
			return -1;
		poll(&p, 1, c->progress ? NAP_MS : LONG_NAP_MS);
	}
	return ret < 0 ? -1 : 0;
}

/* ---- greeting ------------------------------------------------------------ */

static int greet(struct perf_control *c)
{
	char line[PERF_LINE_BYTES], name[16] = "", release[32] = "";
	unsigned protocol = 0;
	int on = 1;

	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	c->have = 0;
	c->closed = c->told = 0;
	if (perf_control_say(c, "%s %d %s", magic, PERF_PROTOCOL,
			     PACKAGE_VERSION) ||
	    perf_control_hear(c, line, 0))
		return -1;
	if (sscanf(line, "%15s %u %31s", name, &protocol, release) != 3 ||
	    strcmp(name, magic))
		return perf_control_fail(c, "%s is not %s", c->peer, magic);
	if (protocol != PERF_PROTOCOL)
		return perf_control_fail(
			c,
			"%s is release %s with protocol %u, this is release %s "
			"with protocol %d: install the same release on both "
			"sides",
			c->peer, release, protocol, PACKAGE_VERSION,
			PERF_PROTOCOL);
	return 0;
}

static void print_address(const struct sockaddr_storage *at, socklen_t len,
			  char *text, size_t bytes)
{
	char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];

	*text = 0;
	if (!getnameinfo((const void *)at, len, host, sizeof(host), NULL, 0,
			 NI_NUMERICHOST))
		snprintf(text, bytes, "%s",
			 strncmp(host, "::ffff:", 7) ? host : host + 7);
}

void perf_control_address(const struct perf_control *c, char *text,
			  size_t bytes)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	*text = 0;
	if (!getsockname(c->fd, (void *)&at, &len))
		print_address(&at, len, text, bytes);
}

/* ---- connections --------------------------------------------------------- */

static int listen_in(int family, const char *port)
{
	struct addrinfo hints = { .ai_family = family,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE };
	struct addrinfo *at = NULL;
	int fd, on = 1, off = 0, err;

	if (getaddrinfo(NULL, port, &hints, &at)) {
		errno = EINVAL;
		return -1;
	}
	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off,
				   sizeof(off));
		if (bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, 8)) {
			err = errno;
			close(fd);
			errno = err;
			fd = -1;
		}
	}
	freeaddrinfo(at);
	return fd;
}

int perf_control_listen(struct perf_control *c, const char *port,
			unsigned *number)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	int fd = listen_in(AF_INET6, port);

	/* A host without IPv6. */
	if (fd < 0 && errno != EADDRINUSE)
		fd = listen_in(AF_INET, port);
	if (fd < 0)
		return perf_control_fail(c, "cannot listen at port %s: %s",
					 port, strerror(errno));
	getsockname(fd, (void *)&at, &len);
	*number = ntohs(at.ss_family == AF_INET6 ?
				((struct sockaddr_in6 *)&at)->sin6_port :
				((struct sockaddr_in *)&at)->sin_port);
	return fd;
}

int perf_control_accept(struct perf_control *c, int listener)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	c->fd = accept4(listener, (void *)&at, &len, SOCK_CLOEXEC);
	if (c->fd < 0)
		return perf_control_fail(c, "accept: %s", strerror(errno));
	print_address(&at, len, c->peer, sizeof(c->peer));
	return greet(c);
}

/* Connect @fd within the timeout. Returns 0, or -1 with errno set. */
static int connect_in_time(const struct perf_control *c, int fd,
			   const struct addrinfo *at)
{
	struct timeval limit = { .tv_sec = c->timeout_s };

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!connect(fd, at->ai_addr, at->ai_addrlen))
		return 0;
	if (errno == EINPROGRESS)
		errno = ETIMEDOUT;
	return -1;
}

int perf_control_connect(struct perf_control *c, const char *host,
			 const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL, *at;
	int err = EADDRNOTAVAIL;
	int ret = getaddrinfo(host, port, &hints, &list);

	snprintf(c->peer, sizeof(c->peer), "%.100s port %.20s", host, port);
	if (ret)
		return perf_control_fail(c, "%s: %s", c->peer,
					 gai_strerror(ret));
	for (at = list; at && c->fd < 0; at = at->ai_next) {
		c->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (c->fd >= 0 && !connect_in_time(c, c->fd, at))
			break;
		err = errno;
		perf_control_close(c);
	}
	freeaddrinfo(list);
	if (c->fd < 0)
		return perf_control_fail(c,
					 "%s: %s: start %s there first, "
					 "without a host",
					 c->peer, strerror(err), magic);
	return greet(c);
}

void perf_control_close(struct perf_control *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
