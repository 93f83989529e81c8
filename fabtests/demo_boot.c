/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the ranks of the demo find each other. A connection counts once it has
 * sent a HELLO of this job; anything else that connects is closed.
 */
#include "fabtests/demo_boot.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "fabtests/demo_util.h"

struct hello {
	uint64_t magic;
	uint32_t rank;
	uint32_t nranks;
};

static const uint64_t hello_magic = 0x316f6d65646d6474u; /* "tdmdemo1" */

static int complain(const char *where, const char *what, int err)
{
	fprintf(stderr, "tandem_demo: control channel %s: %s%s%s\n", where,
		what, err ? ": " : "", err ? strerror(err) : "");
	return -1;
}

static struct addrinfo *resolve(const char *where, int flags)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = flags | AI_NUMERICSERV };
	struct addrinfo *list = NULL;
	char node[256];
	const char *colon = strrchr(where, ':');
	size_t len = colon ? (size_t)(colon - where) : 0;
	int ret;

	if (!colon || len >= sizeof(node)) {
		complain(where, "is not ADDRESS:PORT", 0);
		return NULL;
	}
	memcpy(node, where, len);
	node[len] = 0;
	if (len > 2 && node[0] == '[' && node[len - 1] == ']') {
		node[len - 1] = 0;
		memmove(node, node + 1, len - 1);
	}
	ret = getaddrinfo(node[0] ? node : NULL, colon + 1, &hints, &list);
	if (ret)
		complain(where, gai_strerror(ret), 0);
	return list;
}

static void set_up(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static int listen_at(const char *where)
{
	struct addrinfo *ai = resolve(where, AI_PASSIVE);
	int fd, on = 1;

	if (!ai)
		return -1;
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 128)) {
			complain(where, "listen", errno);
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(ai);
	return fd;
}

/* The rank that @fd says it is, or -1. A silent caller gets one second. */
static int read_hello(int fd, int n)
{
	struct timeval tv = { .tv_sec = 1 };
	struct hello h;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	if (recv(fd, &h, sizeof(h), MSG_WAITALL) != (ssize_t)sizeof(h))
		return -1;
	if (h.magic != hello_magic || h.nranks != (uint32_t)n || !h.rank ||
	    h.rank >= (uint32_t)n)
		return -1;
	return (int)h.rank;
}

static void missing(int n, const int *fds)
{
	int i;

	fprintf(stderr, "tandem_demo: these ranks did not come:");
	for (i = 1; i < n; i++)
		if (fds[i] < 0)
			fprintf(stderr, " %d", i);
	fprintf(stderr, "\n");
}

int demo_boot_host(int n, const char *where, int timeout_ms, int *fds)
{
	uint64_t end = demo_now_ns() + (uint64_t)timeout_ms * 1000000u;
	struct pollfd p = { .events = POLLIN };
	int fd, rank, left = n - 1, ret = 0;

	p.fd = listen_at(where);
	if (p.fd < 0)
		return -1;
	while (left && demo_now_ns() < end) {
		if (poll(&p, 1, 100) <= 0)
			continue;
		fd = accept4(p.fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		rank = read_hello(fd, n);
		if (rank < 0 || fds[rank] >= 0) {
			close(fd);
			continue;
		}
		set_up(fd);
		fds[rank] = fd;
		left--;
	}
	if (left) {
		missing(n, fds);
		ret = -1;
	}
	close(p.fd);
	return ret;
}

/* One attempt. Returns the connected socket or -1 with errno set. */
static int try_connect(const struct addrinfo *ai)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0 || !connect(fd, ai->ai_addr, ai->ai_addrlen))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

int demo_boot_join(int rank, int n, const char *where, int timeout_ms, int *fds)
{
	uint64_t end = demo_now_ns() + (uint64_t)timeout_ms * 1000000u;
	struct hello h = { hello_magic, (uint32_t)rank, (uint32_t)n };
	struct addrinfo *ai = resolve(where, 0);
	int err;

	if (!ai)
		return -1;
	for (;;) {
		fds[0] = try_connect(ai);
		err = errno;
		if (fds[0] >= 0 || demo_now_ns() > end)
			break;
		poll(NULL, 0, 50);
	}
	freeaddrinfo(ai);
	if (fds[0] < 0)
		return complain(where, "connect", err);
	if (send(fds[0], &h, sizeof(h), MSG_NOSIGNAL) != (ssize_t)sizeof(h))
		return complain(where, "send", errno);
	set_up(fds[0]);
	return 0;
}
