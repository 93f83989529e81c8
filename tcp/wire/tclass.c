/* SPDX-License-Identifier: BSD-2-Clause */
/* The code points of traffic classes; see tclass.h. No state: no lock. */
#include "tcp/wire/tclass.h"

#include <rdma/fabric.h>

enum {
	DSCP_MOST = 63,
	DSCP_LE = 1,	/* RFC 8622: lower effort */
	DSCP_AF11 = 10, /* RFC 4594, 4.8: high-throughput data */
	DSCP_AF21 = 18, /* RFC 4594, 4.7: low-latency data */
	DSCP_EF = 46,	/* RFC 4594, 4.1: expedited forwarding */
	DSCP_CS6 = 48,	/* RFC 4594, 3.2: network control */
};

int tdm_tclass_dscp(uint32_t tclass)
{
	if (tclass & FI_TC_DSCP)
		return fi_tc_dscp_get(tclass) <= DSCP_MOST ?
			       fi_tc_dscp_get(tclass) :
			       -1;
	switch (tclass) {
	case FI_TC_BEST_EFFORT:
		return 0;
	case FI_TC_LOW_LATENCY:
		return DSCP_AF21;
	case FI_TC_DEDICATED_ACCESS:
		return DSCP_EF;
	case FI_TC_BULK_DATA:
		return DSCP_AF11;
	case FI_TC_SCAVENGER:
		return DSCP_LE;
	case FI_TC_NETWORK_CTRL:
		return DSCP_CS6;
	default:
		return -1;
	}
}
