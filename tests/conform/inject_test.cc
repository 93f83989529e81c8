/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_inject and FI_INJECT: fi_msg(3). */
#include "tests/harness/fixture.h"

namespace
{

class Inject : public Case
{
};

TEST_F(Inject, BufferIsFreeAtReturn)
{
	/* fi_msg(3) 2.1, fi_inject 1: fi_inject: the buffer is the caller's
	 * again on return, and a success has no entry. */
	const size_t n = 200;

	OPEN();
	size_t len = rx()->info->tx_attr->inject_size;
	for (auto *from : senders()) {
		std::vector<Bytes> in(n, Bytes(len));
		Bytes out(len);

		for (auto &b : in)
			ASSERT_EQ(0, tdt_recv(rx(), b.data(), len, &b));
		for (size_t i = 0; i < n; i++) {
			struct tdt_op op =
				op_of(TDT_INJECT, 0, out.data(), len);

			tdt_fill(out.data(), len, (uint32_t)i);
			op.addr = addr(from, rx());
			ASSERT_EQ(0, tdt_post(from, &op));
			memset(out.data(), 0x77, len);
		}
		for (size_t i = 0; i < n; i++) {
			OK(done(rx(), &in[i], FI_RECV | FI_MSG));
			EXPECT_EQ(-1,
				  tdt_differs(in[i].data(), len, (uint32_t)i));
		}
	}
}

TEST_F(Inject, FlagOfSendmsgFreesTheBufferAndCompletes)
{
	/* fi_msg(3) 2.1, FLAGS 5: FI_INJECT: the buffer is the caller's again
	 * on return, whenever the message leaves. */
	OPEN();
	size_t len = rx()->info->tx_attr->inject_size;
	for (auto *from : senders()) {
		for (int tagged = 0; tagged < 2; tagged++) {
			Bytes out = filled(len, 4), in(len);
			struct tdt_op op =
				op_of(TDT_SENDMSG, tagged, out.data(), len);

			op.addr = addr(from, rx());
			op.flags = FI_INJECT | FI_COMPLETION;
			op.context = &out;
			op.pieces = 2;
			ASSERT_EQ(0, tdt_post(from, &op));
			memset(out.data(), 0x55, len);
			op = op_of(TDT_RECV, tagged, in.data(), len);
			op.context = &in;
			ASSERT_EQ(0, tdt_post(rx(), &op));
			OK(done(rx(), &in,
				FI_RECV | (tagged ? FI_TAGGED : FI_MSG)));
			EXPECT_EQ(-1, tdt_differs(in.data(), len, 4));
			OK(done(from, &out,
				FI_SEND | (tagged ? FI_TAGGED : FI_MSG)));
		}
	}
}

TEST_F(Inject, EndpointFlagAppliesToSend)
{
	/* fi_endpoint(3) 2.1, op_flags - Default transmit operation flags 1:
	 * op_flags are the flags of the context's operations. */
	attr.tx_op_flags = FI_INJECT;
	OPEN();
	for (auto *from : senders()) {
		Bytes out = filled(32, 6), in(32);

		ASSERT_EQ(0, tdt_recv(rx(), in.data(), in.size(), &in));
		ASSERT_EQ(0,
			  tdt_send(from, rx(), out.data(), out.size(), &out));
		memset(out.data(), 0, out.size());
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		EXPECT_EQ(-1, tdt_differs(in.data(), in.size(), 6));
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

TEST_F(Inject, FirstMessageOfAPairMayBeInjected)
{
	/* fi_msg(3): "the operation may be retried": an inject before the
	 * pair is connected is queued or refused, never lost. */
	OPEN();
	for (auto *from : senders()) {
		char out = 'f', in = 0;
		struct tdt_op op = op_of(TDT_INJECT, 1, &out, 1);

		op.addr = addr(from, rx());
		op.tag = 1;
		ASSERT_EQ(0, tdt_post(from, &op));
		out = 0;
		struct iovec v = iov_of(&in, 1);
		ASSERT_EQ(0, tdt_trecv(rx(), &v, 1, 0, &in));
		OK(done(rx(), &in, FI_RECV | FI_TAGGED));
		EXPECT_EQ('f', in);
	}
}

} // namespace
