/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See tclass.h. A network that does not know a code point forwards the packet
 * as any other: nothing fails when the kernel refuses one.
 */
#include "tcp/wire/tclass.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/os.h"

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

void tdm_tclass_set(int fd, int family, uint32_t tclass)
{
	int dscp = tdm_tclass_dscp(tclass), tos, ret;

	if (dscp < 0)
		return;
	tos = dscp << 2; /* the lower two bits are of the kernel */
	if (family == AF_INET)
		ret = tdm_os.setsockopt(fd, IPPROTO_IP, IP_TOS, &tos,
					sizeof(tos));
	else
		ret = tdm_os.setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos,
					sizeof(tos));
	if (ret)
		TDM_DBG(EP_CTRL, "DSCP %d: %s", dscp, fi_strerror(errno));
}
