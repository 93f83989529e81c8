/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Idle close of TCP connections: doc/PROTOCOL-tcp.md, "Idle close". Nothing is lost,
 * doubled or passed over, whatever crosses what, and nobody is taken for dead.
 */
#include <fcntl.h>
#include <unistd.h>

#include <sys/resource.h>

#include <rdma/fi_errno.h>

#include "tcp_raw.h"

extern "C" {
#include "tcp/wire/idle_close.h"
}

namespace
{

#define OK(call) ASSERT_NO_FATAL_FAILURE(call)

using namespace tcp_test;

typedef std::vector<uint8_t> Bits;

rlim_t most_fds;

int few_fds(int resource, struct rlimit *l)
{
	EXPECT_EQ(RLIMIT_NOFILE, resource);
	l->rlim_cur = l->rlim_max = most_fds;
	return 0;
}

class TcpIdleClose : public TcpFault
{
protected:
	Bits heard;
	std::unique_ptr<Door> door;

	/* Ask for idle closes as if no descriptor had been there. */
	void crowd(size_t node)
	{
		tdm_idle_close_crowd(at(node).tcp, -1);
	}

	bool nothing_open()
	{
		for (auto &n : nodes) {
			if (n->tcp->open)
				return false;
		}
		return true;
	}

	void nobody_lost()
	{
		for (auto &n : nodes)
			EXPECT_TRUE(n->lost.empty());
	}

	/* A message from @from to @to, address @addr there; both wait for it. */
	void message(size_t from, size_t to, fi_addr_t addr)
	{
		size_t sent = at(from).tx.got.size();
		size_t got = at(to).rx.got.size();
		unsigned out = 4711, in = 0;

		ASSERT_EQ(0, at(to).recv(&in, sizeof(in), 9));
		ASSERT_EQ(0, at(from).send(addr, &out, sizeof(out), 9));
		ASSERT_TRUE(until([&] {
			return at(from).tx.got.size() == sent + 1 &&
			       at(to).rx.got.size() == got + 1;
		}));
		EXPECT_EQ(0, at(from).tx.got.back().err);
		EXPECT_EQ(0, at(to).rx.got.back().err);
		EXPECT_EQ(out, in);
	}

	/*
	 * A peer of bytes that listens, too, as it must to be connected to; its
	 * session with node 0, and its address there.
	 */
	fi_addr_t peer(uint8_t id,
		       uint32_t features = TDM_WIRE_FEATURE_IDLE_CLOSE)
	{
		if (nodes.empty())
			add();
		at(0).tcp->id[0] = 0x41;
		door.reset(new Door());
		call(id, features);
		return at(0).insert(as_peer(id).addr);
	}

	struct tdm_wire_greeting as_peer(uint8_t id)
	{
		return Raw::greeting(tdm_addr_port(&door->addr), id);
	}

	void call(uint8_t id, uint32_t features = TDM_WIRE_FEATURE_IDLE_CLOSE)
	{
		struct tdm_wire_greeting g = as_peer(id);
		size_t before = at(0).accepted.size();

		g.features = features;
		raw.call(at(0).addr);
		raw.hello(g);
		heard.clear();
		ASSERT_TRUE(until([&] { return listen_to() >= 128; }));
		heard.erase(heard.begin(), heard.begin() + 128);
		EXPECT_EQ(before + 1, at(0).accepted.size());
	}

	/* Node 0 connects to the peer: answer it. Its HELLO. */
	struct tdm_wire_greeting answer(uint8_t id)
	{
		struct tdm_wire_greeting g = as_peer(id), said = {};

		raw.hang_up();
		EXPECT_TRUE(until([&] {
			raw.fd = accept4(door->fd, NULL, NULL, SOCK_NONBLOCK);
			return raw.fd >= 0;
		}));
		heard.clear();
		EXPECT_TRUE(until([&] { return listen_to() >= 128; }));
		EXPECT_EQ(0, tdm_wire_greeting_decode(heard.data(), &said));
		heard.erase(heard.begin(), heard.begin() + 128);
		g.features = TDM_WIRE_FEATURE_IDLE_CLOSE;
		raw.hello(g);
		return said;
	}

	size_t listen_to()
	{
		Bits b = raw.hear();

		heard.insert(heard.end(), b.begin(), b.end());
		return heard.size();
	}

	/* The next record, unless @acks no mere ACK; payload is dropped. */
	struct tdm_wire_rec next(bool acks = false)
	{
		struct tdm_wire_rec r = {};

