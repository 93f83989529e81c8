/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets with descriptors over the attach socket, which is the lifeline once
 * the pair is up: when it closes, the peer is gone; and larger rings and bounce
 * areas are sent over it.
 *
 * Invariants:
 *  1. No call here blocks. Every received descriptor is kept or closed,
 *     whatever came with it.
 *  2. Received memory is validated before it is mapped, and used only after a
 *     record in the ring refers to it.
 * Locking: domain lock held. Spec: unix(7), doc/PROTOCOL-shm.md "Lifeline".
 */
#include "shm/lifeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/os.h"
#include "shm/ep.h"
#include "shm/left.h"

enum {
	LIFE_PACKETS = 8,	     /* packets read per event */
	LIFE_GROWN_BYTES = 32 << 20, /* of all larger rings of an endpoint */
	/* the same, when another ring of a stream is made */
	LIFE_STREAM_BYTES = 24 << 20,
};

/* ---- watches ------------------------------------------------------------- */

int tdm_shm_watch_add(struct tdm_shm_ep *ep, struct tdm_shm_watch *w)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP };

	int ret;

	ev.data.ptr = w;
	if (tdm_os.epoll_ctl(ep->ctl_fd, EPOLL_CTL_ADD, w->fd, &ev))
		return -errno;
	tdm_list_append(&ep->watches, &w->node);
	ret = tdm_shm_queues_watch(ep, w->fd);
	if (ret)
		tdm_shm_watch_del(ep, w);
	return ret;
}

void tdm_shm_watch_del(struct tdm_shm_ep *ep, struct tdm_shm_watch *w)
{
	struct epoll_event ev = { 0 };

	if (!w->node.next || !tdm_list_linked(&w->node))
		return;
	tdm_list_del(&w->node);
	tdm_shm_queues_unwatch(ep, w->fd);
	(void)tdm_os.epoll_ctl(ep->ctl_fd, EPOLL_CTL_DEL, w->fd, &ev);
}

void tdm_shm_watch_close(struct tdm_shm_ep *ep, struct tdm_shm_watch *w)
{
	if (w->fd < 0)
		return;
	/* Closing is not enough: a forked child may hold the file open. */
	tdm_shm_watch_del(ep, w);
	tdm_os.close(w->fd);
	w->fd = -1;
}

/* ---- packets ------------------------------------------------------------- */

union fd_room {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(TDM_SHM_FDS_MOST * sizeof(int))];
};

int tdm_shm_packet_send(int fd, const void *buf, size_t len, const int *fds,
			int nfds)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	union fd_room room;
	ssize_t n;

	if (nfds) {
		struct cmsghdr *c;

		memset(&room, 0, sizeof(room));
		mh.msg_control = room.bytes;
		mh.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)nfds * sizeof(int));
	}
	do {
		n = tdm_os.sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EWOULDBLOCK || errno == ENOBUFS ? -FI_EAGAIN :
								  -errno;
	return 0;
}

int tdm_shm_msg_send(int fd, enum tdm_shm_msg_type type, uint32_t arg,
		     int pass_fd)
{
	struct tdm_shm_msg_head h = {
		.magic = TDM_SHM_MAGIC,
		.type = (uint16_t)type,
		.bytes = sizeof(h),
		.arg = arg,
	};

	return tdm_shm_packet_send(fd, &h, sizeof(h), &pass_fd, pass_fd >= 0);
}

/* Move the descriptors of @mh to fds[]; close those beyond its end. */
static int take_fds(struct msghdr *mh, int *fds)
{
	struct cmsghdr *c;
	int n = 0;

	for (c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t count, i;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < TDM_SHM_FDS_MOST)
				fds[n++] = fd;
			else
				tdm_os.close(fd);
		}
	}
	return n;
}

static void close_fds(int *fds)
{
	int i;

	for (i = 0; i < TDM_SHM_FDS_MOST; i++) {
		if (fds[i] >= 0)
			tdm_os.close(fds[i]);
		fds[i] = -1;
	}
}

int tdm_shm_msg_recv(int fd, struct tdm_shm_msg *msg, int *fds)
{
	char buf[TDM_SHM_MSG_MOST_BYTES];
	struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
	union fd_room room;
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room.bytes,
		.msg_controllen = sizeof(room.bytes),
	};
	int resets = 0, nfds, i;
	ssize_t n;

	for (i = 0; i < TDM_SHM_FDS_MOST; i++)
		fds[i] = -1;
	/*
	 * A pending reset is reported once, before the data received earlier:
	 * try again.
	 */
	do {
		n = tdm_os.recvmsg(fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 &&
		 (errno == EINTR || (errno == ECONNRESET && !resets++)));
	/* Out of memory: the message stays in the socket and is read later. */
	if (n < 0 && (errno == ENOMEM || errno == ENOBUFS))
		return -FI_ENOMEM;
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ?
			       (resets ? -FI_ECONNRESET : -FI_EAGAIN) :
			       -FI_ECONNRESET;
	nfds = take_fds(&mh, fds);
	if (n == 0 && !nfds)
		return -FI_ECONNRESET;
	if (mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
	    tdm_shm_msg_decode(msg, buf, (size_t)n, nfds)) {
		close_fds(fds);
		return -FI_EPROTO;
	}
	return 0;
}

