/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring alone: invariants of shm/ring.h, against a model, with rings of
 * every size the pair uses and sizes that are not.
 */
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ring_valid.h"

extern "C" {
#include "shm/msg.h"
#include "shm/region.h"
#include "shm/ring_rx.h"
}

namespace
{

struct Ring {
	std::vector<uint64_t> mem, map;
	struct tdm_shm_ring_tx tx = {};
	struct tdm_shm_ring_rx rx = {};
	tdm_a64 consumed = {};

	explicit Ring(uint32_t slots)
		: mem(slots * TDM_SHM_SLOT_BYTES / 8), map((slots + 63) / 64)
	{
		auto *p = reinterpret_cast<uint8_t *>(mem.data());

		tdm_shm_ring_tx_init(&tx, p, slots, map.data());
		tdm_shm_ring_rx_init(&rx, p, slots);
	}

	bool put(const std::vector<uint8_t> &m, uint32_t spare = 0)
	{
		uint32_t extra = tdm_shm_msg_extra(0, m.size());
		uint32_t n = tdm_shm_rec_slots(extra + m.size());
		uint8_t *slot = tdm_shm_ring_reserve(&tx, n, spare);

		if (!slot) {
			EXPECT_EQ(tdm_shm_ring_credit(
					  &tx, tdm_a64_load_acquire(&consumed)),
				  0);
			slot = tdm_shm_ring_reserve(&tx, n, spare);
		}
		if (!slot)
			return false;
		if (!m.empty())
			memcpy(slot + TDM_SHM_HEAD_BYTES + extra, m.data(),
			       m.size());
		tdm_shm_ring_publish(&tx, n,
				     tdm_shm_word0(0, TDM_SHM_REC_MSG, 0,
						   uint16_t(m.size())));
		return true;
	}

	/* 1: a message in *@m, 0: none, -1: garbage. */
	int get(std::vector<uint8_t> *m)
	{
		for (;;) {
			uint64_t w = tdm_shm_ring_peek(&rx);
			struct tdm_shm_rec rec;

			if (!tdm_shm_ring_there(&rx, w))
				return tdm_shm_ring_sane(&rx, w) ? 0 : -1;
			if (tdm_shm_rec_decode(&rec, w, rx.count - rx.idx))
				return -1;
			if (rec.op == TDM_SHM_REC_MSG) {
				const uint8_t *p = tdm_shm_ring_slot(&rx) +
						   TDM_SHM_HEAD_BYTES +
						   rec.extra;

				m->assign(p, p + rec.aux);
			}
			tdm_shm_ring_step(&rx, rec.slots);
			if (rec.op == TDM_SHM_REC_MSG)
				return 1;
		}
	}

	void show()
	{
		tdm_a64_store_release(&consumed, rx.tail);
	}
};

/* Bytes that look like record heads of any lap. */
std::vector<uint8_t> nasty(std::mt19937_64 &rng, size_t len)
{
	std::vector<uint8_t> m(len);
	size_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		uint64_t w = tdm_shm_word0(uint32_t(rng() % 6), TDM_SHM_REC_MSG,
					   0, uint16_t(rng() % 300));

		memcpy(m.data() + i, &w, 8);
	}
	for (; i < len; i++)
		m[i] = uint8_t(rng());
	return m;
}

} // namespace

TEST(Ring, EmptyHasNothingAndIsValid)
{
	Ring r(24);
	std::vector<uint8_t> m;

	EXPECT_EQ(r.get(&m), 0);
	EXPECT_TRUE(tdt_ring_valid(&r.tx));
	EXPECT_EQ(tdm_shm_ring_free(&r.tx), 24u);
}

TEST(Ring, OneSlotStaysFree)
{
	Ring r(24);
	int n = 0;

	while (r.put({ 1, 2, 3 }))
		n++;
	EXPECT_EQ(n, 23);
	EXPECT_TRUE(tdt_ring_valid(&r.tx));
}