		do {
			int n = 0;

			EXPECT_TRUE(until([&] {
				if (listen_to() < TDM_WIRE_PREFIX_BYTES)
					return false;
				n = tdm_wire_head_bytes(heard.data());
				return n < 0 || heard.size() >= (size_t)n;
			}));
			if (n <= 0 || heard.size() < (size_t)n ||
			    tdm_wire_decode(heard.data(), &r)) {
				ADD_FAILURE() << "no record";
				return {};
			}
			EXPECT_TRUE(until([&] {
				return listen_to() >= (size_t)n + r.len;
			}));
			heard.erase(heard.begin(), heard.begin() + n + r.len);
		} while (r.op == TDM_WIRE_ACK && !acks);
		return r;
	}

	void expect_step(uint32_t step)
	{
		struct tdm_wire_rec r = next();

		EXPECT_EQ(TDM_WIRE_IDLE_CLOSE, r.op);
		EXPECT_EQ(step, r.step);
	}

	void step(uint32_t step, uint64_t records = 0, uint64_t credit = 0)
	{
		struct tdm_wire_rec r = rec(TDM_WIRE_IDLE_CLOSE);

		r.step = step;
		r.acked = records;
		r.freed = credit;
		raw.record(r);
	}

	/* One message of a byte, from the peer, tag 5. */
	void eager()
	{
		struct tdm_wire_rec r = rec(TDM_WIRE_EAGER, TDM_WIRE_F_TAG, 1);

		r.tag = 5;
		raw.record(r, 1);
	}

	bool quiet()
	{
		settle();
		return !listen_to();
	}
};

TEST_F(TcpIdleClose, IdleConnectionsRestAndComeBack)
{
	mesh(2);
	OK(message(0, 1, 1));
	for (int i = 0; i < 6; i++) {
		ASSERT_EQ(1u, at(0).tcp->open);
		crowd(i & 1);
		ASSERT_TRUE(until([&] { return nothing_open(); }));
		OK(message(i % 3 == 0, i % 3 != 0, i % 3 != 0));
		OK(message(i % 3 != 0, i % 3 == 0, i % 3 == 0));
	}
	nobody_lost();
	EXPECT_GT(at(0).accepted.size() + at(1).accepted.size(), 6u);
	EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use);
}

TEST_F(TcpIdleClose, BothSidesAskAtOnce)
{
	mesh(2);
	for (int i = 0; i < 20; i++) {
		OK(message(i & 1, !(i & 1), !(i & 1)));
		crowd(0);
		crowd(1);
		ASSERT_TRUE(until([&] { return nothing_open(); }));
	}
	nobody_lost();
}

/* After the idle close both sides send and connect at once. */
TEST_F(TcpIdleClose, BothSidesComeBackAtOnce)
{
	char in[2][8];

	mesh(2);
	OK(message(0, 1, 1));
	for (int i = 0; i < 20; i++) {
		crowd(i & 1);
		ASSERT_TRUE(until([&] { return nothing_open(); }));
		for (size_t k = 0; k < 2; k++) {
			at(k).rx.got.clear();
			ASSERT_EQ(0, at(k).recv(in[k], 8, 1));
		}
		ASSERT_EQ(0, at(0).send(1, "to 1", 5, 1, 0));
		ASSERT_EQ(0, at(1).send(0, "to 0", 5, 1, 0));
		ASSERT_TRUE(until([&] {
			return at(0).rx.got.size() == 1 &&
			       at(1).rx.got.size() == 1;
		}));
		EXPECT_STREQ("to 0", in[0]);
		EXPECT_STREQ("to 1", in[1]);
	}
	nobody_lost();
}

/* A message from the peer is on its way when ASK is answered. */
TEST_F(TcpIdleClose, MessageOnItsWayToTheOneThatAsks)
{
	fi_addr_t to = peer(0x77);
	char in = 0;

	crowd(0);
	expect_step(TDM_WIRE_ASK);
	/* Said before ASK is read: the peer has something unacknowledged. */
	at(0).recv(&in, 1, 5);
	eager();
	step(TDM_WIRE_NO);
	ASSERT_TRUE(until([&] {
		return at(0).rx.got.size() == 1 && !at(0).conn(to)->asked;
	}));
	EXPECT_EQ(0x55, in);
	EXPECT_EQ(1u, at(0).tcp->open);
	/*
	 * The peer is asked again when descriptors are scarce, and may say yes.
	 */
	crowd(0);
	struct tdm_wire_rec r = next();
	EXPECT_EQ(TDM_WIRE_ASK, r.step);
	EXPECT_EQ(1u, r.acked);
	step(TDM_WIRE_YES);
	expect_step(TDM_WIRE_GO);
	EXPECT_TRUE(closed());
	EXPECT_EQ(0u, at(0).tcp->open);
	nobody_lost();
	at(0).send(to, "x", 1, 1);
	answer(0x77);
	EXPECT_EQ(TDM_WIRE_EAGER, next().op);
}

