/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions that outlive their connections: doc/PROTOCOL-tcp.md "Resume",
 * fi_tandem(7), FAULTS; rows D7, D8, D9 and D12 of assurance.
 */
#include <poll.h>
#include <random>
#include <set>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tcp_raw.h"
#include "tests/harness/seeded.h"

extern "C" {
#include "base/auth.h"
#include "tcp/wire/conn.h"
#include "tcp/wire/hello.h"
#include "tcp/wire/keep.h"
}

using namespace tcp_test;

namespace
{

enum { KEY = 77 };

uint64_t ahead;

uint64_t fast_clock()
{
	return tdm_os_system.now_ns() + ahead;
}

unsigned attempts; /* that unreachable() has ended */

int unreachable(int, const struct sockaddr *, socklen_t)
{
	attempts++;
	errno = EHOSTUNREACH;
	return -1;
}

/* A call that moves bytes at @fd fails with @err, the @nth one. */
struct Strike {
	int err;
	unsigned nth;
} strike;

bool strikes()
{
	if (!strike.nth || --strike.nth)
		return false;
	errno = strike.err;
	return true;
}

ssize_t bad_recv(int fd, void *buf, size_t len, int flags)
{
	return strikes() ? -1 : tdm_os_system.recv(fd, buf, len, flags);
}

ssize_t bad_readv(int fd, const struct iovec *iov, int n)
{
	return strikes() ? -1 : tdm_os_system.readv(fd, iov, n);
}

ssize_t bad_send(int fd, const void *buf, size_t len, int flags)
{
	return strikes() ? -1 : tdm_os_system.send(fd, buf, len, flags);
}

ssize_t bad_sendmsg(int fd, const struct msghdr *m, int flags)
{
	return strikes() ? -1 : tdm_os_system.sendmsg(fd, m, flags);
}

/* How a connection is lost. */
enum Loss {
	RESET, /* a reset in both directions; unread bytes are gone */
	END,   /* both sides read the end */
	HALF,  /* one side reads the end after all bytes */
	CHANGE /* a bit of the next bytes changes: blocks.h */
};

/* Not 0: a bit of the next input changes; this number chooses it. */
uint32_t change;

ssize_t changed_recv(int fd, void *buf, size_t len, int flags)
{
	ssize_t n = tdm_os_system.recv(fd, buf, len, flags);

	if (n <= 0 || !change || (flags & MSG_PEEK))
		return n;
	tdt_flip_bit(buf, size_t(n), change);
	change = 0;
	return n;
}

/* The RESUME that was sent last. */
std::vector<uint8_t> said;

ssize_t heard_send(int fd, const void *buf, size_t len, int flags)
{
	const auto *p = static_cast<const uint8_t *>(buf);
	struct tdm_wire_greeting g;

	if (len == TDM_WIRE_GREETING_BYTES &&
	    !tdm_wire_greeting_decode(p, &g) && g.kind == TDM_WIRE_RESUME)
		said.assign(p, p + len);
	return tdm_os_system.send(fd, buf, len, flags);
}

unsigned picky_calls;

/* Two of three calls are refused, and the third takes 50 bytes. */
ssize_t picky_send(int fd, const void *buf, size_t len, int flags)
{
	static const int errs[] = { EINTR, ENOBUFS };
	unsigned turn = picky_calls++ % 3;

	if (turn == 2)
		return tdm_os_system.send(fd, buf, tdm_min(len, size_t(50)),
					  flags);
	errno = errs[turn];
	return -1;
}

/* A key for the nodes that are made while it exists. */
struct WithKey {
	struct tdm_auth_keys *keys = tdm_auth_alloc(1);

	WithKey()
	{
		memcpy(keys->key[0].bytes, "0123456789abcdef0123456789abcdef",
		       32);
		keys->key[0].size = 32;
		Node::keys = keys;
	}

	~WithKey()
	{
		Node::keys = nullptr;
		tdm_auth_free(keys);
	}
};

class TcpResume : public TcpFault
{
protected:
	std::mt19937 rng{ 1 };
	unsigned losses = 0;

	TcpResume()
	{
		ahead = 0;
		strike = {};
		change = 0;
		tdm_os.now_ns = fast_clock;
		tdm_env.resume = 1;
	}

	void lose(struct tdm_conn *c, Loss how)
	{
		if (c->io.fd < 0)
			return;
		losses++;
		if (how == CHANGE)
			change = uint32_t(rng()) | 1;
		else if (how == RESET)
			reset_connection(c->io.fd);
		else
			::shutdown(c->io.fd, how == END ? SHUT_RDWR : SHUT_WR);
	}

