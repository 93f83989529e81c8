/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading completions: fi_cq(3). */
#include "tests/harness/fixture.h"

namespace
{

class Format : public Case, public testing::WithParamInterface<int>
{
};

TEST_P(Format, ReportsItsFields)
{
	/* fi_cq(3) 2.1, fi_cq_open 6: The format of a queue decides what its
	 * entries contain. */
	attr.format = static_cast<enum fi_cq_format>(GetParam());
	OPEN();
	for (auto *from : senders()) {
		Bytes out = filled(33, 1), in(50);
		struct tdt_op s = op_of(TDT_SENDDATA, 1, out.data(), 33);
		struct tdt_op r = op_of(TDT_RECV, 1, in.data(), 50);
		struct tdt_comp c;

		s.addr = addr(from, rx());
		s.tag = r.tag = 0x51;
		s.data = 0x99;
		s.context = &out;
		r.context = &in;
		ASSERT_EQ(0, tdt_post(rx(), &r));
		ASSERT_EQ(0, tdt_post(from, &s));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA,
			&c));
		EXPECT_EQ(&in, c.context);
		if (attr.format >= FI_CQ_FORMAT_MSG) {
			EXPECT_EQ(33u, c.len);
		}
		if (attr.format >= FI_CQ_FORMAT_DATA) {
			EXPECT_EQ(0x99u, c.data);
		}
		if (attr.format >= FI_CQ_FORMAT_TAGGED) {
			EXPECT_EQ(0x51u, c.tag);
		}
		EXPECT_EQ(addr(rx(), from), c.src);
		OK(done(from, &out, FI_SEND | FI_TAGGED));
	}
}

TEST_P(Format, ManyEntriesInOneRead)
{
	/* fi_cq(3) 2.1, fi_cq_read 1: One call may read several entries. Each
	 * has the format's size. */
	const size_t n = 100;

	attr.format = static_cast<enum fi_cq_format>(GetParam());
	OPEN();
	for (auto *from : senders()) {
		std::vector<char> in(n, 0), out(n, 'a');

		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(0, tdt_recv(rx(), &in[i], 1, &in[i]));
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(0, tdt_send(from, rx(), &out[i], 1, &out[i]));
		for (size_t i = 0; i < n; i++) {
			struct tdt_comp c;

			ASSERT_EQ(0, tdt_wait_next(rx(), 1, &c));
			EXPECT_EQ(&in[i], c.context);
			ASSERT_EQ(0, tdt_wait(from, &out[i], nullptr));
		}
	}
}

INSTANTIATE_TEST_SUITE_P(Formats, Format,
			 testing::Values(FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG,
					 FI_CQ_FORMAT_DATA,
					 FI_CQ_FORMAT_TAGGED));

class Cq : public Case
{
protected:
	void message(struct tdt_ep *from, char *out, char *in)
	{
		ASSERT_EQ(0, tdt_recv(rx(), in, 1, in));
		ASSERT_EQ(0, tdt_send(from, rx(), out, 1, out));
	}
};

TEST_F(Cq, UnspecifiedFormatIsChosen)
{
	/* fi_cq(3) 2.1, fi_cq_open 7: FI_CQ_FORMAT_UNSPEC: the provider
	 * chooses. */
	struct fi_cq_attr a;
	struct fid_cq *cq;

	OPEN();
	memset(&a, 0, sizeof(a));
	ASSERT_EQ(0, fi_cq_open(rx()->domain, &a, &cq, this));
	EXPECT_EQ(this, cq->fid.context);
	EXPECT_EQ(0, fi_close(&cq->fid));
}

TEST_F(Cq, SizeIsAMinimum)
{
	/* fi_cq(3) 2.1, fi_cq_open 3: size is the least number of entries. */
	struct fi_cq_attr a;
	struct fid_cq *cq;

	OPEN();
	for (size_t size : { 1u, 3u, 1000u, 100000u }) {
		memset(&a, 0, sizeof(a));
		a.size = size;
		ASSERT_EQ(0, fi_cq_open(rx()->domain, &a, &cq, nullptr));
		EXPECT_GE(a.size, size);
		EXPECT_EQ(0, fi_close(&cq->fid));
	}
}

