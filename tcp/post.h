/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives: passes a request that check.h has approved to the receive queue. */
#ifndef TDM_TCP_POST_H
#define TDM_TCP_POST_H

#include <sys/types.h>

struct tdm_ep;
struct tdm_xfer;

/*
 * Post @x, already checked, as a receive of @ep. Lock: taken inside.
 * Errors: -FI_EAGAIN when the CQ is full (one step of progress has been made),
 * -FI_EINVAL for a source that is not in the AV, -FI_ENOMEM.
 */
ssize_t tdm_post_recv(struct tdm_ep *ep, struct tdm_xfer *x);

/* As tdm_post_recv(), without a step of progress. May change @x. Lock: held. */
ssize_t tdm_post_locked(struct tdm_ep *ep, struct tdm_xfer *x);

#endif /* TDM_TCP_POST_H */
