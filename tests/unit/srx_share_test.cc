/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One receive side for several endpoints (seats), and several behind one
 * export (groups).
 */
#include "srx_mock.h"

extern "C" {
#include "peer/srx_group.h"
}

using namespace srx_test;

namespace
{

size_t bad(const MockCq &cq)
{
	size_t n = 0;

	for (const Comp &c : cq.got)
		n += !!c.err;
	return n;
}

size_t good(const MockCq &cq)
{
	return cq.got.size() - bad(cq);
}

/* Endpoints with a transport each, on the srx of the fixture. */
class Seats : public Srx
{
protected:
	struct tdm_srx_seat *seat[2] = {};
	MockCq cqs[2];
	struct tdm_done dones[2] = {};
	std::unique_ptr<Mock> t[2];

	void SetUp() override
	{
		Srx::SetUp();
		for (int i = 0; i < 2; i++) {
			ASSERT_EQ(tdm_srx_seat_open(srx, &seat[i]), 0);
			dones[i].rx_cq = &cqs[i].fid;
			tdm_srx_seat_set_done(seat[i], &dones[i]);
			t[i].reset(new Mock(
				tdm_srx_seat_export(seat[i], TDM_TRANSPORT_TCP),
				&dones[i]));
		}
	}

	void leave(int i)
	{
		tdm_srx_seat_flush(seat[i]);
		t[i].reset();
		tdm_srx_seat_close(seat[i]);
		seat[i] = nullptr;
	}

	void TearDown() override
	{
		for (int i = 0; i < 2; i++) {
			if (seat[i])
				leave(i);
		}
		Srx::TearDown();
	}

	ssize_t post(struct iovec *iov, void *context)
	{
		struct tdm_xfer x = xfer(FI_MSG | FI_COMPLETION, FI_ADDR_UNSPEC,
					 0, context);

		x.iov = iov;
		x.count = 1;
		x.len = iov->iov_len;
		return tdm_srx_recv(srx, &x);
	}
};

TEST_F(Seats, AMessageEndsWhereItCame)
{
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };

	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(post(&iov, &iov), 0);
		EXPECT_EQ(t[i]->msg(3, "abc"), nullptr);
		EXPECT_NE(t[i]->msg(3, "late"), nullptr);
		ASSERT_EQ(post(&iov, buf), 0);
		EXPECT_EQ(t[i]->started, 1u);
		EXPECT_EQ(good(cqs[i]), 2u);
	}
}

TEST_F(Seats, FlushingOneLeavesTheOther)
{
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };

	t[0]->msg(3, "one");
	t[1]->msg(3, "two");
	t[0]->tag(3, 7, "three");
	tdm_srx_seat_flush(seat[0]);
	EXPECT_EQ(t[0]->discarded, 2u);
	EXPECT_EQ(t[1]->discarded, 0u);
	ASSERT_EQ(post(&iov, &iov), 0);
	EXPECT_EQ(t[1]->started, 1u);
	EXPECT_EQ(std::string(buf, 3), "two");
}

TEST_F(Seats, WhatHasNoEndpointEndsAtTheOldestSeat)
{
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };

	ASSERT_EQ(post(&iov, &iov), 0);
	EXPECT_EQ(tdm_srx_cancel(srx, &iov), 0);
	EXPECT_EQ(bad(cqs[0]), 1u);
	leave(0);
	ASSERT_EQ(post(&iov, &iov), 0);
	EXPECT_EQ(tdm_srx_cancel(srx, &iov), 0);
	EXPECT_EQ(bad(cqs[1]), 1u);
	leave(1);
	ASSERT_EQ(post(&iov, &iov), 0);
	EXPECT_EQ(tdm_srx_cancel(srx, &iov), 0) << "nowhere to tell";
}

TEST_F(Seats, SourcesAreAskedOfTheSeatThatAsks)
{
	Msg m = { false, FI_ADDR_UNSPEC, 0, "x", false, 0 };

	m.late = 9;
	t[0]->arrive(m);
	t[1]->arrive(m);
	t[1]->resolve();
	EXPECT_EQ(t[0]->asked, 0u);
	EXPECT_EQ(t[1]->asked, 1u);
}

TEST_F(Seats, BuffersInUseAreKnown)
{
	char buf[8];
	struct iovec iov = { buf, sizeof(buf) };

	t[0]->hold = true;
	EXPECT_FALSE(tdm_srx_filling(srx));
	t[1]->msg(3, "waits");
	t[1]->tag(3, 1, "waits");
	ASSERT_EQ(post(&iov, &iov), 0);
	EXPECT_FALSE(tdm_srx_filling(srx)) << "it was started and has ended";
	ASSERT_EQ(post(&iov, &iov), 0);
	EXPECT_FALSE(tdm_srx_filling(srx));
	t[0]->msg(3, "held");
	EXPECT_TRUE(tdm_srx_filling(srx));
	tdm_srx_unpost(srx);
	EXPECT_TRUE(tdm_srx_filling(srx));
	t[0]->finish(t[0]->held.front());
	EXPECT_FALSE(tdm_srx_filling(srx));
}

