/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_PEEK, FI_CLAIM and FI_DISCARD of fi_tagged(3), with both transports.
 */
#include "srx_mock.h"

using namespace srx_test;

namespace
{

class SrxPeek : public Srx
{
protected:
	struct fi_context ctx = {}, other = {};
};

/* fi_tagged(3) 2.1, FLAGS 15: A peek that finds nothing has an error entry with
 * FI_ENOMSG. */
TEST_F(SrxPeek, NothingFoundIsAnErrorEntry)
{
	for (uint64_t f :
	     { FI_PEEK, FI_PEEK | FI_CLAIM, FI_PEEK | FI_DISCARD }) {
		ASSERT_EQ(peek(f, ANY, 0xbad, &ctx), 0);
		Comp c = one();
		EXPECT_EQ(c.err, FI_ENOMSG);
		EXPECT_EQ(c.context, &ctx);
		EXPECT_EQ(c.flags, FI_TAGGED | FI_RECV);
		EXPECT_EQ(c.tag, 0xbadu);
	}
	EXPECT_EQ(cntr.errors + cntr.value, 0u);
	/* Nothing was claimed by that. */
	EXPECT_EQ(peek(FI_CLAIM, ANY, 0xbad, &ctx), -FI_EINVAL);
}

/* fi_tagged(3) 2.1, FLAGS 16: The entry of a peek describes the message:
 * length, flags, data, tag, source. */
TEST_F(SrxPeek, FoundMessagesAreDescribedAndStay)
{
	std::string text(8, 0);

	b->arrive({ true, 5, 0x12, "hello", true, 0xd0 });
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(peek(FI_PEEK, 5, 0x10, &ctx, 0xf), 0);
		Comp c = one();
		EXPECT_EQ(c.err, 0);
		EXPECT_EQ(c.context, &ctx);
		EXPECT_EQ(c.flags, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
		EXPECT_EQ(c.len, 5u);
		EXPECT_EQ(c.data, 0xd0u);
		EXPECT_EQ(c.tag, 0x12u);
		EXPECT_EQ(c.src, 5u);
	}
	EXPECT_EQ(cntr.value, 0u);
	ASSERT_EQ(trecv(5, 0x12, text), 0);
	EXPECT_EQ(one().len, 5u);
}

/* The result is the purpose of the call: selective completion or not. */
TEST_F(SrxPeek, TheResultIsWrittenWithoutFiCompletion)
{
	struct tdm_xfer x = xfer(FI_TAGGED | FI_PEEK, ANY, 1, &ctx);

	a->tag(1, 1, "x");
	ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
	EXPECT_EQ(one().err, 0);
}

TEST_F(SrxPeek, PeeksNeedNoRoomAndTakeNone)
{
	std::string text(8, 0);

	for (int i = 0; i < 8; i++)
		ASSERT_EQ(trecv(ANY, i, text), 0);
	a->tag(1, 77, "x");
	EXPECT_EQ(peek(FI_PEEK | FI_CLAIM, ANY, 77, &ctx), 0);
	EXPECT_EQ(peek(FI_CLAIM | FI_DISCARD, ANY, 77, &ctx), 0);
	EXPECT_EQ(tdm_srx_left(srx), 0u);
}

TEST_F(SrxPeek, ADirectedPeekDoesNotSeeUnknownSources)
{
	a->arrive({ true, ANY, 1, "x", false, 0, 6 });
	ASSERT_EQ(peek(FI_PEEK, 6, 1, &ctx), 0);
	EXPECT_EQ(one().err, FI_ENOMSG);
	ASSERT_EQ(peek(FI_PEEK, ANY, 1, &ctx), 0);
	EXPECT_EQ(one().err, 0);
	a->resolve();
	ASSERT_EQ(peek(FI_PEEK, 6, 1, &ctx), 0);
	EXPECT_EQ(one().src, 6u);
}

/* fi_tagged(3) 2.1, FLAGS 17: A claimed message is had by a receive with
 * FI_CLAIM alone. */
TEST_F(SrxPeek, AClaimedMessageIsForItsClaimerOnly)
{
	std::string mine(8, 0), theirs(8, 0);
	struct tdm_xfer x;

	b->tag(1, 1, "first");
	a->tag(1, 1, "second");
	ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, ANY, 1, &ctx), 0);
	EXPECT_EQ(one().len, 5u);
	ASSERT_EQ(peek(FI_PEEK, ANY, 1, &other), 0);
	EXPECT_EQ(one().len, 6u);
	ASSERT_EQ(trecv(ANY, 1, theirs), 0);
	one();
	EXPECT_EQ(theirs.substr(0, 6), "second");

	x = xfer(FI_TAGGED | FI_COMPLETION | FI_CLAIM, ANY, 1, &ctx);
	tdm_xfer_buf(&x, &mine[0], mine.size());
	ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
	Comp c = one();
	EXPECT_EQ(c.context, &ctx);
	EXPECT_EQ(c.flags, FI_TAGGED | FI_RECV);
	EXPECT_EQ(mine.substr(0, 5), "first");
	EXPECT_EQ(b->started, 1u);
	/* A claim is good for one retrieval. */
	EXPECT_EQ(tdm_srx_recv(srx, &x), -FI_EINVAL);
	EXPECT_TRUE(cq.got.empty());
}