TEST(Ring, SpareSlotsAreKeptForControl)
{
	Ring r(24);
	int n = 0;

	while (r.put({ 1 }, 2))
		n++;
	EXPECT_EQ(n, 21);
	EXPECT_TRUE(r.put({ 1 }));
	EXPECT_TRUE(r.put({ 1 }));
	EXPECT_FALSE(r.put({ 1 }));
}

TEST(Ring, RecordsEndWhereTheProducerWantsToLook)
{
	/* Invariant 3: whatever room there is, and however it grows. */
	Ring r(24);
	int n = 0;

	tdm_shm_ring_look(&r.tx, 6);
	while (r.put({ 1 }))
		n++;
	EXPECT_EQ(n, 5);
	EXPECT_TRUE(tdt_ring_valid(&r.tx));
	EXPECT_EQ(tdm_shm_ring_free(&r.tx), 19u);
	tdm_a64_store_release(&r.consumed, 5);
	EXPECT_FALSE(r.put({ 1 }));
	EXPECT_EQ(tdm_shm_ring_free(&r.tx), 24u);
	tdm_shm_ring_look(&r.tx, r.tx.head + tdm_shm_ring_need(&r.tx, 1, 0));
	EXPECT_TRUE(r.put({ 1 }));
	EXPECT_FALSE(r.put({ 1 }));
	/* A look that is far away leaves the ring as it is. */
	tdm_shm_ring_look(&r.tx, UINT64_MAX);
	for (n = 0; r.put({ 1 }); n++)
		;
	EXPECT_EQ(n, 22);
	EXPECT_TRUE(tdt_ring_valid(&r.tx));
}

TEST(Ring, CreditThatCannotBeTrueIsRefused)
{
	Ring r(24);
	std::vector<uint8_t> m;

	for (int i = 0; i < 10; i++)
		ASSERT_TRUE(r.put({ 1 }));
	EXPECT_EQ(tdm_shm_ring_credit(&r.tx, 11), -1);
	EXPECT_EQ(tdm_shm_ring_credit(&r.tx, UINT64_MAX), -1);
	EXPECT_EQ(tdm_shm_ring_credit(&r.tx, 1ull << 32), -1);
	EXPECT_EQ(tdm_shm_ring_credit(&r.tx, 5), 0);
	EXPECT_EQ(tdm_shm_ring_credit(&r.tx, 4), -1);
	EXPECT_EQ(tdm_shm_ring_credit(&r.tx, 5), 0);
	EXPECT_EQ(tdm_shm_ring_credit(&r.tx, 10), 0);
	EXPECT_TRUE(tdt_ring_valid(&r.tx));
}

TEST(Ring, LapFromTheFutureIsGarbage)
{
	Ring r(24);
	std::vector<uint8_t> m;

	for (uint32_t lap : { 2u, 3u, 1000u, 0x7fffffffu }) {
		r.mem[0] = tdm_shm_word0(lap, TDM_SHM_REC_MSG, 0, 0);
		EXPECT_EQ(r.get(&m), -1) << lap;
	}
	r.mem[0] = tdm_shm_word0(1, TDM_SHM_REC_MSG, 0, 0);
	EXPECT_EQ(r.get(&m), 1);
}

TEST(Ring, LapsSkipZero)
{
	EXPECT_EQ(tdm_shm_lap_next(1), 2u);
	EXPECT_EQ(tdm_shm_lap_next(UINT32_MAX), 1u);
}

TEST(Ring, LapWrapsWithoutLoss)
{
	Ring r(24);
	std::vector<uint8_t> m;

	r.tx.lap = r.rx.lap = UINT32_MAX - 3;
	for (uint8_t i = 0; i < 250; i++) {
		ASSERT_TRUE(r.put({ i, i }));
		ASSERT_EQ(r.get(&m), 1);
		ASSERT_EQ(m[0], i);
		ASSERT_EQ(r.get(&m), 0);
		r.show();
	}
	EXPECT_LT(r.tx.lap, 100u);
}

