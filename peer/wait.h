/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping on one queue object (CQ or counter): its wait object as
 * fi_control(FI_GETWAIT) hands it out, the signal that a completion was
 * written, and the loop of a blocking read.
 *
 * A sleeper polls two descriptors: the engine's wait_fd (anything that
 * needs progress) and an eventfd of its own (an entry was written, or
 * fi_cq_signal was called). They exist only for objects opened with a wait
 * object and are made at the first sleep; the eventfd is written only while the
 * object is armed. So a program that never sleeps pays nothing.
 *
 * An epoll instance that joins the two is made only for the application, which
 * gets one descriptor for FI_WAIT_FD. It adds a level of epoll to those of the
 * transports, and the kernel allows few levels and few chains of them (100
 * chains of three levels that end in one descriptor). So FI_WAIT_POLLFD and the
 * blocking reads do without it. FI_WAIT_MUTEX_COND is a condition variable that
 * a helper thread signals when that descriptor becomes readable; the helper
 * starts when the application asks for the wait object.
 *
 * With FI_WAIT_SET the two descriptors are watched by a wait set, and the
 * object itself cannot be slept on.
 */
#ifndef TDM_PEER_WAIT_H
#define TDM_PEER_WAIT_H

#include <rdma/fi_eq.h>

#include "peer/waitset.h"
#include "tdm_engine.h"

struct tdm_condwait;

struct tdm_wait {
	struct tdm_engine *engine;
	enum fi_wait_obj obj; /* anything but UNSPEC after init */
	int epfd;	      /* for the application; -1: none */
	int eventfd;	      /* -1: no thread has waited */
	int engine_fd;	      /* valid with eventfd; the engine's */
	int armed;	      /* the next signal must be seen; G: domain */
	int signaled;	      /* eventfd holds a count; G: domain */
	int exported;	      /* FI_GETWAIT was answered; G: domain */
	/* threads asleep in tdm_wait_until(); G: domain */
	unsigned int sleepers;
	unsigned int spin_fails; /* polls without a result in a row; G: domain */
	unsigned int spin_skip;	 /* sleeps left without polling; G: domain */
	struct tdm_condwait *cond; /* NULL: not asked for; G: domain */
	struct tdm_waitset_member member;
};

/*
 * Prepare @w for wait object @obj. FI_WAIT_UNSPEC becomes FI_WAIT_FD. The
 * descriptors of FI_WAIT_UNSPEC and FI_WAIT_MUTEX_COND are made when a thread
 * first waits, those of other objects here. @set is used for FI_WAIT_SET only.
 * Errors: -FI_EINVAL for unknown objects and for FI_WAIT_SET without a set,
 * -FI_EMFILE and the like from the system. After an error @w may still be
 * passed to tdm_wait_fini(). Lock: held. Spec: fi_cq(3), wait_obj.
 */
int tdm_wait_init(struct tdm_wait *w, struct tdm_engine *engine,
		  enum fi_wait_obj obj, struct fid_wait *set) tdm_must_check;

/*
 * Second half of tdm_wait_init(): join the wait set, if there is one. For
 * @look(@arg) see struct tdm_waitset_member. Lock: not held.
 */
int tdm_wait_join(struct tdm_wait *w, int (*look)(void *arg, int progress),
		  void *arg) tdm_must_check;

/*
 * Take @w out of its wait set; does nothing without one. Call it before freeing
 * anything that the look() given to tdm_wait_join() uses. Lock: not held.
 */
void tdm_wait_leave(struct tdm_wait *w);

/*
 * Take @w out of its wait set and close its descriptors. Accepts a zeroed or
 * half-initialised @w. Lock: not held.
 */
void tdm_wait_fini(struct tdm_wait *w);

/* Not 0 when the blocking reads of the object may be called. */
static inline int tdm_wait_blocks(const struct tdm_wait *w)
{
	return w->obj != FI_WAIT_NONE && w->obj != FI_WAIT_SET;
}

/* Make the wait object readable, armed or not. Lock: held. */
void tdm_wait_wake(struct tdm_wait *w);

/*
 * Called after an entry was written: wakes the threads that sleep on the
 * object. Lock: held.
 */
static inline void tdm_wait_signal(struct tdm_wait *w)
{
	if (tdm_unlikely(w->armed))
		tdm_wait_wake(w);
}

/*
 * fi_control(3) of an object with a wait object. FI_GETWAIT writes an int for
 * FI_WAIT_FD, fills a struct fi_wait_pollfd for FI_WAIT_POLLFD (nfds in: room,
 * out: needed; -FI_ETOOSMALL) or a struct fi_mutex_cond for
 * FI_WAIT_MUTEX_COND, and answers for the wait set in the case of FI_WAIT_SET.
 * FI_GETWAITOBJ
 * writes the enum fi_wait_obj.
 * Errors: -FI_ENODATA without a descriptor to give, -FI_EINVAL without @arg,
 * -FI_ENOSYS for other commands, descriptor errors. Lock: taken inside.
 */
int tdm_wait_control(struct tdm_wait *w, int command, void *arg);

/*
 * Prepare to sleep on @w. The caller has found its object empty, so an older
 * signal is cleared. Returns 0: the caller may sleep; -FI_EAGAIN when progress
 * is pending; -FI_EINVAL without a descriptor to sleep on. Lock: held. Spec:
 * fi_trywait(3).
 */
int tdm_wait_try(struct tdm_wait *w);

/*
 * For a wait set that is about to sleep, when this member has nothing to read:
 * arms the member. Returns as tdm_wait_try(), but 0 for an object on which no
 * thread can sleep, such as FI_WAIT_YIELD. Does not start the thread of a
 * condition variable. Lock: held.
 */
int tdm_wait_look(struct tdm_wait *w);

/*
 * Block until @ready(arg) is true: test, progress, test, arm, sleep, repeat.
 * Polls for some microseconds before it sleeps, and does so less often each
 * time that polling was fruitless, so that an idle object uses no processor
 * time. @timeout_ms < 0: for ever. @ready runs with the lock held.
 * tdm_wait_blocks() must hold. To end one call, another thread sets *@interrupt
 * (NULL: none) under the lock and calls tdm_wait_wake(); the call that ends
 * clears it. Lock: taken and released inside; not held by the caller. Returns 0
 * with the lock HELD when @ready was true; else with the lock not held
 * -FI_EAGAIN when the time is over, *@interrupt was set or the sleep was
 * interrupted by a signal, or a descriptor error.
 */
int tdm_wait_until(struct tdm_wait *w, int (*ready)(void *arg), void *arg,
		   int timeout_ms, int *interrupt);

/* Returns the time @timeout_ms from now, ns; UINT64_MAX if that is negative. */
uint64_t tdm_wait_deadline(int timeout_ms);

/*
 * Returns the milliseconds until @deadline_ns, rounded up; 0: over, -1: no
 * deadline.
 */
int tdm_wait_left(uint64_t deadline_ns);

#endif /* TDM_PEER_WAIT_H */
