/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies into shared memory, by string moves and without: shm/copy.h. */
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "shm/copy.h"
}

namespace
{

const size_t room = 16384, edge = 200;

class ShmCopyTest : public testing::TestWithParam<int>
{
protected:
#if defined(__x86_64__)
	int before = tdm_shm_string_moves;

	void SetUp() override
	{
		if (GetParam() && !before)
			GTEST_SKIP() << "no ERMS, or a sanitizer";
		tdm_shm_string_moves = GetParam();
	}

	void TearDown() override
	{
		tdm_shm_string_moves = before;
	}
#endif

	std::vector<unsigned char> src, dst;

	ShmCopyTest() : src(room), dst(room)
	{
		for (size_t i = 0; i < room; i++)
			src[i] = (unsigned char)(i * 7 + i / 251 + 1);
	}

	/* Is dst src[@from, @from + @n) at @to, and 0 elsewhere? Clears it. */
	bool copied(size_t to, size_t from, size_t n)
	{
		bool good = true;

		for (size_t i = 0; i < room; i++) {
			unsigned char want =
				i >= to && i < to + n ? src[from + i - to] : 0;

			good = good && dst[i] == want;
		}
		dst.assign(room, 0);
		return good;
	}
};

} // namespace

TEST_P(ShmCopyTest, EachLengthAtEachPlaceInALine)
{
	const size_t lengths[] = { 0,	 1,    7,    8,	   15,	 16,   17,
				   32,	 33,   255,  1023, 1024, 1025, 1151,
				   4095, 4096, 4097, 8192, 10000 };

	for (size_t n : lengths)
		for (size_t at : { 0, 1, 8, 31, 32, 63, 64, 65 })
			for (size_t from : { 0, 1, 16, 63, 64 }) {
				tdm_shm_put(&dst[edge + at], &src[from], n,
					    1000);
				ASSERT_TRUE(copied(edge + at, from, n))
					<< n << " to " << at << " from "
					<< from;
			}
}

TEST_P(ShmCopyTest, AVectorFromAnOffset)
{
	const struct iovec iov[] = { { &src[0], 1500 },
				     { nullptr, 0 },
				     { &src[1500], 100 },
				     { &src[1600], 4000 } };

	for (size_t offset : { 0, 1, 1499, 1500, 1599, 1600, 3000, 5600 })
		for (size_t n : { 0, 1, 500, 1600, 4000, 5600 }) {
			if (offset + n > 5600)
				continue;
			tdm_shm_put_iov(&dst[edge], iov, 4, offset, n, 1000);
			ASSERT_TRUE(copied(edge, offset, n))
				<< n << " from " << offset;
		}
}

TEST_P(ShmCopyTest, StringMovesCopyWhereTheyAreFaster)
{
#if defined(__x86_64__)
	const uintptr_t page = 1 << 20;
	const auto at = [](uintptr_t a) {
		return reinterpret_cast<const void *>(a);
	};
	const int moves = GetParam();

	EXPECT_FALSE(tdm_shm_by_string(at(page), at(0), 1023, 1024));
	EXPECT_EQ(tdm_shm_by_string(at(page), at(0), 1024, 1024), moves);
	EXPECT_FALSE(tdm_shm_by_string(at(page + 1), at(0), 4096, 1024));
	EXPECT_FALSE(tdm_shm_by_string(at(page + 63), at(0), 4096, 1024));
	EXPECT_EQ(tdm_shm_by_string(at(page + 64), at(0), 4096, 1024), moves);
	EXPECT_EQ(tdm_shm_by_string(at(page), at(1), 4096, 1024), moves);
#endif
}

INSTANTIATE_TEST_SUITE_P(Moves, ShmCopyTest, testing::Values(0, 1));
