/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lifeline, which is the attach socket of a session, and the packets that
 * go over it.
 */
#ifndef TDM_SHM_LIFELINE_H
#define TDM_SHM_LIFELINE_H

#include <stddef.h>

#include "base/base.h"
#include "shm/attach.h"

struct tdm_shm_ep;
struct tdm_shm_pair;

/*
 * Not 0 while the kernel reports the peer's process as alive. Makes two system
 * calls.
 */
int tdm_shm_session_alive(const struct tdm_shm_session *s);

/*
 * add: from now on call w->ready(), and wake sleepers, while w->fd is readable.
 * Errors: -errno. del: end this.
 */
int tdm_shm_watch_add(struct tdm_shm_ep *ep,
		      struct tdm_shm_watch *w) tdm_must_check;
void tdm_shm_watch_del(struct tdm_shm_ep *ep, struct tdm_shm_watch *w);
void tdm_shm_watch_close(struct tdm_shm_ep *ep, struct tdm_shm_watch *w);

/*
 * Send one packet, with the descriptors fds[@nfds]. Never blocks. Errors:
 * -FI_EAGAIN when the socket is full, -errno.
 */
int tdm_shm_packet_send(int fd, const void *buf, size_t len, const int *fds,
			int nfds) tdm_must_check;
int tdm_shm_msg_send(int fd, enum tdm_shm_msg_type type, uint32_t arg,
		     int pass_fd) tdm_must_check;

/*
 * Receive and decode one packet. Out: *@msg and fds[TDM_SHM_FDS_MOST], which
 * the caller has to close (-1: none). Errors: -FI_EAGAIN when there is none,
 * -FI_ECONNRESET at the end, -FI_EPROTO for a malformed packet; no
 * descriptor is left open then.
 */
int tdm_shm_msg_recv(int fd, struct tdm_shm_msg *msg, int *fds) tdm_must_check;

/*
 * Make a ring of @slots for the pair's next generation and send it to the peer.
 * The caller then writes MOVED to the old ring and calls
 * tdm_shm_lifeline_moved(). Errors: -FI_ENOSPC: the endpoint's rings would be
 * too large; -errno. After an error nothing has changed.
 */
int tdm_shm_lifeline_ring(struct tdm_shm_pair *pair,
			  uint32_t slots) tdm_must_check;
void tdm_shm_lifeline_moved(struct tdm_shm_pair *pair);

/*
 * Map the peer's next ring; map its bounce area. Errors: -FI_EPROTO when none
 * has arrived or it is not as required, -FI_EAGAIN when it cannot be mapped
 * now.
 */
int tdm_shm_lifeline_next(struct tdm_shm_pair *pair) tdm_must_check;
int tdm_shm_lifeline_area(struct tdm_shm_pair *pair) tdm_must_check;

/* Read the packets that are still in the lifeline of @pair, which is broken. */
void tdm_shm_lifeline_last(struct tdm_shm_pair *pair);

/* Make the pair's bounce area and send it to the peer. Errors: -errno. */
int tdm_shm_lifeline_bounce(struct tdm_shm_pair *pair) tdm_must_check;

/*
 * The tdm_shm_watch.ready() of the lifeline and of the pidfd of a session that
 * is up.
 */
void tdm_shm_lifeline_ready(struct tdm_shm_watch *w, uint32_t events);
void tdm_shm_dead_ready(struct tdm_shm_watch *w, uint32_t events);

#endif /* TDM_SHM_LIFELINE_H */
