/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See limit.h. Each limit is half a round trip, or one direction with an answer
 * at the end, of the same bytes that the subject carries.
 */
#include "bench/limit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum {
	TCP_SHORT_BYTES = 512,
	TCP_TOGETHER = 64,
	TCP_HEADER_BYTES = 16, /* what a record adds to a tagged message */
	COPY_CHUNK_BYTES = 64 * 1024,
	COPY_STRING_BYTES = 1024, /* least by a string move */
	OPEN_BYTES = 64 * 1024,	  /* of shared memory */
};

static int raw = -1; /* connected socket */

/* Whether string moves are fast; they copy into lines that the other core has. */
static int has_erms(void)
{
	static int has = -1;

#if defined(__x86_64__)
	unsigned a, b, c, d;

	if (has < 0)
		has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 9 & 1;
#else
	has = 0;
#endif
	return has;
}

static void copy_shared(void *dst, const void *src, size_t n)
{
#if defined(__x86_64__)
	if (n >= COPY_STRING_BYTES && has_erms()) {
		__asm__ volatile("rep movsb"
				 : "+D"(dst), "+S"(src), "+c"(n)
				 :
				 : "memory");
		return;
	}
#endif
	memcpy(dst, src, n);
}

/*
 * One message of @len bytes through @area: the sender copies in, chunk by
 * chunk, in the fastest way known, and counts in @line; the receiver copies out.
 */
static void copy_in(struct bench_ctl *c, int side, const unsigned char *src,
		    size_t len)
{
	volatile uint64_t *line = c->line[side];
	size_t at, n;

	for (at = 0; at < len; at += n) {
		n = len - at < COPY_CHUNK_BYTES ? len - at : COPY_CHUNK_BYTES;
		copy_shared(c->area[side] + at % BENCH_AREA_BYTES, src + at, n);
		__atomic_store_n(line, *line + 1, __ATOMIC_RELEASE);
	}
}

static void copy_out(struct bench_ctl *c, int side, unsigned char *dst,
		     size_t len, uint64_t *seen)
{
	volatile uint64_t *line = c->line[!side];
	size_t at, n;

	for (at = 0; at < len; at += n) {
		n = len - at < COPY_CHUNK_BYTES ? len - at : COPY_CHUNK_BYTES;
		++*seen;
		while (__atomic_load_n(line, __ATOMIC_ACQUIRE) < *seen)
			bench_relax();
		memcpy(dst + at, c->area[!side] + at % BENCH_AREA_BYTES, n);
	}
}

static void copies(struct bench_subject *s, size_t len, unsigned count)
{
	uint64_t seen = s->ctl->line[!s->side][0];

	bench_ctl_meet(s->ctl, s->side);
	while (count--) {
		if (!s->side)
			copy_in(s->ctl, 0, s->tx, len);
		copy_out(s->ctl, s->side, s->rx, len, &seen);
		if (s->side)
			copy_in(s->ctl, 1, s->tx, len);
	}
}

static inline void poll_again(void)
{
	bench_relax();
}

static inline void yield(void)
{
	sched_yield();
}

static void cma_read(struct bench_subject *s, size_t len)
{
	struct bench_ctl *c = s->ctl;
	struct iovec local = { .iov_base = s->rx, .iov_len = len };
	struct iovec remote = {
		.iov_base = (void *)(uintptr_t)c->addr[!s->side], .iov_len = len
	};

	if (process_vm_readv(c->pid[!s->side], &local, 1, &remote, 1, 0) !=
	    (ssize_t)len)
		bench_die("process_vm_readv", errno);
}

/*
 * A cache line goes there and back; the process that sees it first reads @len
 * bytes of the other, if any. @away is called while it is away.
 */
static inline __attribute__((always_inline)) void
lines(struct bench_subject *s, size_t len, unsigned count, void (*away)(void))
{
	volatile uint64_t *mine = s->ctl->line[s->side];
	volatile uint64_t *yours = s->ctl->line[!s->side];
	uint64_t n = *mine;

	while (count--) {
		n++;
		if (!s->side)
			__atomic_store_n(mine, n, __ATOMIC_RELEASE);
		while (__atomic_load_n(yours, __ATOMIC_ACQUIRE) < n)
			away();
		if (len)
			cma_read(s, len);
		if (s->side)
			__atomic_store_n(mine, n, __ATOMIC_RELEASE);
	}
}

