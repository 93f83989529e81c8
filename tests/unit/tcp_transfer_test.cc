/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between TCP transports that behave: all sizes, orders, completion
 * levels, credit, addresses, sleeping.
 */
#include <arpa/inet.h>
#include <poll.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tcp_world.h"
#include "tests/harness/log.h"

namespace
{

using namespace tcp_test;

struct Size {
	size_t len;
};

void PrintTo(const Size &s, std::ostream *os)
{
	*os << s.len;
}

class TcpSize : public Tcp, public testing::WithParamInterface<Size>
{
};

/*
 * fi_tagged(3) 2.1, DESCRIPTION 1: A posted receive takes the message that
 * matches it.
 */
TEST_P(TcpSize, ExpectedArrivesWhole)
{
	Bytes out = pattern(GetParam().len, 1), in(out.size() + 1);
	int a, b;

	mesh(2);
	ASSERT_EQ(0, at(1).recv(in.data(), in.size(), 7, 0, &b));
	ASSERT_EQ(0, at(0).send(1, out.data(), out.size(), 7,
				FI_COMPLETION | FI_REMOTE_CQ_DATA, &a, 99));
	ASSERT_TRUE(until([&] {
		return at(0).tx.got.size() == 1 && at(1).rx.got.size() == 1;
	}));
	const Comp &s = at(0).tx.got[0], &r = at(1).rx.got[0];
	EXPECT_EQ(0, s.err);
	EXPECT_EQ(&a, s.context);
	EXPECT_EQ((uint64_t)(FI_SEND | FI_TAGGED), s.flags);
	EXPECT_EQ(0, r.err);
	EXPECT_EQ(&b, r.context);
	EXPECT_EQ(out.size(), r.len);
	EXPECT_EQ(99u, r.data);
	EXPECT_EQ(7u, r.tag);
	EXPECT_EQ(0u, r.src);
	EXPECT_TRUE(r.flags & FI_REMOTE_CQ_DATA);
	EXPECT_TRUE(same(out, in, out.size()));
	EXPECT_EQ(1u, at(0).sent.value);
	EXPECT_EQ(1u, at(1).received.value);
	EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use);
}

/*
 * fi_peer(3) 2.1, fi_ops_srx_owner::queue_msg() / queue_tag() 1: A message
 * nobody waits for is queued and started later.
 */
TEST_P(TcpSize, UnexpectedIsKeptUntilPosted)
{
	Bytes out = pattern(GetParam().len, 2), in(out.size() + 1);

	mesh(2);
	ASSERT_EQ(0, at(0).send(1, out.data(), out.size(), 3));
	ASSERT_TRUE(until([&] {
		struct tdm_conn *c = at(1).conns.count(0) ? at(1).conn(0) :
							    nullptr;
		return c && tdm_conn_stats(c)->rx_msgs == 1;
	}));
	settle();
	ASSERT_EQ(0u, at(1).rx.got.size());
	ASSERT_EQ(0, at(1).recv(in.data(), in.size(), 3));
	ASSERT_TRUE(until([&] {
		return at(0).tx.got.size() == 1 && at(1).rx.got.size() == 1;
	}));
	EXPECT_EQ(out.size(), at(1).rx.got[0].len);
	EXPECT_TRUE(same(out, in, out.size()));
}

/*
 * fi_cq(3) 2.1, COMPLETION FIELDS 9: FI_ETRUNC: the excess is dropped, the next
 * message is whole.
 */