	/* @raw reads that its greeting is refused, and why. */
	void turned_away(int reason)
	{
		struct tdm_wire_greeting answer = greeted(raw);

		EXPECT_EQ(TDM_WIRE_REJECT, answer.kind);
		EXPECT_EQ(reason, answer.reason);
	}

	/* @n accepts a session, whose initiator makes no pass meanwhile. */
	void accepts_alone(Node &n)
	{
		tdt_eventually([&] { return !n.accepted.empty(); },
			       [&] { n.progress(); });
		ASSERT_EQ(1u, n.accepted.size());
	}

	/* A session of node 0 with node 1, both idle. */
	void pair()
	{
		char in[8];

		mesh(2);
		ASSERT_EQ(0, at(1).recv(in, 8, 4711));
		ASSERT_EQ(0, at(0).send(1, "hello", 6, 4711, 0));
		ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
		at(1).rx.got.clear();
		ASSERT_TRUE(until([&] { return !at(0).tcp->tx_pool.in_use; }));
	}

	void talks()
	{
		for (int i : { 0, 1 }) {
			char in[8] = "";
			size_t had = at(1 - i).rx.got.size();

			ASSERT_EQ(0, at(1 - i).recv(in, 8, 4712));
			ASSERT_EQ(0, at(i).send(1 - i, "alive", 6, 4712, 0));
			ASSERT_TRUE(until([&] {
				return at(1 - i).rx.got.size() == had + 1;
			}));
			EXPECT_STREQ("alive", in);
		}
	}

	/* Nothing was lost, and nothing is left. */
	void clean()
	{
		talks();
		ASSERT_TRUE(until([&] {
			return !at(0).tcp->tx_pool.in_use &&
			       !at(1).tcp->tx_pool.in_use;
		}));
		for (auto &n : nodes) {
			EXPECT_TRUE(n->lost.empty());
			EXPECT_EQ(0u, n->tcp->rx_pool.in_use);
			EXPECT_EQ(0u, n->regions.in_flight);
		}
	}

