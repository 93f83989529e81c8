/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_close in every order, with operations outstanding: all manuals. */

#include "tests/harness/fixture.h"
#include "tests/harness/holdings.h"
#include "tcp/fabric.h"

namespace
{

class Close : public Case
{
protected:
	void completed_arrives(size_t i, size_t len, uint64_t flags);
};

TEST_F(Close, ObjectsInUseAreBusy)
{
	/* fi_cq(3) 2.1, fi_close 2: An object that others still use stays open:
	 * -FI_EBUSY. The pages of counters, vectors, event queues and domains
	 * say the same. */
	attr.cntrs = 1;
	attr.eq = 1;
	OPEN();
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->rx_cq->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->tx_cq->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->rx_cntr->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->tx_cntr->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->av->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->eq->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&rx()->domain->fid));
	EXPECT_EQ(-FI_EBUSY, fi_close(&w->fabric->fid));
	/* They still work. */
	ASSERT_EQ(0, tdt_warm_up(w));
}

TEST_F(Close, QueuesInAnyOrderAfterTheEndpoint)
{
	/* fi_domain(3) 2.1, fi_close 1: A domain is closed when nothing is open
	 * in it: it is the last, the others come in any order. */
	for (int order = 0; order < 24; order++) {
		struct fid *fids[4];
		int left[4] = { 0, 1, 2, 3 }, n = 4, code = order;

		attr.cntrs = 1;
		OPEN();
		ASSERT_EQ(0, tdt_warm_up(w));
		struct tdt_ep *e = rx();
		fids[0] = &e->tx_cq->fid;
		fids[1] = &e->rx_cq->fid;
		fids[2] = &e->av->fid;
		fids[3] = &e->rx_cntr->fid;
		EXPECT_EQ(0, fi_close(&e->ep->fid));
		e->ep = nullptr;
		while (n) {
			int at = code % n;

			code /= n;
			EXPECT_EQ(0, fi_close(fids[left[at]]));
			left[at] = left[--n];
		}
		e->tx_cq = e->rx_cq = nullptr;
		e->av = nullptr;
		e->rx_cntr = nullptr;
		close();
	}
}

TEST_F(Close, EndpointWithPostedReceivesIsSilent)
{
	/* fi_endpoint(3) 2.1, fi_close 3: Operations that are given up have no
	 * completion. */
	struct fi_cq_tagged_entry e;
	std::vector<char> in(100);

	OPEN();
	for (auto &b : in)
		ASSERT_EQ(0, tdt_recv(rx(), &b, 1, &b));
	EXPECT_EQ(0, fi_close(&rx()->ep->fid));
	rx()->ep = nullptr;
	EXPECT_EQ(-FI_EAGAIN, fi_cq_read(rx()->rx_cq, &e, 1));
}

TEST_F(Close, EndpointWithSendsOutstanding)
{
	/* fi_endpoint(3) 2.1, fi_close 3: Closing gives up the operations that
	 * are outstanding. The buffers are the application's again. */
	OPEN();
	for (auto *from : senders()) {
		Bytes out = filled(8 << 20, 1);
		struct iovec v = iov_of(out.data(), out.size());

		ASSERT_EQ(0, tdt_tsend(from, rx(), &v, 1, &out));
		for (int i = 0; i < 3; i++)
			tdt_progress(w);
		EXPECT_EQ(0, fi_close(&from->ep->fid));
		from->ep = nullptr;
		memset(out.data(), 0, out.size());
	}
	tdt_settle(w, 5);
}

TEST_F(Close, ReceiverGoesInTheMiddleOfAMessage)
{
	/* fi_endpoint(3) 2.1, fi_close 3: The operations of an endpoint end
	 * with it: nothing is written to its buffers afterwards. The sender's
	 * operation ends once. */
	for (size_t i = 1; i < attr.eps; i++) {
		auto *in = new Bytes(8 << 20);
		Bytes out = filled(8 << 20, 1);
		struct iovec ov = iov_of(out.data(), out.size());
		struct iovec iv = iov_of(in->data(), in->size());
		struct tdt_comp c;

		OPEN();
		ASSERT_EQ(0, tdt_warm_up(w));
		ASSERT_EQ(0, tdt_trecv(rx(), &iv, 1, 0, in));
		ASSERT_EQ(0, tdt_tsend(ep(i), rx(), &ov, 1, &out));
		for (int k = 0; k < 2; k++)
			tdt_progress(w);
		EXPECT_EQ(0, fi_close(&rx()->ep->fid));
		rx()->ep = nullptr;
		delete in;
		ASSERT_EQ(0, tdt_wait(ep(i), &out, &c));
		if (c.err) {
			EXPECT_EQ(FI_ECONNRESET, c.err) << fi_strerror(c.err);
		}
		rx()->comp_count = 0;
		close();
	}
}

