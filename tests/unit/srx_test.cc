/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive side with two mock transports: matching across them, sources
 * that are learned late, cancelling, closing. Each test names the behaviour
 * that fi_peer(3), fi_msg(3), fi_tagged(3) or fi_endpoint(3) asks for.
 */
#include <malloc.h>

#include "srx_mock.h"

extern "C" {
#include "tests/harness/fault.h"
#include "tests/harness/sanitized.h"
}

using namespace srx_test;

namespace
{

/* fi_peer(3) 2.1, PEER SRX 3: The owner fills in all of fid_peer_srx but the
 * calls of the peer. */
TEST_F(Srx, ExportsAreCompleteAndOnePerTransport)
{
	EXPECT_NE(a->fid, b->fid);
	for (struct fid_peer_srx *f : { a->fid, b->fid }) {
		EXPECT_EQ(f->ep_fid.fid.fclass, size_t(FI_CLASS_PEER_SRX));
		EXPECT_EQ(f->ep_fid.ops->size, sizeof(struct fi_ops_ep));
		EXPECT_EQ(f->ep_fid.fid.ops->size, sizeof(struct fi_ops));
		EXPECT_EQ(f->owner_ops->size, sizeof(struct fi_ops_srx_owner));
		EXPECT_NE(f->owner_ops->get_msg, nullptr);
		EXPECT_NE(f->owner_ops->get_tag, nullptr);
		EXPECT_NE(f->owner_ops->queue_msg, nullptr);
		EXPECT_NE(f->owner_ops->queue_tag, nullptr);
		EXPECT_NE(f->owner_ops->foreach_unspec_addr, nullptr);
		EXPECT_NE(f->owner_ops->free_entry, nullptr);
	}
}

TEST_F(Srx, AMatchedEntryDescribesReceiveAndMessage)
{
	struct tdm_xfer x =
		xfer(FI_TAGGED | FI_COMPLETION | FI_MORE, 5, 0x70, &x);
	char head[3], tail[4];
	struct iovec iov[2] = { { head, 3 }, { tail, 4 } };
	void *desc[2] = { head, nullptr };
	struct fi_peer_rx_entry *e;

	x.iov = iov;
	x.desc = desc;
	x.count = 2;
	x.len = 7;
	x.ignore = 0xf;
	ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
	a->hold = true;
	e = a->tag(5, 0x71, "abcde");
	ASSERT_EQ(a->last_get, 0);
	EXPECT_EQ(e->flags, FI_TAGGED | FI_RECV | FI_COMPLETION);
	EXPECT_EQ(e->context, &x);
	EXPECT_EQ(e->tag, 0x71u);
	EXPECT_EQ(e->msg_size, 5u);
	EXPECT_EQ(e->count, 2u);
	EXPECT_EQ(e->iov[1].iov_base, tail);
	EXPECT_EQ(e->iov[1].iov_len, 4u);
	EXPECT_EQ(e->desc[0], head);
	EXPECT_EQ(e->desc[1], nullptr);
	a->finish(e);
	Comp c = one();
	EXPECT_EQ(c.context, &x);
	EXPECT_EQ(c.flags, FI_TAGGED | FI_RECV);
	EXPECT_EQ(c.src, 5u);
	EXPECT_EQ(c.tag, 0x71u);
	EXPECT_EQ(c.len, 5u);
	EXPECT_EQ(std::string(head, 3) + std::string(tail, 2), "abcde");
	EXPECT_EQ(cntr.value, 1u);
}

/* Elements beyond the room of an entry are kept elsewhere, with one result. */
TEST_F(Srx, AReceiveOfTheMostElements)
{
	struct tdm_xfer x = xfer(FI_TAGGED | FI_COMPLETION, 5, 1, &x);
	struct iovec iov[TDM_IOV_LIMIT];
	char buf[TDM_IOV_LIMIT] = {};
	std::string text = "abcdefgh";

	ASSERT_EQ(text.size(), sizeof(buf));
	for (size_t i = 0; i < TDM_IOV_LIMIT; i++)
		iov[i] = { &buf[i], 1 };
	x.iov = iov;
	x.count = TDM_IOV_LIMIT;
	x.len = sizeof(buf);
	for (int late = 0; late < 2; late++) {
		if (late)
			a->tag(5, 1, text);
		ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
		if (!late)
			a->tag(5, 1, text);
		EXPECT_EQ(one().flags, FI_TAGGED | FI_RECV);
		EXPECT_EQ(std::string(buf, sizeof(buf)), text);
		memset(buf, 0, sizeof(buf));
	}
	ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
	EXPECT_EQ(tdm_srx_cancel(srx, &x), 0);
	EXPECT_EQ(one().err, FI_ECANCELED);
	/* One that is posted, and one that waits, when all is closed. */
	ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
	ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
	a->hold = true;
	struct fi_peer_rx_entry *e = a->tag(5, 1, text);
	EXPECT_EQ(e->count, size_t(TDM_IOV_LIMIT));
	EXPECT_EQ(e->iov[TDM_IOV_LIMIT - 1].iov_base, &buf[TDM_IOV_LIMIT - 1]);
	EXPECT_EQ(e->desc[TDM_IOV_LIMIT - 1], nullptr);
	a->finish(e);
	EXPECT_EQ(one().len, sizeof(buf));
}

TEST_F(Srx, AReceiveOfTheMostElementsNeedsMemory)
{
	struct tdm_xfer x = xfer(FI_TAGGED | FI_COMPLETION, 5, 1, &x);
	struct iovec iov[TDM_IOV_LIMIT];
	std::string buf(TDM_IOV_LIMIT, 0), warm(8, 0);

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "allocations cannot be made to fail here";
	for (size_t i = 0; i < TDM_IOV_LIMIT; i++)
		iov[i] = { &buf[i], 1 };
	x.iov = iov;
	x.count = TDM_IOV_LIMIT;
	x.len = buf.size();
	ASSERT_EQ(trecv(5, 2, warm), 0);
	size_t left = tdm_srx_left(srx);

	tdt_alloc_fail(1, 1);
	EXPECT_EQ(tdm_srx_recv(srx, &x), -FI_ENOMEM);
	EXPECT_EQ(tdt_alloc_stop(), 1u);
	EXPECT_EQ(tdm_srx_left(srx), left);
	a->tag(5, 1, "waits");
	tdt_alloc_fail(1, 1);
	EXPECT_EQ(tdm_srx_recv(srx, &x), -FI_ENOMEM);
	EXPECT_EQ(tdt_alloc_stop(), 1u);
	EXPECT_TRUE(cq.got.empty());
	ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
	EXPECT_EQ(one().len, 5u);
	EXPECT_EQ(buf.substr(0, 5), "waits");
	a->tag(5, 2, "warm");
	EXPECT_EQ(one().len, 4u);
}

TEST_F(Srx, WithoutCompletionOnlyTheCounterMoves)
{
	char buf[8];

	ASSERT_EQ(post(FI_MSG, ANY, 0, buf, 8, buf), 0);
	a->msg(1, "x");
	EXPECT_TRUE(cq.got.empty());
	EXPECT_EQ(cntr.value, 1u);
}

TEST_F(Srx, AReceiveWithoutBuffersHasAnElementToLookAt)
{
	struct tdm_xfer x = xfer(FI_MSG | FI_COMPLETION, ANY, 0, &x);

	ASSERT_EQ(tdm_srx_recv(srx, &x), 0);
	a->hold = true;
	struct fi_peer_rx_entry *e = a->msg(1, "");
	EXPECT_EQ(e->count, 0u);
	EXPECT_EQ(e->iov[0].iov_base, nullptr);
	EXPECT_EQ(e->desc[0], nullptr);
	a->finish(e);
	EXPECT_EQ(one().len, 0u);
}

TEST_F(Srx, MsgSizeNeverExceedsThePostedLength)
{
	std::string any(4, 0), directed(4, 0), later(4, 0);

	a->hold = true;
	ASSERT_EQ(trecv(ANY, 1, any), 0);
	ASSERT_EQ(trecv(9, 2, directed), 0);
	EXPECT_EQ(a->tag(9, 1, "longer")->msg_size, 4u);
	EXPECT_EQ(a->tag(9, 2, "longer")->msg_size, 4u);
	struct fi_peer_rx_entry *e = a->tag(9, 3, "longer");
	EXPECT_EQ(a->last_get, -FI_ENOENT);
	EXPECT_EQ(e->msg_size, 6u);
	ASSERT_EQ(trecv(9, 3, later), 0);
	EXPECT_EQ(e->msg_size, 4u);
}

/*
 * fi_cq(3) 2.1, COMPLETION FIELDS 9: olen. The sender and the next message are
 * not concerned.
 */
TEST_F(Srx, ATruncatedMessageFailsOnlyItsReceive)
{
	std::string small(2, 0), next(8, 0);

	a->tag(1, 1, "abcd");
	a->tag(1, 1, "next");
	ASSERT_EQ(trecv(1, 1, small), 0);
	Comp c = one();
	EXPECT_EQ(c.err, FI_ETRUNC);
	EXPECT_EQ(c.len, 2u);
	EXPECT_EQ(c.olen, 2u);
	ASSERT_EQ(trecv(1, 1, next), 0);
	EXPECT_EQ(one().len, 4u);
	EXPECT_EQ(next.substr(0, 4), "next");
}

/* fi_peer(3) 2.1, EXAMPLE PEER SRX RECEIVE FLOW 2, steps 6 to 9. */
TEST_F(Srx, ALaterReceiveStartsTheMessageWithItsTransport)
{
	std::string t1(8, 0), t2(8, 0), m1(8, 0);

	a->tag(1, 7, "from a");
	b->tag(2, 7, "from b");
	b->msg(2, "msg b");
	ASSERT_EQ(trecv(2, 7, t1), 0);
	EXPECT_EQ(b->started, 1u);
	EXPECT_EQ(a->started, 0u);
	ASSERT_EQ(recv(ANY, m1), 0);
	EXPECT_EQ(b->started, 2u);
	ASSERT_EQ(trecv(ANY, 7, t2), 0);
	EXPECT_EQ(a->started, 1u);
	EXPECT_EQ(t1.substr(0, 6), "from b");
	EXPECT_EQ(t2.substr(0, 6), "from a");
	EXPECT_EQ(m1.substr(0, 5), "msg b");
	EXPECT_EQ(cq.got.size(), 3u);
	EXPECT_EQ(cntr.value, 3u);
}

TEST_F(Srx, StartedEntriesHaveTheFlagsOfTheReceive)
{
	std::string text(8, 0);

	a->hold = true;
	struct fi_peer_rx_entry *e = a->msg(1, "x");
	EXPECT_EQ(e->flags & FI_COMPLETION, 0u);
	ASSERT_EQ(recv(ANY, text), 0);
	EXPECT_EQ(e->flags, FI_MSG | FI_RECV | FI_COMPLETION);
	EXPECT_EQ(e->context, &text);
	EXPECT_EQ(e->count, 1u);
}

TEST_F(Srx, DataSetBeforeQueueingIsReported)
{
	std::string text(8, 0);

	a->arrive({ true, 1, 2, "x", true, 0xfeedu });
	ASSERT_EQ(trecv(1, 2, text), 0);
	Comp c = one();
	EXPECT_EQ(c.flags, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
	EXPECT_EQ(c.data, 0xfeedu);
}

TEST_F(Srx, TaggedAndUntaggedDoNotMeet)
{
	std::string t(8, 0), m(8, 0);

	ASSERT_EQ(trecv(ANY, 0, t, ~0ull), 0);
	ASSERT_EQ(recv(ANY, m), 0);
	a->msg(1, "msg");
	EXPECT_EQ(one().context, &m);
	a->tag(1, 0, "tag");
	EXPECT_EQ(one().context, &t);
}

/* An untagged message takes the receive posted first, whether that named a
 * source or not; the tag argument of a message call means nothing. */
TEST_F(Srx, UntaggedReceivesAreTakenInPostingOrder)
{
	std::string r[4];
	fi_addr_t src[4] = { ANY, 3, ANY, 3 };

	for (int i = 0; i < 4; i++) {
		r[i].resize(4);
		ASSERT_EQ(post(FI_MSG | FI_COMPLETION, src[i], 100 + i,
			       &r[i][0], 4, &r[i]),
			  0);
	}
	for (int i = 0; i < 4; i++) {
		(i & 1 ? a : b)->msg(3, "x");
		EXPECT_EQ(one().context, &r[i]);
	}
}

/* fi_msg(3) 2.1, ARGUMENTS 9: src_addr counts only with FI_DIRECTED_RECV. */
TEST_F(Srx, WithoutDirectedReceiveSourcesAreIgnored)
{
	std::string r1(8, 0), r2(8, 0), r3(8, 0);

	open(false, 8, 0);
	ASSERT_EQ(recv(77, r1), 0);
	a->msg(ANY, "one");
	EXPECT_EQ(one().context, &r1);
	a->tag(3, 1, "two");
	ASSERT_EQ(trecv(88, 1, r2), 0);
	Comp c = one();
	EXPECT_EQ(c.context, &r2);
	EXPECT_EQ(c.src, 3u);
	/* Entries must not get stuck in a queue of their source. */
	struct fi_peer_rx_entry *e = a->tag(4, 5, "x");
	a->give_back(e);
	ASSERT_EQ(trecv(4, 5, r3), 0);
	EXPECT_TRUE(cq.got.empty());
}

/*
 * fi_peer(3) 2.1, EXAMPLE PEER SRX RECEIVE FLOW 2, step 7: A directed receive
 * does not match a message of an unknown source.
 */
TEST_F(Srx, AnUnknownSourceWaitsForItsDirectedReceive)
{
	std::string directed(8, 0), any(8, 0);

	ASSERT_EQ(trecv(6, 1, directed), 0);
	a->arrive({ true, ANY, 1, "hello", false, 0, 6 });
	EXPECT_EQ(a->last_get, -FI_ENOENT);
	EXPECT_TRUE(cq.got.empty());
	a->resolve();
	Comp c = one();
	EXPECT_EQ(c.context, &directed);
	EXPECT_EQ(c.src, 6u);
	EXPECT_EQ(directed.substr(0, 5), "hello");

	ASSERT_EQ(trecv(6, 1, directed), 0);
	ASSERT_EQ(trecv(ANY, 1, any), 0);
	a->tag(ANY, 1, "x");
	EXPECT_EQ(one().context, &any);
}

TEST_F(Srx, LearnedSourcesAreMatchedInArrivalOrder)
{
	std::string r[3];

	for (auto &s : r) {
		s.resize(4);
		ASSERT_EQ(recv(6, s), 0);
	}
	a->arrive({ false, ANY, 0, "1", false, 0, 6 });
	a->arrive({ false, ANY, 0, "x", false, 0, ANY });
	a->arrive({ false, ANY, 0, "2", false, 0, 6 });
	a->arrive({ false, ANY, 0, "3", false, 0, 6 });
	a->resolve();
	ASSERT_EQ(cq.got.size(), 3u);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(cq.got[i].context, &r[i]);
		EXPECT_EQ(r[i][0], '1' + i);
	}
}

TEST_F(Srx, LearnedSourcesWithoutAReceiveWaitOnInOrder)
{
	std::string r1(4, 0), r2(4, 0);

	a->arrive({ true, ANY, 3, "1", false, 0, 6 });
	a->arrive({ true, ANY, 3, "2", false, 0, 6 });
	a->resolve();
	a->tag(6, 3, "3");
	ASSERT_EQ(trecv(6, 3, r1), 0);
	ASSERT_EQ(trecv(ANY, 3, r2), 0);
	EXPECT_EQ(r1[0], '1');
	EXPECT_EQ(r2[0], '2');
}

/* AV indices are used again at once: a message of the old peer is not for
 * receives that wait for the new one. */
TEST_F(Srx, MessagesOfARemovedAddressBelongToNobodyInParticular)
{
	std::string tag(8, 0), msg(8, 0), any(8, 0);
	struct fi_context ctx;

	a->tag(3, 1, "old");
	a->msg(3, "old");
	a->tag(4, 1, "other");
	struct fi_peer_rx_entry *e = a->tag(3, 2, "claimed");
	ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, 3, 2, &ctx), 0);
	one();
	tdm_srx_forget(srx, 3);
	EXPECT_EQ(e->addr, ANY);
	ASSERT_EQ(trecv(3, 1, tag), 0);
	ASSERT_EQ(recv(3, msg), 0);
	EXPECT_TRUE(cq.got.empty());
	b->tag(3, 1, "new");
	EXPECT_EQ(one().context, &tag);
	ASSERT_EQ(trecv(ANY, 1, any), 0);
	Comp c = one();
	EXPECT_EQ(any.substr(0, 3), "old");
	EXPECT_EQ(c.src, ANY);
}

