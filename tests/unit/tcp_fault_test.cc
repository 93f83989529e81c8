/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP transport when peers die, strangers call and the system says no:
 * every operation ends once, with the right code, and nobody else notices.
 */
#include <fcntl.h>
#include <poll.h>
#include <set>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "fault.h"
#include "tcp_raw.h"

extern "C" {
#include "tests/harness/log.h"
}

namespace
{

using namespace tcp_test;

TEST_F(TcpFault, N1_StrangersAreTurnedAwayInSilence)
{
	static const std::string calls[] = {
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"SSH-2.0-OpenSSH_9.9\r\n",
		std::string("\x16\x03\x01\x02\x00\x01", 6),
		std::string(4096, '\0'),
		std::string(4096, '\xff'),
		std::string("\xf4tandem\n", 8) + std::string(200, '\0'),
	};

	add();
	for (const std::string &s : calls) {
		raw.call(at(0).addr);
		raw.say(s.data(), s.size());
		bool end = false;
		std::vector<uint8_t> heard;
		ASSERT_TRUE(until([&] {
			auto h = raw.hear(&end);
			heard.insert(heard.end(), h.begin(), h.end());
			return end;
		})) << s;
		EXPECT_TRUE(heard.empty());
	}
	raw.call(at(0).addr);
	raw.hang_up();
	settle();
	EXPECT_EQ(0u, at(0).tcp->guest_count);
	EXPECT_TRUE(at(0).accepted.empty());
	EXPECT_TRUE(at(0).rx.got.empty());
	still_serves();
}

uint64_t clock_ahead;

uint64_t fast_clock()
{
	return tdm_os_system.now_ns() + clock_ahead;
}

TEST_F(TcpFault, SilentGuestsLeave)
{
	std::vector<std::unique_ptr<Raw>> crowd;

	clock_ahead = 0;
	add();
	tdm_os.now_ns = fast_clock;
	for (int i = 0; i < 20; i++) {
		crowd.emplace_back(new Raw());
		crowd.back()->call(at(0).addr);
		if (i & 1)
			crowd.back()->say("\xf4tan", 4);
	}
	settle();
	EXPECT_LE(at(0).tcp->guest_count, 8u) << "of one address";
	EXPECT_GT(at(0).tcp->guest_count, 0u);
	still_serves();
	clock_ahead = 6000000000ull;
	EXPECT_TRUE(until([&] { return !at(0).tcp->guest_count; }));
	still_serves();
}

/* Guests from everywhere: there are never more than 64 of them. */
TEST_F(TcpFault, GuestsAreBounded)
{
	std::vector<std::unique_ptr<Raw>> crowd;
	std::set<Raw *> ended;
	auto listen = [&] {
		for (auto &r : crowd) {
			bool end = false;

			r->hear(&end);
			if (end)
				ended.insert(r.get());
		}
		return ended.size();
	};

	add();
	for (int i = 0; i < 100; i++) {
		std::string from = "127.0.1." + std::to_string(1 + i / 4);

		crowd.emplace_back(new Raw());
		crowd.back()->call(at(0).addr, from.c_str());
	}
	EXPECT_TRUE(until([&] { return listen() == 36; }));
	settle();
	EXPECT_EQ(36u, listen());
	EXPECT_EQ(64u, at(0).tcp->guest_count);
	crowd.clear();
	EXPECT_TRUE(until([&] { return !at(0).tcp->guest_count; }));
}

TEST_F(TcpFault, N6_ClaimOfAnotherIpIsRefused)
{
	add();
	raw.call(at(0).addr, "127.0.0.2");
	raw.hello(Raw::greeting(9));
	EXPECT_TRUE(closed());
	EXPECT_TRUE(at(0).accepted.empty());
}

TEST_F(TcpFault, N4_OtherVersionIsRejectedWithTheReason)
{
	struct tdm_wire_greeting g = Raw::greeting(9), d;
	std::vector<uint8_t> heard;
	bool end = false;

	tdt_log_listen(FI_LOG_INFO);
	add();
	g.oldest = g.newest = TDM_WIRE_VERSION + 1;
	raw.call(at(0).addr);
	raw.hello(g);
	ASSERT_TRUE(until([&] {
		auto h = raw.hear(&end);
		heard.insert(heard.end(), h.begin(), h.end());
		return end;
	}));
	ASSERT_EQ((size_t)TDM_WIRE_GREETING_BYTES, heard.size());
	ASSERT_EQ(0, tdm_wire_greeting_decode(heard.data(), &d));
	EXPECT_EQ(TDM_WIRE_REJECT, d.kind);
	EXPECT_EQ(TDM_WIRE_R_VERSION, d.reason);
	EXPECT_EQ(1u, tdt_log_heard("turned away: the peer speaks version 2 of "
				    "the protocol, this side version 1: "));
	tdt_log_listen(FI_LOG_WARN);
}

TEST_F(TcpFault, N4_NewerVersionsInCommonAreFine)
{
	struct tdm_wire_greeting g = Raw::greeting(9);

	add();
	g.newest = 9;
	g.features = 0xffffffff; /* AUTH too: then there is a proof */
	memset(g.proof, 9, sizeof(g.proof));
	raw.call(at(0).addr);
	raw.hello(g);
	ASSERT_TRUE(until([&] { return at(0).accepted.size() == 1; }));
}

/* Something else listens where the peer should be. */
TEST_F(TcpFault, AnswerOfAStrangerIsARefusal)
{
	Door door;
	int got = 0;

	tdm_env.conn_timeout_ms = 200;
	add();
	at(0).insert(door.addr);
	at(0).send(0, "x", 1, 1);
	ASSERT_TRUE(until([&] {
		int c = accept(door.fd, NULL, NULL);

		if (c >= 0) {
			got++;
			(void)!write(c, "220 smtp ready\r\n", 16);
			close(c);
		}
		return at(0).tx.got.size() == 1;
	}));
	EXPECT_EQ(FI_ECONNREFUSED, at(0).tx.got[0].err);
	EXPECT_GT(got, 1) << "it was tried again";
	EXPECT_EQ(1u, at(0).lost.size());
}

TEST_F(TcpFault, N4_RejectedVersionFailsAtOnce)
{
	struct tdm_wire_greeting g = {};
	Door door;
	Raw peer;

	tdt_log_listen(FI_LOG_INFO);
	g.kind = TDM_WIRE_REJECT;
	g.reason = TDM_WIRE_R_VERSION;
	g.oldest = g.newest = 7;
	ASSERT_NO_FATAL_FAILURE(answered_by(door, peer, g));
	EXPECT_EQ(FI_ENOPROTOOPT, at(0).tx.got[0].err);
	EXPECT_EQ(1u, tdt_log_heard("refused by the peer: the peer speaks "
				    "version 7 of the protocol"));
	tdt_log_listen(FI_LOG_WARN);
}

/* Each breach ends that session, and nothing else notices. */
TEST_F(TcpFault, N5_BreachesOfTheProtocolEndTheSession)
{
	std::vector<std::pair<std::string, std::function<void()>>> breaches;
	auto add_breach = [&](const char *what, struct tdm_wire_rec r) {
		breaches.emplace_back(what, [this, r] { raw.record(r); });
	};
	struct tdm_wire_rec r;

	breaches.emplace_back("unknown record", [this] {
		raw.say(std::vector<uint8_t>{ 99, 0, 0, 0, 0, 0, 0, 0 });
	});
	breaches.emplace_back("bytes of 0",
			      [this] { raw.say(std::vector<uint8_t>(64, 0)); });
	add_breach("flags", rec(TDM_WIRE_CTS, TDM_WIRE_F_TAG));
	add_breach("too long",
		   rec(TDM_WIRE_EAGER, 0, TDM_WIRE_EAGER_BYTES + 1));
	r = rec(TDM_WIRE_RTS);
	r.total = UINT64_MAX;
	add_breach("endless", r);
	r = rec(TDM_WIRE_EAGER);
	r.ctx = 1;
	add_breach("a context that is not there", r);
	r = rec(TDM_WIRE_CTS);
	r.id = 5;
	add_breach("CTS for nothing", r);
	r.id = UINT32_MAX;
	add_breach("CTS far out", r);
	r = rec(TDM_WIRE_DATA, 0, 1);
	r.rid = 3;
	add_breach("DATA for nothing", r);
	add_breach("ABORT for nothing", rec(TDM_WIRE_DATA, TDM_WIRE_F_ABORT));
	add_breach("DONE for nothing", rec(TDM_WIRE_DONE));
	r = rec(TDM_WIRE_ACK);
	r.acked = 1;
	add_breach("ACK of what was not sent", r);
	r = rec(TDM_WIRE_ACK);
	r.freed = 1;
	add_breach("credit from nowhere", r);
	breaches.emplace_back("credit exceeded", [this] {
		struct tdm_wire_rec e =
			rec(TDM_WIRE_EAGER, TDM_WIRE_F_TAG, 16 << 10);

		for (int i = 0; i < 70; i++) {
			std::vector<uint8_t> b(TDM_WIRE_HEAD_BYTES);

			b.resize(tdm_wire_encode(b.data(), &e));
			b.resize(b.size() + e.len);
			for (size_t at = 0; at < b.size();) {
				ssize_t n = ::send(raw.fd, &b[at],
						   b.size() - at, MSG_NOSIGNAL);

				if (n > 0)
					at += (size_t)n;
				else if (errno != EAGAIN)
					return;
				turn();
			}
		}
	});
	breaches.emplace_back("a word after GOODBYE", [this] {
		raw.record(rec(TDM_WIRE_GOODBYE));
		raw.record(rec(TDM_WIRE_EAGER));
	});
	add();
	for (auto &b : breaches) {
		at(0).lost.clear();
		session();
		b.second();
		EXPECT_TRUE(closed()) << b.first;
		EXPECT_EQ(1u, at(0).lost.size()) << b.first;
		EXPECT_TRUE(at(0).rx.got.empty()) << b.first;
		EXPECT_TRUE(at(0).tx.got.empty()) << b.first;
	}
	still_serves();
}

/* Random bytes after the greeting, in random pieces. */
TEST_F(TcpFault, N5_RandomRecordsAreHarmless)
{
	std::mt19937 rng(7);

	add();
	for (int i = 0; i < 200; i++) {
		std::vector<uint8_t> b(1 + rng() % 300);

		session();
		for (auto &x : b)
			x = (uint8_t)rng();
		b[0] = (uint8_t)(1 + rng() % TDM_WIRE_OP_COUNT);
		if (b.size() > 8 && i % 3) {
			b[1] &= 15;
			b[2] = b[3] = b[5] = b[6] = b[7] = 0;
		}
		for (size_t at = 0; at < b.size();) {
			size_t n =
				std::min<size_t>(1 + rng() % 50, b.size() - at);

			if (::send(raw.fd, &b[at], n, MSG_NOSIGNAL) < 0)
				break;
			at += n;
			turn();
		}
		raw.hang_up();
		ASSERT_TRUE(until([&] { return !at(0).tcp->open; }));
	}
	still_serves();
}

/* A live session is not displaced; a dead one makes room. */
TEST_F(TcpFault, LiveSessionIsNotDisplaced)
{
	struct tdm_wire_greeting d;
	std::vector<uint8_t> heard;
	Raw second;
	bool end;

	add();
	session(9, 0x77);
	for (uint8_t id : { 0x77, 0x78 }) {
		heard.clear();
		second.call(at(0).addr);
		second.hello(Raw::greeting(9, id));
		ASSERT_TRUE(until([&] {
			auto h = second.hear(&end);
			heard.insert(heard.end(), h.begin(), h.end());
			return end;
		}));
		ASSERT_EQ(128u, heard.size());
		ASSERT_EQ(0, tdm_wire_greeting_decode(heard.data(), &d));
		EXPECT_EQ(id == 0x77 ? TDM_WIRE_R_DUPLICATE : TDM_WIRE_R_BUSY,
			  d.reason);
	}
	EXPECT_TRUE(at(0).lost.empty());
	EXPECT_EQ(1u, at(0).accepted.size());
	raw.hang_up();
	second.call(at(0).addr);
	second.hello(Raw::greeting(9, 0x78));
	ASSERT_TRUE(until([&] { return at(0).accepted.size() == 2; }));
	EXPECT_EQ(1u, at(0).lost.size());
}

TEST_F(TcpFault, RefusedUntilTheConnectTimeout)
{
	int a;

	tdm_env.conn_timeout_ms = 100;
	add();
	add(false);
	at(0).insert(at(1).addr);
	ASSERT_EQ(0, at(0).send(0, "x", 1, 1, FI_COMPLETION, &a));
	ASSERT_EQ(0, at(0).send(0, "x", 1, 1, 0));
	ASSERT_EQ(0, at(0).send(0, "x", 1, 1, FI_INJECT));
	ASSERT_TRUE(until([&] { return !at(0).lost.empty(); }));
	ASSERT_EQ(3u, at(0).tx.got.size());
	for (const Comp &c : at(0).tx.got)
		EXPECT_EQ(FI_ECONNREFUSED, c.err);
	EXPECT_EQ(&a, at(0).tx.got[0].context);
	EXPECT_EQ(3u, at(0).sent.errors);
	EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use);
	/* The next send starts afresh. */
	at(1).listen();
	ASSERT_EQ(0, at(0).send(0, "x", 1, 1));
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 4; }));
	EXPECT_EQ(0, at(0).tx.got[3].err);
}

