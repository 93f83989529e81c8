/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_PEEK, FI_CLAIM and FI_DISCARD: fi_tagged(3), section FLAGS. */
#include "tests/harness/fixture.h"

namespace
{

const uint64_t TAG = 0xabc, DATA = 0x1122334455667788;

class Tagged : public Case, public testing::WithParamInterface<size_t>
{
protected:
	struct fi_context2 ctx;
	Bytes out;

	void arrive(struct tdt_ep *from, uint64_t tag)
	{
		struct tdt_op op;

		out = filled(GetParam(), 9);
		op = op_of(TDT_SENDDATA, 1, out.data(), out.size());
		op.addr = addr(from, rx());
		op.tag = tag;
		op.data = DATA;
		op.context = &out;
		ASSERT_EQ(0, tdt_post(from, &op));
		OK(fence(from));
	}

	void recvmsg(uint64_t flags, void *buf, size_t len, uint64_t tag = TAG)
	{
		struct tdt_op op = op_of(TDT_RECVMSG, 1, buf, len);

		op.tag = tag;
		op.flags = flags;
		op.context = &ctx;
		ASSERT_EQ(0, tdt_post(rx(), &op));
	}

	void sent(struct tdt_ep *from)
	{
		OK(done(from, &out, FI_SEND | FI_TAGGED));
	}

	/* The metadata a peek reports. */
	void seen(struct tdt_ep *from)
	{
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_wait(rx(), &ctx, &c));
		ASSERT_EQ(0, c.err) << fi_strerror(c.err);
		EXPECT_EQ(out.size(), c.len);
		EXPECT_EQ(TAG, c.tag);
		EXPECT_TRUE(c.flags & FI_REMOTE_CQ_DATA);
		EXPECT_TRUE(c.flags & FI_TAGGED);
		EXPECT_EQ(DATA, c.data);
		EXPECT_EQ(addr(rx(), from), c.src);
	}

	void taken(uint64_t flags)
	{
		Guarded in(GetParam());
		struct tdt_comp c;

		OK(recvmsg(flags, in.data(), in.size()));
		ASSERT_EQ(0, tdt_wait(rx(), &ctx, &c));
		ASSERT_EQ(0, c.err) << fi_strerror(c.err);
		EXPECT_EQ(GetParam(), c.len);
		EXPECT_EQ(-1, tdt_differs(in.data(), in.size(), 9));
		EXPECT_TRUE(in.intact());
	}

	void nothing_there(uint64_t flags = FI_PEEK)
	{
		OK(recvmsg(flags, nullptr, 0));
		OK(failed(rx(), &ctx, FI_ENOMSG));
	}
};

TEST_P(Tagged, PeekOfNothingIsEnomsg)
{
	/* fi_tagged(3) 2.1, FLAGS 15: A peek that finds nothing has an error
	 * entry with FI_ENOMSG. */
	OPEN();
	OK(nothing_there());
	for (auto *from : senders()) {
		OK(arrive(from, TAG + 1));
		OK(nothing_there());
		OK(nothing_there(FI_PEEK | FI_CLAIM));
		OK(nothing_there(FI_PEEK | FI_DISCARD));
		OK(recvmsg(FI_PEEK | FI_DISCARD, nullptr, 0, TAG + 1));
		ASSERT_EQ(0, tdt_wait(rx(), &ctx, nullptr));
		OK(sent(from));
	}
}

/* One peek, and what it found: 0, or a positive fi_errno. */
int once_peeked(struct tdt_ep *at, struct fi_context2 *ctx, uint64_t tag)
{
	struct fi_cq_err_entry err;
	struct fi_cq_tagged_entry e;
	struct fi_msg_tagged m;
	ssize_t ret;

	memset(&m, 0, sizeof(m));
	memset(&err, 0, sizeof(err));
	m.addr = FI_ADDR_UNSPEC;
	m.tag = tag;
	m.context = ctx;
	ret = fi_trecvmsg(at->ep, &m, FI_PEEK);
	if (ret)
		return (int)-ret;
	ret = fi_cq_read(at->rx_cq, &e, 1);
	if (ret == 1)
		return 0;
	if (ret != -FI_EAVAIL)
		return (int)-ret;
	ret = fi_cq_readerr(at->rx_cq, &err, 0);
	return ret == 1 ? err.err : (int)-ret;
}