/* A foreign peer_context must never reach get_addr(). */
TEST_F(Srx, SourcesAreAskedOnlyOfTheTransportsOwnEntries)
{
	a->arrive({ false, ANY, 0, "a", false, 0, ANY });
	a->arrive({ true, ANY, 0, "a", false, 0, ANY });
	b->arrive({ true, ANY, 0, "b", false, 0, ANY });
	a->tag(4, 0, "known");
	a->resolve();
	EXPECT_EQ(a->asked, 2u);
	EXPECT_EQ(b->asked, 0u);
	b->resolve();
	EXPECT_EQ(b->asked, 1u);
}

/* A message that a transport reads while it starts another one comes after
 * all those that arrived before. */
TEST_F(Srx, WhatArrivesWhileOthersAreStartedComesAfterThem)
{
	std::string r[3];

	for (auto &s : r) {
		s.resize(4);
		ASSERT_EQ(recv(6, s), 0);
	}
	a->arrive({ false, ANY, 0, "1", false, 0, 6 });
	a->arrive({ false, ANY, 0, "2", false, 0, 6 });
	a->on_start = [&](struct fi_peer_rx_entry *) {
		a->on_start = nullptr;
		a->msg(6, "3");
	};
	a->resolve();
	ASSERT_EQ(cq.got.size(), 3u);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(r[i][0], '1' + i);
}

