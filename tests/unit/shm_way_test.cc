/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways of large messages over shared memory: which one is chosen, when
 * others are tried, and that every mixture of them delivers every byte.
 * ARCHITECTURE.md, doc/adr/0012.
 */
#include <array>
#include <functional>
#include <random>

#include "shm_world.h"

extern "C" {
#include "shm/progress.h"
#include "shm/way.h"
}

using namespace shm_test;

namespace
{

const uint64_t small_bytes = 64 * 1024;

uint64_t clock_ns = 1;

/* How often each way was taken in @n messages that cost @cost(way) ns. */
std::array<unsigned, TDM_SHM_WAYS>
taken(tdm_shm_ways *w, unsigned n, const std::function<uint64_t(int)> &cost,
      uint64_t bytes = small_bytes)
{
	std::array<unsigned, TDM_SHM_WAYS> count = {};

	while (n--) {
		enum tdm_shm_way way = tdm_shm_way_choose(w, bytes);

		count[way]++;
		clock_ns += cost(way);
		tdm_shm_way_took(w, bytes, way, cost(way), clock_ns);
	}
	return count;
}

} // namespace

/* Nothing is known: reading needs nobody's help. Then each way is tried. */
TEST(ShmWay, EachIsTriedFirst)
{
	tdm_shm_ways w = {};

	EXPECT_EQ(tdm_shm_way_choose(&w, small_bytes), TDM_SHM_WAY_READ);
	auto n = taken(&w, TDM_SHM_WAY_TRIAL + 2 * TDM_SHM_WAY_TRIAL_MOST,
		       [](int) { return 1000; });
	EXPECT_EQ(n[0], unsigned(TDM_SHM_WAY_TRIAL));
	EXPECT_EQ(n[1], unsigned(TDM_SHM_WAY_TRIAL_MOST));
	EXPECT_EQ(n[2], unsigned(TDM_SHM_WAY_TRIAL_MOST));
}

/*
 * The first trial of all makes and maps the area of copies, which takes far longer than
 * some messages: it does not end early.
 */
TEST(ShmWay, WhatTheAreaCostsOnceDoesNotCount)
{
	tdm_shm_ways w = {};
	unsigned at = 0;

	taken(&w, 3 * TDM_SHM_WAY_TRIAL_MOST, [&](int way) {
		if (way && at++ < TDM_SHM_BOUNCE_CHUNKS)
			return 20000u;
		return way ? 400u : 1000u;
	});
	EXPECT_NE(tdm_shm_way_choose(&w, small_bytes), TDM_SHM_WAY_READ);
}

/* One late message does not make a trial dear. */
TEST(ShmWay, ALateMessageDoesNotEndATrial)
{
	for (unsigned late = 0; late < TDM_SHM_WAY_TRIAL_MOST; late++) {
		tdm_shm_ways w = {};
		unsigned at = 0;
		auto n = taken(&w, TDM_SHM_WAY_TRIAL + TDM_SHM_WAY_TRIAL_MOST,
			       [&](int way) {
				       return !way	   ? 1000u :
					      at++ == late ? 1000000u :
							     1200u;
			       });

		EXPECT_EQ(n[TDM_SHM_WAY_BOTH], unsigned(TDM_SHM_WAY_TRIAL_MOST))
			<< late;
	}
}

/* The cheapest gets most messages, a dear one few. */
TEST(ShmWay, TheCheapestIsTaken)
{
	for (int best = 0; best < TDM_SHM_WAYS; best++) {
		tdm_shm_ways w = {};
		auto cost = [&](int way) {
			return way == best ? 1000 : 4000;
		};

		taken(&w, 100, cost);
		auto n = taken(&w, 40000, cost);
		EXPECT_GT(n[unsigned(best)], 39000u) << best;
		for (int way = 0; way < TDM_SHM_WAYS; way++)
			EXPECT_GT(n[unsigned(way)], 0u) << best << way;
	}
}

/* The machine changes: the choice follows, both ways. */
TEST(ShmWay, TheChoiceFollowsTheMachine)
{
	tdm_shm_ways w = {};

	for (int turn = 0; turn < 6; turn++) {
		int best = turn % 2 ? TDM_SHM_WAY_CHUNKS : TDM_SHM_WAY_READ;
		auto cost = [&](int way) {
			return way == best ? 90000 : 300000;
		};

		taken(&w, 1000, cost);
		auto n = taken(&w, 1000, cost);
		EXPECT_GT(n[unsigned(best)], 900u) << turn;
	}
}

