/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Callers before they have a session, while the clock stands still or is put
 * forward by hand: fi_tandem(7), SECURITY; doc/PROTOCOL-tcp.md, "Guests" and
 * "Greeting"; rows D10, N1, N2, N4 and O1 of assurance.
 */
#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tcp_raw.h"

extern "C" {
#include "tests/harness/holdings.h"
#include "tests/harness/log.h"
}

using namespace tcp_test;

namespace
{

const uint64_t ms_ns = 1000000, s_ns = 1000000000;

uint64_t now;

uint64_t held_clock()
{
	return now;
}

/* The time of @timer has come. */
void fire(struct tdm_loop_timer *timer)
{
	tdm_loop_timer_disarm(timer);
	timer->fired(timer);
}

class TcpGuest : public TcpFault
{
protected:
	TcpGuest()
	{
		now = tdm_os_system.now_ns();
		tdm_os.now_ns = held_clock;
	}

	void TearDown() override
	{
		tdt_log_listen(FI_LOG_WARN);
		TcpFault::TearDown();
	}

	/* Somebody who speaks another protocol calls, and is turned away. */
	void stranger()
	{
		static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

		raw.call(at(0).addr);
		raw.say(text, sizeof(text) - 1);
		ASSERT_TRUE(closed());
		raw.hang_up();
	}
};

/* doc/PROTOCOL-tcp.md, "Greeting": what is required and not known is refused. */
TEST_F(TcpGuest, N4_RequiredFeatureIsRejectedWithTheReason)
{
	struct tdm_wire_greeting g = Raw::greeting(9), d;
	std::vector<uint8_t> more;

	tdt_log_listen(FI_LOG_INFO);
	add();
	g.features = g.required = 1u << 30;
	raw.call(at(0).addr);
	raw.hello(g);
	d = greeted(raw);
	EXPECT_EQ(TDM_WIRE_REJECT, d.kind);
	EXPECT_EQ(TDM_WIRE_R_FEATURE, d.reason);
	ASSERT_TRUE(closed(&more));
	EXPECT_TRUE(more.empty()) << "one answer";
	EXPECT_TRUE(at(0).accepted.empty());
	EXPECT_EQ(0u, at(0).tcp->guest_count);
	EXPECT_EQ(0u, at(0).tcp->open);
	EXPECT_EQ(1u, tdt_log_heard("turned away: one side lacks what the "
				    "other one needs"));
	/* The same bit as a mere offer is none of our business. */
	g.required = 0;
	raw.call(at(0).addr);
	raw.hello(g);
	EXPECT_EQ(TDM_WIRE_HELLO, greeted(raw).kind);
}

/* fi_tandem(7), FAULTS: another release ends the operations at once. */
TEST_F(TcpGuest, N4_RejectedFeatureFailsAtOnce)
{
	struct tdm_wire_greeting g = {};
	Door door;
	Raw peer;

	tdt_log_listen(FI_LOG_INFO);
	g.kind = TDM_WIRE_REJECT;
	g.reason = TDM_WIRE_R_FEATURE;
	g.oldest = g.newest = TDM_WIRE_VERSION;
	ASSERT_NO_FATAL_FAILURE(answered_by(door, peer, g));
	EXPECT_EQ(FI_ENOPROTOOPT, at(0).tx.got[0].err);
	EXPECT_EQ(1u, at(0).lost.size());
	EXPECT_EQ(1u, tdt_log_heard("refused by the peer: one side lacks"));
	settle();
	EXPECT_GT(0, accept(door.fd, NULL, NULL)) << "it was not tried again";
}

/* doc/PROTOCOL-tcp.md, "Guests": who has greeted is never dropped as silent. */
TEST_F(TcpGuest, N2_ALateAcceptorDropsNobodyWhoGreeted)
{
	const size_t half = TDM_WIRE_GREETING_BYTES / 2, n = 8;
	uint8_t b[n][TDM_WIRE_GREETING_BYTES];
	Raw crowd[n];

	add();
	for (size_t i = 0; i < n; i++) {
		struct tdm_wire_greeting g =
			Raw::greeting(uint16_t(9 + i), uint8_t(0x60 + i));

		tdm_wire_greeting_encode(b[i], &g);
		crowd[i].call(at(0).addr);
		crowd[i].say(b[i], half);
	}
	ASSERT_TRUE(until([&] { return at(0).tcp->guest_count == n; }));
	settle();
	for (size_t i = 0; i < n; i++)
		crowd[i].say(b[i] + half, half);
	/* No pass for a minute, and then the look at the guests comes first. */
	now += 60 * s_ns;
	fire(&at(0).tcp->guest_timer);
	EXPECT_EQ(n, at(0).accepted.size());
	EXPECT_EQ(0u, at(0).tcp->guest_count);
	for (Raw &r : crowd)
		EXPECT_EQ(TDM_WIRE_HELLO, greeted(r).kind);
	/* One that is really silent leaves. */
	raw.call(at(0).addr);
	raw.say(b[0], half);
	ASSERT_TRUE(until([&] { return at(0).tcp->guest_count == 1; }));
	now += 5 * s_ns;
	fire(&at(0).tcp->guest_timer);
	EXPECT_EQ(0u, at(0).tcp->guest_count);
}

TEST_F(TcpGuest, N1_OneLogLineASecondAboutStrangers)
{
	tdt_log_listen(FI_LOG_INFO);
	add();
	for (int i = 0; i < 20; i++)
		ASSERT_NO_FATAL_FAILURE(stranger());
	EXPECT_EQ(1u, tdt_log_heard("turned away"));
	now += s_ns - 1;
	ASSERT_NO_FATAL_FAILURE(stranger());
	EXPECT_EQ(1u, tdt_log_heard("turned away"));
	now += 1;
	for (int i = 0; i < 20; i++)
		ASSERT_NO_FATAL_FAILURE(stranger());
	EXPECT_EQ(2u, tdt_log_heard("turned away"));
	EXPECT_EQ(0u, tdt_log_count("turned away")) << "no warning";
}

TEST_F(TcpGuest, N1_NothingIsLeftOfAThousandStrangers)
{
	struct tdt_holdings before, after;

	add();
	/* The first ones make what an endpoint makes once, and keeps. */
	for (int i = 0; i < 50; i++)
		ASSERT_NO_FATAL_FAILURE(stranger());
	tdt_holdings(&before);
	for (int i = 0; i < 1000; i++) {
		now += 10 * ms_ns;
		ASSERT_NO_FATAL_FAILURE(stranger());
	}
	tdt_holdings(&after);
	EXPECT_GE(before.bytes + 4096, after.bytes);
	EXPECT_EQ(before.descriptors, after.descriptors);
	EXPECT_EQ(0u, at(0).tcp->guest_count);
	EXPECT_EQ(0u, at(0).tcp->open);
	still_serves();
}

std::vector<uint64_t> tried; /* when calls were refused by the test */

int nobody_listens(int, const struct sockaddr *, socklen_t)
{
	tried.push_back(now);
	errno = ECONNREFUSED;
	return -1;
}

/* fi_tandem(7), FI_TANDEM_CONN_TIMEOUT; doc/PROTOCOL-tcp.md, "Greeting". */
TEST_F(TcpGuest, D10_PausesBetweenAttemptsGrow)
{
	const uint64_t begun = now;
	fi_addr_t to;

	tried.clear();
	tdm_os.connect = nobody_listens;
	tdm_env.conn_timeout_ms = 60000;
	add();
	add(false);
	to = at(0).insert(at(1).addr);
	ASSERT_EQ(0, at(0).send(to, "x", 1, 1));
	ASSERT_TRUE(until([&] { return !tried.empty(); }));
	while (at(0).lost.empty() && tried.size() < 10000) {
		struct tdm_conn *c = at(0).conn(to);

		ASSERT_EQ(TDM_CONN_BACKOFF, c->state);
		ASSERT_TRUE(at(0).tx.got.empty());
		now = c->setup->timer.deadline_ns;
		fire(&c->setup->timer);
	}
	ASSERT_EQ(1u, at(0).tx.got.size());
	EXPECT_EQ(FI_ECONNREFUSED, at(0).tx.got[0].err);
	EXPECT_LE(begun + 60 * s_ns, now);
	EXPECT_GE(begun + 62 * s_ns, now);
	EXPECT_LE(50u, tried.size());
	EXPECT_GE(200u, tried.size());
	EXPECT_GE(20 * ms_ns, tried[1] - tried[0]);
	for (size_t i = 1; i < tried.size(); i++) {
		EXPECT_LE(5 * ms_ns, tried[i] - tried[i - 1]) << i;
		EXPECT_GE(s_ns, tried[i] - tried[i - 1]) << i;
	}
}

struct tdm_tcp *full; /* it has no descriptor but the reserve */

int full_accept4(int fd, struct sockaddr *a, socklen_t *len, int flags)
{
	if (full && fd == full->listener.fd && full->reserve_fd >= 0) {
		tried.push_back(now);
		errno = EMFILE;
		return -1;
	}
	return tdm_os_system.accept4(fd, a, len, flags);
}

/* The real clock does not count. */
void not_yet(struct tdm_loop_timer *timer)
{
	tdm_loop_timer_arm(full->a.loop, timer, 1000);
}

class TcpFull : public TcpGuest
{
protected:
	std::vector<std::unique_ptr<Raw>> crowd;
	void (*resume)(struct tdm_loop_timer *timer) = nullptr;