/* The connection breaks while one of its messages is started. */
TEST_F(Srx, AMessageLostWhileOthersAreStartedLeavesItsReceivePosted)
{
	std::string r1(4, 0), r2(4, 0);
	struct fi_peer_rx_entry *lost;

	ASSERT_EQ(recv(6, r1), 0);
	ASSERT_EQ(recv(6, r2), 0);
	a->arrive({ false, ANY, 0, "1", false, 0, 6 });
	lost = a->arrive({ false, ANY, 0, "2", false, 0, 6 });
	a->on_start = [&](struct fi_peer_rx_entry *) {
		a->on_start = nullptr;
		a->give_back(lost);
	};
	a->resolve();
	EXPECT_EQ(one().context, &r1);
	b->msg(6, "3");
	EXPECT_EQ(one().context, &r2);
}

TEST_F(Srx, EntriesComeBackQueuedOrNot)
{
	struct fi_peer_match_attr attr = { ANY, 4, 1 };
	struct fi_peer_rx_entry *e = nullptr;
	std::string text(8, 0);

	EXPECT_EQ(a->fid->owner_ops->get_tag(a->fid, &attr, &e), -FI_ENOENT);
	a->fid->owner_ops->free_entry(e); /* never queued */
	for (fi_addr_t src : { fi_addr_t(3), ANY }) {
		a->give_back(a->tag(src, 1, "x"));
		a->give_back(a->msg(src, "x"));
	}
	ASSERT_EQ(trecv(ANY, 1, text), 0);
	ASSERT_EQ(recv(3, text), 0);
	EXPECT_TRUE(cq.got.empty());
	EXPECT_EQ(srx->pool.in_use, 2u);
}

