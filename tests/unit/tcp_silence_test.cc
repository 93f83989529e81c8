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

	/* The network loses all segments from now on. */
	void cut()
	{
		told.tcpi_unacked = told.tcpi_retransmits = 1;
		told.tcpi_last_ack_recv = 1u << 30;
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

/* The peer's host took the connection, and the network fell silent. */
TEST_F(TcpSilence, EndsAGreetingToo)
{
	mesh(2);
	ASSERT_EQ(0, at(0).send(1, "x", 2, 1));
	ASSERT_TRUE(alone(0, [&] {
		return at(0).conn(1)->state == TDM_CONN_GREETING;
	}));
	cut();
	at(0).tcp->watch.fired(&at(0).tcp->watch);
	ahead = 59000000000ull;
	at(0).tcp->watch.fired(&at(0).tcp->watch);
	EXPECT_EQ(at(0).conn(1)->state, TDM_CONN_GREETING);
	ahead = 61000000000ull;
	at(0).tcp->watch.fired(&at(0).tcp->watch);
	EXPECT_EQ(at(0).conn(1)->state, TDM_CONN_BACKOFF);
	/* It comes back, and nothing is lost. */
	told = {};
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	EXPECT_EQ(0, at(0).tx.got[0].err);
}

/* A middlebox takes each connection, and nobody is behind it. */
TEST_F(TcpSilence, TwoSilentGreetingsAreEnough)
{
	mesh(2);
	ASSERT_EQ(0, at(0).send(1, "x", 2, 1));
	for (unsigned n = 1; n <= 2; n++) {
		ASSERT_TRUE(at(0).tx.got.empty()) << n;
		ASSERT_TRUE(alone(0, [&] {
			return at(0).conn(1)->state == TDM_CONN_GREETING;
		})) << n;
		cut();
		at(0).tcp->watch.fired(&at(0).tcp->watch);
		ahead = n * 61000000000ull;
		at(0).tcp->watch.fired(&at(0).tcp->watch);
	}
	ASSERT_EQ(1u, at(0).tx.got.size());
	EXPECT_EQ(FI_ETIMEDOUT, at(0).tx.got[0].err);
}

/* The same while a session is resumed: each attempt ends, and in the end the session. */
TEST_F(TcpSilence, D8_EndsAResumptionToo)
{
	char in[8];

	mesh(2);
	ASSERT_EQ(0, at(1).recv(in, 8, 1));
	ASSERT_EQ(0, at(0).send(1, "x", 2, 1));
	ASSERT_TRUE(until([&] {
		return at(1).rx.got.size() == 1 && at(0).tx.got.size() == 1;
	}));
	ASSERT_EQ(0, at(0).send(1, "y", 2, 2));
	reset_connection(at(0).conn(1)->io.fd);
	cut();
	for (unsigned n = 1; n <= 2; n++) {
		ASSERT_TRUE(at(0).lost.empty()) << n;
		/* It waits for the answer. */
		ASSERT_TRUE(alone(0, [&] {
			const struct tdm_conn *c = at(0).conn(1);

			return c->state == TDM_CONN_RESUMING && c->io.fd >= 0 &&
			       c->io.events == TDM_LOOP_READ;
		})) << n;
		at(0).tcp->watch.fired(&at(0).tcp->watch);
		ahead = n * 61000000000ull;
		at(0).tcp->watch.fired(&at(0).tcp->watch);
	}
	EXPECT_EQ(std::vector<int>{ FI_ETIMEDOUT }, at(0).lost);
}

/* The value of a number option of @fd. */
int option(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int val = -1;

	EXPECT_EQ(0, ::getsockopt(fd, level, name, &val, &len));
	return val;
}

struct Alive {
	unsigned timeout_ms;
	int on, gap_s;
};

void PrintTo(const Alive &a, std::ostream *os)
{
	*os << a.timeout_ms << " ms";
}

class TcpKeepAlive : public TcpSilence,
		     public testing::WithParamInterface<Alive>
{
};

/*
 * fi_tandem(7), FI_TANDEM_PEER_TIMEOUT: the host of an idle peer is gone. The
 * first probe is sent after 10 s, and the sixth one at the time-out.
 */
TEST_P(TcpKeepAlive, D6_ProbesEndAtTheTimeOut)
{
	const Alive want = GetParam();

	tdm_env.peer_timeout_ms = want.timeout_ms;
	mesh(2);
	ASSERT_EQ(0, at(0).send(1, "x", 2, 1));
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	for (int fd : { at(0).conn(1)->io.fd, at(1).conn(0)->io.fd }) {
		EXPECT_EQ(want.on, option(fd, SOL_SOCKET, SO_KEEPALIVE));
		if (!want.on)
			continue;
		EXPECT_EQ(10, option(fd, IPPROTO_TCP, TCP_KEEPIDLE));
		EXPECT_EQ(6, option(fd, IPPROTO_TCP, TCP_KEEPCNT));
		EXPECT_EQ(want.gap_s, option(fd, IPPROTO_TCP, TCP_KEEPINTVL));
	}
}

INSTANTIATE_TEST_SUITE_P(
	All, TcpKeepAlive,
	testing::Values(Alive{ 0, 0, 0 }, Alive{ 1000, 1, 5 },
			Alive{ 10000, 1, 5 }, Alive{ 40000, 1, 5 },
			Alive{ 41000, 1, 6 }, Alive{ 60000, 1, 9 },
			Alive{ 300000, 1, 49 }, Alive{ 600000000, 1, 32767 }));

/* fi_tandem(7), FI_TANDEM_PEER_TIMEOUT: 0 is without end. */
TEST_F(TcpSilence, D6_WithoutATimeOutNoSilenceEndsASession)
{
	add();
	tdm_env.peer_timeout_ms = 0;
	session();
	cut();
	told.tcpi_probes = 40;
	for (unsigned s : { 0u, 60u, 3600u, 86400u }) {
		told.tcpi_last_ack_recv = s * 1000;
		look(s);
		ASSERT_TRUE(at(0).lost.empty()) << s;
	}
}

int no_route(int, const struct sockaddr *, socklen_t)
{
	errno = EHOSTUNREACH;
	return -1;
}

/* The same for one that has lost its connection: it is resumed a day later. */
TEST_F(TcpSilence, D6_WithoutATimeOutAResumptionGoesOn)
{
	char in[8];

	tdm_env.peer_timeout_ms = 0;
	mesh(2);
	ASSERT_EQ(0, at(1).recv(in, 8, 1));
	ASSERT_EQ(0, at(0).send(1, "x", 2, 1));
	ASSERT_TRUE(until([&] {
		return at(1).rx.got.size() == 1 && at(0).tx.got.size() == 1;
	}));
	tdm_os.connect = no_route;
	reset_connection(at(0).conn(1)->io.fd);
	ASSERT_TRUE(until([&] {
		return at(0).conn(1)->state == TDM_CONN_RESUMING &&
		       at(1).conn(0)->state == TDM_CONN_RESUMING;
	}));
	ASSERT_EQ(0, at(0).send(1, "y", 2, 2));
	for (unsigned s = 1; s <= 24 * 60; s++) {
		struct tdm_loop_timer *t = &at(0).conn(1)->setup->timer;

		ahead = s * 60000000000ull;
		tdm_loop_timer_disarm(t);
		t->fired(t);
		at(0).tcp->watch.fired(&at(0).tcp->watch);
		ASSERT_TRUE(at(0).lost.empty()) << s;
		ASSERT_EQ(TDM_CONN_RESUMING, at(0).conn(1)->state) << s;
	}
	tdm_os.connect = tdm_os_system.connect;
	ASSERT_EQ(0, at(1).recv(in, 8, 2));
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 2; }));
	EXPECT_STREQ("y", in);
	EXPECT_TRUE(at(0).lost.empty());
	EXPECT_TRUE(at(1).lost.empty());
}

} // namespace
