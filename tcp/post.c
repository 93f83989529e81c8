/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts receives: turns the source of a receive into a match address
 * (tdm_space.h) and passes the request to peer/srx.c. Transports are not
 * involved.
 *
 * Lock: the domain's, taken by tdm_post_recv(), held for tdm_post_locked().
 */
#include "tcp/post.h"

#include <rdma/fi_errno.h>

#include "av/key.h"
#include "base/trace.h"
#include "tcp/ep.h"
#include "tdm_xfer.h"

/*
 * Replace a source that is a receive context of the peer by the peer:
 * messages do not say which of its contexts they are from.
 */
static tdm_noinline int directed_ctx(const struct tdm_ep *ep, fi_addr_t *addr)
{
	const struct tdm_space *space = ep->av ? tdm_av_space(ep->av) : NULL;
	struct tdm_place place;

	if (!space || !space->ctx_bits ||
	    tdm_space_split(space, *addr, &place) ||
	    !tdm_av_has(ep->av, place.addr))
		return -FI_EINVAL;
	*addr = tdm_av_lowest(ep->av, place.addr);
	return 0;
}

/*
 * Check the source of a receive, and replace it by the lowest index of the same
 * address. Errors: -FI_EINVAL.
 */
static inline int directed(const struct tdm_ep *ep, uint64_t flags,
			   fi_addr_t *addr)
{
	if (*addr == FI_ADDR_UNSPEC || !(ep->directed & flags))
		return 0;
	if (tdm_unlikely(!ep->av || !tdm_av_has(ep->av, *addr)))
		return directed_ctx(ep, addr);
	*addr = tdm_av_lowest(ep->av, *addr);
	return 0;
}

/*
 * Make the source of @x a match address (tdm_space.h). The group that it holds
 * always counts; its index and key count only with FI_DIRECTED_RECV.
 */
static int match_source(const struct tdm_ep *ep, struct tdm_xfer *x)
{
	const struct tdm_space space = {
		.ctx_bits = ep->av ? tdm_av_space(ep->av)->ctx_bits : 0,
		.max_group = ep->domain->info->domain_attr->max_group_id,
	};
	struct tdm_place place;
	int ret;

	if (tdm_space_split(&space, x->addr, &place))
		return -FI_EINVAL;
	if (x->flags & FI_AUTH_KEY) {
		/* The flag is granted only with keys and FI_DIRECTED_RECV. */
		if (!tdm_space_key(place.addr) || !ep->av ||
		    !tdm_keyring_id(tdm_av_keys(ep->av), place.addr))
			return -FI_EINVAL;
	} else if (place.addr == TDM_SPACE_ANY || !(ep->directed & x->flags)) {
		place.addr = TDM_SPACE_ANY;
	} else {
		ret = directed(ep, x->flags, &place.addr);
		if (ret)
			return ret;
	}
	x->addr = tdm_space_of(place.addr, place.group);
	return 0;
}

static tdm_noinline ssize_t post_other(struct tdm_ep *ep, struct tdm_xfer *x)
{
	int ret;

	if (x->flags & FI_PEEK)
		/*
		 * A peek finds only messages that have arrived, so a loop of
		 * peeks must make progress.
		 */
		ep->domain->engine.progress(&ep->domain->engine);
	/* A shared context without an endpoint has the flag, but no AV. */
	if (x->flags & TDM_NAMED_AV && ep->av && !ep->domain->in_retry)
		tdm_av_follow(ep->av);
	x->flags &= ~(uint64_t)TDM_NAMED_AV;
	ret = x->flags & TDM_IN_SPACE ? match_source(ep, x) :
					directed(ep, x->flags, &x->addr);
	return ret ? ret : tdm_srx_recv(ep->srx, x);
}

static tdm_always_inline ssize_t post_locked(struct tdm_ep *ep,
					     struct tdm_xfer *x)
{
	int ret;

	if (x->flags & (FI_COMPLETION | FI_PEEK) && ep->rx_cq &&
	    tdm_unlikely(tdm_cq_full(ep->rx_cq)))
		return -FI_EAGAIN;
	if (tdm_unlikely(x->flags & (FI_PEEK | TDM_IN_SPACE | TDM_NAMED_AV)))
		return post_other(ep, x);
	ret = directed(ep, x->flags, &x->addr);
	return tdm_unlikely(ret) ? ret : tdm_srx_recv(ep->srx, x);
}

ssize_t tdm_post_locked(struct tdm_ep *ep, struct tdm_xfer *x)
{
	return post_locked(ep, x);
}

ssize_t tdm_post_recv(struct tdm_ep *ep, struct tdm_xfer *x)
{
	ssize_t ret;

	tdm_lock_acquire(&ep->domain->lock);
	ret = post_locked(ep, x);
	if (tdm_unlikely(ret == -FI_EAGAIN))
		ep->domain->engine.progress(&ep->domain->engine);
	TDM_TRACE6(post_recv, x->addr, x->len, x->flags, x->tag, x->context,
		   ret);
	tdm_lock_release(&ep->domain->lock);
	return ret;
}