TEST_P(TcpSize, TruncationSparesTheNext)
{
	size_t len = GetParam().len, room = len / 2;
	Bytes out = pattern(len, 3), in(len + 1), next(5);

	if (!len)
		GTEST_SKIP() << "an empty message fits anywhere";
	mesh(2);
	for (int unexpected = 0; unexpected < 2; unexpected++) {
		at(0).tx.got.clear();
		at(1).rx.got.clear();
		std::fill(in.begin(), in.end(), 0xee);
		if (!unexpected) {
			at(1).recv(in.data(), room, 1);
			at(1).recv(next.data(), 5, 2);
		}
		ASSERT_EQ(0, at(0).send(1, out.data(), len, 1));
		ASSERT_EQ(0, at(0).send(1, "next", 5, 2));
		settle();
		if (unexpected) {
			at(1).recv(in.data(), room, 1);
			at(1).recv(next.data(), 5, 2);
		}
		ASSERT_TRUE(until([&] {
			return at(0).tx.got.size() == 2 &&
			       at(1).rx.got.size() == 2;
		}));
		for (const Comp &r : at(1).rx.got) {
			if (r.tag == 2) {
				EXPECT_EQ(0, r.err);
				continue;
			}
			EXPECT_EQ(FI_ETRUNC, r.err);
			EXPECT_EQ(room, r.len);
			EXPECT_EQ(len - room, r.olen);
		}
		EXPECT_TRUE(same(out, in, room));
		EXPECT_EQ(0xee, in[room]);
		EXPECT_STREQ("next", (char *)next.data());
		EXPECT_EQ(0, at(0).tx.got[0].err);
	}
}

/*
 * fi_cq(3) 2.1, COMPLETION EVENT SEMANTICS 15: FI_DELIVERY_COMPLETE: not before
 * it is in the target's buffer.
 */
TEST_P(TcpSize, DeliveryCompleteWaitsForTheReceive)
{
	Bytes out = pattern(GetParam().len, 4), in(out.size() + 1);

	mesh(2);
	ASSERT_EQ(0, at(0).send(1, out.data(), out.size(), 3,
				FI_COMPLETION | FI_DELIVERY_COMPLETE));
	settle();
	EXPECT_EQ(0u, at(0).tx.got.size());
	ASSERT_EQ(0, at(1).recv(in.data(), in.size(), 3));
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	EXPECT_EQ(1u, at(1).rx.got.size());
	EXPECT_EQ(0, at(0).tx.got[0].err);
}

/*
 * The same for a message that was announced: that its bytes have reached the
 * peer's kernel is not enough.
 */
TEST_F(Tcp, DeliveryOfAnnouncedDataWaitsForThePeer)
{
	Bytes out = pattern(256 << 10, 4), in(out.size());

	mesh(2);
	ASSERT_EQ(0, at(1).recv(in.data(), in.size(), 3));
	ASSERT_EQ(0, at(0).send(1, out.data(), out.size(), 3,
				FI_COMPLETION | FI_DELIVERY_COMPLETE));
	struct tdm_conn *c = at(0).conn(1);
	ASSERT_TRUE(until([&] {
		return !tdm_list_empty(&c->busy->dataq) ||
		       !tdm_list_empty(&c->ackq);
	}));
	uint64_t end = tdm_os_system.now_ns() + 200000000;
	while (tdm_os_system.now_ns() < end)
		at(0).progress();
	EXPECT_EQ(0u, at(0).tx.got.size());
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	EXPECT_EQ(1u, at(1).rx.got.size());
	EXPECT_TRUE(same(out, in, out.size()));
}

/*
 * doc/SCALING.md: a connection has what announced and unexpected messages need
 * only until the check after their end.
 */
TEST_F(Tcp, AnIdleConnectionGivesBackWhatOperationsNeeded)
{
	Bytes out = pattern(256 << 10, 4), in(out.size());
	auto is_small = [&](size_t node) {
		struct tdm_tcp *tcp = at(node).tcp;

		tcp->watch.fired(&tcp->watch);
		return at(node).conn(!node)->busy == &tdm_not_busy;
	};

	mesh(2);
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_EQ(0, at(0).send(1, out.data(), out.size(), 3));
		ASSERT_EQ(0, at(0).send(1, "x", 1, 4));
		settle();
		EXPECT_FALSE(is_small(0)) << "a message is announced";
		EXPECT_FALSE(is_small(1)) << "two messages are unexpected";
		ASSERT_EQ(0, at(1).recv(in.data(), in.size(), 3));
		ASSERT_EQ(0, at(1).recv(in.data(), 0, 4));
		ASSERT_TRUE(until([&] {
			return at(0).tx.got.size() == 2 * i + 2 &&
			       at(1).rx.got.size() == 2 * i + 2;
		}));
		EXPECT_TRUE(is_small(0));
		EXPECT_TRUE(is_small(1));
	}
}