TEST_F(TcpFault, RefusedThenStarted)
{
	char in[8];

	add();
	add(false);
	at(0).insert(at(1).addr);
	at(0).send(0, "late", 5, 1);
	settle(50);
	EXPECT_TRUE(at(0).tx.got.empty());
	at(1).listen();
	at(1).recv(in, 8, 1);
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_STREQ("late", in);
}

/* The peer vanishes with everything under way. */
TEST_F(TcpFault, PeerVanishes)
{
	Bytes big = pattern(1 << 20, 1), in(1 << 20), in2(1 << 20);
	struct tdm_wire_rec r;
	int whole, half, announced, sent;

	add();
	session();
	fi_addr_t to = at(0).insert(Raw::greeting(9).addr);
	/* Expected: one that will come in half, announced and eager. */
	at(0).recv(in.data(), in.size(), 1, 0, &announced);
	at(0).recv(in2.data(), in2.size(), 2, 0, &half);
	r = rec(TDM_WIRE_RTS, TDM_WIRE_F_TAG);
	r.tag = 1;
	r.total = in.size();
	raw.record(r);
	r = rec(TDM_WIRE_EAGER, TDM_WIRE_F_TAG, 6);
	r.tag = 3;
	raw.record(r, 6);
	r = rec(TDM_WIRE_RTS, TDM_WIRE_F_TAG);
	r.tag = 4;
	r.total = 99999;
	raw.record(r);
	settle();
	at(0).send(to, "x", 1, 1, FI_COMPLETION, &sent);
	at(0).send(to, big.data(), big.size(), 1);
	at(0).send(to, "y", 1, 1, FI_COMPLETION | FI_DELIVERY_COMPLETE);
	r = rec(TDM_WIRE_EAGER, TDM_WIRE_F_TAG, 60000);
	r.tag = 2;
	raw.record(r, 1000);
	settle();
	EXPECT_TRUE(at(0).tx.got.empty());
	EXPECT_TRUE(at(0).rx.got.empty());
	raw.hang_up();
	ASSERT_TRUE(until([&] { return !at(0).lost.empty(); }));
	ASSERT_EQ(3u, at(0).tx.got.size());
	for (const Comp &c : at(0).tx.got)
		EXPECT_EQ(FI_ECONNRESET, c.err);
	ASSERT_EQ(2u, at(0).rx.got.size());
	for (const Comp &c : at(0).rx.got) {
		EXPECT_EQ(FI_ECONNRESET, c.err);
		EXPECT_EQ(c.context == &half ? 1000u : 0u, c.len);
	}
	/*
	 * Messages that had arrived completely are delivered; others end in an
	 * error.
	 */
	at(0).rx.got.clear();
	at(0).recv(in.data(), in.size(), 3, 0, &whole);
	ASSERT_EQ(1u, at(0).rx.got.size());
	EXPECT_EQ(0, at(0).rx.got[0].err);
	EXPECT_EQ(6u, at(0).rx.got[0].len);
	EXPECT_EQ(0x55, in[0]);
	at(0).recv(in.data(), in.size(), 4);
	ASSERT_EQ(2u, at(0).rx.got.size());
	EXPECT_EQ(FI_ECONNRESET, at(0).rx.got[1].err);
	settle();
	EXPECT_TRUE(tdm_list_empty(&at(0).tcp->dead));
	EXPECT_EQ(0u, at(0).tcp->tx_pool.in_use);
}

