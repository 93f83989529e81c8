/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_MULTI_RECV: fi_msg(3), fi_cq(3), fi_endpoint(3). */
#include <map>

#include "tests/harness/fixture.h"

namespace
{

class MultiRecv : public Case
{
protected:
	void post(Guarded &buf)
	{
		struct tdt_op op =
			op_of(TDT_RECVMSG, 0, buf.data(), buf.size());

		op.flags = FI_MULTI_RECV | FI_COMPLETION;
		op.context = &buf;
		ASSERT_EQ(0, tdt_post(rx(), &op));
	}

	void min_multi_recv(size_t bytes)
	{
		ASSERT_EQ(0, fi_setopt(&rx()->ep->fid, FI_OPT_ENDPOINT,
				       FI_OPT_MIN_MULTI_RECV, &bytes,
				       sizeof(bytes)));
	}

	/* One message of @len bytes filled with @seed; sent when it returns. */
	void send(struct tdt_ep *from, size_t len, uint32_t seed)
	{
		Bytes out = filled(len, seed);
		struct tdt_op op = op_of(TDT_SEND, 0, out.data(), len);

		op.addr = addr(from, rx());
		op.context = &op;
		ASSERT_EQ(0, tdt_post(from, &op));
		ASSERT_EQ(0, tdt_wait(from, &op, nullptr));
	}

	/* The next message in @buf; its place is returned. */
	void message(Guarded &buf, size_t len, uint32_t seed,
		     struct tdt_comp *out)
	{
		struct tdt_comp c;

		ASSERT_EQ(0, tdt_wait(rx(), &buf, &c));
		ASSERT_EQ(0, c.err) << fi_strerror(c.err);
		EXPECT_EQ(uint64_t(FI_RECV | FI_MSG),
			  c.flags & ~uint64_t(FI_MULTI_RECV));
		ASSERT_EQ(len, c.len);
		auto *at = static_cast<unsigned char *>(c.buf);
		ASSERT_GE(at, buf.data());
		ASSERT_LE(at + len, buf.data() + buf.size());
		EXPECT_EQ(-1, tdt_differs(at, len, seed));
		*out = c;
	}

	/*
	 * All messages of @out are in @buf, in their order, and it is given
	 * back with the last entry. Entries may come in any order.
	 */
	void collect(Guarded &buf, const std::vector<Bytes> &out)
	{
		std::map<unsigned char *, size_t> places;
		struct tdt_comp c;
		size_t i = 0;

		for (i = 0; i < out.size(); i++) {
			ASSERT_EQ(0, tdt_wait(rx(), &buf, &c));
			ASSERT_EQ(0, c.err) << fi_strerror(c.err);
			ASSERT_TRUE(c.flags & FI_RECV) << "released early";
			places[static_cast<unsigned char *>(c.buf)] = c.len;
		}
		OK(released(buf, c));
		ASSERT_EQ(out.size(), places.size());
		i = 0;
		for (auto &place : places) {
			ASSERT_EQ(out[i].size(), place.second);
			EXPECT_EQ(0, memcmp(out[i].data(), place.first,
					    place.second));
			i++;
		}
	}