/* The receive is dropped instead: the sender ends all the same. */
TEST_P(TcpSize, DiscardEndsTheSender)
{
	Bytes out = pattern(GetParam().len, 4);
	struct tdm_xfer x = {};

	mesh(2);
	ASSERT_EQ(0, at(0).send(1, out.data(), out.size(), 3,
				FI_COMPLETION | FI_DELIVERY_COMPLETE));
	settle();
	x.flags = FI_COMPLETION | FI_RECV | FI_TAGGED | FI_PEEK | FI_DISCARD;
	tdm_xfer_buf(&x, NULL, 0);
	x.addr = FI_ADDR_UNSPEC;
	x.tag = 3;
	ASSERT_EQ(0, tdm_srx_recv(at(1).srx, &x));
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	EXPECT_EQ(0, at(0).tx.got[0].err);
}

INSTANTIATE_TEST_SUITE_P(Sizes, TcpSize,
			 testing::Values(Size{ 0 }, Size{ 1 }, Size{ 8 },
					 Size{ 2048 }, Size{ 2049 },
					 Size{ 8192 }, Size{ 20000 },
					 Size{ 65536 }, Size{ 65537 },
					 Size{ 300000 }, Size{ 4 << 20 }),
			 [](const testing::TestParamInfo<Size> &p) {
				 return std::to_string(p.param.len);
			 });

/*
 * fi_tagged(3) 2.1, DESCRIPTION 1: Untagged messages do not meet tagged
 * receives.
 */
TEST_F(Tcp, UntaggedMeetsUntagged)
{
	char tagged[8] = "", plain[8] = "";
	struct tdm_xfer x = {};

	mesh(2);
	at(1).recv(tagged, 8, 0);
	x.flags = FI_COMPLETION | FI_RECV | FI_MSG;
	tdm_xfer_buf(&x, plain, 8);
	x.addr = FI_ADDR_UNSPEC;
	ASSERT_EQ(0, tdm_srx_recv(at(1).srx, &x));
	x = {};
	x.flags = FI_COMPLETION | FI_SEND | FI_MSG;
	tdm_xfer_buf(&x, "plain", 6);
	x.addr = 1;
	ASSERT_EQ(0, tdm_tx_send(at(0).conn(1), &x));
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_STREQ("plain", plain);
	EXPECT_STREQ("", tagged);
	EXPECT_EQ((uint64_t)(FI_RECV | FI_MSG), at(1).rx.got[0].flags);
}

/* FI_ORDER_SAS over eager, announced, gathered and copied messages. */
TEST_F(Tcp, MixedSizesKeepTheirOrder)
{
	static const size_t sizes[] = { 0,    8,      100,   3000, 70000,
					2048, 200000, 65536, 1,	   9000 };
	const unsigned n = 400;
	std::vector<Bytes> out, in;

	mesh(2);
	for (unsigned i = 0; i < n; i++) {
		out.push_back(pattern(sizes[i * 7 % 10], i));
		in.push_back(Bytes(200000));
	}
	for (unsigned i = 0; i < n; i++) {
		/* The first half is unexpected. */
		if (i == n / 2) {
			settle(50);
			for (unsigned k = 0; k < n; k++)
				at(1).recv(in[k].data(), in[k].size(), 5);
		}
		ASSERT_EQ(0, at(0).send(1, out[i].data(), out[i].size(), 5));
	}
	ASSERT_TRUE(until([&] {
		return at(0).tx.got.size() == n && at(1).rx.got.size() == n;
	}));
	for (unsigned i = 0; i < n; i++)
		ASSERT_TRUE(same(out[i], in[i], out[i].size())) << i;
}

unsigned writes; /* calls of send(2) and sendmsg(2) */
uint64_t later_ns;

void count_writes()
{
	writes = 0;
	tdm_os.send = [](int fd, const void *p, size_t bytes, int flags) {
		writes++;
		return send(fd, p, bytes, flags);
	};
	tdm_os.sendmsg = [](int fd, const struct msghdr *m, int flags) {
		writes++;
		return sendmsg(fd, m, flags);
	};
}

/*
 * doc/adr/0037-sent-together.md: An application that makes no pass for long after
 * it has sent delays one message, and not one of the next 64.
 */
