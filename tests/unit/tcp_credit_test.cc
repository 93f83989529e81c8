/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of messages that nobody waits for yet: what a peer may send, what all
 * of them may, and what a sender keeps of its own. fi_tandem(7), LIMITS;
 * doc/PROTOCOL-tcp.md, "Credit".
 */
#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tcp_raw.h"
#include "tests/harness/fault.h"

extern "C" {
#include "tdm_held.h"
#include "base/inject.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/share.h"
#include "tdm_open.h"
}

namespace
{

using namespace tcp_test;

class TcpCredit : public TcpFault
{
protected:
	/* Node 0 injects tags [0, n), 8 bytes each, to node 1. */
	ssize_t storm(uint64_t n)
	{
		ssize_t ret = 0;

		for (uint64_t tag = 0; tag < n && !ret; tag++)
			ret = at(0).send(1, &tag, 8, tag, FI_INJECT);
		return ret;
	}

	/* Node 1 receives tag @last first, and then [0, last). */
	void backward(uint64_t last)
	{
		uint64_t in = 0;

		at(1).rx.got.clear();
		ASSERT_EQ(0, at(1).recv(&in, 8, last));
		ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
		EXPECT_EQ(last, in);
		for (uint64_t tag = 0; tag < last; tag++) {
			at(1).rx.got.clear();
			ASSERT_EQ(0, at(1).recv(&in, 8, tag));
			ASSERT_TRUE(until([&] {
				return at(1).rx.got.size() == 1;
			})) << tag;
			ASSERT_EQ(tag, in);
		}
	}
};

/*
 * fi_tagged(3) 2.1, DESCRIPTION 1: Which message is received first is the
 * receiver's choice.
 */
TEST_F(TcpCredit, InjectsDoNotWaitForReceives)
{
	const uint64_t last = 16384;

	mesh(2);
	ASSERT_EQ(0, storm(last + 1));
	ASSERT_NO_FATAL_FAILURE(backward(last));
	EXPECT_EQ(0u, at(1).conn(0)->busy->announced);
	EXPECT_EQ(0u, tdm_inject_bytes.v);
	/* The credit shrinks again as it is used. */
	ASSERT_EQ(0, storm(20000));
	ASSERT_NO_FATAL_FAILURE(backward(19999));
	settle();
	EXPECT_LE(held(at(1)), 16u << 20);
}

TEST_F(TcpCredit, AnnouncedInjectsDoNotEither)
{
	const uint64_t last = 6000;

	tdm_env.unexp_max_bytes = 1 << 20;
	nodes.emplace_back(new Node("127.0.0.1", 0, 16));
	at(0).listen();
	mesh(2);
	ASSERT_EQ(0, storm(last + 1));
	ASSERT_NO_FATAL_FAILURE(backward(last));
}

TEST_F(TcpCredit, InjectsAreBoundedByTheirMemory)
{
	const uint64_t room = 64 << 10;
	uint64_t n = 0;

	tdm_env.inject_max_bytes = room;
	mesh(2);
	while (n < 10000 && !at(0).send(1, &n, 8, n, FI_INJECT))
		n++;
	EXPECT_EQ(-FI_EAGAIN, at(0).send(1, &n, 8, n, FI_INJECT));
	EXPECT_GE(n, room / 1024);
	EXPECT_LE(n, room / 8);
	EXPECT_LE(tdm_inject_bytes.v, room);
	ASSERT_NO_FATAL_FAILURE(backward(n - 1));
	EXPECT_EQ(0u, tdm_inject_bytes.v);
	EXPECT_EQ(0, at(0).send(1, &n, 8, n, FI_INJECT));
}

TEST_F(TcpCredit, MessagesOfPeersThatLeftAreCounted)
{
	const uint64_t max = 1 << 20, share = TDM_HELD_SHARE_BYTES;
	Bytes out = pattern(4000, 1), in(4000);
	size_t taken = 0;

	tdm_env.unexp_max_bytes = max;
	add();
	for (int i = 0; i < 60; i++) {
		Node n;
		fi_addr_t to = n.insert(at(0).addr);
		const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		size_t sent = 0;

		while (sent < 40 && !n.send(to, out.data(), 4000, 1))
			sent++;
		/*
		 * Messages that have not completed are announced, and are lost
		 * with their sender.
		 */
		while (n.tx.got.size() < sent && !at(0).tcp->dead.next->next &&
		       tdt_now_ms() < end)
			n.progress(), turn();
		for (int k = 0; k < 50; k++)
			n.progress(), turn();
		taken += n.tx.got.size();
		n.close();
		for (int k = 0; k < 20; k++)
			turn();
		ASSERT_LE(held(at(0)), max + 2 * share) << i;
	}
	/*
	 * Completed messages have arrived, and receiving them frees their
	 * memory.
	 */
	ASSERT_GT(taken, 0u);
	for (size_t i = 0; i < taken; i++) {
		ASSERT_EQ(0, at(0).recv(in.data(), in.size(), 1));
		ASSERT_TRUE(until([&] { return at(0).rx.got.size() == i + 1; }))
			<< i << " of " << taken;
		ASSERT_EQ(out, in);
	}
	settle();
	EXPECT_LT(held(at(0)), max / 2);
}

/* The charge for messages that wait is no less than the memory that they take. */
TEST_F(TcpCredit, F15_NoLessThanTheMessagesTake)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "not linked for it";
	for (size_t len : { 0, 8, 100, 1024, 4000 }) {
		const size_t n = 4079; /* and "open" fill the slabs */
		Bytes out = pattern(len + 1, 1);
		size_t taken = 0, had;

		nodes.clear();
		mesh(2);
		ASSERT_EQ(0, at(0).send(1, "open", 5, 1000));
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
		had = held(at(1));
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(0, at(0).send(1, out.data(), len, 1));
		const uint64_t end = tdt_now_ms() + tdt_deadline_ms();

		while (at(0).tx.got.size() <= n && tdt_now_ms() < end) {
			at(0).progress();
			tdt_alloc_fail(0, 0);
			at(1).progress();
			taken += tdt_alloc_bytes();
			tdt_alloc_stop();
		}
		ASSERT_EQ(n + 1, at(0).tx.got.size()) << len;
		/* Credit that is given and not used yet is charged as well. */
		EXPECT_LE(n * len, held(at(1)) - had) << len;
		EXPECT_LE(taken, held(at(1)) - had + taken / 20) << len;
	}
}

