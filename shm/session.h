/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions: the socket, segments and descriptors that two processes share. */
#ifndef TDM_SHM_SESSION_H
#define TDM_SHM_SESSION_H

#include "base/base.h"
#include "shm/attach.h"

struct tdm_shm_ep;

/*
 * Allocates an empty session; NULL: out of memory. Freeing one closes its
 * descriptors and mappings; it does not change the pair.
 */
struct tdm_shm_session *tdm_shm_session_alloc(struct tdm_shm_ep *ep);
void tdm_shm_session_free(struct tdm_shm_session *s);

/* Change the state of @s to @state. The step must be legal (asserted). */
void tdm_shm_session_set_state(struct tdm_shm_session *s,
			       enum tdm_shm_session_state state);

/*
 * Ask the kernel which process is at the other end of the connected socket, and
 * sets s->pid. Errors: TDM_SHM_OTHER_USER: it has another user id.
 */
int tdm_shm_session_creds(struct tdm_shm_session *s) tdm_must_check;

/* Let the control loop watch the socket and the pidfd. Errors: -errno. */
int tdm_shm_session_watch(struct tdm_shm_session *s) tdm_must_check;

/*
 * Allocate a doorbell bit and make the segment for the peer. Errors: -EMFILE:
 * the session's socket is among the last descriptors of the process, which are
 * not for sessions; else -errno.
 */
int tdm_shm_session_prepare(struct tdm_shm_session *s) tdm_must_check;

/* Send HELLO. Errors: -errno. */
int tdm_shm_session_hello(struct tdm_shm_session *s) tdm_must_check;

/*
 * Check and map the segment and the hints that came with a HELLO; s->pair must
 * be set. On success fds[2] becomes the session's; the other descriptors stay
 * the caller's. Returns WHY_NONE, or why the HELLO is refused.
 */
enum tdm_shm_why tdm_shm_session_take(struct tdm_shm_session *s,
				      const struct tdm_shm_hello *h,
				      int *fds) tdm_must_check;

#endif /* TDM_SHM_SESSION_H */