TEST_F(Cq, EmptyIsEagain)
{
	/* fi_cq(3) 2.1, fi_cq_read / fi_cq_readfrom 1: An empty queue is
	 * -FI_EAGAIN, and so is one without error entries for fi_cq_readerr. */
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	fi_addr_t src;

	OPEN();
	memset(&err, 0, sizeof(err));
	EXPECT_EQ(-FI_EAGAIN, fi_cq_read(rx()->rx_cq, &e, 1));
	EXPECT_EQ(-FI_EAGAIN, fi_cq_readfrom(rx()->rx_cq, &e, 1, &src));
	EXPECT_EQ(-FI_EAGAIN, fi_cq_readerr(rx()->rx_cq, &err, 0));
}

TEST_F(Cq, CountZeroDrivesProgress)
{
	/* fi_cq(3) 2.1, fi_cq_read 1: A read of no entries drives progress. */
	OPEN();
	for (auto *from : senders()) {
		struct fi_cq_tagged_entry e;
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		char out = 'p', in = 0;
		ssize_t ret = 0;

		OK(message(from, &out, &in));
		while (in != 'p' && tdt_now_ms() < end) {
			fi_cq_read(rx()->rx_cq, nullptr, 0);
			fi_cq_read(from->tx_cq, nullptr, 0);
		}
		EXPECT_EQ('p', in);
		while ((ret = fi_cq_read(rx()->rx_cq, &e, 1)) == -FI_EAGAIN &&
		       tdt_now_ms() < end)
			;
		EXPECT_EQ(1, ret);
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

TEST_F(Cq, SendAndReceiveMayShareACq)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 4: The flags of the binding say which
	 * operations a queue is for. */
	attr.one_cq = 1;
	OPEN();
	for (auto *from : senders()) {
		char out = 's', in = 0;

		OK(message(from, &out, &in));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

TEST_F(Cq, ErrorStandsInItsPlace)
{
	/* fi_cq(3) 2.1, fi_cq_read 2: While an error entry waits, fi_cq_read is
	 * -FI_EAVAIL. */
	struct fi_cq_err_entry err;
	struct fi_cq_tagged_entry e;
	char in = 0;

	OPEN();
	ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
	ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in));
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();
	ssize_t ret;
	while ((ret = fi_cq_read(rx()->rx_cq, &e, 1)) == -FI_EAGAIN &&
	       tdt_now_ms() < end)
		;
	EXPECT_EQ(-FI_EAVAIL, ret);
	EXPECT_EQ(-FI_EAVAIL, fi_cq_read(rx()->rx_cq, &e, 1));
	memset(&err, 0, sizeof(err));
	ASSERT_EQ(1, fi_cq_readerr(rx()->rx_cq, &err, 0));
	EXPECT_EQ(FI_ECANCELED, err.err);
	EXPECT_EQ(&in, err.op_context);
	EXPECT_EQ(-FI_EAGAIN, fi_cq_read(rx()->rx_cq, &e, 1));
	EXPECT_EQ(-FI_EAGAIN, fi_cq_readerr(rx()->rx_cq, &err, 0));
}

TEST_F(Cq, StrerrorIsAString)
{
	/* fi_cq(3) 2.1, fi_cq_strerror 1: The provider's error has a text. */
	char buf[8];

	OPEN();
	for (int e : { 0, 1, -1, 99999 }) {
		const char *s =
			fi_cq_strerror(rx()->rx_cq, e, nullptr, nullptr, 0);

		ASSERT_NE(nullptr, s);
		memset(buf, '#', sizeof(buf));
		s = fi_cq_strerror(rx()->rx_cq, e, nullptr, buf, 5);
		ASSERT_NE(nullptr, s);
		EXPECT_EQ('#', buf[5]);
		EXPECT_NE(nullptr, memchr(buf, 0, 5));
	}
}

TEST_F(Cq, NothingIsLostWhenNobodyReads)
{
	/* fi_domain(3) 2.1, Resource Management (resource_mgmt) 11:
	 * FI_RM_ENABLED: a CQ that is never read refuses operations
	 * (-FI_EAGAIN) or keeps their completions; it loses none. */
	attr.cq_size = 8;
	OPEN();
	for (auto *from : senders()) {
		const size_t n = 300;
		std::vector<char> in(n, 0), out(n, 'o');
		size_t posted = 0, sent = 0;

		for (size_t i = 0; i < n; i++) {
			if (fi_recv(rx()->ep, &in[i], 1, nullptr,
				    FI_ADDR_UNSPEC, &in[i]))
				break;
			posted++;
		}
		ASSERT_NE(0u, posted);
		for (size_t i = 0; i < posted; i++) {
			ssize_t ret = fi_send(from->ep, &out[i], 1, nullptr,
					      addr(from, rx()), &out[i]);

			if (ret) {
				ASSERT_EQ(-FI_EAGAIN, ret);
				break;
			}
			sent++;
			fi_cq_read(rx()->rx_cq, nullptr, 0);
		}
		for (size_t i = 0; i < sent; i++) {
			OK(done(rx(), &in[i], FI_RECV | FI_MSG));
			OK(done(from, &out[i], FI_SEND | FI_MSG));
		}
		for (size_t i = sent; i < posted; i++) {
			ASSERT_EQ(0, fi_cancel(&rx()->ep->fid, &in[i]));
			OK(failed(rx(), &in[i], FI_ECANCELED));
		}
	}
}

/* Selective completion: fi_endpoint(3) 2.1, fi_ep_bind 6. */
class Selective : public Case
{
protected:
	Selective()
	{
		attr.tx_bind = FI_SELECTIVE_COMPLETION;
		attr.rx_bind = FI_SELECTIVE_COMPLETION;
	}

	void post(struct tdt_ep *at, enum tdt_call call, char *buf,
		  uint64_t flags)
	{
		struct tdt_op op = op_of(call, 0, buf, 1);

		op.flags = flags;
		op.context = buf;
		if (call == TDT_SENDMSG || call == TDT_SEND)
			op.addr = addr(at, rx());
		ASSERT_EQ(0, tdt_post(at, &op));
	}
};

TEST_F(Selective, OnlyMarkedOperationsComplete)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 6: With FI_SELECTIVE_COMPLETION a
	 * success has an entry only where FI_COMPLETION was set. */
	OPEN();
	for (auto *from : senders()) {
		char out[4] = { 'a', 'b', 'c', 'd' }, in[4] = { 0, 0, 0, 0 };

		OK(post(rx(), TDT_RECVMSG, &in[0], 0));
		OK(post(rx(), TDT_RECV, &in[1], 0));
		OK(post(rx(), TDT_RECVMSG, &in[2], FI_COMPLETION));
		OK(post(rx(), TDT_RECVMSG, &in[3], FI_COMPLETION));
		OK(post(from, TDT_SENDMSG, &out[0], FI_COMPLETION));
		OK(post(from, TDT_SENDMSG, &out[1], 0));
		OK(post(from, TDT_SEND, &out[2], 0));
		OK(post(from, TDT_SENDMSG, &out[3], FI_COMPLETION));
		OK(done(rx(), &in[2], FI_RECV | FI_MSG));
		OK(done(rx(), &in[3], FI_RECV | FI_MSG));
		OK(done(from, &out[0], FI_SEND | FI_MSG));
		OK(done(from, &out[3], FI_SEND | FI_MSG));
		EXPECT_EQ(0, memcmp(in, out, 4));
	}
}

