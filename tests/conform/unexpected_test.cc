/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that come before their receive: fi_msg(3), fi_tagged(3). */
#include "tests/harness/fixture.h"

namespace
{

class Unexpected : public Case
{
protected:
	/* @n tagged messages of @len bytes, tag = number; all have left. */
	void send_all(struct tdt_ep *from, std::vector<Bytes> &out)
	{
		for (size_t i = 0; i < out.size(); i++) {
			struct iovec v = iov_of(out[i].data(), out[i].size());
			ASSERT_EQ(0, tdt_tsend(from, rx(), &v, i, &out[i]));
		}
	}

	void receive(size_t tag, size_t len, uint32_t seed)
	{
		Guarded in(len);
		struct iovec v = iov_of(in.data(), len);
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_trecv(rx(), &v, tag, 0, &in));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED, &c));
		EXPECT_EQ(len, c.len);
		EXPECT_EQ(-1, tdt_differs(in.data(), len, seed));
		EXPECT_TRUE(in.intact());
	}
};

TEST_F(Unexpected, ManyWaitAndAreTakenInAnyOrder)
{
	/* fi_domain(3) 2.1, Resource Management (resource_mgmt) 5:
	 * FI_RM_ENABLED: the provider looks after its resources: unexpected
	 * messages are not lost. */
	const size_t n = 500;

	OPEN();
	for (auto *from : senders()) {
		std::vector<Bytes> out;

		for (size_t i = 0; i < n; i++)
			out.push_back(filled(i % 97, (uint32_t)i));
		OK(send_all(from, out));
		OK(fence(from));
		for (size_t i = n; i-- > 0;)
			OK(receive(i, out[i].size(), (uint32_t)i));
		for (size_t i = 0; i < n; i++)
			OK(done(from, &out[i], FI_SEND | FI_TAGGED));
	}
}

TEST_F(Unexpected, LargeThenPostedMatchesInOrder)
{
	/* fi_tagged(3): "Message boundaries are maintained." */
	OPEN();
	for (auto *from : senders()) {
		std::vector<Bytes> out;

		for (size_t i = 0; i < 6; i++)
			out.push_back(filled(300000 + i, (uint32_t)i));
		OK(send_all(from, out));
		OK(fence(from));
		for (size_t i = 0; i < out.size(); i++)
			OK(receive(i, out[i].size(), (uint32_t)i));
		for (auto &b : out)
			OK(done(from, &b, FI_SEND | FI_TAGGED));
	}
}

TEST_F(Unexpected, NothingStopsTheMessagesBehind)
{
	/* Reading is never switched off because of one message nobody wants:
	 * untagged ones wait while tagged ones pass. */
	const size_t n = 64;

	OPEN();
	for (auto *from : senders()) {
		Bytes big = filled(200000, 3), in(200000);
		std::vector<char> small(n, 's');

		ASSERT_EQ(0,
			  tdt_send(from, rx(), big.data(), big.size(), &big));
		for (auto &s : small)
			ASSERT_EQ(0, tdt_send(from, rx(), &s, 1, &s));
		OK(fence(from));
		ASSERT_EQ(0, tdt_recv(rx(), in.data(), in.size(), &in));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		EXPECT_EQ(-1, tdt_differs(in.data(), in.size(), 3));
		OK(done(from, &big, FI_SEND | FI_MSG));
		for (auto &s : small) {
			char c = 0;

			ASSERT_EQ(0, tdt_recv(rx(), &c, 1, &c));
			OK(done(rx(), &c, FI_RECV | FI_MSG));
			EXPECT_EQ('s', c);
			OK(done(from, &s, FI_SEND | FI_MSG));
		}
	}
}

TEST_F(Unexpected, CloseDropsThoseNobodyTook)
{
	/* fi_endpoint(3) 2.1, fi_close 3: fi_close gives up the operations that
	 * are outstanding. */
	OPEN();
	for (auto *from : senders()) {
		for (size_t len : { 1u, 5000u, 400000u }) {
			Bytes out = filled(len, 1);
			struct tdt_op op = op_of(TDT_SEND, 0, out.data(), len);

			op.addr = addr(from, rx());
			op.context = &out;
			ASSERT_EQ(0, tdt_post(from, &op));
			OK(fence(from));
			/* The buffers of pending sends go with this scope. */
			if (len > 5000)
				break;
			OK(done(from, &out, FI_SEND | FI_MSG));
		}
	}
	close();
}

TEST_F(Unexpected, SourceIsReported)
{
	/* fi_cq(3) 2.1, fi_cq_readfrom 1: fi_cq_readfrom reports the source of
	 * what was received. */
	OPEN();
	for (auto *from : senders()) {
		char out = 1, in = 0;
		struct iovec ov = iov_of(&out, 1), iv = iov_of(&in, 1);
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_tsend(from, rx(), &ov, 77, &out));
		OK(fence(from));
		ASSERT_EQ(0, tdt_trecv(rx(), &iv, 77, 0, &in));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED, &c));
		EXPECT_EQ(addr(rx(), from), c.src);
		OK(done(from, &out, FI_SEND | FI_TAGGED));
	}
}

TEST_F(Unexpected, SourceInsertedLaterIsUsedForDirectedReceive)
{
	/* fi_peer(3) 2.1, EXAMPLE PEER SRX RECEIVE FLOW 3: An entry whose
	 * address becomes known may match a directed receive. */
	attr.no_insert = 1;
	OPEN();
	for (auto *from : senders()) {
		Bytes out = filled(64, 5), in(64);
		struct tdt_op op;
		struct tdt_comp c;

		ASSERT_EQ(1, fi_av_insert(from->av, rx()->name, 1,
					  &from->peers[0], 0, nullptr));
		op = op_of(TDT_SEND, 1, out.data(), out.size());
		op.addr = from->peers[0];
		op.tag = 5;
		op.context = &out;
		ASSERT_EQ(0, tdt_post(from, &op));
		OK(fence(from));
		ASSERT_EQ(1,
			  fi_av_insert(rx()->av, from->name, 1,
				       &rx()->peers[from->index], 0, nullptr));
		op = op_of(TDT_RECV, 1, in.data(), in.size());
		op.addr = addr(rx(), from);
		op.tag = 5;
		op.context = &in;
		ASSERT_EQ(0, tdt_post(rx(), &op));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED, &c));
		EXPECT_EQ(addr(rx(), from), c.src);
		EXPECT_EQ(-1, tdt_differs(in.data(), in.size(), 5));
		OK(done(from, &out, FI_SEND | FI_TAGGED));
	}
}

TEST_F(Unexpected, SourceNotInsertedIsNotAvailable)
{
	/* fi_cq(3) 2.1, fi_cq_readfrom 4: FI_SOURCE without FI_SOURCE_ERR: a
	 * source without an fi_addr_t is FI_ADDR_NOTAVAIL. */
	attr.no_insert = 1;
	OPEN();
	for (auto *from : senders()) {
		char out = 1, in = 0;
		struct tdt_comp c;

		ASSERT_EQ(1, fi_av_insert(from->av, rx()->name, 1,
					  &from->peers[0], 0, nullptr));
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		OK(done(rx(), &in, FI_RECV | FI_MSG, &c));
		EXPECT_EQ(FI_ADDR_NOTAVAIL, c.src);
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

} // namespace
