/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters: fi_cntr(3). */
#include "tests/harness/fixture.h"

namespace
{

struct reach {
	struct fid_cntr *cntr;
	uint64_t value, errors;
};

int reached(void *arg)
{
	auto *r = static_cast<struct reach *>(arg);

	return fi_cntr_read(r->cntr) >= r->value &&
	       fi_cntr_readerr(r->cntr) >= r->errors;
}

class Cntr : public Case
{
protected:
	Cntr()
	{
		attr.cntrs = 1;
	}

	void count(struct fid_cntr *cntr, uint64_t value, uint64_t errors = 0)
	{
		struct reach r = { cntr, value, errors };

		ASSERT_EQ(0, tdt_wait_until(w, reached, &r))
			<< fi_cntr_read(cntr) << " of " << value;
		EXPECT_EQ(value, fi_cntr_read(cntr));
		EXPECT_EQ(errors, fi_cntr_readerr(cntr));
	}

	void post(struct tdt_ep *at, enum tdt_call call, int tagged, void *buf,
		  size_t len)
	{
		struct tdt_op op = op_of(call, tagged, buf, len);

		op.context = buf;
		if (call < TDT_RECV)
			op.addr = addr(at, rx());
		ASSERT_EQ(0, tdt_post(at, &op));
	}
};

TEST_F(Cntr, CountsSendsAndReceives)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 12: FI_RECV counts tagged and untagged
	 * messages alike. */
	uint64_t total = 0;

	OPEN();
	for (auto *from : senders()) {
		uint64_t sent = 0;

		for (int tagged = 0; tagged < 2; tagged++) {
			for (size_t len : { 0u, 100u, 300000u }) {
				Bytes out(len + 1), in(len + 1);

				OK(post(rx(), TDT_RECV, tagged, in.data(),
					len));
				OK(post(from, TDT_SEND, tagged, out.data(),
					len));
				OK(count(rx()->rx_cntr, ++total));
				OK(count(from->tx_cntr, ++sent));
				ASSERT_EQ(0,
					  tdt_wait(rx(), in.data(), nullptr));
				ASSERT_EQ(0,
					  tdt_wait(from, out.data(), nullptr));
			}
		}
		EXPECT_EQ(0u, fi_cntr_read(from->rx_cntr));
	}
	EXPECT_EQ(0u, fi_cntr_read(rx()->tx_cntr));
}

TEST_F(Cntr, CountsInjectedAndUnreported)
{
	/* fi_cntr(3) 2.1, fi_cntr_open 3: A counter counts every success,
	 * whether or not it has an entry in a queue. */
	uint64_t total = 0;

	attr.tx_bind = attr.rx_bind = FI_SELECTIVE_COMPLETION;
	OPEN();
	for (auto *from : senders()) {
		char out = 'i', in[2] = { 0, 0 };

		OK(post(rx(), TDT_RECV, 0, &in[0], 1));
		OK(post(rx(), TDT_RECV, 0, &in[1], 1));
		OK(post(from, TDT_INJECT, 0, &out, 1));
		OK(post(from, TDT_SEND, 0, &out, 1));
		OK(count(from->tx_cntr, 2));
		total += 2;
		OK(count(rx()->rx_cntr, total));
	}
}

TEST_F(Cntr, FailuresGoToTheErrorValue)
{
	/* fi_cntr(3) 2.1, DESCRIPTION 2: A failure may count at the error
	 * value. */
	uint64_t errors = 0;

	OPEN();
	for (auto *from : senders()) {
		char out[2] = { 1, 2 }, in = 0;

		OK(post(rx(), TDT_RECV, 0, &in, 1));
		OK(post(from, TDT_SEND, 0, out, 2));
		OK(count(rx()->rx_cntr, 0, ++errors));
		OK(failed(rx(), &in, FI_ETRUNC));
		OK(count(from->tx_cntr, 1));
		OK(done(from, out, FI_SEND | FI_MSG));
	}
}

TEST_F(Cntr, CancelledCountsAsError)
{
	/* fi_cntr(3) 2.1, DESCRIPTION 2: An operation that was cancelled counts
	 * as an error. */
	OPEN();
	char in;

	ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
	ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in));
	OK(failed(rx(), &in, FI_ECANCELED));
	OK(count(rx()->rx_cntr, 0, 1));
}