static void put(const unsigned char *buf, size_t len)
{
	ssize_t n;

	for (; len; buf += n, len -= (size_t)n) {
		n = send(raw, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			bench_die("send", errno);
		n = n < 0 ? 0 : n;
	}
}

static void get(unsigned char *buf, size_t len)
{
	ssize_t n;

	for (; len; buf += n, len -= (size_t)n) {
		n = recv(raw, buf, len, MSG_DONTWAIT);
		if (!n || (n < 0 && errno != EAGAIN))
			bench_die("recv", errno);
		n = n < 0 ? 0 : n;
	}
}

static void tcps(struct bench_subject *s, size_t len, unsigned count)
{
	len += TCP_HEADER_BYTES;
	while (count--) {
		if (!s->side)
			put(s->tx, len);
		get(s->rx, len);
		if (s->side)
			put(s->tx, len);
	}
}

unsigned bench_limit_together(size_t len)
{
	return len <= TCP_SHORT_BYTES ? TCP_TOGETHER : 1;
}

static void tcp_stream(struct bench_subject *s, size_t len, unsigned count)
{
	unsigned i, together = bench_limit_together(len);

	len = (len + TCP_HEADER_BYTES) * together;
	count = (count + together - 1) / together;

	for (i = 0; i < count; i++) {
		if (!s->side)
			put(s->tx, len);
		else
			get(s->rx, len);
	}
	if (s->side)
		put(s->tx, 1);
	else
		get(s->rx, 1);
}

/* Bytes through the socket, with sleep in poll(2) between them. */
static void wakes(struct bench_subject *s, unsigned count)
{
	struct pollfd p = { .fd = raw, .events = POLLIN };

	while (count--) {
		if (!s->side)
			put(s->tx, 1);
		while (poll(&p, 1, -1) != 1)
			;
		get(s->rx, 1);
		if (s->side)
			put(s->tx, 1);
	}
}

/* A socket that listens at a port of loopback; *@port is in network order. */
static int listen_raw(in_port_t *port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(sin);

	if (bind(fd, (void *)&sin, len) || listen(fd, 1) ||
	    getsockname(fd, (void *)&sin, &len))
		bench_die("listen", errno);
	*port = sin.sin_port;
	return fd;
}

static void connect_raw(struct bench_ctl *c)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				   .sin_port = c->port };

	raw = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(raw, (void *)&sin, sizeof(sin)))
		bench_die("connect", errno);
}

/* An endpoint needs a socket to listen on, and shared memory. */
static void opens(unsigned count)
{
	in_port_t port;

	while (count--) {
		int fd = listen_raw(&port);
		int memory = memfd_create("bench", MFD_CLOEXEC);
		void *at;

		if (ftruncate(memory, OPEN_BYTES))
			bench_die("ftruncate", errno);
		at = mmap(NULL, OPEN_BYTES, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_POPULATE, memory, 0);
		if (at == MAP_FAILED)
			bench_die("mmap", errno);
		munmap(at, OPEN_BYTES);
		close(memory);
		close(fd);
	}
}

/* A new connection each, and a byte there and back. */
static void connections(struct bench_subject *s, unsigned count)
{
	int kept = raw, listener = -1;

	if (!s->side)
		listener = listen_raw(&s->ctl->port);
	bench_ctl_meet(s->ctl, s->side);
	while (count--) {
		if (s->side)
			connect_raw(s->ctl);
		else
			raw = accept(listener, NULL, NULL);
		if (s->side)
			put(s->tx, 1);
		get(s->rx, 1);
		if (!s->side)
			put(s->tx, 1);
		close(raw);
	}
	if (!s->side)
		close(listener);
	raw = kept;
}

static void calls(unsigned count)
{
	while (count--)
		syscall(SYS_getppid);
}

void bench_limit_batch(struct bench_subject *s, const struct bench_order *o)
{
	switch (o->limit) {
	case BENCH_LIMIT_LINE:
		lines(s, 0, o->lcount, poll_again);
		break;
	case BENCH_LIMIT_COPY:
		copies(s, o->bytes, o->lcount);
		break;
	case BENCH_LIMIT_CMA:
		lines(s, o->bytes, o->lcount, poll_again);
		break;
	case BENCH_LIMIT_TCP:
		tcps(s, o->bytes, o->lcount);
		break;
	case BENCH_LIMIT_TCP_STREAM:
		tcp_stream(s, o->bytes, o->lcount);
		break;
	case BENCH_LIMIT_WAKE:
		wakes(s, o->lcount);
		break;
	case BENCH_LIMIT_YIELD:
		lines(s, 0, o->lcount, yield);
		break;
	case BENCH_LIMIT_OPEN:
		opens(o->lcount);
		break;
	case BENCH_LIMIT_CONNECT:
		connections(s, o->lcount);
		break;
	case BENCH_LIMIT_CALL:
		calls(o->lcount);
		break;
	default:
		break;
	}
}

void bench_limit_open(struct bench_subject *s)
{
	int one = 1, listener = -1;

	s->ctl->pid[s->side] = (int32_t)getpid();
	if (!s->side)
		listener = listen_raw(&s->ctl->port);
	bench_ctl_meet(s->ctl, s->side);
	if (s->side) {
		connect_raw(s->ctl);
	} else {
		raw = accept(listener, NULL, NULL);
		close(listener);
	}
	setsockopt(raw, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* The limit is the machine's, not that of a control which paces. */
	setsockopt(raw, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
	bench_ctl_meet(s->ctl, s->side);
}