/* Reading takes no time of the sender: another way must be an eighth cheaper. */
TEST(ShmWay, ReadingIsTakenAtAboutTheSameCost)
{
	for (uint64_t other : { 91000, 84000 }) {
		tdm_shm_ways w = {};

		auto cost = [&](int way) {
			return way ? other : 100000;
		};

		taken(&w, 1000, cost);
		auto n = taken(&w, 1000, cost);
		if (other > 100000 - 100000 / 8)
			EXPECT_GT(n[0], 800u);
		else
			EXPECT_LT(n[0], 100u);
	}
}

/* It costs few messages to notice that. */
TEST(ShmWay, AChangedMachineIsNoticedSoon)
{
	for (uint64_t bytes : { small_bytes, 32 * small_bytes }) {
		bool is_long = bytes != small_bytes;
		tdm_shm_ways w = {};

		taken(
			&w, 5000,
			[](int way) { return 190000u - 50000u * way; }, bytes);
		ASSERT_EQ(tdm_shm_way_choose(&w, bytes), TDM_SHM_WAY_CHUNKS);
		auto n = taken(
			&w, is_long ? 60 : 200,
			[](int way) { return 200000u + 250000u * way; }, bytes);
		EXPECT_LT(n[2], is_long ? 12u : 60u) << bytes;
		EXPECT_EQ(tdm_shm_way_choose(&w, bytes), TDM_SHM_WAY_READ)
			<< bytes;
	}
}

/* All ways are slow for a moment: the best one stays the best. */
TEST(ShmWay, ASlowMomentIsNotHeldAgainstAWay)
{
	auto cost = [](int way) {
		return 100000u + 200000u * unsigned(way);
	};

	for (uint64_t bytes : { small_bytes, 16 * small_bytes }) {
		for (unsigned slow = 1; slow < 200; slow += slow / 4 + 1) {
			tdm_shm_ways w = {};

			taken(&w, 3000, cost, bytes);
			taken(
				&w, slow,
				[&](int way) { return 5 * cost(way); }, bytes);
			taken(&w, 1200, cost, bytes);
			auto n = taken(&w, 1000, cost, bytes);
			EXPECT_GT(n[0], 900u) << bytes << " " << slow;
		}
	}
}

/* However bad a way is, its trials take one hundredth of the time. */
TEST(ShmWay, TrialsCostLittleTime)
{
	for (unsigned bad : { 2u, 5u, 50u }) {
		tdm_shm_ways w = {};
		auto cost = [&](int way) {
			return way ? 10000u * bad : 10000u;
		};

		taken(&w, 1000, cost);
		auto n = taken(&w, 100000, cost);
		EXPECT_LT((n[1] + n[2]) * (bad - 1), 100000u / 40) << bad;
		EXPECT_GT(n[1] + n[2], 0u) << bad;
	}
}

/* A process that pauses makes a message late: that is not the fault of its way. */
TEST(ShmWay, APauseIsNotHeldAgainstAWay)
{
	auto cost = [](int way) {
		return way ? 300000u + 100000u * unsigned(way) : 100000u;
	};

	for (uint64_t bytes : { small_bytes, 16 * small_bytes }) {
		for (unsigned at = 0; at < 1300; at += at < 60 ? 1 : 7) {
			tdm_shm_ways w = {};

			taken(&w, at, cost, bytes);
			taken(&w, 1, [](int) { return 2000000000u; }, bytes);
			taken(&w, 300, cost, bytes);
			auto n = taken(&w, 4000, cost, bytes);
			EXPECT_GT(n[0], 3600u) << bytes << " " << at;
		}
	}
}

/*
 * Others use the processors now and then: one message of eight takes ten times as long.
 * The best way is taken all the same.
 */
TEST(ShmWay, ABusyMachineDoesNotHideTheBestWay)
{
	for (uint64_t bytes :
	     { small_bytes, 4 * small_bytes, 32 * small_bytes }) {
		for (int best = 0; best < TDM_SHM_WAYS; best++) {
			tdm_shm_ways w = {};
			std::mt19937 rng(unsigned(best) + 1);
			auto cost = [&](int way) {
				return (way == best ? 100000u : 140000u) *
				       (rng() % 8 ? 1 : 10);
			};

			taken(&w, 1000, cost, bytes);
			auto n = taken(&w, 10000, cost, bytes);
			EXPECT_GT(n[unsigned(best)], 8500u)
				<< bytes << " " << best;
		}
	}
}

