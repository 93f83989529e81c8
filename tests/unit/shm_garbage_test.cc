/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that writes garbage into its segment, or sends it by the lifeline, is
 * lost, and hurts nobody.
 */
#include <random>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "base/env.h"
#include "shm_world.h"

extern "C" {
#include "base/sealed.h"
#include "shm/lifeline.h"
#include "shm/packet.h"
}

using namespace shm_test;

class GarbageTest : public PairTest
{
protected:
	/* b's view of a: b must survive whatever a writes. */
	struct tdm_shm_pair *liar()
	{
		return pair_of(a);
	}

	/* b drops a, tells once, and can be used again. */
	void b_recovers()
	{
		/* a must not mend what it broke: b alone progresses. */
		ASSERT_TRUE(tdt_eventually(
			[&] {
				return tdt_owner_event(b, TDM_PEER_LOST) !=
				       nullptr;
			},
			[&] { tdt_owner_progress(b); }));
		EXPECT_EQ(tdt_owner_event(b, TDM_PEER_LOST)->err,
			  FI_ECONNRESET);
		for (size_t i = 0; i < b->dones; i++)
			EXPECT_TRUE(b->done[i].err == 0 ||
				    b->done[i].err == FI_ECONNRESET);
		ASSERT_TRUE(until([&] {
			return tdt_owner_event(a, TDM_PEER_LOST) != nullptr;
		}));
		while (!tdt_owner_discard(b))
			;
		a->dones = b->dones = 0;
		exchange(5000, 77);
	}
};

/* Any word as the head of a record. */
TEST_F(GarbageTest, L4_RecordHeads)
{
	std::mt19937_64 rng(5);

	for (int i = 0; i < 300; i++) {
		meet();
		struct tdm_shm_ring_tx *tx = &liar()->tx;
		uint64_t w = tdm_shm_word0(
			i % 4 ? tx->lap : tx->lap + 1 + uint32_t(rng() % 100),
			uint8_t(rng() % 18), uint8_t(rng() % 8),
			uint16_t(rng()));
		uint8_t *slot = tx->slots + tx->idx * TDM_SHM_SLOT_BYTES;

		for (size_t j = 8; j < TDM_SHM_SLOT_BYTES; j += 8) {
			uint64_t r = rng() % 3 ? rng() : rng() % 200;

			memcpy(slot + j, &r, 8);
		}
		tdm_a64_store_release(tdm_shm_slot_word(tx->slots, tx->idx), w);
		for (int j = 0; j < 100; j++)
			step();
		/* Nothing is hurt, whether it passed as a message or not. */
		remake();
	}
}

/* Progress words that cannot be true. */
TEST_F(GarbageTest, L5_ConsumedAheadOfTheHead)
{
	char c = 0;

	for (uint64_t lie : { UINT64_MAX, uint64_t(1) << 63, uint64_t(1000000),
			      uint64_t(0) }) {
		meet();
		exchange(10, 1);
		exchange(10, 2);
		liar()->own->consumed.v = lie;
		/* b learns of it when it runs out of credit. */
		for (int i = 0; i < 100; i++)
			tsend(b, to_a, &c, 1, 5, nullptr);
		if (lie) {
			b_recovers();
		} else {
			/* 0 is old news here: b has read more before. */
			step();
		}
		remake();
	}
}

TEST_F(GarbageTest, L5_BounceCounters)
{
	std::vector<char> in(1 << 20);
	auto out = pattern(1 << 20, 1);

	tdm_env.cma = 0;
	for (uint64_t lie : { UINT64_MAX, uint64_t(33), uint64_t(1) << 40 }) {
		remake();
		meet();
		tdt_owner_trecv(b, in.data(), in.size(), 1, in.data());
		ASSERT_EQ(tsend(a, to_b, out.data(), out.size(), 1, &out), 0);
		ASSERT_TRUE(until([&] { return pair_of(b)->bounce_rx > 0; }));
		liar()->own->bounce_produced.v = lie;
		b_recovers();
	}
}