TEST_F(TcpCredit, WhoCannotDoWithoutCreditIsBusyWhenThereIsNone)
{
	struct tdm_wire_greeting g;

	mesh(1);
	tdm_env.unexp_max_bytes = 0;
	raw.call(at(0).addr);
	raw.hello(Raw::greeting(9));
	g = greeted(raw);
	EXPECT_EQ(TDM_WIRE_REJECT, g.kind);
	EXPECT_EQ(TDM_WIRE_R_BUSY, g.reason);
	/* A peer that can begin without credit is accepted, and gets none. */
	g = Raw::greeting(9);
	g.features = TDM_WIRE_FEATURE_CREDIT;
	raw.call(at(0).addr);
	raw.hello(g);
	g = greeted(raw);
	EXPECT_EQ(TDM_WIRE_HELLO, g.kind);
	EXPECT_EQ(0u, g.credit);
	raw.record(rec(TDM_WIRE_EAGER, 0, 8), 8);
	EXPECT_TRUE(closed()) << "credit exceeded";
}

/* A peer without the feature gets back the credit that it used, no more. */
TEST_F(TcpCredit, APeerWithoutTheFeatureHasItsFirstCredit)
{
	mesh(1);
	session();
	for (int i = 0; i < 2048; i++)
		raw.record(rec(TDM_WIRE_EAGER, 0, 0));
	settle();
	EXPECT_FALSE(at(0).lost.size());
	raw.record(rec(TDM_WIRE_EAGER, 0, 0));
	EXPECT_TRUE(closed());
}

