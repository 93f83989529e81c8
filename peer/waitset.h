/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wait set, fi_wait_open(3): one wait object for completion queues, counters
 * and event queues of any domains of a fabric, which join when they are opened
 * with FI_WAIT_SET.
 */
#ifndef TDM_PEER_WAITSET_H
#define TDM_PEER_WAITSET_H

#include <rdma/fi_eq.h>

#include "base/base.h"
#include "base/list.h"

struct tdm_waitset;

/* Embedded in each object that may join. Zeroed: it is in no set. */
struct tdm_waitset_member {
	struct tdm_list node;
	struct tdm_waitset *set; /* NULL: none */
	int joined;		 /* listed in set */
	int own_fd;		 /* readable: call look(); -1: none */
	int engine_fd; /* its domain's, shared with others; -1: none */
	/*
	 * Returns 1: the object has something to read; 0: it may be slept on
	 * and is armed; -FI_EAGAIN: neither, call again. Makes progress if
	 * @progress is not 0. Takes the object's lock itself.
	 */
	int (*look)(void *arg, int progress);
	void *arg;
};

/*
 * Open a set. In: @attr as fi_wait_open(3) got it, or NULL. Out: *@set; its
 * fi_close gives -FI_EBUSY while it has members. Errors: -FI_EINVAL for flags
 * and for wait objects that a set cannot have (FI_WAIT_NONE, FI_WAIT_SET),
 * -FI_ENOMEM, descriptor errors.
 */
int tdm_waitset_open(const struct fi_wait_attr *attr,
		     struct tdm_waitset **set) tdm_must_check;

struct tdm_waitset *tdm_waitset_from_fid(struct fid_wait *fid);
struct fid_wait *tdm_waitset_fid(struct tdm_waitset *set);

/* Not 0: FI_WAIT_YIELD, its members need no descriptors. */
int tdm_waitset_polls(const struct tdm_waitset *set);

/*
 * Put @m into m->set; all other fields of @m are set by the caller, own_fd
 * readable when the object needs arming. Errors: those of epoll_ctl(2).
 * Lock: neither a domain's nor an event queue's may be held.
 */
int tdm_waitset_join(struct tdm_waitset_member *m) tdm_must_check;

/* Take @m out; harmless when it is in no set. Lock: as tdm_waitset_join(). */
void tdm_waitset_leave(struct tdm_waitset_member *m);

/*
 * fi_trywait(3): 0, -FI_EAGAIN when a member has something to read or to
 * progress, -FI_EINVAL without a descriptor.
 */
int tdm_waitset_trywait(struct tdm_waitset *set);

/*
 * fi_wait(3): progress and sleep until a member has something to read. 0,
 * -FI_ETIMEDOUT, -FI_EINTR, descriptor errors.
 */
int tdm_waitset_sleep(struct tdm_waitset *set, int timeout_ms);

/* Run @closed(@arg) when fi_close ends @set. */
void tdm_waitset_on_close(struct tdm_waitset *set, void (*closed)(void *arg),
			  void *arg);

#endif /* TDM_PEER_WAITSET_H */