/* A message of ours leaves behind ASK: the peer's YES does not know it. */
TEST_F(TcpIdleClose, MessageBehindAskKeepsTheSession)
{
	fi_addr_t to = peer(0x77);

	const std::vector<uint64_t> kinds = {
		FI_COMPLETION, FI_INJECT, FI_COMPLETION | FI_DELIVERY_COMPLETE
	};

	for (uint64_t flags : kinds) {
		uint64_t seen = at(0).conn(to)->tx_seq;

		crowd(0);
		expect_step(TDM_WIRE_ASK);
		ASSERT_EQ(0, at(0).send(to, "x", 1, 1, flags));
		struct tdm_wire_rec r = next();
		EXPECT_EQ(TDM_WIRE_EAGER, r.op) << "it does not wait";
		step(TDM_WIRE_YES, seen, seen * 513);
		expect_step(TDM_WIRE_STAY);
		if (flags & FI_DELIVERY_COMPLETE) {
			struct tdm_wire_rec d = rec(TDM_WIRE_DONE);

			d.id = r.id;
			raw.record(d);
		}
		r = rec(TDM_WIRE_ACK);
		r.acked = seen + 1;
		r.freed = (seen + 1) * 513;
		raw.record(r);
		ASSERT_TRUE(until([&] { return !at(0).tcp->tx_pool.in_use; }));
	}
	EXPECT_EQ(1u, at(0).tcp->open);
	nobody_lost();
}

/* The peer's ASK crosses a message of ours, or comes behind one of its own. */
TEST_F(TcpIdleClose, AskIsRefusedWhileSomethingIsUnderWay)
{
	fi_addr_t to = peer(0x77);
	struct tdm_wire_rec r;
	char in[2];

	at(0).send(to, "x", 1, 1, FI_INJECT);
	EXPECT_EQ(TDM_WIRE_EAGER, next().op);
	step(TDM_WIRE_ASK, 0);
	expect_step(TDM_WIRE_NO);
	/* Announced, either way. */
	r = rec(TDM_WIRE_RTS, TDM_WIRE_F_TAG);
	r.tag = 6;
	r.id = 3;
	r.total = 1;
	raw.record(r);
	step(TDM_WIRE_ASK, 1, 513);
	expect_step(TDM_WIRE_NO);
	at(0).recv(in, 1, 6);
	EXPECT_EQ(TDM_WIRE_CTS, next().op);
	step(TDM_WIRE_ASK, 1, 513);
	expect_step(TDM_WIRE_NO);
	r = rec(TDM_WIRE_DATA, TDM_WIRE_F_ACK, 1);
	raw.record(r, 1);
	/* A DONE that is due when the message is received. */
	r = rec(TDM_WIRE_EAGER, TDM_WIRE_F_TAG | TDM_WIRE_F_DONE, 1);
	r.tag = 7;
	r.id = 4;
	raw.record(r, 1);
	step(TDM_WIRE_ASK, 1, 513);
	expect_step(TDM_WIRE_NO);
	at(0).recv(in + 1, 1, 7);
	EXPECT_EQ(TDM_WIRE_DONE, next().op);
	/* Now nothing is. */
	step(TDM_WIRE_ASK, 1, 513);
	r = next();
	EXPECT_EQ(TDM_WIRE_YES, r.step);
	EXPECT_EQ(2u, r.acked);
	step(TDM_WIRE_GO, 1, 513);
	EXPECT_TRUE(closed());
	EXPECT_EQ(0u, at(0).tcp->open);
	EXPECT_EQ(2u, at(0).rx.got.size());
	nobody_lost();
}

