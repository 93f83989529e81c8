/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic progress, FI_PROGRESS_AUTO of fi_domain(3): one thread per domain
 * that sleeps until a transport needs progress, and then makes a pass. It
 * sleeps and wakes like the waiters of wait.h, but not for an object of the
 * application.
 */
#ifndef TDM_PEER_AUTO_H
#define TDM_PEER_AUTO_H

#include <rdma/fabric.h>

#include "tdm_engine.h"

struct tdm_auto;

/* Not 0 when the domain of @info has automatic progress. Lock: not needed. */
static inline int tdm_auto_asked(const struct fi_info *info)
{
	return info->domain_attr->control_progress == FI_PROGRESS_AUTO ||
	       info->domain_attr->data_progress == FI_PROGRESS_AUTO;
}

/*
 * Start the thread of @engine, whose lock must be enabled. Out: *@self.
 * Errors: -FI_ENOMEM, -FI_EMFILE, -FI_EAGAIN and the like from the system.
 * Lock: not held.
 */
int tdm_auto_start(struct tdm_engine *engine,
		   struct tdm_auto **self) tdm_must_check;

/* End the thread and free @self; @self may be NULL. Lock: not held. */
void tdm_auto_stop(struct tdm_auto *self);

#endif /* TDM_PEER_AUTO_H */
