/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoint aliases, fi_ep_alias(3): one more handle on an endpoint, with other
 * default flags. Its calls are those of the endpoint, but for fi_close(3).
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
#include "tdm_nosys.h"

static void alias_free(struct tdm_handle *alias)
{
	tdm_list_del(&alias->node);
	alias->ep->users--;
	free(alias);
}

static int alias_close(struct fid *fid)
{
	struct tdm_handle *alias = tdm_handle_of(fid);
	struct tdm_domain *d = alias->ep->domain;

	tdm_lock_acquire(&d->lock);
	alias_free(alias);
	tdm_lock_release(&d->lock);
	return 0;
}

/* Enabling an alias enables its endpoint. */
static int alias_control(struct fid *fid, int command, void *arg)
{
	struct fid *ep = &tdm_ep_of(fid)->own.fid.fid;

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

int tdm_alias_open(const struct tdm_handle *from, const struct fi_alias *arg)
{
	struct tdm_handle *alias;
	int ret;

	if (!arg->fid)
		return -FI_EINVAL;
	alias = malloc(sizeof(*alias));
	if (!alias)
		return -FI_ENOMEM;
	/*
	 * @from may be an alias itself: the new alias starts with its default
	 * flags.
	 */
	tdm_handle_init(alias, from->ep, from);
	alias->fid.fid.ops = &alias_fid_ops;
	from->ep->users++;
	ret = tdm_ep_set_op_flags(alias, arg->flags);
	if (ret) {
		alias_free(alias);
		return ret;
	}
	*arg->fid = &alias->fid.fid;
	return 0;
}
