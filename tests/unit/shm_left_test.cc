/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A closing endpoint leaves payload and answers to its peers: doc/PROTOCOL-shm.md,
 * "The end".
 */
#include <random>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "shm_world.h"
#include "tests/harness/fault.h"
#include "tests/harness/mock_rma.h"

extern "C" {
#include "shm/progress.h"
#include "fi_ext_tandem.h"
#include "shm/attach.h"
#include "shm/rma.h"
#include "shm/unexp.h"
#include "shm/lifeline.h"
#include "shm/tx.h"
}

using namespace shm_test;

namespace
{

class ShmLeftTest : public PairTest
{
protected:
	enum { LEN = 3000, COUNT = 40 };

	char contexts[COUNT];

	/* a has announced COUNT injects, for b takes no payload. */
	void announce()
	{
		tdm_env.unexp_max_bytes = 0;
		remake();
		meet();
		for (unsigned i = 0; i < COUNT; i++) {
			auto out = pattern(LEN, i);

			ASSERT_EQ(send(a, to_b, out.data(), LEN, i, nullptr,
				       FI_INJECT),
				  0);
		}
		ASSERT_TRUE(until([&] {
			return pair_of(b)->unexp_bytes >= COUNT * 512;
		}));
		/* The mock of an owner has nothing dropped from its queue. */
		tdm_env.unexp_max_bytes = 1 << 20;
	}

	/* a has closed: receive all; how many came well. */
	unsigned take()
	{
		unsigned well = 0;

		EXPECT_TRUE(until([&] {
			return tdt_owner_event(b, TDM_PEER_LOST) != nullptr;
		}));
		for (unsigned i = 0; i < COUNT; i++) {
			std::vector<unsigned char> in(LEN);

			tdt_owner_trecv(b, in.data(), LEN, i, &contexts[i]);
			const auto *d = tdt_owner_find(b, &contexts[i]);

			EXPECT_NE(nullptr, d);
			if (!d)
				break;
			if (d->err) {
				EXPECT_EQ(FI_ECONNRESET, d->err);
				continue;
			}
			EXPECT_EQ(pattern(LEN, i), in) << i;
			well++;
		}
		return well;
	}
};

TEST_F(ShmLeftTest, PayloadIsThereWhenTheSenderIsNot)
{
	ASSERT_NO_FATAL_FAILURE(announce());
	close(a);
	EXPECT_EQ(unsigned(COUNT), take());
}

TEST_F(ShmLeftTest, ReceivesPostedBeforeTheLossIsDealtWithGetTheirs)
{
	std::vector<std::vector<unsigned char>> in(
		COUNT, std::vector<unsigned char>(LEN));

	ASSERT_NO_FATAL_FAILURE(announce());
	close(a);
	/* The first finds that nobody is there to read from. */
	for (unsigned i = 0; i < COUNT; i++)
		tdt_owner_trecv(b, in[i].data(), LEN, i, &contexts[i]);
	ASSERT_TRUE(until(
		[&] { return tdt_owner_event(b, TDM_PEER_LOST) != nullptr; }));
	for (unsigned i = 0; i < COUNT; i++) {
		ASSERT_NE(nullptr, tdt_owner_find(b, &contexts[i])) << i;
		EXPECT_EQ(0, tdt_owner_find(b, &contexts[i])->err) << i;
		EXPECT_EQ(pattern(LEN, i), in[i]) << i;
	}
}

TEST_F(ShmLeftTest, NeitherIsTheAnnouncementLookedAt)
{
	tdm_env.unexp_max_bytes = 0;
	remake();
	meet();
	/* As many as the first ring takes. */
	for (unsigned i = 0; i < 15; i++) {
		auto out = pattern(LEN, i);

		ASSERT_EQ(tsend(a, to_b, out.data(), LEN, i, nullptr,
				FI_INJECT),
			  0);
	}
	/* Some meet a receive that waits, some do not. */
	std::vector<unsigned char> in(LEN);
	tdt_owner_trecv(b, in.data(), LEN, 3, in.data());
	close(a);
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, in.data()); }));
	EXPECT_EQ(0, tdt_owner_find(b, in.data())->err);
	EXPECT_EQ(pattern(LEN, 3), in);
	for (unsigned i = 0; i < 15; i++) {
		if (i == 3)
			continue;
		tdt_owner_trecv(b, in.data(), LEN, i, &contexts[i]);
		ASSERT_TRUE(
			until([&] { return tdt_owner_find(b, &contexts[i]); }));
		EXPECT_EQ(0, tdt_owner_find(b, &contexts[i])->err);
		EXPECT_EQ(pattern(LEN, i), in) << i;
	}
}