/* Wait for @event of poll(2) at @fd, without progress of any endpoint. */
bool comes(int fd, short event)
{
	struct pollfd p = { fd, event, 0 };

	return poll(&p, 1, (int)tdt_deadline_ms()) == 1 && (p.revents & event);
}

/*
 * Bytes that the peer sent before it died are read, although a send failed
 * first.
 */
TEST_F(TcpFault, InputIsReadAfterAFailedSend)
{
	struct tdm_wire_rec r;
	char in[100];

	add();
	session();
	fi_addr_t to = at(0).insert(Raw::greeting(9).addr);
	for (int i = 0; i < 100; i++)
		at(0).recv(&in[i], 1, 1);
	r = rec(TDM_WIRE_EAGER, TDM_WIRE_F_TAG, 1);
	r.tag = 1;
	for (int i = 0; i < 100; i++)
		raw.record(r, 1);
	/* Unread input at a close makes a reset. */
	at(0).send(to, "x", 1, 1);
	ASSERT_TRUE(comes(raw.fd, POLLIN));
	raw.hang_up();
	ASSERT_TRUE(comes(at(0).conn(to)->io.fd, POLLHUP));
	tdm_tcp_progress(at(0).tcp);
	at(0).send(to, "y", 1, 1);
	tdm_tcp_progress(at(0).tcp);
	ASSERT_TRUE(until([&] { return !at(0).lost.empty(); }));
	EXPECT_EQ(100u, at(0).rx.got.size());
	EXPECT_EQ(2u, at(0).tx.got.size());
	for (const Comp &c : at(0).tx.got)
		EXPECT_EQ(FI_ECONNRESET, c.err);
}

