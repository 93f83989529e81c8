/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Injects of an endpoint that closes: doc/PROTOCOL-tcp.md, LEFT.
 */
#include <rdma/fi_errno.h>

#include "tcp_raw.h"
#include "tests/harness/fault.h"

extern "C" {
#include "tdm_held.h"
#include "tdm_open.h"
}

namespace
{

using namespace tcp_test;

class TcpLeft : public TcpFault
{
protected:
	static constexpr uint64_t KEY = 7;

	/* Node 0 has a session with node 1, which has little room. */
	void meet()
	{
		tdm_env.unexp_max_bytes = 128 << 10;
		mesh(2);
		at(0).send(1, "open", 5, ~0ull);
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	}

	/*
	 * Node 0 injects messages of @len bytes, tags [0, n), to node 1. It
	 * closes in the thread that reads for node 1, so the buffers of the
	 * kernel have to hold them.
	 */
	void inject(uint64_t n, size_t len)
	{
		for (uint64_t tag = 0; tag < n; tag++) {
			Bytes out = pattern(len, (unsigned)tag);

			ASSERT_EQ(0, at(0).send(1, out.data(), len, tag,
						FI_INJECT));
			turn();
		}
	}

	/* Node 1 receives those of them whose tag is below @n. */
	void take(uint64_t n, size_t len)
	{
		Bytes in(len);

		for (uint64_t tag = 0; tag < n; tag++) {
			size_t had = at(1).rx.got.size();

			ASSERT_EQ(0, at(1).recv(in.data(), len, tag));
			ASSERT_TRUE(until([&] {
				return at(1).rx.got.size() > had;
			})) << tag;
			ASSERT_EQ(0, at(1).rx.got[had].err) << tag;
			ASSERT_EQ(pattern(len, (unsigned)tag), in) << tag;
		}
	}

	/* A session of the raw peer, which has announced a message and a write:
	 * nobody has matched the message. */
	void announced(Bytes *region)
	{
		struct tdm_wire_rec r = rec(TDM_WIRE_RTS, TDM_WIRE_F_TAG);

		mesh(1);
		at(0).regions.add(KEY, region->data(), region->size(),
				  FI_REMOTE_WRITE);
		ASSERT_NO_FATAL_FAILURE(session());
		r.tag = 5;
		r.id = 1;
		r.total = 8;
		raw.record(r);
		r = rec(TDM_WIRE_AWRITE);
		r.id = 2;
		r.key = KEY;
		r.total = 16;
		raw.record(r);
	}

