/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engines driven by reading an event queue: fi_domain(3) asks that, with manual
 * progress, an operation advances when the application reads or waits on the
 * queue where it will be reported, and that may be an event queue alone. Each
 * domain that reports to the queue is one of its engines; a read makes a pass
 * of each, and who sleeps on the queue sleeps on them too.
 *
 * Sleeping is a wait set's: the one that the application put the queue into,
 * or one of the queue's own, made when somebody first sleeps. An application
 * that reads no events, or never sleeps on them, pays for neither.
 */
#ifndef TDM_PEER_EQ_DRIVE_H
#define TDM_PEER_EQ_DRIVE_H

#include <pthread.h>

#include "peer/waitset.h"
#include "base/atomic.h"
#include "tdm_engine.h"
#include "base/list.h"

struct tdm_eq_drive {
	pthread_mutex_t mutex;	 /* outside of all other locks */
	struct tdm_list engines; /* G: mutex */
	tdm_a32 count;		 /* of engines; read without the mutex */
	struct tdm_waitset *set; /* NULL: nobody slept yet; G: mutex */
	int own_set;		 /* it is closed with the queue; G: mutex */
};

/* Afterwards drive->set may be set to the application's. */
void tdm_eq_drive_init(struct tdm_eq_drive *drive);

/*
 * Leave the wait set with @member, close it if it is the queue's own. There
 * are no engines any more. Lock: not held.
 */
void tdm_eq_drive_fini(struct tdm_eq_drive *drive,
		       struct tdm_waitset_member *member);

/*
 * Drive @engine too, counted. Errors: -FI_ENOMEM, descriptor errors when
 * somebody sleeps on the queue. Lock: not held.
 */
int tdm_eq_drive_add(struct tdm_eq_drive *drive,
		     struct tdm_engine *engine) tdm_must_check;

/* Undo one tdm_eq_drive_add(); it is not used by us afterwards. */
void tdm_eq_drive_del(struct tdm_eq_drive *drive, struct tdm_engine *engine);

/*
 * A pass of progress of each engine, but for those that others have driven
 * since the last one. Lock: not held.
 */
void tdm_eq_drive_all(struct tdm_eq_drive *drive);

static inline void tdm_eq_drive_pass(struct tdm_eq_drive *drive)
{
	if (tdm_a32_load_relaxed(&drive->count))
		tdm_eq_drive_all(drive);
}

/*
 * Get the set to sleep on; made now for wait object @obj when there is none,
 * with the queue as @member. Errors: -FI_ENOMEM, descriptor errors.
 * Lock: not held.
 */
int tdm_eq_drive_set(struct tdm_eq_drive *drive, enum fi_wait_obj obj,
		     struct tdm_waitset_member *member,
		     struct tdm_waitset **set) tdm_must_check;

/*
 * fi_trywait(3) of the engines: 0, or -FI_EAGAIN. For a queue in a set of the
 * application's. Lock: not held.
 */
int tdm_eq_drive_look(struct tdm_eq_drive *drive);

#endif /* TDM_PEER_EQ_DRIVE_H */
