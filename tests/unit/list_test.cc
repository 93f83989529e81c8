/* SPDX-License-Identifier: BSD-2-Clause */
/* base/list.h: walking a list from both ends. */
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "base/list.h"
}

namespace
{

class ListEnds : public testing::Test
{
protected:
	struct tdm_list head, node[100];

	void fill(size_t n)
	{
		tdm_list_init(&head);
		for (size_t i = 0; i < n; i++)
			tdm_list_append(&head, &node[i]);
	}

	/* Nodes that are looked at until @wanted is found. */
	size_t looks(const struct tdm_list *wanted)
	{
		struct tdm_list_ends ends;
		struct tdm_list *pos;
		size_t n = 0;

		tdm_list_ends_init(&ends, &head);
		while ((pos = tdm_list_ends_next(&ends))) {
			n++;
			if (pos == wanted)
				break;
		}
		return n;
	}
};

TEST_F(ListEnds, GiveEachNodeOnce)
{
	for (size_t n = 0; n < 10; n++) {
		std::vector<size_t> seen;
		struct tdm_list_ends ends;
		struct tdm_list *pos;

		fill(n);
		tdm_list_ends_init(&ends, &head);
		while ((pos = tdm_list_ends_next(&ends)))
			seen.push_back(size_t(pos - node));
		EXPECT_EQ(nullptr, tdm_list_ends_next(&ends));
		ASSERT_EQ(n, seen.size());
		std::sort(seen.begin(), seen.end());
		for (size_t i = 0; i < n; i++)
			EXPECT_EQ(i, seen[i]);
	}
}

TEST_F(ListEnds, FindWhatIsNearEitherEnd)
{
	fill(100);
	for (size_t i = 0; i < 50; i++) {
		EXPECT_LE(looks(&node[i]), 2 * i + 1);
		EXPECT_LE(looks(&node[99 - i]), 2 * i + 2);
	}
	/* Taken in either order: each search is one or two looks. */
	for (size_t i = 100; i-- > 50; tdm_list_del(&node[i]))
		EXPECT_LE(looks(&node[i]), 2u);
	for (size_t i = 0; i < 50; tdm_list_del(&node[i++]))
		EXPECT_LE(looks(&node[i]), 2u);
	EXPECT_TRUE(tdm_list_empty(&head));
}

} // namespace
