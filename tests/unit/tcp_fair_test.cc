/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One progress call takes a bounded number of records and bytes from each peer,
 * and then serves the next one: row R5. Node 1 floods node 0, and node 2 sends
 * single messages.
 */
#include <sys/ioctl.h>

#include "tcp_world.h"

extern "C" {
#include "tcp/wire/conn.h"
#include "tcp/wire/loop.h"
}

namespace
{

using namespace tcp_test;

class TcpFair : public Tcp
{
protected:
	enum {
		/* A pass ends behind the read that exceeds one of them. */
		PASS_RECORDS = 64,
		PASS_BYTES = 256 << 10,
		READ_BYTES = TDM_STAGE_BYTES,
		/* All sockets are polled once in so many passes, or sooner. */
		LOOK_PASSES = 16,
		ROUNDS = 20,
		FLOOD = 1,
		PING = 2,
	};

	Bytes out, in = Bytes(16384);
	char ping = 'p', pong = 0;
	size_t sent = 0; /* of the flood */

	/* All have sessions. Node 0 receives @n messages of @len bytes. */
	void begin(size_t n, size_t len)
	{
		mesh(3);
		out = pattern(len, 1);
		for (fi_addr_t i = 1; i < 3; i++) {
			ASSERT_EQ(0, at(i).send(0, "x", 1, PING));
			ASSERT_EQ(0, at(0).recv(&pong, 1, PING));
			ASSERT_TRUE(until(
				[&] { return at(0).rx.got.size() == i; }));
		}
		at(0).rx.got.clear();
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(0, at(0).recv(in.data(), len, FLOOD));
	}

	/* Node 1 sends until @n messages of it have not been met. */
	void flood(size_t n)
	{
		ASSERT_TRUE(others_until([&] {
			while (sent < at(0).rx.got.size() + n &&
			       !at(1).send(0, out.data(), out.size(), FLOOD,
					   FI_INJECT))
				sent++;
			return sent >= at(0).rx.got.size() + n;
		}));
		for (int i = 0; i < 10; i++)
			at(1).progress();
	}

	/* Bytes that wait at the socket of node 0 to @peer. */
	int waiting(fi_addr_t peer)
	{
		int n = 0;

		EXPECT_EQ(0, ioctl(at(0).conn(peer)->io.fd, FIONREAD, &n));
		return n;
	}

	/* Messages of @len bytes in one call, at most. */
	static size_t most(size_t len)
	{
		return std::min(PASS_RECORDS + READ_BYTES / len,
				(PASS_BYTES + READ_BYTES) / len);
	}

	/* Node 2 sends one that node 0 meets after few calls, each of which takes
	 * no more than @bound of the flood. */
	void meet(size_t bound)
	{
		unsigned calls = 0;
		bool met = false;

		ASSERT_EQ(0, at(0).recv(&pong, 1, PING, 0, &pong));
		ASSERT_EQ(0, at(2).send(0, &ping, 1, PING, FI_INJECT));
		ASSERT_TRUE(others_until([&] { return waiting(2) > 0; }));
		for (; !met && calls < 100; calls++) {
			size_t before = at(0).rx.got.size();

			at(0).progress();
			for (size_t i = before; i < at(0).rx.got.size(); i++)
				met |= at(0).rx.got[i].context == &pong;
			EXPECT_LE(at(0).rx.got.size() - before, bound + 1);
		}
		EXPECT_LE(calls, unsigned(LOOK_PASSES));
	}

	/* Has @cond held, while nodes 1 and 2 make progress? */
	bool others_until(const std::function<bool()> &cond)
	{
		return tdt_eventually(cond, [this] {
			at(1).progress();
			at(2).progress();
		});
	}
};

TEST_F(TcpFair, R05_OneCallTakesFewRecordsOfEachPeer)
{
	ASSERT_NO_FATAL_FAILURE(begin(60000, 200));
	for (int i = 0; i < ROUNDS && !HasFailure(); i++) {
		ASSERT_NO_FATAL_FAILURE(flood(3000));
		ASSERT_NO_FATAL_FAILURE(meet(most(200)));
	}
}

TEST_F(TcpFair, R05_OneCallTakesFewBytesOfEachPeer)
{
	ASSERT_NO_FATAL_FAILURE(begin(20000, 6000));
	for (int i = 0; i < ROUNDS && !HasFailure(); i++) {
		ASSERT_NO_FATAL_FAILURE(flood(150));
		ASSERT_NO_FATAL_FAILURE(meet(most(6000)));
	}
}

TEST_F(TcpFair, R05_FloodedNodeSendsInOneCall)
{
	ASSERT_NO_FATAL_FAILURE(begin(60000, 200));
	for (int i = 0; i < ROUNDS && !HasFailure(); i++) {
		size_t before = at(2).rx.got.size();
		size_t taken = at(0).rx.got.size();

		ASSERT_NO_FATAL_FAILURE(flood(3000));
		ASSERT_EQ(0, at(2).recv(&pong, 1, PING));
		ASSERT_EQ(0, at(0).send(2, &ping, 1, PING, FI_INJECT));
		at(0).progress();
		EXPECT_LE(at(0).rx.got.size() - taken, most(200));
		/* Node 0 makes no more progress: it has sent the message. */
		EXPECT_TRUE(others_until(
			[&] { return at(2).rx.got.size() > before; }));
	}
}

} // namespace
