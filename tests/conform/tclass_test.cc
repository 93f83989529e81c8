/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The traffic class of an endpoint, on the sockets of this process. The harness
 * gives all endpoints one class, so both ends of a connection have it.
 */
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/socket.h>

#include <set>

#include "tests/conform/connected.h"
#include "tests/harness/fixture.h"

namespace
{

/* The type of service of each TCP connection between endpoints, IPv4. */
std::multiset<int> services()
{
	std::multiset<int> out;

	for (int fd : connected(AF_INET)) {
		socklen_t n = sizeof(int);
		int tos = -1;

		if (!getsockopt(fd, IPPROTO_IP, IP_TOS, &tos, &n))
			out.insert(tos);
	}
	return out;
}

class TrafficClassOfEndpoints : public Case
{
protected:
	/* All connections have the type of service @tos, and there are some. */
	void expect(int tos)
	{
		OPEN();
		ASSERT_EQ(0, tdt_warm_up(w));
		std::multiset<int> all = services();
		EXPECT_LT(0u, all.size());
		EXPECT_EQ(all.size(), all.count(tos));
		close();
	}
};

TEST_F(TrafficClassOfEndpoints, IsOnTheirPackets)
{
	/* fi_endpoint(3) 2.1, Traffic Class 1: a code point, a label, or the
	 * class of the domain where the endpoint has none. */
	ONLY_TANDEM();
	if (tdt_path() == TDT_LOCAL)
		GTEST_SKIP() << "shared memory has no packets";
	expect(0);
	attr.tclass = fi_tc_dscp_set(34);
	expect(34 << 2);
	attr.domain_tclass = FI_TC_SCAVENGER;
	expect(34 << 2);
	attr.tclass = FI_TC_UNSPEC;
	expect(1 << 2);
	attr.domain_tclass = FI_TC_NETWORK_CTRL + 1;
	expect(0);
}

} // namespace