/* Between YES and the last word sends wait; then they leave, in order. */
TEST_F(TcpIdleClose, SendsWaitForTheLastWord)
{
	fi_addr_t to = peer(0x77);
	char in = 0;

	step(TDM_WIRE_ASK);
	expect_step(TDM_WIRE_YES);
	for (uint64_t tag = 0; tag < 10; tag++)
		ASSERT_EQ(0, at(0).send(to, "x", 1, tag, FI_INJECT));
	/*
	 * Messages of the peer are handled meanwhile; our answer waits for GO
	 * or STAY.
	 */
	at(0).recv(&in, 1, 5);
	eager();
	ASSERT_TRUE(until([&] { return at(0).rx.got.size() == 1; }));
	EXPECT_TRUE(quiet());
	step(TDM_WIRE_STAY);
	for (uint64_t tag = 0; tag < 10; tag++)
		EXPECT_EQ(tag, next().tag);
	step(TDM_WIRE_ASK, 10, 5130);
	expect_step(TDM_WIRE_YES);
	for (uint64_t tag = 10; tag < 20; tag++)
		ASSERT_EQ(0, at(0).send(to, "x", 1, tag, FI_INJECT));
	EXPECT_TRUE(quiet());
	step(TDM_WIRE_GO, 10, 5130);
	answer(0x77);
	for (uint64_t tag = 10; tag < 20; tag++)
		EXPECT_EQ(tag, next().tag);
	ASSERT_TRUE(until([&] { return !at(0).tcp->tx_pool.in_use; }));
	nobody_lost();
}

/* Its own ASK counts for the smaller id, the peer's for the larger. */
TEST_F(TcpIdleClose, SmallerIdAsks)
{
	peer(0xf7);
	crowd(0);
	expect_step(TDM_WIRE_ASK);
	step(TDM_WIRE_ASK);
	EXPECT_TRUE(quiet()) << "the peer has to answer";
	step(TDM_WIRE_YES);
	expect_step(TDM_WIRE_GO);
	EXPECT_TRUE(closed());
	EXPECT_EQ(0u, at(0).tcp->open);
	raw.hang_up();
	door->hang_up();
	peer(0x07);
	crowd(0);
	expect_step(TDM_WIRE_ASK);
	step(TDM_WIRE_ASK);
	expect_step(TDM_WIRE_YES);
	step(TDM_WIRE_GO);
	EXPECT_TRUE(closed());
	nobody_lost();
}

/* Without GO an end is an end. */
TEST_F(TcpIdleClose, EndWithoutGoIsTheEndOfThePeer)
{
	fi_addr_t to = peer(0x77);

	step(TDM_WIRE_ASK);
	expect_step(TDM_WIRE_YES);
	at(0).send(to, "x", 1, 1);
	raw.hang_up();
	ASSERT_TRUE(until([&] { return at(0).lost.size() == 1; }));
	ASSERT_EQ(1u, at(0).tx.got.size());
	EXPECT_EQ(FI_ECONNRESET, at(0).tx.got[0].err);
	call(0x77);
	crowd(0);
	expect_step(TDM_WIRE_ASK);
	raw.hang_up();
	ASSERT_TRUE(until([&] { return at(0).lost.size() == 2; }));
	call(0x77);
	step(TDM_WIRE_ASK);
	expect_step(TDM_WIRE_YES);
	raw.record(rec(TDM_WIRE_GOODBYE));
	raw.hang_up();
	ASSERT_TRUE(until([&] { return at(0).lost.size() == 3; }));
	EXPECT_EQ(FI_ESHUTDOWN, at(0).lost[2]);
}

TEST_F(TcpIdleClose, StepsOutOfPlaceAreBreaches)
{
	struct {
		const char *what;
		std::vector<uint32_t> said;
	} breaches[] = {
		{ "YES to nothing", { TDM_WIRE_YES } },
		{ "NO to nothing", { TDM_WIRE_NO } },
		{ "GO without a YES", { TDM_WIRE_GO } },
		{ "STAY without a YES", { TDM_WIRE_STAY } },
		{ "ASK twice", { TDM_WIRE_ASK, TDM_WIRE_ASK } },
		{ "YES to a YES", { TDM_WIRE_ASK, TDM_WIRE_YES } },
		{ "STAY twice",
		  { TDM_WIRE_ASK, TDM_WIRE_STAY, TDM_WIRE_STAY } },
	};

	peer(0x77);
	raw.hang_up();
	ASSERT_TRUE(until([&] { return at(0).lost.size() == 1; }));
	for (auto &b : breaches) {
		at(0).lost.clear();
		call(0x77);
		for (uint32_t s : b.said)
			step(s);
		EXPECT_TRUE(closed()) << b.what;
		EXPECT_EQ(1u, at(0).lost.size()) << b.what;
	}
	/* The sums are looked at as those of an ACK. */
	at(0).lost.clear();
	call(0x77);
	step(TDM_WIRE_ASK, 1);
	EXPECT_TRUE(closed());
	EXPECT_EQ(1u, at(0).lost.size());
	still_serves();
}

