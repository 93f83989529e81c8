/* SPDX-License-Identifier: BSD-2-Clause */
/* See lend.h. */
#include "tcp/lend.h"

#include <string.h>

#include "tcp/tier.h"

static int is_peer(const char *name)
{
	return name && !strcmp(name, tdm_tier_local_provider()->name);
}

int tdm_lend_asked(const struct fi_info *hints)
{
	return hints && hints->caps & FI_PEER && hints->domain_attr &&
	       is_peer(hints->domain_attr->name);
}

int tdm_lend_getinfo(uint32_t version, const char *node, const char *service,
		     uint64_t flags, const struct fi_info *hints,
		     struct fi_info **info)
{
	return tdm_tier_local_provider()->getinfo(version, node, service, flags,
						  hints, info);
}

int tdm_lend_fabric_asked(const struct fi_fabric_attr *attr)
{
	return is_peer(attr->name);
}

int tdm_lend_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context)
{
	return tdm_tier_local_provider()->fabric(attr, fabric, context);
}
