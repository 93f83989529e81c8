/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations over TCP: what they change and bring back, and peers that
 * break the protocol. doc/PROTOCOL-tcp.md "Atomic operations".
 */
#include <random>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "fault.h"
#include "forged_amo.h"
#include "tcp_raw.h"

namespace
{

using namespace tcp_test;

enum { KEY = 77 };

/* A call of up to 64 values of 8 bytes, with all it refers to. */
struct Amo {
	struct tdm_amo_call call = {};
	struct tdm_xfer x = {};
	uint64_t operands[128] = {}, result[128] = {};
	struct iovec iov[2] = {};

	Amo(unsigned kind, unsigned op, size_t n = 1, uint64_t flags = 0)
	{
		size_t len;

		call.amo = { FI_UINT64, uint8_t(op), uint8_t(kind),
			     TDM_AMO_FORM };
		call.bytes = uint32_t(8 * n);
		len = call.bytes * tdm_amo_operands(&call.amo);
		if (kind != TDM_AMO_BASE) {
			call.result_count = 2;
			call.result[0] = { result, 3 };
			call.result[1] = { (char *)result + 3, call.bytes - 3 };
		}
		iov[0] = { operands, len / 3 };
		iov[1] = { (char *)operands + len / 3, len - len / 3 };
		x.flags = FI_ATOMIC | FI_COMPLETION | flags |
			  (kind == TDM_AMO_BASE ? FI_WRITE : FI_READ);
		x.iov = iov;
		x.count = len ? 2 : 0;
		x.len = len;
		x.amo = &call;
		x.rma_key = KEY;
		x.context = this;
	}

	ssize_t post(Node &n, fi_addr_t to)
	{
		x.addr = to;
		return tdm_tx_send(n.conn(to), &x);
	}
};

class TcpAmo : public Tcp
{
protected:
	std::vector<uint64_t> memory;

	void region(size_t words, uint64_t value)
	{
		mesh(2);
		memory.assign(words, value);
		at(1).regions.add(KEY, memory.data(), 8 * words,
				  FI_REMOTE_READ | FI_REMOTE_WRITE);
	}

	bool ended(size_t n = 1)
	{
		return until([&] { return at(0).tx.got.size() >= n; });
	}