TEST_F(SrxPeek, SeveralClaimsAreKeptApart)
{
	struct fi_context c[3];
	std::string text(8, 0);

	for (int i = 0; i < 3; i++)
		a->tag(1, 1, std::string(1, char('0' + i)));
	for (auto &k : c)
		ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, ANY, 1, &k), 0);
	cq.got.clear();
	for (int i : { 1, 2, 0 }) {
		struct tdm_xfer x = xfer(FI_TAGGED | FI_COMPLETION | FI_CLAIM,
					 ANY, 1, &c[i]);

		tdm_xfer_buf(&x, &text[0], text.size());
		ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
		EXPECT_EQ(one().context, &c[i]);
		EXPECT_EQ(text[0], '0' + i);
	}
}

TEST_F(SrxPeek, AContextThatClaimedNothingIsRefused)
{
	struct fi_context stray = { { &stray, nullptr, nullptr, nullptr } };

	a->tag(1, 1, "x");
	ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, ANY, 1, &ctx), 0);
	one();
	stray.internal[0] = ctx.internal[0];
	EXPECT_EQ(peek(FI_CLAIM, ANY, 1, &stray), -FI_EINVAL);
	stray.internal[0] = &stray;
	EXPECT_EQ(peek(FI_CLAIM, ANY, 1, &stray), -FI_EINVAL);
	EXPECT_EQ(peek(FI_CLAIM | FI_DISCARD, ANY, 1, &stray), -FI_EINVAL);
	EXPECT_EQ(peek(FI_CLAIM, ANY, 1, nullptr), -FI_EINVAL);
	EXPECT_EQ(peek(FI_PEEK | FI_CLAIM, ANY, 1, nullptr), -FI_EINVAL);
	EXPECT_EQ(a->started + a->discarded, 0u);
}

TEST_F(SrxPeek, AClaimedMessageLearnsItsSource)
{
	struct fi_peer_rx_entry *e;

	e = a->arrive({ true, ANY, 1, "x", false, 0, 6 });
	ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, ANY, 1, &ctx), 0);
	EXPECT_EQ(one().src, ANY);
	a->resolve();
	EXPECT_EQ(e->addr, 6u);
	EXPECT_EQ(b->asked, 0u);
}

/* The sender died: its message goes, the claim ends with an error. */
TEST_F(SrxPeek, AClaimedMessageThatIsLostFailsTheClaim)
{
	struct fi_peer_rx_entry *e = a->tag(1, 1, "x");
	std::string text(8, 0);
	struct tdm_xfer x;

	ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, ANY, 1, &ctx), 0);
	one();
	a->give_back(e);
	x = xfer(FI_TAGGED | FI_COMPLETION | FI_CLAIM, ANY, 1, &ctx);
	tdm_xfer_buf(&x, &text[0], text.size());
	ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
	Comp c = one();
	EXPECT_EQ(c.err, FI_ECONNRESET);
	EXPECT_EQ(c.context, &ctx);
	EXPECT_EQ(c.len, 0u);
	EXPECT_EQ(a->started + a->discarded, 0u);
	EXPECT_EQ(entries(srx), 0u);
}

