/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checks of a data transfer, before route.h sends it or post.h posts it.
 * Used by the application's calls (api.c, amo.c) and by those that
 * accept an operation now and post it later (work.c, deferred.c).
 */
#ifndef TDM_TCP_CHECK_H
#define TDM_TCP_CHECK_H

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "tcp/ep.h"
#include "tcp/option.h"
#include "tdm_amo_post.h"
#include "tdm_xfer.h"

/*
 * Not 0 when @flags contains only @flag, if @ep was granted @cap, and
 * FI_TRIGGER, if it was granted that.
 */
static inline int tdm_ep_has_flag(const struct tdm_ep *ep, uint64_t flags,
				  uint64_t flag, uint64_t cap)
{
	uint64_t caps = ep->info->caps;

	return !(flags & ~((caps & cap ? flag : 0) | (caps & FI_TRIGGER)));
}

/*
 * Set *@flags for a call of @ep that sends and to which the application gave
 * @given: they replace the default flags, fi_msg(3), and must be among
 * @allowed, except FI_FENCE and FI_TRIGGER, which need the capability of that
 * name. FI_COMPLETION is added for an endpoint without
 * FI_SELECTIVE_COMPLETION. Errors: -FI_EBADFLAGS.
 */
static tdm_always_inline int tdm_ep_message_flags(const struct tdm_ep *ep,
						  uint64_t allowed,
						  uint64_t given,
						  uint64_t *flags)
{
	uint64_t more = given & ~allowed;

	if (tdm_unlikely(more) &&
	    !tdm_ep_has_flag(ep, more, FI_FENCE, FI_FENCE))
		return -FI_EBADFLAGS;
	*flags = ep->tx_selective ? given : given | FI_COMPLETION;
	return 0;
}

/*
 * Check that @ep may send @x, whose flags are @flags. Errors: those of
 * tdm_ep_check(); -FI_EOPNOTSUPP: a capability that it was not granted.
 */
static tdm_always_inline int
tdm_ep_admits(const struct tdm_ep *ep, const struct tdm_xfer *x, uint64_t flags)
{
	if (tdm_unlikely(ep->enabled != TDM_EP_ON)) {
		int ret = tdm_ep_check(ep, x);

		if (ret)
			return ret;
	}
	return tdm_unlikely(!tdm_ep_plain(ep, flags)) ? -FI_EOPNOTSUPP : 0;
}

/*
 * The checks of fi_sendmsg(3) and its relatives, for a caller that posts later:
 * @m and @flags are their arguments, @op is FI_READ or FI_WRITE. Out: *@x,
 * which points to the vector of @m. Errors: those that the call itself returns
 * before it sends.
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
 * As tdm_check_send(), for fi_atomicmsg(3) and its relatives, by @ask->kind.
 * The caller has filled in the members of @ask that @m does not determine. Out:
 * *@p, with the request p->x.
 */
int tdm_check_amo(struct tdm_ep *ep, struct tdm_amo_ask *ask,
		  const struct fi_msg_atomic *m, uint64_t flags,
		  struct tdm_amo_post *p);

#endif /* TDM_TCP_CHECK_H */