	void clean()
	{
		settle();
		for (auto &n : nodes) {
			EXPECT_EQ(0u, n->regions.in_flight);
			EXPECT_TRUE(n->lost.empty());
			EXPECT_EQ(0u, n->tcp->tx_pool.in_use);
			EXPECT_EQ(0u, n->tcp->tx_pool.in_use);
			EXPECT_EQ(0u, n->tcp->rx_pool.in_use);
			for (auto &c : n->conns) {
				EXPECT_EQ(0u, c.second->busy->rts);
				EXPECT_EQ(0u, c.second->busy->announced);
			}
		}
	}
};

/* All kinds, up to as many values as a call may have, in pieces at both ends. */
TEST_F(TcpAmo, EachKind)
{
	region(200, 5);
	for (size_t n : { 1, 2, 64 }) {
		for (unsigned kind = 0; kind < TDM_AMO_KINDS; kind++) {
			Amo a(kind, kind == TDM_AMO_COMPARE ? FI_CSWAP : FI_SUM,
			      n);
			size_t had = at(0).tx.got.size();

			std::fill(memory.begin(), memory.end(), 5);
			for (size_t i = 0; i < 2 * n; i++)
				a.operands[i] = i < n ? 7 + i : 5;
			a.x.rma_addr = 8 * 60;
			ASSERT_EQ(0, a.post(at(0), 1));
			ASSERT_TRUE(ended(had + 1));
			EXPECT_EQ(0, at(0).tx.got[had].err);
			EXPECT_EQ(&a, at(0).tx.got[had].context);
			EXPECT_EQ(FI_ATOMIC | (kind ? FI_READ : FI_WRITE),
				  at(0).tx.got[had].flags);
			for (size_t i = 0; i < n; i++) {
				EXPECT_EQ(kind == TDM_AMO_COMPARE ? 7 + i :
								    12 + i,
					  memory[60 + i]);
				EXPECT_EQ(kind ? 5u : 0u, a.result[i]);
			}
			EXPECT_EQ(5u, memory[59]);
			EXPECT_EQ(5u, memory[60 + n]);
		}
	}
	EXPECT_EQ(3u, at(0).wrote.value);
	EXPECT_EQ(6u, at(0).read.value);
	EXPECT_EQ(3u, at(1).was_written.value);
	EXPECT_EQ(6u, at(1).was_read.value);
	EXPECT_TRUE(at(1).rx.got.empty());
	clean();
}

/* Longer than credit lasts, and more than the peer takes unanswered at once. */
TEST_F(TcpAmo, ManyAtOnceInOrder)
{
	const size_t n = 3000;
	std::vector<std::unique_ptr<Amo>> all;

	region(128, 0);
	at(0).conn(1);
	for (size_t i = 0; i < n; i++) {
		all.emplace_back(new Amo(TDM_AMO_FETCH, FI_SUM, 128));
		all[i]->operands[0] = 1;
		ASSERT_EQ(0, all[i]->post(at(0), 1));
		if (i == 100) {
			ASSERT_TRUE(ended());
			at(0).conn(1)->rts_max = 7;
		}
	}
	ASSERT_TRUE(ended(n));
	for (size_t i = 0; i < n; i++)
		ASSERT_EQ(i, all[i]->result[0]);
	EXPECT_EQ(n, memory[0]);
	clean();
}

/* Unexpected messages hold the credit: atomic operations do without. */
TEST_F(TcpAmo, NeedsNoCredit)
{
	Bytes big(60000);
	Amo a(TDM_AMO_FETCH, FI_SUM);

	region(1, 3);
	for (int i = 0; i < 60; i++)
		ASSERT_EQ(0, at(0).send(1, big.data(), big.size(), 9, 0));
	a.operands[0] = 4;
	ASSERT_EQ(0, a.post(at(0), 1));
	ASSERT_TRUE(until([&] { return a.result[0] == 3; }));
	EXPECT_EQ(7u, memory[0]);
}

TEST_F(TcpAmo, OperandsAreFreeAtOnce)
{
	Amo a(TDM_AMO_COMPARE, FI_CSWAP, 1, FI_INJECT);

	region(1, 3);
	a.operands[0] = 9;
	a.operands[1] = 3;
	ASSERT_EQ(0, a.post(at(0), 1)); /* connecting */
	a.operands[0] = a.operands[1] = 0;
	ASSERT_TRUE(ended());
	EXPECT_EQ(9u, memory[0]);
	EXPECT_EQ(3u, a.result[0]);
	clean();
}

TEST_F(TcpAmo, CloseDeliversWhatWasInjected)
{
	Amo a(TDM_AMO_BASE, FI_SUM, 1, FI_INJECT | FI_MORE);

	region(1, 3);
	at(0).send(1, "x", 1, 1, FI_INJECT);
	settle();
	a.operands[0] = 9;
	ASSERT_EQ(0, a.post(at(0), 1));
	at(0).close();
	ASSERT_TRUE(until([&] { return at(1).was_written.value == 1; }));
	EXPECT_EQ(12u, memory[0]);
}

TEST_F(TcpAmo, TargetAndInitiatorGo)
{
	for (size_t who : { 0, 1 }) {
		nodes.clear();
		region(1, 0);
		Amo a(TDM_AMO_FETCH, FI_SUM), b(TDM_AMO_BASE, FI_SUM);

		ASSERT_EQ(0, a.post(at(0), 1));
		ASSERT_EQ(0, b.post(at(0), 1));
		until([&] { return at(1).was_read.value == 1; });
		at(who).close();
		if (who == 1) {
			ASSERT_TRUE(ended(2));
			for (auto &c : at(0).tx.got)
				EXPECT_TRUE(!c.err || c.err == FI_ECONNRESET);
			EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use);
		} else {
			ASSERT_TRUE(
				until([&] { return at(1).lost.size() == 1; }));
			EXPECT_EQ(0u, at(1).tcp->tx_pool.in_use);
		}
	}
}

