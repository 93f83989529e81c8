/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a write is placed last: a target that polls the last byte and
 * finds it has all of the write. fi_tandem(7), ORDERING.
 */
#include <atomic>
#include <thread>

#include <rdma/fi_rma.h>

#include "tests/harness/fixture.h"
#include "tests/harness/sanitized.h"

namespace
{

const uint64_t KEY = 0x1a57;

class RmaEnd : public Case
{
protected:
	struct fid_mr *mr = nullptr;
	Bytes region;

	RmaEnd()
	{
		attr.caps = FI_MSG | FI_TAGGED | FI_RMA;
	}

	void TearDown() override
	{
		if (mr) {
			EXPECT_EQ(0, fi_close(&mr->fid));
		}
		Case::TearDown();
	}

	void expose(size_t len)
	{
		region.assign(len, 0);
		ASSERT_EQ(0,
			  fi_mr_reg(rx()->domain, region.data(), len,
				    FI_REMOTE_WRITE, 0, KEY, 0, &mr, nullptr));
	}

	void post(struct tdt_ep *from, const Bytes &out, size_t at)
	{
		uint64_t end = tdt_now_ms() + tdt_deadline_ms();
		ssize_t ret;

		do {
			ret = fi_write(from->ep, out.data(), out.size(),
				       nullptr, addr(from, rx()), at, KEY,
				       this);
			tdt_progress(w);
		} while (ret == -FI_EAGAIN && tdt_now_ms() < end);
		ASSERT_EQ(0, ret);
	}

	/* Progress of one endpoint alone; its completions stay where they are. */
	static void step(struct tdt_ep *one)
	{
		fi_cq_read(one->rx_cq, nullptr, 0);
		fi_cq_read(one->tx_cq, nullptr, 0);
	}

	uint8_t last(size_t at, size_t len)
	{
		return __atomic_load_n(&region[at + len - 1], __ATOMIC_ACQUIRE);
	}
};

const size_t lens[] = { 9,     64,     65,     1000,	4096,	 16384,
			65536, 262143, 262144, 1 << 20, 3 << 20, 4 << 20 };

TEST_F(RmaEnd, NoStepOfProgressLeavesAHoleBeforeTheLastByte)
{
	/* fi_tandem(7), ORDERING: the bytes in the last cache line of a write
	 * are placed after all others. Here both sides take one step at a time,
	 * in every order. */
	const size_t most = (4 << 20) + 64;
	uint8_t round = 0;

	OPEN();
	OK(expose(most));
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		for (size_t len : lens) {
			for (size_t at : { 0, 1, 40 }) {
				Bytes out(len, ++round ? round : ++round);
				uint64_t end = tdt_now_ms() + tdt_deadline_ms();
				unsigned turn = round;

				OK(post(from, out, at));
				while (last(at, len) != round) {
					struct tdt_ep *one = turn++ % 3 ? rx() :
									  from;

					ASSERT_LT(tdt_now_ms(), end);
					step(one);
				}
				ASSERT_EQ(0,
					  memcmp(&region[at], out.data(), len))
					<< len << " at " << at;
				OK(done(from, this, FI_RMA | FI_WRITE));
			}
		}
	}
}

TEST_F(RmaEnd, AThreadThatPollsTheLastByteHasAll)
{
	/* The same, watched by another thread while the bytes arrive. */
	const size_t most = 4 << 20;

	if (TDT_SANITIZED)
		GTEST_SKIP() << "a program that polls memory races on purpose";
	OPEN();
	OK(expose(most));
	ASSERT_EQ(0, tdt_warm_up(w));
	for (auto *from : senders()) {
		for (size_t len : lens) {
			std::atomic<int> bad{ 0 }, stop{ 0 }, seen{ 0 };
			const int rounds = len > 100000 ? 6 : 40;
			const uint8_t base = len % 50 + from->index * 100;

			std::thread watcher([&] {
				for (int i = 1; i <= rounds && !stop; i++) {
					uint8_t v = uint8_t(base + i);

					while (last(0, len) != v && !stop)
						;
					for (size_t k = 0; k < len; k++)
						bad += __atomic_load_n(
							       &region[k],
							       __ATOMIC_RELAXED) !=
						       v;
					seen = i;
				}
			});
			for (int i = 1; i <= rounds; i++) {
				Bytes out(len, uint8_t(base + i));
				uint64_t end = tdt_now_ms() + tdt_deadline_ms();

				post(from, out, 0);
				done(from, this, FI_RMA | FI_WRITE);
				while (seen < i && tdt_now_ms() < end)
					std::this_thread::yield();
				EXPECT_EQ(i, seen);
				if (HasFailure())
					break;
			}
			stop = 1;
			watcher.join();
			ASSERT_EQ(0, bad) << len;
		}
	}
}

} // namespace
