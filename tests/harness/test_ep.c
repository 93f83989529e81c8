/* SPDX-License-Identifier: BSD-2-Clause */
#include "test_ep.h"

#include <stdlib.h>

#include "tcp/root.h"

static void domain_free(struct tdm_domain *d)
{
	fi_freeinfo(d->info);
	tdm_lock_fini(&d->lock);
	free(d);
}

static struct tdm_domain *domain_new(void)
{
	struct tdm_domain *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	tdm_lock_init(&d->lock, 1);
	tdm_list_init(&d->roots);
	tdm_list_init(&d->deferred);
	d->info = fi_allocinfo();
	if (d->info)
		return d;
	domain_free(d);
	return NULL;
}

static const struct tdm_ep_kind kind = {
	.bytes = sizeof(struct tdm_root),
	.fclass = FI_CLASS_EP,
	.has_transports = 1,
};

struct tdm_root *tdt_ep_new(void)
{
	struct tdm_domain *d = domain_new();
	struct tdm_root *root;

	if (!d)
		return NULL;
	root = tdm_root_alloc(d, d->info, &kind, NULL);
	if (!root)
		domain_free(d);
	return root;
}

void tdt_ep_free(struct tdm_root *root)
{
	struct tdm_domain *d = root->ep.domain;

	tdm_lock_acquire(&d->lock);
	tdm_root_free(root);
	tdm_lock_release(&d->lock);
	domain_free(d);
}