	void storm(Loss how, unsigned seed, unsigned every);
};

/* One direction of a storm. */
struct Flow {
	struct Msg {
		Bytes out, in;
		bool late = false; /* its receive is posted when all are sent */
	};
	std::vector<std::unique_ptr<Msg>> msgs;
	size_t next = 0;
};

/*
 * Messages of all lengths and levels both ways, writes and reads, while the
 * connection is lost again and again: each arrives once, in order, with its
 * bytes, and each operation ends once, well.
 */
void TcpResume::storm(Loss how, unsigned seed, unsigned every)
{
	static const size_t sizes[] = { 0,     1,     100,    2048,   4096,
					16000, 40000, 100000, 300000, 1200000 };
	static const uint64_t levels[] = { 0, FI_INJECT_COMPLETE,
					   FI_TRANSMIT_COMPLETE,
					   FI_DELIVERY_COMPLETE };
	const unsigned n = 120;
	Bytes region(1 << 20, 0), source = pattern(1 << 20, seed);
	std::vector<Bytes> reads(n);
	std::set<void *> ended;
	size_t want = 0, turns = 0;
	Flow flow[2];

	rng.seed(seed);
	tdm_env.crc = how == CHANGE;
	tdm_os.recv = changed_recv;
	pair();
	at(1).regions.add(KEY, region.data(), region.size(),
			  FI_REMOTE_READ | FI_REMOTE_WRITE);
	if (seed % 2)
		at(1).tcp->a.done.remote_read_cntr = nullptr;
	for (unsigned i = 0; i < n; i++) {
		for (int s : { 0, 1 }) {
			Flow::Msg *m = new Flow::Msg;

			flow[s].msgs.emplace_back(m);
			m->out = pattern(sizes[rng() % 10], i + 1000 * s);
			m->in.resize(m->out.size());
			m->late = rng() % 3 == 0;
			if (m->late)
				continue;
			ASSERT_EQ(0, at(1 - s).recv(m->in.data(), m->in.size(),
						    i, 0, m));
		}
	}
	auto post = [&](int s) {
		Flow &f = flow[s];
		size_t i = f.next++;
		Flow::Msg *m = f.msgs[i].get();

		ASSERT_EQ(0, at(s).send(1 - s, m->out.data(), m->out.size(), i,
					FI_COMPLETION | levels[rng() % 4], m));
		want++;
		if (s || rng() % 2)
			return;
		size_t len = 1 + rng() % 200000;
		reads[i].resize(len);
		ASSERT_EQ(0, at(0).rma(FI_WRITE, 1, source.data(), len, KEY, 0,
				       FI_COMPLETION, &reads[i]));
		ASSERT_EQ(0, at(0).rma(FI_READ, 1, reads[i].data(), len, KEY, 0,
				       FI_COMPLETION, reads[i].data()));
		want += 2;
	};
	auto all = [&] {
		if (!at(0).lost.empty() || !at(1).lost.empty())
			return true;
		if (++turns % every == 0)
			lose(rng() % 2 ? at(0).conn(1) : at(1).conn(0), how);
		for (int s : { 0, 1 })
			if (flow[s].next < n && rng() % 4 == 0)
				post(s);
		return flow[0].next == n && flow[1].next == n;
	};
	ASSERT_TRUE(until(all)) << "seed " << seed;
	for (int s : { 0, 1 }) {
		for (unsigned i = 0; i < n; i++) {
			Flow::Msg *m = flow[s].msgs[i].get();

			if (m->late)
				at(1 - s).recv(m->in.data(), m->in.size(), i, 0,
					       m);
		}
	}
	ASSERT_TRUE(until([&] {
		all();
		return !at(0).lost.empty() || !at(1).lost.empty() ||
		       (at(0).tx.got.size() + at(1).tx.got.size() >= want &&
			at(0).rx.got.size() >= n && at(1).rx.got.size() >= n);
	}))
		<< "seed " << seed;
	ASSERT_TRUE(at(0).lost.empty() && at(1).lost.empty()) << losses;
	for (int s : { 0, 1 }) {
		for (const Comp &c : at(s).tx.got) {
			EXPECT_EQ(0, c.err) << "seed " << seed;
			EXPECT_TRUE(ended.insert(c.context).second);
		}
		EXPECT_EQ(n, at(s).rx.got.size());
		for (const Comp &c : at(s).rx.got)
			EXPECT_EQ(0, c.err);
		for (auto &m : flow[s].msgs)
			EXPECT_TRUE(m->out == m->in) << "seed " << seed;
	}
	for (auto &r : reads)
		EXPECT_TRUE(r.empty() || same(r, source, 1));
	EXPECT_LT(0u, losses);
	clean();
}

struct Storm {
	Loss how;
	unsigned seed, every;
};

void PrintTo(const Storm &s, std::ostream *os)
{
	*os << s.how << " seed " << s.seed << " every " << s.every;
}

class TcpResumeStorm : public TcpResume,
		       public testing::WithParamInterface<Storm>
{
};

TEST_P(TcpResumeStorm, D7_NothingIsLostTwiceOrOutOfOrder)
{
	storm(GetParam().how, GetParam().seed, GetParam().every);
}

INSTANTIATE_TEST_SUITE_P(
	All, TcpResumeStorm,
	testing::Values(Storm{ RESET, 1, 50 }, Storm{ RESET, 2, 20 },
			Storm{ RESET, 3, 200 }, Storm{ END, 4, 50 },
			Storm{ END, 5, 20 }, Storm{ HALF, 6, 50 },
			Storm{ HALF, 7, 200 }, Storm{ RESET, 8, 7 }));

/* W3. Changed bits below TCP's checksum: nothing wrong is delivered, all comes. */
INSTANTIATE_TEST_SUITE_P(W3, TcpResumeStorm,
			 testing::Values(Storm{ CHANGE, 1, 50 },
					 Storm{ CHANGE, 2, 20 },
					 Storm{ CHANGE, 3, 200 },
					 Storm{ CHANGE, 4, 7 }));

TEST_F(TcpResume, D7_AnIdleSessionIsResumed)
{
	pair();
	for (Loss how : { RESET, END, HALF }) {
		lose(at(0).conn(1), how);
		settle();
		ASSERT_TRUE(until([&] {
			return at(0).conn(1)->state == TDM_CONN_READY &&
			       at(1).conn(0)->state == TDM_CONN_READY;
		}));
		clean();
	}
}

/* D12. Both sides lose the connection at once, and connect at once. */
TEST_F(TcpResume, D12_BothSidesConnect)
{
	pair();
	for (int i = 0; i < 20; i++) {
		char in[8];

		lose(at(0).conn(1), END);
		lose(at(1).conn(0), END);
		ASSERT_EQ(0, at(1).recv(in, 8, 1));
		ASSERT_EQ(0, at(0).send(1, "x", 2, 1, 0));
		ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
		at(1).rx.got.clear();
		EXPECT_EQ(1u, at(0).tcp->open);
	}
	clean();
}

/* A socket cannot be watched, whichever call of epoll_ctl(2) of the loss it is. */
TEST_F(TcpResume, D7_ASocketThatIsNotWatchedIsGivenUp)
{
	unsigned nth = 0;
	char in[8];

	pair();
	tdm_os.epoll_ctl = [](int set, int op, int fd, struct epoll_event *ev) {
		return op != EPOLL_CTL_DEL && strikes() ?
			       -1 :
			       tdm_os_system.epoll_ctl(set, op, fd, ev);
	};
	do {
		strike = { ENOMEM, ++nth };
		lose(at(0).conn(1), nth % 2 ? END : RESET);
		ASSERT_EQ(0, at(1).recv(in, 8, nth));
		ASSERT_EQ(0, at(0).send(1, "x", 2, nth));
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }))
			<< nth;
		int err = at(0).tx.got[0].err;
		/* The side that has no memory ends its session. */
		EXPECT_TRUE(!err || err == FI_ENOMEM || err == FI_ECONNRESET)
			<< nth << " " << err;
		ASSERT_TRUE(until([&] {
			return err || at(1).rx.got.size() == 1;
		})) << nth;
		at(0).tx.got.clear();
		at(1).rx.got.clear();
	} while (!strike.nth && nth < 50);
	EXPECT_LT(3u, nth);
}

