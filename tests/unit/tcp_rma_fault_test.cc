/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations with a peer that breaks the protocol: as a target that
 * answers what it must not, as an initiator that asks for what nobody has.
 */
#include <rdma/fi_errno.h>

#include "base/env.h"
#include "fault.h"
#include "tcp_raw.h"

namespace
{

using namespace tcp_test;

class TcpRmaFault : public TcpFault
{
protected:
	Bytes heard, buf;
	fi_addr_t peer = FI_ADDR_UNSPEC;

	/*
	 * Node 0 in a session with the bytes, whose HELLO has @features, and what
	 * it says from now on.
	 */
	void begin(uint32_t features = 0)
	{
		size_t greeting = TDM_WIRE_GREETING_BYTES;
		struct tdm_wire_greeting g = Raw::greeting(9);

		g.features = features;

		nodes.clear();
		add();
		heard.clear();
		raw.call(at(0).addr);
		raw.hello(g);
		ASSERT_TRUE(until([&] { return hear() >= greeting; }));
		heard.erase(heard.begin(), heard.begin() + greeting);
		peer = at(0).insert(Raw::greeting(9).addr);
		ASSERT_EQ(TDM_CONN_READY, at(0).conn(peer)->state);
	}

	size_t hear()
	{
		std::vector<uint8_t> b = raw.hear();

		heard.insert(heard.end(), b.begin(), b.end());
		return heard.size();
	}

	/* The next record @op that node 0 sends; others are skipped. */
	struct tdm_wire_rec next(uint8_t op)
	{
		struct tdm_wire_rec r = {};

		EXPECT_TRUE(until([&] {
			while (hear() >= TDM_WIRE_PREFIX_BYTES) {
				int n = tdm_wire_head_bytes(heard.data());

				if (n < 0 || heard.size() < (size_t)n ||
				    tdm_wire_decode(heard.data(), &r) ||
				    heard.size() < (size_t)n + r.len)
					return false;
				heard.erase(heard.begin(),
					    heard.begin() + n + r.len);
				if (r.op == op)
					return true;
			}
			return false;
		}));
		return r;
	}

	struct tdm_wire_rec answer(uint8_t op, uint32_t id, uint32_t rid,
				   uint64_t total)
	{
		struct tdm_wire_rec r = rec(op);

		r.id = id;
		r.rid = rid;
		r.total = total;
		return r;
	}

	/* Operation @op of node 0 on @len bytes; its request as sent. */
	struct tdm_wire_rec ask(uint64_t op, size_t len, uint8_t request)
	{
		buf = pattern(len, 1);
		EXPECT_EQ(0, at(0).rma(op, peer, buf.data(), len, 1, 2));
		return next(request);
	}

	/* Node 0 reads all of @b; false: it ended the session before. */
	bool take(const Bytes &b)
	{
		size_t off = 0;

		EXPECT_TRUE(until([&] {
			ssize_t n = ::send(raw.fd, &b[off], b.size() - off,
					   MSG_NOSIGNAL | MSG_DONTWAIT);

			off += n > 0 ? (size_t)n : 0;
			return off == b.size() || at(0).lost.size();
		}));
		return at(0).lost.empty();
	}

	void broken(const char *what)
	{
		EXPECT_TRUE(closed()) << what;
		ASSERT_EQ(1u, at(0).tx.got.size()) << what;
		EXPECT_EQ(FI_ECONNRESET, at(0).tx.got[0].err) << what;
		EXPECT_EQ(1u, at(0).lost.size()) << what;
		EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use) << what;
		still_serves();
	}
};

/* Answers that a target may not give end the pair, once. */
TEST_F(TcpRmaFault, LyingTargets)
{
	const size_t len = 200000;
	struct tdm_wire_rec r, d;

	begin();
	r = ask(FI_WRITE, len, TDM_WIRE_AWRITE);
	raw.record(answer(TDM_WIRE_CTS, r.id, 5, len - 1));
	broken("a write wanted in part");

	begin();
	r = ask(FI_WRITE, len, TDM_WIRE_AWRITE);
	raw.record(answer(TDM_WIRE_CTS, r.id, 5, 0));
	broken("a write not wanted");

	begin();
	r = ask(FI_WRITE, len, TDM_WIRE_AWRITE);
	raw.record(answer(TDM_WIRE_DONE, r.id, 0, 0));
	broken("a write placed without its bytes");

	begin();
	r = ask(FI_WRITE, len, TDM_WIRE_AWRITE);
	raw.record(answer(TDM_WIRE_CTS, r.id, 5, len));
	raw.record(answer(TDM_WIRE_CTS, r.id, 5, len));
	broken("asked for twice");

	begin();
	r = ask(FI_READ, len, TDM_WIRE_READ);
	raw.record(answer(TDM_WIRE_DONE, r.id, 0, 0));
	broken("a read done without its bytes");

	begin();
	r = ask(FI_READ, len, TDM_WIRE_READ);
	raw.record(answer(TDM_WIRE_CTS, r.id, 5, len));
	broken("CTS for a read");

	begin();
	r = ask(FI_READ, 100, TDM_WIRE_READ);
	d = rec(TDM_WIRE_DATA, 0, 101);
	d.rid = r.rid;
	raw.record(d, 101);
	broken("more than was asked for");
	EXPECT_TRUE(buf == pattern(100, 1));

	begin();
	r = ask(FI_READ, 100, TDM_WIRE_READ);
	d = rec(TDM_WIRE_DATA, TDM_WIRE_F_ABORT);
	d.rid = r.rid;
	raw.record(d);
	broken("a read aborted");
}

