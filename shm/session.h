/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions: the socket, segments and descriptors that two processes share.
 */
#ifndef TDM_SHM_SESSION_H
#define TDM_SHM_SESSION_H

#include "base/base.h"
#include "shm/attach.h"

struct tdm_shm_ep;

/* An empty session, or NULL. Freeing closes descriptors only, not the pair. */
struct tdm_shm_session *tdm_shm_session_alloc(struct tdm_shm_ep *ep);
void tdm_shm_session_free(struct tdm_shm_session *s);

/* Make a legal step from the state of @s to @state. */
void tdm_shm_session_set_state(struct tdm_shm_session *s,
			       enum tdm_shm_session_state state);

/*
 * Ask the kernel who is at the other end of the connected socket. Errors:
 * TDM_SHM_OTHER_USER.
 */
int tdm_shm_session_creds(struct tdm_shm_session *s) tdm_must_check;

/* Have the control loop watch socket and pidfd. Errors: -errno. */
int tdm_shm_session_watch(struct tdm_shm_session *s) tdm_must_check;

/* Make our doorbell bit and segment for the peer. Errors: -errno. */
int tdm_shm_session_prepare(struct tdm_shm_session *s) tdm_must_check;

/* Send HELLO. Errors: -errno. */
int tdm_shm_session_hello(struct tdm_shm_session *s) tdm_must_check;

/*
 * Check and map the segment and hints of a HELLO; s->pair is set. fds[2]
 * becomes the session's on success, the others stay the caller's.
 */
enum tdm_shm_why tdm_shm_session_take(struct tdm_shm_session *s,
				      const struct tdm_shm_hello *h,
				      int *fds) tdm_must_check;

#endif /* TDM_SHM_SESSION_H */