TEST_F(SrxPeek, ALostClaimCanBeDiscardedAndFlushed)
{
	struct fi_peer_rx_entry *e = a->tag(1, 1, "x"), *f = b->tag(1, 2, "y");

	ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, ANY, 1, &ctx), 0);
	ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, ANY, 2, &other), 0);
	cq.got.clear();
	a->give_back(e);
	b->give_back(f);
	ASSERT_EQ(peek(FI_CLAIM | FI_DISCARD, ANY, 1, &ctx), 0);
	EXPECT_EQ(one().err, 0);
	tdm_srx_flush(srx);
	EXPECT_EQ(a->discarded + b->discarded, 0u);
	EXPECT_EQ(entries(srx), 0u);
}

/* "...the message is discarded by the provider" - by the transport that
 * holds it, once; the owner frees the entry. */
TEST_F(SrxPeek, PeekAndDiscardDropsTheMessageOnce)
{
	a->tag(1, 1, "keep");
	b->arrive({ true, 2, 1, "drop it", true, 7 });
	ASSERT_EQ(peek(FI_PEEK | FI_DISCARD, 2, 1, &ctx), 0);
	Comp c = one();
	EXPECT_EQ(c.len, 7u);
	EXPECT_EQ(c.data, 7u);
	EXPECT_EQ(c.src, 2u);
	EXPECT_EQ(b->discarded, 1u);
	EXPECT_EQ(a->discarded, 0u);
	EXPECT_EQ(entries(srx), 1u);
	ASSERT_EQ(peek(FI_PEEK, 2, 1, &ctx), 0);
	EXPECT_EQ(one().err, FI_ENOMSG);
}

TEST_F(SrxPeek, ClaimAndDiscardDropsTheMessageOnce)
{
	b->tag(2, 1, "drop it");
	ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, 2, 1, &ctx), 0);
	one();
	EXPECT_EQ(b->discarded, 0u);
	ASSERT_EQ(peek(FI_CLAIM | FI_DISCARD, 2, 1, &ctx), 0);
	Comp c = one();
	EXPECT_EQ(c.err, 0);
	EXPECT_EQ(c.context, &ctx);
	EXPECT_EQ(c.tag, 1u);
	EXPECT_EQ(b->discarded, 1u);
	EXPECT_EQ(entries(srx), 0u);
	EXPECT_EQ(peek(FI_CLAIM | FI_DISCARD, 2, 1, &ctx), -FI_EINVAL);
	EXPECT_EQ(b->discarded, 1u);
}

TEST_F(SrxPeek, DiscardingAClaimIsSilentWithoutFiCompletion)
{
	struct tdm_xfer x =
		xfer(FI_TAGGED | FI_CLAIM | FI_DISCARD, ANY, 1, &ctx);

	a->tag(2, 1, "x");
	ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, 2, 1, &ctx), 0);
	one();
	ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
	EXPECT_TRUE(cq.got.empty());
	EXPECT_EQ(a->discarded, 1u);
}

/*
 * fi_msg(3) 2.1, FLAGS 1 to 14, has none of these flags; some combinations mean
 * nothing.
 */
TEST_F(SrxPeek, MeaninglessCombinationsAreRefused)
{
	a->tag(1, 0, "x");
	a->msg(1, "x");
	for (uint64_t f :
	     { FI_PEEK, FI_PEEK | FI_CLAIM, FI_PEEK | FI_DISCARD, FI_CLAIM }) {
		struct tdm_xfer x = xfer(FI_MSG | f, ANY, 0, &ctx);

		EXPECT_EQ(tdm_srx_recv(srx, &x), -FI_EINVAL);
	}
	EXPECT_EQ(peek(FI_DISCARD, ANY, 0, &ctx), -FI_EINVAL);
	EXPECT_EQ(peek(FI_PEEK | FI_CLAIM | FI_DISCARD, ANY, 0, &ctx),
		  -FI_EINVAL);
	EXPECT_EQ(peek(FI_PEEK | FI_MULTI_RECV, ANY, 0, &ctx), -FI_EINVAL);
	EXPECT_TRUE(cq.got.empty());
	EXPECT_EQ(a->discarded, 0u);
}

} // namespace
