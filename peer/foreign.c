/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A foreign provider as peer of a domain: finding it, its fabric and domain, and
 * its pass. See foreign.h.
 *
 * Lock: domain held, but for tdm_foreign_open().
 * Spec: fi_peer(3), fi_getinfo(3).
 */
#include "peer/foreign.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include "base/log.h"
#include "peer/auto.h"
#include "peer/foreign_priv.h"
#include "tdm_info.h"

/*
 * The flag of fi_getinfo() that finds a provider which FI_PROVIDER hides from
 * applications; layered providers of libfabric use it, and no installed header
 * names it.
 */
#define GETINFO_HIDDEN (1ULL << 60)

static struct fi_info *hints_for(const char *name, const struct fi_info *app,
				 uint64_t sharing)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->fabric_attr->prov_name = strdup(name);
	if (!hints->fabric_attr->prov_name) {
		tdm_info_free(hints);
		return NULL;
	}
	hints->caps = (app->caps & (FI_MSG | FI_TAGGED | FI_SEND | FI_RECV)) |
		      sharing;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->caps = sharing;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->av_type = FI_AV_TABLE;
	return hints;
}

/* Not 0 when the provider can carry each message that tandem accepts. */
static int suits(const struct fi_info *info)
{
	return !(info->mode & (FI_CONTEXT | FI_CONTEXT2)) &&
	       !(info->domain_attr->mr_mode & FI_MR_LOCAL) &&
	       info->ep_attr->max_msg_size >= TDM_MAX_MSG_BYTES &&
	       info->tx_attr->iov_limit && info->rx_attr->iov_limit &&
	       info->domain_attr->cq_data_size >= sizeof(uint64_t) &&
	       (info->tx_attr->msg_order & FI_ORDER_SAS);
}

static int find(const char *name, const struct fi_info *app, uint64_t sharing,
		struct fi_info **out)
{
	struct fi_info *hints = hints_for(name, app, sharing);
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	ret = fi_getinfo(fi_version(), NULL, NULL, 0, hints, out);
	if (ret)
		ret = fi_getinfo(fi_version(), NULL, NULL, GETINFO_HIDDEN,
				 hints, out);
	tdm_info_free(hints);
	return ret;
}

/*
 * Find the provider; one that takes user ids is asked for first. Some import
 * queues without saying so.
 */
static int find_any(struct tdm_foreign *f, const struct fi_info *app)
{
	static const uint64_t sharing[] = { FI_PEER | FI_AV_USER_ID, FI_PEER,
					    0 };
	size_t i;
	int ret = -FI_ENODATA;

	for (i = 0; ret && i < TDM_ARRAY_LEN(sharing); i++) {
		ret = find(f->name, app, sharing[i], &f->info);
		f->user_ids = !!(sharing[i] & FI_AV_USER_ID);
	}
	if (!ret && !suits(f->info)) {
		TDM_WARN(DOMAIN, "provider %s cannot carry all messages",
			 f->name);
		return -FI_ENODATA;
	}
	return ret;
}

/* With FI_HOOK an application's objects and the peer's are mixed up. */
static int is_hooked(void)
{
	char *hook = NULL;

	return !fi_param_get_str(NULL, "hook", &hook) && hook && *hook;
}

void tdm_foreign_close_fid(const struct tdm_foreign *f, struct fid *fid,
			   const char *what)
{
	int ret = fi_close(fid);

	if (ret)
		TDM_INFO(DOMAIN, "provider %s: %s does not close: %s", f->name,
			 what, fi_strerror(-ret));
}

static void foreign_free(struct tdm_foreign *f)
{
	struct tdm_foreign *was = tdm_foreign_enter(f);

	if (f->domain)
		tdm_foreign_close_fid(f, &f->domain->fid, "domain");
	if (f->fabric)
		tdm_foreign_close_fid(f, &f->fabric->fid, "fabric");
	tdm_foreign_leave(was);
	if (f->info)
		tdm_info_free(f->info);
	tdm_pool_fini(&f->txs);
	tdm_pool_fini(&f->rxs);
	tdm_pool_fini(&f->ports);
	free(f);
}

int tdm_foreign_open(const char *name, const struct fi_info *app,
		     struct tdm_foreign **out)
{
	struct tdm_foreign *f;
	int ret;

	/* The thread of automatic progress would poll the provider all the time. */
	if (tdm_auto_asked(app) || !(app->caps & (FI_MSG | FI_TAGGED)))
		return -FI_EOPNOTSUPP;
	if (is_hooked())
		return -FI_ENOSYS;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	f->name = name;
	f->users = 1;
	tdm_list_init(&f->eps);
	tdm_list_init(&f->gone);
	tdm_foreign_guard(f);
	tdm_pool_init(&f->txs, sizeof(struct tdm_foreign_tx), 0);
	tdm_pool_init(&f->rxs, sizeof(struct tdm_foreign_rx), 0);
	tdm_pool_init(&f->ports, sizeof(struct tdm_foreign_port), 0);
	ret = find_any(f, app);
	if (!ret)
		ret = fi_fabric(f->info->fabric_attr, &f->fabric, NULL);
	if (!ret)
		ret = fi_domain(f->fabric, f->info, &f->domain, NULL);
	if (ret) {
		foreign_free(f);
		return ret;
	}
	*out = f;
	return 0;
}

void tdm_foreign_use(struct tdm_foreign *f)
{
	__atomic_fetch_add(&f->users, 1, __ATOMIC_RELAXED);
}

void tdm_foreign_unuse(struct tdm_foreign *f)
{
	if (!__atomic_sub_fetch(&f->users, 1, __ATOMIC_ACQ_REL))
		foreign_free(f);
}

void tdm_foreign_close(struct tdm_foreign *f)
{
	if (f)
		tdm_foreign_close_all(f);
}
