/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Capabilities that modify receives and sends, fi_getinfo(3): which receives
 * have a source, buffers for several tagged messages, fences.
 */
#include "parts.h"

namespace
{

class Modifier : public Parts
{
protected:
	Modifier()
	{
		attr.caps = FI_MSG | FI_TAGGED;
	}

	void open_with(uint64_t caps)
	{
		attr.caps |= caps;
		OPEN();
		ASSERT_EQ(0, tdt_warm_up(w));
	}

	ssize_t recv(void *buf, fi_addr_t src)
	{
		return fi_recv(rx()->ep, buf, 1, nullptr, src, buf);
	}

	ssize_t trecv(void *buf, fi_addr_t src)
	{
		return fi_trecv(rx()->ep, buf, 1, nullptr, src, 7, 0, buf);
	}

	void send_byte(struct tdt_ep *from, int tagged, char c)
	{
		char out = c;
		struct iovec v = iov_of(&out, 1);

		if (tagged)
			ASSERT_EQ(0, tdt_tsend(from, rx(), &v, 7, &out));
		else
			ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
	}
};

TEST_F(Modifier, TaggedDirectedReceiveIsForTaggedOnly)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 6: FI_TAGGED_DIRECTED_RECV is
	 * FI_DIRECTED_RECV for tagged receives alone. */
	char msg = 0, self = 0, any = 0;

	ONLY_TANDEM();
	OK(open_with(FI_TAGGED_DIRECTED_RECV));
	for (auto *from : senders()) {
		ASSERT_EQ(0, recv(&msg, addr(rx(), rx())));
		OK(send_byte(from, 0, 'm'));
		ASSERT_EQ(0, tdt_wait(rx(), &msg, nullptr));
		EXPECT_EQ('m', msg) << "the source is ignored";
		ASSERT_EQ(0, trecv(&self, addr(rx(), rx())));
		ASSERT_EQ(0, trecv(&any, addr(rx(), from)));
		OK(send_byte(from, 1, 't'));
		ASSERT_EQ(0, tdt_wait(rx(), &any, nullptr));
		EXPECT_EQ('t', any);
		OK(send_byte(rx(), 1, 's'));
		ASSERT_EQ(0, tdt_wait(rx(), &self, nullptr));
		EXPECT_EQ('s', self);
	}
}

TEST_F(Modifier, ExactReceivesNameTheirSource)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 7: FI_EXACT_DIRECTED_RECV needs a
	 * source, FI_ADDR_UNSPEC is none; it may stand alone. */
	struct fi_context ctx;
	struct fi_msg_tagged m;
	char a = 0, b = 0;

	ONLY_TANDEM();
	/* Without a warm-up: that receives from anybody. */
	attr.caps |= FI_EXACT_DIRECTED_RECV;
	OPEN();
	EXPECT_EQ(-FI_EINVAL, recv(&a, FI_ADDR_UNSPEC));
	EXPECT_EQ(-FI_EINVAL, trecv(&a, FI_ADDR_UNSPEC));
	memset(&m, 0, sizeof(m));
	m.addr = FI_ADDR_UNSPEC;
	m.context = &ctx;
	EXPECT_EQ(-FI_EINVAL, fi_trecvmsg(rx()->ep, &m, FI_PEEK));
	for (auto *from : senders()) {
		ASSERT_EQ(0, trecv(&b, addr(rx(), rx())));
		ASSERT_EQ(0, trecv(&a, addr(rx(), from)));
		OK(send_byte(from, 1, 'x'));
		ASSERT_EQ(0, tdt_wait(rx(), &a, nullptr));
		EXPECT_EQ('x', a);
		ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &b));
		OK(failed(rx(), &b, FI_ECANCELED));
		ASSERT_EQ(0, recv(&a, addr(rx(), from)));
		OK(send_byte(from, 0, 'y'));
		ASSERT_EQ(0, tdt_wait(rx(), &a, nullptr));
		EXPECT_EQ('y', a);
	}
}

TEST_F(Modifier, ExactIsAModifierOfTaggedDirected)
{
	/* fi_getinfo(3) 2.1, CAPABILITIES 7: It may also narrow
	 * FI_DIRECTED_RECV or FI_TAGGED_DIRECTED_RECV. */
	char a = 0;

	ONLY_TANDEM();
	attr.caps |= FI_EXACT_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV;
	OPEN();
	EXPECT_EQ(-FI_EINVAL, trecv(&a, FI_ADDR_UNSPEC));
	ASSERT_EQ(0, recv(&a, FI_ADDR_UNSPEC));
	OK(send_byte(senders()[0], 0, 'u'));
	ASSERT_EQ(0, tdt_wait(rx(), &a, nullptr));
	EXPECT_EQ('u', a);
}

