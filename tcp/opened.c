/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The open fabrics and domains of the process, for fi_getinfo(3): hints may
 * name an open one, and results refer to the one opened first.
 *
 * Lock: `guard`, outside of the domain locks: no thread that holds one of them
 * takes `guard`. Most functions hold it for a few comparisons. tdm_opened_freeze()
 * takes it and then the locks of all domains, and tdm_opened_thaw() releases them;
 * tdm_opened_idle() tries each domain lock and calls the caller back. Another
 * thread may close an object that a result refers to at any time, as fi_domain(3)
 * allows.
 */
#include "tcp/opened.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "tcp/domain.h"
#include "tcp/fabric.h"
#include "tcp/getinfo.h"
#include "tcp/refuse.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* Oldest first; G: guard. */
static struct tdm_list fabrics = { &fabrics, &fabrics };
static struct tdm_list domains = { &domains, &domains };

static void add(struct tdm_list *list, struct tdm_list *node)
{
	tdm_list_init(node);
	pthread_mutex_lock(&guard);
	tdm_list_append(list, node);
	pthread_mutex_unlock(&guard);
}

static void del(struct tdm_list *node)
{
	pthread_mutex_lock(&guard);
	tdm_list_del(node);
	pthread_mutex_unlock(&guard);
}

void tdm_opened_fabric(struct tdm_fabric *fabric)
{
	add(&fabrics, &fabric->opened);
}

void tdm_closed_fabric(struct tdm_fabric *fabric)
{
	del(&fabric->opened);
}

void tdm_opened_domain(struct tdm_domain *domain)
{
	add(&domains, &domain->opened);
}

void tdm_closed_domain(struct tdm_domain *domain)
{
	del(&domain->opened);
}

TDM_TSA(no_thread_safety_analysis)
void tdm_opened_freeze(void)
{
	struct tdm_list *pos;

	pthread_mutex_lock(&guard);
	tdm_list_for_each(pos, &domains)
		tdm_lock_acquire(
			&tdm_list_entry(pos, struct tdm_domain, opened)->lock);
}

TDM_TSA(no_thread_safety_analysis)
void tdm_opened_thaw(void (*orphaned)(struct tdm_domain *domain))
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &domains) {
		struct tdm_domain *d =
			tdm_list_entry(pos, struct tdm_domain, opened);

		if (orphaned) {
			orphaned(d);
			tdm_list_del(&d->opened);
		}
		tdm_lock_release(&d->lock);
	}
	pthread_mutex_unlock(&guard);
}

void tdm_opened_idle(void (*look)(struct tdm_domain *domain))
{
	struct tdm_list *pos;

	if (pthread_mutex_trylock(&guard))
		return;
	tdm_list_for_each(pos, &domains) {
		struct tdm_domain *d =
			tdm_list_entry(pos, struct tdm_domain, opened);

		if (tdm_lock_try(&d->lock))
			continue;
		look(d);
		tdm_lock_release(&d->lock);
	}
	pthread_mutex_unlock(&guard);
}

/*
 * Returns the open fabric @fid or, if that is NULL, the first of network @name;
 * NULL: none. A fabric opened without a name belongs to all networks.
 */
static struct tdm_fabric *find_fabric(const struct fid_fabric *fid,
				      const char *name)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &fabrics) {
		struct tdm_fabric *f =
			tdm_list_entry(pos, struct tdm_fabric, opened);

		if (fid ? &f->fid == fid : !f->name || !strcmp(f->name, name))
			return f;
	}
	return NULL;
}

/*
 * Returns the open domain @fid or, if that is NULL, the first that @info would
 * open; NULL: none.
 */
static struct tdm_domain *find_domain(const struct fid_domain *fid,
				      const struct fi_info *info)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &domains) {
		struct tdm_domain *d =
			tdm_list_entry(pos, struct tdm_domain, opened);
		const char *own = d->info->domain_attr->name;

		if (fid ? &d->fid == fid :
			  own && !strcmp(own, info->domain_attr->name) &&
				    d->info->addr_format == info->addr_format)
			return d;
	}
	return NULL;
}

/* Set *@to to a copy of @name, if there is one. Returns 0 or -FI_ENOMEM. */
static int copy_name(const char *name, char **to)
{
	if (!name)
		return 0;
	*to = strdup(name);
	return *to ? 0 : -FI_ENOMEM;
}

static int ask(const struct fid_fabric *fabric, const struct fid_domain *domain,
	       struct fi_info *info)
{
	struct tdm_fabric *f;
	struct tdm_domain *d;
	int ret;

	if (fabric) {
		f = find_fabric(fabric, NULL);
		if (!f)
			return tdm_refuse_hint("fabric_attr.fabric",
					       "is not open");
		ret = copy_name(f->name, &info->fabric_attr->name);
		if (ret)
			return ret;
	}
	if (!domain)
		return 0;
	d = find_domain(domain, NULL);
	if (!d || (fabric && &d->fabric->fid != fabric))
		return tdm_refuse_hint("domain_attr.domain",
				       "is not open in this fabric");
	info->addr_format = d->info->addr_format;
	return copy_name(d->info->domain_attr->name, &info->domain_attr->name);
}

/*
 * Returns 1 when both names are given, @asked by the hints and @own by the open
 * object, and they differ.
 */
static int differ(const char *asked, const char *own)
{
	return asked && own && strcmp(asked, own) != 0;
}

int tdm_opened_ask(const struct fi_info *hints, struct fi_info *info)
{
	const struct fid_fabric *fabric = NULL;
	const struct fid_domain *domain = NULL;
	int ret;

	if (hints && hints->fabric_attr)
		fabric = hints->fabric_attr->fabric;
	if (hints && hints->domain_attr)
		domain = hints->domain_attr->domain;
	pthread_mutex_lock(&guard);
	ret = ask(fabric, domain, info);
	pthread_mutex_unlock(&guard);
	if (ret)
		return ret;
	if (domain && differ(hints->domain_attr->name, info->domain_attr->name))
		return tdm_refuse_hint("domain_attr.name",
				       "is not that of the open domain");
	if (fabric && differ(hints->fabric_attr->name, info->fabric_attr->name))
		return tdm_refuse_hint("fabric_attr.name",
				       "is not that of the open fabric");
	return 0;
}

void tdm_opened_fill(struct fi_info *info)
{
	struct tdm_fabric *f;
	struct tdm_domain *d;

	pthread_mutex_lock(&guard);
	if (!info->fabric_attr->fabric) {
		f = find_fabric(NULL, info->fabric_attr->name);
		info->fabric_attr->fabric = f ? &f->fid : NULL;
	}
	if (!info->domain_attr->domain) {
		d = find_domain(NULL, info);
		info->domain_attr->domain = d ? &d->fid : NULL;
	}
	pthread_mutex_unlock(&guard);
}