TEST_P(Tagged, ALoopOfPeeksFindsWhatArrives)
{
	/* fi_domain(3) 2.1, Progress Models (progress) 10: FI_PROGRESS_MANUAL:
	 * progress is made when an application reads a completion queue. Here
	 * each read ends with the error of a peek, and nothing else is ever
	 * called on the receiver. */
	attr.format = FI_CQ_FORMAT_TAGGED;
	OPEN();
	for (auto *from : senders()) {
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		struct tdt_op op;
		int err = FI_ENOMSG;

		ASSERT_EQ(0, tdt_warm_up(w));
		out = filled(GetParam(), 9);
		op = op_of(TDT_SEND, 1, out.data(), out.size());
		op.addr = addr(from, rx());
		op.tag = TAG;
		op.context = &out;
		ASSERT_EQ(0, tdt_post_once(from, &op));
		while (err == FI_ENOMSG && tdt_now_ms() < end) {
			err = once_peeked(rx(), &ctx, TAG);
			fi_cq_read(from->tx_cq, nullptr, 0);
		}
		EXPECT_EQ(0, err) << fi_strerror(err);
		OK(taken(0));
		OK(sent(from));
	}
}

TEST_P(Tagged, PeekReportsAndLeavesTheMessage)
{
	/* fi_tagged(3) 2.1, FLAGS 16: The entry of a peek describes the
	 * message: length, flags, data, tag, source. */
	OPEN();
	for (auto *from : senders()) {
		OK(arrive(from, TAG));
		for (int i = 0; i < 2; i++) {
			OK(recvmsg(FI_PEEK, nullptr, 0));
			OK(seen(from));
		}
		OK(taken(0));
		OK(sent(from));
		OK(nothing_there());
	}
}

TEST_P(Tagged, ClaimedMessageIsForItsContextOnly)
{
	/* fi_tagged(3) 2.1, FLAGS 17: A claimed message is had by a receive
	 * with FI_CLAIM alone. */
	OPEN();
	for (auto *from : senders()) {
		char other = 0;
		struct iovec v = iov_of(&other, 1);

		OK(arrive(from, TAG));
		OK(recvmsg(FI_PEEK | FI_CLAIM, nullptr, 0));
		OK(seen(from));
		ASSERT_EQ(0, tdt_trecv(rx(), &v, TAG, 0, &other));
		tdt_settle(w, 20);
		EXPECT_EQ(0u, rx()->comp_count) << "claimed, yet received";
		OK(taken(FI_CLAIM));
		ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &other));
		OK(failed(rx(), &other, FI_ECANCELED));
		OK(sent(from));
	}
}

TEST_P(Tagged, PeekDiscardDropsTheMessage)
{
	/* fi_tagged(3) 2.1, FLAGS 19: FI_DISCARD: the message is dropped. */
	OPEN();
	for (auto *from : senders()) {
		OK(arrive(from, TAG));
		OK(recvmsg(FI_PEEK | FI_DISCARD, nullptr, 0));
		OK(seen(from));
		OK(nothing_there());
		OK(sent(from));
		OK(arrive(from, TAG));
		OK(taken(0));
		OK(sent(from));
	}
}

TEST_P(Tagged, ClaimDiscardDropsTheMessage)
{
	/* fi_tagged(3) 2.1, FLAGS 19: FI_DISCARD with FI_CLAIM drops a message
	 * that was claimed. */
	OPEN();
	for (auto *from : senders()) {
		struct tdt_comp c;

		OK(arrive(from, TAG));
		OK(recvmsg(FI_PEEK | FI_CLAIM, nullptr, 0));
		OK(seen(from));
		OK(recvmsg(FI_CLAIM | FI_DISCARD, nullptr, 0));
		ASSERT_EQ(0, tdt_wait(rx(), &ctx, &c));
		EXPECT_EQ(0, c.err) << fi_strerror(c.err);
		OK(sent(from));
		OK(arrive(from, TAG));
		OK(taken(0));
		OK(sent(from));
	}
}

TEST_P(Tagged, PeekTakesTheOldestMatch)
{
	/* fi_tagged(3) 2.1, DESCRIPTION 2: Messages are found in the order of
	 * their sends. */
	OPEN();
	for (auto *from : senders()) {
		char second = 0;
		struct iovec v = iov_of(&second, 0);

		OK(arrive(from, TAG));
		ASSERT_EQ(0, tdt_tsend(from, rx(), &v, TAG, &second));
		OK(fence(from));
		OK(recvmsg(FI_PEEK, nullptr, 0));
		OK(seen(from));
		OK(taken(0));
		OK(sent(from));
		ASSERT_EQ(0, tdt_trecv(rx(), &v, TAG, 0, &second));
		OK(done(rx(), &second, FI_RECV | FI_TAGGED));
		OK(done(from, &second, FI_SEND | FI_TAGGED));
	}
}

/* In line, eager, and fetched on match; the last completes when taken. */
INSTANTIATE_TEST_SUITE_P(Sizes, Tagged, testing::Values(0, 40, 4000, 60000),
			 testing::PrintToStringParamName());

} // namespace