TEST_F(ShmLeftTest, AcknowledgementsBeyondTheRing)
{
	/* b receives all and closes while a does not look at its ring. */
	enum { N = 200 };
	std::vector<char> sent(N), in(N);

	meet();
	for (unsigned i = 0; i < N; i++)
		tdt_owner_trecv(b, &in[i], 1, i, &in[i]);
	for (unsigned i = 0; i < N; i++) {
		char c = static_cast<char>(i);

		while (tsend(a, to_b, &c, 1, i, &sent[i],
			     FI_DELIVERY_COMPLETE | FI_INJECT) == -FI_EAGAIN)
			tdt_owner_progress(b);
		for (int k = 0; k < 3; k++)
			tdt_owner_progress(b);
	}
	for (unsigned i = 0; i < N; i++) {
		EXPECT_NE(nullptr, tdt_owner_find(b, &in[i])) << i;
	}
	close(b);
	EXPECT_TRUE(until([&] { return tdt_owner_find(a, &sent[N - 1]); }));
	for (unsigned i = 0; i < N; i++) {
		const auto *d = tdt_owner_find(a, &sent[i]);

		ASSERT_NE(nullptr, d) << i;
		EXPECT_EQ(0, d->err) << i;
	}
}

/*
 * Operations that the target has carried out succeed, and its close is not
 * taken for a death.
 */
TEST_F(ShmLeftTest, AnswersBeyondTheRing)
{
	enum { N = 200, LONG = 50, KEY = 7 };
	std::vector<uint64_t> region(N * LONG), read(N * LONG), old(N);
	std::vector<char> ctx(N), add(N);

	remake(2 * N);
	meet();
	for (size_t i = 0; i < region.size(); i++)
		region[i] = 5 * i;
	tdt_region_add(b, KEY, region.data(), 8 * region.size(),
		       FI_REMOTE_READ | FI_REMOTE_WRITE);
	for (uint64_t i = 0, one = 1; i < N; i++) {
		struct iovec iov = { &read[i * LONG], 8 * LONG };
		struct fi_rma_iov from = { 8 * i * LONG, 8 * LONG, KEY };
		struct fi_msg_rma get = {};

		get.msg_iov = &iov;
		get.iov_count = 1;
		get.addr = to_b;
		get.rma_iov = &from;
		get.rma_iov_count = 1;
		get.context = &ctx[i];
		while (fi_readmsg(a->ep, &get, FI_COMPLETION) == -FI_EAGAIN)
			tdt_owner_progress(b);
		while (fi_fetch_atomic(a->ep, &one, 1, nullptr, &old[i],
				       nullptr, to_b, 0, KEY, FI_UINT64, FI_SUM,
				       &add[i]) == -FI_EAGAIN)
			tdt_owner_progress(b);
		for (int k = 0; k < 3; k++)
			tdt_owner_progress(b);
	}
	EXPECT_EQ(uint64_t(N), region[0]);
	ASSERT_FALSE(tdm_list_empty(&pair_of(b)->ctl));
	close(b);
	ASSERT_TRUE(until([&] { return tdt_owner_event(a, TDM_PEER_LOST); }));
	EXPECT_EQ(FI_ESHUTDOWN, tdt_owner_event(a, TDM_PEER_LOST)->err);
	EXPECT_EQ(2u * N, a->rma[TDT_READ].value);
	EXPECT_EQ(0u, a->rma[TDT_READ].errs);
	for (uint64_t i = 0; i < N; i++) {
		ASSERT_NE(nullptr, tdt_owner_find(a, &ctx[i])) << i;
		EXPECT_EQ(0, tdt_owner_find(a, &ctx[i])->err) << i;
		EXPECT_EQ(i, old[i]);
		EXPECT_EQ(5 * (i * LONG + 1), read[i * LONG + 1]) << i;
	}
}