/* ---- peers that break the protocol --------------------------------------- */

class TcpAmoFault : public TcpFault
{
protected:
	Bytes heard;
	fi_addr_t peer = FI_ADDR_UNSPEC;

	void begin(uint32_t features = TDM_WIRE_FEATURE_ATOMIC)
	{
		struct tdm_wire_greeting g = Raw::greeting(9);
		size_t greeting = TDM_WIRE_GREETING_BYTES;

		g.features = features;
		nodes.clear();
		add();
		heard.clear();
		raw.call(at(0).addr);
		raw.hello(g);
		ASSERT_TRUE(until([&] { return hear() >= greeting; }));
		heard.erase(heard.begin(), heard.begin() + greeting);
		peer = at(0).insert(Raw::greeting(9).addr);
	}

	size_t hear()
	{
		std::vector<uint8_t> b = raw.hear();

		heard.insert(heard.end(), b.begin(), b.end());
		return heard.size();
	}

	/* The next record @op that node 0 sends, with what follows in heard. */
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
				heard.erase(heard.begin(), heard.begin() + n);
				if (r.op == op)
					return true;
				heard.erase(heard.begin(),
					    heard.begin() + r.len);
			}
			return false;
		}));
		return r;
	}

	static struct tdm_wire_rec answer(uint8_t op, uint32_t id, uint32_t rid,
					  uint32_t len = 0)
	{
		struct tdm_wire_rec r = rec(op, 0, len);

		r.id = id;
		r.rid = rid;
		return r;
	}

	static struct tdm_wire_rec request(unsigned kind, unsigned op,
					   size_t bytes)
	{
		struct tdm_wire_rec r = rec(TDM_WIRE_ATOMIC);

		r.id = 4;
		r.rid = kind ? 5 : 0;
		r.key = KEY;
		r.total = bytes;
		r.amo = { FI_UINT64, uint8_t(op), uint8_t(kind), TDM_AMO_FORM };
		r.len = uint32_t(bytes * tdm_amo_operands(&r.amo));
		return r;
	}

	void broken(const char *what)
	{
		EXPECT_TRUE(closed()) << what;
		ASSERT_EQ(1u, at(0).tx.got.size()) << what;
		EXPECT_EQ(FI_ECONNRESET, at(0).tx.got[0].err) << what;
		EXPECT_EQ(EPROTO, at(0).tx.got[0].prov_errno) << what;
		EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use) << what;
		still_serves();
	}
};

/* A peer of an earlier version is not asked for what it does not know. */
TEST_F(TcpAmoFault, PeersWithoutTheFeature)
{
	Amo a(TDM_AMO_FETCH, FI_SUM);

	begin(0);
	EXPECT_EQ(-FI_EOPNOTSUPP, a.post(at(0), peer));
	EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use);
	settle();
	EXPECT_EQ(0u, hear());
}

TEST_F(TcpAmoFault, PeersThatKnowOneRangeOnly)
{
	const struct fi_rma_iov more = { 8, 4, KEY };
	char buf[8] = {};
	struct tdm_xfer x;

	begin();
	tdm_xfer_init(&x, FI_RMA | FI_WRITE | TDM_RANGES, peer, buf);
	tdm_xfer_buf(&x, buf, sizeof(buf));
	x.rma_addr = 0;
	x.rma_key = KEY;
	x.more = &more;
	x.more_count = 1;
	EXPECT_EQ(-FI_EOPNOTSUPP, tdm_tx_send(at(0).conn(peer), &x));
	EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use);
	settle();
	EXPECT_EQ(0u, hear());
}

TEST_F(TcpAmoFault, MoreRangesThanThereCanBe)
{
	begin(TDM_WIRE_FEATURE_ATOMIC | TDM_WIRE_FEATURE_RANGES);
	for (int i = 0; i < TDM_RMA_IOV_LIMIT; i++)
		raw.record(rec(TDM_WIRE_RANGE));
	EXPECT_TRUE(closed());
	still_serves();
}

