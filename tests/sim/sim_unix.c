/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unix sockets of packets (SOCK_SEQPACKET) between processes of a host, with
 * abstract names, descriptors in packets and the peer's credentials: see
 * sim_file.h. A packet is there at once. As in Linux, the packets of an end that
 * was closed can be read before the end is told, and closing with unread ones
 * gives the peer ECONNRESET.
 *
 * Locking: none, one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "sim_file.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { PACKETS = 64, FDS_OF_PACKET = 8, BACKLOG = 64 };

struct packet {
	struct tdm_list node;
	size_t len, nfiles;
	struct tds_file *files[FDS_OF_PACKET];
	unsigned char bytes[];
};

struct end {
	struct tds_file f;
	struct tdm_list node;  /* ends */
	struct tdm_list queue; /* listener: struct end, by in_queue */
	struct tdm_list in_queue;
	struct tdm_list packets; /* to be read here */
	unsigned count;
	struct tds_proc *owner, *peer_proc;
	struct end *peer; /* NULL: closed, or none */
	int listening, up, reset;
	socklen_t len;
	struct sockaddr_un name;
};

static struct tdm_list ends = { &ends, &ends };

static struct end *end_new(void)
{
	struct end *e = tds_file_new(TDS_UNIX, sizeof(*e));

	e->owner = tds_self();
	tdm_list_init(&e->queue);
	tdm_list_init(&e->in_queue);
	tdm_list_init(&e->packets);
	tdm_list_append(&ends, &e->node);
	return e;
}

int tds_unix_socket(void)
{
	return tds_fd_new(&end_new()->f);
}

static struct end *named(const struct sockaddr *addr, socklen_t len, int host)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &ends) {
		struct end *e = tdm_list_entry(pos, struct end, node);

		if (e->len == len && !memcmp(&e->name, addr, len) &&
		    e->owner->host == host)
			return e;
	}
	return NULL;
}

int tds_unix_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct end *e = tds_kind_of(fd, TDS_UNIX);

	if (!e || len > sizeof(e->name))
		return tds_fail(e ? EINVAL : EBADF);
	if (named(addr, len, e->owner->host))
		return tds_fail(EADDRINUSE);
	memcpy(&e->name, addr, len);
	e->len = len;
	return tds_did(0);
}

int tds_unix_listen(int fd, int backlog)
{
	struct end *e = tds_kind_of(fd, TDS_UNIX);

	(void)backlog;
	if (!e)
		return tds_fail(EBADF);
	e->listening = 1;
	return tds_did(0);
}

int tds_unix_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct end *e = tds_kind_of(fd, TDS_UNIX), *l, *other;

	if (!e)
		return tds_fail(EBADF);
	l = named(addr, len, e->owner->host);
	if (!l || !l->listening)
		return tds_fail(ECONNREFUSED);
	if (l->count >= BACKLOG)
		return tds_fail(EAGAIN);
	other = end_new();
	other->owner = l->owner;
	other->peer_proc = e->owner;
	other->peer = e;
	other->up = 1;
	tdm_list_append(&l->queue, &other->in_queue);
	l->count++;
	e->peer = other;
	e->peer_proc = l->owner;
	e->up = 1;
	return tds_did(0);
}

int tds_unix_accept(int fd)
{
	struct end *l = tds_kind_of(fd, TDS_UNIX), *e;

	if (!l || !l->listening)
		return tds_fail(l ? EINVAL : EBADF);
	if (tdm_list_empty(&l->queue))
		return tds_fail(EAGAIN);
	e = tdm_list_entry(tdm_list_pop(&l->queue), struct end, in_queue);
	tdm_list_init(&e->in_queue);
	l->count--;
	return tds_fd_new(&e->f);
}

int tds_unix_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	struct end *e = tds_kind_of(fd, TDS_UNIX);
	struct ucred cred;
	int value;

	if (!e || level != SOL_SOCKET || !e->peer_proc)
		return tds_fail(e ? ENOPROTOOPT : EBADF);
	if (name == SO_PEERCRED && *len >= sizeof(cred)) {
		cred.pid = e->peer_proc->pid;
		cred.uid = geteuid();
		cred.gid = getegid();
		memcpy(val, &cred, sizeof(cred));
	} else if (name == SO_PEERPIDFD && *len >= sizeof(value)) {
		value = tds_pidfd(e->peer_proc);
		if (value < 0)
			return -1;
		memcpy(val, &value, sizeof(value));
	} else {
		return tds_fail(ENOPROTOOPT);
	}
	return tds_did(0);
}

/* Descriptors of @msg, taken as files into @p. Returns 0, or an errno. */
static int take_files(const struct msghdr *msg, struct packet *p)
{
	struct msghdr *m = (struct msghdr *)(uintptr_t)msg;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int), i;

		for (i = 0; i < n && i < FDS_OF_PACKET; i++) {
			struct tds_file *f;
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			f = tds_file_of(fd);
			if (!f)
				return EBADF;
			tds_file_hold(f);
			p->files[p->nfiles++] = f;
		}
	}
	return 0;
}