/*
 * A peer that has sent YES must not begin an operation: its number would belong
 * to a session that is over.
 */
TEST_F(TcpIdleClose, WhatIsBegunBehindAnAgreementIsABreach)
{
	struct tdm_wire_rec rts = rec(TDM_WIRE_RTS, TDM_WIRE_F_TAG),
			    read = rec(TDM_WIRE_READ);
	char in[4];

	rts.tag = 6;
	rts.id = 3;
	rts.total = 1;
	read.total = 1;
	peer(0x77);
	raw.hang_up();
	ASSERT_TRUE(until([&] { return at(0).lost.size() == 1; }));
	for (int i = 0; i < 4; i++) {
		at(0).lost.clear();
		call(0x77);
		if (!(i & 1))
			at(0).recv(&in[i], 1, 6);
		step(TDM_WIRE_ASK);
		expect_step(TDM_WIRE_YES);
		raw.record(i < 2 ? rts : read);
		step(TDM_WIRE_GO);
		EXPECT_TRUE(closed()) << i;
		EXPECT_EQ(1u, at(0).lost.size()) << i;
	}
	still_serves();
}

ssize_t no_room_to_send(int, const void *, size_t, int)
{
	errno = ENOBUFS;
	return -1;
}

/* The same of who said YES, while the kernel does not take our GO. */
TEST_F(TcpIdleClose, WhatIsBegunBehindYesIsABreach)
{
	struct tdm_wire_rec r = rec(TDM_WIRE_RTS, TDM_WIRE_F_TAG);
	char in;

	r.tag = 6;
	r.id = 3;
	r.total = 1;
	fi_addr_t to = peer(0x77);

	at(0).recv(&in, 1, 6);
	crowd(0);
	expect_step(TDM_WIRE_ASK);
	tdm_os.send = no_room_to_send;
	step(TDM_WIRE_YES);
	raw.record(r);
	ASSERT_TRUE(
		until([&] { return at(0).conn(to)->busy->announced != 0; }));
	tdm_os.send = tdm_os_system.send;
	EXPECT_TRUE(closed());
	EXPECT_EQ(1u, at(0).lost.size());
	still_serves();
}

TEST_F(TcpIdleClose, PeersThatDoNotKnowItAreNotAsked)
{
	peer(0x77, 0);
	crowd(0);
	EXPECT_TRUE(quiet());
	EXPECT_EQ(1u, at(0).tcp->open);
}

TEST_F(TcpIdleClose, OurselvesAreNotAsked)
{
	mesh(1);
	OK(message(0, 0, 0));
	size_t open = at(0).tcp->open;

	crowd(0);
	settle();
	EXPECT_EQ(open, at(0).tcp->open);
	OK(message(0, 0, 0));
	nobody_lost();
}

/* A peer that returns with another incarnation after an idle close was lost. */
TEST_F(TcpIdleClose, AnotherLifeOfAPeerThatRests)
{
	fi_addr_t to = peer(0x77);
	char in = 0;

	eager();
	step(TDM_WIRE_ASK);
	expect_step(TDM_WIRE_YES);
	step(TDM_WIRE_GO);
	EXPECT_TRUE(closed());
	nobody_lost();
	call(0x78);
	ASSERT_EQ(1u, at(0).lost.size());
	EXPECT_EQ(FI_ECONNRESET, at(0).lost[0]);
	/* The message that was complete is there. */
	ASSERT_EQ(0, at(0).recv(&in, 1, 5));
	ASSERT_EQ(1u, at(0).rx.got.size());
	EXPECT_EQ(0, at(0).rx.got[0].err);
	/* The same when it answers. */
	step(TDM_WIRE_ASK);
	expect_step(TDM_WIRE_YES);
	step(TDM_WIRE_GO);
	EXPECT_TRUE(closed());
	at(0).send(to, "x", 1, 1);
	answer(0x79);
	ASSERT_TRUE(until([&] { return at(0).lost.size() == 2; }));
	ASSERT_EQ(1u, at(0).tx.got.size());
	EXPECT_EQ(FI_ECONNRESET, at(0).tx.got[0].err);
	at(0).send(to, "y", 1, 1);
	answer(0x79);
	EXPECT_EQ(TDM_WIRE_EAGER, next().op);
}