TEST_F(Cntr, AddAndSet)
{
	/* fi_cntr(3) 2.1, fi_cntr_add 1, fi_cntr_adderr 1, fi_cntr_set 1 and
	 * fi_cntr_seterr 1: An application may change both values. */
	OPEN();
	struct fid_cntr *c = rx()->rx_cntr;

	ASSERT_EQ(0, fi_cntr_add(c, 5));
	OK(count(c, 5));
	ASSERT_EQ(0, fi_cntr_adderr(c, 3));
	OK(count(c, 5, 3));
	ASSERT_EQ(0, fi_cntr_set(c, 100));
	ASSERT_EQ(0, fi_cntr_seterr(c, 200));
	OK(count(c, 100, 200));
	ASSERT_EQ(0, fi_cntr_seterr(c, 0));
	ASSERT_EQ(0, fi_cntr_set(c, ~0ull));
	OK(count(c, ~0ull));
	ASSERT_EQ(0, fi_cntr_add(c, 2));
	EXPECT_EQ(1u, fi_cntr_read(c)) << "64 bits wrap around";
}

TEST_F(Cntr, BadAttributesAreRefused)
{
	/* fi_cntr(3) 2.1, fi_cntr_open 13: The flags have to be 0. */
	struct fi_cntr_attr a;
	struct fid_cntr *c = nullptr;

	OPEN();
	memset(&a, 0, sizeof(a));
	a.flags = 1;
	EXPECT_EQ(-FI_EINVAL, fi_cntr_open(rx()->domain, &a, &c, nullptr));
	memset(&a, 0, sizeof(a));
	a.events = static_cast<enum fi_cntr_events>(77);
	EXPECT_NE(0, fi_cntr_open(rx()->domain, &a, &c, nullptr));
	EXPECT_EQ(nullptr, c);
	ASSERT_EQ(0, fi_cntr_open(rx()->domain, nullptr, &c, nullptr));
	EXPECT_EQ(0, fi_close(&c->fid));
}

class CntrWait : public Cntr
{
protected:
	CntrWait()
	{
		attr.cntr_wait = FI_WAIT_UNSPEC;
	}
};

TEST_F(CntrWait, ReturnsAtTheThreshold)
{
	/* fi_cntr(3) 2.1, fi_cntr_wait 1: fi_cntr_wait returns when the value
	 * has reached the threshold. It drives progress itself. */
	uint64_t total = 0;

	OPEN();
	for (auto *from : senders()) {
		char out = 1, in[2];

		/* Connected first: the sender does not progress below. */
		OK(fence(from));
		total++;
		for (auto &b : in)
			OK(post(rx(), TDT_RECV, 0, &b, 1));
		OK(post(from, TDT_SEND, 0, &out, 1));
		OK(post(from, TDT_SEND, 0, &out, 1));
		fi_cq_read(from->tx_cq, nullptr, 0);
		total += 2;
		ASSERT_EQ(0, fi_cntr_wait(rx()->rx_cntr, total, 10000));
		EXPECT_EQ(total, fi_cntr_read(rx()->rx_cntr));
		EXPECT_EQ(0, fi_cntr_wait(rx()->rx_cntr, total, 0));
		for (auto &b : in)
			OK(done(rx(), &b, FI_RECV | FI_MSG));
		OK(done(from, &out, FI_SEND | FI_MSG));
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

TEST_F(CntrWait, TimesOut)
{
	/* fi_cntr(3) 2.1, fi_cntr_wait 3: A wait that times out is
	 * -FI_ETIMEDOUT and leaves the error value alone. */
	OPEN();
	for (int ms : { 0, 1, 30 }) {
		OK(lasts(ms, [&] {
			EXPECT_EQ(-FI_ETIMEDOUT,
				  fi_cntr_wait(rx()->rx_cntr, 1, ms));
		}));
		EXPECT_EQ(0u, fi_cntr_readerr(rx()->rx_cntr));
	}
}

TEST_F(CntrWait, ErrorUnblocks)
{
	/* fi_cntr(3) 2.1, fi_cntr_wait 2: A change of the error value ends
	 * every wait. */
	OPEN();
	for (auto *from : senders()) {
		char out[2] = { 1, 2 }, in = 0;

		OK(fence(from));
		OK(post(rx(), TDT_RECV, 0, &in, 1));
		OK(post(from, TDT_SEND, 0, out, 2));
		fi_cq_read(from->tx_cq, nullptr, 0);
		EXPECT_EQ(-FI_EAVAIL,
			  fi_cntr_wait(rx()->rx_cntr, 1u << 30, 10000));
		OK(failed(rx(), &in, FI_ETRUNC));
		OK(done(from, out, FI_SEND | FI_MSG));
	}
}

} // namespace