TEST_F(Srx, TheSizeIsWhatIsLeftOfItAndNoLimit)
{
	std::string text(8, 0);

	for (int i = 0; i < 100; i++)
		a->tag(1, 500 + i, "x");
	for (int i = 0; i < 8; i++) {
		EXPECT_EQ(tdm_srx_left(srx), size_t(8 - i));
		ASSERT_EQ(i & 1 ? recv(ANY, text) : trecv(ANY, i, text), 0);
	}
	EXPECT_EQ(tdm_srx_left(srx), 0u);
	EXPECT_EQ(recv(ANY, text), 0);
	EXPECT_EQ(trecv(ANY, 9, text), 0);
	EXPECT_EQ(multi(text), 0);
	EXPECT_EQ(tdm_srx_left(srx), 0u);
	/* A message that waits takes no room. */
	EXPECT_EQ(trecv(ANY, 500, text), 0);
	EXPECT_EQ(one().len, 1u);
	/* Matched receives make room before they complete. */
	a->hold = true;
	for (int i : { 0, 2, 4, 9 })
		a->tag(1, i, "x");
	EXPECT_EQ(tdm_srx_left(srx), 1u);
}

/* Each receive of many costs the same, whatever order they are met in. */
TEST_F(Srx, AHundredThousandReceivesAreMetByTheirTags)
{
	const uint64_t n = 100000, step = 38917; /* no common factor */
	std::string text(8, 0);

	for (uint64_t i = 0; i < n; i++)
		ASSERT_EQ(trecv(ANY, i, text), 0);
	for (uint64_t i = 0; i < n; i++)
		a->tag(1, i * step % n, "x");
	ASSERT_EQ(cq.got.size(), n);
	for (uint64_t i = 0; i < n; i++)
		ASSERT_EQ(cq.got[i].tag, i * step % n);
	EXPECT_EQ(tdm_srx_left(srx), 8u);
}

