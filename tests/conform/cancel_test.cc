/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_cancel: fi_endpoint(3). */
#include "tests/harness/fixture.h"

namespace
{

/* Parameter: tagged. */
class Cancel : public Case, public testing::WithParamInterface<int>
{
protected:
	uint64_t recv_flags() const
	{
		return FI_RECV | (GetParam() ? FI_TAGGED : FI_MSG);
	}

	void post(char *in, void *context)
	{
		struct tdt_op op = op_of(TDT_RECV, GetParam(), in, 1);

		op.context = context;
		ASSERT_EQ(0, tdt_post(rx(), &op));
	}

	void send(struct tdt_ep *from, char *out)
	{
		struct tdt_op op = op_of(TDT_SEND, GetParam(), out, 1);

		op.addr = addr(from, rx());
		op.context = out;
		ASSERT_EQ(0, tdt_post(from, &op));
		ASSERT_EQ(0, tdt_wait(from, out, nullptr));
	}
};

TEST_P(Cancel, PendingReceiveEndsWithEcanceled)
{
	/* fi_endpoint(3) 2.1, fi_cancel 1: A cancelled operation has an error
	 * entry with FI_ECANCELED. */
	OPEN();
	char in = 0;
	struct tdt_comp c;

	OK(post(&in, &in));
	ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in));
	OK(failed(rx(), &in, FI_ECANCELED, &c));
	EXPECT_TRUE(c.flags & FI_RECV);
	EXPECT_EQ(0u, c.len);
	/* fi_cq(3) 2.1, fi_cq_readerr 3: prov_errno is what fi_cq_strerror has
	 * a text for. */
	EXPECT_STREQ(fi_strerror(FI_ECANCELED),
		     fi_cq_strerror(rx()->rx_cq, c.prov_errno, nullptr, nullptr,
				    0));
}

TEST_P(Cancel, CancelledReceiveTakesNoMessage)
{
	/* fi_endpoint(3) 2.1, fi_cancel 1: A receive that was cancelled has
	 * ended. The message goes to the next receive. */
	OPEN();
	for (auto *from : senders()) {
		char a = 0, b = 0, out = 'x';

		OK(post(&a, &a));
		OK(post(&b, &b));
		ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &a));
		OK(failed(rx(), &a, FI_ECANCELED));
		OK(send(from, &out));
		OK(done(rx(), &b, recv_flags()));
		EXPECT_EQ(0, a);
		EXPECT_EQ('x', b);
	}
}

TEST_P(Cancel, OnlyOneOfEqualContexts)
{
	/* fi_endpoint(3) 2.1, fi_cancel 2: Of several operations with the
	 * context, one is cancelled. */
	OPEN();
	for (auto *from : senders()) {
		char in = 0, out = 'y';

		OK(post(&in, &in));
		OK(post(&in, &in));
		ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in));
		OK(failed(rx(), &in, FI_ECANCELED));
		OK(send(from, &out));
		OK(done(rx(), &in, recv_flags()));
	}
}

TEST_P(Cancel, CompletedOperationKeepsItsStatus)
{
	/* fi_endpoint(3) 2.1, fi_cancel 1: Where the operation had completed
	 * already, its completion stays as it was, and fi_cancel adds no
	 * entry. */
	OPEN();
	for (auto *from : senders()) {
		char in = 0, out = 'z';

		OK(post(&in, &in));
		OK(send(from, &out));
		OK(fence(from));
		fi_cancel(&rx()->ep->fid, &in);
		OK(done(rx(), &in, recv_flags()));
	}
}

TEST_P(Cancel, UnknownContextChangesNothing)
{
	/* fi_endpoint(3) 2.1, fi_cancel 2: The context says which operation is
	 * meant. One that no operation has changes nothing. */
	OPEN();
	char in = 0;

	OK(post(&in, &in));
	fi_cancel(&rx()->ep->fid, &w);
	tdt_settle(w, 5);
	EXPECT_EQ(0u, tdt_pending(w));
	ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in));
	OK(failed(rx(), &in, FI_ECANCELED));
}

TEST_P(Cancel, ManyInTheMiddle)
{
	/* fi_endpoint(3) 2.1, fi_cancel 2: fi_cancel does its work later, but
	 * within a bounded time. */
	const size_t n = 200;

	OPEN();
	for (auto *from : senders()) {
		std::vector<char> in(n, 0);
		char out = 'm';

		for (auto &b : in)
			OK(post(&b, &b));
		for (size_t i = 1; i < n; i += 2)
			ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in[i]));
		for (size_t i = 1; i < n; i += 2)
			OK(failed(rx(), &in[i], FI_ECANCELED));
		for (size_t i = 0; i < n; i += 2) {
			OK(send(from, &out));
			OK(done(rx(), &in[i], recv_flags()));
		}
	}
}

TEST_F(Case, CancelledSendIsNeverHalfSent)
{
	/* fi_endpoint(3) 2.1, fi_cancel 1: A send ends once, by success or by
	 * FI_ECANCELED. The receiver gets the message or not, accordingly. */
	OPEN();
	for (auto *from : senders()) {
		Bytes out = filled(1 << 20, 2), in(1 << 20);
		struct iovec v = iov_of(out.data(), out.size());
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_tsend(from, rx(), &v, 3, &out));
		fi_cancel(&from->ep->fid, &out);
		struct iovec iv = iov_of(in.data(), in.size());
		ASSERT_EQ(0, tdt_trecv(rx(), &iv, 3, 0, &in));
		ASSERT_EQ(0, tdt_wait(from, &out, &c));
		if (c.err) {
			EXPECT_EQ(FI_ECANCELED, c.err);
			ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in));
			OK(failed(rx(), &in, FI_ECANCELED));
		} else {
			OK(done(rx(), &in, FI_RECV | FI_TAGGED));
			EXPECT_EQ(-1, tdt_differs(in.data(), in.size(), 2));
		}
		OK(fence(from));
	}
}

INSTANTIATE_TEST_SUITE_P(Kinds, Cancel, testing::Values(0, 1),
			 [](const testing::TestParamInfo<int> &p) {
				 return p.param ? "tagged" : "msg";
			 });

} // namespace
