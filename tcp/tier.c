/* SPDX-License-Identifier: BSD-2-Clause */
/* The transports of the owner, by enum tdm_transport. */
#include "tcp/tier.h"

const struct tdm_tier_ops *const tdm_tier[TDM_TRANSPORTS] = {
	[TDM_TRANSPORT_TCP] = &tdm_tier_tcp,
	[TDM_TRANSPORT_LOCAL] = &tdm_tier_local,
};
