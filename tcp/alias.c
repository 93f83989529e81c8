/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoint aliases, fi_ep_alias(3): the same endpoint with other default
 * flags. An alias has its own copy of the info for these; pairs, queues and
 * transports are those of the endpoint. tcp/route.c recognises an alias by its
 * having no pairs.
 *
 * Invariant: an alias copies members of its endpoint (enabled, srx, av, how the
 * queues are bound) when the endpoint is enabled; they do not change after
 * that.
 *
 * Lock: the domain's, taken by alias_close(), else held.
 */
#include "tcp/alias.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "tcp/bind.h"
#include "tcp/ep_priv.h"
#include "tcp/option.h"
#include "tcp/report.h"
#include "tdm_info.h"
#include "tdm_nosys.h"

static void follow(struct tdm_ep *alias)
{
	const struct tdm_ep *ep = alias->self;

	alias->srx = ep->srx;
	alias->av = ep->av;
	alias->tx_cq = ep->tx_cq;
	alias->rx_cq = ep->rx_cq;
	alias->special = ep->special;
	alias->directed = ep->directed;
	alias->exact = ep->exact;
	alias->inject_bytes = ep->inject_bytes;
	alias->tx_selective = ep->tx_selective;
	alias->rx_selective = ep->rx_selective;
	alias->limits = ep->limits;
	alias->enabled = ep->enabled;
	tdm_ep_resolve_flags(alias);
}

void tdm_alias_follow(struct tdm_ep *ep)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &ep->aliases)
		follow(tdm_list_entry(pos, struct tdm_ep, alias_node));
}

static int alias_close(struct fid *fid)
{
	struct tdm_ep *alias = tdm_ep_of(fid);
	struct tdm_domain *d = alias->domain;

	tdm_lock_acquire(&d->lock);
	tdm_list_del(&alias->alias_node);
	alias->self->users--;
	tdm_info_free(alias->info);
	free(alias);
	tdm_lock_release(&d->lock);
	return 0;
}

/* Enabling an alias enables its endpoint. */
static int alias_control(struct fid *fid, int command, void *arg)
{
	struct fid *ep = &tdm_ep_of(fid)->self->fid.fid;

	return command == FI_ENABLE ? ep->ops->control(ep, command, arg) :
				      tdm_ep_control(fid, command, arg);
}

static struct fi_ops alias_fid_ops = {
	.size = sizeof(alias_fid_ops),
	.close = alias_close,
	.bind = tdm_ep_bind,
	.control = alias_control,
	.ops_open = tdm_report_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

int tdm_alias_open(struct tdm_ep *ep, const struct fi_alias *arg)
{
	struct tdm_ep *alias;
	int ret;

	if (!arg->fid)
		return -FI_EINVAL;
	/* The alias of an alias begins with the flags of the latter. */
	alias = tdm_ep_alloc(ep->domain, ep->info, ep->kind,
			     ep->fid.fid.context);
	if (!alias)
		return -FI_ENOMEM;
	ret = tdm_ep_set_op_flags(alias, arg->flags);
	if (ret) {
		tdm_info_free(alias->info);
		free(alias);
		return ret;
	}
	ep = tdm_ep_whole(ep);
	alias->self = ep;
	alias->fid.fid.ops = &alias_fid_ops;
	ep->users++;
	tdm_list_append(&ep->aliases, &alias->alias_node);
	follow(alias);
	*arg->fid = &alias->fid.fid;
	return 0;
}