TEST_F(Srx, TooManyElementsAreRefused)
{
	struct tdm_xfer x = xfer(FI_MSG, ANY, 0, &x);
	struct iovec iov[TDM_IOV_LIMIT + 1] = {};

	x.iov = iov;
	x.count = TDM_IOV_LIMIT + 1;
	EXPECT_EQ(tdm_srx_recv(srx, &x), -FI_EINVAL);
}

/* fi_endpoint(3) 2.1, fi_cancel 1: A cancelled receive has an error entry. */
TEST_F(Srx, CancelEndsTheReceiveWithOneErrorEntry)
{
	std::string t(8, 0), m(8, 0);

	ASSERT_EQ(trecv(4, 0x33, t), 0);
	ASSERT_EQ(recv(4, m), 0);
	EXPECT_EQ(tdm_srx_cancel(srx, &m), 0);
	Comp c = one();
	EXPECT_EQ(c.err, FI_ECANCELED);
	EXPECT_EQ(c.flags, FI_MSG | FI_RECV);
	EXPECT_EQ(c.context, &m);
	EXPECT_EQ(c.len, 0u);
	EXPECT_EQ(c.olen, 0u);
	EXPECT_EQ(tdm_srx_cancel(srx, &m), -FI_ENOENT);
	EXPECT_EQ(tdm_srx_cancel(srx, &t), 0);
	c = one();
	EXPECT_EQ(c.flags, FI_TAGGED | FI_RECV);
	EXPECT_EQ(c.tag, 0x33u);
	EXPECT_EQ(cntr.errors, 2u);
	EXPECT_EQ(cntr.value, 0u);
	/* Nothing of them is left. */
	a->msg(4, "x");
	EXPECT_EQ(a->last_get, -FI_ENOENT);
	a->tag(4, 0x33, "x");
	EXPECT_EQ(a->last_get, -FI_ENOENT);
}

