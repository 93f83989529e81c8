/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffers that are used again: base/spares.h. */
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "base/spares.h"
}

namespace
{

class Spares : public testing::Test
{
protected:
	struct tdm_spares s = {};

	void TearDown() override
	{
		tdm_spares_fini(&s);
		EXPECT_EQ(s.count, 0u);
		EXPECT_EQ(s.bytes, 0u);
	}

	void *take(uint32_t bytes, uint32_t *got)
	{
		void *buf = tdm_spares_take(&s, bytes, got);

		memset(buf, 0xa5, *got); /* it is as large as it says */
		return buf;
	}
};

TEST_F(Spares, ABufferIsUsedAgainForOneOfItsSize)
{
	uint32_t got;
	void *a = take(20000, &got);

	EXPECT_EQ(got, 20000u);
	tdm_spares_give(&s, a, got);
	EXPECT_EQ(take(19000, &got), a);
	EXPECT_EQ(got, 20000u);
	tdm_spares_give(&s, a, got);
}

TEST_F(Spares, AMuchSmallerOrALargerOneIsAnother)
{
	uint32_t got, other;
	void *a = take(20000, &got), *b;

	tdm_spares_give(&s, a, got);
	for (uint32_t bytes : { 10000u, 20001u }) {
		b = take(bytes, &other);
		EXPECT_NE(a, b);
		EXPECT_EQ(other, bytes);
		tdm_spares_give(&s, b, other);
	}
	EXPECT_EQ(s.count, 3u);
}

TEST_F(Spares, OfMuchMemoryTheOldestIsFreed)
{
	std::vector<void *> bufs;
	uint32_t got = 0;

	for (int i = 0; i < 10; i++)
		bufs.push_back(take(100000, &got));
	for (void *buf : bufs)
		tdm_spares_give(&s, buf, got);
	EXPECT_EQ(s.count, uint32_t(TDM_SPARES_MOST_BYTES) / 100000);
	EXPECT_LE(s.bytes, uint32_t(TDM_SPARES_MOST_BYTES));
	EXPECT_EQ(take(100000, &got), bufs.back());
	tdm_spares_give(&s, bufs.back(), got);
}

TEST_F(Spares, OfManyTheOldestIsFreed)
{
	std::vector<void *> bufs;
	uint32_t got = 0;

	for (int i = 0; i <= TDM_SPARES_MOST; i++)
		bufs.push_back(take(TDM_SPARES_SMALLEST, &got));
	for (void *buf : bufs)
		tdm_spares_give(&s, buf, got);
	EXPECT_EQ(s.count, uint32_t(TDM_SPARES_MOST));
	EXPECT_EQ(s.kept[0].buf, bufs[1]);
}

TEST_F(Spares, SmallAndVeryLargeOnesAreFreedAtOnce)
{
	uint32_t got;

	for (uint32_t bytes : { uint32_t(1), TDM_SPARES_SMALLEST - 1u,
				TDM_SPARES_LARGEST + 1u }) {
		void *buf = take(bytes, &got);

		EXPECT_EQ(got, bytes);
		tdm_spares_give(&s, buf, got);
		EXPECT_EQ(s.count, 0u) << bytes;
	}
	tdm_spares_give(&s, nullptr, 0);
}

} // namespace
