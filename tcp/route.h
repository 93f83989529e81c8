/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends: takes the lock, finds the pair, and gives the request to its path,
 * local or remote. A request is a struct tdm_xfer that check.h has approved.
 */
#ifndef TDM_TCP_ROUTE_H
#define TDM_TCP_ROUTE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>

struct tdm_ep;
struct tdm_pair;
struct tdm_root;
struct tdm_tiers;
struct tdm_xfer;

/*
 * The calls of both transports that tcp/pair.c uses to choose the path of a
 * pair.
 */
extern const struct tdm_tiers tdm_route_tiers;

/*
 * Send @x, already checked, from @ep. Lock: taken inside.
 * Until a path is agreed, @x is queued (backlog.h); it ends with an error if
 * the peer cannot be reached within the connect time-out. Errors: -FI_EAGAIN
 * when a queue or the CQ is full (one step of progress has been made),
 * -FI_EINVAL for an address that is not in the AV, -FI_ECONNREFUSED and the
 * like for a peer that is known to be out of reach, -FI_ENOMEM.
 */
ssize_t tdm_route_send(struct tdm_ep *ep, const struct tdm_xfer *x);

/*
 * tdm_route_send() for fi_inject(3), fi_injectdata(3), fi_tinject(3) and
 * fi_tinjectdata(3) of @len bytes at @buf. @flags: those of the tdm_xfer; shared memory
 * gets FI_MSG or FI_TAGGED, and FI_REMOTE_CQ_DATA, only. Lock: taken inside.
 */
ssize_t tdm_route_inject(struct tdm_ep *ep, uint64_t flags, const void *buf,
			 size_t len, uint64_t data, fi_addr_t to, uint64_t tag);

/*
 * As tdm_route_send(), without a step of progress; a request that finds the
 * path full is queued too, so that -FI_EAGAIN comes from tdm_backlog_add()
 * only. Lock: held.
 */
ssize_t tdm_route_keep(struct tdm_ep *ep, const struct tdm_xfer *x);

/*
 * As tdm_route_keep(), in a pass of progress, for a request that was accepted
 * earlier: returns -FI_EAGAIN also while the CQ is full. Lock: held.
 */
ssize_t tdm_route_due(struct tdm_ep *ep, const struct tdm_xfer *x);

/*
 * As tdm_route_keep(), for a message of the provider to an index of the AV of
 * @root, in @group, which no message of the application has. Lock: held.
 */
ssize_t tdm_route_in_group(struct tdm_root *root, struct tdm_xfer *x,
			   uint32_t group);

/*
 * Offer @x, which was queued for @p, to the path of @p, or make the next step
 * of the agreement on one. Returns as tdm_route_send(), and -FI_EAGAIN while
 * there is no path.
 */
ssize_t tdm_route_offer(struct tdm_root *root, struct tdm_pair *p,
			const struct tdm_xfer *x);

#endif /* TDM_TCP_ROUTE_H */