/* Injected messages arrive although the endpoint closes at once. */
TEST_F(TcpFault, CloseDeliversWhatWasInjected)
{
	const unsigned n = 1500; /* within the credit: the peer is idle */
	std::vector<int> in(n, -1);

	for (int early = 0; early < 2; early++) {
		nodes.clear();
		mesh(2);
		if (!early) {
			at(0).send(1, "open", 5, 1);
			ASSERT_TRUE(
				until([&] { return !at(0).tx.got.empty(); }));
		}
		for (unsigned i = 0; i < n; i++) {
			at(1).recv(&in[i], sizeof(int), 7);
			int v = (int)i;
			ASSERT_EQ(0,
				  at(0).send(1, &v, sizeof(v), 7, FI_INJECT));
		}
		if (early) {
			/* One thread: let the peer answer the HELLO. */
			turn();
			turn();
			turn();
		}
		at(0).close();
		ASSERT_TRUE(until([&] { return !at(1).lost.empty(); }));
		EXPECT_EQ(FI_ESHUTDOWN, at(1).lost[0]);
		ASSERT_EQ(n, at(1).rx.got.size());
		for (unsigned i = 0; i < n; i++)
			ASSERT_EQ((int)i, in[i]);
	}
}

/*
 * fi_endpoint(3) 2.1, fi_close 3: Outstanding operations vanish without an
 * entry.
 */