	void left(uint64_t before, uint32_t len)
	{
		struct tdm_wire_rec r = rec(TDM_WIRE_LEFT, 0, len);

		r.total = before;
		raw.record(r, len);
	}
};

TEST_F(TcpLeft, InjectsLeaveWithoutCreditInTheirOrder)
{
	const uint64_t n = 300;
	const size_t len = 100;

	ASSERT_NO_FATAL_FAILURE(meet());
	ASSERT_NO_FATAL_FAILURE(inject(n, len));
	ASSERT_LT(0u, at(0).conn(1)->busy->rts) << "nothing was announced";
	at(0).close();
	ASSERT_TRUE(until([&] { return !at(1).lost.empty(); }));
	ASSERT_NO_FATAL_FAILURE(take(n, len));
	settle();
	EXPECT_GT(2048u, held(at(1)));
}

TEST_F(TcpLeft, NoMemoryAtTheReceiverLosesNothing)
{
	const uint64_t n = 300;
	const size_t len = 100;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "not linked for it";
	ASSERT_NO_FATAL_FAILURE(meet());
	ASSERT_NO_FATAL_FAILURE(inject(n, len));
	ASSERT_LT(0u, at(0).conn(1)->busy->rts);
	at(0).close();
	tdt_alloc_fail(1, 1);
	for (int i = 0; i < 100; i++)
		at(1).progress();
	EXPECT_GT(tdt_alloc_stop(), 0u);
	ASSERT_NO_FATAL_FAILURE(take(n, len));
}

/* A receiver that knows a message already gets it, however it was matched. */
TEST_F(TcpLeft, ReceivesThatMeetTheAnnouncementAreFilled)
{
	const size_t len = 100;
	const uint64_t n = 300;
	Bytes in(len);

	ASSERT_NO_FATAL_FAILURE(meet());
	ASSERT_NO_FATAL_FAILURE(inject(n, len));
	settle();
	/* The answer stays unread. */
	ASSERT_EQ(0, at(1).recv(in.data(), len - 1, n - 1));
	at(1).progress();
	at(0).close();
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_EQ(FI_ETRUNC, at(1).rx.got[0].err);
	in.back() = pattern(len, (unsigned)n - 1).back();
	EXPECT_EQ(pattern(len, (unsigned)n - 1), in);
	ASSERT_NO_FATAL_FAILURE(take(n - 1, len));
}

/* fi_tandem(7), LIMITS: those that come, inject and go cannot fill memory. */
TEST_F(TcpLeft, WhatIsKeptIsBounded)
{
	const size_t len = 4000;

	tdm_env.unexp_max_bytes = 128 << 10;
	tdm_env.inject_max_bytes = 256 << 10;
	add();
	for (int i = 0; i < 20; i++) {
		Bytes out = pattern(len, 1);
		Node n;
		fi_addr_t to = n.insert(at(0).addr);

		/* So few that the buffers of the kernel hold them. */
		for (int k = 0; k < 15; k++) {
			ASSERT_EQ(0, n.send(to, out.data(), len, 1, FI_INJECT));
			n.progress();
			turn();
		}
		n.close();
		for (int k = 0; k < 50; k++)
			turn();
		ASSERT_LE(held(at(0)), (128u + 256 + 64 + 64) << 10) << i;
	}
}

TEST_F(TcpLeft, BytesOfMessagesAndWrites)
{
	Bytes region(16), in(8), want(16, 0x55);

	ASSERT_NO_FATAL_FAILURE(announced(&region));
	left(0, 8);
	left(1, 16);
	ASSERT_TRUE(until([&] { return region == want; }));
	raw.hang_up();
	ASSERT_TRUE(until([&] { return !at(0).lost.empty(); }));
	ASSERT_EQ(0, at(0).recv(in.data(), 8, 5));
	ASSERT_TRUE(until([&] { return at(0).rx.got.size() == 1; }));
	EXPECT_EQ(0, at(0).rx.got[0].err);
	EXPECT_EQ(Bytes(8, 0x55), in);
	EXPECT_EQ(0u, at(0).regions.in_flight);
}

TEST_F(TcpLeft, WhatWasWithdrawnIsDropped)
{
	struct tdm_wire_rec r = rec(TDM_WIRE_CANCEL);
	Bytes region(16), want(16, 0x55);

	ASSERT_NO_FATAL_FAILURE(announced(&region));
	r.id = 1;
	raw.record(r);
	left(0, 8);
	left(1, 16);
	ASSERT_TRUE(until([&] { return region == want; }));
	EXPECT_TRUE(at(0).lost.empty());
}

unsigned naps; /* of a close; each takes a second of the clock */

/* The peer does not read: a close waits for it as if nothing had been injected. */
TEST_F(TcpLeft, AReplyThatIsHalfSentIsNoInject)
{
	Bytes region(8 << 20), in(region.size());

	mesh(2);
	at(1).regions.add(KEY, region.data(), region.size(), FI_REMOTE_READ);
	ASSERT_EQ(0, at(0).rma(FI_READ, 1, in.data(), in.size(), KEY, 0));
	ASSERT_TRUE(until([&] { return at(1).regions.in_flight; }));
	naps = 0;
	tdm_os.now_ns = [] {
		return tdm_os_system.now_ns() + uint64_t(1000000000) * naps;
	};
	tdm_os.poll = [](struct pollfd *, nfds_t, int) {
		naps++;
		return 0;
	};
	at(1).close();
	EXPECT_LE(1u, naps) << "the whole reply was sent";
	EXPECT_GE(2u, naps);
}

TEST_F(TcpLeft, WhatCannotBeEndsTheSession)
{
	for (int i = 0; i < 5; i++) {
		Bytes region(16);

		nodes.clear();
		ASSERT_NO_FATAL_FAILURE(announced(&region));
		if (i == 0)
			left(2, 8); /* there were two */
		if (i == 1)
			left(0, 9); /* another length */
		if (i == 2) {
			left(0, 8); /* twice */
			left(0, 8);
		}
		if (i == 3)
			left(0, TDM_WIRE_LEFT_BYTES + 1);
		if (i == 4)
			raw.record(rec(TDM_WIRE_EAGER, TDM_WIRE_F_LEFT,
				       TDM_WIRE_LEFT_BYTES + 1));
		EXPECT_TRUE(closed()) << i;
		still_serves();
	}
}

} // namespace
