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
 * An epoll instance that joins the two is made only for the application,
 * which gets one descriptor for FI_WAIT_FD. It is one more level of epoll over
 * those of the transports, and the kernel allows few levels and few paths (a
 * descriptor may be reached by 100 paths of three levels): FI_WAIT_POLLFD and
 * the blocking reads do without. FI_WAIT_MUTEX_COND is a condition variable
 * that a helper signals for that descriptor, once the application asked for
 * it.
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
	unsigned int spin_fails;   /* fruitless pollings in a row; G: domain */
	unsigned int spin_skip;	   /* sleeps left without polling; G: domain */
	struct tdm_condwait *cond; /* NULL: not asked for; G: domain */
	struct tdm_waitset_member member;
};

/*
 * Prepare @w for wait object @obj: FI_WAIT_UNSPEC becomes FI_WAIT_FD, whose
 * descriptors are made when somebody first waits, as with FI_WAIT_MUTEX_COND;
 * those of other objects are made here. @set counts for FI_WAIT_SET only.
 * Errors: -FI_EINVAL for unknown objects and for FI_WAIT_SET without a set,
 * -FI_EMFILE and the like from the system; @w may be given to tdm_wait_fini()
 * then. Lock: held. Spec: fi_cq(3), wait_obj.
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
 * Leave the wait set, before the things that @look uses are freed. Harmless
 * without a set. Lock: not held.
 */
void tdm_wait_leave(struct tdm_wait *w);

/*
 * Release descriptors, leave the set. Accepts a zeroed or half-initialised @w.
 * Lock: not held.
 */
void tdm_wait_fini(struct tdm_wait *w);

/* Can the blocking reads of the object be called? */
static inline int tdm_wait_blocks(const struct tdm_wait *w)
{
	return w->obj != FI_WAIT_NONE && w->obj != FI_WAIT_SET;
}

/* Make the wait object readable, armed or not. Lock: held. */
void tdm_wait_wake(struct tdm_wait *w);

/* An entry was written: wake whoever sleeps on the object. Lock: held. */
static inline void tdm_wait_signal(struct tdm_wait *w)
{
	if (tdm_unlikely(w->armed))
		tdm_wait_wake(w);
}

/*
 * fi_control(3) of an object with a wait object. FI_GETWAIT writes an int for
 * FI_WAIT_FD, fills a struct fi_wait_pollfd for FI_WAIT_POLLFD (nfds in: room,
 * out: needed; -FI_ETOOSMALL) or a struct fi_mutex_cond for
 * FI_WAIT_MUTEX_COND, and gives the set's for FI_WAIT_SET. FI_GETWAITOBJ
 * writes the enum fi_wait_obj.
 * Errors: -FI_ENODATA without a descriptor to give, -FI_EINVAL without @arg,
 * -FI_ENOSYS for other commands, descriptor errors. Lock: taken inside.
 */
int tdm_wait_control(struct tdm_wait *w, int command, void *arg);

/*
 * Is it safe to sleep on @w now? The caller has found its object empty, so an
 * older signal is cleared. Returns 0, -FI_EAGAIN when progress is pending, or
 * -FI_EINVAL without a descriptor to sleep on. Lock: held. Spec: fi_trywait(3).
 */
int tdm_wait_try(struct tdm_wait *w);

/*
 * The check of a wait set before it sleeps, for a member that has nothing to
 * read: tdm_wait_try(), which succeeds where no thread sleeps (FI_WAIT_YIELD).
 * Lock: held.
 */
int tdm_wait_look(struct tdm_wait *w);

/*
 * Block until @ready(arg) is true: test, progress, test, arm, sleep, repeat.
 * Polls for some microseconds before it sleeps, and less often each time that
 * polling was fruitless: an idle object uses no processor time. @timeout_ms <
 * 0: for ever. @ready runs with the lock held. tdm_wait_blocks() must hold.
 * *@interrupt (NULL: none) ends one call: it is set under the lock, followed by
 * tdm_wait_wake(), and cleared by the call it ends. Lock: taken and released
 * inside; not held by the caller. Returns 0 with the lock HELD when @ready was
 * true; else with the lock not held -FI_EAGAIN when the time is over,
 * *@interrupt was set or the sleep was interrupted by a signal, or a descriptor
 * error.
 */
int tdm_wait_until(struct tdm_wait *w, int (*ready)(void *arg), void *arg,
		   int timeout_ms, int *interrupt);

/* The time @timeout_ms from now, ns; UINT64_MAX for a negative one. */
uint64_t tdm_wait_deadline(int timeout_ms);

/* Milliseconds until @deadline_ns, rounded up; 0: over, -1: no deadline. */
int tdm_wait_left(uint64_t deadline_ns);

#endif /* TDM_PEER_WAIT_H */
