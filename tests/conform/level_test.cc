/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion levels, fi_cq(3) "Completion semantics", and FI_MORE: what has
 * happened when a send completes.
 */
#include "tests/harness/fixture.h"

namespace
{

class Level : public Case
{
protected:
	void post(struct tdt_ep *from, void *buf, size_t len, uint64_t flags,
		  void *context)
	{
		struct tdt_op op = op_of(TDT_SENDMSG, 1, buf, len);

		op.addr = addr(from, rx());
		op.tag = 1;
		op.flags = flags | FI_COMPLETION;
		op.context = context;
		ASSERT_EQ(0, tdt_post(from, &op));
	}

	void receive(void *buf, size_t len, void *context)
	{
		struct iovec v = iov_of(buf, len);

		ASSERT_EQ(0, tdt_trecv(rx(), &v, 1, 0, context));
	}
};

const uint64_t levels[] = { FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
			    FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE };

TEST_F(Level, EmptyMessagesReachTheirLevel)
{
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		for (uint64_t level : levels) {
			for (int late = 0; late < 2; late++) {
				char in, out;

				if (!late) {
					OK(receive(nullptr, 0, &in));
				}
				OK(post(from, nullptr, 0, level, &out));
				if (late) {
					OK(fence(from));
					OK(receive(nullptr, 0, &in));
				}
				OK(done(rx(), &in, FI_RECV | FI_TAGGED));
				OK(done(from, &out, FI_SEND | FI_TAGGED));
			}
		}
	}
}

class LevelOfDelivery : public Level,
			public testing::WithParamInterface<uint64_t>
{
};

TEST_P(LevelOfDelivery, DeliveredMeansInTheBuffer)
{
	/* fi_cq(3) 2.1, COMPLETION EVENT SEMANTICS 15: FI_DELIVERY_COMPLETE:
	 * not before a receive was posted, and the bytes are in its buffer when
	 * the send completes. COMPLETION EVENT SEMANTICS 18: FI_MATCH_COMPLETE:
	 * the message has met its buffer; fi_tandem(7): and is there. */
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		for (size_t len : { (size_t)1, (size_t)48, (size_t)3000,
				    (size_t)60000, (size_t)(1 << 20) }) {
			Bytes out = filled(len, 7), in(len);

			OK(post(from, out.data(), len, GetParam(), &out));
			OK(fence(from));
			tdt_settle(w, 2);
			EXPECT_EQ(0u, tdt_pending(w)) << len;
			OK(receive(in.data(), len, &in));
			OK(done(from, &out, FI_SEND | FI_TAGGED));
			EXPECT_EQ(-1, tdt_differs(in.data(), len, 7)) << len;
			OK(done(rx(), &in, FI_RECV | FI_TAGGED));
		}
	}
}

TEST_P(LevelOfDelivery, ADiscardedMessageWaitsForNobody)
{
	/* fi_tagged(3) 2.1, FLAGS 10: FI_MATCH_COMPLETE: also a message that
	 * the target drops. FLAGS 19: FI_DISCARD. */
	struct fi_msg_tagged m;
	struct tdt_comp c;
	char ctx;

	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		for (size_t len : { (size_t)1, (size_t)(1 << 20) }) {
			Bytes out = filled(len, 7);

			OK(post(from, out.data(), len, GetParam(), &out));
			OK(fence(from));
			memset(&m, 0, sizeof(m));
			m.addr = FI_ADDR_UNSPEC;
			m.tag = 1;
			m.context = &ctx;
			ASSERT_EQ(0, fi_trecvmsg(rx()->ep, &m,
						 FI_PEEK | FI_DISCARD));
			ASSERT_EQ(0, tdt_wait(rx(), &ctx, &c));
			EXPECT_EQ(0, c.err);
			OK(done(from, &out, FI_SEND | FI_TAGGED));
		}
	}
}

TEST_P(LevelOfDelivery, DefaultIsThatOfTheEndpoint)
{
	/* fi_endpoint(3) 2.1, OPERATION FLAGS 1: op_flags, for calls without
	 * flags of their own. */
	attr.tx_op_flags = GetParam();
	OPEN();
	EXPECT_EQ(GetParam(), rx()->info->tx_attr->op_flags & GetParam());
	for (auto *from : senders()) {
		char out = 'd', in = 0;
		struct iovec v = iov_of(&out, 1);

		ASSERT_EQ(0, tdt_tsend(from, rx(), &v, 1, &out));
		tdt_settle(w, 20);
		EXPECT_EQ(0u, tdt_pending(w));
		OK(receive(&in, 1, &in));
		OK(done(from, &out, FI_SEND | FI_TAGGED));
		EXPECT_EQ('d', in);
		OK(done(rx(), &in, FI_RECV | FI_TAGGED));
	}
}