TEST_F(TcpFault, CloseWritesNoEntries)
{
	Bytes big = pattern(4 << 20, 1), in(4 << 20);

	mesh(2);
	at(0).send(1, big.data(), big.size(), 1);
	at(0).recv(in.data(), in.size(), 1);
	at(1).recv(in.data(), in.size(), 1);
	for (int i = 0; i < 60; i++)
		turn();
	at(0).tx.got.clear();
	at(0).send(1, "x", 1, 2);
	at(0).close();
	EXPECT_TRUE(at(0).tx.got.empty());
	EXPECT_TRUE(at(0).rx.got.empty());
	ASSERT_TRUE(until([&] { return !at(1).lost.empty(); }));
	EXPECT_EQ(1u, at(1).rx.got.size());
}

/* System calls cut short, refused and interrupted. */
std::mt19937 dice;
unsigned most = 1, refusal = 0; /* bytes; one call in @refusal fails */

bool refuse()
{
	if (!refusal || dice() % refusal)
		return false;
	errno = dice() % 3 ? EAGAIN : EINTR;
	return true;
}

size_t cut(size_t n)
{
	return n > most ? 1 + dice() % most : n;
}

ssize_t short_send(int fd, const void *p, size_t n, int flags)
{
	return refuse() ? -1 : tdm_os_system.send(fd, p, cut(n), flags);
}

ssize_t short_recv(int fd, void *p, size_t n, int flags)
{
	return refuse() ? -1 : tdm_os_system.recv(fd, p, cut(n), flags);
}

ssize_t short_sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct iovec v = m->msg_iov[0];

	for (size_t i = 0; i < m->msg_iovlen && !v.iov_len; i++)
		v = m->msg_iov[i];
	v.iov_len = cut(v.iov_len);
	return refuse() ? -1 :
			  tdm_os_system.send(fd, v.iov_base, v.iov_len, flags);
}

ssize_t short_readv(int fd, const struct iovec *v, int n)
{
	int count = 1 + (int)(dice() % (unsigned)n);
	struct iovec w[8];

	if (refuse())
		return -1;
	std::copy(v, v + count, w);
	if (most < 1000) {
		count = 1;
		w[0].iov_len = cut(w[0].iov_len);
	}
	return tdm_os_system.readv(fd, w, count);
}

struct Cut {
	unsigned most, refusal;
	size_t longest;
};

