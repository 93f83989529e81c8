/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first operations to a peer, with which no path is agreed yet: they are
 * taken by the call, kept in order, and end in an entry like any other.
 * fi_msg(3), fi_endpoint(3) fi_cancel and fi_close, fi_tandem(7) "LIMITS".
 */
#include <netinet/in.h>
#include <thread>

#include "trigger.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

using trigger_test::Amo;

const size_t SIZE = 16; /* of a transmit context */

class FirstSend : public trigger_test::Trigger
{
protected:
	FirstSend()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
		attr.tx_size = SIZE;
	}

	/* An address that nobody has. */
	static fi_addr_t nobody(const struct tdt_ep *at)
	{
		fi_addr_t to = FI_ADDR_NOTAVAIL;
		struct sockaddr_in sin;

		memcpy(&sin, at->name, sizeof(sin));
		sin.sin_port = htons(1);
		EXPECT_EQ(1, fi_av_insert(at->av, &sin, 1, &to, 0, nullptr));
		return to;
	}

	void errors(struct tdt_ep *at, uint64_t n)
	{
		struct trigger_test::reach r = { at->tx_cntr, 0, n };

		ASSERT_EQ(0, tdt_wait_until(w, trigger_test::reached, &r));
		EXPECT_EQ(n, fi_cntr_readerr(at->tx_cntr));
	}
};

TEST_F(FirstSend, IsTakenByEachCall)
{
	for (int tagged = 0; tagged < 2; tagged++) {
		for (int call = TDT_SEND; call <= TDT_INJECTDATA; call++) {
			SCOPED_TRACE(call);
			OPEN();
			for (auto *from : senders()) {
				char out[8] = "first", in[8] = "";
				struct tdt_op op = {};
				bool inject = call >= TDT_INJECT;

				op.call = static_cast<enum tdt_call>(call);
				op.tagged = tagged;
				op.buf = out;
				op.len = sizeof(out);
				op.addr = addr(from, rx());
				op.tag = 3;
				op.data = 4;
				op.flags = FI_COMPLETION;
				op.context = out;
				ASSERT_EQ(0, tdt_post_once(from, &op));
				if (inject)
					memset(out, 0xee, sizeof(out));
				op.call = TDT_RECV;
				op.buf = in;
				op.addr = FI_ADDR_UNSPEC;
				op.context = in;
				ASSERT_EQ(0, tdt_post_once(rx(), &op));
				ASSERT_EQ(0, tdt_wait(rx(), in, nullptr));
				EXPECT_STREQ("first", in);
				if (!inject) {
					ASSERT_EQ(0,
						  tdt_wait(from, out, nullptr));
				}
			}
			close();
		}
	}
}