TEST_F(Tcp, MediumMessagesDoNotWaitForOneWhoIsLate)
{
	const unsigned n = 4;
	Bytes out(4096), in(4096);

	mesh(2);
	ASSERT_EQ(0, at(0).send(1, "open", 5, 1, FI_INJECT));
	ASSERT_TRUE(until([&] { return at(0).tcp->open == 1; }));
	settle();
	for (unsigned i = 0; i < 3 * n; i++)
		ASSERT_EQ(0, at(1).recv(in.data(), in.size(), 5));
	tdm_os.now_ns = [] {
		return tdm_os_system.now_ns() + later_ns;
	};
	count_writes();
	for (unsigned i = 0; i < n; i++)
		ASSERT_EQ(0, at(0).send(1, out.data(), out.size(), 5));
	EXPECT_EQ(1u, writes) << "the first of the pass";
	later_ns = 10 * 1000 * 1000;
	at(0).progress();
	EXPECT_EQ(2u, writes);
	for (unsigned i = 0; i < n; i++)
		ASSERT_EQ(0, at(0).send(1, out.data(), out.size(), 5));
	EXPECT_EQ(2u + n, writes) << "all of the second time";
	at(0).conn(1)->at_once = 0;
	at(0).progress();
	for (unsigned i = 0; i < n; i++)
		ASSERT_EQ(0, at(0).send(1, out.data(), out.size(), 5));
	EXPECT_EQ(3u + n, writes) << "trusted again";
	tdm_os = tdm_os_system;
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 3 * n; }));
}

/*
 * doc/adr/0037-sent-together.md: The first message of a pass leaves at once; later
 * ones of up to 16 KiB leave together.
 */
TEST_F(Tcp, MediumMessagesOfAPassLeaveTogether)
{
	const unsigned n = 9;
	const size_t len = 4096;
	std::vector<Bytes> out, in(n, Bytes(len));

	mesh(2);
	ASSERT_EQ(0, at(0).send(1, "open", 5, 1, FI_INJECT));
	ASSERT_TRUE(until([&] { return at(0).tcp->open == 1; }));
	settle();
	for (unsigned i = 0; i < n; i++) {
		out.push_back(pattern(len, i));
		ASSERT_EQ(0, at(1).recv(in[i].data(), len, 5));
	}
	count_writes();
	for (unsigned i = 0; i < n; i++) {
		ASSERT_EQ(0, at(0).send(1, out[i].data(), len, 5));
		EXPECT_LE(1u, writes) << "the first one waits";
	}
	at(0).progress();
	EXPECT_LE(writes, 3u);
	tdm_os.send = tdm_os_system.send;
	tdm_os.sendmsg = tdm_os_system.sendmsg;
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == n; }));
	EXPECT_EQ(out, in);
}

/* Vectors on both sides, of different shape. */
TEST_F(Tcp, VectorsAreGatheredAndScattered)
{
	for (size_t len : { (size_t)1000, (size_t)40000, (size_t)1000000 }) {
		Bytes out = pattern(len, 9), in(len);
		struct iovec v[4], w[3];
		struct tdm_xfer x = {};

		nodes.clear();
		mesh(2);
		v[0] = { out.data(), len / 5 };
		v[1] = { out.data() + len / 5, 0 };
		v[2] = { out.data() + len / 5, len / 3 };
		v[3] = { out.data() + len / 5 + len / 3,
			 len - len / 5 - len / 3 };
		w[0] = { in.data(), 1 };
		w[1] = { in.data() + 1, len / 2 };
		w[2] = { in.data() + 1 + len / 2, len - 1 - len / 2 };
		x.flags = FI_COMPLETION | FI_RECV | FI_TAGGED;
		x.iov = w;
		x.count = 3;
		x.len = len;
		x.addr = FI_ADDR_UNSPEC;
		ASSERT_EQ(0, tdm_srx_recv(at(1).srx, &x));
		x.flags = FI_COMPLETION | FI_SEND | FI_TAGGED;
		x.iov = v;
		x.count = 4;
		x.addr = 1;
		ASSERT_EQ(0, tdm_tx_send(at(0).conn(1), &x));
		ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
		EXPECT_EQ(out, in);
	}
}

/*
 * fi_cq(3) 2.1, COMPLETION EVENT SEMANTICS 5: FI_INJECT_COMPLETE: the buffer
 * may be reused, no peer needed.
 */
