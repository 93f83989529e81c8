/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a connection that are allocated when they are needed, when there
 * is no memory for them: a message is late, or its sender is told; none is
 * lost.
 */
#include <functional>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "fault.h"
#include "tcp_raw.h"

extern "C" {
#include "tcp/wire/out.h"
}

namespace
{

using namespace tcp_test;

enum { KEY = 77, LEN = 256 << 10 };

class TcpParts : public TcpFault
{
protected:
	Bytes out = pattern(LEN, 4), in = Bytes(LEN), target = Bytes(LEN);
	bool expected = false; /* the receive is posted before the message */

	void SetUp() override
	{
		if (!tdt_alloc_can_fail())
			GTEST_SKIP() << "linked without --wrap=malloc";
	}

	void TearDown() override
	{
		tdt_alloc_stop();
		TcpFault::TearDown();
	}

	/* The connection to the other node has no part of its own. */
	bool small(size_t node)
	{
		struct tdm_tcp *tcp = at(node).tcp;
		struct tdm_conn *c = at(node).conn(!node);

		tcp->watch.fired(&tcp->watch);
		return c->busy == &tdm_not_busy && !c->setup;
	}

	/* A session of two nodes that have had every kind of operation. */
	void meet()
	{
		mesh(2);
		at(1).regions.add(KEY, target.data(), LEN,
				  FI_REMOTE_READ | FI_REMOTE_WRITE);
		ASSERT_EQ(0, at(0).send(1, out.data(), LEN, 3));
		ASSERT_EQ(0, at(1).recv(in.data(), LEN, 3));
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
		settle();
		ASSERT_TRUE(small(0) && small(1));
	}

	/* The result of an operation while one allocation failed. */
	struct Try {
		int err;	 /* of its completion */
		unsigned failed; /* allocations */
	};

	/*
	 * Post an operation by @post while the allocation number @nth fails,
	 * and receives by @match, and wait for the end of both.
	 */
	void attempt(unsigned nth, bool all, std::function<ssize_t()> post,
		     std::function<size_t()> match, Try *t)
	{
		size_t sent = at(0).tx.got.size(), had = at(1).rx.got.size();
		ssize_t ret;

		std::fill(in.begin(), in.end(), 0);
		std::fill(target.begin(), target.end(), 0);
		if (expected)
			had += match();
		tdt_alloc_fail(nth, all);
		ret = post();
		for (int i = 0; i < 50; i++)
			turn();
		t->failed = tdt_alloc_stop();
		if (ret) {
			ASSERT_EQ(-FI_ENOMEM, ret);
			ASSERT_EQ(0, post());
		}
		if (!expected)
			had += match();
		ASSERT_TRUE(until([&] {
			return at(0).tx.got.size() > sent &&
			       at(1).rx.got.size() == had;
		}));
		t->err = at(0).tx.got[sent].err;
		settle(2);
		EXPECT_EQ(sent + 1, at(0).tx.got.size());
		EXPECT_TRUE(at(0).lost.empty() && at(1).lost.empty());
	}

	/*
	 * Each allocation of an operation and of its arrival fails in turn, and
	 * then all of them. @good: its bytes have arrived.
	 */
	void without_memory(std::function<ssize_t()> post,
			    std::function<size_t()> match,
			    std::function<bool()> good, bool may_fail)
	{
		unsigned failed = 0;

		ASSERT_NO_FATAL_FAILURE(meet());
		for (unsigned n = 0; n < 16; n++) {
			Try t = {};

			ASSERT_TRUE(until([&] { return small(0) && small(1); }))
				<< n;
			ASSERT_NO_FATAL_FAILURE(
				attempt(n ? n : 1, !n, post, match, &t))
				<< n;
			failed += t.failed;
			if (t.err) {
				EXPECT_TRUE(may_fail) << n;
				EXPECT_EQ(FI_ENOMEM, t.err) << n;
			} else {
				EXPECT_TRUE(good()) << n;
			}
		}
		EXPECT_LT(0u, failed) << "nothing was needed";
	}

