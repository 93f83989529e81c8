/* SPDX-License-Identifier: BSD-2-Clause */
/* base/pool.h: pool of fixed-size objects. */
#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "base/pool.h"
}
#include "tests/harness/fault.h"

namespace
{

class Pool : public testing::Test
{
protected:
	struct tdm_pool p;

	void TearDown() override
	{
		tdm_pool_fini(&p);
	}
};

TEST_F(Pool, ObjectsAreDistinctAlignedAndWritable)
{
	std::set<void *> seen;

	tdm_pool_init(&p, 40, 0);
	for (int i = 0; i < 5000; i++) {
		void *obj = tdm_pool_alloc(&p);

		ASSERT_NE(nullptr, obj);
		EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(obj) % 16);
		EXPECT_TRUE(seen.insert(obj).second);
		memset(obj, i, 40);
	}
	EXPECT_EQ(5000u, p.in_use);
	for (void *obj : seen)
		tdm_pool_free(&p, obj);
	EXPECT_EQ(0u, p.in_use);
}

TEST_F(Pool, NeighboursDoNotOverlap)
{
	std::vector<unsigned char *> objects;

	tdm_pool_init(&p, 17, 0);
	for (int i = 0; i < 100; i++) {
		auto *obj = static_cast<unsigned char *>(tdm_pool_alloc(&p));

		ASSERT_NE(nullptr, obj);
		memset(obj, i, 17);
		objects.push_back(obj);
	}
	for (int i = 0; i < 100; i++) {
		for (int k = 0; k < 17; k++)
			ASSERT_EQ(i, objects[i][k]);
	}
}

TEST_F(Pool, KnowsItsObjectsFromOtherAddresses)
{
	std::set<char *> all;

	tdm_pool_init(&p, 40, 0);
	EXPECT_FALSE(tdm_pool_owns(&p, &p));
	for (int i = 0; i < 100; i++)
		all.insert(static_cast<char *>(tdm_pool_alloc(&p)));
	for (char *obj : all) {
		EXPECT_TRUE(tdm_pool_owns(&p, obj));
		EXPECT_FALSE(tdm_pool_owns(&p, obj + 1));
		EXPECT_FALSE(tdm_pool_owns(&p, obj + 16));
	}
	EXPECT_FALSE(tdm_pool_owns(&p, nullptr));
	EXPECT_FALSE(tdm_pool_owns(&p, *all.begin() - 48));
	EXPECT_FALSE(tdm_pool_owns(&p, &p));
}

TEST_F(Pool, FreedObjectIsUsedAgainFirst)
{
	tdm_pool_init(&p, 64, 0);
	void *a = tdm_pool_alloc(&p);
	void *b = tdm_pool_alloc(&p);

	tdm_pool_free(&p, a);
	EXPECT_EQ(a, tdm_pool_alloc(&p));
	EXPECT_NE(b, tdm_pool_alloc(&p));
}

TEST_F(Pool, SteadyTrafficAllocatesNothing)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap";
	tdm_pool_init(&p, 64, 0);
	tdm_pool_free(&p, tdm_pool_alloc(&p));
	tdt_alloc_fail(1, 1);
	for (int i = 0; i < 100; i++) {
		void *obj = tdm_pool_alloc(&p);

		if (obj)
			tdm_pool_free(&p, obj);
	}
	EXPECT_EQ(0u, tdt_alloc_stop());
}

TEST_F(Pool, LimitIsKept)
{
	std::vector<void *> objects;

	tdm_pool_init(&p, 8, 20);
	for (int i = 0; i < 20; i++) {
		objects.push_back(tdm_pool_alloc(&p));
		ASSERT_NE(nullptr, objects.back());
	}
	EXPECT_EQ(nullptr, tdm_pool_alloc(&p));
	tdm_pool_free(&p, objects[7]);
	EXPECT_NE(nullptr, tdm_pool_alloc(&p));
}

TEST_F(Pool, OutOfMemoryIsNullAndHarmless)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap";
	tdm_pool_init(&p, 64, 0);
	tdt_alloc_fail(1, 0);
	EXPECT_EQ(nullptr, tdm_pool_alloc(&p));
	EXPECT_EQ(1u, tdt_alloc_stop());
	EXPECT_EQ(0u, p.in_use);
	EXPECT_NE(nullptr, tdm_pool_alloc(&p));
}

TEST_F(Pool, FiniTakesObjectsInUseAndIsZeroSafe)
{
	tdm_pool_init(&p, 64, 0);
	for (int i = 0; i < 100; i++)
		ASSERT_NE(nullptr, tdm_pool_alloc(&p));
	tdm_pool_fini(&p);
	tdm_pool_fini(&p);
	EXPECT_EQ(0u, p.in_use);
}

} // namespace
