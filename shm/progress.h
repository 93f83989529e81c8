/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress of the endpoints of the peer provider. */
#ifndef TDM_SHM_PROGRESS_H
#define TDM_SHM_PROGRESS_H

#include "shm/ep.h"

void tdm_shm_ep_progress(struct tdm_shm_ep *ep);

/*
 * The same in a call that reads no queue, such as a send. Returns 1; 0: nothing was
 * done, since the owner is not tandem: such an owner need not hold the lock of its
 * receive context then (fi_peer(3), PEER SRX).
 */
int tdm_shm_ep_pass(struct tdm_shm_ep *ep);

/*
 * Handle up to @most events of the listener and the lifelines, and the timers.
 */
void tdm_shm_control(struct tdm_shm_ep *ep, int most);

/* Let each progress call work on @pair until there is nothing left to do. */
void tdm_shm_busy(struct tdm_shm_pair *pair);
/* Not 0 when progress can do something for @pair now. */
int tdm_shm_runnable(struct tdm_shm_pair *pair);

#endif /* TDM_SHM_PROGRESS_H */