TEST_F(TcpIdleClose, PeerThatEndsWhileItRestsIsFoundOutByTheNextSend)
{
	mesh(2);
	OK(message(0, 1, 1));
	crowd(0);
	ASSERT_TRUE(until([&] { return nothing_open(); }));
	at(1).close();
	settle();
	EXPECT_TRUE(at(0).lost.empty());
	at(0).tx.got.clear();
	ASSERT_EQ(0, at(0).send(1, "x", 1, 1));
	for (int i = 0; i < 1000000 && at(0).tx.got.empty(); i++)
		at(0).progress();
	ASSERT_EQ(1u, at(0).tx.got.size());
	EXPECT_EQ(FI_ECONNRESET, at(0).tx.got[0].err);
	EXPECT_EQ(1u, at(0).lost.size());
	nodes.erase(nodes.begin() + 1);
}

/* Messages that nobody has received stay, before those of later sessions. */
TEST_F(TcpIdleClose, UnexpectedMessagesOutliveTheSession)
{
	const unsigned n = 30;
	std::vector<unsigned> in(3 * n, 0);

	mesh(2);
	for (unsigned i = 0; i < 3 * n; i++) {
		ASSERT_EQ(0, at(0).send(1, &i, sizeof(i), 3, FI_INJECT));
		if (i % n != n - 1)
			continue;
		ASSERT_TRUE(until([&] { return !at(0).tcp->tx_pool.in_use; }));
		settle(5);
		crowd(i / n & 1);
		ASSERT_TRUE(until([&] { return nothing_open(); }));
	}
	for (unsigned i = 0; i < 3 * n; i++)
		ASSERT_EQ(0, at(1).recv(&in[i], sizeof(in[i]), 3));
	EXPECT_EQ(3 * n, at(1).rx.got.size());
	for (unsigned i = 0; i < 3 * n; i++)
		EXPECT_EQ(i, in[i]);
	OK(message(0, 1, 1));
	nobody_lost();
}

/* They count against the credit of the next session; many of them stay up. */
TEST_F(TcpIdleClose, KeptMessagesTakeCredit)
{
	fi_addr_t to = peer(0x77);
	struct tdm_wire_greeting g;
	char in[300];

	for (int i = 0; i < 200; i++)
		eager();
	step(TDM_WIRE_ASK);
	expect_step(TDM_WIRE_YES);
	step(TDM_WIRE_GO);
	EXPECT_TRUE(closed());
	at(0).send(to, "x", 1, 1, FI_INJECT);
	g = answer(0x77);
	EXPECT_EQ((1u << 20) - 200 * 513, g.credit);
	EXPECT_EQ(TDM_WIRE_EAGER, next().op);
	for (int i = 0; i < 100; i++)
		eager();
	step(TDM_WIRE_ASK, 1, 513);
	expect_step(TDM_WIRE_NO);
	for (int i = 0; i < 150; i++)
		ASSERT_EQ(0, at(0).recv(&in[i], 1, 5));
	step(TDM_WIRE_ASK, 1, 513);
	expect_step(TDM_WIRE_YES);
	step(TDM_WIRE_STAY, 1, 513);
	for (int i = 150; i < 300; i++)
		ASSERT_EQ(0, at(0).recv(&in[i], 1, 5));
	/* All credit of this session is back, and no more. */
	step(TDM_WIRE_ASK, 1, 513);
	struct tdm_wire_rec r = next();
	EXPECT_EQ(TDM_WIRE_YES, r.step);
	EXPECT_EQ(100u, r.acked);
	EXPECT_EQ(100u * 513, r.freed);
	EXPECT_EQ(300u, at(0).rx.got.size());
}

/*
 * doc/PROTOCOL-tcp.md, "Credit": A step stands for an ACK and cannot say FULL, so
 * an ACK that says it comes behind NO and STAY.
 */
TEST_F(TcpIdleClose, FullIsSaidBehindAStep)
{
	struct tdm_wire_rec r = rec(TDM_WIRE_EAGER, TDM_WIRE_F_DONE, 3000);

	tdm_env.unexp_max_bytes = 1 << 20;
	peer(0x77, TDM_WIRE_FEATURE_IDLE_CLOSE | TDM_WIRE_FEATURE_CREDIT);
	tdm_env.unexp_max_bytes = 0;
	/* One pass finds little unused credit, and the question. */
	for (r.id = 0; r.id < 10; r.id++)
		raw.record(r, 3000);
	step(TDM_WIRE_ASK);
	r = next(true);
	ASSERT_EQ(TDM_WIRE_IDLE_CLOSE, r.op);
	EXPECT_EQ(TDM_WIRE_NO, r.step);
	r = next(true);
	ASSERT_EQ(TDM_WIRE_ACK, r.op);
	EXPECT_EQ(TDM_WIRE_F_FULL, r.flags);
	nobody_lost();
}

