/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session owns the resources of one attach, from the socket to the mappings.
 * It belongs to the handshake in attach.c until the pair is up, then to the
 * pair.
 *
 *         connect, HELLO           HELLO of the peer
 *   NEW -----------------> SENT -----------------------------> UP
 *    |    accept                   HELLO             READY      ^
 *    +-------------------> ACCEPTED -----> WAIT_READY ----------+
 *
 * A session is freed in any state.
 *
 * Invariants:
 *  1. tdm_shm_session_free() accepts a session at any stage of its making.
 *  2. The kernel alone tells the identity of the peer; memory that it sends is
 *     checked before it is mapped.
 * Locking: domain lock held. Spec: unix(7), doc/PROTOCOL-shm.md "Attach".
 */
#include "shm/session.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/os.h"
#include "shm/attach.h"
#include "shm/bell.h"
#include "shm/ep.h"
#include "shm/lifeline.h"
#include "shm/prove.h"
#include "shm/unexp.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Greatest number of descriptors that sessions leave to others. */
enum { RESERVED_MOST = 32 };

#define BIT(state) (1u << TDM_SHM_SESSION_##state)

/* By state: bits of the states that may follow. */
static const unsigned next[] tdm_unused = {
	[TDM_SHM_SESSION_NEW] = BIT(SENT) | BIT(ACCEPTED),
	[TDM_SHM_SESSION_SENT] = BIT(UP),
	[TDM_SHM_SESSION_ACCEPTED] = BIT(WAIT_READY),
	[TDM_SHM_SESSION_WAIT_READY] = BIT(UP),
	[TDM_SHM_SESSION_UP] = 0,
};

void tdm_shm_session_set_state(struct tdm_shm_session *s,
			       enum tdm_shm_session_state state)
{
	assert(next[s->state] & (1u << state));
	s->state = state;
}

struct tdm_shm_session *tdm_shm_session_alloc(struct tdm_shm_ep *ep)
{
	struct tdm_shm_session *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ep = ep;
	s->lifeline.fd = -1;
	s->dead.fd = -1;
	s->dead.ready = tdm_shm_dead_ready;
	s->bell_fd = -1;
	s->next_fd = -1;
	s->bounce_fd = -1;
	s->own_bell = -1;
	tdm_list_init(&s->node);
	return s;
}

void tdm_shm_session_free(struct tdm_shm_session *s)
{
	struct tdm_shm_ep *ep = s->ep;

	if (s->state == TDM_SHM_SESSION_ACCEPTED)
		ep->unauth--;
	/*
	 * The next send of the peer sees this, before its progress reads the
	 * lifeline. For the peer, the session may already be up when it is not
	 * for us.
	 */
	if (s->own.base)
		tdm_a32_store_release(
			&((struct tdm_shm_seg *)s->own.base)->hold,
			TDM_SHM_HOLD_GONE);
	tdm_list_del(&s->node);
	tdm_shm_watch_close(ep, &s->lifeline);
	tdm_shm_watch_close(ep, &s->dead);
	if (s->own_bell >= 0)
		tdm_shm_bell_release(s);
	if (s->bell_fd >= 0)
		tdm_os.close(s->bell_fd);
	if (s->next_fd >= 0)
		tdm_os.close(s->next_fd);
	if (s->bounce_fd >= 0)
		tdm_os.close(s->bounce_fd);
	ep->grown_bytes -= s->own_ring.bytes;
	ep->nbounces -= s->own_bounce.base != NULL;
	tdm_shm_region_fini(&s->own);
	tdm_shm_region_fini(&s->peer);
	tdm_shm_region_fini(&s->hints);
	tdm_shm_region_fini(&s->own_ring);
	tdm_shm_region_fini(&s->peer_ring);
	tdm_shm_region_fini(&s->next_ring);
	tdm_shm_region_fini(&s->own_bounce);
	tdm_shm_region_fini(&s->peer_bounce);
	while (s->nleft)
		tdm_shm_region_fini(&s->left[--s->nleft]);
	free(s->left);
	free(s->dirty);
	free(s->proofs);
	free(s);
}