TEST_F(Selective, EndpointFlagMarksThemAll)
{
	/* fi_endpoint(3) 2.1, op_flags - Default transmit operation flags 1 and
	 * OPERATION FLAGS 1: FI_COMPLETION of the endpoint applies to calls
	 * without a flags argument. */
	attr.tx_op_flags = FI_COMPLETION;
	attr.rx_op_flags = FI_COMPLETION;
	OPEN();
	for (auto *from : senders()) {
		char out = 'e', in = 0;

		OK(post(rx(), TDT_RECV, &in, 0));
		OK(post(from, TDT_SEND, &out, 0));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

TEST_F(Selective, FailuresAreAlwaysReported)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 6: A failure has an entry in any
	 * case. */
	OPEN();
	for (auto *from : senders()) {
		char out[2] = { 'f', 'f' }, in = 0;
		struct tdt_op op = op_of(TDT_SEND, 0, out, 2);
		struct tdt_comp c;

		OK(post(rx(), TDT_RECV, &in, 0));
		op.addr = addr(from, rx());
		op.context = out;
		ASSERT_EQ(0, tdt_post(from, &op));
		ASSERT_EQ(0, tdt_wait_next(rx(), 1, &c));
		EXPECT_EQ(FI_ETRUNC, c.err);
	}
}

} // namespace