class TcpCut : public TcpFault, public testing::WithParamInterface<Cut>
{
};

TEST_P(TcpCut, NothingIsNoticed)
{
	const unsigned n = 120;
	std::vector<Bytes> out, in;
	std::vector<fi_addr_t> from;

	dice.seed(GetParam().most);
	most = GetParam().most;
	refusal = GetParam().refusal;
	tdm_os.send = short_send;
	tdm_os.recv = short_recv;
	tdm_os.sendmsg = short_sendmsg;
	tdm_os.readv = short_readv;
	mesh(2);
	for (unsigned i = 0; i < n; i++) {
		size_t len = i % 10 ? dice() % 300 :
				      dice() % GetParam().longest;

		out.push_back(pattern(len, i));
		in.push_back(Bytes(len + 1));
	}
	for (unsigned i = 0; i < n; i++) {
		unsigned to = i & 1;
		uint64_t flags = i % 3 ? 0 : FI_DELIVERY_COMPLETE;

		if (i % 4)
			at(to).recv(in[i].data(), in[i].size(), i);
		ASSERT_EQ(0, at(!to).send(to, out[i].data(), out[i].size(), i,
					  FI_COMPLETION | flags));
		if (i % 5 == 0)
			turn();
	}
	settle(50);
	for (unsigned i = 0; i < n; i += 4)
		at(i & 1).recv(in[i].data(), in[i].size(), i);
	ASSERT_TRUE(until([&] {
		return at(0).tx.got.size() == n / 2 &&
		       at(1).tx.got.size() == n / 2 &&
		       at(0).rx.got.size() == n / 2 &&
		       at(1).rx.got.size() == n / 2;
	}));
	for (unsigned i = 0; i < n; i++)
		EXPECT_TRUE(same(out[i], in[i], out[i].size())) << i;
	EXPECT_TRUE(at(0).lost.empty());
	EXPECT_EQ(1u, at(0).tcp->open);
}

INSTANTIATE_TEST_SUITE_P(
	Cuts, TcpCut,
	testing::Values(Cut{ 1, 0, 3000 }, Cut{ 1, 2, 1000 }, Cut{ 7, 3, 9000 },
			Cut{ 100, 2, 80000 }, Cut{ 5000, 3, 400000 },
			Cut{ 1 << 30, 3, 2000000 }, Cut{ 1 << 30, 0, 2000000 }),
	[](const testing::TestParamInfo<Cut> &p) {
		return std::to_string(p.param.most) + "_" +
		       std::to_string(p.param.refusal);
	});

unsigned denied; /* the next so many calls fail */
int denial;

bool deny()
{
	if (!denied)
		return false;
	denied--;
	errno = denial;
	return true;
}

int deny_socket(int domain, int type, int protocol)
{
	return deny() ? -1 : tdm_os_system.socket(domain, type, protocol);
}

int deny_accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	return deny() ? -1 : tdm_os_system.accept4(fd, a, len, flags);
}

ssize_t deny_send(int fd, const void *p, size_t n, int flags)
{
	return deny() ? -1 : tdm_os_system.send(fd, p, n, flags);
}

int deny_bind(int fd, const struct sockaddr *a, socklen_t len)
{
	return deny() ? -1 : tdm_os_system.bind(fd, a, len);
}

int deny_connect(int fd, const struct sockaddr *a, socklen_t len)
{
	return deny() ? -1 : tdm_os_system.connect(fd, a, len);
}

/* No descriptor for a connect; the send waits and goes out later. */
TEST_F(TcpFault, DescriptorsRunOutAtConnect)
{
	mesh(2);
	for (int err : { EMFILE, EADDRNOTAVAIL, ENETUNREACH }) {
		denied = 2;
		denial = err;
		tdm_os.socket = deny_socket;
		at(0).tx.got.clear();
		at(0).send(1, "x", 1, 1);
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
		EXPECT_EQ(0, at(0).tx.got[0].err);
		at(0).close();
		nodes.clear();
		mesh(2);
	}
	tdm_env.conn_timeout_ms = 50;
	denied = 1000;
	denial = EMFILE;
	at(0).send(1, "x", 1, 1);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	EXPECT_EQ(FI_EMFILE, at(0).tx.got[0].err);
	denied = 0;
}