struct Call {
	int err;
	bool reads;
};

void PrintTo(const Call &c, std::ostream *os)
{
	*os << (c.reads ? "recv " : "send ") << c.err;
}

class TcpResumeCall : public TcpResume, public testing::WithParamInterface<Call>
{
};

/* Each call that moves bytes fails in turn: nobody notices. */
TEST_P(TcpResumeCall, D7_EachCallFailsInTurn)
{
	Bytes out = pattern(200000, 3), in(out.size());
	unsigned nth = 0;

	pair();
	if (GetParam().reads) {
		tdm_os.recv = bad_recv;
		tdm_os.readv = bad_readv;
	} else {
		tdm_os.send = bad_send;
		tdm_os.sendmsg = bad_sendmsg;
	}
	do {
		strike = { GetParam().err, ++nth };
		std::fill(in.begin(), in.end(), 0);
		for (size_t len : { size_t(100), size_t(20000), out.size() }) {
			ASSERT_EQ(0, at(1).recv(in.data(), len, len));
			ASSERT_EQ(0, at(0).send(1, out.data(), len, len));
		}
		ASSERT_TRUE(until([&] {
			return at(1).rx.got.size() == 3 &&
			       at(0).tx.got.size() == 3;
		})) << nth;
		for (int i = 0; i < 3; i++) {
			EXPECT_EQ(0, at(0).tx.got[i].err);
			EXPECT_EQ(0, at(1).rx.got[i].err);
		}
		EXPECT_EQ(out, in) << nth;
		at(0).tx.got.clear();
		at(1).rx.got.clear();
	} while (!strike.nth && nth < 200);
	EXPECT_LT(3u, nth);
	strike = {};
	clean();
}

INSTANTIATE_TEST_SUITE_P(
	All, TcpResumeCall,
	testing::Values(Call{ ECONNRESET, true }, Call{ ETIMEDOUT, true },
			Call{ EPIPE, true }, Call{ ECONNRESET, false },
			Call{ ETIMEDOUT, false }, Call{ EPIPE, false }));

/* The peer cannot be reached again: its operations end when the time is over. */
TEST_F(TcpResume, D8_TooLateIsLost)
{
	char in[8];

	tdm_env.peer_timeout_ms = 30000;
	pair();
	at(0).recv(in, 8, 1);
	tdm_os.connect = unreachable;
	lose(at(0).conn(1), RESET);
	ASSERT_TRUE(until(
		[&] { return at(0).conn(1)->state == TDM_CONN_RESUMING; }));
	ASSERT_EQ(0, at(0).send(1, "x", 2, 1));
	settle();
	EXPECT_TRUE(at(0).lost.empty());
	EXPECT_TRUE(at(0).tx.got.empty());
	tdm_env.peer_timeout_ms = 500;
	ASSERT_TRUE(until([&] { return !at(0).lost.empty(); }));
	EXPECT_EQ(std::vector<int>{ FI_ETIMEDOUT }, at(0).lost);
	ASSERT_EQ(1u, at(0).tx.got.size());
	EXPECT_EQ(FI_ETIMEDOUT, at(0).tx.got[0].err);
	/* A receive from any source stays. */
	EXPECT_TRUE(at(0).rx.got.empty());
}