/* Dropping kept messages after the idle close has no other effect. */
TEST_F(TcpIdleClose, KeptMessagesMayBeDropped)
{
	peer(0x77);
	eager();
	step(TDM_WIRE_ASK);
	expect_step(TDM_WIRE_YES);
	step(TDM_WIRE_GO);
	EXPECT_TRUE(closed());
	at(0).close();
}

TEST_F(TcpIdleClose, AddressRemovedWhileItRests)
{
	fi_addr_t one = 1;
	char in[2][8];

	mesh(2);
	OK(message(0, 1, 1));
	ASSERT_EQ(0, at(1).send(0, "kept", 5, 4, FI_INJECT));
	settle();
	crowd(0);
	ASSERT_TRUE(until([&] { return nothing_open(); }));
	ASSERT_EQ(0, fi_av_remove(tdm_av_fid(at(0).av), &one, 1, 0));
	at(1).recv(in[1], 8, 4);
	ASSERT_EQ(0, at(1).send(0, "new", 4, 4, FI_INJECT));
	at(0).recv(in[0], 8, 4);
	EXPECT_STREQ("kept", in[0]);
	at(0).recv(in[0], 8, 4);
	ASSERT_TRUE(until([&] { return at(0).rx.got.size() == 2; }));
	EXPECT_STREQ("new", in[0]);
	at(0).insert(at(1).addr);
	ASSERT_EQ(0, at(0).send(1, "back", 5, 4));
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 2; }));
	EXPECT_STREQ("back", in[1]);
	nobody_lost();
}

/* The longest unused, two for each descriptor above the mark. */
TEST_F(TcpIdleClose, TheLongestUnusedRest)
{
	const size_t n = 6;

	mesh(n);
	for (size_t i = 1; i < n; i++)
		OK(message(0, i, i));
	for (size_t i : { 3, 1, 5 })
		OK(message(0, i, i));
	OK(message(4, 0, 0));
	most_fds = 100;
	tdm_os.getrlimit = few_fds;
	tdm_idle_close_crowd(at(0).tcp, 79);
	settle();
	EXPECT_EQ(n - 1, at(0).tcp->open);
	tdm_idle_close_crowd(at(0).tcp, 80);
	ASSERT_TRUE(until([&] { return at(0).tcp->open == n - 3; }));
	settle();
	EXPECT_EQ(n - 3, at(0).tcp->open);
	for (size_t i = 1; i < n; i++)
		EXPECT_EQ(i == 2 || i == 3 ? 0u : 1u, at(i).tcp->open) << i;
	most_fds = RLIM_INFINITY;
	tdm_idle_close_crowd(at(0).tcp, 1 << 20);
	settle();
	EXPECT_EQ(n - 3, at(0).tcp->open);
	nobody_lost();
}

unsigned refused;

int no_socket(int domain, int type, int protocol)
{
	if (!refused)
		return tdm_os_system.socket(domain, type, protocol);
	refused--;
	errno = EMFILE;
	return -1;
}

int no_accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	if (!refused)
		return tdm_os_system.accept4(fd, a, len, flags);
	refused--;
	errno = EMFILE;
	return -1;
}

TEST_F(TcpIdleClose, NoDescriptorIsAReasonToo)
{
	mesh(4);
	OK(message(0, 1, 1));
	refused = 1;
	tdm_os.socket = no_socket;
	OK(message(0, 2, 2));
	EXPECT_TRUE(until([&] { return !at(1).tcp->open; }));
	OK(message(0, 1, 1));
	refused = 1;
	tdm_os.socket = tdm_os_system.socket;
	tdm_os.accept4 = no_accept4;
	OK(message(3, 0, 0));
	EXPECT_TRUE(until([&] { return !at(1).tcp->open; }));
	OK(message(0, 1, 1));
	nobody_lost();
}

/* Traffic of all kinds both ways, and idle closes in every gap. */
std::mt19937 dice;
bool cutting;

ssize_t cut_send(int fd, const void *p, size_t n, int flags)
{
	if (cutting && !(dice() % 3)) {
		errno = EAGAIN;
		return -1;
	}
	return tdm_os_system.send(fd, p, cutting && n > 5 ? 5 : n, flags);
}

ssize_t cut_recv(int fd, void *p, size_t n, int flags)
{
	return tdm_os_system.recv(fd, p, cutting && n > 9 ? 9 : n, flags);
}

class TcpRestMany : public TcpIdleClose, public testing::WithParamInterface<int>
{
protected:
	static constexpr unsigned n = 600;