TEST_F(Close, ReceiverGoesWhenItHasTheMessage)
{
	/* fi_cq(3) 2.1, COMPLETION EVENT SEMANTICS 11: FI_TRANSMIT_COMPLETE:
	 * the message arrived, so the send succeeds, although the receiver
	 * closes without a further look. */
	for (size_t i = 1; i < attr.eps; i++) {
		Bytes in(4 << 20), out = filled(in.size(), 1);
		struct iovec ov = iov_of(out.data(), out.size());
		struct iovec iv = iov_of(in.data(), in.size());
		struct tdt_comp c;

		OPEN();
		ASSERT_EQ(0, tdt_trecv(rx(), &iv, 1, 0, &in));
		ASSERT_EQ(0, tdt_tsend(ep(i), rx(), &ov, 1, &out));
		ASSERT_EQ(0, tdt_wait(rx(), &in, &c));
		EXPECT_EQ(0, c.err) << fi_strerror(c.err);
		EXPECT_EQ(0, fi_close(&rx()->ep->fid));
		rx()->ep = nullptr;
		ASSERT_EQ(0, tdt_wait(ep(i), &out, &c));
		EXPECT_EQ(0, c.err) << fi_strerror(c.err);
		EXPECT_EQ(in, out);
		close();
	}
}

void Close::completed_arrives(size_t i, size_t len, uint64_t flags)
{
	enum { COUNT = 8 };
	std::vector<Bytes> in(COUNT, Bytes(len)), out;
	struct fi_cq_tagged_entry e;
	size_t ended = 0;

	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	struct tdt_ep *from = ep(i);
	for (size_t k = 0; k < COUNT; k++) {
		char back = 'b';
		struct tdt_op op = op_of(TDT_INJECT, 0, &back, 1);

		op.addr = addr(rx(), from);
		ASSERT_EQ(0, tdt_post_once(rx(), &op));
		ASSERT_EQ(0, tdt_recv(rx(), in[k].data(), len, &in[k]));
		out.push_back(filled(len, static_cast<uint32_t>(k)));
	}
	for (auto &b : out) {
		struct tdt_op op = op_of(TDT_SENDMSG, 0, b.data(), len);

		op.flags = flags;
		op.addr = addr(from, rx());
		op.context = &b;
		ASSERT_EQ(0, tdt_post_once(from, &op));
	}
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	while (ended < COUNT && tdt_now_ms() < end) {
		ssize_t n = fi_cq_read(from->tx_cq, &e, 1);

		ASSERT_TRUE(n == 1 || n == -FI_EAGAIN) << n;
		ended += n == 1;
	}
	ASSERT_EQ(static_cast<size_t>(COUNT), ended);
	std::vector<Bytes> sent = out;
	EXPECT_EQ(0, fi_close(&from->ep->fid));
	from->ep = nullptr;
	for (auto &b : out)
		std::fill(b.begin(), b.end(), 0);
	for (size_t k = 0; k < COUNT; k++) {
		OK(done(rx(), &in[k], FI_RECV | FI_MSG));
		EXPECT_EQ(sent[k], in[k]);
	}
	close();
}

TEST_F(Close, WhatCompletedArrivesAlthoughTheSenderIsGone)
{
	/* fi_cq(3) 2.1, COMPLETION EVENT SEMANTICS 11: FI_TRANSMIT_COMPLETE:
	 * the message depends on nothing here any more. The receiver makes no
	 * progress until the sender is closed, so the message is unread
	 * there. With FI_INJECT_COMPLETE the buffer is the application's
	 * again, and fi_tandem(7), LIMITS: fi_close(3) waits for what was
	 * injected. */
	const uint64_t inject = FI_INJECT_COMPLETE | FI_COMPLETION;

	for (size_t i = 1; i < attr.eps; i++) {
		OK(completed_arrives(i, 4000, 0));
		OK(completed_arrives(i, 100, inject));
		OK(completed_arrives(i, 4000, inject));
	}
}

TEST_F(Close, NothingIsLeft)
{
	/* fi_close: all resources are released: no descriptor stays open. */
	size_t before = 0;

	for (int i = 0; i < 20; i++) {
		attr.cntrs = 1;
		attr.eq = 1;
		OPEN();
		ASSERT_EQ(0, tdt_warm_up(w));
		close();
		if (i == 1)
			before = tdt_open_files();
	}
	EXPECT_EQ(before, tdt_open_files());
}

TEST_F(Close, UnusedObjectsClose)
{
	/* fi_endpoint(3) 2.1, fi_close 1: An endpoint that was never enabled
	 * closes. */
	attr.no_enable = 1;
	attr.cntrs = 1;
	attr.eq = 1;
	OPEN();
}

TEST_F(Close, OthersGoOn)
{
	/* fi_endpoint(3) 2.1, fi_close 3: Closing an endpoint concerns its own
	 * operations. */
	attr.eps = 4;
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	ASSERT_EQ(0, tdt_ep_close(ep(2)));
	w->eps[2].rx_cq = w->eps[2].tx_cq = nullptr;
	for (size_t i : { 1u, 3u }) {
		char out = 'g', in = 0;

		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, tdt_send(ep(i), rx(), &out, 1, &out));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(done(ep(i), &out, FI_SEND | FI_MSG));
	}
}

} // namespace