/* Any mix of lengths and of reading: a queue, and payload is never a head. */
TEST(Ring, BehavesAsAQueueWhateverThePayload)
{
	for (uint32_t slots : { 16u, 24u, 63u, 64u, 504u, 2040u }) {
		std::deque<std::vector<uint8_t>> model;
		std::mt19937_64 rng(slots);
		Ring r(slots);
		size_t most =
			std::min<size_t>((slots / 4) * TDM_SHM_SLOT_BYTES - 32,
					 TDM_SHM_EAGER_MOST_BYTES);

		for (int step = 0; step < 60000; step++) {
			std::vector<uint8_t> m;

			if (rng() % 2) {
				size_t len = rng() % 4 ? rng() % 200 :
							 rng() % most;

				m = nasty(rng, len);
				if (r.put(m, 2))
					model.push_back(m);
			} else {
				int got = r.get(&m);

				ASSERT_EQ(got, model.empty() ? 0 : 1);
				if (got) {
					ASSERT_EQ(m, model.front());
					model.pop_front();
				}
			}
			if (rng() % 8 == 0)
				r.show();
			ASSERT_TRUE(tdt_ring_valid(&r.tx));
		}
	}
}

/* The memory order, under a thread sanitizer and on real processors. */
TEST(Ring, TwoThreads)
{
	const uint64_t count = 300000;
	Ring r(24);
	std::atomic<bool> bad(false);

	std::thread consumer([&] {
		struct tdm_shm_ring_rx *rx = &r.rx;
		uint64_t next = 0;

		while (next < count && !bad) {
			uint64_t w = tdm_shm_ring_peek(rx), v[5];
			struct tdm_shm_rec rec;

			if (!tdm_shm_ring_there(rx, w)) {
				if (!tdm_shm_ring_sane(rx, w))
					bad = true;
				if (rx->tail != rx->shown) {
					rx->shown = rx->tail;
					tdm_a64_store_release(&r.consumed,
							      rx->tail);
				}
				std::this_thread::yield();
				continue;
			}
			if (tdm_shm_rec_decode(&rec, w, rx->count - rx->idx)) {
				bad = true;
				break;
			}
			if (rec.op == TDM_SHM_REC_MSG) {
				memcpy(v,
				       tdm_shm_ring_slot(rx) +
					       TDM_SHM_HEAD_BYTES + rec.extra +
					       rec.aux - sizeof(v),
				       sizeof(v));
				for (uint64_t x : v)
					bad = bad || x != next;
				next++;
			}
			tdm_shm_ring_step(rx, rec.slots);
		}
	});
	for (uint64_t i = 0; i < count && !bad;) {
		std::vector<uint64_t> v(5 + (i % 7) * 16, i);
		uint32_t extra = tdm_shm_msg_extra(0, v.size() * 8);
		uint32_t n = tdm_shm_rec_slots(extra + v.size() * 8);
		uint8_t *slot = tdm_shm_ring_reserve(&r.tx, n, 2);

		if (!slot) {
			if (tdm_shm_ring_credit(
				    &r.tx, tdm_a64_load_acquire(&r.consumed)))
				bad = true;
			slot = tdm_shm_ring_reserve(&r.tx, n, 2);
		}
		if (!slot) {
			std::this_thread::yield();
			continue;
		}
		memcpy(slot + TDM_SHM_HEAD_BYTES + extra, v.data(),
		       v.size() * 8);
		tdm_shm_ring_publish(&r.tx, n,
				     tdm_shm_word0(0, TDM_SHM_REC_MSG, 0,
						   uint16_t(v.size() * 8)));
		i++;
	}
	consumer.join();
	EXPECT_FALSE(bad);
}

/* The bits of a record's slots, whatever words of the bitmap they are in. */
TEST(Ring, MarksTheSlotsInsideARecord)
{
	const uint32_t slots = 200;

	for (uint32_t from = 0; from <= slots; from++)
		for (uint32_t to = from; to <= slots; to++) {
			uint64_t map[4] = {}, want[4] = {};

			for (uint32_t i = from; i < to; i++)
				want[i / 64] |= 1ull << (i % 64);
			tdm_shm_ring_mark(map, from, to);
			ASSERT_EQ(memcmp(map, want, sizeof(map)), 0)
				<< from << " to " << to;
		}
}
