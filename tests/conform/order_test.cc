/* SPDX-License-Identifier: BSD-2-Clause */
/* Message order and matching order: fi_msg(3), fi_tagged(3), FI_ORDER_SAS. */
#include "tests/harness/fixture.h"

namespace
{

class Order : public Case
{
protected:
	/* Sizes that take different ways through a transport. */
	static size_t size_of(size_t i)
	{
		static const size_t sizes[] = { 8,     100000, 16, 300,
						70000, 1000,   12, 9000 };

		return sizes[i % 8];
	}

	struct Stamp {
		uint32_t sender;
		uint32_t number;
	};

	static void stamp(Bytes &b, size_t sender, size_t number)
	{
		Stamp s = { static_cast<uint32_t>(sender),
			    static_cast<uint32_t>(number) };

		memcpy(b.data(), &s, sizeof(s));
	}

	static Stamp read_stamp(const Bytes &b)
	{
		Stamp s;

		memcpy(&s, b.data(), sizeof(s));
		return s;
	}
};

TEST_F(Order, SendsOfOnePairAreMatchedInOrder)
{
	/* fi_endpoint(3) 2.1, msg_order - Message Ordering 17: FI_ORDER_SAS:
	 * tagged and untagged messages are processed in the order in which they
	 * were sent. */
	const size_t n = 48;
	std::vector<Bytes> in, out;

	OPEN();
	const size_t total = n * senders().size();
	in.assign(total, Bytes(100000));
	for (size_t i = 0; i < total; i++)
		ASSERT_EQ(0,
			  tdt_recv(rx(), in[i].data(), in[i].size(), &in[i]));
	for (size_t i = 0; i < n; i++) {
		for (auto *from : senders()) {
			out.emplace_back(size_of(i));
			stamp(out.back(), from->index, i);
		}
	}
	for (size_t i = 0, k = 0; i < n; i++) {
		for (auto *from : senders()) {
			ASSERT_EQ(0, tdt_send(from, rx(), out[k].data(),
					      out[k].size(), &out[k]));
			k++;
		}
	}
	std::vector<uint32_t> next(w->count, 0);
	for (size_t i = 0; i < total; i++) {
		OK(done(rx(), &in[i], FI_RECV | FI_MSG));
		Stamp s = read_stamp(in[i]);
		ASSERT_LT(s.sender, w->count);
		EXPECT_EQ(next[s.sender]++, s.number) << "receive " << i;
	}
	for (size_t i = 0, k = 0; i < n; i++) {
		for (auto *from : senders())
			OK(done(from, &out[k++], FI_SEND | FI_MSG));
	}
}

TEST_F(Order, UnexpectedOfOnePairAreMatchedInOrder)
{
	/* fi_tagged(3) 2.1, DESCRIPTION 2: Receives are tried in the order in
	 * which they were posted. */
	const size_t n = 32;
	std::vector<Bytes> out;

	OPEN();
	for (auto *from : senders()) {
		out.clear();
		for (size_t i = 0; i < n; i++) {
			out.emplace_back(size_of(i));
			stamp(out.back(), from->index, i);
		}
		for (size_t i = 0; i < n; i++) {
			struct iovec v = iov_of(out[i].data(), out[i].size());
			ASSERT_EQ(0, tdt_tsend(from, rx(), &v, i % 3, &out[i]));
		}
		OK(fence(from));
		for (size_t i = 0; i < n; i++) {
			Bytes in(100000);
			struct iovec v = iov_of(in.data(), in.size());

			ASSERT_EQ(0, tdt_trecv(rx(), &v, 0, 3, &in));
			OK(done(rx(), &in, FI_RECV | FI_TAGGED));
			EXPECT_EQ(i, read_stamp(in).number);
		}
		for (size_t i = 0; i < n; i++)
			OK(done(from, &out[i], FI_SEND | FI_TAGGED));
	}
}

TEST_F(Order, MessageTakesTheReceivePostedFirst)
{
	/* fi_tagged(3) 2.1, fi_trecv 1: Receives are tried in the order in
	 * which they were posted. */
	struct Post {
		uint64_t tag, ignore;
	};
	static const Post posts[] = {
		{ 5, 0 }, { 0, ~0ull }, { 5, 0 }, { 4, 3 },
		{ 5, 1 }, { 0, ~0ull }, { 5, 0 },
	};
	const size_t n = sizeof(posts) / sizeof(posts[0]);

	OPEN();
	for (auto *from : senders()) {
		unsigned char in[n];
		unsigned char out[n];

		for (size_t i = 0; i < n; i++) {
			struct iovec v = iov_of(&in[i], 1);

			ASSERT_EQ(0, tdt_trecv(rx(), &v, posts[i].tag,
					       posts[i].ignore, &in[i]));
		}
		for (size_t i = 0; i < n; i++) {
			struct iovec v = iov_of(&out[i], 1);

			out[i] = static_cast<unsigned char>(i);
			ASSERT_EQ(0, tdt_tsend(from, rx(), &v, 5, &out[i]));
		}
		for (size_t i = 0; i < n; i++) {
			OK(done(rx(), &in[i], FI_RECV | FI_TAGGED));
			EXPECT_EQ(i, in[i]);
			OK(done(from, &out[i], FI_SEND | FI_TAGGED));
		}
	}
}

TEST_F(Order, LaterTagIsNotHeldUpByEarlierOne)
{
	/* fi_tagged(3) 2.1, DESCRIPTION 1: The tag of a message chooses the
	 * receive. */
	OPEN();
	for (auto *from : senders()) {
		Bytes big = filled(1 << 20, 1), got(1 << 20);
		char a = 'a', b = 0;
		struct iovec bv = iov_of(big.data(), big.size());
		struct iovec gv = iov_of(got.data(), got.size());
		struct iovec av = iov_of(&a, 1), cv = iov_of(&b, 1);

		ASSERT_EQ(0, tdt_tsend(from, rx(), &bv, 1, &big));
		ASSERT_EQ(0, tdt_tsend(from, rx(), &av, 2, &a));
		ASSERT_EQ(0, tdt_trecv(rx(), &cv, 2, 0, &b));
		OK(done(rx(), &b, FI_RECV | FI_TAGGED));
		EXPECT_EQ('a', b);
		ASSERT_EQ(0, tdt_trecv(rx(), &gv, 1, 0, &got));
		OK(done(rx(), &got, FI_RECV | FI_TAGGED));
		EXPECT_EQ(-1, tdt_differs(got.data(), got.size(), 1));
		OK(done(from, &big, FI_SEND | FI_TAGGED));
		OK(done(from, &a, FI_SEND | FI_TAGGED));
	}
}

TEST_F(Order, TaggedAndUntaggedDoNotMeet)
{
	/* fi_tagged(3) 2.1, DESCRIPTION 1: A tagged message carries its tag: an
	 * untagged receive takes none. */
	OPEN();
	for (auto *from : senders()) {
		char t = 't', u = 'u', it = 0, iu = 0;
		struct iovec tv = iov_of(&t, 1), iv = iov_of(&it, 1);

		ASSERT_EQ(0, tdt_recv(rx(), &iu, 1, &iu));
		ASSERT_EQ(0, tdt_tsend(from, rx(), &tv, 0, &t));
		ASSERT_EQ(0, tdt_send(from, rx(), &u, 1, &u));
		OK(done(rx(), &iu, FI_RECV | FI_MSG));
		EXPECT_EQ('u', iu);
		ASSERT_EQ(0, tdt_trecv(rx(), &iv, 0, ~0ull, &it));
		OK(done(rx(), &it, FI_RECV | FI_TAGGED));
		EXPECT_EQ('t', it);
		OK(done(from, &t, FI_SEND | FI_TAGGED));
		OK(done(from, &u, FI_SEND | FI_MSG));
	}
}

TEST_F(Order, AnyBitOfATagCounts)
{
	/* fi_tagged(3) 2.1, DESCRIPTION 1: Tags match when they are equal in
	 * the bits that count. */
	char out = 0, in = 0, other = 0;
	struct iovec ov = iov_of(&out, 1), iv = iov_of(&in, 1);
	struct iovec xv = iov_of(&other, 1);

	OPEN();
	for (auto *from : senders()) {
		for (int bit = 0; bit < 64; bit++) {
			uint64_t tag = 1ull << bit;

			ASSERT_EQ(0, tdt_trecv(rx(), &xv, 0, ~tag, &other));
			ASSERT_EQ(0, tdt_trecv(rx(), &iv, tag, 0, &in));
			ASSERT_EQ(0, tdt_tsend(from, rx(), &ov, tag, &out));
			OK(done(rx(), &in, FI_RECV | FI_TAGGED));
			OK(done(from, &out, FI_SEND | FI_TAGGED));
			ASSERT_EQ(0, tdt_tsend(from, rx(), &ov, ~tag, &out));
			OK(done(rx(), &other, FI_RECV | FI_TAGGED));
			OK(done(from, &out, FI_SEND | FI_TAGGED));
		}
	}
}

TEST_F(Order, DirectedReceiveTakesOnlyItsSource)
{
	/* fi_msg(3) 2.1, ARGUMENTS 9: src_addr is the source from which the
	 * message has to be. */
	attr.eps = 3;
	OPEN();
	char out[3] = { 0, 1, 2 }, in[3] = { 0, 0, 0 };

	for (size_t i = 1; i < 3; i++) {
		struct tdt_op op = op_of(TDT_RECV, 0, &in[i], 1);

		op.addr = addr(rx(), ep(i));
		op.context = &in[i];
		ASSERT_EQ(0, tdt_post(rx(), &op));
	}
	for (size_t i = 2; i >= 1; i--) {
		ASSERT_EQ(0, tdt_send(ep(i), rx(), &out[i], 1, &out[i]));
		OK(done(rx(), &in[i], FI_RECV | FI_MSG));
		OK(done(ep(i), &out[i], FI_SEND | FI_MSG));
		EXPECT_EQ(out[i], in[i]);
	}
}

TEST_F(Order, DirectedReceiveFindsItsSourceAmongUnexpected)
{
	/* fi_tagged(3) 2.1, ARGUMENTS 11: as above, for messages that came
	 * first. */
	attr.eps = 3;
	OPEN();
	char out[3] = { 0, 1, 2 }, in[3] = { 0, 0, 0 };

	for (size_t i = 1; i < 3; i++) {
		struct iovec v = iov_of(&out[i], 1);

		ASSERT_EQ(0, tdt_tsend(ep(i), rx(), &v, 9, &out[i]));
		OK(fence(ep(i)));
		OK(done(ep(i), &out[i], FI_SEND | FI_TAGGED));
	}
	for (size_t i = 2; i >= 1; i--) {
		struct tdt_op op = op_of(TDT_RECV, 1, &in[i], 1);
		struct tdt_comp c;

		op.addr = addr(rx(), ep(i));
		op.tag = 9;
		op.context = &in[i];
		ASSERT_EQ(0, tdt_post(rx(), &op));
		OK(done(rx(), &in[i], FI_RECV | FI_TAGGED, &c));
		EXPECT_EQ(out[i], in[i]);
		EXPECT_EQ(addr(rx(), ep(i)), c.src);
	}
}

TEST_F(Order, SourceIsIgnoredWithoutDirectedReceive)
{
	/* fi_msg(3) 2.1, ARGUMENTS 9: The source of a receive counts with
	 * FI_DIRECTED_RECV and is ignored without it. */
	attr.caps = FI_MSG | FI_TAGGED;
	OPEN();
	for (auto *from : senders()) {
		char out = 'x', in = 0;
		struct tdt_op op = op_of(TDT_RECV, 0, &in, 1);

		op.addr = addr(rx(), rx());
		op.context = &in;
		ASSERT_EQ(0, tdt_post(rx(), &op));
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

} // namespace
