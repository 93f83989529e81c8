/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Poll set, fi_poll(3): one call that makes progress and says which of many
 * completion queues and counters of a domain have something new.
 */
#ifndef TDM_PEER_POLLSET_H
#define TDM_PEER_POLLSET_H

#include <rdma/fi_domain.h>

#include "tdm_engine.h"

struct tdm_pollset;

/*
 * Open a poll set for queues that @engine drives. In: @attr as
 * fi_poll_open(3) got it, or NULL. Out: *@set. Errors: -FI_EINVAL for flags,
 * -FI_ENOMEM. Lock: not needed.
 *
 * Its calls: adding an object that is in the set changes nothing; removing one
 * that is not gives -FI_EINVAL, as do objects of another domain or class. While
 * an object is in a set its fi_close gives -FI_EBUSY, and so does that of the
 * set while it has members.
 */
int tdm_pollset_open(struct tdm_engine *engine, const struct fi_poll_attr *attr,
		     struct tdm_pollset **set) tdm_must_check;

struct fid_poll *tdm_pollset_fid(struct tdm_pollset *set);

/* As tdm_cq_on_close(). */
void tdm_pollset_on_close(struct tdm_pollset *set, void (*closed)(void *arg),
			  void *arg);

#endif /* TDM_PEER_POLLSET_H */