/* D7. An idle session is lost, and much later again: that is another loss. */
TEST_F(TcpResume, D7_AnIdleSessionIsLostAgain)
{
	char in[8];

	tdm_env.peer_timeout_ms = 30000;
	pair();
	at(1).recv(in, 8, 1);
	for (int i = 0; i < 3; i++) {
		lose(at(0).conn(1), RESET);
		ASSERT_TRUE(until([&] {
			return at(0).conn(1)->state == TDM_CONN_RESUMING ||
			       at(1).conn(0)->state == TDM_CONN_RESUMING;
		}));
		ASSERT_TRUE(until([&] {
			return at(0).conn(1)->state == TDM_CONN_READY &&
			       at(1).conn(0)->state == TDM_CONN_READY;
		}));
		ahead += 100 * 1000000000ull;
	}
	ASSERT_EQ(0, at(0).send(1, "x", 2, 1));
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_TRUE(at(0).lost.empty());
	EXPECT_TRUE(at(1).lost.empty());
}

/* D4. The time for which this process was stopped is none that the peer was away. */
TEST_F(TcpResume, D4_ATimeOutDoesNotCountWhileStopped)
{
	char in[8];

	tdm_env.peer_timeout_ms = 30000;
	pair();
	at(1).recv(in, 8, 1);
	tdm_os.connect = unreachable;
	lose(at(0).conn(1), RESET);
	ASSERT_TRUE(until([&] {
		return at(0).conn(1)->state == TDM_CONN_RESUMING &&
		       at(1).conn(0)->state == TDM_CONN_RESUMING;
	}));
	ASSERT_EQ(0, at(0).send(1, "x", 2, 1));
	ahead = 3600 * 1000000000ull;
	attempts = 0;
	ASSERT_TRUE(until([&] { return attempts >= 8; }));
	EXPECT_TRUE(at(0).lost.empty());
	EXPECT_TRUE(at(1).lost.empty());
	tdm_os.connect = tdm_os_system.connect;
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_STREQ("x", in);
}

/* D9. Another endpoint has the address: it knows nothing of the session. */
TEST_F(TcpResume, D9_AnotherIncarnationIsNotResumed)
{
	const uint16_t port = 23456;
	char in[8];

	add();
	nodes.emplace_back(new Node("127.0.0.1", port));
	Node &other = at(1);
	struct tdm_wire_greeting g = Raw::greeting(port);

	other.listen();
	g.features = TDM_WIRE_FEATURE_RESUME | TDM_WIRE_FEATURE_CREDIT;
	raw.call(at(0).addr);
	raw.hello(g);
	fi_addr_t to = at(0).insert(other.addr);
	ASSERT_TRUE(until([&] { return at(0).conn(to)->keeps; }));
	ASSERT_EQ(0, at(0).send(to, "x", 2, 1));
	raw.hang_up();
	ASSERT_TRUE(until([&] { return !at(0).lost.empty(); }));
	EXPECT_EQ(std::vector<int>{ FI_ECONNRESET }, at(0).lost);
	ASSERT_EQ(1u, at(0).tx.got.size());
	EXPECT_EQ(FI_ECONNRESET, at(0).tx.got[0].err);
	/* The next send begins a session with who is there now. */
	ASSERT_EQ(0, other.recv(in, 8, 1));
	ASSERT_EQ(0, at(0).send(to, "new", 4, 1));
	ASSERT_TRUE(until([&] { return other.rx.got.size() == 1; }));
	EXPECT_STREQ("new", in);
}

struct srx_test::MockCq *sends;	  /* of the endpoint that receives */
std::vector<size_t> ended_before; /* of @sends, at each receive's completion */

ssize_t note_order(struct fid_peer_cq *cq, void *context, uint64_t flags,
		   size_t len, void *buf, uint64_t data, uint64_t tag,
		   fi_addr_t src)
{
	ended_before.push_back(sends->got.size());
	return srx_test::MockCq::write(cq, context, flags, len, buf, data, tag,
				       src);
}

/* D9. What was for the old one ends before the first message of the new one. */
TEST_F(TcpResume, D9_OldOperationsEndBeforeNewMessages)
{
	const uint16_t port = 23457;
	struct fi_ops_cq_owner ops = { sizeof(ops), note_order,
				       srx_test::MockCq::writeerr };
	struct tdm_wire_greeting g = Raw::greeting(port);
	char in[8];

	add();
	sends = &at(0).tx;
	ended_before.clear();
	at(0).rx.fid.owner_ops = &ops;
	g.features = TDM_WIRE_FEATURE_RESUME | TDM_WIRE_FEATURE_CREDIT;
	raw.call(at(0).addr);
	raw.hello(g);
	fi_addr_t to = at(0).insert(g.addr);
	ASSERT_TRUE(until([&] { return at(0).conn(to)->keeps; }));
	ASSERT_EQ(0, at(0).recv(in, 8, 1));
	ASSERT_EQ(0, at(0).send(to, "x", 2, 1));
	ASSERT_EQ(0, at(0).send(to, "y", 2, 1));
	/* The old one dies, and the new one sends before anybody noticed. */
	raw.hang_up();
	nodes.emplace_back(new Node("127.0.0.1", port));
	at(1).listen();
	fi_addr_t back = at(1).insert(at(0).addr);
	ASSERT_EQ(0, at(1).send(back, "new", 4, 1));
	ASSERT_TRUE(until([&] { return at(0).rx.got.size() == 1; }));
	EXPECT_STREQ("new", in);
	EXPECT_EQ(std::vector<size_t>{ 2 }, ended_before);
	for (const Comp &c : at(0).tx.got)
		EXPECT_EQ(FI_ECONNRESET, c.err);
	EXPECT_EQ(std::vector<int>{ FI_ECONNRESET }, at(0).lost);
	nodes.clear();
}