TEST_F(TcpAmoFault, LyingTargets)
{
	struct tdm_wire_rec r;

	for (int lie = 0; lie < 7; lie++) {
		Amo a(lie == 6 ? TDM_AMO_BASE : TDM_AMO_FETCH, FI_SUM, 2);

		begin();
		ASSERT_EQ(0, a.post(at(0), peer));
		r = next(TDM_WIRE_ATOMIC);
		EXPECT_EQ(16u, r.len);
		switch (lie) {
		case 0:
			raw.record(answer(TDM_WIRE_DONE, r.id, 0));
			break;
		case 1:
			raw.record(answer(TDM_WIRE_DATA, 0, r.rid, 17), 17);
			break;
		case 2:
			raw.record(answer(TDM_WIRE_CTS, r.id, 5));
			break;
		case 3:
			raw.record(answer(TDM_WIRE_DATA, 0, r.rid, 8), 8);
			raw.record(answer(TDM_WIRE_DONE, r.id, 0));
			break;
		case 4:
			raw.record(answer(TDM_WIRE_DONE, r.id + 1, 0));
			break;
		case 5:
			raw.record(rec(TDM_WIRE_DATA, TDM_WIRE_F_ABORT));
			break;
		default:
			raw.record(answer(TDM_WIRE_DATA, 0, r.rid, 8), 8);
			break;
		}
		broken("a lie");
	}
}

TEST_F(TcpAmoFault, EachStatusIsAnError)
{
	const int want[] = { 0, FI_EACCES, FI_ENOMEM, FI_EOPNOTSUPP };

	for (uint32_t status = 0; status < TDM_WIRE_STATUSES; status++) {
		Amo a(TDM_AMO_BASE, FI_SUM);
		struct tdm_wire_rec r;

		begin();
		ASSERT_EQ(0, a.post(at(0), peer));
		r = answer(TDM_WIRE_DONE, next(TDM_WIRE_ATOMIC).id, 0);
		r.status = status;
		raw.record(r);
		ASSERT_TRUE(until([&] { return !at(0).tx.got.empty(); }));
		EXPECT_EQ(want[status], at(0).tx.got[0].err);
	}
}

/* Operands that come byte by byte are used once, when the last is there. */
TEST_F(TcpAmoFault, A10_OperandsInPieces)
{
	struct tdm_wire_rec r = request(TDM_AMO_COMPARE, FI_CSWAP, 16), d;
	uint64_t memory[2] = { 1, 2 };
	const uint64_t operands[4] = { 10, 20, 1, 2 };
	std::vector<uint8_t> b(TDM_WIRE_HEAD_BYTES);

	begin();
	at(0).regions.add(KEY, memory, sizeof(memory),
			  FI_REMOTE_READ | FI_REMOTE_WRITE);
	b.resize(tdm_wire_encode(b.data(), &r));
	b.insert(b.end(), (uint8_t *)operands, (uint8_t *)(operands + 4));
	for (size_t i = 0; i < b.size(); i++) {
		EXPECT_EQ(1u, memory[0]);
		raw.say(&b[i], 1);
		settle(2);
	}
	d = next(TDM_WIRE_DATA);
	EXPECT_EQ(5u, d.rid);
	EXPECT_EQ(16u, d.len);
	uint64_t was[2];
	memcpy(was, heard.data(), 16);
	EXPECT_EQ(1u, was[0]);
	EXPECT_EQ(2u, was[1]);
	heard.erase(heard.begin(), heard.begin() + 16);
	d = next(TDM_WIRE_DONE);
	EXPECT_EQ(4u, d.id);
	EXPECT_EQ(0u, d.status);
	EXPECT_EQ(10u, memory[0]);
	EXPECT_EQ(20u, memory[1]);
	EXPECT_EQ(0u, at(0).tcp->rx_pool.in_use);
}