TEST_F(FirstSend, AllKindsKeepTheirOrder)
{
	/* As many as tx_attr->size, without a repeated call in between. */
	uint64_t out[SIZE], in = 0, one = 1, back = 0, word;
	Amo add(FI_OP_ATOMIC, 64);

	attr.cntrs = 1;
	OPEN();
	OK(expose());
	for (auto *from : senders()) {
		fi_addr_t to = addr(from, rx());

		memset(region, 0, sizeof(region));
		for (uint64_t i = 0; i < SIZE - 4; i += 2) {
			out[i] = i;
			ASSERT_EQ(0, fi_tsend(from->ep, &out[i], 8, nullptr, to,
					      5, &out[i]));
			word = i + 1;
			ASSERT_EQ(0, fi_tinject(from->ep, &word, 8, to, 5));
			word = 0xee;
		}
		ASSERT_EQ(0, rmamsg(true, from->ep, &one, 8, to, 0, &one,
				    FI_COMPLETION));
		add.name(to, &add);
		ASSERT_EQ(0, fi_atomicmsg(from->ep, &add.m, FI_COMPLETION));
		add.forget();
		ASSERT_EQ(0, rmamsg(false, from->ep, &back, 8, to, 8, &back,
				    FI_COMPLETION));
		ASSERT_EQ(0, sendmsg(from->ep, &out[0], 8, to, &word,
				     FI_DELIVERY_COMPLETE));
		for (uint64_t i = 0; i < SIZE - 4; i++) {
			struct iovec v = iov_of(&in, 8);

			ASSERT_EQ(0, tdt_trecv(rx(), &v, 5, 0, &in));
			ASSERT_EQ(0, tdt_wait(rx(), &in, nullptr));
			EXPECT_EQ(i, in);
			if (!(i & 1)) {
				ASSERT_EQ(0, tdt_wait(from, &out[i], nullptr));
			}
		}
		ASSERT_EQ(0, tdt_recv(rx(), &in, 8, &in));
		ASSERT_EQ(0, tdt_wait(rx(), &in, nullptr));
		OK(done(from, &one, FI_RMA | FI_WRITE));
		OK(done(from, &add, FI_ATOMIC | FI_WRITE));
		OK(done(from, &back, FI_RMA | FI_READ));
		OK(done(from, &word, FI_MSG | FI_SEND));
		memcpy(&word, region, 8);
		EXPECT_EQ(1u, word);
		memcpy(&word, region + 64, 8);
		EXPECT_EQ(2u, word);
	}
}

TEST_F(FirstSend, KeepsWhatTheSizeSaysAndGivesItBack)
{
	/* fi_cancel and fi_av_remove end what waits, and nothing else. */
	char out[SIZE], other = 1, in = 0;
	struct iovec ov = iov_of(&other, 1), iv = iov_of(&in, 1);

	ONLY_TANDEM();
	attr.cntrs = 1;
	OPEN();
	for (auto *from : senders()) {
		fi_addr_t to = nobody(from);

		for (int round = 0; round < 2; round++) {
			for (char &o : out)
				ASSERT_EQ(0, fi_send(from->ep, &o, 1, nullptr,
						     to, &o));
			EXPECT_EQ(-FI_EAGAIN,
				  fi_send(from->ep, out, 1, nullptr, to, out));
			ASSERT_EQ(0, fi_cancel(&from->ep->fid, &out[3]));
			OK(failed(from, &out[3], FI_ECANCELED));
			/* There is room again, and another peer to go to. */
			ASSERT_EQ(0, tdt_tsend(from, rx(), &ov, 9, &other));
			ASSERT_EQ(0, tdt_trecv(rx(), &iv, 9, 0, &in));
			ASSERT_EQ(0, tdt_wait(rx(), &in, nullptr));
			ASSERT_EQ(0, tdt_wait(from, &other, nullptr));
			if (round) {
				ASSERT_EQ(0, fi_av_remove(from->av, &to, 1, 0));
			}
			for (char &o : out) {
				if (&o == &out[3])
					continue;
				if (!round) {
					ASSERT_EQ(0, fi_cancel(&from->ep->fid,
							       &o));
				}
				OK(failed(from, &o,
					  round ? FI_ECONNABORTED :
						  FI_ECANCELED));
			}
		}
		OK(errors(from, 2 * SIZE));
		EXPECT_EQ(-FI_ENOENT, fi_cancel(&from->ep->fid, out));
	}
}