TEST_F(Srx, CancelTakesTheOldestOfOneContext)
{
	char buf[4];

	ASSERT_EQ(post(FI_TAGGED, ANY, 1, buf, 1, buf), 0);
	ASSERT_EQ(post(FI_MSG, 3, 0, buf, 1, buf), 0);
	ASSERT_EQ(post(FI_TAGGED, ANY, 2, buf, 1, buf), 0);
	EXPECT_EQ(tdm_srx_cancel(srx, buf), 0);
	EXPECT_EQ(one().tag, 1u);
	EXPECT_EQ(tdm_srx_cancel(srx, buf), 0);
	EXPECT_EQ(one().flags, FI_MSG | FI_RECV);
	EXPECT_EQ(tdm_srx_cancel(srx, buf), 0);
	EXPECT_EQ(one().tag, 2u);
}

/* include/tdm_held.h, entry_bytes. */
TEST_F(Srx, AMessageThatWaitsTakesWhatIsSaid)
{
	const unsigned count = 4080; /* whole slabs: 16 + 32 + ... + 2048 */

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "allocations are not counted here";
	tdt_alloc_fail(0, 0);
	for (unsigned i = 0; i < count; i++)
		a->tag(4, 1, "x");
	const size_t taken = tdt_alloc_bytes();

	EXPECT_EQ(0u, tdt_alloc_stop());
	EXPECT_NEAR(double(taken), double(count) * srx->held.entry_bytes,
		    double(taken) / 50);
}