/*
 * D2. The peer dies with bytes of ours unread, and nobody listens where it was:
 * what it had sent is read first, although a send failed.
 */
TEST_F(TcpResume, D2_InputIsReadBeforeTheSessionEnds)
{
	struct tdm_wire_greeting g = Raw::greeting(9);
	struct tdm_wire_rec r = rec(TDM_WIRE_EAGER, TDM_WIRE_F_TAG, 1);
	struct pollfd p = {};
	char in[100];

	add();
	g.features = TDM_WIRE_FEATURE_RESUME | TDM_WIRE_FEATURE_CREDIT;
	raw.call(at(0).addr);
	raw.hello(g);
	fi_addr_t to = at(0).insert(g.addr);
	ASSERT_TRUE(until([&] { return at(0).conn(to)->keeps; }));
	for (char &c : in)
		ASSERT_EQ(0, at(0).recv(&c, 1, 1));
	r.tag = 1;
	for (size_t i = 0; i < sizeof(in); i++)
		raw.record(r, 1);
	ASSERT_EQ(0, at(0).send(to, "x", 1, 1));
	p = { raw.fd, POLLIN, 0 };
	ASSERT_EQ(1, poll(&p, 1, int(tdt_deadline_ms())));
	raw.hang_up();
	p = { at(0).conn(to)->io.fd, 0, 0 }; /* POLLHUP */
	ASSERT_EQ(1, poll(&p, 1, int(tdt_deadline_ms())));
	ASSERT_EQ(0, at(0).send(to, "y", 1, 1));
	tdm_tcp_progress(at(0).tcp);
	ASSERT_TRUE(until([&] {
		if (!at(0).lost.empty())
			return true;
		EXPECT_TRUE(at(0).tx.got.empty());
		return false;
	}));
	EXPECT_EQ(std::vector<int>{ FI_ECONNRESET }, at(0).lost);
	EXPECT_EQ(sizeof(in), at(0).rx.got.size());
	for (const Comp &c : at(0).rx.got)
		EXPECT_EQ(0, c.err);
	EXPECT_EQ(2u, at(0).tx.got.size());
	for (const Comp &c : at(0).tx.got)
		EXPECT_EQ(FI_ECONNRESET, c.err);
}

/* N6. Who does not know the session's id neither takes nor ends it. */
TEST_F(TcpResume, N6_AStrangerResumesNothing)
{
	struct tdm_wire_greeting g = {};

	pair();
	tdm_hello_fill(at(1).tcp, raw.fd, &g);
	g.kind = TDM_WIRE_RESUME;
	for (int guess = 0; guess < 3; guess++) {
		memcpy(g.nonce, at(0).conn(1)->session, sizeof(g.nonce));
		if (guess == 0)
			g.nonce[15] ^= 1;
		else if (guess == 1)
			memset(g.nonce, 0, sizeof(g.nonce));
		else
			g.id[3] ^= 1; /* another incarnation */
		raw.call(at(0).addr);
		raw.hello(g);
		ASSERT_NO_FATAL_FAILURE(turned_away(TDM_WIRE_R_LOST));
		EXPECT_EQ(TDM_CONN_READY, at(0).conn(1)->state);
	}
	EXPECT_EQ(0u, losses);
	clean();
}