TEST_F(Tcp, InjectCompletesWithoutThePeer)
{
	char buf[8] = "first", in[8];

	mesh(2);
	at(0).send(1, "open", 5, 1);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	at(0).tx.got.clear();
	ASSERT_EQ(0,
		  at(0).send(1, buf, 8, 2, FI_COMPLETION | FI_INJECT_COMPLETE));
	EXPECT_EQ(1u, at(0).tx.got.size());
	EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use);
	ASSERT_EQ(0, at(0).send(1, buf, 8, 3, FI_INJECT));
	memset(buf, 0, sizeof(buf));
	EXPECT_EQ(1u, at(0).tx.got.size()) << "no entry was asked for";
	EXPECT_EQ(3u, at(0).sent.value);
	at(1).recv(in, 8, 3);
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_STREQ("first", in);
}

/*
 * fi_msg(3) 2.1, fi_inject 1: There is no completion to wait for: an
 * application may turn to other things for good, and its messages have left.
 */
TEST_F(Tcp, InjectsLeaveWithoutAnotherCall)
{
	static const uint64_t levels[] = { FI_INJECT,
					   FI_INJECT | FI_DELIVERY_COMPLETE,
					   FI_COMPLETION | FI_INJECT_COMPLETE };
	char in[9][8];

	mesh(2);
	at(0).send(1, "open", 5, 1);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	for (char *buf : in)
		at(1).recv(buf, 8, 2);
	for (uint64_t level : levels) {
		for (int i = 0; i < 3; i++)
			ASSERT_EQ(0, at(0).send(1, "gone", 5, 2, level));
	}
	alone(1, [&] { return at(1).rx.got.size() >= 9; });
	EXPECT_EQ(9u, at(1).rx.got.size());
}

/* An inject before the connection stands owns its bytes. */
TEST_F(Tcp, InjectWhileConnectingIsCopied)
{
	char buf[8] = "early", in[8];

	mesh(2);
	ASSERT_EQ(0, at(0).send(1, buf, 8, 3, FI_INJECT));
	memset(buf, 'x', sizeof(buf));
	at(1).recv(in, 8, 3);
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_STREQ("early", in);
}

/* The default level: not before the peer's endpoint has it. */
TEST_F(Tcp, TransmitCompleteWaitsForThePeer)
{
	mesh(2);
	at(0).send(1, "open", 5, 1);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	ASSERT_EQ(0, at(0).send(1, "x", 1, 1));
	for (int i = 0; i < 200; i++)
		at(0).progress();
	EXPECT_EQ(1u, at(0).tx.got.size());
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 2; }));
}

/* The send queue is bounded; a send that does not fit is bounced. */
TEST_F(Tcp, FullSendQueueSaysAgain)
{
	nodes.emplace_back(new Node("127.0.0.1", 0, 4));
	at(0).listen();
	mesh(2);
	for (int i = 0; i < 4; i++)
		ASSERT_EQ(0, at(0).send(1, "x", 1, 1));
	EXPECT_EQ(-FI_EAGAIN, at(0).send(1, "x", 1, 1));
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 4; }));
	EXPECT_EQ(0, at(0).send(1, "x", 1, 1));
}

/* Credit: a receiver that posts nothing holds a bounded number of bytes. */
TEST_F(Tcp, UnexpectedFloodIsAnnouncedBeyondTheCredit)
{
	const unsigned n = 4000;
	std::vector<Bytes> in(n, Bytes(1024));
	Bytes out[4];

	for (unsigned i = 0; i < 4; i++)
		out[i] = pattern(1024, i);
	tdm_env.unexp_max_bytes = 1 << 20;
	mesh(2);
	for (unsigned i = 0; i < n; i++) {
		ASSERT_EQ(0, at(0).send(1, out[i % 4].data(), 1024, 5));
		turn();
	}
	settle(50);
	struct tdm_conn *c = at(1).conn(0);
	EXPECT_LE(c->rx_charged - c->rx_freed,
		  tdm_env.unexp_max_bytes + TDM_HELD_SHARE_BYTES);
	EXPECT_EQ(n, tdm_conn_stats(c)->rx_msgs) << "the rest is announced";
	EXPECT_GT(c->busy->announced, n / 2);
	for (unsigned i = 0; i < n; i++)
		ASSERT_EQ(0, at(1).recv(in[i].data(), 1024, 5));
	ASSERT_TRUE(until([&] {
		return at(1).rx.got.size() == n && at(0).tx.got.size() == n;
	}));
	for (unsigned i = 0; i < n; i++)
		ASSERT_EQ(out[i % 4], in[i]) << i;
	EXPECT_EQ(c->rx_charged, c->rx_freed);
	/* And the eager way is open again. */
	at(0).tx.got.clear();
	settle();
	EXPECT_LT(at(0).conn(1)->charged,
		  at(0).conn(1)->freed + at(0).conn(1)->window);
}