	~TcpFull() override
	{
		full = nullptr;
	}

	/* 10 ms pass; @due: when the pause of the listener is over. */
	void step(uint64_t &due)
	{
		struct tdm_loop_timer *pause = &at(0).tcp->accept_timer;
		size_t had = tried.size();

		now += 10 * ms_ns;
		if (pause->ev && now >= due) {
			tdm_loop_timer_disarm(pause);
			resume(pause);
		}
		for (int i = 0; i < 3; i++)
			turn();
		if (tried.size() != had && pause->ev)
			due = pause->deadline_ns;
	}

	size_t turned_away()
	{
		size_t n = 0;

		for (auto &r : crowd) {
			bool end;

			r->hear(&end);
			n += end;
		}
		return n;
	}
};

/* No descriptor is free for a long time, and callers come all the while. */
TEST_F(TcpFull, O1_TheListenerPausesAndSessionsGoOn)
{
	Bytes big = pattern(300000, 1), got(big.size());
	uint64_t due = 0;
	int out = 0, in = -1;

	tried.clear();
	add();
	add();
	fi_addr_t to = at(1).insert(at(0).addr);
	ASSERT_EQ(0, at(1).send(to, "open", 5, 3));
	ASSERT_TRUE(until([&] { return at(1).tx.got.size() == 1; }));
	/* Announced, and not received: so the session is no idle one. */
	ASSERT_EQ(0, at(1).send(to, big.data(), big.size(), 2));
	full = at(0).tcp;
	tdm_os.accept4 = full_accept4;
	resume = full->accept_timer.fired;
	full->accept_timer.fired = not_yet;
	for (; out < 500; out++) { /* 5 s */
		if (out % 5 == 0) {
			crowd.emplace_back(new Raw());
			crowd.back()->call(at(0).addr);
		}
		ASSERT_EQ(0, at(0).recv(&in, sizeof(in), 1));
		ASSERT_EQ(0, at(1).send(to, &out, sizeof(out), 1));
		step(due);
		ASSERT_TRUE(until([&] {
			return at(0).rx.got.size() == size_t(out) + 1;
		}));
		ASSERT_EQ(out, in);
	}
	EXPECT_LE(8u, tried.size());
	EXPECT_GE(20u, tried.size());
	for (size_t i = 1; i < tried.size(); i++) {
		EXPECT_LE(10 * ms_ns, tried[i] - tried[i - 1]) << i;
		EXPECT_GE(1100 * ms_ns, tried[i] - tried[i - 1]) << i;
	}
	EXPECT_LE(tried.size(), turned_away() + 1) << "one caller each time";
	EXPECT_GE(full->reserve_fd, 0);
	ASSERT_EQ(0, at(0).recv(got.data(), got.size(), 2));
	ASSERT_TRUE(
		until([&] { return at(0).rx.got.size() == size_t(out) + 1; }));
	EXPECT_EQ(big, got);
	EXPECT_TRUE(at(0).lost.empty());
	/* There are descriptors again. */
	crowd.clear();
	tdm_os.accept4 = tdm_os_system.accept4;
	for (int i = 0; i < 200; i++)
		step(due);
	full->accept_timer.fired = resume;
	still_serves();
}

} // namespace