	/* The buffer is given back: with the last message, or by itself. */
	void released(Guarded &buf, const struct tdt_comp &last)
	{
		struct tdt_comp c;

		EXPECT_TRUE(buf.intact());
		if (last.flags & FI_MULTI_RECV)
			return;
		ASSERT_EQ(0, tdt_wait(rx(), &buf, &c));
		EXPECT_EQ(0, c.err);
		EXPECT_EQ(uint64_t(FI_MULTI_RECV), c.flags);
		EXPECT_EQ(&buf, c.context);
	}
};

TEST_F(MultiRecv, MessagesArePackedUntilTheBufferIsConsumed)
{
	/* fi_msg(3) 2.1, FLAGS 6: Messages fill the buffer one after the
	 * other. */
	OPEN();
	OK(min_multi_recv(64));
	for (auto *from : senders()) {
		Guarded buf(1024);
		unsigned char *end = nullptr;
		struct tdt_comp c;
		size_t left = buf.size(), i = 0;

		OK(post(buf));
		do {
			size_t len = 1 + i * 37 % 64;

			OK(send(from, len, (uint32_t)i));
			OK(message(buf, len, (uint32_t)i, &c));
			auto *at = static_cast<unsigned char *>(c.buf);
			EXPECT_GE(at, end) << "messages overlap";
			end = at + len;
			left = static_cast<size_t>(buf.data() + buf.size() -
						   end);
			i++;
		} while (left >= 64 && !(c.flags & FI_MULTI_RECV));
		OK(released(buf, c));
	}
}

TEST_F(MultiRecv, UnexpectedMessagesFillTheBuffer)
{
	/* fi_msg(3) 2.1, FLAGS 6: as above, for messages that came first, of
	 * every way through a transport. */
	static const size_t sizes[] = { 10, 5000, 1, 70000, 200, 30000 };

	OPEN();
	OK(min_multi_recv(10));
	for (auto *from : senders()) {
		std::vector<Bytes> out;
		size_t sum = 0;

		for (size_t len : sizes) {
			out.push_back(filled(len, (uint32_t)len));
			sum += len;
		}
		Guarded buf(sum);
		for (auto &b : out)
			ASSERT_EQ(0,
				  tdt_send(from, rx(), b.data(), b.size(), &b));
		OK(fence(from));
		OK(post(buf));
		OK(collect(buf, out));
		for (auto &b : out)
			OK(done(from, &b, FI_SEND | FI_MSG));
	}
}

TEST_F(MultiRecv, NextBufferFollows)
{
	/* fi_endpoint(3) 2.1, fi_getopt / fi_setopt 5: FI_OPT_MIN_MULTI_RECV:
	 * the buffer is released when less than that is left. */
	OPEN();
	OK(min_multi_recv(100));
	for (auto *from : senders()) {
		Guarded a(150), b(400);
		struct tdt_comp c;

		OK(post(a));
		OK(post(b));
		OK(send(from, 60, 1));
		OK(message(a, 60, 1, &c));
		OK(released(a, c));
		OK(send(from, 90, 2));
		OK(message(b, 90, 2, &c));
		EXPECT_FALSE(c.flags & FI_MULTI_RECV);
		OK(send(from, 300, 3));
		OK(message(b, 300, 3, &c));
		OK(released(b, c));
	}
}

TEST_F(MultiRecv, MessageLargerThanTheRestIsCutShort)
{
	/* fi_cq(3) 2.1, COMPLETION FIELDS 9: olen. fi_msg(3) 2.1, fi_recv 1: a
	 * message takes the first receive posted, and never more than the
	 * buffer has left. */
	OPEN();
	OK(min_multi_recv(16));
	for (auto *from : senders()) {
		Guarded buf(200);
		struct tdt_comp c;

		OK(post(buf));
		OK(send(from, 100, 1));
		OK(message(buf, 100, 1, &c));
		OK(send(from, 5000, 2));
		ASSERT_EQ(0, tdt_wait(rx(), &buf, &c));
		EXPECT_EQ(FI_ETRUNC, c.err);
		EXPECT_EQ(100u, c.len);
		EXPECT_EQ(4900u, c.olen);
		EXPECT_TRUE(buf.intact());
		OK(released(buf, c));
	}
}

TEST_F(MultiRecv, OptionIsReadBack)
{
	/* fi_endpoint(3) 2.1, fi_getopt / fi_setopt 1: fi_getopt reads an
	 * option, fi_setopt writes it. */
	size_t bytes = 0, len = sizeof(bytes);

	OPEN();
	OK(min_multi_recv(777));
	ASSERT_EQ(0, fi_getopt(&rx()->ep->fid, FI_OPT_ENDPOINT,
			       FI_OPT_MIN_MULTI_RECV, &bytes, &len));
	EXPECT_EQ(777u, bytes);
	EXPECT_EQ(sizeof(bytes), len);
}

TEST_F(MultiRecv, CancelGivesTheBufferBack)
{
	/* fi_cq(3) 2.1, COMPLETION FLAGS 14: FI_MULTI_RECV in an entry: the
	 * buffer is used up and the application's again. */
	OPEN();
	for (auto *from : senders()) {
		Guarded buf(1000);
		struct tdt_comp c;

		OK(post(buf));
		OK(send(from, 8, 1));
		OK(message(buf, 8, 1, &c));
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t ret;
		while ((ret = fi_cancel(&rx()->ep->fid, &buf)) == -FI_EAGAIN &&
		       tdt_now_ms() < end)
			tdt_progress(w);
		ASSERT_EQ(0, ret);
		OK(failed(rx(), &buf, FI_ECANCELED, &c));
		EXPECT_TRUE(c.flags & FI_MULTI_RECV);
	}
}

TEST_F(MultiRecv, ReleaseIsReportedThoughCompletionsAreNot)
{
	/* fi_msg(3) 2.1, FLAGS 7: A buffer that is used up always has an entry,
	 * also where successes have none. */
	attr.rx_bind = FI_SELECTIVE_COMPLETION;
	OPEN();
	OK(min_multi_recv(64));
	for (auto *from : senders()) {
		Guarded buf(128);
		struct tdt_op op = op_of(TDT_RECVMSG, 0, buf.data(), 128);
		struct tdt_comp c;

		op.flags = FI_MULTI_RECV;
		op.context = &buf;
		ASSERT_EQ(0, tdt_post(rx(), &op));
		OK(send(from, 50, 1));
		OK(send(from, 50, 2));
		ASSERT_EQ(0, tdt_wait(rx(), &buf, &c));
		EXPECT_EQ(0, c.err);
		EXPECT_TRUE(c.flags & FI_MULTI_RECV);
		EXPECT_EQ(-1, tdt_differs(buf.data(), 50, 1));
	}
}

TEST_F(MultiRecv, ManySendersShareABuffer)
{
	/* fi_msg(3) 2.1, FLAGS 6: One buffer takes many messages. */
	const size_t n = 40;

	OPEN();
	OK(min_multi_recv(64));
	Guarded buf(n * senders().size() * 64);
	struct tdt_comp c;

	OK(post(buf));
	for (size_t i = 0; i < n; i++) {
		for (auto *from : senders())
			OK(send(from, 64, (uint32_t)from->index));
	}
	for (size_t i = 0; i < n * senders().size(); i++) {
		ASSERT_EQ(0, tdt_wait(rx(), &buf, &c));
		ASSERT_EQ(0, c.err);
		ASSERT_EQ(64u, c.len);
		EXPECT_EQ(-1, tdt_differs(c.buf, 64, (uint32_t)c.src));
	}
	OK(released(buf, c));
}

} // namespace