/*
 * Uses a pidfd if the kernel has them; without one only the lifeline tells that
 * the peer has died.
 */
int tdm_shm_session_creds(struct tdm_shm_session *s)
{
	socklen_t len = sizeof(struct ucred);
	struct ucred cred;
	int fd = -1;

	if (tdm_os.getsockopt(s->lifeline.fd, SOL_SOCKET, SO_PEERCRED, &cred,
			      &len) ||
	    cred.uid != geteuid())
		return TDM_SHM_OTHER_USER;
	s->pid = cred.pid;
	len = sizeof(fd);
	if (tdm_os.getsockopt(s->lifeline.fd, SOL_SOCKET, SO_PEERPIDFD, &fd,
			      &len))
		fd = s->pid > 0 ? tdm_os.pidfd_open(s->pid, 0) : -1;
	s->dead.fd = fd;
	return 0;
}

int tdm_shm_session_watch(struct tdm_shm_session *s)
{
	int ret = tdm_shm_watch_add(s->ep, &s->lifeline);

	if (!ret && s->dead.fd >= 0)
		ret = tdm_shm_watch_add(s->ep, &s->dead);
	return ret;
}

/*
 * Not 0 when @fd is among the last fifth of the numbers that the process may
 * have, or the last RESERVED_MOST. These are for connections over TCP, which
 * need one descriptor and can be closed while idle, and for threads that sleep:
 * a session keeps its three descriptors to its end.
 */
static int reserved(int fd)
{
	rlim_t most = tdm_os_fd_limit();

	return (rlim_t)fd >= most - tdm_min(most / 5, (rlim_t)RESERVED_MOST);
}

int tdm_shm_session_prepare(struct tdm_shm_session *s)
{
	const uint32_t slots = TDM_SHM_RING_SMALL_SLOTS;
	struct tdm_shm_seg *seg;
	int ret;

	if (reserved(s->lifeline.fd))
		return -EMFILE;
	ret = tdm_shm_bell_assign(s->ep, s);
	if (ret)
		return ret;
	ret = tdm_shm_region_create(&s->own, "tandem", tdm_shm_seg_bytes(slots),
				    1);
	if (ret)
		return ret;
	seg = s->own.base;
	tdm_shm_seg_init(seg, slots, 0, s->ep->incarnation);
	/* The peer may send as soon as it has it, before the pair is up here. */
	if (tdm_shm_unexp_full(s->ep))
		tdm_a32_store_relaxed(&seg->hold, TDM_SHM_HOLD_ANNOUNCE);
	return 0;
}

int tdm_shm_session_hello(struct tdm_shm_session *s)
{
	struct tdm_shm_ep *ep = s->ep;
	struct tdm_shm_hello h = {
		.head.magic = TDM_SHM_MAGIC,
		.head.type = TDM_SHM_MSG_HELLO,
		.head.bytes = sizeof(h),
		.head.arg = ep->contexts - 1,
		.version_least = TDM_SHM_VERSION_LEAST,
		.version_most = TDM_SHM_VERSION_MOST,
		.nonce_addr = (uintptr_t)&ep->nonce,
		.nonce = ep->nonce,
		.slots = TDM_SHM_RING_SMALL_SLOTS,
		.bell = (uint32_t)s->own_bell,
		.addrlen = ep->name.len,
	};
	int fds[TDM_SHM_FDS_MOST], ret;
	const void *packet = &h;
	size_t bytes = sizeof(h);

	h.features |= TDM_SHM_FEATURE_ATOMIC | TDM_SHM_FEATURE_LEFT |
		      TDM_SHM_FEATURE_RANGES | TDM_SHM_FEATURE_STREAM;
	if (ep->barrier)
		h.features |= TDM_SHM_FEATURE_BARRIER;
	if (tdm_env.cma)
		h.features |= TDM_SHM_FEATURE_CMA;
	if (ep->domain->max_group)
		h.features |= TDM_SHM_FEATURE_GROUPS;
	memcpy(h.incarnation, ep->incarnation, sizeof(h.incarnation));
	memcpy(h.addr, ep->name.sa, sizeof(h.addr));
	fds[0] = tdm_shm_region_fd(&s->own);
	fds[1] = tdm_shm_region_fd(&ep->hints_region);
	fds[2] = ep->bell_fd;
	if (s->key) {
		ret = tdm_shm_prove_hello(s, &h);
		if (ret)
			return ret;
		packet = &s->proofs->own;
		bytes = sizeof(s->proofs->own);
	}
	ret = tdm_shm_packet_send(s->lifeline.fd, packet, bytes, fds, 3);
	if (!ret)
		tdm_shm_region_handed(&s->own);
	return ret;
}