/*
 * fi_tandem(7), LIMITS: 160 bytes for a posted receive where there are many,
 * the tables by which messages find it included. Counted by the allocator, at
 * the sizes at which a table has just grown and at others, before and after a
 * message has looked for its receive, which files all of them.
 */
TEST_F(Srx, APostedReceiveTakesAtMost160Bytes)
{
	struct mallinfo2 before, now;
	char buf[8];

	if (TDT_SANITIZED)
		GTEST_SKIP() << "the sanitizer's heap tells no sizes";
	for (size_t n : { 100000u, 131073u, 163841u, 655361u, 1000000u }) {
		open(TDM_SRX_DIRECTED_TAG, 8, 4);
		before = mallinfo2();
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(post(FI_TAGGED, i % 7, i, buf, 8, buf), 0);
		for (bool filed : { false, true }) {
			auto *m = srx->match[TDM_SRX_TAG];

			if (filed && tdm_match_find_posted(m, 9, 1))
				FAIL() << "source 9 sent nothing";
			now = mallinfo2();
			double each = double(now.uordblks + now.hblkhd -
					     before.uordblks - before.hblkhd) /
				      double(n);

			EXPECT_LE(each, 160.0) << n << " filed: " << filed;
			EXPECT_GT(each, 120.0) << "the measure is wrong";
		}
	}
}

TEST_F(Srx, NothingButPostedReceivesCanBeCancelled)
{
	std::string text(8, 0);
	char buf[1];

	ASSERT_EQ(post(FI_MSG, ANY, 0, buf, 1, nullptr), 0);
	EXPECT_EQ(tdm_srx_cancel(srx, nullptr), -FI_ENOENT);
	ASSERT_EQ(trecv(ANY, 1, text), 0);
	a->hold = true;
	a->tag(1, 1, "x");
	EXPECT_EQ(tdm_srx_cancel(srx, &text), -FI_ENOENT);
	EXPECT_TRUE(cq.got.empty());
}

/* fi_endpoint(3) 2.1, fi_close 3: Outstanding operations vanish silently. */
TEST_F(Srx, FlushDiscardsMessagesAndDropsReceivesSilently)
{
	std::string text(8, 0);
	struct fi_context ctx;

	a->tag(1, 1, "x");
	a->msg(ANY, "x");
	b->tag(1, 2, "x");
	b->tag(1, 3, "x");
	ASSERT_EQ(peek(FI_PEEK | FI_CLAIM, ANY, 3, &ctx), 0);
	one();
	ASSERT_EQ(trecv(ANY, 9, text), 0);
	ASSERT_EQ(recv(9, text), 0);
	tdm_srx_flush(srx);
	EXPECT_EQ(a->discarded, 2u);
	EXPECT_EQ(b->discarded, 2u);
	EXPECT_TRUE(cq.got.empty());
	EXPECT_EQ(cntr.errors, 0u);
	EXPECT_EQ(srx->pool.in_use, 0u);
	tdm_srx_flush(srx);
	EXPECT_EQ(a->discarded + b->discarded, 4u);
}

/* Transports close after the flush, or before it, with work in hand. */
TEST_F(Srx, EntriesInHandMayComeBackAfterTheFlush)
{
	std::string text(8, 0);
	struct fi_peer_rx_entry *e, *w;

	ASSERT_EQ(trecv(ANY, 9, text), 0);
	a->hold = true;
	e = a->tag(1, 9, "x");
	w = a->tag(1, 10, "x");
	a->give_back(w);
	tdm_srx_flush(srx);
	w = a->tag(1, 11, "late");
	EXPECT_EQ(a->last_get, -FI_ENOENT);
	a->give_back(e);
	a->give_back(w);
	EXPECT_EQ(srx->pool.in_use, 0u);
	EXPECT_EQ(a->discarded, 0u);
}

