/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Poll set, fi_poll(3): one call that makes progress and tells which of many
 * completion queues and counters of a domain have something new.
 */
#ifndef TDM_PEER_POLLSET_H
#define TDM_PEER_POLLSET_H

#include <rdma/fi_domain.h>

#include "tdm_engine.h"

struct tdm_pollset;

/*
 * Open a poll set for queues that @engine drives. In: @attr as the application
 * gave it to fi_poll_open(3), or NULL. Out: *@set. Errors: -FI_EINVAL for
 * flags, -FI_ENOMEM. Lock: not needed.
 *
 * Adding an object that is already in the set changes nothing; removing one
 * that is not in it returns -FI_EINVAL, as do objects of another domain or
 * class. fi_close of an object returns -FI_EBUSY while it is in a set, fi_close
 * of the set while it has members.
 */
int tdm_pollset_open(struct tdm_engine *engine, const struct fi_poll_attr *attr,
		     struct tdm_pollset **set) tdm_must_check;

struct fid_poll *tdm_pollset_fid(struct tdm_pollset *set);

/* As tdm_cq_on_close(). */
void tdm_pollset_on_close(struct tdm_pollset *set, void (*closed)(void *arg),
			  void *arg);

#endif /* TDM_PEER_POLLSET_H */
