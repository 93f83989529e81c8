/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wait set, fi_wait_open(3): one wait object for completion queues, counters
 * and event queues of any domains of a fabric, which become members when they
 * are opened with FI_WAIT_SET.
 */
#ifndef TDM_PEER_WAITSET_H
#define TDM_PEER_WAITSET_H

#include <rdma/fi_eq.h>

#include "base/base.h"
#include "base/list.h"

struct tdm_waitset;

/* Embedded in each object that may become a member. All 0: it is in no set. */
struct tdm_waitset_member {
	struct tdm_list node;
	struct tdm_waitset *set; /* NULL: none */
	int joined;		 /* listed in set */
	int own_fd;		 /* when readable, look() is called; -1: none */
	int engine_fd; /* its domain's, shared with others; -1: none */
	/*
	 * Called before a thread sleeps on the set. Makes progress if @progress
	 * is not 0. Returns 1: the object has something to read; 0: it is
	 * armed, and may be slept on; -FI_EAGAIN: neither, call again. Takes
	 * the object's lock itself.
	 */
	int (*look)(void *arg, int progress);
	void *arg;
};

/*
 * Open a set. In: @attr as the application gave it to fi_wait_open(3), or NULL.
 * Out: *@set; its fi_close returns -FI_EBUSY while it has members. Errors:
 * -FI_EINVAL for flags and for wait objects that a set cannot have
 * (FI_WAIT_NONE, FI_WAIT_SET), -FI_ENOMEM, descriptor errors.
 */
int tdm_waitset_open(const struct fi_wait_attr *attr,
		     struct tdm_waitset **set) tdm_must_check;

struct tdm_waitset *tdm_waitset_from_fid(struct fid_wait *fid);
struct fid_wait *tdm_waitset_fid(struct tdm_waitset *set);

/* Not 0 when the set has FI_WAIT_YIELD: its members need no descriptors. */
int tdm_waitset_polls(const struct tdm_waitset *set);

/*
 * Make @m a member of m->set. The caller has set all other fields of @m; own_fd
 * must be readable when the object needs arming. Errors: those of epoll_ctl(2).
 * Lock: neither a domain's nor an event queue's may be held.
 */
int tdm_waitset_join(struct tdm_waitset_member *m) tdm_must_check;

/*
 * Take @m out of its set; does nothing when it is in none. Lock: as
 * tdm_waitset_join().
 */
void tdm_waitset_leave(struct tdm_waitset_member *m);

/*
 * fi_trywait(3) for @set. Returns 0; -FI_EAGAIN when a member has something to
 * read or to progress; -FI_EINVAL without a descriptor.
 */
int tdm_waitset_trywait(struct tdm_waitset *set);

/*
 * fi_wait(3) for @set: makes progress and sleeps until a member has something
 * to read. Returns 0, -FI_ETIMEDOUT, -FI_EINTR, or a descriptor error.
 */
int tdm_waitset_sleep(struct tdm_waitset *set, int timeout_ms);

/* Have fi_close call @closed(@arg) when it ends @set. */
void tdm_waitset_on_close(struct tdm_waitset *set, void (*closed)(void *arg),
			  void *arg);

#endif /* TDM_PEER_WAITSET_H */