/* D7. The acceptor's HELLO is lost, and with it what followed: all comes again. */
TEST_F(TcpResume, D7_AnAnswerThatIsLostComesAgain)
{
	const char text[] = "behind the greeting";
	struct tdm_wire_greeting g;
	std::vector<uint8_t> first, second;
	struct linger none = { 1, 0 };
	fi_addr_t to;

	add();
	g = Raw::greeting(9);
	to = at(0).insert(g.addr);
	g.features = TDM_WIRE_FEATURE_RESUME;
	memset(g.nonce, 0x3c, sizeof(g.nonce));
	raw.call(at(0).addr);
	raw.hello(g);
	ASSERT_TRUE(until([&] {
		return at(0).tcp->open == 1 && at(0).accepted.size() == 1;
	}));
	ASSERT_EQ(0, at(0).send(to, text, sizeof(text), 1, 0));
	ASSERT_TRUE(hears(first, TDM_WIRE_GREETING_BYTES + sizeof(text)));
	setsockopt(raw.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	raw.call(at(0).addr);
	raw.hello(g);
	ASSERT_TRUE(hears(second, first.size()));
	EXPECT_TRUE(at(0).lost.empty());
	second.resize(first.size()); /* an ACK follows */
	EXPECT_EQ(first, second);
	/* A caller that asks for another session gets none while this one lasts. */
	g.nonce[0] ^= 1;
	setsockopt(raw.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	raw.call(at(0).addr);
	raw.hello(g);
	ASSERT_TRUE(until([&] { return !raw.hear().empty(); }));
	EXPECT_TRUE(at(0).lost.empty());
}

/* The initiator has canceled its send, but the acceptor has its session. */
TEST_F(TcpResume, D7_WhoHasNothingToSendAnyMoreGreetsAgain)
{
	char out[] = "from the acceptor", in[32] = "";
	int op;

	add();
	add();
	fi_addr_t to = at(0).insert(at(1).addr),
		  back = at(1).insert(at(0).addr);
	ASSERT_EQ(0, at(0).send(to, "x", 2, 1, FI_COMPLETION, &op));
	ASSERT_TRUE(until(
		[&] { return at(0).conn(to)->state == TDM_CONN_GREETING; }));
	ASSERT_NO_FATAL_FAILURE(accepts_alone(at(1)));
	ASSERT_EQ(TDM_CONN_GREETING, at(0).conn(to)->state);
	ASSERT_EQ(0, tdm_tx_cancel(at(0).tcp, &op));
	lose(at(0).conn(to), RESET);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	ASSERT_EQ(0, at(0).recv(in, sizeof(in), 2));
	ASSERT_EQ(0, at(1).send(back, out, sizeof(out), 2));
	ASSERT_TRUE(until([&] { return at(0).rx.got.size() == 1; }));
	EXPECT_STREQ(out, in);
	EXPECT_TRUE(at(1).lost.empty());
}

/*
 * D7, D12. Both connect, the acceptor gives its own attempt up for ours, and its
 * answer is lost: its HELLO, which comes afterwards, must not begin another session.
 */
TEST_F(TcpResume, D12_AHelloThatWasGivenUpBeginsNoSession)
{
	struct tdm_wire_greeting g;
	char in[8];

	mesh(2);
	/* Of @a, whose id is smaller, the attempt is kept. */
	const size_t a = memcmp(at(0).tcp->id, at(1).tcp->id, 16) < 0 ? 0 : 1;
	const size_t b = 1 - a;

	ASSERT_EQ(0, at(b).recv(in, 8, 1));
	ASSERT_EQ(0, at(a).send(fi_addr_t(b), "once", 5, 1));
	ASSERT_TRUE(until([&] {
		return at(a).conn(fi_addr_t(b))->state == TDM_CONN_GREETING;
	}));
	ASSERT_NO_FATAL_FAILURE(accepts_alone(at(b)));
	ASSERT_EQ(TDM_CONN_GREETING, at(a).conn(fi_addr_t(b))->state);
	tdm_os.connect = unreachable;
	lose(at(a).conn(fi_addr_t(b)), RESET);
	ASSERT_TRUE(until([&] {
		return at(a).conn(fi_addr_t(b))->state == TDM_CONN_BACKOFF;
	}));
	raw.call(at(a).addr);
	tdm_hello_fill(at(b).tcp, raw.fd, &g);
	g.credit = 1 << 20;
	g.rts = 1;
	raw.hello(g);
	ASSERT_NO_FATAL_FAILURE(turned_away(TDM_WIRE_R_DUPLICATE));
	tdm_os.connect = tdm_os_system.connect;
	ASSERT_TRUE(until([&] { return at(b).rx.got.size() == 1; }));
	EXPECT_STREQ("once", in);
	EXPECT_TRUE(at(a).lost.empty());
	EXPECT_TRUE(at(b).lost.empty());
	EXPECT_TRUE(at(a).accepted.empty());
}

/* A position that was never sent, or is not kept, is no place to go on. */
TEST_F(TcpResume, N5_WrongPositionsEndTheSession)
{
	struct tdm_wire_greeting g = {};

	pair();
	tdm_hello_fill(at(1).tcp, raw.fd, &g);
	g.kind = TDM_WIRE_RESUME;
	g.received = 1 << 20;
	memcpy(g.nonce, at(0).conn(1)->session, sizeof(g.nonce));
	raw.call(at(0).addr);
	raw.hello(g);
	ASSERT_TRUE(until([&] { return !at(0).lost.empty(); }));
	EXPECT_EQ(std::vector<int>{ FI_ECONNRESET }, at(0).lost);
}

/* Acknowledged bytes are not kept: an idle pair keeps nothing. */
TEST_F(TcpResume, AnIdlePairKeepsNothing)
{
	Bytes out = pattern(300000, 5), in(out.size());

	pair();
	for (size_t len : { size_t(10), size_t(5000), out.size() }) {
		ASSERT_EQ(0, at(1).recv(in.data(), len, 1));
		ASSERT_EQ(0, at(0).send(1, out.data(), len, 1));
	}
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 3; }));
	settle();
	for (int i : { 0, 1 })
		at(i).tcp->watch.fired(&at(i).tcp->watch);
	settle();
	for (int i : { 0, 1 }) {
		const struct tdm_conn *c = at(i).conn(1 - i);

		EXPECT_EQ(nullptr, c->out);
		EXPECT_TRUE(!c->keep || !c->keep->first);
	}
}

