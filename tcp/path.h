/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a message through the owner, in the order it is met:
 *
 *   api.c    the call becomes a struct tdm_xfer
 *   route.c  takes the lock; local or remote
 *   tx.c     remote: on the wire     (tcp/conn.h)
 *   rx.c     from the wire to peer/srx.h
 *
 * Receives go from api.c through route.c straight to peer/srx.h.
 */
#ifndef TDM_TCP_PATH_H
#define TDM_TCP_PATH_H

#include "tcp/ep.h"
#include "tdm_xfer.h"

/*
 * Send @x, already checked, from @ep. Lock: taken inside.
 * Errors: -FI_EAGAIN when a queue or the CQ is full or the route is not agreed
 * yet (one step of progress has been made), -FI_EINVAL for an address that is
 * not in the AV, -FI_ECONNREFUSED and the like when the peer cannot be reached
 * within the connect time-out.
 */
ssize_t tdm_route_send(struct tdm_ep *ep, const struct tdm_xfer *x);

/* The same without progress. Lock: held. */
ssize_t tdm_route_locked(struct tdm_ep *ep, const struct tdm_xfer *x);

/*
 * Post @x, already checked, as a receive of @ep. Lock: taken inside.
 * Errors: -FI_EAGAIN when the context or the CQ is full (one step of progress
 * has been made), -FI_EINVAL for a source that is not in the AV, -FI_ENOMEM.
 */
ssize_t tdm_post_recv(struct tdm_ep *ep, struct tdm_xfer *x);

#endif /* TDM_TCP_PATH_H */