TEST_F(TcpFault, BindOrConnectIsRefusedForAWhile)
{
	mesh(2);
	denied = 2;
	denial = EADDRNOTAVAIL;
	tdm_os.bind = deny_bind;
	at(0).send(1, "x", 1, 1);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	tdm_os.bind = tdm_os_system.bind;
	tdm_os.connect = deny_connect;
	tdm_env.conn_timeout_ms = 50;
	at(1).insert(at(0).addr);
	add();
	fi_addr_t to = at(2).insert(at(1).addr);
	for (int err : { EHOSTUNREACH, EAGAIN }) {
		denied = 1000;
		denial = err;
		at(2).tx.got.clear();
		at(2).send(to, "x", 1, 1);
		ASSERT_TRUE(until([&] { return at(2).tx.got.size() == 1; }));
		EXPECT_EQ(err == EAGAIN ? FI_ENOMEM : err, at(2).tx.got[0].err);
	}
	denied = 0;
}

/* No descriptor for an accept; the caller comes again. */
TEST_F(TcpFault, DescriptorsRunOutAtAccept)
{
	mesh(2);
	denied = 3;
	denial = EMFILE;
	tdm_os.accept4 = deny_accept4;
	at(0).send(1, "x", 1, 1);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	EXPECT_EQ(0, at(0).tx.got[0].err);
	EXPECT_GE(at(1).tcp->reserve_fd, 0);
}

/* No memory in the kernel; writability would not tell, a timer does. */
TEST_F(TcpFault, KernelHasNoMemoryForASend)
{
	mesh(2);
	at(0).send(1, "open", 5, 1);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	for (int err : { ENOBUFS, ENOMEM }) {
		at(0).tx.got.clear();
		denied = 3;
		denial = err;
		tdm_os.send = deny_send;
		at(0).send(1, "x", 1, 1);
		ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
		EXPECT_EQ(0, at(0).tx.got[0].err);
	}
	EXPECT_TRUE(at(0).lost.empty());
}

unsigned connects;

int count_connects(int fd, const struct sockaddr *a, socklen_t len)
{
	connects++;
	return tdm_os_system.connect(fd, a, len);
}

/* The same for a HELLO: the connection that it was meant for is kept. */
TEST_F(TcpFault, KernelHasNoMemoryForAHello)
{
	connects = 0;
	mesh(2);
	denied = 3;
	denial = ENOBUFS;
	tdm_os.send = deny_send;
	tdm_os.connect = count_connects;
	at(0).send(1, "x", 1, 1);
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	EXPECT_EQ(0, at(0).tx.got[0].err);
	EXPECT_EQ(1u, connects);
	EXPECT_EQ(0, denied);
}

struct tdm_addr itself;

int own_name(int fd, struct sockaddr *a, socklen_t *len)
{
	memcpy(a, &itself.u, sizeof(itself.u.in));
	*len = sizeof(itself.u.in);
	return 0;
}

/* TCP connected a socket to itself. */
TEST_F(TcpFault, SelfConnectIsARefusal)
{
	mesh(2);
	itself = at(1).addr;
	tdm_os.getsockname = own_name;
	tdm_os.getpeername = own_name;
	at(0).send(1, "x", 1, 1);
	ASSERT_TRUE(until(
		[&] { return at(0).conn(1)->state == TDM_CONN_BACKOFF; }));
	EXPECT_EQ(FI_ECONNREFUSED, at(0).conn(1)->setup->why);
	tdm_os.getsockname = tdm_os_system.getsockname;
	tdm_os.getpeername = tdm_os_system.getpeername;
	ASSERT_TRUE(until([&] { return at(0).tx.got.size() == 1; }));
	EXPECT_EQ(0, at(0).tx.got[0].err);
}

/* A removal while the kernel holds half a record: the bytes are our own. */
TEST_F(TcpFault, ForgetInTheMiddleOfARecord)
{
	const size_t len = 40 << 20; /* more than socket buffers hold */
	std::unique_ptr<Bytes> big(new Bytes(pattern(len, 1)));
	Bytes want = *big, in(len), small(8);
	fi_addr_t one = 1;

	mesh(2);
	at(1).recv(in.data(), in.size(), 1);
	at(1).recv(small.data(), 8, 2);
	at(0).send(1, big->data(), big->size(), 1);
	/* The peer reads nothing once it has asked. */
	ASSERT_TRUE(until(
		[&] { return !tdm_list_empty(&at(0).conn(1)->busy->dataq); }));
	for (int i = 0; i < 1000; i++)
		at(0).progress();
	ASSERT_TRUE(at(0).conn(1)->borrow && at(0).conn(1)->blocked);
	ASSERT_EQ(0, fi_av_remove(tdm_av_fid(at(0).av), &one, 1, 0));
	ASSERT_EQ(1u, at(0).tx.got.size());
	EXPECT_EQ(FI_ECONNABORTED, at(0).tx.got[0].err);
	std::fill(big->begin(), big->end(), 0);
	big.reset();
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 1; }));
	EXPECT_EQ(FI_ECONNABORTED, at(1).rx.got[0].err);
	EXPECT_TRUE(same(in, want, at(1).rx.got[0].len));
	EXPECT_GT(at(1).rx.got[0].len, 0u);
	/* The connection lives. */
	at(0).insert(at(1).addr);
	at(0).send(1, "after", 6, 2);
	ASSERT_TRUE(until([&] { return at(1).rx.got.size() == 2; }));
	EXPECT_STREQ("after", (char *)small.data());
	EXPECT_TRUE(at(0).lost.empty());
}

