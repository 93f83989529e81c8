/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The segment and the socket of a domain's statistics.
 *
 * Nothing is counted for them: a publication reads what the transports have
 * anyway. It is made when a reader connects, and besides from time to time in a
 * pass of progress, so that a process which computes shows its last state. The
 * timer for that does not wake sleepers: the socket does.
 *
 * Invariants:
 *  1. Publications that no reader asked for take a thousandth of the time at
 *     most.
 *  2. Only a process of the same user id gets the descriptor, and none can write
 *     the segment.
 *  3. A failure here costs the statistics and nothing else.
 *
 * Lock: held in all of this file but tdm_stat_end().
 * Spec: doc/PROTOCOL-stat.md.
 */
#include "tcp/stat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "config.h"
#include "tcp/domain.h"
#include "tcp/stat_format.h"

enum {
	PERIOD_LEAST_MS = 100,
	PERIOD_MOST_MS = 60000,
	BACKLOG = 16,
	/* A process that may have fewer descriptors has no statistics. */
	LEAST_DESCRIPTORS = 128,
	ACCEPTS = 16, /* greatest number per event of the listener */
	/* The pause after a publication is so many times as long as it. */
	PAUSES = 1000,
};

/* ---- segment ------------------------------------------------------------- */

static struct tdm_stat_head *head_of(const struct tdm_stat *st)
{
	return (struct tdm_stat_head *)st->seg.base;
}

/* Make a segment of @bytes in place of the present one. Errors: -errno. */
static int make_segment(struct tdm_stat *st, size_t bytes)
{
	struct tdm_stat_head *h;
	struct tdm_sealed seg;
	int ret = tdm_sealed_create(&seg, "tandem-stat", bytes, 1);

	if (ret)
		return ret;
	h = (struct tdm_stat_head *)seg.base;
	h->version = TDM_STAT_VERSION;
	h->record_bytes = TDM_STAT_RECORD_BYTES;
	h->bytes = bytes;
	h->started_ns = st->started_ns;
	memcpy(h->incarnation, st->incarnation, sizeof(h->incarnation));
	h->pid = (uint32_t)getpid();
	snprintf(h->release, sizeof(h->release), "%s", PACKAGE_VERSION);
	h->magic = TDM_STAT_MAGIC;
	tdm_sealed_fini(&st->seg);
	st->seg = seg;
	return 0;
}

/* Make room for all records, if there is memory for them. */
static void fit(struct tdm_stat *st)
{
	size_t need =
		(tdm_stat_records(st->domain) + 1) * TDM_STAT_RECORD_BYTES;
	size_t bytes = st->seg.bytes;

	while (bytes < need && bytes < TDM_STAT_MOST_BYTES)
		bytes *= 2;
	if (bytes > st->seg.bytes)
		(void)!make_segment(st, bytes);
}

/* Returns how long it took, ns. */
static uint64_t publish(struct tdm_stat *st)
{
	uint64_t began = tdm_os.now_ns();
	struct tdm_stat_head *h;
	uint64_t seq;

	fit(st);
	h = head_of(st);
	seq = tdm_a64_load_relaxed(&h->seq);
	tdm_a64_store_relaxed(&h->seq, seq + 1);
	tdm_fence_release();
	h->published_ns = began;
	tdm_stat_fill(st->domain, h);
	tdm_a64_store_release(&h->seq, seq + 2);
	return tdm_os.now_ns() - began;
}

/* ---- socket -------------------------------------------------------------- */

/* Send the descriptor of the segment on @fd; a reader that is gone gets none. */
static void hand_over(const struct tdm_stat *st, int fd)
{
	struct tdm_stat_answer answer = { TDM_STAT_MAGIC, TDM_STAT_VERSION, 0 };
	const int seg = st->seg.fd_plus1 - 1;
	struct iovec iov = { .iov_base = &answer, .iov_len = sizeof(answer) };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} room;
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = room.bytes,
			     .msg_controllen = sizeof(room.bytes) };
	struct cmsghdr *c;

	memset(&room, 0, sizeof(room));
	c = CMSG_FIRSTHDR(&mh);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &seg, sizeof(seg));
	(void)!tdm_os.sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int same_user(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !tdm_os.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
	       cred.uid == geteuid();
}

