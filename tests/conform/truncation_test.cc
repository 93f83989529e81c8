/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages larger than their receive buffer: fi_cq(3), len and olen. */
#include <tuple>

#include "tests/harness/fixture.h"

namespace
{

/* Message bytes, receive buffer bytes. */
class Truncation
	: public Case,
	  public testing::WithParamInterface<std::tuple<size_t, size_t>>
{
protected:
	size_t sent = std::get<0>(GetParam());
	size_t room = std::get<1>(GetParam());

	void post(int tagged, void *buf, size_t len, void *context)
	{
		struct tdt_op op = op_of(TDT_RECV, tagged, buf, len);

		op.context = context;
		ASSERT_EQ(0, tdt_post(rx(), &op));
	}

	void send(struct tdt_ep *from, int tagged, Bytes &out)
	{
		struct tdt_op op =
			op_of(TDT_SENDDATA, tagged, out.data(), out.size());

		op.addr = addr(from, rx());
		op.data = 0x99;
		op.context = &out;
		ASSERT_EQ(0, tdt_post(from, &op));
	}

	void cut_short(struct tdt_ep *from, int tagged, bool early)
	{
		Bytes out = filled(sent, 7), next = filled(40, 8), got(40);
		uint64_t kind = tagged ? FI_TAGGED : FI_MSG;
		struct tdt_comp c;
		Guarded in(room);

		SCOPED_TRACE(testing::Message()
			     << (tagged ? "tagged" : "msg") << ", sender "
			     << from->index << (early ? "" : ", unexpected"));
		if (early) {
			OK(post(tagged, in.data(), room, &in));
		}
		OK(send(from, tagged, out));
		OK(send(from, tagged, next));
		if (!early) {
			OK(fence(from));
			OK(post(tagged, in.data(), room, &in));
		}
		OK(post(tagged, got.data(), got.size(), &got));
		OK(failed(rx(), &in, FI_ETRUNC, &c));
		EXPECT_EQ(room, c.len);
		EXPECT_EQ(sent - room, c.olen);
		EXPECT_TRUE(c.flags & FI_RECV);
		EXPECT_EQ(-1, tdt_differs(in.data(), room, 7));
		EXPECT_TRUE(in.intact());
		OK(done(rx(), &got, FI_RECV | FI_REMOTE_CQ_DATA | kind));
		EXPECT_EQ(-1, tdt_differs(got.data(), got.size(), 8));
		OK(done(from, &out, FI_SEND | kind));
		OK(done(from, &next, FI_SEND | kind));
	}
};

TEST_P(Truncation, ReceiverGetsEtruncAndTheNextMessageIsIntact)
{
	/* fi_cq(3) 2.1, COMPLETION FIELDS 9: olen says how many bytes did not
	 * fit and are gone. */
	OPEN();
	for (auto *from : senders()) {
		for (int tagged = 0; tagged < 2; tagged++)
			OK(cut_short(from, tagged, true));
	}
}

TEST_P(Truncation, UnexpectedIsCutShortAlike)
{
	/* fi_cq(3) 2.1, COMPLETION FIELDS 9: as above. */
	OPEN();
	for (auto *from : senders()) {
		for (int tagged = 0; tagged < 2; tagged++)
			OK(cut_short(from, tagged, false));
	}
}

INSTANTIATE_TEST_SUITE_P(
	Sizes, Truncation,
	testing::Values(std::make_tuple(1, 0), std::make_tuple(48, 47),
			std::make_tuple(300, 100), std::make_tuple(4000, 0),
			std::make_tuple(20000, 3),
			std::make_tuple(200000, 199999),
			std::make_tuple(3000000, 1000),
			std::make_tuple(3000000, 2500000)),
	[](const testing::TestParamInfo<std::tuple<size_t, size_t>> &p) {
		return std::to_string(std::get<0>(p.param)) + "_into_" +
		       std::to_string(std::get<1>(p.param));
	});

} // namespace
