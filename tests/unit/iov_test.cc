/* SPDX-License-Identifier: BSD-2-Clause */
/* base/iov.h: arithmetic on I/O vectors. */
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "base/iov.h"
#include "tdm_place.h"
}

namespace
{

/* "abcdefghij" in pieces, an empty one among them. */
class Iov : public testing::Test
{
protected:
	char a[3] = { 'a', 'b', 'c' };
	char b[1] = { 'd' };
	char c[6] = { 'e', 'f', 'g', 'h', 'i', 'j' };
	struct iovec iov[4] = { { a, 3 }, { b, 1 }, { nullptr, 0 }, { c, 6 } };

	std::string text() const
	{
		return std::string(a, 3) + std::string(b, 1) +
		       std::string(c, 6);
	}
};

TEST_F(Iov, TotalIsTheSum)
{
	size_t total = 0;

	EXPECT_EQ(0, tdm_iov_total(iov, 4, &total));
	EXPECT_EQ(10u, total);
	EXPECT_EQ(10u, tdm_iov_len(iov, 4));
	EXPECT_EQ(0, tdm_iov_total(nullptr, 0, &total));
	EXPECT_EQ(0u, total);
}

TEST_F(Iov, TotalThatOverflowsIsRefused)
{
	size_t total = 7;
	struct iovec big[2] = { { a, SIZE_MAX }, { b, 1 } };

	EXPECT_EQ(-1, tdm_iov_total(big, 2, &total));
	EXPECT_EQ(7u, total);
	big[1].iov_len = 0;
	EXPECT_EQ(0, tdm_iov_total(big, 2, &total));
	EXPECT_EQ(SIZE_MAX, total);
}

TEST_F(Iov, CopyFromEveryRange)
{
	const std::string all = text();

	for (size_t at = 0; at <= 12; at++) {
		for (size_t len = 0; len <= 12; len++) {
			char out[16];
			size_t n, want;

			memset(out, '#', sizeof(out));
			n = tdm_iov_copy_from(out, iov, 4, at, len);
			want = at >= 10 ? 0 : std::min(len, 10 - at);
			ASSERT_EQ(want, n);
			EXPECT_EQ(all.substr(std::min<size_t>(at, 10), want),
				  std::string(out, n));
			EXPECT_EQ('#', out[n]);
		}
	}
}

TEST_F(Iov, CopyToEveryRange)
{
	for (size_t at = 0; at <= 12; at++) {
		for (size_t len = 0; len <= 12; len++) {
			std::string want = "..........";
			size_t i;

			memset(a, '.', 3);
			memset(b, '.', 1);
			memset(c, '.', 6);
			size_t n = tdm_iov_copy_to(iov, 4, at, "0123456789ab",
						   len);
			for (i = 0; i < len && at + i < 10; i++)
				want[at + i] = "0123456789ab"[i];
			EXPECT_EQ(i, n);
			EXPECT_EQ(want, text());
		}
	}
}

TEST_F(Iov, SliceNamesTheSameBytes)
{
	for (size_t at = 0; at <= 11; at++) {
		for (size_t len = 0; len <= 11; len++) {
			struct iovec out[4];
			std::string got, want;
			size_t n = tdm_iov_slice(out, 4, iov, 4, at, len);

			for (size_t i = 0; i < n; i++) {
				EXPECT_NE(0u, out[i].iov_len);
				got.append(static_cast<char *>(out[i].iov_base),
					   out[i].iov_len);
			}
			if (at < 10)
				want = text().substr(at, len);
			EXPECT_EQ(want, got) << at << "+" << len;
		}
	}
}

TEST_F(Iov, SliceStopsAtItsRoom)
{
	struct iovec out[1];

	EXPECT_EQ(1u, tdm_iov_slice(out, 1, iov, 4, 1, 9));
	EXPECT_EQ(a + 1, out[0].iov_base);
	EXPECT_EQ(2u, out[0].iov_len);
	EXPECT_EQ(0u, tdm_iov_slice(out, 0, iov, 4, 0, 10));
}

/* tdm_place(): in pieces of every length, at every place of a cache line. */
TEST_F(Iov, PlacedInPiecesIsTheSame)
{
	alignas(64) unsigned char mem[300];
	unsigned char src[200];

	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (unsigned char)(i + 1);
	for (size_t len : { 1, 2, 3, 8, 9, 12, 16, 63, 64, 65, 129, 200 }) {
		for (size_t off = 0; off < 70; off++) {
			for (size_t piece = 1; piece <= len; piece += 7) {
				size_t cut = len / 3;
				struct iovec v[2] = {
					{ mem + off, cut },
					{ mem + off + cut, len - cut },
				};
				struct iovec *first = cut ? v : v + 1;

				memset(mem, 0, sizeof(mem));
				for (size_t at = 0; at < len; at += piece)
					tdm_place(first, cut ? 2 : 1, at,
						  src + at,
						  tdm_min(piece, len - at));
				ASSERT_EQ(0, memcmp(mem + off, src, len));
				for (size_t i = 0; i < off; i++)
					ASSERT_EQ(0, mem[i]);
				ASSERT_EQ(0, mem[off + len]);
			}
		}
	}
}

/* The bytes placed last: those in the cache line of the last byte. */
TEST_F(Iov, LastLine)
{
	alignas(64) char mem[256];
	struct iovec v[2] = { { mem, 100 }, { mem + 128, 64 } };

	EXPECT_EQ(0u, tdm_place_last(v, 0));
	EXPECT_EQ(36u, tdm_place_last(v, 1));
	EXPECT_EQ(64u, tdm_place_last(v, 2));
	v[1].iov_len = 65;
	EXPECT_EQ(1u, tdm_place_last(v, 2));
	v[1] = { mem + 130, 3 };
	EXPECT_EQ(3u, tdm_place_last(v, 2)) << "no more than the element has";
}

} // namespace