/* After the end of an operation its numbers mean nothing. */
TEST_F(TcpRmaFault, AnswersTwice)
{
	struct tdm_wire_rec r, d;

	begin();
	r = ask(FI_READ, 100, TDM_WIRE_READ);
	d = rec(TDM_WIRE_DATA, 0, 100);
	d.rid = r.rid;
	raw.record(d, 100);
	raw.record(answer(TDM_WIRE_DONE, r.id, 0, 0));
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	EXPECT_EQ(0, at(0).tx.got[0].err);
	EXPECT_TRUE(buf == Bytes(100, 0x55));
	raw.record(d, 100);
	EXPECT_TRUE(closed());
	EXPECT_TRUE(buf == Bytes(100, 0x55));
	EXPECT_EQ(1u, at(0).tx.got.size());

	begin();
	r = ask(FI_WRITE, 100, TDM_WIRE_WRITE);
	r = answer(TDM_WIRE_DONE, r.id, 0, 0);
	r.status = TDM_WIRE_S_ACCESS;
	raw.record(r);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	EXPECT_EQ(FI_EACCES, at(0).tx.got[0].err);
	raw.record(r);
	EXPECT_TRUE(closed());
	EXPECT_EQ(1u, at(0).tx.got.size());
}

/* A status is for one-sided operations only. */
TEST_F(TcpRmaFault, MessagesAreNotRefused)
{
	struct tdm_wire_rec r;

	begin();
	at(0).send(peer, "x", 1, 1, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	r = next(TDM_WIRE_EAGER);
	r = answer(TDM_WIRE_DONE, r.id, 0, 0);
	r.status = TDM_WIRE_S_ACCESS;
	raw.record(r);
	broken("a message refused");
}

/* A side without the feature WRITES gets no long WRITE, and pays for each byte. */
TEST_F(TcpRmaFault, LongWritesAreForThoseWhoTakeThem)
{
	const size_t len = 200000;
	struct tdm_wire_rec r;

	begin();
	r = ask(FI_WRITE, len, TDM_WIRE_AWRITE);
	EXPECT_EQ(len, r.total);
	begin(TDM_WIRE_FEATURE_WRITES);
	r = ask(FI_WRITE, len, TDM_WIRE_WRITE);
	EXPECT_EQ(len, r.len);
	EXPECT_EQ((uint64_t)TDM_WIRE_CHARGE_BYTES, at(0).conn(peer)->charged);

	for (uint32_t features : { 0u, (uint32_t)TDM_WIRE_FEATURE_WRITES }) {
		begin(features);
		const uint64_t given = at(0).conn(peer)->given;
		Bytes target(given, 0x11), b(TDM_WIRE_HEAD_BYTES);

		at(0).regions.add(1, target.data(), given, FI_REMOTE_WRITE);
		r = rec(TDM_WIRE_WRITE, 0, (uint32_t)given);
		r.key = 1;
		b.resize(tdm_wire_encode(b.data(), &r));
		b.resize(b.size() + given, 0x55);
		take(b);
		EXPECT_TRUE(until([&] {
			return target[given - 1] == 0x55 || at(0).lost.size();
		}));
		EXPECT_EQ(features ? 0x55 : 0x11, target[given - 1]);
		EXPECT_EQ(features ? 0u : 1u, at(0).lost.size());
		EXPECT_EQ(features ? 0x55 : 0x11, target[0]);
		at(0).regions.add(1, NULL, 0, FI_REMOTE_WRITE);
	}
}

/* Requests whose answers are never read: their number is bounded. */
TEST_F(TcpRmaFault, RequestsWithoutEnd)
{
	const struct {
		uint8_t op;
		uint32_t features;
	} floods[] = { { TDM_WIRE_READ, 0 },
		       { TDM_WIRE_AWRITE, 0 },
		       { TDM_WIRE_WRITE, 0 },
		       { TDM_WIRE_WRITE, TDM_WIRE_FEATURE_WRITES } };

	for (auto &f : floods) {
		const uint8_t op = f.op;
		std::vector<uint8_t> b;
		size_t most = 0, sent = 0;
		bool lost = false;

		begin(f.features);
		for (int i = 0; i < 100; i++) {
			uint8_t head[TDM_WIRE_HEAD_BYTES];
			struct tdm_wire_rec r = rec(op);

			r.total = op == TDM_WIRE_WRITE ? 0 : 1000;
			r.key = 99;
			b.insert(b.end(), head,
				 head + tdm_wire_encode(head, &r));
		}
		while (!lost && sent < (size_t)256 << 20) {
			size_t off = sent % b.size();
			ssize_t n = ::send(raw.fd, &b[off], b.size() - off,
					   MSG_NOSIGNAL | MSG_DONTWAIT);

			if (n > 0)
				sent += (size_t)n;
			else if (errno != EAGAIN)
				lost = true;
			turn();
			most = std::max(most,
					at(0).tcp->tx_pool.in_use +
						at(0).tcp->rx_pool.in_use);
		}
		EXPECT_TRUE(lost) << (int)op;
		EXPECT_LE(most, (size_t)TDM_WIRE_RTS_COUNT + 1) << (int)op;
		EXPECT_TRUE(at(0).rx.got.empty());
		EXPECT_EQ(0u, at(0).regions.given);
		still_serves();
	}
}

/* Random requests and their payload never touch more than the regions. */
TEST_F(TcpRmaFault, RandomRequests)
{
	std::mt19937 rng(3);

	for (int round = 0; round < 100; round++) {
		Bytes guard(300, 0xaa), before;

		begin();
		at(0).regions.add(1, &guard[100], 100,
				  FI_REMOTE_WRITE | FI_REMOTE_READ);
		for (int i = 0; i < 20; i++) {
			struct tdm_wire_rec r =
				rec((uint8_t)(TDM_WIRE_WRITE + rng() % 3));

			r.key = rng() % 3;
			r.addr = rng() % 4 ? rng() % 130 :
					     UINT64_MAX - rng() % 130;
			r.id = rng();
			r.rid = rng();
			r.total = rng() % 130;
			if (r.op == TDM_WIRE_WRITE)
				r.len = (uint32_t)r.total;
			raw.record(r, r.len);
			if (rng() % 3 == 0)
				turn();
		}
		raw.hang_up();
		ASSERT_TRUE(until([&] { return !at(0).tcp->open; }));
		for (size_t i = 0; i < 100; i++) {
			ASSERT_EQ(0xaa, guard[i]);
			ASSERT_EQ(0xaa, guard[200 + i]);
		}
		EXPECT_EQ(0u, at(0).regions.in_flight);
		EXPECT_TRUE(at(0).rx.got.empty());
	}
}

/* Memory runs out at each place in turn: each operation ends once. */
TEST_F(TcpRmaFault, EveryAllocationFailsInTurn)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap=malloc";
	const size_t len = 100000;
	Bytes out = pattern(len, 1), in(len), target(len);
	unsigned failures = 0;

	tdm_env.conn_timeout_ms = 300;
	for (unsigned nth = 1; nth < 120; nth++) {
		unsigned posted = 0;

		nodes.clear();
		mesh(2);
		at(0).conn(1);
		at(1).regions.add(1, target.data(), len,
				  FI_REMOTE_READ | FI_REMOTE_WRITE);
		tdt_alloc_fail(nth, 0);
		posted += !at(0).rma(FI_WRITE, 1, out.data(), len, 1, 0);
		posted += !at(0).rma(FI_READ, 1, in.data(), len, 1, 0);
		posted += !at(0).rma(FI_WRITE, 1, "inject", 7, 1, 9, FI_INJECT);
		posted += !at(0).rma(FI_READ, 1, in.data(), 10, 1, 0);
		posted += !at(0).rma(FI_WRITE, 1, "bad", 4, 2, 0);
		for (int i = 0; i < 300; i++)
			turn();
		failures += tdt_alloc_stop();
		ASSERT_TRUE(until([&] {
			return at(0).tcp->tx_pool.in_use == 0;
		})) << nth;
		EXPECT_EQ(posted, at(0).wrote.value + at(0).wrote.errors +
					  at(0).read.value + at(0).read.errors)
			<< nth;
		ASSERT_TRUE(until([&] { return !at(1).regions.in_flight; }))
			<< nth;
	}
	EXPECT_GT(failures, 8u);
}

} // namespace