	/* Messages of one direction, all with one tag: they are in order. */
	struct Way {
		size_t from, to;
		unsigned sent = 0, posted = 0;
		std::vector<Bytes> out, in;
		unsigned ends = 0;
	};

	static size_t length()
	{
		unsigned d = dice() % 20;

		return d ? dice() % 300 : 60000 + dice() % 20000;
	}

	void send_one(Way &w)
	{
		static const uint64_t kinds[] = { FI_COMPLETION,
						  FI_COMPLETION |
							  FI_DELIVERY_COMPLETE,
						  FI_INJECT, FI_COMPLETION };
		uint64_t flags = kinds[dice() % 4];

		if (w.sent == n)
			return;
		if (at(w.from).send(w.to, w.out[w.sent].data(),
				    w.out[w.sent].size(), w.from, flags))
			return;
		w.ends += !!(flags & FI_COMPLETION);
		w.sent++;
	}

	void post_one(Way &w)
	{
		if (w.posted == n || w.posted > w.sent + 20)
			return;
		Bytes &b = w.in[w.posted++];

		at(w.to).recv(b.data(), b.size(), w.from);
	}

	/*
	 * Wait until all messages have arrived, let one side ask for an idle
	 * close, and go on.
	 */
	void gap(Way *ways)
	{
		EXPECT_TRUE(until([&] {
			for (size_t k = 0; k < 2; k++) {
				if (ways[k].posted < ways[k].sent)
					post_one(ways[k]);
			}
			return at(0).rx.got.size() == ways[1].sent &&
			       at(1).rx.got.size() == ways[0].sent &&
			       !at(0).tcp->tx_pool.in_use &&
			       !at(1).tcp->tx_pool.in_use;
		}));
		crowd(dice() % 2);
		if (!(dice() % 3))
			crowd(dice() % 2);
		for (unsigned i = dice() % (cutting ? 300 : 30); i; i--)
			at(dice() % 2).progress();
	}
};

TEST_P(TcpRestMany, NothingIsLostDoubledOrPassedOver)
{
	Way ways[2] = {};

	dice.seed(GetParam());
	cutting = GetParam() & 1;
	tdm_os.send = cut_send;
	tdm_os.recv = cut_recv;
	mesh(2);
	for (size_t k = 0; k < 2; k++) {
		ways[k].from = k;
		ways[k].to = !k;
		for (unsigned i = 0; i < n; i++) {
			size_t len = length();

			ways[k].out.push_back(pattern(len, i * 2 + k));
			ways[k].in.push_back(Bytes(len + 8));
		}
	}
	while (ways[0].sent < n || ways[1].sent < n) {
		for (unsigned i = dice() % 4; i; i--)
			send_one(ways[dice() % 2]);
		for (unsigned i = dice() % 4; i; i--)
			post_one(ways[dice() % 2]);
		if (!(dice() % 3))
			crowd(dice() % 2);
		for (unsigned i = dice() % 30; i; i--)
			at(dice() % 2).progress();
		if (!(dice() % 40))
			gap(ways);
	}
	while (ways[0].posted < n || ways[1].posted < n) {
		post_one(ways[0]);
		post_one(ways[1]);
	}
	EXPECT_TRUE(until([&] {
		return at(0).rx.got.size() == n && at(1).rx.got.size() == n &&
		       at(0).tx.got.size() == ways[0].ends &&
		       at(1).tx.got.size() == ways[1].ends;
	}));
	for (auto &w : ways) {
		for (const Comp &c : at(w.from).tx.got)
			EXPECT_EQ(0, c.err);
		for (const Comp &c : at(w.to).rx.got)
			EXPECT_EQ(0, c.err);
		for (unsigned i = 0; i < n; i++)
			EXPECT_TRUE(same(w.out[i], w.in[i], w.out[i].size()))
				<< w.from << ": " << i;
		EXPECT_EQ(0u, at(w.from).tcp->tx_pool.in_use);
	}
	/* Fewer closes than asked for where the kernel delivers late: go on. */
	cutting = false;
	while (at(0).accepted.size() + at(1).accepted.size() <= 5u) {
		/* A peer that has not read the last ACK yet says NO: ask again. */
		ASSERT_TRUE(until([&] {
			crowd(0);
			return nothing_open();
		}));
		OK(message(0, 1, 1));
	}
	nobody_lost();
}

INSTANTIATE_TEST_SUITE_P(Seeds, TcpRestMany, testing::Range(0, 10));

} // namespace
