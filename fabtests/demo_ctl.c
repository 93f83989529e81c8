/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control channel of the demo: frames over TCP, and what they mean. How
 * the connections come about is in demo_boot.c.
 *
 * A rank gives its part to rank 0 (GIVE); rank 0 sends all parts to all
 * (ALL). BEAT frames say how far a rank, or the whole job, has come. FAIL
 * ends the job. Frames are parsed as soon as they arrive, in any order.
 */
#include "fabtests/demo_ctl.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabtests/demo_boot.h"
#include "fabtests/demo_util.h"

enum { FRAME_GIVE = 1, FRAME_ALL, FRAME_BEAT, FRAME_FAIL };

/* A frame longer than this is not one of ours. */
enum { FRAME_MAX_BYTES = 64 << 20 };

struct frame {
	uint32_t type;
	uint32_t len; /* bytes that follow */
};

/* One connection; rank 0 has one per rank, the others one to rank 0. */
struct link {
	int fd;	   /* -1: none */
	int given; /* a part (or all parts) has arrived, not yet consumed */
	uint8_t *part;
	size_t partlen;
	uint8_t *buf; /* bytes received, not yet parsed */
	size_t len;
	size_t room;
	struct demo_beat beat;
};

struct demo_ctl {
	int rank;
	int n;
	size_t partlen; /* of the exchange under way */
	uint8_t *mine;
	struct link *links; /* [n] at rank 0, [1] elsewhere */
	int nlinks;
	char error[256];
};

static int broken(struct demo_ctl *ctl, int from, const char *what)
{
	if (!ctl->error[0])
		snprintf(ctl->error, sizeof(ctl->error), "rank %d %s", from,
			 what);
	return -1;
}

/* The rank at the other end of @link. */
static int link_rank(const struct demo_ctl *ctl, const struct link *link)
{
	return ctl->rank ? 0 : (int)(link - ctl->links);
}

static int send_all(int fd, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	ssize_t ret;

	while (len) {
		ret = send(fd, bytes, len, MSG_NOSIGNAL);
		if (ret > 0) {
			bytes += ret;
			len -= (size_t)ret;
		} else if (errno == EAGAIN) {
			poll(&p, 1, 1000);
		} else if (errno != EINTR) {
			return -1;
		}
	}
	return 0;
}

static int send_frame(struct demo_ctl *ctl, struct link *link, uint32_t type,
		      const void *data, size_t len)
{
	struct frame frame = { type, (uint32_t)len };

	if (link->fd < 0)
		return 0;
	if (send_all(link->fd, &frame, sizeof(frame)) ||
	    send_all(link->fd, data, len))
		return broken(ctl, link_rank(ctl, link), "is gone");
	return 0;
}

static void send_fail(struct demo_ctl *ctl, const char *why)
{
	int i;

	for (i = 0; i < ctl->nlinks; i++)
		send_frame(ctl, &ctl->links[i], FRAME_FAIL, why, strlen(why));
}

static int take_fail(struct demo_ctl *ctl, struct link *link, const void *text,
		     size_t len)
{
	char what[200];

	snprintf(what, sizeof(what), "failed: %.*s",
		 (int)(len < 160 ? len : 160), (const char *)text);
	return broken(ctl, link_rank(ctl, link), what);
}

static int take_frame(struct demo_ctl *ctl, struct link *link,
		      const struct frame *frame, const uint8_t *data)
{
	switch (frame->type) {
	case FRAME_GIVE:
	case FRAME_ALL:
		if (link->given)
			break;
		free(link->part);
		link->part = demo_alloc(frame->len);
		memcpy(link->part, data, frame->len);
		link->partlen = frame->len;
		link->given = 1;
		return 0;
	case FRAME_BEAT:
		if (frame->len != sizeof(link->beat))
			break;
		memcpy(&link->beat, data, sizeof(link->beat));
		return 0;
	case FRAME_FAIL:
		return take_fail(ctl, link, data, frame->len);
	default:
		break;
	}
	return broken(ctl, link_rank(ctl, link), "sent nonsense");
}

/* All complete frames that wait in link->buf. */
static int parse(struct demo_ctl *ctl, struct link *link)
{
	struct frame frame;
	size_t done = 0;
	int ret = 0;

	while (!ret && link->len - done >= sizeof(frame)) {
		memcpy(&frame, link->buf + done, sizeof(frame));
		if (frame.len > FRAME_MAX_BYTES)
			return broken(ctl, link_rank(ctl, link),
				      "sent nonsense");
		if (link->len - done - sizeof(frame) < frame.len)
			break;
		done += sizeof(frame);
		ret = take_frame(ctl, link, &frame, link->buf + done);
		done += frame.len;
	}
	memmove(link->buf, link->buf + done, link->len - done);
	link->len -= done;
	return ret;
}

static int read_link(struct demo_ctl *ctl, struct link *link)
{
	ssize_t ret;

	for (;;) {
		if (link->room - link->len < 4096) {
			link->room = 2 * link->room + 65536;
			link->buf = realloc(link->buf, link->room);
			if (!link->buf)
				return broken(ctl, ctl->rank, "has no memory");
		}
		ret = recv(link->fd, link->buf + link->len,
			   link->room - link->len, MSG_DONTWAIT);
		if (ret < 0 && errno == EINTR)
			continue;
		if (ret < 0 && errno == EAGAIN)
			return 0;
		if (ret <= 0)
			break;
		link->len += (size_t)ret;
		if (parse(ctl, link))
			return -1;
	}
	close(link->fd);
	link->fd = -1;
	/* Rank 0 may go as soon as it has sent the last result. */
	if (link->given)
		return 0;
	return broken(ctl, link_rank(ctl, link), "ended early");
}

