/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attach: the listener, and the handshake that makes a session.
 *
 *   initiator                         acceptor
 *   connect, uid equal?               accept, uid equal?      [ACCEPTED]
 *   HELLO + 3 descriptors ------->    pair free? map, probe
 *   [SENT]                 <-------   HELLO + 3 descriptors   [WAIT_READY]
 *   map, probe                        or REJECT(why), close
 *   READY, or ABORT(why) -------->    up, or the pair has failed
 *   [UP]                              [UP]
 *
 * Invariants:
 *  1. Nothing blocks. There is no time-out once the other side has sent HELLO,
 *     since a process may make no progress for long; its death shows at the
 *     lifeline.
 *  2. No descriptor is accepted from, and no byte is sent to, a process of
 *     another user id.
 *  3. When both sides attach at once, the attach started by the endpoint with
 *     the smaller incarnation stays; the other one gets REJECT(TIE) or is
 *     dropped.
 *  4. A session that is alive is never displaced: REJECT(BUSY).
 *  5. While operations of the owner wait for a session over TCP with the caller, it
 *     is refused, too: the caller's owner would take no TCP connection beside it.
 *  6. With a key, a session comes up only after the peer has proved that it
 *     knows the key: prove.c. Endpoints have a session, and a pair, for each key
 *     that they share.
 *  7. Malformed packets and wrong descriptors end the attach without an
 *     answer; the pair whose address a stranger claimed does not change.
 * Locking: domain lock held. Spec: unix(7), doc/PROTOCOL-shm.md "Attach".
 */
#include "shm/attach.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <rdma/fi_errno.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/os.h"
#include "shm/ep.h"
#include "shm/lifeline.h"
#include "shm/prove.h"
#include "shm/session.h"

enum {
	ATTACH_BACKLOG = 1024,
	ATTACH_UNAUTH_MOST = 64,
	ATTACH_ACCEPTS = 16, /* greatest number per event of the listener */
};

static const uint64_t attach_silence_ns = 5000000000ull;
static const uint64_t attach_pause_ns = 10000000ull;

static void close_fds(int *fds)
{
	int i;

	for (i = 0; i < TDM_SHM_FDS_MOST; i++) {
		if (fds[i] >= 0)
			tdm_os.close(fds[i]);
	}
}

static enum tdm_reason why_reason(uint32_t why)
{
	switch (why) {
	case TDM_SHM_WHY_VERSION:
		return TDM_REASON_VERSION;
	case TDM_SHM_WHY_RESOURCE:
		return TDM_REASON_RESOURCE;
	case TDM_SHM_WHY_SEGMENT:
		return TDM_REASON_SEGMENT;
	default:
		return TDM_REASON_REFUSED;
	}
}

/* ---- initiator ----------------------------------------------------------- */

static const struct sockaddr *sockaddr_of(const struct tdm_shm_addr *a)
{
	return (const struct sockaddr *)(const void *)a->sa;
}

/*
 * Write to *@un the name of the attach socket: a file in the shared folder if
 * that serves the address, else an abstract name, "\0tandem/" and the address in
 * hex. So one address has one name. Returns its length.
 */
