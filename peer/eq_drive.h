/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engines that make progress when an event queue is read. With manual
 * progress, fi_domain(3) demands that an operation advances when the
 * application reads or waits on the queue where the operation will be reported,
 * and that may be an event queue. Each domain that reports to the queue is one
 * of its engines; a read makes a pass of each, and a sleep on the queue is a
 * sleep on them too.
 *
 * The queue sleeps through a wait set: the one that the application put it
 * into, or one of its own, made at the first sleep. So an application that
 * never reads or never sleeps on an event queue pays nothing for it.
 */
#ifndef TDM_PEER_EQ_DRIVE_H
#define TDM_PEER_EQ_DRIVE_H

#include <pthread.h>

#include "base/atomic.h"
#include "base/list.h"
#include "peer/waitset.h"
#include "tdm_engine.h"

struct tdm_eq_drive {
	pthread_mutex_t mutex;	 /* outside of all other locks */
	struct tdm_list engines; /* G: mutex */
	tdm_a32 count;		 /* number of engines; read without the mutex */
	struct tdm_waitset *set; /* NULL: no sleep so far; G: mutex */
	int own_set;		 /* set was made by the queue; G: mutex */
};

/* After this the caller may set drive->set to the application's wait set. */
void tdm_eq_drive_init(struct tdm_eq_drive *drive);

/*
 * Take @member out of the wait set, and close the set if it is the queue's own.
 * All engines must have been removed. Lock: not held.
 */
void tdm_eq_drive_fini(struct tdm_eq_drive *drive,
		       struct tdm_waitset_member *member);

/*
 * Add @engine to those that the queue drives; calls are counted. Errors:
 * -FI_ENOMEM, descriptor errors while a reader sleeps on the queue. Lock: not
 * held.
 */
int tdm_eq_drive_add(struct tdm_eq_drive *drive,
		     struct tdm_engine *engine) tdm_must_check;

/*
 * Undo one tdm_eq_drive_add(). After the last one, nothing here uses @engine
 * any more.
 */
void tdm_eq_drive_del(struct tdm_eq_drive *drive, struct tdm_engine *engine);

/*
 * Make a pass of progress of each engine, except those of which another thread
 * has made one since the last call. Lock: not held.
 */
void tdm_eq_drive_all(struct tdm_eq_drive *drive);

static inline void tdm_eq_drive_pass(struct tdm_eq_drive *drive)
{
	if (tdm_a32_load_relaxed(&drive->count))
		tdm_eq_drive_all(drive);
}

/*
 * Set *@set to the wait set on which the queue sleeps. If it has none, make one
 * for wait object @obj and put the queue into it, as @member. Errors: -FI_ENOMEM, descriptor
 * errors. Lock: not held.
 */
int tdm_eq_drive_set(struct tdm_eq_drive *drive, enum fi_wait_obj obj,
		     struct tdm_waitset_member *member,
		     struct tdm_waitset **set) tdm_must_check;

/*
 * fi_trywait(3) of all engines, for a queue in a wait set of the application.
 * Returns 0 or -FI_EAGAIN. Lock: not held.
 */
int tdm_eq_drive_look(struct tdm_eq_drive *drive);

#endif /* TDM_PEER_EQ_DRIVE_H */