class Group : public ::testing::Test
{
protected:
	static constexpr unsigned N = 3;
	struct tdm_lock lock = {};
	struct tdm_engine engine = {};
	struct tdm_srx_group *group = nullptr;
	MockCq cqs[N];
	struct tdm_done dones[N] = {}, none = {};
	struct fid_peer_srx *fid = nullptr;
	struct tdm_ctx_ops *ops = nullptr;

	void SetUp() override
	{
		struct tdm_srx_attr attr = {};

		tdm_lock_init(&lock, 1);
		tdm_lock_acquire(&lock);
		engine.lock = &lock;
		attr.engine = &engine;
		attr.size = 8;
		attr.directed = TDM_SRX_DIRECTED_MSG | TDM_SRX_DIRECTED_TAG;
		ASSERT_EQ(tdm_srx_group_open(&attr, N, &group), 0);
		for (unsigned i = 0; i < N; i++) {
			dones[i].rx_cq = &cqs[i].fid;
			tdm_srx_set_done(tdm_srx_group_srx(group, i),
					 &dones[i]);
		}
		fid = tdm_srx_group_export(group, TDM_TRANSPORT_LOCAL);
		ASSERT_EQ(fi_open_ops(&fid->ep_fid.fid, TDM_CTX_OPS, 0,
				      reinterpret_cast<void **>(&ops), nullptr),
			  0);
		none.ctx = ops;
	}

	void TearDown() override
	{
		tdm_srx_group_flush(group);
		tdm_srx_group_close(group);
		tdm_lock_release(&lock);
		tdm_lock_fini(&lock);
	}
};

TEST_F(Group, ContextsMatchAndEndApart)
{
	EXPECT_EQ(ops->count(fid), unsigned(N));
	for (unsigned i = 0; i < N; i++) {
		Mock t(ops->srx(fid, i), &none);
		struct tdm_xfer x = {};
		char buf[8];
		struct iovec iov = { buf, sizeof(buf) };

		x.flags = FI_RECV | FI_MSG | FI_COMPLETION;
		x.addr = FI_ADDR_UNSPEC;
		x.iov = &iov;
		x.count = 1;
		x.len = sizeof(buf);
		x.context = buf;
		ASSERT_EQ(tdm_srx_recv(tdm_srx_group_srx(group, i), &x), 0);
		EXPECT_EQ(t.msg(1, "mine"), nullptr);
		EXPECT_EQ(good(cqs[i]), 1u);
		ASSERT_EQ(tdm_srx_recv(tdm_srx_group_srx(group, i), &x), 0);
		EXPECT_EQ(t.msg(1, "much too long"), nullptr);
		EXPECT_EQ(bad(cqs[i]), 1u);
	}
	for (unsigned i = 0; i < N; i++)
		EXPECT_EQ(good(cqs[i]), 1u);
}

TEST_F(Group, TheExportPassesOnWhatAnEntrySays)
{
	struct fi_peer_match_attr attr = { FI_ADDR_UNSPEC, 1, 5 };
	struct fid_peer_srx *two = ops->srx(fid, 2);
	struct fi_peer_rx_entry *e;

	ASSERT_EQ(two->owner_ops->get_tag(two, &attr, &e), -FI_ENOENT);
	EXPECT_EQ(e->srx, two);
	ASSERT_EQ(fid->owner_ops->queue_tag(e), 0);
	fid->owner_ops->foreach_unspec_addr(fid, [](struct fi_peer_rx_entry *) {
		return fi_addr_t(4);
	});
	EXPECT_EQ(e->addr, 4u);
	fid->owner_ops->free_entry(e);
	/* Context 0 is what one gets without asking. */
	ASSERT_EQ(fid->owner_ops->get_msg(fid, &attr, &e), -FI_ENOENT);
	EXPECT_EQ(e->srx, ops->srx(fid, 0));
	fid->owner_ops->free_entry(e);
}

TEST_F(Group, OtherOpsAreNotOffered)
{
	void *p;

	EXPECT_EQ(fi_open_ops(&fid->ep_fid.fid, "x", 0, &p, nullptr),
		  -FI_ENOSYS);
	EXPECT_EQ(fi_open_ops(&fid->ep_fid.fid, TDM_CTX_OPS, 1, &p, nullptr),
		  -FI_EINVAL);
}

} // namespace