TEST_F(Modifier, TaggedMultiReceive)
{
	/* fi_endpoint(3) 2.1, OPERATION FLAGS 8: FI_TAGGED_MULTI_RECV: messages
	 * fill the buffer one after the other. */
	Bytes buf(256);
	struct iovec v = iov_of(buf.data(), buf.size());
	struct fi_msg_tagged m;
	size_t least = 64;

	ONLY_TANDEM();
	OK(open_with(FI_TAGGED_MULTI_RECV));
	ASSERT_EQ(0, fi_setopt(&rx()->ep->fid, FI_OPT_ENDPOINT,
			       FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
	memset(&m, 0, sizeof(m));
	m.msg_iov = &v;
	m.iov_count = 1;
	m.addr = FI_ADDR_UNSPEC;
	m.tag = 0x100;
	m.ignore = 0xff;
	m.context = buf.data();
	for (auto *from : senders()) {
		Bytes out(50);
		struct iovec ov = iov_of(out.data(), out.size());

		ASSERT_EQ(0, fi_trecvmsg(rx()->ep, &m, FI_MULTI_RECV));
		/* One of another tag goes elsewhere. */
		OK(fence(from));
		for (unsigned i = 0; i < 4; i++) {
			struct tdt_comp c;

			tdt_fill(out.data(), out.size(), i);
			ASSERT_EQ(0,
				  tdt_tsend(from, rx(), &ov, 0x100 + i, &out));
			ASSERT_EQ(0, tdt_wait(from, &out, nullptr));
			ASSERT_EQ(0, tdt_wait(rx(), buf.data(), &c));
			EXPECT_EQ(0, c.err);
			EXPECT_EQ(50u, c.len);
			EXPECT_EQ(0x100u + i, c.tag);
			EXPECT_EQ((void *)(buf.data() + 50 * i), c.buf);
			EXPECT_EQ(-1, tdt_differs(buf.data() + 50 * i, 50, i));
		}
		OK(done(rx(), buf.data(), FI_MULTI_RECV));
	}
}

TEST_F(Modifier, TaggedMultiReceiveNeedsItsCapability)
{
	Bytes buf(64);
	struct iovec v = iov_of(buf.data(), buf.size());
	struct fi_msg_tagged m;

	ONLY_TANDEM();
	attr.caps |= FI_MULTI_RECV;
	OPEN();
	memset(&m, 0, sizeof(m));
	m.msg_iov = &v;
	m.iov_count = 1;
	m.addr = FI_ADDR_UNSPEC;
	EXPECT_EQ(-FI_EBADFLAGS, fi_trecvmsg(rx()->ep, &m, FI_MULTI_RECV));
	EXPECT_EQ(-FI_EBADFLAGS, fi_tsendmsg(rx()->ep, &m, FI_FENCE));
}

TEST_F(Modifier, FencedSendWaitsForWhatWasBefore)
{
	/* fi_rma(3) 2.1, FLAGS 10: FI_FENCE: earlier operations to the same
	 * peer complete first. */
	Bytes big(1 << 20), in(1 << 20);
	struct iovec bv = iov_of(big.data(), big.size());
	struct iovec iv = iov_of(in.data(), in.size());
	struct fi_msg_tagged m;
	char c = 'f', d = 0;
	struct iovec cv = iov_of(&c, 1), dv = iov_of(&d, 1);

	ONLY_TANDEM();
	OK(open_with(FI_FENCE));
	memset(&m, 0, sizeof(m));
	m.msg_iov = &cv;
	m.iov_count = 1;
	m.tag = 2;
	m.context = &c;
	for (auto *from : senders()) {
		/* Nothing is outstanding: it goes. */
		m.addr = addr(from, rx());
		ASSERT_EQ(0, tdt_trecv(rx(), &dv, 2, 0, &d));
		ASSERT_EQ(0, keep_on([&] {
				  return fi_tsendmsg(from->ep, &m, FI_FENCE);
			  }));
		ASSERT_EQ(0, tdt_wait(rx(), &d, nullptr));
		ASSERT_EQ(0, tdt_wait(from, &c, nullptr));
		/* One that nobody receives: not before that has ended. */
		ASSERT_EQ(0, tdt_trecv(rx(), &dv, 2, 0, &d));
		ASSERT_EQ(0, tdt_tsend(from, rx(), &bv, 1, &big));
		for (int i = 0; i < 50; i++) {
			ASSERT_EQ(-FI_EAGAIN,
				  fi_tsendmsg(from->ep, &m, FI_FENCE));
			tdt_progress(w);
		}
		ASSERT_EQ(0, tdt_trecv(rx(), &iv, 1, 0, &in));
		ASSERT_EQ(0, keep_on([&] {
				  return fi_tsendmsg(from->ep, &m, FI_FENCE);
			  }));
		ASSERT_EQ(0, tdt_wait_next(from, 0, nullptr));
		ASSERT_EQ(0, tdt_wait_next(from, 0, nullptr));
		ASSERT_EQ(0, tdt_wait(rx(), &in, nullptr));
		ASSERT_EQ(0, tdt_wait(rx(), &d, nullptr));
	}
}

} // namespace