/* Many to many at once: each pair keeps one connection, nothing is lost. */
TEST_F(Tcp, SimultaneousConnectKeepsOneConnection)
{
	const unsigned n = 8;

	for (int round = 0; round < 10; round++) {
		nodes.clear();
		mesh(n);
		for (unsigned i = 0; i < n; i++) {
			for (unsigned k = 0; k < n; k++) {
				if (i == k)
					continue;
				char *in = new char[16];

				ASSERT_EQ(0, at(i).recv(in, 16, k, 0, in));
				ASSERT_EQ(0, at(i).send(k, "hello", 6, i));
			}
		}
		ASSERT_TRUE(until([&] {
			for (auto &a : nodes) {
				if (a->rx.got.size() != n - 1 ||
				    a->tx.got.size() != n - 1)
					return false;
			}
			return true;
		}));
		for (auto &a : nodes) {
			EXPECT_EQ(n - 1, a->tcp->open);
			EXPECT_TRUE(a->lost.empty());
			for (const Comp &c : a->rx.got) {
				EXPECT_EQ(0, c.err);
				EXPECT_EQ(c.tag, c.src);
				delete[] static_cast<char *>(c.context);
			}
		}
	}
}

/* An endpoint may send to itself over TCP. */
TEST_F(Tcp, SelfSend)
{
	for (size_t len : { (size_t)8, (size_t)40000, (size_t)2000000 }) {
		Bytes out = pattern(len, 1), in(len);

		nodes.clear();
		mesh(1);
		at(0).recv(in.data(), len, 1);
		ASSERT_EQ(0, at(0).send(0, out.data(), len, 1,
					FI_COMPLETION | FI_DELIVERY_COMPLETE));
		ASSERT_TRUE(until([&] {
			return at(0).rx.got.size() == 1 &&
			       at(0).tx.got.size() == 1;
		}));
		EXPECT_EQ(0u, at(0).rx.got[0].src);
		EXPECT_EQ(out, in);
		EXPECT_TRUE(at(0).accepted.empty());
	}
}

/*
 * fi_peer(3) 2.1, fi_ops_srx_owner::foreach_unspec_addr() 1: The source is
 * learned by an insert.
 */
TEST_F(Tcp, UnknownSourceIsResolvedByAnInsert)
{
	char in[8];

	add();
	add();
	at(0).insert(at(0).addr);
	at(0).insert(at(1).addr);
	at(0).send(1, "who", 4, 1);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	ASSERT_EQ(1u, at(1).accepted.size());
	EXPECT_EQ(FI_ADDR_UNSPEC, at(1).accepted[0]);
	/* A directed receive does not take it yet. */
	at(1).recv(in, 8, 1, 0, NULL, 0);
	settle();
	EXPECT_EQ(0u, at(1).rx.got.size());
	EXPECT_EQ(0u, at(1).insert(at(0).addr));
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_EQ(0u, at(1).rx.got[0].src);
	EXPECT_STREQ("who", in);
}

int resolved;
struct fi_ops_srx_owner counting;