/*
 * Check that @fd is an eventfd, or at least a file of that family: writing 8
 * bytes to it can neither raise a signal nor reach a disk file.
 */
static int eventfd_check(int fd)
{
	struct stat st;

	return !tdm_os.fstat(fd, &st) && !(st.st_mode & S_IFMT) ? 0 : -1;
}

/*
 * Not 0 when process_vm_readv(2) reads the peer's memory. Tests it with a
 * number that only the peer knows.
 */
static int cma_probe(const struct tdm_shm_session *s,
		     const struct tdm_shm_hello *h)
{
	uint64_t got = 0;
	struct iovec local = { .iov_base = &got, .iov_len = sizeof(got) };
	struct iovec remote = {
		.iov_base = (void *)(uintptr_t)h->nonce_addr,
		.iov_len = sizeof(got),
	};

	if (!tdm_env.cma || s->pid <= 0 || !(h->features & TDM_SHM_FEATURE_CMA))
		return 0;
	return tdm_os.process_vm_readv(s->pid, &local, 1, &remote, 1, 0) ==
		       (ssize_t)sizeof(got) &&
	       got == h->nonce;
}

enum tdm_shm_why tdm_shm_session_take(struct tdm_shm_session *s,
				      const struct tdm_shm_hello *h, int *fds)
{
	int ret;

	memcpy(s->incarnation, h->incarnation, sizeof(s->incarnation));
	s->features = h->features;
	s->peer_slots = h->slots;
	s->peer_bell = h->bell;
	ret = tdm_shm_region_map(&s->peer, fds[0], tdm_shm_seg_bytes(h->slots),
				 1);
	if (!ret &&
	    tdm_shm_seg_check(s->peer.base, h->slots, 0, h->incarnation))
		ret = TDM_SHM_BAD_REGION;
	if (!ret)
		ret = tdm_shm_region_map(&s->hints, fds[1], TDM_SHM_HINT_BYTES,
					 0);
	if (!ret && eventfd_check(fds[2]))
		ret = TDM_SHM_BAD_REGION;
	if (ret)
		return ret == TDM_SHM_BAD_REGION ? TDM_SHM_WHY_SEGMENT :
						   TDM_SHM_WHY_RESOURCE;
	s->bell_fd = fds[2];
	fds[2] = -1;
	s->pair->cma = cma_probe(s, h);
	s->pair->peer_contexts = h->head.arg + 1;
	s->pair->peer_groups = !!(h->features & TDM_SHM_FEATURE_GROUPS);
	s->pair->peer_atomics = !!(h->features & TDM_SHM_FEATURE_ATOMIC);
	s->pair->peer_ranges = !!(h->features & TDM_SHM_FEATURE_RANGES);
	s->pair->peer_streams = !!(h->features & TDM_SHM_FEATURE_STREAM);
	return TDM_SHM_WHY_NONE;
}
