/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A provider of FI_TANDEM_LOCAL that breaks fi_peer(3) by a call, the provider of
 * liar.h, one lie after the other. fi_tandem(7), FOREIGN PROVIDERS: such a call
 * is refused and logged; operations end, with what is true or with an error,
 * unless the provider never ends them; and messages that it tells the truth
 * about arrive as if nothing had been.
 */
#include "tests/contract/foreign_fixture.h"

namespace
{

struct Lie {
	const char *text;
	int sent, posted, waited; /* endings: of each send, of a receive that
				     was posted before, and behind */
	bool said;		  /* a line of the log is about it */
};

void PrintTo(const Lie &lie, std::ostream *out)
{
	*out << lie.text;
}

class Lies : public Foreign, public testing::WithParamInterface<Lie>
{
protected:
	char out[3000], in[4000];

	/* One message of @kind; @late: the receive is posted behind it. */
	void message(uint64_t tag, bool tagged, bool late, const Lie &lie)
	{
		struct tdt_op send = op_of(TDT_SEND, tagged, out, sizeof(out));
		struct tdt_op recv = op_of(TDT_RECV, tagged, in, sizeof(in));
		ssize_t ret = 0;
		int got;

		send.addr = addr(ep(1), rx());
		send.context = out;
		send.tag = recv.tag = tag;
		recv.addr = FI_ADDR_UNSPEC;
		recv.context = in;
		tdt_fill(out, sizeof(out), uint32_t(tag));
		memset(in, 0, sizeof(in));
		if (!late) {
			ASSERT_EQ(0, tdt_post(rx(), &recv));
		}
		ret = tdt_post(ep(1), &send);
		got = ret ? int(-ret) : ending(ep(1), out);
		EXPECT_EQ(lie.sent, got) << "send";
		if (late) {
			ending(rx(), in);
			ASSERT_EQ(0, tdt_post(rx(), &recv));
		}
		got = ending(rx(), in);
		EXPECT_EQ(late ? lie.waited : lie.posted, got) << late;
		if (!got) {
			EXPECT_EQ(-1,
				  tdt_differs(in, sizeof(out), uint32_t(tag)));
		}
		if (got == OPEN_END)
			cancel();
	}