/* The same: once for each insert that names a source, and for no other. */
TEST_F(Tcp, OwnerIsAskedOnlyWhenASourceBecameKnown)
{
	mesh(2);
	add();
	at(0).insert(at(2).addr);
	at(0).send(1, "known", 6, 1);
	at(2).insert(at(0).addr);
	at(2).insert(at(1).addr);
	at(2).send(1, "who", 4, 1);
	ASSERT_TRUE(until([&] {
		return at(0).tx.got.size() + at(2).tx.got.size() == 2;
	}));
	struct fid_peer_srx *srx = tdm_srx_export(at(1).srx, TDM_TRANSPORT_TCP);
	counting = *srx->owner_ops;
	static const auto ask = counting.foreach_unspec_addr;
	counting.foreach_unspec_addr =
		[](struct fid_peer_srx *fid,
		   fi_addr_t (*get)(struct fi_peer_rx_entry *)) {
			resolved++;
			ask(fid, get);
		};
	srx->owner_ops = &counting;
	resolved = 0;
	struct tdm_addr other = at(2).addr;
	tdm_addr_set_port(&other, 9);
	fi_addr_t extra = at(1).insert(other);
	EXPECT_EQ(0, resolved) << "of somebody else";
	EXPECT_EQ(extra + 1, at(1).insert(at(2).addr));
	EXPECT_EQ(1, resolved);
	at(1).insert(at(2).addr);
	EXPECT_EQ(1, resolved) << "known already";
	ASSERT_EQ(0, fi_av_remove(tdm_av_fid(at(1).av), &extra, 1, 0));
	EXPECT_EQ(2, resolved) << "a removal may have changed any";
}

/*
 * fi_endpoint(3) 2.1, fi_cancel 1: A send of which no byte was sent can be
 * cancelled.
 */
TEST_F(Tcp, CancelWhileQueued)
{
	int a, b;
	char in[8];

	mesh(2);
	at(0).send(1, "a", 2, 1, FI_COMPLETION, &a);
	at(0).send(1, "b", 2, 2, FI_COMPLETION, &b);
	EXPECT_EQ(0, tdm_tx_cancel(at(0).tcp, &a));
	EXPECT_EQ(-FI_ENOENT, tdm_tx_cancel(at(0).tcp, &a));
	ASSERT_EQ(1u, at(0).tx.got.size());
	EXPECT_EQ(FI_ECANCELED, at(0).tx.got[0].err);
	EXPECT_EQ(&a, at(0).tx.got[0].context);
	at(1).recv(in, 8, 0, ~0ull);
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_STREQ("b", in);
	EXPECT_EQ(-FI_ENOENT, tdm_tx_cancel(at(0).tcp, &b));
}

/*
 * fi_av(3) 2.1, fi_av_remove 1, leaves it open what happens; fi_tandem(7):
 * operations to the address end, others go on.
 */
TEST_F(Tcp, ForgottenAddressEndsItsSends)
{
	Bytes big = pattern(1 << 20, 1);
	char in[8];
	fi_addr_t one = 1;

	mesh(2);
	at(0).send(1, "open", 5, 1);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	at(0).send(1, big.data(), big.size(), 2); /* announced */
	settle();
	at(0).send(1, "x", 1, 3);
	ASSERT_EQ(1u, at(0).tx.got.size());
	ASSERT_EQ(0, fi_av_remove(tdm_av_fid(at(0).av), &one, 1, 0));
	ASSERT_EQ(3u, at(0).tx.got.size());
	EXPECT_EQ(FI_ECONNABORTED, at(0).tx.got[1].err);
	EXPECT_EQ(FI_ECONNABORTED, at(0).tx.got[2].err);
	/* The receive of the announced message ends too, when it is matched. */
	Bytes room(1 << 20);
	at(1).recv(room.data(), room.size(), 2);
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_EQ(FI_ECONNABORTED, at(1).rx.got[0].err);
	/* The connection goes on to bring messages. */
	at(0).recv(in, 8, 9);
	at(1).send(0, "back", 5, 9);
	ASSERT_TRUE(until([&] { return at(0).rx.got.size() == 1; }));
	EXPECT_EQ(FI_ADDR_UNSPEC, at(0).rx.got[0].src);
	EXPECT_TRUE(at(0).lost.empty());
	EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use);
}

/* A probe connects and says nothing; a send goes on with its socket. */
TEST_F(Tcp, ProbeThenSend)
{
	char in[8];

	mesh(2);
	struct tdm_conn *c = at(0).conn(1);
	ASSERT_TRUE(until([&] { return tdm_conn_probe(c) == 0; }));
	settle();
	EXPECT_TRUE(at(1).accepted.empty());
	EXPECT_EQ(1, tdm_tcp_busy(at(0).tcp));
	at(1).recv(in, 8, 1);
	ASSERT_EQ(0, at(0).send(1, "probe", 6, 1));
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_EQ(1u, at(1).accepted.size());
}