	/* Post a receive; the number of completions it will have. */
	size_t receive(size_t len, uint64_t tag)
	{
		EXPECT_EQ(0, at(1).recv(in.data(), len, tag));
		return 1;
	}
};

class TcpPartsMessage : public TcpParts,
			public testing::WithParamInterface<bool>
{
protected:
	TcpPartsMessage()
	{
		expected = GetParam();
	}
};

INSTANTIATE_TEST_SUITE_P(, TcpPartsMessage, testing::Bool(),
			 [](const testing::TestParamInfo<bool> &i) {
				 return i.param ? "Expected" : "Unexpected";
			 });

TEST_P(TcpPartsMessage, Announced)
{
	without_memory([&] { return at(0).send(1, out.data(), LEN, 5); },
		       [&] { return receive(LEN, 5); },
		       [&] { return in == out; }, false);
}

/* Longer than is copied: its bytes are sent from the buffer. */
TEST_P(TcpPartsMessage, Borrowed)
{
	const size_t len = TDM_TCP_COPY_BYTES + 1;

	without_memory([&] { return at(0).send(1, out.data(), len, 5); },
		       [&] { return receive(len, 5); },
		       [&] { return same(in, out, len); }, false);
}

TEST_P(TcpPartsMessage, Delivered)
{
	without_memory(
		[&] {
			return at(0).send(1, out.data(), 100, 5,
					  FI_COMPLETION | FI_DELIVERY_COMPLETE);
		},
		[&] { return receive(100, 5); },
		[&] { return same(in, out, 100); }, false);
}

/* A whole message needs a part of the connection only if it is unexpected. */
TEST_F(TcpParts, ShortUnexpectedMessagesArriveWithoutMemory)
{
	for (uint64_t flags : { 0ull, FI_INJECT }) {
		nodes.clear();
		ASSERT_NO_FATAL_FAILURE(without_memory(
			[&] {
				return at(0).send(1, out.data(), 100, 5,
						  FI_COMPLETION | flags);
			},
			[&] { return receive(100, 5); },
			[&] { return same(in, out, 100); }, false));
	}
}

/* One-sided operations may end with FI_ENOMEM, since the target says so. */
TEST_F(TcpParts, OneSidedOperationsEndWithoutMemory)
{
	auto none = [] {
		return size_t(0);
	};

	for (size_t len : { 100, int(LEN) }) {
		nodes.clear();
		ASSERT_NO_FATAL_FAILURE(without_memory(
			[&] {
				return at(0).rma(FI_WRITE, 1, out.data(), len,
						 KEY, 0);
			},
			none, [&] { return same(target, out, len); }, true));
		nodes.clear();
		ASSERT_NO_FATAL_FAILURE(without_memory(
			[&] {
				target = out;
				return at(0).rma(FI_READ, 1, in.data(), len,
						 KEY, 0);
			},
			none, [&] { return same(in, out, len); }, true));
	}
}

TEST_F(TcpParts, AtomicOperationsEndWithoutMemory)
{
	uint64_t one = 1, result = 0, *value = (uint64_t *)target.data();
	struct iovec operand = { &one, sizeof(one) };
	struct tdm_amo_call call = {};
	struct tdm_xfer x = {};

	call.amo = { FI_UINT64, FI_SUM, TDM_AMO_FETCH, TDM_AMO_FORM };
	call.bytes = sizeof(one);
	call.result_count = 1;
	call.result[0] = { &result, sizeof(result) };
	x.flags = FI_ATOMIC | FI_COMPLETION | FI_READ;
	x.iov = &operand;
	x.count = 1;
	x.len = sizeof(one);
	x.amo = &call;
	x.rma_key = KEY;
	x.addr = 1;
	without_memory(
		[&] {
			*value = 7;
			return tdm_tx_send(at(0).conn(1), &x);
		},
		[] { return size_t(0); },
		[&] { return result == 7 && *value == 8; }, true);
}

/* The bytes of a header arrive one by one, and there is no memory at first. */
TEST_F(TcpParts, AHeaderInPiecesWaitsForMemory)
{
	std::vector<uint8_t> b(TDM_WIRE_HEAD_BYTES);
	struct tdm_wire_rec r = rec(TDM_WIRE_EAGER, TDM_WIRE_F_TAG);

	r.tag = 5;
	b.resize(tdm_wire_encode(b.data(), &r));
	mesh(1);
	ASSERT_NO_FATAL_FAILURE(session());
	for (size_t n = 1; n < b.size(); n++) {
		ASSERT_EQ(0, at(0).recv(in.data(), 8, 5));
		settle(1);
		at(0).tcp->watch.fired(&at(0).tcp->watch);
		tdt_alloc_fail(1, 1);
		raw.say(b.data(), n);
		ASSERT_TRUE(until([&] {
			return at(0).tcp->stage->stalled != NULL;
		})) << n;
		EXPECT_LT(0u, tdt_alloc_stop());
		raw.say(b.data() + n, b.size() - n);
		ASSERT_TRUE(until([&] { return at(0).rx.got.size() == n; }))
			<< n;
		EXPECT_EQ(0, at(0).rx.got.back().err);
	}
	EXPECT_TRUE(at(0).lost.empty());
}

/* A connection cannot be begun: its sends end with FI_ENOMEM, later ones not. */
TEST_F(TcpParts, NoMemoryToConnect)
{
	mesh(3);
	/* From now on sends to others need no memory of their own. */
	ASSERT_EQ(0, at(0).send(2, "x", 1, 1));
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	at(0).conn(1);
	tdt_alloc_fail(1, 1);
	ASSERT_EQ(0, at(0).send(1, "x", 1, 2));
	EXPECT_LT(0u, tdt_alloc_stop());
	ASSERT_EQ(2u, at(0).tx.got.size());
	EXPECT_EQ(FI_ENOMEM, at(0).tx.got[1].err);
	ASSERT_EQ(1u, at(0).lost.size());
	EXPECT_EQ(FI_ENOMEM, at(0).lost[0]);
	ASSERT_EQ(0, at(0).send(1, "x", 1, 3));
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 3; }));
	EXPECT_EQ(0, at(0).tx.got[2].err);
}

