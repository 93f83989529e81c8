/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_WAIT_MUTEX_COND: a mutex and a condition variable that stand for a
 * descriptor. A helper thread sleeps on the descriptor and broadcasts when it
 * becomes readable. It makes no progress and takes no lock but the mutex that
 * the application sees, so that an application may hold the mutex while it
 * calls fi_trywait(3), as it must to miss no broadcast.
 */
#ifndef TDM_PEER_CONDWAIT_H
#define TDM_PEER_CONDWAIT_H

#include <rdma/fi_eq.h>

#include "base/base.h"

struct tdm_condwait;

/*
 * Start a helper for @fd, which the caller keeps and closes after the helper
 * has ended. Out: *@cond. Errors: -FI_ENOMEM, -FI_EMFILE, -FI_EAGAIN and the
 * like from the system.
 */
int tdm_condwait_open(int fd, struct tdm_condwait **cond) tdm_must_check;

/*
 * End the helper and free @cond; no thread may wait on it. @cond may be NULL.
 */
void tdm_condwait_close(struct tdm_condwait *cond);

/*
 * Called when a thread is about to wait: the helper begins to watch the
 * descriptor. @cond may be NULL.
 */
void tdm_condwait_go(struct tdm_condwait *cond);

/* Fill @out with the wait object that FI_GETWAIT returns. */
void tdm_condwait_get(struct tdm_condwait *cond, struct fi_mutex_cond *out);

#endif /* TDM_PEER_CONDWAIT_H */