TEST_F(FirstSend, WhatWasInjectedIsSentByClose)
{
	/* fi_endpoint(3) 2.1, fi_close 3: Operations under way are discarded.
	 * An inject has completed for the application: its peer gets it. */
	uint64_t in[SIZE];

	OPEN();
	for (auto *from : senders()) {
		uint64_t got = 0;

		for (uint64_t &x : in) {
			x = SIZE;
			struct iovec v = iov_of(&x, 8);

			ASSERT_EQ(0, tdt_trecv(rx(), &v, 1, 0, &x));
		}
		std::thread reader([&] {
			uint64_t end = tdt_now_ms() + tdt_deadline_ms();
			struct fi_cq_tagged_entry e[8];

			while (got < SIZE && tdt_now_ms() < end) {
				ssize_t ret = fi_cq_read(rx()->rx_cq, e, 8);

				got += ret > 0 ? (uint64_t)ret : 0;
			}
		});
		for (uint64_t i = 0; i < SIZE; i++)
			EXPECT_EQ(0, fi_tinject(from->ep, &i, 8,
						addr(from, rx()), 1));
		EXPECT_EQ(0, fi_close(&from->ep->fid));
		from->ep = nullptr;
		reader.join();
		ASSERT_EQ(SIZE, got);
		for (uint64_t i = 0; i < SIZE; i++)
			EXPECT_EQ(i, in[i]);
	}
}

/* Operations to a port where no process listens, and how many failed. */
TDT_ROLE(to_nobody)
{
	const int n = 300;
	struct tdt_attr attr;
	struct tdt_world *w = nullptr;
	struct sockaddr_in sin;
	int result[3] = { 0, 0, 0 };
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	char out = 1;

	(void)arg;
	tdt_attr_init(&attr);
	attr.eps = 1;
	attr.no_tcp_only = 1;
	attr.cntrs = 1;
	attr.caps |= FI_TRIGGER;
	if (tdt_world_open(&attr, &w))
		return 1;
	struct tdt_ep *e = &w->eps[0];
	fi_addr_t to;
	memcpy(&sin, e->name, sizeof(sin));
	sin.sin_port = htons(1);
	if (fi_av_insert(e->av, &sin, 1, &to, 0, nullptr) != 1)
		return 2;
	std::vector<struct fi_triggered_context2> contexts((size_t)n);
	for (int i = 0; i < n; i++) {
		struct iovec iov = iov_of(&out, 1);
		struct fi_msg m = {};

		auto *x = &contexts[(size_t)i];

		memset(x, 0, sizeof(*x));
		x->event_type = FI_TRIGGER_THRESHOLD;
		x->trigger.threshold.cntr = e->tx_cntr;
		m.msg_iov = &iov;
		m.iov_count = 1;
		m.addr = to;
		m.context = x;
		result[0] += !fi_sendmsg(e->ep, &m, FI_TRIGGER);
		result[0] += !fi_send(e->ep, &out, 1, nullptr, to, &out);
		result[0] += !fi_inject(e->ep, &out, 1, to);
	}
	while (result[1] < result[0] && tdt_now_ms() < end) {
		struct fi_cq_err_entry err = {};
		struct fi_cq_tagged_entry c;

		if (fi_cq_read(e->tx_cq, &c, 1) == -FI_EAVAIL &&
		    fi_cq_readerr(e->tx_cq, &err, 0) == 1) {
			result[1] += err.err == FI_ECONNREFUSED;
			result[2] += !err.op_context;
		}
	}
	tdt_tell(fd, result, sizeof(result));
	return tdt_world_close(w);
}

TEST_F(FirstSend, WhatCannotBeReachedEndsTogether)
{
	/* One time-out for all that waits for one peer, not one for each. The
	 * entries of injects have no context: fi_tandem(7), COMPLETION LEVELS. */
	struct tdt_child child = { 0, -1 };
	int result[3] = { 0, 0, 0 };

	ONLY_TANDEM();
	setenv("FI_TANDEM_CONN_TIMEOUT", "1", 1);
	EXPECT_EQ(0, tdt_child_start(&child, "to_nobody", nullptr));
	unsetenv("FI_TANDEM_CONN_TIMEOUT");
	ASSERT_EQ(static_cast<ssize_t>(sizeof(result)),
		  tdt_hear(child.fd, result, sizeof(result)));
	EXPECT_EQ(0, tdt_child_wait(&child));
	EXPECT_EQ(900, result[0]);
	EXPECT_EQ(900, result[1]);
	EXPECT_EQ(300, result[2]);
}

} // namespace