/* The memory of chunks is cold when they were not used lately: that does not count. */
TEST(ShmWay, ColdChunksAreGivenALap)
{
	tdm_shm_ways w = {};
	unsigned lap = 0;
	auto cost = [&](int way) {
		lap = way == TDM_SHM_WAY_CHUNKS ? lap + 1 : 0;
		return way == TDM_SHM_WAY_READ	   ? 6000u :
		       lap > TDM_SHM_BOUNCE_CHUNKS ? 4000u :
						     8000u;
	};

	taken(&w, 3000, cost);
	EXPECT_EQ(tdm_shm_way_choose(&w, small_bytes), TDM_SHM_WAY_CHUNKS);
}

/* However rare messages are, few of them are trials, and fewer of a dear way. */
TEST(ShmWay, TrialsAreFewOfRareMessages)
{
	for (uint64_t bytes : { small_bytes, 32 * small_bytes }) {
		for (unsigned dear : { 1500u, 4000u }) {
			tdm_shm_ways w = {};
			uint64_t others = 0;

			for (int i = 0; i < 5000; i++) {
				clock_ns += 1000000000;
				auto n = taken(
					&w, 1,
					[&](int way) {
						return way ? dear : 1000u;
					},
					bytes);
				others += n[1] + n[2];
			}
			EXPECT_LT(others, 5000u / 6) << bytes;
			EXPECT_LT(others * (dear - 1000), 5000u * 1000 / 6)
				<< bytes << " " << dear;
		}
	}
}

/* A pair that was silent tries the other ways soon after it speaks again. */
TEST(ShmWay, AfterAPauseTheOtherWaysAreTried)
{
	for (uint64_t bytes : { small_bytes, 32 * small_bytes }) {
		tdm_shm_ways w = {};

		taken(
			&w, 5000, [](int way) { return way ? 3000 : 1000; },
			bytes);
		/* No trial begins within 192 messages of the last one. */
		for (auto &c : w.sizes) {
			while (c.used && c.since < 192)
				taken(
					&w, 1,
					[](int way) {
						return way ? 3000 : 1000;
					},
					bytes);
		}
		clock_ns += 1000000000;
		taken(
			&w, 3 * TDM_SHM_WAY_TRIAL_MOST,
			[](int way) { return way < 2 ? 1000 : 400; }, bytes);
		EXPECT_EQ(tdm_shm_way_choose(&w, bytes), TDM_SHM_WAY_CHUNKS)
			<< bytes;
	}
}

/* A size not met before begins with what its neighbour has learned. */
TEST(ShmWay, ANewSizeTakesOverFromItsNeighbour)
{
	tdm_shm_ways w = {};
	auto cost = [](int way) {
		return 3000u - 1000u * way;
	};

	taken(&w, 1000, cost);
	EXPECT_EQ(tdm_shm_way_choose(&w, 4 * small_bytes), TDM_SHM_WAY_CHUNKS);
	EXPECT_EQ(tdm_shm_way_choose(&w, small_bytes / 4), TDM_SHM_WAY_CHUNKS);
}

/* Its own costs may differ, so it tries the other ways soon. */
TEST(ShmWay, ANewSizeTriesTheOtherWaysSoon)
{
	for (uint64_t bytes : { 8 * small_bytes, 64 * small_bytes }) {
		tdm_shm_ways w = {};

		taken(&w, 1000, [](int way) { return way ? 3000 : 1000; });
		taken(
			&w, 100, [](int way) { return 3000u - 1000u * way; },
			bytes);
		EXPECT_EQ(tdm_shm_way_choose(&w, bytes), TDM_SHM_WAY_CHUNKS);
	}
}

/* But not at once what its neighbour found dear. */
TEST(ShmWay, ANewSizeTriesDearWaysLate)
{
	tdm_shm_ways w = {};
	auto cost = [](int way) {
		return way ? 400000 : 100000;
	};

	taken(&w, 1000, cost);
	auto n = taken(&w, 500, cost, 2 * small_bytes);
	EXPECT_EQ(n[TDM_SHM_WAY_READ], 500u);
	n = taken(&w, 4000, cost, 2 * small_bytes);
	EXPECT_GT(n[TDM_SHM_WAY_BOTH], 0u);
	EXPECT_GT(n[TDM_SHM_WAY_CHUNKS], 0u);
}