TEST_F(ShmLeftTest, GoodbyeBeyondTheRing)
{
	char sent, c = 1;

	meet();
	while (tsend(b, to_a, &c, 1, 7, &sent) != -FI_EAGAIN)
		;
	/* Some slots are left to control records: here, of no effect. */
	while (uint8_t *slot = tdm_shm_tx_room(pair_of(b), 1, 0)) {
		memset(slot + 8, 0, 8);
		tdm_shm_ring_publish(&pair_of(b)->tx, 1,
				     tdm_shm_word0(0, TDM_SHM_REC_FAIL, 0, 1));
	}
	close(b);
	ASSERT_TRUE(until([&] { return tdt_owner_event(a, TDM_PEER_LOST); }));
	EXPECT_EQ(FI_ESHUTDOWN, tdt_owner_event(a, TDM_PEER_LOST)->err);
	while (!tdt_owner_discard(a))
		;
}

/* It is in the ring, but the end of the lifeline is seen first. */
TEST_F(ShmLeftTest, GoodbyeBehindTheEndOfTheLifeline)
{
	meet();
	close(b);
	tdm_shm_control(tdm_shm_ep_from_fid(a->ep), 16);
	ASSERT_TRUE(until([&] { return tdt_owner_event(a, TDM_PEER_LOST); }));
	EXPECT_EQ(FI_ESHUTDOWN, tdt_owner_event(a, TDM_PEER_LOST)->err);
}

TEST_F(ShmLeftTest, FetchesGoOnWithIt)
{
	std::vector<unsigned char> in(LEN);

	tdm_env.cma = 0;
	ASSERT_NO_FATAL_FAILURE(announce());
	/* Asked for, and no chunk has come. */
	tdt_owner_trecv(b, in.data(), LEN - 1, 5, in.data());
	for (int i = 0; i < 100; i++)
		tdt_owner_progress(b);
	ASSERT_EQ(nullptr, tdt_owner_find(b, in.data()));
	close(a);
	ASSERT_TRUE(until([&] { return tdt_owner_find(b, in.data()); }));
	EXPECT_EQ(FI_ETRUNC, tdt_owner_find(b, in.data())->err);
	in.back() = pattern(LEN, 5).back();
	EXPECT_EQ(pattern(LEN, 5), in);
	while (!tdt_owner_discard(b))
		;
}

TEST_F(ShmLeftTest, WhatIsKeptIsBounded)
{
	ASSERT_NO_FATAL_FAILURE(announce());
	/* Ten of them, and not quite the next one. */
	tdm_env.inject_max_bytes = 0;
	const size_t held = tdm_shm_ep_from_fid(b->ep)->unexp_bytes;
	const size_t whole = tdm_shm_unexp_bytes(pair_of(b), LEN);

	/* Each takes the place of its announcement. */
	tdm_env.unexp_max_bytes =
		held + 9 * (whole - held / COUNT) + whole + 1000;
	close(a);
	EXPECT_EQ(10u, take());
}

TEST_F(ShmLeftTest, EachAllocationFails)
{
	unsigned failed = 1;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "not linked for it";
	for (unsigned nth = 1; failed && nth < 200; nth++) {
		ASSERT_NO_FATAL_FAILURE(announce());
		/* The mock must not grow meanwhile. */
		b->events = static_cast<struct tdm_peer_event *>(
			realloc(b->events, 8 * sizeof(*b->events)));
		for (; b->nevents < 5; b->nevents++)
			memset(&b->events[b->nevents], 0, sizeof(*b->events));
		tdt_alloc_fail(nth, 0);
		close(a);
		for (int i = 0; i < 200; i++)
			tdt_owner_progress(b);
		failed = tdt_alloc_stop();
		EXPECT_LE(COUNT - 1u, take() + (failed ? 0u + COUNT : 0u));
		a = open(port_a = next_port());
	}
	EXPECT_EQ(0u, failed);
}

/* Areas of whatever content: nothing is read outside of them. */
TEST_F(ShmLeftTest, Garbage)
{
	std::mt19937_64 rng(8);

	for (int i = 0; i < 60; i++) {
		struct tdm_shm_region area;

		ASSERT_NO_FATAL_FAILURE(announce());
		ASSERT_EQ(0,
			  tdm_shm_region_create(&area, "tandem-left", 8192, 1));
		auto *w = static_cast<uint32_t *>(area.base);
		for (int k = 0; k < 2048; k++)
			w[k] = rng() % 3 ? uint32_t(rng() % 4) :
					   uint32_t(rng());
		ASSERT_EQ(0, tdm_shm_msg_send(pair_of(a)->sess->lifeline.fd,
					      TDM_SHM_MSG_LEFT, 2,
					      tdm_shm_region_fd(&area)));
		tdm_shm_region_fini(&area);
		close(a);
		take();
		a = open(port_a = next_port());
	}
}

} // namespace