static int read_links(struct demo_ctl *ctl)
{
	int i;

	if (ctl->error[0])
		return -1;
	for (i = 0; i < ctl->nlinks; i++)
		if (ctl->links[i].fd >= 0 && read_link(ctl, &ctl->links[i]))
			return -1;
	return 0;
}

int demo_ctl_give(struct demo_ctl *ctl, const void *data, size_t len)
{
	ctl->partlen = len;
	if (ctl->rank)
		return send_frame(ctl, &ctl->links[0], FRAME_GIVE, data, len);
	free(ctl->mine);
	ctl->mine = demo_alloc(len);
	if (len)
		memcpy(ctl->mine, data, len);
	return 0;
}

/* Rank 0: all parts are here; put them together and send them. */
static int send_parts(struct demo_ctl *ctl, uint8_t *out)
{
	size_t len = ctl->partlen;
	int i;

	if (len)
		memcpy(out, ctl->mine, len);
	for (i = 1; i < ctl->n; i++) {
		if (ctl->links[i].partlen != len)
			return broken(ctl, i, "gave a part of another size");
		if (len)
			memcpy(out + (size_t)i * len, ctl->links[i].part, len);
		ctl->links[i].given = 0;
	}
	for (i = 1; i < ctl->n; i++)
		if (send_frame(ctl, &ctl->links[i], FRAME_ALL, out,
			       len * (size_t)ctl->n))
			return -1;
	return 1;
}

/* Has something to consume arrived on @link? 1, 0, or -1 when it never will. */
static int has_given(struct demo_ctl *ctl, const struct link *link)
{
	if (link->given)
		return 1;
	if (link->fd >= 0)
		return 0;
	return broken(ctl, link_rank(ctl, link), "ended early");
}

int demo_ctl_gathered(struct demo_ctl *ctl, void *out)
{
	struct link *up = &ctl->links[0];
	int i, ret;

	if (read_links(ctl))
		return -1;
	if (!ctl->rank) {
		for (i = 1; i < ctl->n; i++)
			if ((ret = has_given(ctl, &ctl->links[i])) != 1)
				return ret;
		return send_parts(ctl, out);
	}
	ret = has_given(ctl, up);
	if (ret != 1)
		return ret;
	if (up->partlen != ctl->partlen * (size_t)ctl->n)
		return broken(ctl, 0, "sent a result of another size");
	if (up->partlen)
		memcpy(out, up->part, up->partlen);
	up->given = 0;
	return 1;
}

void demo_ctl_sleep(struct demo_ctl *ctl, int timeout_ms)
{
	struct pollfd *p = demo_alloc((size_t)ctl->nlinks * sizeof(*p));
	int i;

	for (i = 0; i < ctl->nlinks; i++) {
		p[i].fd = ctl->links[i].fd;
		p[i].events = POLLIN;
	}
	poll(p, (nfds_t)ctl->nlinks, timeout_ms);
	free(p);
}

int demo_ctl_beat(struct demo_ctl *ctl, const struct demo_beat *mine,
		  struct demo_beat *all)
{
	int i;

	if (read_links(ctl))
		return -1;
	if (ctl->rank) {
		*all = ctl->links[0].beat;
		return send_frame(ctl, &ctl->links[0], FRAME_BEAT, mine,
				  sizeof(*mine));
	}
	*all = *mine;
	for (i = 1; i < ctl->n; i++) {
		all->msgs += ctl->links[i].beat.msgs;
		all->bytes += ctl->links[i].beat.bytes;
		all->steps += ctl->links[i].beat.steps;
	}
	for (i = 1; i < ctl->n; i++)
		if (send_frame(ctl, &ctl->links[i], FRAME_BEAT, all,
			       sizeof(*all)))
			return -1;
	return 0;
}

void demo_ctl_fail(struct demo_ctl *ctl, const char *why)
{
	/* Other ranks know an error that they reported; rank 0 passes it on. */
	if (!ctl->rank || !ctl->error[0])
		send_fail(ctl, why);
}

const char *demo_ctl_error(const struct demo_ctl *ctl)
{
	return ctl->error;
}

struct demo_ctl *demo_ctl_open(int rank, int n, const char *where,
			       int timeout_ms)
{
	struct demo_ctl *ctl = demo_alloc(sizeof(*ctl));
	int i, *fds, ret;

	ctl->rank = rank;
	ctl->n = n;
	ctl->nlinks = rank ? 1 : n;
	ctl->links = demo_alloc((size_t)ctl->nlinks * sizeof(*ctl->links));
	fds = demo_alloc((size_t)n * sizeof(*fds));
	for (i = 0; i < n; i++)
		fds[i] = -1;
	ret = rank ? demo_boot_join(rank, n, where, timeout_ms, fds) :
		     demo_boot_host(n, where, timeout_ms, fds);
	for (i = 0; i < ctl->nlinks; i++)
		ctl->links[i].fd = fds[i];
	free(fds);
	if (!ret)
		return ctl;
	demo_ctl_close(ctl);
	return NULL;
}

void demo_ctl_close(struct demo_ctl *ctl)
{
	int i;

	if (!ctl)
		return;
	for (i = 0; i < ctl->nlinks; i++) {
		if (ctl->links[i].fd >= 0)
			close(ctl->links[i].fd);
		free(ctl->links[i].part);
		free(ctl->links[i].buf);
	}
	free(ctl->links);
	free(ctl->mine);
	free(ctl);
}