/* ---- the lifeline, reading ----------------------------------------------- */

/* Map @r from *@fd. When memory is out, *@fd is kept for another try. */
static int map_kept(struct tdm_shm_region *r, int *fd, size_t bytes)
{
	int ret;

	if (r->base)
		return 0;
	ret = tdm_shm_region_map(r, *fd, bytes, 1);
	if (ret == TDM_SHM_BAD_REGION)
		return -FI_EPROTO;
	if (ret)
		return -FI_EAGAIN;
	tdm_os.close(*fd);
	*fd = -1;
	return 0;
}

static int map_next(struct tdm_shm_pair *pair)
{
	struct tdm_shm_session *s = pair->sess;
	int ret = map_kept(&s->next_ring, &s->next_fd,
			   tdm_shm_seg_bytes(s->next_slots));

	if (!ret && tdm_shm_seg_check(s->next_ring.base, s->next_slots,
				      pair->rx.gen + 1, s->incarnation))
		ret = -FI_EPROTO;
	return ret;
}

static int map_area(struct tdm_shm_pair *pair)
{
	struct tdm_shm_session *s = pair->sess;

	return map_kept(&s->peer_bounce, &s->bounce_fd,
			tdm_shm_bounce_bytes(s->peer_chunks));
}

/*
 * Keep a ring or an area that arrived, at most one of each: a ring until MOVED
 * refers to it, an area for good.
 */
static int take_ring(struct tdm_shm_pair *pair, uint32_t slots, int *fd)
{
	struct tdm_shm_session *s = pair->sess;

	if (s->next_slots)
		return -FI_EPROTO;
	s->next_slots = slots;
	s->next_fd = *fd;
	*fd = -1;
	return map_next(pair);
}

static int take_bounce(struct tdm_shm_pair *pair, uint32_t chunks, int *fd)
{
	struct tdm_shm_session *s = pair->sess;

	if (s->peer_chunks)
		return -FI_EPROTO;
	s->peer_chunks = chunks;
	s->bounce_fd = *fd;
	*fd = -1;
	return map_area(pair);
}

/*
 * Read one packet. Returns 1: it was kept; 0: there is none, or the pair broke
 * at the end of the lifeline or on garbage; -FI_ENOMEM: try again later.
 */
static int lifeline_take(struct tdm_shm_pair *pair)
{
	struct tdm_shm_session *s = pair->sess;
	int ret, fds[TDM_SHM_FDS_MOST];
	struct tdm_shm_msg msg;

	ret = tdm_shm_msg_recv(s->lifeline.fd, &msg, fds);
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_ENOMEM)
		return ret;
	if (!ret && msg.type == TDM_SHM_MSG_RING)
		ret = take_ring(pair, msg.arg, &fds[0]);
	else if (!ret && msg.type == TDM_SHM_MSG_BOUNCE)
		ret = take_bounce(pair, msg.arg, &fds[0]);
	else if (!ret && msg.type == TDM_SHM_MSG_LEFT)
		ret = tdm_shm_left_take(s, msg.arg, fds[0]);
	else if (!ret)
		ret = -FI_EPROTO;
	close_fds(fds);
	if (!ret || ret == -FI_EAGAIN)
		return 1;
	tdm_shm_pair_break(pair, -ret);
	return 0;
}

/*
 * Keep rings and areas that arrived; break the pair at the end of the lifeline
 * or on garbage. Returns -FI_ENOMEM when a message could not be read now.
 */
static int lifeline_read(struct tdm_shm_pair *pair)
{
	int i, ret = 1;

	for (i = 0; pair->sess && ret > 0 && i < LIFE_PACKETS; i++)
		ret = lifeline_take(pair);
	return ret < 0 ? ret : 0;
}

void tdm_shm_lifeline_last(struct tdm_shm_pair *pair)
{
	int i;

	for (i = 0; i < TDM_SHM_LEFT_AREAS && lifeline_take(pair) > 0; i++)
		;
}

/*
 * Returns the error to report when a ring or area that a record refers to is
 * not there: it could not be read yet for want of memory, or the peer broke the
 * protocol.
 */
static int missing(int ret)
{
	return ret == -FI_ENOMEM ? -FI_EAGAIN : -FI_EPROTO;
}