/* An attempt to connect survives calls of send(2) that the kernel refuses for a moment. */
TEST_F(TcpResume, O4_GreetingsGoInPieces)
{
	char out[128], in[128];
	int fd[2];

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = char(i);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	picky_calls = 0;
	tdm_os.send = picky_send;
	EXPECT_EQ(0, tdm_sock_put({ fd[0], NULL }, out, sizeof(out)));
	EXPECT_EQ(9u, picky_calls);
	ASSERT_EQ(ssize_t(sizeof(in)), ::read(fd[1], in, sizeof(in)));
	EXPECT_EQ(0, memcmp(in, out, sizeof(in)));
	/* But not for ever, and not when the connection is broken. */
	picky_calls = 0;
	EXPECT_EQ(-1, tdm_sock_put({ fd[0], NULL },
				   std::string(999, 'x').data(), 999));
	::close(fd[1]);
	EXPECT_EQ(-1, tdm_sock_put({ fd[0], NULL }, out, sizeof(out)));
	::close(fd[0]);
}

/* With keys the session is resumed by who proves the key. */
TEST_F(TcpResume, N3_WithKeys)
{
	WithKey key;

	pair();
	for (Loss how : { RESET, END, HALF }) {
		lose(at(0).conn(1), how);
		settle();
		clean();
	}
	nodes.clear();
}

/*
 * A caller that proves no key hears nothing, and the session keeps its connection.
 */
TEST_F(TcpResume, N3_ARecordedResumeTakesNothing)
{
	struct tdm_wire_greeting g;
	WithKey key;
	int to;

	pair();
	tdm_os.send = heard_send;
	lose(at(0).conn(1), RESET);
	settle();
	clean();
	ASSERT_EQ(size_t(TDM_WIRE_GREETING_BYTES), said.size());
	ASSERT_EQ(0, tdm_wire_greeting_decode(said.data(), &g));
	to = !memcmp(g.id, at(0).tcp->id, sizeof(g.id));
	const std::vector<uint8_t> resume = said;
	const int fd = at(to).conn(1 - to)->io.fd;

	for (size_t bit : { 64 * 8, 72 * 8 + 3, 80 * 8, 96 * 8, 1023 }) {
		std::vector<uint8_t> b = resume, heard;

		b[bit / 8] = uint8_t(b[bit / 8] ^ 1u << bit % 8);
		raw.call(at(to).addr);
		raw.say(b);
		EXPECT_TRUE(closed(&heard));
		EXPECT_TRUE(heard.empty());
		EXPECT_EQ(fd, at(to).conn(1 - to)->io.fd);
		EXPECT_EQ(TDM_CONN_READY, at(to).conn(1 - to)->state);
	}
	clean();
	/* As it was said: there is no session without the last proof. */
	raw.call(at(to).addr);
	raw.say(resume);
	settle();
	clean();
	raw.say(std::vector<uint8_t>(TDM_AUTH_PROOF_BYTES, 7));
	EXPECT_TRUE(closed());
	clean();
	nodes.clear();
}

TEST_F(TcpResume, OffMeansLost)
{
	tdm_env.resume = 0;
	pair();
	EXPECT_FALSE(at(0).conn(1)->keeps);
	lose(at(0).conn(1), RESET);
	ASSERT_TRUE(until(
		[&] { return !at(0).lost.empty() && !at(1).lost.empty(); }));
}

} // namespace
