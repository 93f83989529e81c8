/* SPDX-License-Identifier: BSD-2-Clause */
/* Remote CQ data: fi_msg(3), fi_cq(3), fi_domain(3) cq_data_size. */
#include "tests/harness/fixture.h"

namespace
{

class CqData : public Case
{
protected:
	void pass(struct tdt_ep *from, const struct tdt_op &how, bool early)
	{
		char out = 'd', in = 0;
		struct tdt_op s = how, r = op_of(TDT_RECV, how.tagged, &in, 1);
		uint64_t kind = how.tagged ? FI_TAGGED : FI_MSG;
		struct tdt_comp c;

		s.buf = &out;
		s.len = 1;
		s.addr = addr(from, rx());
		s.context = &out;
		r.context = &in;
		if (early) {
			ASSERT_EQ(0, tdt_post(rx(), &r));
		}
		ASSERT_EQ(0, tdt_post(from, &s));
		if (!early) {
			OK(fence(from));
			ASSERT_EQ(0, tdt_post(rx(), &r));
		}
		OK(done(rx(), &in, FI_RECV | FI_REMOTE_CQ_DATA | kind, &c));
		EXPECT_EQ(how.data, c.data);
		OK(done(from, &out, FI_SEND | kind));
	}
};

TEST_F(CqData, EveryBitArrives)
{
	/* fi_cq(3) 2.1, COMPLETION FIELDS 7: FI_REMOTE_CQ_DATA says that the
	 * entry has the data which the peer sent. */
	static const uint64_t values[] = { 0, 1, 0x8000000000000000, ~0ull,
					   0x0123456789abcdef };

	OPEN();
	EXPECT_EQ(8u, rx()->info->domain_attr->cq_data_size);
	for (auto *from : senders()) {
		for (uint64_t data : values) {
			for (int i = 0; i < 8; i++) {
				struct tdt_op op = op_of(
					i & 1 ? TDT_SENDDATA : TDT_SENDMSG,
					i >> 1 & 1, nullptr, 0);

				op.data = data;
				op.flags = FI_REMOTE_CQ_DATA | FI_COMPLETION;
				OK(pass(from, op, i & 4));
			}
		}
	}
}

TEST_F(CqData, NotReportedWhenNotSent)
{
	/* fi_msg(3) 2.1, FLAGS 2: FI_REMOTE_CQ_DATA has fi_sendmsg send the
	 * data of the message: without it msg.data does not count. */
	OPEN();
	for (auto *from : senders()) {
		char out = 'n', in = 0;
		struct tdt_op op = op_of(TDT_SENDMSG, 0, &out, 1);

		op.addr = addr(from, rx());
		op.data = 5;
		op.flags = FI_COMPLETION;
		op.context = &out;
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, tdt_post(from, &op));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

} // namespace