/* Not inlined: a mark of the kills, tests/scenario/. */
tdm_noinline int tdm_shm_lifeline_next(struct tdm_shm_pair *pair)
{
	int ret = 0;

	if (pair->sess && !pair->sess->next_slots)
		ret = lifeline_read(pair);
	return pair->sess && pair->sess->next_slots ? map_next(pair) :
						      missing(ret);
}

int tdm_shm_lifeline_area(struct tdm_shm_pair *pair)
{
	int ret = 0;

	if (!pair->sess->peer_chunks)
		ret = lifeline_read(pair);
	return pair->sess->peer_chunks ? map_area(pair) : missing(ret);
}

void tdm_shm_lifeline_ready(struct tdm_shm_watch *w, uint32_t events)
{
	struct tdm_shm_session *s =
		tdm_container_of(w, struct tdm_shm_session, lifeline);
	struct tdm_shm_pair *pair = s->pair;

	(void)lifeline_read(pair);
	if (events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR))
		tdm_shm_pair_break(pair, FI_ECONNRESET);
}

/*
 * The pidfd is watched too, since a child of the dead process may hold the
 * lifeline open.
 */
void tdm_shm_dead_ready(struct tdm_shm_watch *w, uint32_t events)
{
	struct tdm_shm_session *s =
		tdm_container_of(w, struct tdm_shm_session, dead);

	if (s->state == TDM_SHM_SESSION_UP)
		tdm_shm_lifeline_ready(&s->lifeline, EPOLLHUP);
	else
		s->lifeline.ready(&s->lifeline, EPOLLHUP);
}

int tdm_shm_session_alive(const struct tdm_shm_session *s)
{
	struct pollfd p[2] = {
		{ .fd = s->lifeline.fd, .events = POLLRDHUP },
		{ .fd = s->dead.fd, .events = POLLIN },
	};
	int n;

	do {
		n = tdm_os.poll(p, 2, 0);
	} while (n < 0 && errno == EINTR);
	return n <= 0 || !(p[0].revents & (POLLRDHUP | POLLHUP | POLLERR) ||
			   p[1].revents);
}

/* ---- the lifeline, handing over ------------------------------------------ */

int tdm_shm_lifeline_ring(struct tdm_shm_pair *pair, uint32_t slots)
{
	struct tdm_shm_session *s = pair->sess;
	struct tdm_shm_ep *ep = pair->ep;
	size_t bytes = tdm_shm_seg_bytes(slots);
	struct tdm_shm_region ring;
	uint64_t *map;
	int ret;

	if (ep->grown_bytes + bytes > (slots > TDM_SHM_RING_LARGE_SLOTS ?
					       LIFE_STREAM_BYTES :
					       LIFE_GROWN_BYTES))
		return -FI_ENOSPC;
	map = calloc((slots + 63) / 64, sizeof(*map));
	if (!map)
		return -FI_ENOMEM;
	ret = tdm_shm_region_create(&ring, "tandem-ring", bytes, 1);
	if (ret) {
		free(map);
		return ret;
	}
	tdm_shm_seg_init(ring.base, slots, pair->tx.gen + 1, ep->incarnation);
	ret = tdm_shm_msg_send(s->lifeline.fd, TDM_SHM_MSG_RING, slots,
			       tdm_shm_region_fd(&ring));
	if (ret) {
		tdm_shm_region_fini(&ring);
		free(map);
		return ret;
	}
	tdm_shm_region_handed(&ring);
	ep->grown_bytes += bytes;
	s->new_ring = ring;
	s->new_dirty = map;
	return 0;
}

/*
 * Unmap the old ring: this side does not write it again, and the peer has its
 * own mapping.
 */
void tdm_shm_lifeline_moved(struct tdm_shm_pair *pair)
{
	struct tdm_shm_session *s = pair->sess;

	pair->ep->grown_bytes -= s->own_ring.bytes;
	tdm_shm_region_fini(&s->own_ring);
	free(s->dirty);
	s->own_ring = s->new_ring;
	s->dirty = s->new_dirty;
	memset(&s->new_ring, 0, sizeof(s->new_ring));
	s->new_dirty = NULL;
}

int tdm_shm_lifeline_bounce(struct tdm_shm_pair *pair)
{
	size_t bytes = tdm_shm_bounce_bytes(TDM_SHM_BOUNCE_CHUNKS);
	struct tdm_shm_session *s = pair->sess;
	struct tdm_shm_region area;
	int ret;

	ret = tdm_shm_region_create(&area, "tandem-bounce", bytes, 1);
	if (ret)
		return ret;
	ret = tdm_shm_msg_send(s->lifeline.fd, TDM_SHM_MSG_BOUNCE,
			       TDM_SHM_BOUNCE_CHUNKS, tdm_shm_region_fd(&area));
	if (ret) {
		tdm_shm_region_fini(&area);
		return ret;
	}
	tdm_shm_region_handed(&area);
	s->own_bounce = area;
	pair->ep->nbounces++;
	return 0;
}