TEST_F(Srx, AnImporterReachesCancelAndOptionsThroughTheFid)
{
	struct fid *fid = &a->fid->ep_fid.fid;
	struct fi_ops_ep *ops = a->fid->ep_fid.ops;
	std::string text(8, 0);
	size_t val = 0, len = sizeof(val);

	ASSERT_EQ(recv(ANY, text), 0);
	EXPECT_EQ(ops->cancel(fid, &text), 0);
	EXPECT_EQ(one().err, FI_ECANCELED);
	EXPECT_EQ(ops->getopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val,
			      &len),
		  0);
	EXPECT_EQ(val, 4u);
	val = 99;
	EXPECT_EQ(ops->setopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val,
			      len),
		  0);
	EXPECT_EQ(srx->min_multi_recv, 99u);
	EXPECT_EQ(ops->setopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val,
			      4),
		  -FI_EINVAL);
	len = 4;
	EXPECT_EQ(ops->getopt(fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &val,
			      &len),
		  -FI_ETOOSMALL);
	EXPECT_EQ(len, sizeof(val));
	EXPECT_EQ(ops->getopt(fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &val,
			      &len),
		  -FI_ENOPROTOOPT);
	EXPECT_EQ(ops->setopt(fid, 7, FI_OPT_MIN_MULTI_RECV, &val, len),
		  -FI_ENOPROTOOPT);
	EXPECT_EQ(fid->ops->close(fid), -FI_ENOSYS);
}

TEST_F(Srx, WorksWithoutQueueAndCounter)
{
	struct tdm_done none = {};
	std::string text(8, 0);
	struct fi_context ctx;

	tdm_srx_set_done(srx, &none);
	ASSERT_EQ(multi(text), 0);
	EXPECT_EQ(tdm_srx_cancel(srx, &text), 0);
	EXPECT_EQ(peek(FI_PEEK, ANY, 1, &ctx), 0);
	a->tag(1, 1, "x");
	EXPECT_EQ(peek(FI_PEEK | FI_DISCARD, ANY, 1, &ctx), 0);
	EXPECT_EQ(a->discarded, 1u);
}

TEST_F(Srx, OpeningSurvivesEveryFailedAllocation)
{
	struct tdm_srx_attr attr = {};
	struct tdm_srx *s = nullptr;
	unsigned n = 0, failed;
	int ret;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "allocations cannot be made to fail here";
	attr.engine = &engine;
	attr.size = 4;
	do {
		tdt_alloc_fail(++n, 0);
		ret = tdm_srx_open(&attr, &s);
		failed = tdt_alloc_stop();
		EXPECT_EQ(ret, failed ? -FI_ENOMEM : 0);
		EXPECT_EQ(s != nullptr, !failed);
	} while (failed && n < 100);
	EXPECT_GT(n, 4u);
	tdm_srx_close(s);
}

/* Without memory the calls say so, and all goes on when there is some. */
TEST_F(Srx, CallsSurviveWithoutMemory)
{
	struct fi_peer_match_attr attr = { 1, 4, 1 };
	struct fi_peer_rx_entry *e = nullptr;
	std::string t(8, 0), m(8, 0);

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "allocations cannot be made to fail here";
	tdt_alloc_fail(1, 1);
	EXPECT_EQ(trecv(ANY, 1, t), -FI_ENOMEM);
	EXPECT_EQ(multi(m), -FI_ENOMEM);
	EXPECT_EQ(a->fid->owner_ops->get_tag(a->fid, &attr, &e), -FI_ENOMEM);
	EXPECT_EQ(tdt_alloc_stop(), 3u);
	EXPECT_EQ(tdm_srx_left(srx), 8u);
	ASSERT_EQ(trecv(ANY, 1, t), 0);
	ASSERT_EQ(multi(m), 0);
	a->tag(1, 1, "tag");
	a->msg(1, "msg");
	EXPECT_EQ(cq.got.size(), 2u);
}

} // namespace