/*
 * fi_cq(3) 2.1, COMPLETION EVENT SEMANTICS 11: A message that was reported as
 * sent is not lost for want of memory.
 */
TEST_F(TcpCredit, NoMemoryAtTheReceiverLosesNothing)
{
	const size_t n = 60, each = 999;
	std::vector<Bytes> in(n, Bytes(each)), out;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "not linked for it";
	mesh(2);
	at(0).send(1, "open", 5, 1000);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	for (size_t i = 0; i < n; i++) {
		uint64_t flags = FI_COMPLETION |
				 (i % 3 ? 0 : FI_DELIVERY_COMPLETE);

		out.push_back(pattern(each, (unsigned)i));
		/* Every other one is expected. */
		if (i % 2) {
			ASSERT_EQ(0, at(1).recv(in[i].data(), each, i));
		}
		ASSERT_EQ(0, at(0).send(1, out[i].data(), each, i, flags));
		at(0).progress();
	}
	tdt_alloc_fail(1, 1);
	for (int i = 0; i < 100; i++)
		at(1).progress();
	EXPECT_GT(tdt_alloc_stop(), 0u);
	EXPECT_TRUE(at(1).lost.empty());
	for (size_t i = 0; i < n; i += 2)
		ASSERT_EQ(0, at(1).recv(in[i].data(), each, i));
	ASSERT_TRUE(until([&] {
		return at(1).rx.got.size() == n && at(0).tx.got.size() == n + 1;
	}))
		<< at(1).rx.got.size() << " " << at(0).tx.got.size();
	for (size_t i = 0; i < n; i++)
		EXPECT_EQ(out[i], in[i]) << i;
	for (auto &c : at(1).rx.got)
		EXPECT_EQ(0, c.err);
	EXPECT_TRUE(at(0).lost.empty());
}

/*
 * The receiver has no memory at each place in turn while a message is announced
 * to it, or while the receive for it is posted. The message comes all the same.
 */
TEST_F(TcpCredit, AnnouncedWithoutMemory)
{
	const Bytes out = pattern(300000, 1);
	unsigned failures = 0;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "not linked for it";
	for (unsigned nth = 1; nth < 16; nth++) {
		bool posted = nth % 2;
		Bytes in(out.size());

		nodes.clear();
		mesh(2);
		at(0).send(1, "open", 5, 1000);
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
		if (posted) {
			ASSERT_EQ(0, at(1).recv(in.data(), in.size(), 1));
		}
		ASSERT_EQ(0, at(0).send(1, out.data(), out.size(), 1));
		for (int i = 0; i < 50; i++)
			at(0).progress();
		tdt_alloc_fail((nth + 1) / 2, 0);
		for (int i = 0; i < 50; i++)
			at(1).progress();
		while (!posted && at(1).recv(in.data(), in.size(), 1))
			;
		for (int i = 0; i < 50; i++)
			at(1).progress();
		failures += tdt_alloc_stop();
		ASSERT_TRUE(until([&] {
			return at(1).rx.got.size() == 1 &&
			       at(0).tx.got.size() == 2;
		})) << nth;
		EXPECT_EQ(0, at(1).rx.got[0].err) << nth;
		EXPECT_EQ(0, at(0).tx.got[1].err) << nth;
		EXPECT_EQ(out, in) << nth;
	}
	EXPECT_GT(failures, 0u);
}

/*
 * Two endpoints of one domain read into one staging buffer. The first one has no
 * memory for a message while the other is sent one: both messages come.
 */