static void packet_free(struct packet *p)
{
	size_t i;

	for (i = 0; i < p->nfiles; i++)
		tds_file_release(p->files[i]);
	free(p);
}

static struct packet *pack(const struct msghdr *msg, int *err)
{
	size_t len = 0, i;
	struct packet *p;

	for (i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	p = calloc(1, sizeof(*p) + len);
	if (!p)
		abort();
	for (i = 0; i < msg->msg_iovlen; i++) {
		memcpy(p->bytes + p->len, msg->msg_iov[i].iov_base,
		       msg->msg_iov[i].iov_len);
		p->len += msg->msg_iov[i].iov_len;
	}
	*err = take_files(msg, p);
	if (!*err)
		return p;
	packet_free(p);
	return NULL;
}

ssize_t tds_unix_send(int fd, const struct msghdr *msg)
{
	struct end *e = tds_kind_of(fd, TDS_UNIX);
	struct packet *p;
	int err = 0;

	if (!e)
		return tds_fail(EBADF);
	if (!e->up)
		return tds_fail(ENOTCONN);
	if (!e->peer)
		return tds_fail(EPIPE);
	if (e->peer->count >= PACKETS || tds_one_of(tds_weather.again))
		return tds_fail(EAGAIN);
	p = pack(msg, &err);
	if (!p)
		return tds_fail(err);
	tdm_list_append(&e->peer->packets, &p->node);
	e->peer->count++;
	return tds_did((int)p->len);
}

static void give_files(struct msghdr *msg, struct packet *p)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	size_t i, n = 0;

	if (!p->nfiles || !c ||
	    msg->msg_controllen < CMSG_SPACE(p->nfiles * sizeof(int))) {
		msg->msg_controllen = 0;
		msg->msg_flags = p->nfiles ? MSG_CTRUNC : 0;
		return;
	}
	for (i = 0; i < p->nfiles; i++) {
		int fd;

		tds_file_hold(p->files[i]);
		fd = tds_fd_new(p->files[i]);
		if (fd >= 0)
			memcpy(CMSG_DATA(c) + n++ * sizeof(int), &fd,
			       sizeof(fd));
	}
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	msg->msg_controllen = n ? CMSG_SPACE(n * sizeof(int)) : 0;
	msg->msg_flags = n < p->nfiles ? MSG_CTRUNC : 0;
}

ssize_t tds_unix_recv(int fd, struct msghdr *msg)
{
	struct end *e = tds_kind_of(fd, TDS_UNIX);
	struct packet *p;
	size_t n;

	if (!e)
		return tds_fail(EBADF);
	if (e->reset) {
		e->reset = 0;
		return tds_fail(ECONNRESET);
	}
	if (tdm_list_empty(&e->packets)) {
		msg->msg_controllen = 0;
		msg->msg_flags = 0;
		return e->up && !e->peer ? tds_did(0) : tds_fail(EAGAIN);
	}
	p = tdm_list_entry(tdm_list_pop(&e->packets), struct packet, node);
	e->count--;
	n = tdm_min(p->len, msg->msg_iov[0].iov_len);
	memcpy(msg->msg_iov[0].iov_base, p->bytes, n);
	give_files(msg, p);
	if (n < p->len)
		msg->msg_flags |= MSG_TRUNC;
	packet_free(p);
	return tds_did((int)n);
}

static unsigned unix_events(struct tds_file *f)
{
	struct end *e = (struct end *)f;

	if (e->listening)
		return tdm_list_empty(&e->queue) ? 0 : POLLIN;
	if (!e->up)
		return POLLOUT | POLLHUP;
	return (tdm_list_empty(&e->packets) && e->peer ? 0 : POLLIN) |
	       (e->reset ? POLLERR : 0) | (e->peer ? 0u : POLLHUP | POLLRDHUP) |
	       (e->peer && e->peer->count >= PACKETS ? 0 : POLLOUT);
}

static void unix_close(struct tds_file *f)
{
	struct end *e = (struct end *)f;

	while (!tdm_list_empty(&e->queue)) {
		struct end *q = tdm_list_entry(tdm_list_pop(&e->queue),
					       struct end, in_queue);

		tdm_list_init(&q->in_queue);
		tds_file_release(&q->f);
	}
	if (e->peer) {
		e->peer->peer = NULL;
		e->peer->reset = !tdm_list_empty(&e->packets);
	}
	while (!tdm_list_empty(&e->packets))
		packet_free(tdm_list_entry(tdm_list_pop(&e->packets),
					   struct packet, node));
	tdm_list_del(&e->in_queue);
	tdm_list_del(&e->node);
	free(e);
}

const struct tds_kind_ops tds_unix_ops = { unix_events, unix_close };