/* Another way becomes better while the chosen one costs what it did. */
TEST(ShmWay, ABetterWayIsFoundInTheEnd)
{
	tdm_shm_ways w = {};

	taken(&w, 20000, [](int way) { return way ? 3000 : 1000; });
	taken(&w, 6000, [](int way) { return way < 2 ? 1000 : 400; });
	EXPECT_EQ(tdm_shm_way_choose(&w, small_bytes), TDM_SHM_WAY_CHUNKS);
	/* Of long messages there are fewer. */
	taken(
		&w, 20000, [](int way) { return way ? 300000 : 100000; },
		32 * small_bytes);
	taken(
		&w, 1500, [](int way) { return way < 2 ? 100000 : 40000; },
		32 * small_bytes);
	EXPECT_EQ(tdm_shm_way_choose(&w, 32 * small_bytes), TDM_SHM_WAY_CHUNKS);
}

/* Sizes do not learn from one another. */
TEST(ShmWay, SizesAreApart)
{
	tdm_shm_ways w = {};

	for (int i = 0; i < 20; i++) {
		taken(&w, 50, [](int way) { return 1000u + 500u * way; });
		taken(
			&w, 50, [](int way) { return 9000u - 900u * way; },
			8 << 20);
	}
	EXPECT_EQ(tdm_shm_way_choose(&w, small_bytes), TDM_SHM_WAY_READ);
	EXPECT_EQ(tdm_shm_way_choose(&w, 1ull << 40), TDM_SHM_WAY_CHUNKS);
	EXPECT_EQ(tdm_shm_way_choose(&w, 2 * small_bytes), TDM_SHM_WAY_READ);
}

/* Messages that began before the choice changed say nothing of the new one. */
TEST(ShmWay, LateMessagesDoNotCount)
{
	tdm_shm_ways w = {};

	taken(&w, 1000, [](int way) { return way ? 5000 : 1000; });
	for (int i = 0; i < 1000; i++)
		tdm_shm_way_took(&w, small_bytes, TDM_SHM_WAY_BOTH, 1,
				 clock_ns);
	EXPECT_EQ(tdm_shm_way_choose(&w, small_bytes), TDM_SHM_WAY_READ);
}

/* A cost of nothing, or one beyond all bounds, is a cost too. */
TEST(ShmWay, ExtremeCosts)
{
	for (uint64_t ns : { uint64_t(0), uint64_t(1) << 50 }) {
		tdm_shm_ways w = {};
		auto n = taken(&w, 200, [&](int) { return ns; });

		EXPECT_EQ(n[0] + n[1] + n[2], 200u);
		EXPECT_GE(n[1], 1u);
	}
}

/* All ways in turn, all lengths, with a sender that stops now and then. */
TEST_F(PairTest, EveryWayDeliversEveryByte)
{
	unsigned tag = 1;

	meet();
	for (int way = 0; way < TDM_SHM_WAYS; way++) {
		for (size_t len :
		     { 16384u, 65536u, 65537u, 300000u, 3000000u }) {
			take_way(b, (enum tdm_shm_way)way);
			exchange(len, tag++);
		}
	}
	EXPECT_EQ(b->nevents, 1u);
}

/*
 * Long messages follow one another, by each way: when the first is there, most of the
 * others is not, and a short one behind them is.
 */
TEST_F(PairTest, LongMessagesFollowOneAnother)
{
	const size_t longs = 6, len = 4 << 20, short_len = 100000;
	auto out = pattern(len, 1);
	std::vector<std::vector<unsigned char>> in(
		longs + 1, std::vector<unsigned char>(len));
	std::array<char, longs + 1> to, from;

	for (int way = 0; way <= TDM_SHM_WAYS; way++) {
		tdm_env.cma = way < TDM_SHM_WAYS;
		remake();
		meet();
		if (tdm_env.cma)
			take_way(b, (enum tdm_shm_way)way);
		for (size_t i = 0; i <= longs; i++) {
			size_t n = i < longs ? len : short_len;

			tdt_owner_trecv(b, in[i].data(), n, i, &to[i]);
			ASSERT_EQ(send(a, to_b, out.data(), n, i, &from[i]), 0);
		}
		ASSERT_TRUE(until([&] { return tdt_owner_find(b, &to[0]); }));
		EXPECT_TRUE(tdt_owner_find(b, &to[longs])) << way;
		uint64_t left = 0;
		struct tdm_list *pos;
		tdm_list_for_each(pos, &pair_of(b)->pulls) {
			auto *p =
				tdm_list_entry(pos, struct tdm_shm_pull, node);
			left += p->tail - p->placed;
		}
		EXPECT_GT(left, (longs - 2) * len) << way;
		ASSERT_TRUE(until([&] {
			return b->dones == longs + 1 && a->dones == longs + 1;
		})) << way;
		for (size_t i = 0; i < longs; i++)
			EXPECT_EQ(in[i], out) << way << " " << i;
	}
}