static void listener_ready(struct tdm_loop_io *io, int events)
{
	struct tdm_stat *st = tdm_container_of(io, struct tdm_stat, listener);
	int published = 0, i, fd;

	(void)events;
	for (i = 0; i < ACCEPTS; i++) {
		fd = tdm_os.accept4(io->fd, NULL, NULL,
				    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0) {
			/* Out of descriptors: until the timer, nobody asks. */
			if (errno != EAGAIN)
				tdm_loop_watch(st->domain->loop, io, 0);
			return;
		}
		if (same_user(fd)) {
			if (!published)
				publish(st);
			published = 1;
			hand_over(st, fd);
		}
		tdm_os.close(fd);
	}
}

static void timer_fired(struct tdm_loop_timer *timer)
{
	struct tdm_stat *st = tdm_container_of(timer, struct tdm_stat, timer);
	uint64_t ms = publish(st) * PAUSES / 1000000;

	/* Without memory, publications are made on demand only. */
	(void)!tdm_loop_timer_arm(st->domain->loop, timer,
				  (unsigned)tdm_clamp(ms, PERIOD_LEAST_MS,
						      PERIOD_MOST_MS));
	if (!st->listener.events)
		(void)!tdm_loop_watch(st->domain->loop, &st->listener,
				      TDM_LOOP_READ);
}

/* Listen on "\0tandem-stat/" and the incarnation in hex. Errors: -errno. */
static int listen_on(struct tdm_stat *st)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char *p = un.sun_path + 1;
	size_t room = sizeof(un.sun_path) - 1, i;
	int n = snprintf(p, room, "tandem-stat/");

	for (i = 0; i < sizeof(st->incarnation); i++)
		n += snprintf(p + n, room - (size_t)n, "%02x",
			      st->incarnation[i]);
	st->listener.fd = tdm_os.socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (st->listener.fd < 0)
		return tdm_os_failed("socket AF_UNIX");
	if (tdm_os.bind(st->listener.fd, (struct sockaddr *)&un,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				    (size_t)n)) ||
	    tdm_os.listen(st->listener.fd, BACKLOG))
		return tdm_os_failed("listen AF_UNIX");
	return tdm_loop_watch(st->domain->loop, &st->listener, TDM_LOOP_READ);
}

/* ---- begin and end ------------------------------------------------------- */

static void stat_free(struct tdm_stat *st)
{
	struct tdm_loop *loop = st->domain->loop;

	tdm_loop_timer_disarm(&st->timer);
	if (st->listener.fd >= 0) {
		tdm_loop_watch(loop, &st->listener, 0);
		tdm_os.close(st->listener.fd);
	}
	tdm_sealed_fini(&st->seg);
	free(st);
}

static void begin(struct tdm_domain *d)
{
	struct tdm_stat *st;
	int ret;

	if (tdm_os_fd_limit() < LEAST_DESCRIPTORS)
		return;
	st = (struct tdm_stat *)calloc(1, sizeof(*st));
	if (!st)
		return;
	st->domain = d;
	st->started_ns = tdm_os.now_ns();
	st->listener.fd = -1;
	st->listener.lazy = 1;
	st->listener.ready = listener_ready;
	st->timer.lazy = 1;
	st->timer.fired = timer_fired;
	ret = tdm_os_random(st->incarnation, sizeof(st->incarnation));
	if (!ret)
		ret = make_segment(st, TDM_STAT_LEAST_BYTES);
	if (!ret)
		ret = listen_on(st);
	if (!ret)
		ret = tdm_loop_timer_arm(d->loop, &st->timer, PERIOD_LEAST_MS);
	if (ret) {
		TDM_INFO(DOMAIN, "no statistics of this domain: %s",
			 strerror(-ret));
		stat_free(st);
		return;
	}
	d->stat = st;
}

void tdm_stat_changed(struct tdm_domain *d)
{
	tdm_assert_held(&d->lock);
	if (!d->stat && tdm_env.stat)
		begin(d);
	if (d->stat)
		publish(d->stat);
}

void tdm_stat_end(struct tdm_domain *d)
{
	if (d->stat)
		stat_free(d->stat);
	d->stat = NULL;
}