TEST_F(TcpCredit, AnotherEndpointWithoutMemory)
{
	const Bytes out = pattern(300000, 1), small = pattern(300, 2);
	unsigned failures = 0;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "not linked for it";
	for (unsigned nth = 1; nth < 8; nth++) {
		Bytes in(out.size()), other(small.size());

		nodes.clear();
		add();
		add();
		add(true, &at(1));
		mesh(3);
		for (fi_addr_t to = 1; to < 3; to++)
			at(0).send(to, "open", 5, 1000);
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 2; }));
		ASSERT_EQ(0, at(2).recv(other.data(), other.size(), 1));
		ASSERT_EQ(0, at(0).send(1, out.data(), out.size(), 1));
		ASSERT_EQ(0, at(0).send(2, small.data(), small.size(), 1));
		for (int i = 0; i < 50; i++)
			at(0).progress();
		tdt_alloc_fail(nth, 0);
		for (int i = 0; i < 50; i++) {
			at(1).progress();
			at(2).progress();
		}
		failures += tdt_alloc_stop();
		ASSERT_EQ(0, at(1).recv(in.data(), in.size(), 1));
		ASSERT_TRUE(until([&] {
			return at(1).rx.got.size() == 1 &&
			       at(2).rx.got.size() == 1 &&
			       at(0).tx.got.size() == 4;
		})) << nth;
		EXPECT_EQ(out, in) << nth;
		EXPECT_EQ(small, other) << nth;
	}
	EXPECT_GT(failures, 0u);
}

/* Peers that nobody chose have a bound for all of them together. */
TEST_F(TcpCredit, N8_StrangersShareTheAnnouncedOperations)
{
	std::vector<std::unique_ptr<Raw>> crowd;
	uint64_t sum = 0, least = TDM_CREDIT_ANNOUNCED_LEAST;
	struct tdm_wire_greeting g;

	mesh(2);
	for (uint16_t i = 0; i < 60; i++) {
		crowd.emplace_back(new Raw());
		crowd.back()->call(at(0).addr);
		crowd.back()->hello(Raw::greeting((uint16_t)(9 + i)));
		g = greeted(*crowd.back());
		ASSERT_EQ(TDM_WIRE_HELLO, g.kind) << i;
		sum += g.rts;
		EXPECT_GE(g.rts, least);
	}
	EXPECT_LE(sum, TDM_WIRE_RTS_COUNT + 60 * least);
	sum = tdm_min(sum, (uint64_t)TDM_WIRE_RTS_COUNT);
	EXPECT_LE(sum, tdm_share_announced(at(0).tcp));
	/* A peer in the address vector has all of them. */
	at(1).send(0, "x", 2, 1);
	ASSERT_TRUE(until([&] { return at(1).tx.got.size() == 1; }));
	EXPECT_EQ(at(0).conn(1)->announced_most, TDM_WIRE_RTS_COUNT);
}

/*
 * A stranger holds the memory, and there is none for a message of a peer: nobody
 * would be read any more, not even the end of the stranger's connection.
 */
TEST_F(TcpCredit, O5_StrangersGiveUpTheirMemory)
{
	char in[8];

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "not linked for it";
	mesh(2);
	ASSERT_EQ(0, at(1).send(0, "open", 5, 1000));
	ASSERT_TRUE(until([&] { return at(1).tx.got.size() == 1; }));
	session();
	for (uint32_t i = 0; i < 100; i++) {
		struct tdm_wire_rec r = rec(TDM_WIRE_RTS, TDM_WIRE_F_TAG);

		r.total = 100000;
		r.id = i;
		raw.record(r);
	}
	ASSERT_TRUE(until([&] { return at(0).tcp->rx_pool.in_use > 100; }));
	Bytes out = pattern(5000, 1), got(5000);

	ASSERT_EQ(0, at(1).send(0, out.data(), out.size(), 1));
	at(1).progress();
	tdt_alloc_fail(1, 1);
	ASSERT_TRUE(until([&] { return !at(0).lost.empty(); }));
	EXPECT_GT(tdt_alloc_stop(), 0u);
	EXPECT_EQ(std::vector<int>{ FI_ECONNRESET }, at(0).lost);
	EXPECT_TRUE(closed());
	EXPECT_GT(8u, at(0).tcp->rx_pool.in_use)
		<< "what was announced is gone";
	ASSERT_EQ(0, at(0).recv(got.data(), got.size(), 1));
	ASSERT_EQ(0, at(0).recv(in, sizeof(in), 1000));
	ASSERT_TRUE(until([&] { return at(0).rx.got.size() == 2; }));
	EXPECT_EQ(out, got);
	EXPECT_TRUE(at(1).lost.empty());
}

