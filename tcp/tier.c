/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transports of the owner, by enum tdm_transport. No lock: chosen when the
 * provider loads, and only read afterwards.
 */
#include "tcp/tier.h"

#include "base/env.h"

const struct tdm_tier_ops *tdm_tier[TDM_TRANSPORTS] = {
	[TDM_TRANSPORT_TCP] = &tdm_tier_tcp,
	[TDM_TRANSPORT_LOCAL] = &tdm_tier_local,
};

void tdm_tier_choose(void)
{
	if (tdm_env.local)
		tdm_tier[TDM_TRANSPORT_LOCAL] = &tdm_tier_foreign;
}
