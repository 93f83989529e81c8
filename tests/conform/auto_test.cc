/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_PROGRESS_AUTO, fi_domain(3): each side does its part of a transfer while
 * its application computes. "Computes" means here: makes no call.
 */
#include <poll.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"

namespace
{

const size_t sizes[] = { 1, 5000, 100000, 2000000 };

class Auto : public Case, public testing::WithParamInterface<int>
{
protected:
	Auto()
	{
		attr.caps |= FI_RMA;
		attr.threading = static_cast<enum fi_threading>(GetParam());
		attr.progress = FI_PROGRESS_AUTO;
	}

	void ready()
	{
		OPEN();
		ASSERT_EQ(FI_PROGRESS_AUTO,
			  w->info->domain_attr->data_progress);
		ASSERT_EQ(FI_PROGRESS_AUTO,
			  w->info->domain_attr->control_progress);
		ASSERT_EQ(attr.threading, w->info->domain_attr->threading);
		ASSERT_EQ(0, tdt_warm_up(w));
	}

	/* A message that @from sends now arrives behind all it sent before. */
	void arrived(struct tdt_ep *from)
	{
		char out = 1, in = 0;
		struct iovec ov = iov_of(&out, 1), iv = iov_of(&in, 1);

		ASSERT_EQ(0, tdt_trecv(rx(), &iv, 77, 0, &in));
		ASSERT_EQ(0, tdt_tsend(from, rx(), &ov, 77, &out));
		OK(take(rx()->rx_cq, 1));
		OK(take(from->tx_cq, 1));
	}

	/* Take @n completions from @cq, calling nothing else. */
	void take(struct fid_cq *cq, int n)
	{
		const uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		struct fi_cq_tagged_entry e;
		ssize_t ret;

		while (n) {
			ret = fi_cq_read(cq, &e, 1);
			n -= ret == 1;
			ASSERT_TRUE(ret == 1 || ret == -FI_EAGAIN) << ret;
			ASSERT_LT(tdt_now_ms(), end) << n << " to come";
		}
	}
};

TEST_P(Auto, ReceiverComputes)
{
	/* fi_domain(3) 2.1, Progress Models (progress) 7: FI_PROGRESS_AUTO:
	 * operations advance without calls of the application. The sends end
	 * when the data is placed. */
	OK(ready());
	for (auto *from : senders()) {
		for (size_t len : sizes) {
			Bytes out = filled(len, 7), in(len);
			struct tdt_op op =
				op_of(TDT_SENDMSG, 0, out.data(), len);

			op.addr = addr(from, rx());
			op.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
			ASSERT_EQ(0, tdt_recv(rx(), in.data(), len, in.data()));
			ASSERT_EQ(0, tdt_post_once(from, &op));
			OK(take(from->tx_cq, 1));
			OK(take(rx()->rx_cq, 1));
			EXPECT_EQ(-1, tdt_differs(in.data(), len, 7));
		}
	}
}

TEST_P(Auto, SenderComputes)
{
	const int burst = 5;

	OK(ready());
	for (auto *from : senders()) {
		for (size_t len : sizes) {
			Bytes out = filled(len, 9), in[burst];

			for (auto &b : in) {
				b = Bytes(len);
				ASSERT_EQ(0, tdt_recv(rx(), b.data(), len,
						      b.data()));
			}
			for (int i = 0; i < burst; i++) {
				struct tdt_op op =
					op_of(TDT_SEND, 0, out.data(), len);

				op.addr = addr(from, rx());
				ASSERT_EQ(0, tdt_post_once(from, &op));
			}
			OK(take(rx()->rx_cq, burst));
			for (auto &b : in)
				EXPECT_EQ(-1, tdt_differs(b.data(), len, 9));
			OK(take(from->tx_cq, burst));
		}
	}
}

TEST_P(Auto, ReceiverPostsLateAndComputes)
{
	/* The messages are there first; the transfer that the receive starts
	 * goes on. */
	OK(ready());
	for (auto *from : senders()) {
		for (size_t len : sizes) {
			Bytes out = filled(len, 3), in(len);
			struct tdt_op op =
				op_of(TDT_SENDMSG, 0, out.data(), len);

			op.addr = addr(from, rx());
			op.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
			ASSERT_EQ(0, tdt_post_once(from, &op));
			OK(arrived(from));
			ASSERT_EQ(0, tdt_recv(rx(), in.data(), len, in.data()));
			OK(take(from->tx_cq, 1));
			OK(take(rx()->rx_cq, 1));
			EXPECT_EQ(-1, tdt_differs(in.data(), len, 3));
		}
	}
}

TEST_P(Auto, TargetOfOneSidedOperationsComputes)
{
	/* fi_domain(3) 2.1, Progress Models (progress) 12: With manual
	 * progress, a mere target of RMA may have to make calls; with automatic
	 * progress it needs none. */
	const size_t len = sizes[3];
	Bytes region = filled(len, 1);
	struct fid_mr *mr;

	OK(ready());
	ASSERT_EQ(0, fi_mr_reg(rx()->domain, region.data(), len,
			       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 5, 0, &mr,
			       nullptr));
	for (auto *from : senders()) {
		for (size_t n : sizes) {
			Bytes out = filled(n, 2), in(n);

			ASSERT_EQ(0, fi_write(from->ep, out.data(), n, nullptr,
					      addr(from, rx()), 0, 5, &out));
			OK(take(from->tx_cq, 1));
			ASSERT_EQ(0, fi_read(from->ep, in.data(), n, nullptr,
					     addr(from, rx()), 0, 5, &in));
			OK(take(from->tx_cq, 1));
			EXPECT_EQ(-1, tdt_differs(in.data(), n, 2));
		}
	}
	EXPECT_EQ(0, fi_close(&mr->fid));
}

TEST_P(Auto, IdleThreadsSleep)
{
	/* fi_domain(3) 2.1, Progress Models (progress) 9: Progress threads may
	 * have to spin while nothing happens; ours does not. Counted over a
	 * second in which this thread sleeps too. */
	struct rusage a, b;

	OK(ready());
	tdt_settle(w, 50);
	/* First let acknowledgements that wait for a timer go out. */
	poll(nullptr, 0, 200);
	ASSERT_EQ(0, getrusage(RUSAGE_SELF, &a));
	poll(nullptr, 0, 1000);
	ASSERT_EQ(0, getrusage(RUSAGE_SELF, &b));
	EXPECT_LE(b.ru_nvcsw - a.ru_nvcsw, 20);
	timersub(&b.ru_utime, &a.ru_utime, &b.ru_utime);
	EXPECT_EQ(0, b.ru_utime.tv_sec);
	EXPECT_GE(50000, b.ru_utime.tv_usec);
}

TEST_P(Auto, ClosesInTheMiddle)
{
	/* fi_endpoint(3) 2.1, fi_close 3: Endpoints close with operations under
	 * way on both sides. */
	OK(ready());
	Bytes out(sizes[3]), in(sizes[3]);

	for (auto *from : senders()) {
		struct tdt_op op = op_of(TDT_SEND, 0, out.data(), out.size());

		ASSERT_EQ(0, tdt_recv(rx(), in.data(), in.size(), nullptr));
		op.addr = addr(from, rx());
		ASSERT_EQ(0, tdt_post_once(from, &op));
	}
	close();
}

INSTANTIATE_TEST_SUITE_P(Threading, Auto,
			 testing::Values(FI_THREAD_SAFE, FI_THREAD_DOMAIN),
			 [](const testing::TestParamInfo<int> &p) {
				 return p.param == FI_THREAD_SAFE ? "safe" :
								    "domain";
			 });

} // namespace