TEST_F(GarbageTest, L6_ChunkHeads)
{
	std::mt19937_64 rng(6);
	std::vector<char> in(1 << 20);
	auto out = pattern(1 << 20, 1);

	tdm_env.cma = 0;
	for (int i = 0; i < 50; i++) {
		remake();
		meet();
		tdt_owner_trecv(b, in.data(), in.size(), 1, in.data());
		ASSERT_EQ(tsend(a, to_b, out.data(), out.size(), 1, &out), 0);
		ASSERT_TRUE(until([&] { return pair_of(b)->bounce_rx > 0; }));
		auto *head = static_cast<struct tdm_shm_chunk *>(
			liar()->sess->own_bounce.base);
		for (int k = 0; k < TDM_SHM_BOUNCE_CHUNKS; k++) {
			if (rng() % 3 == 0)
				head[k].offset = rng();
			head[k].len = uint32_t(rng() % 2 ? rng() : 0);
		}
		liar()->own->bounce_produced.v = pair_of(b)->bounce_rx + 5;
		b_recovers();
	}
}

/* The hints page is open to all: garbage there costs polls, nothing else. */
TEST_F(GarbageTest, HintsPage)
{
	std::mt19937_64 rng(7);

	meet();
	for (int i = 0; i < 200; i++) {
		auto *w = static_cast<uint64_t *>(pair_of(a)->sess->hints.base);

		for (int j = 0; j < 512; j++)
			w[j] = i % 2 ? rng() : ~0ull;
		exchange(20, unsigned(i));
	}
}

/* The lifeline carries rings and bounce areas, and nothing else. */
TEST_F(GarbageTest, Lifeline)
{
	for (int i = 0; i < 5; i++) {
		meet();
		int fd = liar()->sess->lifeline.fd;
		int e = eventfd(0, EFD_CLOEXEC);

		if (i == 0)
			(void)!::send(fd, "garbage", 7, MSG_NOSIGNAL);
		else if (i == 1)
			(void)!tdm_shm_msg_send(fd, TDM_SHM_MSG_READY, 0, -1);
		else if (i == 2)
			(void)!tdm_shm_msg_send(fd, TDM_SHM_MSG_RING, 504, e);
		else if (i == 3)
			(void)!tdm_shm_msg_send(fd, TDM_SHM_MSG_BOUNCE, 8, e);
		else
			(void)!tdm_shm_msg_send(fd, TDM_SHM_MSG_LEFT, 1, e);
		::close(e);
		b_recovers();
		remake();
	}
}

namespace
{
enum { UNSEALED, SHORT, HOLED, LIES };

/* Memory of @bytes as a peer passes it, but for one lie. */
int lying_memory(size_t bytes, int lie)
{
	const size_t page = TDM_SHM_PAGE_BYTES;
	int fd = memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret;

	ret = fallocate(fd, 0, 0, off_t(bytes - (lie == SHORT ? page : 0)));
	if (!ret && lie == HOLED)
		ret = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				page, page);
	if (!ret && lie != UNSEALED)
		ret = fcntl(fd, F_ADD_SEALS, tdm_sealed_seals(1) | F_SEAL_SEAL);
	EXPECT_EQ(ret, 0) << strerror(errno);
	return fd;
}
} // namespace

/* Memory that the lifeline brings and that is not what its packet says. */
TEST_F(GarbageTest, L3_MemoryOnTheLifelineThatIsNotAsPromised)
{
	const struct {
		enum tdm_shm_msg_type type;
		uint32_t arg;
		size_t bytes;
	} all[] = {
		{ TDM_SHM_MSG_RING, TDM_SHM_RING_BUSY_SLOTS,
		  tdm_shm_seg_bytes(TDM_SHM_RING_BUSY_SLOTS) },
		{ TDM_SHM_MSG_BOUNCE, TDM_SHM_BOUNCE_CHUNKS,
		  tdm_shm_bounce_bytes(TDM_SHM_BOUNCE_CHUNKS) },
		{ TDM_SHM_MSG_LEFT, 4, 4 * TDM_SHM_PAGE_BYTES },
	};

	for (auto &m : all) {
		for (int lie = 0; lie < LIES; lie++) {
			meet();
			size_t fds = tdt_open_files();
			int fd = lying_memory(m.bytes, lie);

			ASSERT_EQ(tdm_shm_msg_send(liar()->sess->lifeline.fd,
						   m.type, m.arg, fd),
				  0);
			::close(fd);
			b_recovers();
			/* The new session has as many. */
			EXPECT_EQ(tdt_open_files(), fds)
				<< m.type << " " << lie;
			remake();
		}
	}
}
