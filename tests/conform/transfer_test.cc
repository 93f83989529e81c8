/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every send call of fi_msg(3) and fi_tagged(3) against every receive call,
 * in every size around a threshold, with the receive posted before the
 * message arrives and after.
 */
#include <tuple>

#include "tests/harness/fixture.h"

namespace
{

const uint64_t TAG = 0x123456789abcdef0;
const uint64_t DATA = 0xfedcba9876543210;

/* Send call, tagged. */
class Transfer : public Case,
		 public testing::WithParamInterface<std::tuple<int, int>>
{
protected:
	enum tdt_call call =
		static_cast<enum tdt_call>(std::get<0>(GetParam()));
	int tagged = std::get<1>(GetParam());

	bool injects() const
	{
		return call == TDT_INJECT || call == TDT_INJECTDATA;
	}

	bool has_data() const
	{
		return call == TDT_SENDDATA || call == TDT_INJECTDATA;
	}

	size_t limit()
	{
		return rx()->info->tx_attr->inject_size;
	}

	void post_recv(enum tdt_call recv, Guarded &in)
	{
		struct tdt_op op = op_of(recv, tagged, in.data(), in.size());

		op.tag = TAG;
		op.context = &in;
		op.pieces = recv == TDT_RECV || in.size() < 3 ? 1 : 3;
		ASSERT_EQ(0, tdt_post(rx(), &op));
	}

	void post_send(struct tdt_ep *from, Bytes &out)
	{
		struct tdt_op op = op_of(call, tagged, out.data(), out.size());

		op.addr = addr(from, rx());
		op.tag = TAG;
		op.data = DATA;
		op.context = &out;
		if ((call == TDT_SENDV || call == TDT_SENDMSG) &&
		    out.size() > 4)
			op.pieces = 4;
		ASSERT_EQ(0, tdt_post(from, &op));
	}

	void check(struct tdt_ep *from, Guarded &in, size_t len, uint32_t seed)
	{
		uint64_t flags = FI_RECV | (tagged ? FI_TAGGED : FI_MSG);
		struct tdt_comp c;

		if (has_data())
			flags |= FI_REMOTE_CQ_DATA;
		OK(done(rx(), &in, flags, &c));
		EXPECT_EQ(len, c.len);
		EXPECT_EQ(addr(rx(), from), c.src);
		if (tagged) {
			EXPECT_EQ(TAG, c.tag);
		}
		if (has_data()) {
			EXPECT_EQ(DATA, c.data);
		}
		EXPECT_EQ(-1, tdt_differs(in.data(), len, seed));
		EXPECT_TRUE(in.intact(len));
	}

	void transfer(struct tdt_ep *from, enum tdt_call recv, size_t len,
		      bool early)
	{
		uint32_t seed = static_cast<uint32_t>(len * 31 + recv);
		Bytes out = filled(len, seed);
		Guarded in(len);

		SCOPED_TRACE(testing::Message()
			     << tdt_call_name(call) << " " << len
			     << " bytes to " << tdt_call_name(recv)
			     << (early ? "" : ", unexpected") << ", sender "
			     << from->index);
		if (early) {
			OK(post_recv(recv, in));
		}
		OK(post_send(from, out));
		if (injects() && len)
			memset(out.data(), 0xee, len);
		if (!early) {
			OK(fence(from));
			OK(post_recv(recv, in));
		}
		OK(check(from, in, len, seed));
		if (!injects()) {
			OK(done(from, &out,
				FI_SEND | (tagged ? FI_TAGGED : FI_MSG)));
		}
	}

	void run(enum tdt_call recv, bool early)
	{
		for (auto *from : senders()) {
			for (size_t len : all_sizes()) {
				if (injects() && len > limit())
					continue;
				OK(transfer(from, recv, len, early));
			}
		}
	}
};

TEST_P(Transfer, EverySizeIntoPostedBuffer)
{
	/* fi_msg(3) 2.1, fi_send 1: fi_send sends one buffer as one message. */
	OPEN();
	OK(run(TDT_RECV, true));
}

TEST_P(Transfer, EverySizeIntoVector)
{
	/* fi_msg(3) 2.1, fi_recvv 1: fi_recvv posts several buffers as one
	 * receive. */
	OPEN();
	OK(run(TDT_RECVV, true));
	OK(run(TDT_RECVMSG, true));
}

TEST_P(Transfer, EverySizeUnexpected)
{
	/* fi_msg(3) 2.1, fi_recv 1: Receives are tried in the order in which
	 * they were posted. A message that comes first waits
	 * (FI_RM_ENABLED). */
	OPEN();
	OK(run(TDT_RECV, false));
	OK(run(TDT_RECVV, false));
}

std::string name_of(const testing::TestParamInfo<std::tuple<int, int>> &info)
{
	std::string name = tdt_call_name(
		static_cast<enum tdt_call>(std::get<0>(info.param)));

	return (std::get<1>(info.param) ? "t" : "") + name;
}

INSTANTIATE_TEST_SUITE_P(Calls, Transfer,
			 testing::Combine(testing::Range(0, 6),
					  testing::Values(0, 1)),
			 name_of);

} // namespace
