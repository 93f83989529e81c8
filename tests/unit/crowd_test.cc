/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a thread that polls offers its core to others: fi_tandem(7), PROGRESS.
 * The test replaces the clock, sched_yield(2) and ppoll(2): a pass of progress
 * takes 100 ns, a yield as long as the others run, a nap its whole time.
 */
#include <gtest/gtest.h>

#include "cq_fixture.h"

extern "C" {
#include "peer/cntr.h"
#include "peer/eq.h"
#include "peer/patience.h"
#include "tests/harness/log.h"
}

namespace
{

enum { PASS_NS = 100, ALONE_NS = 300, AWAY_NS = 40000 };

uint64_t clock_ns;
uint64_t others_ns; /* how long they run when they are offered the core */
unsigned yields, naps, looks;
unsigned asleep; /* engine->sleepers during the last nap */
int woken;	 /* result of ppoll(2) */
struct tdm_engine *napping;

TEST(Crowd, GrowsWhenOthersRanAndShrinksWhenNobodyDid)
{
	uint32_t crowd = 0;

	EXPECT_EQ(tdm_engine_crowd(0, ALONE_NS), 0u);
	EXPECT_EQ(tdm_engine_crowd(0, TDM_YIELD_ALONE_NS), 0u);
	EXPECT_GT(tdm_engine_crowd(0, TDM_YIELD_ALONE_NS + 1), 0u);
	for (int i = 0; i < 4; i++)
		crowd = tdm_engine_crowd(crowd, AWAY_NS);
	EXPECT_EQ(crowd, (uint32_t)TDM_CROWD_MOST) << "four yields do";
	EXPECT_EQ(tdm_engine_crowd(crowd, TDM_YIELD_LONG_NS), crowd);
	EXPECT_EQ(tdm_engine_crowd(crowd, 1000 * 1000), crowd)
		<< "three ranks reduced 64 KiB each, and yield";
	EXPECT_EQ(tdm_engine_crowd(crowd, TDM_YIELD_LONG_NS + 1), 0u)
		<< "the others do not yield, so the next poll is worth more";
	for (int i = 0; i < TDM_CROWD_MOST; i++)
		crowd = tdm_engine_crowd(crowd, ALONE_NS);
	EXPECT_EQ(crowd, 0u);
}

class Crowded : public tdt::CqFixture
{
protected:
	void SetUp() override
	{
		clock_ns = 1000;
		others_ns = AWAY_NS;
		tdm_patience = {};
		yields = 0;
		naps = 0;
		looks = 0;
		woken = 0;
		napping = &engine.engine;
		tdm_os.now_ns = [] {
			looks++;
			return clock_ns;
		};
		tdm_os.yield = [] {
			yields++;
			clock_ns += others_ns;
			return 0;
		};
		tdm_os.ppoll = [](struct pollfd *p, nfds_t n,
				  const struct timespec *t, const sigset_t *) {
			EXPECT_EQ(n, 1u);
			EXPECT_EQ(p->fd, napping->wait_fd(napping));
			EXPECT_EQ(t->tv_sec, 0);
			EXPECT_EQ(t->tv_nsec, (long)TDM_NAP_NS);
			asleep = napping->sleepers;
			naps++;
			clock_ns += woken ? (uint64_t)PASS_NS :
					    (uint64_t)TDM_NAP_NS;
			return woken;
		};
		engine.on_progress = [] {
			clock_ns += PASS_NS;
		};
	}

	void TearDown() override
	{
		CqFixture::TearDown();
		tdm_os = tdm_os_system;
		tdm_patience = {};
	}

	/* Poll until the core is offered. Returns ns until then. */
	template <typename F> uint64_t patience(F poll)
	{
		const unsigned before = yields;
		uint64_t start = clock_ns, last = start;

		while (yields == before && last - start < 10 * TDM_VAIN_NS) {
			last = clock_ns + PASS_NS;
			poll();
		}
		return last - start;
	}