/* Memory runs out at each place in turn. */
TEST_F(TcpFault, EveryAllocationFailsInTurn)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap=malloc";
	Bytes big = pattern(100000, 1), in(100000);
	unsigned failures = 0;

	tdm_env.conn_timeout_ms = 300;
	for (unsigned nth = 1; nth < 200; nth++) {
		char small[64];
		int ends = 0, posted = 0;

		nodes.clear();
		mesh(2);
		at(0).conn(1);
		at(1).recv(in.data(), in.size(), 1);
		tdt_alloc_fail(nth, 0);
		posted += !at(0).send(1, big.data(), big.size(), 1);
		posted += !at(0).send(1, "inject", 7, 2, FI_INJECT);
		posted += !at(0).send(1, "deliver", 8, 3,
				      FI_COMPLETION | FI_DELIVERY_COMPLETE);
		posted += !at(0).send(1, big.data(), 5000, 4);
		for (int i = 0; i < 300; i++)
			turn();
		failures += tdt_alloc_stop();
		/* All ends once, well or not. */
		at(1).recv(small, sizeof(small), 2);
		at(1).recv(small, sizeof(small), 3);
		at(1).recv(in.data(), in.size(), 4);
		ASSERT_TRUE(until([&] { return !at(0).tcp->tx_pool.in_use; }))
			<< nth;
		for (const Comp &c : at(0).tx.got)
			ends += !!c.flags;
		EXPECT_LE(ends, posted) << nth;
		EXPECT_EQ((unsigned)posted,
			  at(0).sent.value + at(0).sent.errors)
			<< nth;
	}
	EXPECT_GT(failures, 8u);
}

/* Addresses that cannot be had. */
TEST_F(TcpFault, AddressInUse)
{
	struct tdm_addr a;

	add();
	Node &second = add(false);
	a = at(0).addr;
	EXPECT_EQ(-FI_EADDRINUSE, tdm_tcp_bind(second.tcp, &a));
	a = ip_addr("192.0.2.1");
	EXPECT_EQ(-FI_EADDRNOTAVAIL, tdm_tcp_bind(second.tcp, &a));
	tdm_env.port_low = 20000;
	tdm_env.port_high = 20010;
	a = ip_addr("127.0.0.1");
	ASSERT_EQ(0, tdm_tcp_bind(second.tcp, &a));
	EXPECT_GE(tdm_addr_port(&a), 20000);
	EXPECT_LE(tdm_addr_port(&a), 20010);
	second.listen();
}

uint16_t privileged; /* ports below it are not for us */

int bind_as_user(int fd, const struct sockaddr *sa, socklen_t len)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

	if (ntohs(in->sin_port) < privileged) {
		errno = EACCES;
		return -1;
	}
	return bind(fd, sa, len);
}

/* fi_tandem(7), FI_TANDEM_PORT_RANGE: ports one may not have are passed over. */
TEST_F(TcpFault, PrivilegedPortsArePassedOver)
{
	struct tdm_addr a = ip_addr("127.0.0.1");

	Node &node = add(false);
	tdm_os.bind = bind_as_user;
	tdm_env.port_low = 20000;
	tdm_env.port_high = 20010;
	privileged = 20009;
	ASSERT_EQ(0, tdm_tcp_bind(node.tcp, &a));
	EXPECT_GE(tdm_addr_port(&a), 20009);
	node.listen();
	privileged = 20011;
	/* fi_tandem(7), USING IT: a range of ports is the user's to mend. */
	tdt_log_expect("FI_TANDEM_PORT_RANGE=20000-20010");
	tdm_addr_set_port(&a, 0);
	EXPECT_EQ(-FI_EACCES, tdm_tcp_bind(node.tcp, &a));
}

} // namespace
