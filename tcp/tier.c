/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transports of the owner, by enum tdm_transport. No lock: chosen when the
 * provider loads, and only read afterwards.
 */
#include "tcp/tier.h"

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tcp/refuse.h"

const struct tdm_tier_ops *tdm_tier[TDM_TRANSPORTS] = {
	[TDM_TRANSPORT_TCP] = &tdm_tier_tcp,
	[TDM_TRANSPORT_LOCAL] = &tdm_tier_local,
};

void tdm_tier_choose(void)
{
	if (tdm_env.local)
		tdm_tier[TDM_TRANSPORT_LOCAL] = &tdm_tier_foreign;
}

int tdm_tier_without_local(void)
{
	if (tdm_env.shm != TDM_SHM_ONLY)
		return 0;
	return tdm_refuse_call(-FI_ENODEV, "fi_enable",
			       "no shared memory, which "
			       "FI_TANDEM_SHM=only asks for");
}

int tdm_tier_no_watch(struct tdm_domain *d, int fd)
{
	(void)d;
	(void)fd;
	return 0;
}

int tdm_tier_no_cq(struct tdm_domain *d, struct tdm_cq *cq)
{
	(void)d;
	(void)cq;
	return 0;
}

int tdm_tier_no_cntr(struct tdm_domain *d, struct tdm_cntr *cntr)
{
	(void)d;
	(void)cntr;
	return 0;
}

void tdm_tier_no_deliver(struct tdm_domain *d)
{
	(void)d;
}

int tdm_tier_no_listen(struct tdm_root *root)
{
	(void)root;
	return 0;
}

void tdm_tier_no_look(struct tdm_root *root, fi_addr_t addr,
		      struct tdm_look *out)
{
	(void)root;
	(void)addr;
	(void)out;
}

int tdm_tier_no_bind(struct tdm_root *root, struct tdm_cntr *cntr,
		     uint64_t flags)
{
	(void)root;
	(void)cntr;
	(void)flags;
	return 0;
}