/* A probe is tried again. */
TEST_F(TcpParts, NoMemoryToProbe)
{
	mesh(2);
	struct tdm_conn *c = at(0).conn(1);

	tdt_alloc_fail(1, 1);
	EXPECT_EQ(-FI_EAGAIN, tdm_conn_probe(c));
	EXPECT_LT(0u, tdt_alloc_stop());
	EXPECT_EQ(TDM_CONN_IDLE, c->state);
	EXPECT_TRUE(until([&] { return !tdm_conn_probe(c); }));
}

ssize_t no_room(int, const void *, size_t, int)
{
	errno = ENOBUFS;
	return -1;
}

/*
 * The kernel has no memory for a send, and there is none for the timer that
 * would try again: the session ends, and the send with it.
 */
TEST_F(TcpParts, NoMemoryToWaitForTheKernel)
{
	ASSERT_NO_FATAL_FAILURE(meet());
	tdm_os.send = no_room;
	tdt_alloc_fail(1, 1);
	ASSERT_EQ(0, at(0).send(1, "x", 1, 1));
	EXPECT_LT(0u, tdt_alloc_stop());
	ASSERT_TRUE(until([&] { return !at(0).lost.empty(); }));
	tdm_os.send = tdm_os_system.send;
	EXPECT_EQ(ENOBUFS, at(0).lost[0]);
	ASSERT_EQ(2u, at(0).tx.got.size());
	EXPECT_EQ(ENOBUFS, at(0).tx.got[1].err);
}

int dry, dryness; /* reads to come that fail, and how */

ssize_t dry_recv(int fd, void *buf, size_t len, int flags)
{
	if (dry > 0) {
		dry--;
		errno = dryness;
		return -1;
	}
	return tdm_os_system.recv(fd, buf, len, flags);
}

/* The kernel has none for a read: the bytes stay in the socket until later. */
TEST_F(TcpParts, KernelHasNoMemoryForARead)
{
	char in[8];

	mesh(2);
	/* First the greeting and the message are read, then a message alone. */
	for (int err : { ENOMEM, ENOBUFS, ENOMEM }) {
		at(1).rx.got.clear();
		dry = 5;
		dryness = err;
		tdm_os.recv = dry_recv;
		ASSERT_EQ(0, at(1).recv(in, sizeof(in), 1));
		ASSERT_EQ(0, at(0).send(1, "x", 2, 1));
		ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
		EXPECT_EQ(0, dry);
		EXPECT_EQ(0, at(1).rx.got[0].err);
		EXPECT_STREQ("x", in);
	}
	EXPECT_TRUE(at(0).lost.empty());
	EXPECT_TRUE(at(1).lost.empty());
}

} // namespace