	/* The same with a CQ, after something has come in. */
	uint64_t patience_after_message()
	{
		EXPECT_EQ(write(1), 0);
		EXPECT_EQ(next(), 1);
		return patience([this] { EXPECT_EQ(next(), -FI_EAGAIN); });
	}
};

TEST_F(Crowded, NobodyWaitsLongWhereOthersNeedTheCore)
{
	must_open(FI_CQ_FORMAT_CONTEXT);
	EXPECT_GE(patience_after_message(), (uint64_t)TDM_VAIN_NS);
	for (int i = 0; i < 3; i++)
		patience_after_message();
	for (int i = 0; i < 100; i++)
		ASSERT_LE(patience_after_message(), 2000u);
}

TEST_F(Crowded, AfterALongYieldTheThreadStays)
{
	const uint64_t stay = 100 * TDM_YIELD_LONG_NS / TDM_YIELD_STAY_PART;

	must_open(FI_CQ_FORMAT_CONTEXT);
	others_ns = 100ull * TDM_YIELD_LONG_NS;
	patience_after_message();
	/* Without a message in between, too; but not for ever. */
	for (int i = 0; i < 10; i++) {
		uint64_t polled = 0, start;
		const unsigned before = yields;

		tdm_patience.nap_ns = 0;

		while (yields == before && polled < 2 * stay) {
			start = clock_ns;
			EXPECT_EQ(next(), -FI_EAGAIN);
			if (yields == before)
				polled += clock_ns - start;
		}
		EXPECT_GE(polled, stay - stay / 10);
		EXPECT_LT(polled, 2 * stay);
	}
}

TEST_F(Crowded, AThreadStaysForAllItsEngines)
{
	/* A thread that polls two domains in turn. */
	const uint64_t stay = 100 * TDM_YIELD_LONG_NS / TDM_YIELD_STAY_PART;
	struct tdm_engine a = {}, b = {};
	unsigned polls = 0;

	tdm_engine_yielded(&a, 100ull * TDM_YIELD_LONG_NS);
	tdm_engine_yielded(&b, 1000);
	for (; clock_ns < stay; clock_ns += PASS_NS, polls++) {
		ASSERT_FALSE(tdm_engine_vain(&b));
		ASSERT_FALSE(tdm_engine_vain(&a));
	}
	EXPECT_GT(polls, 1000u);
	for (polls = 0; polls < 1000 && !tdm_engine_vain(&b); polls++)
		clock_ns += PASS_NS;
	EXPECT_LT(polls, 1000u);
}

TEST_F(Crowded, AfterALongYieldTheThreadNaps)
{
	const uint64_t away = 100ull * TDM_YIELD_LONG_NS;
	const uint64_t until = TDM_YIELD_NAP_TIMES * away;
	uint64_t start;

	must_open(FI_CQ_FORMAT_CONTEXT);
	others_ns = away;
	patience_after_message();
	ASSERT_EQ(yields, 1u);
	for (start = clock_ns; yields == 1 && clock_ns < start + 2 * until;)
		EXPECT_EQ(next(), -FI_EAGAIN);
	EXPECT_EQ(yields, 2u);
	EXPECT_GE(clock_ns - away - start, until - until / 10);
	/* It polls as well, but sleeps for more than half of the time. */
	EXPECT_GE(naps * (uint64_t)TDM_NAP_NS, until / 2);
	EXPECT_EQ(asleep, 1u) << "whoever leaves work must wake it";
	EXPECT_EQ(engine.engine.sleepers, 0u);
}

TEST_F(Crowded, AShortYieldIsFollowedByYields)
{
	must_open(FI_CQ_FORMAT_CONTEXT);
	others_ns = TDM_YIELD_LONG_NS;
	for (int i = 0; i < 100; i++)
		patience_after_message();
	EXPECT_EQ(yields, 100u);
	EXPECT_EQ(naps, 0u);
}

TEST_F(Crowded, AMessageEndsANapAtOnce)
{
	uint64_t start;

	must_open(FI_CQ_FORMAT_CONTEXT);
	others_ns = 100ull * TDM_YIELD_LONG_NS;
	patience_after_message();
	tdm_patience.stay_ns = 0;
	engine.engine.vain = 0;
	woken = 1;
	engine.on_progress = [this] {
		clock_ns += PASS_NS;
		if (naps) {
			EXPECT_EQ(write_held(1), 0);
		}
	};
	start = clock_ns;
	while (!naps && clock_ns - start < 10 * TDM_VAIN_NS)
		EXPECT_EQ(next(), -FI_EAGAIN);
	EXPECT_EQ(next(), 1);
	EXPECT_EQ(naps, 1u);
}

TEST_F(Crowded, WorkLeftUndonePreventsNapsForAWhile)
{
	must_open(FI_CQ_FORMAT_CONTEXT);
	others_ns = 100ull * TDM_YIELD_LONG_NS;
	patience_after_message();
	tdm_patience.stay_ns = 0;
	engine.on_progress = [this] {
		clock_ns += PASS_NS;
		engine.pending = true;
	};
	for (int i = 0;
	     i < 2 * TDM_VAIN_CALLS * (1 + TDM_NAPS_REFUSED) && yields == 1;
	     i++)
		EXPECT_EQ(next(), -FI_EAGAIN);
	EXPECT_EQ(yields, 2u) << "the work may need another process";
	EXPECT_EQ(naps, 0u);
	EXPECT_EQ(engine.engine.sleepers, 0u);
}

TEST_F(Crowded, WithoutADescriptorTheThreadYields)
{
	must_open(FI_CQ_FORMAT_CONTEXT);
	others_ns = 100ull * TDM_YIELD_LONG_NS;
	patience_after_message();
	tdm_patience.stay_ns = 0;
	engine.engine.wait_fd = [](struct tdm_engine *) {
		return -EMFILE;
	};
	for (int i = 0;
	     i < 2 * TDM_VAIN_CALLS * (1 + TDM_NAPS_REFUSED) && yields == 1;
	     i++)
		EXPECT_EQ(next(), -FI_EAGAIN);
	EXPECT_EQ(yields, 2u);
	EXPECT_EQ(naps, 0u);
}

TEST_F(Crowded, WhoIsAlonePollsOn)
{
	must_open(FI_CQ_FORMAT_CONTEXT);
	others_ns = ALONE_NS;
	for (int i = 0; i < 100; i++)
		ASSERT_GE(patience_after_message(), (uint64_t)TDM_VAIN_NS);
}

TEST_F(Crowded, PatienceComesBackWhenTheOthersAreGone)
{
	must_open(FI_CQ_FORMAT_CONTEXT);
	for (int i = 0; i < 10; i++)
		patience_after_message();
	EXPECT_LE(patience_after_message(), 2000u);
	others_ns = ALONE_NS;
	for (int i = 0; i < TDM_CROWD_MOST; i++)
		patience_after_message();
	EXPECT_GE(patience_after_message(), (uint64_t)TDM_VAIN_NS);
}

TEST_F(Crowded, WhoFindsSomethingReadsNoClock)
{
	must_open(FI_CQ_FORMAT_CONTEXT);
	for (int i = 0; i < 10; i++)
		patience_after_message();
	looks = 0;
	yields = 0;
	for (int i = 0; i < 1000; i++) {
		ASSERT_EQ(write(1), 0);
		ASSERT_EQ(next(), 1);
	}
	EXPECT_EQ(looks, 0u);
	EXPECT_EQ(yields, 0u);
}

TEST_F(Crowded, CountersLearnAsWell)
{
	struct fi_cntr_attr attr = {};
	struct tdm_cntr *cntr = nullptr;
	struct fid_cntr *c;
	auto poll = [&] {
		EXPECT_EQ(fi_cntr_read(c), 0u);
	};

	attr.wait_obj = FI_WAIT_NONE;
	ASSERT_EQ(tdm_cntr_open(&engine.engine, &attr, nullptr, &cntr), 0);
	c = tdm_cntr_fid(cntr);
	EXPECT_GE(patience(poll), (uint64_t)TDM_VAIN_NS);
	for (int i = 0; i < 4; i++)
		patience(poll);
	EXPECT_LE(patience(poll), 2000u);
	EXPECT_EQ(fi_close(&c->fid), 0);
}

TEST_F(Crowded, EventQueuesTellAllTheirDomains)
{
	struct fi_eq_attr attr = {};
	tdt::FakeEngine second;
	struct tdm_eq *eq = nullptr;
	struct fi_eq_entry e;
	uint32_t event;
	auto poll = [&] {
		EXPECT_EQ(fi_eq_read(tdm_eq_fid(eq), &event, &e, sizeof(e), 0),
			  -FI_EAGAIN);
	};

	attr.wait_obj = FI_WAIT_NONE;
	ASSERT_EQ(tdm_eq_open(&attr, nullptr, &eq), 0);
	ASSERT_EQ(tdm_eq_drive(eq, &engine.engine), 0);
	ASSERT_EQ(tdm_eq_drive(eq, &second.engine), 0);
	EXPECT_GE(patience(poll), (uint64_t)TDM_VAIN_NS);
	for (int i = 0; i < 4; i++)
		patience(poll);
	EXPECT_LE(patience(poll), 2000u);
	EXPECT_EQ(tdm_a32_load_relaxed(&second.engine.crowd),
		  (uint32_t)TDM_CROWD_MOST);
	tdm_eq_undrive(eq, &engine.engine);
	tdm_eq_undrive(eq, &second.engine);
	EXPECT_EQ(fi_close(&tdm_eq_fid(eq)->fid), 0);
}

} // namespace