/* An operation that does not exist is refused, and the connection goes on. */
TEST_F(TcpAmoFault, A10_OperationsThereAreNot)
{
	uint64_t memory = 1;
	const uint32_t status[] = { 0, 3, 1 }; /* of an enum forged_end */

	begin();
	at(0).regions.add(KEY, &memory, sizeof(memory),
			  FI_REMOTE_READ | FI_REMOTE_WRITE);
	for (auto &a : forged_amos) {
		struct tdm_wire_rec r = request(a.kind, a.op, a.bytes), d;

		memory = 1;
		r.amo.type = a.type;
		r.amo.form = a.form;
		raw.record(r, r.len);
		d = next(TDM_WIRE_DONE);
		EXPECT_EQ(4u, d.id);
		EXPECT_EQ(status[a.end], d.status)
			<< int(a.type) << " " << int(a.op);
		EXPECT_EQ(a.end == FORGED_DONE, memory != 1);
	}
	EXPECT_TRUE(at(0).lost.empty());
}

TEST_F(TcpAmoFault, RequestsWithoutEnd)
{
	struct tdm_wire_rec r = request(TDM_AMO_FETCH, FI_ATOMIC_READ, 1024);
	std::vector<uint8_t> b;
	Bytes memory(1024);
	size_t most = 0, sent = 0;
	bool lost = false;

	begin();
	at(0).regions.add(KEY, memory.data(), memory.size(), FI_REMOTE_READ);
	for (int i = 0; i < 100; i++) {
		uint8_t head[TDM_WIRE_HEAD_BYTES];

		b.insert(b.end(), head, head + tdm_wire_encode(head, &r));
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
		most = std::max(most, at(0).tcp->tx_pool.in_use +
					      at(0).tcp->rx_pool.in_use);
	}
	EXPECT_TRUE(lost);
	EXPECT_LE(most, (size_t)TDM_WIRE_RTS_COUNT + 1);
	still_serves();
}

/* Random requests never touch more than the region. */
TEST_F(TcpAmoFault, RandomRequests)
{
	std::mt19937 rng(3);

	for (int round = 0; round < 60; round++) {
		Bytes guard(300, 0xaa);

		begin();
		at(0).regions.add(KEY, &guard[100], 100,
				  FI_REMOTE_WRITE | FI_REMOTE_READ);
		for (int i = 0; i < 30; i++) {
			struct tdm_wire_rec r =
				request(rng() % 3, rng() % 24, 1 + rng() % 130);

			r.amo.type = uint8_t(rng() % 22);
			r.addr = rng() % 4 ? rng() % 130 :
					     UINT64_MAX - rng() % 130;
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
	}
}

/* Memory runs out at each place in turn: each operation ends once. */
TEST_F(TcpAmoFault, EveryAllocationFailsInTurn)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap=malloc";
	unsigned failures = 0;

	tdm_env.conn_timeout_ms = 300;
	for (unsigned nth = 1; nth < 60; nth++) {
		Amo a(TDM_AMO_BASE, FI_SUM, 64), b(TDM_AMO_FETCH, FI_SUM, 64);
		Amo c(TDM_AMO_COMPARE, FI_CSWAP, 3, FI_INJECT);
		unsigned posted = 0;
		uint64_t memory[64] = {};

		nodes.clear();
		mesh(2);
		at(0).conn(1);
		at(1).regions.add(KEY, memory, sizeof(memory),
				  FI_REMOTE_READ | FI_REMOTE_WRITE);
		tdt_alloc_fail(nth, 0);
		posted += !a.post(at(0), 1);
		posted += !b.post(at(0), 1);
		posted += !c.post(at(0), 1);
		for (int i = 0; i < 200; i++)
			turn();
		failures += tdt_alloc_stop();
		ASSERT_TRUE(until([&] {
			return at(0).tcp->tx_pool.in_use == 0;
		})) << nth;
		EXPECT_EQ(posted, at(0).wrote.value + at(0).wrote.errors +
					  at(0).read.value + at(0).read.errors)
			<< nth;
	}
	EXPECT_GT(failures, 5u);
}

} // namespace