INSTANTIATE_TEST_SUITE_P(Both, LevelOfDelivery,
			 testing::Values(FI_DELIVERY_COMPLETE,
					 FI_MATCH_COMPLETE),
			 [](const testing::TestParamInfo<uint64_t> &p) {
				 return p.param == FI_MATCH_COMPLETE ?
						"match" :
						"delivery";
			 });

TEST_F(Level, TheReceiverMayTurnAwayOnceItHasItsMessage)
{
	/* fi_domain(3) 2.1, Progress Models (progress) 10 and 12: With manual
	 * progress a transfer needs calls of both sides until it is done at
	 * either. A receiver whose entry was read owes none for that
	 * message. */
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		for (size_t len : { (size_t)0, (size_t)48, (size_t)3000,
				    (size_t)60000, (size_t)(1 << 20) }) {
			for (int late = 0; late < 2; late++) {
				Bytes out = filled(len + 1, 7), in(len + 1);
				uint64_t end = tdt_now_ms() + tdt_deadline_ms();
				struct fi_cq_tagged_entry e;
				ssize_t sent = -FI_EAGAIN, got = -FI_EAGAIN;

				if (!late) {
					OK(receive(in.data(), len, &in));
				}
				OK(post(from, out.data(), len,
					FI_DELIVERY_COMPLETE, &out));
				if (late) {
					OK(fence(from));
					OK(receive(in.data(), len, &in));
				}
				while ((got < 0 || sent < 0) &&
				       tdt_now_ms() < end) {
					if (got < 0)
						got = fi_cq_read(rx()->rx_cq,
								 &e, 1);
					if (sent < 0)
						sent = fi_cq_read(from->tx_cq,
								  &e, 1);
				}
				EXPECT_EQ(1, got) << len;
				ASSERT_EQ(1, sent) << len << " late " << late;
			}
		}
	}
}

TEST_F(Level, LowerLevelsDoNotWaitForAReceive)
{
	/* FI_TRANSMIT_COMPLETE: "no longer dependent on local resources";
	 * FI_INJECT_COMPLETE: the buffer may be reused. */
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		for (uint64_t level :
		     { FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE }) {
			for (size_t len :
			     { (size_t)1, (size_t)200, (size_t)3000 }) {
				Bytes out = filled(len, 8), in(len);

				OK(post(from, out.data(), len, level, &out));
				OK(done(from, &out, FI_SEND | FI_TAGGED));
				memset(out.data(), 0, len);
				OK(receive(in.data(), len, &in));
				OK(done(rx(), &in, FI_RECV | FI_TAGGED));
				EXPECT_EQ(-1, tdt_differs(in.data(), len, 8));
			}
		}
	}
}

TEST_F(Level, DefaultOfTheEndpointHoldsForInject)
{
	/* fi_cntr(3) 2.1, DESCRIPTION 3: Operations count when they complete.
	 * An inject that has to be delivered does not before a receive was
	 * posted. */
	attr.tx_op_flags = FI_DELIVERY_COMPLETE;
	attr.cntrs = 1;
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		char out = 'i', in = 0;
		struct tdt_op op = op_of(TDT_INJECT, 1, &out, 1);
		uint64_t before = fi_cntr_read(from->tx_cntr);

		op.addr = addr(from, rx());
		op.tag = 1;
		ASSERT_EQ(0, tdt_post(from, &op));
		OK(fence(from));
		EXPECT_EQ(before + 1, fi_cntr_read(from->tx_cntr));
		OK(receive(&in, 1, &in));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED));
		while (fi_cntr_read(from->tx_cntr) < before + 2)
			tdt_progress(w);
		EXPECT_EQ('i', in);
	}
}

TEST_F(Level, MoreGathersAndKeepsNothingBack)
{
	/* FI_MORE: "the application has additional requests to post": a hint,
	 * so messages arrive in order, also when no other one follows. */
	const size_t n = 40;

	OPEN();
	for (auto *from : senders()) {
		for (int last = 0; last < 2; last++) {
			std::vector<char> in(n, 0), out(n);

			for (size_t i = 0; i < n; i++) {
				out[i] = (char)('A' + i);
				OK(receive(&in[i], 1, &in[i]));
			}
			for (size_t i = 0; i < n; i++)
				OK(post(from, &out[i], 1,
					last && i + 1 == n ? 0 : FI_MORE,
					&out[i]));
			for (size_t i = 0; i < n; i++) {
				OK(done(rx(), &in[i], FI_RECV | FI_TAGGED));
				EXPECT_EQ(out[i], in[i]);
				OK(done(from, &out[i], FI_SEND | FI_TAGGED));
			}
		}
	}
}

} // namespace