TEST_F(Tcp, ProbeFindsNobodyThenSomebody)
{
	add();
	add(false);
	at(0).insert(at(0).addr);
	at(0).insert(at(1).addr);
	struct tdm_conn *c = at(0).conn(1);
	ASSERT_TRUE(
		until([&] { return tdm_conn_probe(c) == -FI_ECONNREFUSED; }));
	at(1).listen();
	ASSERT_TRUE(until([&] { return tdm_conn_probe(c) == 0; }));
	tdm_conn_drop(c);
	at(0).conns.clear();
	settle();
	EXPECT_EQ(0, tdm_tcp_busy(at(0).tcp));
	ASSERT_TRUE(until([&] { return !tdm_tcp_busy(at(1).tcp); }));
	EXPECT_TRUE(at(0).lost.empty());
}

TEST_F(Tcp, ProbeGivesUpAfterTheTimeout)
{
	char text[TDM_ADDR_STR_BYTES];
	int ret;

	tdt_log_listen(FI_LOG_INFO);
	tdm_env.conn_timeout_ms = 50;
	add();
	add(false);
	at(0).insert(at(0).addr);
	at(0).insert(at(1).addr);
	struct tdm_conn *c = at(0).conn(1);
	ASSERT_TRUE(until([&] {
		ret = tdm_conn_probe(c);
		return ret && ret != -FI_EAGAIN && ret != -FI_ECONNREFUSED;
	}));
	EXPECT_EQ(-FI_ETIMEDOUT, ret);
	/* HACKING.md, "How it is written": INFO once per pair. */
	std::string line = tdm_addr_text(&at(1).addr, text, sizeof(text));
	line += ": cannot be reached by tcp: Connection refused";
	EXPECT_EQ(1u, tdt_log_heard(line.c_str()));
	tdt_log_listen(FI_LOG_WARN);
}

/*
 * fi_poll(3) 2.1, fi_trywait 3: The descriptor becomes readable when there is
 * work for a pass of progress.
 */
TEST_F(Tcp, SleepersWakeForMessages)
{
	char in[8];

	mesh(2);
	at(0).send(1, "open", 5, 0);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	settle();
	int fd = tdm_loop_wait_fd(at(1).loop);
	ASSERT_GE(fd, 0);
	for (int i = 0; i < 50; i++) {
		at(1).recv(in, 8, 1);
		at(1).progress();
		while (tdm_tcp_arm(at(1).tcp) || tdm_loop_arm(at(1).loop))
			at(1).progress();
		struct pollfd p = { fd, POLLIN, 0 };
		ASSERT_EQ(0, poll(&p, 1, 0));
		at(0).send(1, "x", 2, 1);
		ASSERT_EQ(1, poll(&p, 1, 1000));
		size_t had = at(1).rx.got.size();
		at(1).progress();
		ASSERT_EQ(had + 1, at(1).rx.got.size())
			<< "the pass after an arm looks at all";
		/* Asleep again: the sender must get its acknowledgement. */
		ASSERT_EQ(0, tdm_tcp_arm(at(1).tcp));
		size_t sent = at(0).tx.got.size();
		ASSERT_TRUE(until([&] {
			at(0).progress();
			return at(0).tx.got.size() > sent;
		}));
	}
}

/* A timer that falls due wakes as well: a connect that must be retried. */
TEST_F(Tcp, SleepersWakeForTimers)
{
	add();
	add(false);
	at(0).insert(at(0).addr);
	at(0).insert(at(1).addr);
	at(0).send(1, "x", 1, 1);
	ASSERT_TRUE(until([&] {
		return at(0).conn(1)->state == TDM_CONN_BACKOFF &&
		       at(0).conn(1)->setup->backoff_ms > 15;
	}));
	struct pollfd p = { tdm_loop_wait_fd(at(0).loop), POLLIN, 0 };
	while (tdm_tcp_arm(at(0).tcp) || tdm_loop_arm(at(0).loop))
		at(0).progress();
	ASSERT_EQ(1, poll(&p, 1, 2000));
}

} // namespace
