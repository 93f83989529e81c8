/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multi-recv buffers: FI_MULTI_RECV in fi_msg(3) and fi_cq(3),
 * FI_OPT_MIN_MULTI_RECV in fi_endpoint(3).
 */
#include "srx_mock.h"

extern "C" {
#include "tests/harness/fault.h"
}

using namespace srx_test;

namespace
{

class SrxMulti : public Srx
{
protected:
	/* fi_cq(3) 2.1, COMPLETION FLAGS 15: FI_MULTI_RECV as the only flag:
	 * the buffer is released. */
	void expect_release(const Comp &c, void *context)
	{
		EXPECT_EQ(c.flags, FI_MULTI_RECV);
		EXPECT_EQ(c.err, 0);
		EXPECT_EQ(c.context, context);
		EXPECT_EQ(c.len, 0u);
	}

	std::string text = std::string(16, '.');
};

TEST_F(SrxMulti, MessagesArePackedAndTheBufferIsReleasedOnce)
{
	ASSERT_EQ(multi(text), 0);
	a->msg(1, "abc");
	b->msg(2, "defgh");
	a->msg(1, "");
	ASSERT_EQ(cq.got.size(), 3u);
	EXPECT_EQ(cq.got[0].buf, &text[0]);
	EXPECT_EQ(cq.got[1].buf, &text[3]);
	EXPECT_EQ(cq.got[1].len, 5u);
	EXPECT_EQ(cq.got[2].buf, &text[8]);
	for (auto &c : cq.got) {
		EXPECT_EQ(c.flags, FI_MSG | FI_RECV);
		EXPECT_EQ(c.context, &text);
	}
	EXPECT_EQ(tdm_srx_left(srx), 7u);
	a->msg(1, "ijklm"); /* 3 left < 4 */
	ASSERT_EQ(cq.got.size(), 5u);
	EXPECT_EQ(cq.got[3].flags, FI_MSG | FI_RECV);
	expect_release(cq.got[4], &text);
	EXPECT_EQ(text, "abcdefghijklm...");
	EXPECT_EQ(tdm_srx_left(srx), 8u);
	EXPECT_EQ(cntr.value, 4u);
	EXPECT_EQ(entries(srx), 0u);
	a->msg(1, "x");
	EXPECT_EQ(a->last_get, -FI_ENOENT);
}

TEST_F(SrxMulti, ItIsReleasedAfterTheLastPartWhateverTheirOrder)
{
	struct fi_peer_rx_entry *e[3];

	ASSERT_EQ(multi(text), 0);
	a->hold = b->hold = true;
	e[0] = a->msg(1, "aaaa");
	e[1] = b->msg(2, "bbbb");
	e[2] = a->msg(1, "cccccccc");
	EXPECT_EQ(a->last_get, 0);
	a->finish(e[2]);
	a->finish(e[0]);
	ASSERT_EQ(cq.got.size(), 2u);
	b->finish(e[1]);
	ASSERT_EQ(cq.got.size(), 4u);
	expect_release(cq.got[3], &text);
	EXPECT_EQ(text, "aaaabbbbcccccccc");
}

/* fi_msg(3) 2.1, FLAGS 7: A buffer that is used up always has an entry, also
 * where successes have none. */
TEST_F(SrxMulti, TheReleaseIsReportedWithoutFiCompletion)
{
	ASSERT_EQ(multi(text, ANY, FI_MSG), 0);
	a->msg(1, "0123456789abcde");
	expect_release(one(), &text);
	EXPECT_EQ(cntr.value, 1u);
}

TEST_F(SrxMulti, AMessageLargerThanTheRestIsCut)
{
	struct fi_peer_rx_entry *e;

	ASSERT_EQ(multi(text), 0);
	a->msg(1, "0123456789");
	a->hold = true;
	e = a->msg(1, "abcdefghij");
	ASSERT_EQ(a->last_get, 0);
	EXPECT_EQ(e->msg_size, 6u);
	EXPECT_EQ(e->iov[0].iov_base, &text[10]);
	EXPECT_EQ(e->iov[0].iov_len, 6u);
	a->finish(e);
	ASSERT_EQ(cq.got.size(), 3u);
	EXPECT_EQ(cq.got[1].err, FI_ETRUNC);
	EXPECT_EQ(cq.got[1].flags, FI_MSG | FI_RECV);
	EXPECT_EQ(cq.got[1].len, 6u);
	EXPECT_EQ(cq.got[1].olen, 4u);
	expect_release(cq.got[2], &text);
	EXPECT_EQ(text, "0123456789abcdef");
}

/* The same for messages that waited. */
TEST_F(SrxMulti, WaitingMessagesFillItInOrder)
{
	std::string next(16, '.');

	a->msg(1, "aaaaaa");
	b->msg(2, "bbbbbb");
	a->msg(1, "cccccc");
	b->msg(2, "dddddd");
	ASSERT_EQ(multi(text), 0);
	ASSERT_EQ(cq.got.size(), 4u);
	EXPECT_EQ(cq.got[2].err, FI_ETRUNC);
	EXPECT_EQ(cq.got[2].len, 4u);
	expect_release(cq.got[3], &text);
	EXPECT_EQ(text, "aaaaaabbbbbbcccc");
	cq.got.clear();
	ASSERT_EQ(multi(next), 0);
	EXPECT_EQ(one().len, 6u);
	EXPECT_EQ(next.substr(0, 6), "dddddd");
	EXPECT_EQ(tdm_srx_left(srx), 7u);
}

TEST_F(SrxMulti, WaitingMessagesThatAreStillStartedHoldIt)
{
	a->hold = true;
	struct fi_peer_rx_entry *e = a->msg(1, "0123456789abcdef");
	ASSERT_EQ(multi(text), 0);
	EXPECT_TRUE(cq.got.empty());
	a->finish(e);
	ASSERT_EQ(cq.got.size(), 2u);
	expect_release(cq.got[1], &text);
}

TEST_F(SrxMulti, WhatArrivesWhileItIsFilledComesLast)
{
	a->msg(1, "1");
	a->msg(1, "2");
	a->on_start = [&](struct fi_peer_rx_entry *) {
		a->on_start = nullptr;
		a->msg(1, "3");
	};
	ASSERT_EQ(multi(text), 0);
	EXPECT_EQ(text.substr(0, 3), "123");
}

/* A receive posted earlier is not passed over for what arrives meanwhile. */
TEST_F(SrxMulti, OtherReceivesGetWhatArrivesWhileItIsFilled)
{
	std::string tag(4, '.');

	ASSERT_EQ(trecv(ANY, 1, tag), 0);
	a->msg(1, "1");
	a->on_start = [&](struct fi_peer_rx_entry *) {
		a->on_start = nullptr;
		b->tag(1, 1, "t");
	};
	ASSERT_EQ(multi(text), 0);
	EXPECT_EQ(tag[0], 't');
}

TEST_F(SrxMulti, ItKeepsItsPlaceInTheOrder)
{
	std::string before(4, '.'), second(16, '.');

	ASSERT_EQ(recv(ANY, before), 0);
	ASSERT_EQ(multi(text), 0);
	ASSERT_EQ(multi(second), 0);
	a->msg(1, "aa");
	EXPECT_EQ(one().context, &before);
	for (int i = 0; i < 3; i++) {
		a->msg(1, "bbbb");
		EXPECT_EQ(one().context, &text);
	}
	a->msg(1, "cc"); /* 2 left */
	ASSERT_EQ(cq.got.size(), 2u);
	expect_release(cq.got[1], &text);
	cq.got.clear();
	a->msg(1, "dd");
	EXPECT_EQ(one().context, &second);
}

TEST_F(SrxMulti, ADirectedBufferTakesOnlyItsSource)
{
	ASSERT_EQ(multi(text, 3), 0);
	a->msg(4, "x");
	EXPECT_EQ(a->last_get, -FI_ENOENT);
	a->arrive({ false, ANY, 0, "ab", false, 0, 3 });
	a->arrive({ false, ANY, 0, "cd", false, 0, 3 });
	a->resolve();
	ASSERT_EQ(cq.got.size(), 2u);
	EXPECT_EQ(text.substr(0, 4), "abcd");
}

/* fi_tagged(3) 2.1, FLAGS 6: the same flag. */
TEST_F(SrxMulti, TaggedBuffersWorkAlike)
{
	ASSERT_EQ(post(FI_TAGGED | FI_COMPLETION | FI_MULTI_RECV, ANY, 0x10,
		       &text[0], 16, &text, 0xf),
		  0);
	a->tag(1, 0x11, "0123");
	a->tag(1, 0x1f, "456789abcdef");
	ASSERT_EQ(cq.got.size(), 3u);
	EXPECT_EQ(cq.got[0].tag, 0x11u);
	EXPECT_EQ(cq.got[1].tag, 0x1fu);
	EXPECT_EQ(cq.got[1].flags, FI_TAGGED | FI_RECV);
	expect_release(cq.got[2], &text);
}

/*
 * fi_endpoint(3) 2.1, fi_getopt / fi_setopt 5: A change holds for receives
 * posted after it.
 */
TEST_F(SrxMulti, TheMinimumIsThatOfThePosting)
{
	std::string later(16, '.');

	ASSERT_EQ(multi(text), 0);
	tdm_srx_set_min_multi_recv(srx, 8);
	ASSERT_EQ(multi(later), 0);
	a->msg(1, "012345678");
	EXPECT_EQ(one().context, &text); /* 7 left, and 4 are enough */
	a->msg(1, "0123");
	EXPECT_EQ(cq.got.size(), 2u);
	cq.got.clear();
	a->msg(1, "01234567");
	EXPECT_EQ(one().context, &later); /* 8 left of 8 */
	a->msg(1, "0");
	ASSERT_EQ(cq.got.size(), 2u);
	expect_release(cq.got[1], &later);
}

TEST_F(SrxMulti, AFullBufferIsReleasedEvenWithoutAMinimum)
{
	open(true, 8, 0);
	ASSERT_EQ(multi(text), 0);
	a->msg(1, "0123456789abcde");
	EXPECT_EQ(cq.got.size(), 1u);
	a->msg(1, "f");
	ASSERT_EQ(cq.got.size(), 3u);
	expect_release(cq.got[2], &text);
}

TEST_F(SrxMulti, PeerDataIsReportedWithItsMessage)
{
	ASSERT_EQ(multi(text), 0);
	a->arrive({ false, 1, 0, "ab", true, 0x55 });
	Comp c = one();
	EXPECT_EQ(c.flags, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
	EXPECT_EQ(c.data, 0x55u);
	a->msg(1, "cd");
	EXPECT_EQ(one().flags, FI_MSG | FI_RECV);
}

TEST_F(SrxMulti, OneBufferMeansOneElement)
{
	struct tdm_xfer x = xfer(FI_MSG | FI_MULTI_RECV, ANY, 0, &x);
	struct iovec iov[2] = { { &text[0], 8 }, { &text[8], 8 } };

	x.iov = iov;
	x.count = 2;
	x.len = 16;
	EXPECT_EQ(tdm_srx_recv(srx, &x), -FI_EINVAL);
	x.count = 0;
	EXPECT_EQ(tdm_srx_recv(srx, &x), -FI_EINVAL);
}

TEST_F(SrxMulti, CancellingAnIdleBufferReleasesItOnce)
{
	ASSERT_EQ(multi(text), 0);
	a->msg(1, "abc");
	one();
	EXPECT_EQ(tdm_srx_cancel(srx, &text), 0);
	Comp c = one();
	EXPECT_EQ(c.err, FI_ECANCELED);
	EXPECT_EQ(c.flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
	EXPECT_EQ(c.context, &text);
	EXPECT_EQ(tdm_srx_cancel(srx, &text), -FI_ENOENT);
	EXPECT_EQ(entries(srx), 0u);
}

/* The buffer is not written to once its FI_ECANCELED can be read. */
TEST_F(SrxMulti, CancellingABufferInUseWaitsForItsParts)
{
	struct fi_peer_rx_entry *e, *f;

	ASSERT_EQ(multi(text), 0);
	a->hold = true;
	e = a->msg(1, "abc");
	f = a->msg(1, "def");
	EXPECT_EQ(tdm_srx_cancel(srx, &text), 0);
	EXPECT_EQ(tdm_srx_cancel(srx, &text), -FI_ENOENT);
	b->msg(1, "too late");
	EXPECT_EQ(b->last_get, -FI_ENOENT);
	a->finish(f);
	EXPECT_EQ(one().err, 0);
	a->finish(e);
	ASSERT_EQ(cq.got.size(), 2u);
	EXPECT_EQ(cq.got[0].flags, FI_MSG | FI_RECV);
	EXPECT_EQ(cq.got[1].err, FI_ECANCELED);
	EXPECT_EQ(cq.got[1].flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
	EXPECT_EQ(cntr.errors, 1u);
}

TEST_F(SrxMulti, FlushReleasesSilentlyWhatIsInUse)
{
	struct fi_peer_rx_entry *e, *f;
	std::string spent(4, '.');

	ASSERT_EQ(multi(spent), 0);
	ASSERT_EQ(multi(text), 0);
	a->hold = true;
	e = a->msg(1, "abcd");
	f = a->msg(1, "ef");
	tdm_srx_flush(srx);
	EXPECT_EQ(entries(srx), 4u);
	a->give_back(e);
	a->give_back(f);
	EXPECT_TRUE(cq.got.empty());
	EXPECT_EQ(entries(srx), 0u);
	EXPECT_EQ(srx->sides.in_use, 0u);
}

TEST_F(SrxMulti, AMessageThatFindsNoMemoryLeavesItAsItWas)
{
	struct fi_peer_match_attr attr = { 1, 4, 0 };
	struct fi_peer_rx_entry *e = nullptr;
	std::string text2(16, '.');

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "allocations cannot be made to fail here";
	ASSERT_EQ(multi(text), 0);
	while (srx->msgs.free)
		ASSERT_NE(a->tag(1, 1, "x"), nullptr);
	tdt_alloc_fail(1, 1);
	EXPECT_EQ(a->fid->owner_ops->get_msg(a->fid, &attr, &e), -FI_ENOMEM);
	tdt_alloc_stop();
	a->msg(1, "abcd");
	EXPECT_EQ(one().buf, &text[0]);
}

} // namespace
