/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping on one queue object (CQ, counter, EQ): its wait object as
 * fi_control(FI_GETWAIT) hands it out, the signal that a completion was
 * written, and the loop of a blocking read.
 *
 * The wait object is one epoll instance holding two descriptors: the
 * engine's wait_fd (anything that needs progress) and an eventfd of its own
 * (an entry was written, or fi_cq_signal was called). It exists only for
 * objects opened with a wait object; without one nobody pays for it.
 */
#ifndef TDM_PEER_WAIT_H
#define TDM_PEER_WAIT_H

#include <rdma/fi_eq.h>

#include "tdm_engine.h"

struct tdm_wait {
	struct tdm_engine *engine;
	enum fi_wait_obj obj;	/* NONE, FD, POLLFD or YIELD after init */
	int epfd;		/* -1 without a descriptor */
	int eventfd;		/* -1 without a descriptor */
	int signaled;		/* eventfd holds a count; G: domain */
};

/*
 * Prepare @w for wait object @obj: FI_WAIT_UNSPEC becomes FI_WAIT_FD.
 * Errors: -FI_ENOSYS for wait objects that are not supported
 * (FI_WAIT_SET, FI_WAIT_MUTEX_COND), -FI_EMFILE and the like from the system.
 * Lock: held. Spec: fi_cq(3), wait_obj.
 */
int tdm_wait_init(struct tdm_wait *w, struct tdm_engine *engine,
		  enum fi_wait_obj obj) tdm_must_check;

/* Release descriptors. Zero-safe after a failed init. */
void tdm_wait_fini(struct tdm_wait *w);

/* An entry was written: make the wait object readable. Lock: held. */
void tdm_wait_signal(struct tdm_wait *w);

/* The object was found empty: take back the signal. Lock: held. */
void tdm_wait_reset(struct tdm_wait *w);

/*
 * fi_control(FI_GETWAIT): writes an int for FI_WAIT_FD, fills a
 * struct fi_wait_pollfd for FI_WAIT_POLLFD (nfds in: room, out: needed;
 * -FI_ETOOSMALL). Errors: -FI_ENODATA without a wait object.
 */
int tdm_wait_get(struct tdm_wait *w, void *arg);

/*
 * Is it safe to sleep on @w now? 0, or -FI_EAGAIN when progress is pending.
 * Lock: held. Spec: fi_trywait(3).
 */
int tdm_wait_try(struct tdm_wait *w);

/*
 * Block until @ready(arg) is true: progress, test, arm, sleep, repeat.
 * @timeout_ms < 0: for ever. @ready runs with the lock held. Works for every
 * wait object, FI_WAIT_NONE excluded.
 * Lock: taken and released inside; not held by the caller.
 * Returns 0 with the lock HELD when @ready said yes; -FI_EAGAIN, lock not
 * held, when the time is over or the sleep was interrupted by a signal or by
 * @interrupt (a flag another thread sets under the lock).
 */
int tdm_wait_until(struct tdm_wait *w, int (*ready)(void *arg), void *arg,
		   int timeout_ms, const int *interrupt);

#endif /* TDM_PEER_WAIT_H */
