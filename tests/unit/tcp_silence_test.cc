/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a silent network is believed in: fi_tandem(7),
 * FI_TANDEM_PEER_TIMEOUT.
 */
#include "base/env.h"
#include "tcp_raw.h"

#include <netinet/tcp.h>

using namespace tcp_test;

namespace
{

uint64_t ahead;

uint64_t fast_clock()
{
	return tdm_os_system.now_ns() + ahead;
}

struct tcp_info told;

int told_getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	if (level != IPPROTO_TCP || name != TCP_INFO)
		return tdm_os_system.getsockopt(fd, level, name, val, len);
	memcpy(val, &told, tdm_min((size_t)*len, sizeof(told)));
	return 0;
}

class TcpSilence : public TcpFault
{
protected:
	TcpSilence()
	{
		told = {};
		ahead = 0;
		tdm_os.now_ns = fast_clock;
		tdm_os.getsockopt = told_getsockopt;
		tdm_env.peer_timeout_ms = 60000;
	}

	/* The network has been silent for @s seconds: run the watch. */
	void look(unsigned s)
	{
		ahead = s * 1000000000ull;
		at(0).tcp->watch.fired(&at(0).tcp->watch);
		turn();
	}
};

TEST_F(TcpSilence, TheTimeOutAloneDecides)
{
	/* fi_tandem(7), FI_TANDEM_PEER_TIMEOUT: a link that is down for less
	 * than that is no loss, however often was probed. */
	add();
	session();
	told.tcpi_probes = 40;
	for (unsigned s = 0; s < 60; s += 12) {
		told.tcpi_last_ack_recv = s * 1000;
		look(s);
		ASSERT_TRUE(at(0).lost.empty()) << s;
	}
	told.tcpi_last_ack_recv = 61000;
	look(61);
	EXPECT_EQ(std::vector<int>{ FI_ETIMEDOUT }, at(0).lost);
}

TEST_F(TcpSilence, AnAnswerBeginsItAnew)
{
	add();
	session();
	told.tcpi_unacked = 1;
	told.tcpi_retransmits = 5;
	look(0);
	told.tcpi_last_ack_recv = 1000;
	look(59);
	told.tcpi_last_ack_recv = 59000;
	look(117);
	EXPECT_TRUE(at(0).lost.empty());
	told.tcpi_last_ack_recv = 62000;
	look(120);
	EXPECT_EQ(std::vector<int>{ FI_ETIMEDOUT }, at(0).lost);
}

TEST_F(TcpSilence, OfAnIdleConnectionIsNotHeldAgainstIt)
{
	/* An hour without traffic, and then one segment has to be repeated. */
	add();
	session();
	told.tcpi_last_ack_recv = 3600000;
	look(3600);
	told.tcpi_unacked = 1;
	told.tcpi_retransmits = 1;
	told.tcpi_last_ack_recv = 3601000;
	look(3601);
	EXPECT_TRUE(at(0).lost.empty());
}

} // namespace