/* Append @r to @b. */
void put(std::vector<uint8_t> &b, const struct tdm_wire_rec &r)
{
	size_t had = b.size();

	b.resize(had + TDM_WIRE_HEAD_BYTES);
	b.resize(had + tdm_wire_encode(b.data() + had, &r));
}

/* A peer announces and withdraws without end; a few were matched before. */
TEST_F(TcpCredit, N8_AnnouncedAndWithdrawnWithoutEnd)
{
	const uint32_t batch = 100;
	size_t matched = 0, most = 0;
	uint64_t charged = 0;
	char in;

	add();
	session();
	for (uint32_t i = 0; i < 1000; i++) {
		struct tdm_wire_rec r = rec(TDM_WIRE_RTS, TDM_WIRE_F_TAG);

		/* Nothing of the message fits the one that is matched. */
		if (i % 3 == 0) {
			ASSERT_EQ(0, at(0).recv(&in, 0, 50));
			matched++;
		}
		struct tdm_wire_rec c = rec(TDM_WIRE_CANCEL);
		std::vector<uint8_t> b;

		r.total = 100000;
		for (r.id = 0; r.id < batch; r.id++) {
			r.tag = r.id;
			put(b, r);
		}
		for (c.id = 0; c.id < batch; c.id++)
			put(b, c);
		raw.say(b);
		bool first = true;
		ASSERT_TRUE(until([&] {
			most = tdm_max(most, at(0).tcp->rx_pool.in_use);
			charged = tdm_max(charged, held(at(0)));
			raw.hear();
			if (first) { /* a pass reads some of it */
				first = false;
				return false;
			}
			return !at(0).tcp->rx_pool.in_use &&
			       at(0).rx.got.size() == matched;
		}))
			<< i << " " << at(0).lost.size();
	}
	EXPECT_GE(batch, most);
	EXPECT_GE(2u << 20, charged);
	EXPECT_TRUE(at(0).lost.empty());
	still_serves();
}

/* The same by one that reads none of the answers. */
TEST_F(TcpCredit, N8_WithdrawnByOneThatReadsNothing)
{
	uint8_t b[2 * TDM_WIRE_HEAD_BYTES];
	struct tdm_wire_rec r = rec(TDM_WIRE_RTS, TDM_WIRE_F_TAG),
			    c = rec(TDM_WIRE_CANCEL);
	size_t most = 0, len;
	uint64_t charged = 0;
	bool stopped = false;

	add();
	session();
	r.total = 100000;
	len = tdm_wire_encode(b, &r);
	len += tdm_wire_encode(b + len, &c);
	for (uint32_t i = 0; i < 100000 && !stopped; i++) {
		int waits = 0;

		for (size_t at_byte = 0; at_byte < len && !stopped;) {
			ssize_t n = ::send(raw.fd, b + at_byte, len - at_byte,
					   MSG_NOSIGNAL);

			if (n > 0)
				at_byte += size_t(n);
			else if (errno != EAGAIN || ++waits > 10000)
				stopped = true; /* it is read no more */
			if (n < 0 || i % 50 == 0)
				turn();
			most = tdm_max(most, at(0).tcp->rx_pool.in_use);
			charged = tdm_max(charged, held(at(0)));
		}
	}
	EXPECT_GE(size_t(TDM_WIRE_RTS_COUNT), most);
	EXPECT_GE(4u << 20, charged);
	still_serves();
}

TEST_F(TcpCredit, StagingIsNotTheEndpoints)
{
	/* A domain may have 32768 endpoints. */
	EXPECT_GT(8192u, sizeof(struct tdm_tcp));
}

} // namespace
