/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a message through the owner, in the order it is met:
 *
 *   api.c    the call becomes a struct tdm_xfer
 *   route.c  takes the lock; local or remote
 *   tx.c     remote: on the wire     (tcp/wire/wire.h)
 *   rx.c     from the wire to peer/srx.h
 *
 * Receives go from api.c through route.c straight to peer/srx.h.
 */
#ifndef TDM_TCP_PATH_H
#define TDM_TCP_PATH_H

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "tcp/ep.h"
#include "tdm_amo_post.h"
#include "tdm_xfer.h"

/*
 * Send @x, already checked, from @ep. Lock: taken inside.
 * While the route is not agreed, @x is kept (backlog.h), and ends by an error
 * when the peer cannot be reached within the connect time-out. Errors:
 * -FI_EAGAIN when a queue or the CQ is full (one step of progress has been
 * made), -FI_EINVAL for an address that is not in the AV, -FI_ECONNREFUSED and
 * the like for a peer that is known to be out of reach, -FI_ENOMEM.
 */
ssize_t tdm_route_send(struct tdm_ep *ep, const struct tdm_xfer *x);

/*
 * The same for fi_inject(3) and fi_tinject(3) of @len bytes at @buf, for which
 * a tdm_xfer would say no more than @flags: nothing that shared memory has to
 * be told but FI_MSG or FI_TAGGED. Lock: taken inside.
 */
ssize_t tdm_route_inject(struct tdm_ep *ep, uint64_t flags, const void *buf,
			 size_t len, fi_addr_t to, uint64_t tag);

/* The same without progress. Lock: held. */
ssize_t tdm_route_locked(struct tdm_ep *ep, const struct tdm_xfer *x);

/*
 * The same, but what finds no room is kept as well, so that -FI_EAGAIN only
 * says that tdm_backlog_add() does. Lock: held.
 */
ssize_t tdm_route_keep(struct tdm_ep *ep, const struct tdm_xfer *x);

/* The same in a pass, of what is not new: -FI_EAGAIN also while the CQ is full. */
ssize_t tdm_route_due(struct tdm_ep *ep, const struct tdm_xfer *x);

/*
 * Offer @x, which was kept for @p, to its path, or try to agree on one. As
 * tdm_route_locked(), but -FI_EAGAIN while there is none.
 */
ssize_t tdm_route_offer(struct tdm_ep *ep, struct tdm_pair *p,
			const struct tdm_xfer *x);

/*
 * Post @x, already checked, as a receive of @ep. Lock: taken inside.
 * Errors: -FI_EAGAIN when the CQ is full (one step of progress has been made),
 * -FI_EINVAL for a source that is not in the AV, -FI_ENOMEM.
 */
ssize_t tdm_post_recv(struct tdm_ep *ep, struct tdm_xfer *x);

/* The same without progress. Lock: held. @x may be changed. */
ssize_t tdm_post_locked(struct tdm_ep *ep, struct tdm_xfer *x);

/*
 * Is there nothing in @flags but @flag, which those may use who were granted
 * @cap, and FI_TRIGGER, the flag of the capability of that name?
 */
static inline int tdm_ep_has_flag(const struct tdm_ep *ep, uint64_t flags,
				  uint64_t flag, uint64_t cap)
{
	uint64_t caps = ep->info->caps;

	return !(flags & ~((caps & cap ? flag : 0) | (caps & FI_TRIGGER)));
}

/*
 * May @ep send @x, whose flags are @flags? Errors: of tdm_ep_check(), and
 * -FI_EOPNOTSUPP: a capability that it was not granted.
 */
static tdm_always_inline int
tdm_ep_admits(const struct tdm_ep *ep, const struct tdm_xfer *x, uint64_t flags)
{
	if (tdm_unlikely(ep->enabled != TDM_EP_ON)) {
		int ret = tdm_ep_check(ep, x);

		if (ret)
			return ret;
	}
	return tdm_unlikely(!tdm_ep_grants(ep, flags)) ? -FI_EOPNOTSUPP : 0;
}

/*
 * The checks of fi_sendmsg(3) and its relatives, for those who post later: @m
 * and @flags as they get them, @op FI_READ or FI_WRITE. Out: *@x, which refers
 * to the vector of @m. Errors: of the call, but for what the route says.
 */
int tdm_check_send(struct tdm_ep *ep, const struct fi_msg *m, uint64_t flags,
		   struct tdm_xfer *x);
int tdm_check_recv(struct tdm_ep *ep, const struct fi_msg *m, uint64_t flags,
		   struct tdm_xfer *x);
int tdm_check_tsend(struct tdm_ep *ep, const struct fi_msg_tagged *m,
		    uint64_t flags, struct tdm_xfer *x);
int tdm_check_trecv(struct tdm_ep *ep, const struct fi_msg_tagged *m,
		    uint64_t flags, struct tdm_xfer *x);
int tdm_check_rma(struct tdm_ep *ep, const struct fi_msg_rma *m, uint64_t op,
		  uint64_t flags, struct tdm_xfer *x);

/*
 * The same for fi_atomicmsg(3) and its relatives, @ask->kind; the caller has
 * filled in what @m does not say. Out: *@p, p->x.
 */
int tdm_check_amo(struct tdm_ep *ep, struct tdm_amo_ask *ask,
		  const struct fi_msg_atomic *m, uint64_t flags,
		  struct tdm_amo_post *p);

#endif /* TDM_TCP_PATH_H */
