/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The root of an endpoint from allocation to the end. Enabling starts both
 * transports, and closing ends them in reverse order: tier.h.
 *
 * Lock: the domain's, held in all of this file but in tdm_root_alloc().
 */
#include "tcp/root.h"

#include <limits.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "peer/import_eq.h"
#include "tcp/bind.h"
#include "tcp/ep_priv.h"
#include "tcp/keys.h"
#include "tcp/option.h"
#include "tcp/refuse.h"
#include "tcp/report.h"
#include "tcp/route.h"
#include "tcp/stat.h"
#include "tcp/tier.h"

struct tdm_root *tdm_root_alloc(struct tdm_domain *domain,
				const struct fi_info *info,
				const struct tdm_ep_kind *kind, void *context)
{
	struct tdm_ep *ep = tdm_ep_alloc(domain, info, kind, context);
	struct tdm_root *root;

	if (!ep)
		return NULL;
	root = tdm_root_of(ep);
	ep->root = root;
	root->tiers = &tdm_route_tiers;
	tdm_backlog_init(&root->backlog);
	tdm_list_init(&root->av_user.node);
	root->av_user.changed = tdm_ep_av_changed;
	root->av_user.removed = tdm_ep_av_removed;
	root->av_user.user_ids = tdm_ep_av_user_ids;
	tdm_list_init(&root->node);
	tdm_list_init(&root->removed);
	root->shm_permitted = tdm_env.shm != TDM_SHM_OFF;
	return root;
}

void tdm_root_free(struct tdm_root *root)
{
	tdm_ep_free_pairs(root);
	if (root->ep.av)
		tdm_av_detach(root->ep.av, &root->av_user);
	if (root->lent_eq)
		tdm_import_eq_put(root->lent_eq);
	tdm_ep_free(&root->ep);
}

/* Start both transports. */
static int open_tiers(struct tdm_root *root)
{
	int ret = 0, t;

	for (t = 0; !ret && t < TDM_TRANSPORTS; t++)
		ret = tdm_tier[t]->open(root);
	for (t = 0; !ret && t < TDM_TRANSPORTS; t++)
		ret = tdm_tier[t]->listen(root);
	return ret;
}

/* Stop both transports, which give back the entries that they still hold. */
static void disable(struct tdm_root *root)
{
	int t;

	root->ep.rx_side->flush(&root->ep);
	for (t = TDM_TRANSPORTS; t-- > 0;)
		tdm_tier[t]->close(root);
	tdm_ep_give_keys(root);
}

int tdm_root_enable(struct tdm_root *root)
{
	int ret;

	if (root->ep.enabled || root->ep.domain->engine.orphan)
		return tdm_refuse_call(-FI_EOPBADSTATE, "fi_enable",
				       root->ep.enabled ? "it is enabled" :
							  "it is the parent's");
	if (!root->ep.av)
		return tdm_refuse_call(-FI_ENOAV, "fi_enable",
				       "no address vector is bound");
	ret = root->ep.kind->check_bound(&root->ep);
	if (ret)
		return ret;
	ret = tdm_ep_take_keys(root);
	if (!ret)
		ret = root->ep.rx_side->enable(&root->ep);
	if (!ret)
		ret = open_tiers(root);
	if (ret) {
		disable(root);
		return ret;
	}
	tdm_ep_tell_open(root);
	root->ep.rx_side->joined(&root->ep);
	tdm_ep_resolve_flags(&root->ep);
	tdm_list_append(&root->ep.domain->roots, &root->node);
	root->ep.enabled = tdm_ep_limited(&root->ep) ? TDM_EP_LIMITED :
						       TDM_EP_ON;
	tdm_stat_changed(root->ep.domain);
	return 0;
}

void tdm_root_quit(struct tdm_root *root)
{
	if (!root->ep.enabled)
		return;
	tdm_backlog_close(root);
	if (tdm_env.report)
		tdm_report_print(root);
	tdm_list_del(&root->node);
	disable(root);
	tdm_stat_changed(root->ep.domain);
}

ssize_t tdm_root_cancel_send(struct tdm_root *root, void *context)
{
	ssize_t ret = tdm_backlog_cancel(root, context);
	int t;

	for (t = 0; ret == -FI_ENOENT && t < TDM_TRANSPORTS; t++)
		ret = tdm_tier[t]->cancel(root, context);
	return ret;
}

ssize_t tdm_root_tx_left(const struct tdm_root *root)
{
	size_t left = SIZE_MAX;
	int t;

	for (t = 0; t < TDM_TRANSPORTS; t++)
		left = tdm_min(left, tdm_tier[t]->tx_left(root));
	left -= tdm_min(left, root->backlog.counted);
	return (ssize_t)tdm_min(left, SSIZE_MAX);
}