/*
 * More messages than the receiver's ring has slots for their acknowledgements, and a
 * sender that is away: once the receiver's answer is sent, it may make no more progress,
 * and the sender still learns of all.
 */
TEST_F(PairTest, AnAnswerDoesNotOvertakeAcknowledgements)
{
	const size_t n = 3 * TDM_SHM_RING_SMALL_SLOTS, len = 100000;
	auto out = pattern(len, 1);
	std::vector<unsigned char> in(len);
	char from, to, answer = 'a', got = 0, c;
	ssize_t ret = 0;

	meet();
	for (size_t i = 0; i < n; i++) {
		ASSERT_EQ(send(a, to_b, out.data(), len, i, &from), 0);
		tdt_owner_trecv(b, in.data(), len, i, &to);
	}
	tdt_owner_trecv(a, &got, 1, n, &c);
	ASSERT_TRUE(tdt_eventually([&] { return b->dones == n; },
				   [&] { tdt_owner_progress(b); }));
	ASSERT_FALSE(tdm_list_empty(&pair_of(b)->ctl));
	/* The sender reads what is there; who may sleep looks how much room that makes. */
	tdt_owner_progress(a);
	(void)tdm_shm_runnable(pair_of(b));
	ASSERT_TRUE(tdt_eventually(
		[&] {
			ret = tsend(b, to_a, &answer, 1, n, &c);
			return ret != -FI_EAGAIN;
		},
		[&] { tdt_owner_progress(a); }));
	ASSERT_EQ(0, ret);
	EXPECT_TRUE(tdt_eventually([&] { return a->dones == n + 1; },
				   [&] { tdt_owner_progress(a); }));
	EXPECT_EQ('a', got);
	/* The next burst finds room. */
	ASSERT_EQ(0, send(b, to_a, &answer, 1, n, &c));
	EXPECT_EQ(unsigned(TDM_SHM_RING_BUSY_SLOTS), pair_of(b)->tx.count);
}

/* Many messages wait for their sender: one that can be read does not wait with them. */
TEST_F(PairTest, AReadableMessagePassesThoseThatNeedTheSender)
{
	const size_t parts = TDM_SHM_IOV_MOST + 1, waiting = 200;
	const size_t len = 1 << 20;
	auto out = pattern(len, 1);
	std::vector<unsigned char> in(len), other(20000 * parts);
	struct iovec iov[parts];
	struct fi_msg_tagged msg = {};
	char from, to, c;

	meet();
	for (struct iovec &v : iov)
		v = { out.data(), 20000 };
	msg.msg_iov = iov;
	msg.iov_count = parts;
	msg.addr = to_b;
	for (size_t i = 0; i < waiting; i++) {
		tdt_owner_trecv(b, other.data(), other.size(), 0, &c);
		ASSERT_EQ(retry([&] { return fi_tsendmsg(a->ep, &msg, 0); }),
			  0);
	}
	tdt_owner_trecv(b, in.data(), len, 1, &to);
	ASSERT_EQ(send(a, to_b, out.data(), len, 1, &from), 0);
	ASSERT_TRUE(tdt_eventually([&] { return tdt_owner_find(b, &to); },
				   [&] { tdt_owner_progress(b); }));
	EXPECT_EQ(in, out);
	ASSERT_TRUE(until([&] { return b->dones == waiting + 1; }));
}

/* Chunks stop coming in the middle: the receiver reads what is missing. */
TEST_F(PairTest, ReceiverGoesOnWhenTheChunksStop)
{
	auto out = pattern(5 << 20, 1);
	std::vector<unsigned char> in(5 << 20);
	char ca, cb;

	meet();
	take_way(b, TDM_SHM_WAY_CHUNKS);
	tdt_owner_trecv(b, in.data(), in.size(), 1, &cb);
	ASSERT_EQ(tsend(a, to_b, out.data(), out.size(), 1, &ca), 0);
	ASSERT_TRUE(tdt_eventually([&] { return pair_of(b)->bounce_rx > 3; },
				   [&] { step(); }));
	ASSERT_TRUE(tdt_eventually([&] { return b->dones == 1; },
				   [&] { tdt_owner_progress(b); }));
	EXPECT_EQ(b->done[0].err, 0);
	EXPECT_EQ(in, out);
}