	/* The receive has found no message, or its end is not known. */
	void cancel()
	{
		fi_cancel(&rx()->ep->fid, in);
		ending(rx(), in);
	}
};

TEST_P(Lies, HarmNothingButTheirOwnMessages)
{
	/* fi_peer(3), PEER SRX and PEER CQ, say what each call is for; a row of
	 * `lies` is one that does not keep to it. */
	static const Lie truth = { "", 0, 0, 0, false };

	if (!has_liar())
		GTEST_SKIP() << "another layout of receive entries";
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	ASSERT_TRUE(by_liar());
	tdt_log_expect("provider liar");
	for (int n = 0; n < 8; n++) {
		bool tagged = n & 1, late = n & 2;

		lie(GetParam().text);
		OK(message(10 + n, tagged, late, GetParam()));
		lie("");
		OK(message(20 + n, tagged, late, truth));
	}
	EXPECT_EQ(GetParam().said, tdt_log_count("provider liar") != 0);
	EXPECT_EQ(0, w->bad);
}

TEST_P(Lies, EndpointsClose)
{
	/* fi_endpoint(3), fi_close: what is under way ends with the endpoint. */
	char byte = 1;

	if (!has_liar())
		GTEST_SKIP() << "another layout of receive entries";
	OPEN();
	ASSERT_EQ(0, tdt_warm_up(w));
	tdt_log_expect("provider liar");
	lie(GetParam().text);
	for (int n = 0; n < 4; n++) {
		struct tdt_op send = op_of(TDT_SEND, n & 1, &byte, 1);

		send.addr = addr(ep(1), rx());
		send.tag = 7;
		send.context = &byte;
		(void)tdt_post(ep(1), &send);
	}
	ending(rx(), nullptr);
	EXPECT_EQ(0, tdt_ep_close(rx()));
	ending(ep(1), nullptr);
	close();
}

const Lie lies[] = {
	{ "send fails", FI_EIO, OPEN_END, OPEN_END, false },
	{ "send returns 1", 0, 0, 0, true },
	{ "send ends and fails", 0, 0, 0, true },
	{ "send ends twice", 0, 0, 0, true },
	{ "send of an unknown context", OPEN_END, 0, 0, true },
	{ "send fails with 0", FI_EIO, 0, 0, false },
	{ "send ends from another thread", OPEN_END, 0, 0, true },
	{ "source is unknown", 0, 0, 0, false },
	{ "message is shorter than announced", 0, 0, 0, false },
	{ "message is longer than memory", 0, FI_EIO, FI_EIO, true },
	{ "message is longer than announced", 0, FI_EIO, FI_EIO, true },
	{ "end is longer than announced", 0, FI_EIO, FI_EIO, true },
	{ "end of an unknown entry", 0, FI_ECONNRESET, FI_ECONNRESET, true },
	{ "end twice", 0, 0, 0, true },
	{ "end after free", 0, 0, 0, true },
	{ "end from another thread", 0, FI_ECONNRESET, FI_ECONNRESET, true },
	{ "end of a waiting message", 0, 0, 0, true },
	{ "free before the end", 0, FI_ECONNRESET, FI_ECONNRESET, true },
	{ "free without an end", 0, FI_ECONNRESET, FI_ECONNRESET, true },
	{ "free twice", 0, 0, 0, true },
	{ "free an unknown entry", 0, 0, 0, true },
	{ "free a waiting message", 0, 0, FI_ECONNRESET, true },
	{ "free what was not queued", 0, 0, OPEN_END, false },
	{ "queue twice", 0, 0, 0, true },
	{ "queue a matched entry", 0, 0, 0, true },
	{ "queue an unknown entry", 0, 0, 0, true },
	{ "recv fails with 0", 0, FI_ECONNRESET, FI_ECONNRESET, false },
	{ "recv fails with -5", 0, FI_ECONNRESET, FI_ECONNRESET, false },
	{ "get from another thread", 0, 0, 0, true },
	{ "get at an unknown context", 0, 0, 0, true },
	{ "start fails", 0, 0, FI_ECONNRESET, false },
	{ "start fails with 5", 0, 0, FI_ECONNRESET, false },
	{ "start frees and fails", 0, 0, FI_ECONNRESET, true },
	{ "start ends and fails", 0, 0, 0, false },
	{ "progress fails", 0, 0, 0, false },
	{ "source is found wrong", 0, 0, 0, false },
	{ "discard frees", 0, 0, 0, false },
	{ "discard fails", 0, 0, 0, false },
	{ "nothing closes", 0, 0, 0, false },
};

INSTANTIATE_TEST_SUITE_P(Foreign, Lies, testing::ValuesIn(lies),
			 [](const auto &info) {
				 std::string name = info.param.text;

				 for (char &c : name) {
					 if (!isalnum(c))
						 c = '_';
				 }
				 return name;
			 });

/* ---- lies about what has closed ------------------------------------------ */

class Late : public Foreign, public testing::WithParamInterface<const char *>
{
};

TEST_P(Late, CallsForAClosedEndpointAreRefused)
{
	/* fi_peer(3): what a peer imports belongs to an object of its own; it is
	 * not used behind fi_close of that. */
	if (!has_liar())
		GTEST_SKIP() << "another layout of receive entries";
	attr.eps = 3;
	attr.one_domain = 1;
	OPEN();
	tdt_log_expect("provider liar");
	OK(fence(ep(1)));
	ASSERT_TRUE(by_liar());
	ASSERT_EQ(0, tdt_ep_close(ep(2)));
	ASSERT_EQ(0u, tdt_log_count("breaks"));
	lie(GetParam());
	OK(fence(ep(1)));
	EXPECT_NE(0u, tdt_log_count("breaks fi_peer(3)"));
	lie("");
	OK(fence(ep(1)));
}

INSTANTIATE_TEST_SUITE_P(Foreign, Late,
			 testing::Values("get after close",
					 "resolve after close",
					 "end after close",
					 "send ends after close",
					 "free after close"));

TEST_F(Foreign, ALiarGetsNoFurtherPairs)
{
	/* fi_tandem(7), FOREIGN PROVIDERS: TCP carries the messages of pairs
	 * that meet after a breach. */
	if (!has_liar())
		GTEST_SKIP() << "another layout of receive entries";
	attr.eps = 3;
	attr.one_domain = 1;
	OPEN();
	tdt_log_expect("provider liar");
	OK(fence(ep(1)));
	EXPECT_TRUE(by_liar());
	lie("queue an unknown entry");
	OK(fence(ep(1)));
	lie("");
	ASSERT_NE(0u, tdt_log_count("breaks fi_peer(3)"));
	OK(fence(ep(2)));
	EXPECT_TRUE(by_liar());
	EXPECT_EQ("refused by the other side", reason(2));
}

} // namespace