static socklen_t attach_name(struct sockaddr_un *un,
			     const struct tdm_shm_addr *a)
{
	char *p = un->sun_path + 1;
	size_t room = sizeof(un->sun_path) - 1, i;
	int n;

	if (tdm_folder_serves(sockaddr_of(a)))
		return tdm_folder_name(un, sockaddr_of(a));
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	n = snprintf(p, room, "tandem/%c:",
		     a->len == sizeof(struct sockaddr_in) ? '4' : '6');
	/*
	 * The bytes of port, address and IPv6 scope; the length tells the
	 * family.
	 */
	for (i = offsetof(struct sockaddr_in, sin_port); i < a->len; i++)
		n += snprintf(p + n, room - (size_t)n, "%02x", a->sa[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

static int session_dial(struct tdm_shm_session *s,
			const struct tdm_shm_addr *addr)
{
	struct sockaddr_un un;
	socklen_t len = attach_name(&un, addr);
	int ret;

	s->lifeline.fd = tdm_os.socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->lifeline.fd < 0)
		return -errno;
	do {
		ret = tdm_os.connect(s->lifeline.fd, (struct sockaddr *)&un,
				     len);
	} while (ret && errno == EINTR);
	return ret ? -errno : tdm_shm_session_creds(s);
}

static int attach_failed(struct tdm_shm_pair *pair, int err)
{
	switch (err) {
	case -EAGAIN:
	case -ENOMEM:
		return -FI_EAGAIN;
	case -ECONNREFUSED:
	case -ENOENT: /* the folder has no socket of the peer */
		tdm_shm_pair_refused(pair, 0);
		return -FI_ECONNREFUSED;
	/*
	 * Somebody listens and has closed the socket, for want of descriptors:
	 * the other side may attach here later, so this is no reason to use
	 * another transport while the pair still accepts that.
	 */
	case -ECONNRESET:
	case -EPIPE:
		tdm_shm_pair_refused(pair, 1);
		return pair->state == TDM_SHM_PAIR_FAILED ? -FI_EHOSTUNREACH :
							    -FI_EAGAIN;
	case -EACCES: /* the socket's file */
	case TDM_SHM_OTHER_USER:
		tdm_shm_pair_fail(pair, TDM_REASON_UID);
		return -FI_EHOSTUNREACH;
	case -EKEYREJECTED: /* the endpoint does not have the address's key */
		tdm_shm_pair_fail(pair, TDM_REASON_REFUSED);
		return -FI_EHOSTUNREACH;
	default:
		tdm_shm_pair_fail(pair, TDM_REASON_RESOURCE);
		return -FI_EHOSTUNREACH;
	}
}

static void sent_ready(struct tdm_shm_watch *w, uint32_t events);

int tdm_shm_attach(struct tdm_shm_pair *pair)
{
	const struct tdm_auth_keys *keys = pair->ep->keys;
	const struct tdm_auth_key *key = tdm_auth_find(keys, pair->addr.key);
	struct tdm_shm_session *s;
	int ret;

	if (keys && !key)
		return attach_failed(pair, -EKEYREJECTED);
	s = tdm_shm_session_alloc(pair->ep);
	if (!s)
		return -FI_EAGAIN;
	tdm_shm_session_set_state(s, TDM_SHM_SESSION_SENT);
	s->lifeline.ready = sent_ready;
	s->key = key;
	ret = session_dial(s, &pair->addr);
	if (!ret)
		ret = tdm_shm_session_prepare(s);
	if (!ret)
		ret = tdm_shm_session_watch(s);
	if (!ret)
		ret = tdm_shm_session_hello(s);
	if (ret) {
		tdm_shm_session_free(s);
		return attach_failed(pair, ret);
	}
	s->pair = pair;
	pair->sess = s;
	tdm_shm_pair_set_state(pair, TDM_SHM_PAIR_ATTACHING);
	tdm_list_append(&pair->ep->attaching, &s->node);
	return 0;
}

static void sent_rejected(struct tdm_shm_pair *pair, uint32_t why)
{
	if (why == TDM_SHM_WHY_TIE || why == TDM_SHM_WHY_BUSY)
		tdm_shm_pair_reset(pair);
	else
		tdm_shm_pair_fail(pair, why_reason(why));
}

static void sent_hello(struct tdm_shm_session *s, const struct tdm_shm_msg *msg,
		       int *fds)
{
	const struct tdm_shm_hello *h = &msg->hello;
	struct tdm_shm_pair *pair = s->pair;
	struct tdm_shm_addr addr;
	enum tdm_shm_why why;

	if (tdm_shm_hello_version(h) < 0)
		why = TDM_SHM_WHY_VERSION;
	else if (tdm_shm_addr_set(&addr, h->addr, h->addrlen) ||
		 !tdm_shm_addr_same(&addr, &pair->addr))
		why = TDM_SHM_WHY_SEGMENT;
	else if (!tdm_shm_check_hello(s, msg))
		why = TDM_SHM_WHY_KEY;
	else
		why = tdm_shm_session_take(s, h, fds);
	if (why == TDM_SHM_WHY_NONE) {
		if (tdm_shm_prove_ready(s))
			tdm_shm_pair_refused(pair, 1);
		else
			tdm_shm_pair_up(pair, s->peer_slots);
		return;
	}
	/* If ABORT is not sent, the acceptor sees the lifeline close. */
	(void)!tdm_shm_msg_send(s->lifeline.fd, TDM_SHM_MSG_ABORT, why, -1);
	tdm_shm_pair_fail(pair, why_reason(why));
}

/* State SENT: the acceptor's answer has arrived. */
static void sent_ready(struct tdm_shm_watch *w, uint32_t events)
{
	struct tdm_shm_session *s =
		tdm_container_of(w, struct tdm_shm_session, lifeline);
	struct tdm_shm_pair *pair = s->pair;
	int fds[TDM_SHM_FDS_MOST], ret;
	struct tdm_shm_msg msg;

	ret = tdm_shm_msg_recv(w->fd, &msg, fds);
	if (ret == -FI_ENOMEM ||
	    (ret == -FI_EAGAIN && !(events & (EPOLLHUP | EPOLLERR))))
		return;
	if (ret)
		tdm_shm_pair_refused(pair, 1);
	else if (msg.type == TDM_SHM_MSG_REJECT)
		sent_rejected(pair, msg.arg);
	else if (msg.type == TDM_SHM_MSG_HELLO)
		sent_hello(s, &msg, fds);
	else
		tdm_shm_pair_refused(pair, 1);
	close_fds(fds);
}

/* ---- acceptor ------------------------------------------------------------ */

static void reject(struct tdm_shm_session *s, enum tdm_shm_why why)
{
	(void)!tdm_shm_msg_send(s->lifeline.fd, TDM_SHM_MSG_REJECT, why, -1);
}

/*
 * Returns WHY_NONE if an attach with @h may use the pair, else why not. Ends a
 * session whose peer is dead, and an attach of ours that has to yield.
 */
static enum tdm_shm_why clear_way(struct tdm_shm_pair *pair,
				  const struct tdm_shm_hello *h)
{
	switch (pair->state) {
	case TDM_SHM_PAIR_FAILED:
		return TDM_SHM_WHY_OTHER;
	case TDM_SHM_PAIR_UP:
		if (!pair->broken && tdm_shm_session_alive(pair->sess))
			return TDM_SHM_WHY_BUSY;
		tdm_shm_pair_lose(pair,
				  pair->broken ? pair->broken : FI_ECONNRESET);
		break;
	case TDM_SHM_PAIR_ACCEPTING:
		if (tdm_shm_session_alive(pair->sess))
			return TDM_SHM_WHY_BUSY;
		tdm_shm_pair_reset(pair);
		break;
	case TDM_SHM_PAIR_ATTACHING:
		if (memcmp(pair->ep->incarnation, h->incarnation,
			   sizeof(h->incarnation)) < 0)
			return TDM_SHM_WHY_TIE;
		tdm_shm_pair_reset(pair);
		break;
	default:
		break;
	}
	return TDM_SHM_WHY_NONE;
}

static void wait_ready(struct tdm_shm_watch *w, uint32_t events);

/*
 * Called when the pair is free for @s: maps what came with @h and answers the
 * initiator.
 */
static void accept_answer(struct tdm_shm_session *s, struct tdm_shm_pair *pair,
			  const struct tdm_shm_hello *h, int *fds)
{
	enum tdm_shm_why why;
	int ret;

	s->ep->unauth--;
	tdm_shm_session_set_state(s, TDM_SHM_SESSION_WAIT_READY);
	s->lifeline.ready = wait_ready;
	s->deadline = 0;
	s->pair = pair;
	pair->sess = s;
	tdm_shm_pair_set_state(pair, TDM_SHM_PAIR_ACCEPTING);
	why = tdm_shm_session_take(s, h, fds);
	if (why == TDM_SHM_WHY_NONE && tdm_shm_session_prepare(s))
		why = TDM_SHM_WHY_RESOURCE;
	if (why != TDM_SHM_WHY_NONE) {
		reject(s, why);
		tdm_shm_pair_fail(pair, why_reason(why));
		return;
	}
	ret = tdm_shm_session_hello(s);
	if (ret)
		tdm_shm_pair_reset(pair);
}

static void accept_hello(struct tdm_shm_session *s,
			 const struct tdm_shm_msg *msg, int *fds)
{
	const struct tdm_shm_hello *h = &msg->hello;
	struct tdm_shm_ep *ep = s->ep;
	struct tdm_shm_pair *pair;
	struct tdm_shm_addr addr;
	enum tdm_shm_why why;

	/*
	 * An endpoint with a key does not answer callers that do not know it.
	 */
	if (ep->keys && !tdm_shm_check_hello(s, msg))
		goto drop;
	if (tdm_shm_hello_version(h) < 0) {
		reject(s, TDM_SHM_WHY_VERSION);
		goto drop;
	}
	if (!ep->keys && !tdm_shm_check_hello(s, msg)) {
		reject(s, TDM_SHM_WHY_KEY);
		goto drop;
	}
	if (tdm_shm_addr_set(&addr, h->addr, h->addrlen) ||
	    tdm_shm_addr_same(&addr, &ep->name))
		goto drop;
	addr.key = s->key ? s->key->id : 0;
	pair = tdm_shm_pair_find(ep, &addr, 0);
	why = pair ? clear_way(pair, h) : TDM_SHM_WHY_NONE;
	if (why == TDM_SHM_WHY_NONE && ep->owner_waits &&
	    ep->owner_waits(ep->owner_arg, addr.sa, addr.len, addr.key))
		why = TDM_SHM_WHY_BUSY;
	if (why != TDM_SHM_WHY_NONE) {
		reject(s, why);
		goto drop;
	}
	/* clear_way() may have freed the pair. */
	pair = tdm_shm_pair_find(ep, &addr, 1);
	if (!pair)
		goto drop;
	accept_answer(s, pair, h, fds);
	return;
drop:
	tdm_shm_session_free(s);
}

/* State ACCEPTED: the initiator's first packet has arrived. */
static void accepted_ready(struct tdm_shm_watch *w, uint32_t events)
{
	struct tdm_shm_session *s =
		tdm_container_of(w, struct tdm_shm_session, lifeline);
	int fds[TDM_SHM_FDS_MOST], ret;
	struct tdm_shm_msg msg;

	ret = tdm_shm_msg_recv(w->fd, &msg, fds);
	if (ret == -FI_ENOMEM ||
	    (ret == -FI_EAGAIN && !(events & (EPOLLHUP | EPOLLERR))))
		return;
	if (ret || msg.type != TDM_SHM_MSG_HELLO) {
		TDM_INFO(EP_CTRL, "attach of a stranger is dropped");
		tdm_shm_session_free(s);
	} else {
		accept_hello(s, &msg, fds);
	}
	close_fds(fds);
}

/* State WAIT_READY: the initiator's READY or ABORT has arrived. */
static void wait_ready(struct tdm_shm_watch *w, uint32_t events)
{
	struct tdm_shm_session *s =
		tdm_container_of(w, struct tdm_shm_session, lifeline);
	struct tdm_shm_pair *pair = s->pair;
	int fds[TDM_SHM_FDS_MOST], ret;
	struct tdm_shm_msg msg;

	ret = tdm_shm_msg_recv(w->fd, &msg, fds);
	if (ret == -FI_ENOMEM ||
	    (ret == -FI_EAGAIN && !(events & (EPOLLHUP | EPOLLERR))))
		return;
	if (!ret && msg.type == TDM_SHM_MSG_READY &&
	    tdm_shm_check_ready(s, &msg))
		tdm_shm_pair_up(pair, s->peer_slots);
	else if (!ret && msg.type == TDM_SHM_MSG_ABORT)
		tdm_shm_pair_fail(pair, why_reason(msg.arg));
	else
		tdm_shm_pair_reset(pair);
	close_fds(fds);
}

/* ---- listener ------------------------------------------------------------ */

/*
 * No descriptor is left: accept callers by means of the spare one and close at
 * once, rather than let them wait.
 */
static void accept_starved(struct tdm_shm_ep *ep)
{
	int fd;

	if (ep->spare_fd >= 0)
		tdm_os.close(ep->spare_fd);
	fd = tdm_os.accept4(ep->listener.fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		tdm_os.close(fd);
	ep->spare_fd = tdm_os.eventfd(0, EFD_CLOEXEC);
	tdm_shm_watch_del(ep, &ep->listener);
	ep->listen_at = tdm_os.now_ns() + attach_pause_ns;
}

static void accept_one(struct tdm_shm_ep *ep, int fd)
{
	struct tdm_shm_session *s = tdm_shm_session_alloc(ep);

	if (!s) {
		tdm_os.close(fd);
		return;
	}
	tdm_shm_session_set_state(s, TDM_SHM_SESSION_ACCEPTED);
	ep->unauth++;
	s->lifeline.fd = fd;
	s->lifeline.ready = accepted_ready;
	s->deadline = tdm_os.now_ns() + attach_silence_ns;
	tdm_list_append(&ep->attaching, &s->node);
	if (tdm_shm_session_creds(s) || ep->unauth > ATTACH_UNAUTH_MOST ||
	    tdm_shm_session_watch(s)) {
		tdm_shm_session_free(s);
		return;
	}
	/* HELLO follows the connect at once, so it has usually arrived. */
	accepted_ready(&s->lifeline, 0);
}

static void listener_ready(struct tdm_shm_watch *w, uint32_t events)
{
	struct tdm_shm_ep *ep =
		tdm_container_of(w, struct tdm_shm_ep, listener);
	int i, fd;

	for (i = 0; i < ATTACH_ACCEPTS; i++) {
		fd = tdm_os.accept4(w->fd, NULL, NULL,
				    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			accept_one(ep, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE)
			accept_starved(ep);
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

/*
 * Bind the attach socket. A file of its name that a process has left, which had
 * the address before, is replaced.
 */
static int bind_attach(struct tdm_shm_ep *ep)
{
	const int in_folder = tdm_folder_serves(sockaddr_of(&ep->name));
	struct sockaddr_un un;
	socklen_t len = attach_name(&un, &ep->name);
	const struct sockaddr *sa = (const void *)&un;
	int ret = in_folder ? tdm_folder_check() : 0;

	if (ret)
		return ret;
	if (in_folder)
		tdm_folder_sweep();
	if (tdm_os.bind(ep->listener.fd, sa, len) &&
	    (errno != EADDRINUSE || !in_folder || tdm_folder_reclaim(&un) ||
	     tdm_os.bind(ep->listener.fd, sa, len)))
		return -errno;
	ep->has_file = in_folder;
	return 0;
}

int tdm_shm_listen(struct tdm_shm_ep *ep)
{
	int ret;

	ep->listener.ready = listener_ready;
	ep->listener.fd = tdm_os.socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (ep->listener.fd < 0)
		return tdm_os_failed("socket AF_UNIX");
	ret = bind_attach(ep);
	if (ret)
		return ret;
	if (tdm_os.listen(ep->listener.fd, ATTACH_BACKLOG))
		return -errno;
	return tdm_shm_watch_add(ep, &ep->listener);
}

void tdm_shm_unlisten(struct tdm_shm_ep *ep)
{
	struct sockaddr_un un;

	/* While it is bound: nobody else can have bound its name. */
	if (ep->has_file) {
		attach_name(&un, &ep->name);
		tdm_os.unlink(un.sun_path);
		ep->has_file = 0;
	}
	tdm_shm_watch_close(ep, &ep->listener);
}

void tdm_shm_attach_timers(struct tdm_shm_ep *ep, uint64_t now)
{
	struct tdm_list *pos, *tmp;

	if (ep->listen_at && now >= ep->listen_at) {
		ep->listen_at = 0;
		if (tdm_shm_watch_add(ep, &ep->listener))
			ep->listen_at = now + attach_pause_ns;
	}
	tdm_list_for_each_safe(pos, tmp, &ep->attaching) {
		struct tdm_shm_session *s =
			tdm_list_entry(pos, struct tdm_shm_session, node);

		if (s->deadline && now >= s->deadline)
			tdm_shm_session_free(s);
	}
}
