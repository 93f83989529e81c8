/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of what waits for a counter: peer/trigger.h. */
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "peer/trigger.h"
}

namespace
{

class Trigger : public testing::Test
{
protected:
	struct tdm_triggers t;
	std::vector<std::unique_ptr<struct tdm_trigger>> all;

	Trigger()
	{
		tdm_triggers_init(&t);
	}

	struct tdm_trigger *add(uint64_t threshold, uint64_t value = 0,
				uint64_t errs = 0,
				enum tdm_trigger_kind kind = TDM_TRIGGER_VALUE)
	{
		all.push_back(std::make_unique<struct tdm_trigger>());
		all.back()->threshold = threshold;
		all.back()->kind = kind;
		tdm_triggers_add(&t, all.back().get(), value, errs);
		return all.back().get();
	}
};

TEST_F(Trigger, NothingWaitsForEver)
{
	EXPECT_EQ(UINT64_MAX, t.trip);
	EXPECT_EQ(nullptr, tdm_triggers_take(&t, UINT64_MAX, UINT64_MAX));
}

TEST_F(Trigger, ByThresholdThenByTheOrderOfAdding)
{
	auto *c = add(3), *a = add(1), *b1 = add(2), *b2 = add(2), *d = add(4);

	EXPECT_EQ(1u, t.trip);
	EXPECT_EQ(nullptr, tdm_triggers_take(&t, 0, 0));
	for (auto *want : { a, b1, b2, c })
		EXPECT_EQ(want, tdm_triggers_take(&t, 3, 0));
	EXPECT_EQ(nullptr, tdm_triggers_take(&t, 3, 0));
	EXPECT_EQ(4u, t.trip);
	EXPECT_EQ(d, tdm_triggers_take(&t, 4, 0));
	EXPECT_EQ(UINT64_MAX, t.trip);
}

TEST_F(Trigger, ErrorsCountForOneKindOnly)
{
	auto *value = add(2), *both = add(3, 0, 0, TDM_TRIGGER_BOTH);

	EXPECT_EQ(2u, t.trip);
	EXPECT_EQ(both, tdm_triggers_take(&t, 0, 3));
	EXPECT_EQ(nullptr, tdm_triggers_take(&t, 1, 3));
	EXPECT_EQ(2u, t.trip);
	EXPECT_EQ(value, tdm_triggers_take(&t, 2, 3));
}

TEST_F(Trigger, BothKindsAreTakenAsOneList)
{
	auto *b = add(2), *a = add(1, 0, 0, TDM_TRIGGER_BOTH),
	     *b2 = add(2, 0, 0, TDM_TRIGGER_BOTH), *b3 = add(2);

	for (auto *want : { a, b, b2, b3 })
		EXPECT_EQ(want, tdm_triggers_take(&t, 2, 0));
}

TEST_F(Trigger, ErrorsLowerTheTrip)
{
	add(10, 0, 4, TDM_TRIGGER_BOTH);
	EXPECT_EQ(6u, t.trip);
	EXPECT_EQ(nullptr, tdm_triggers_take(&t, 0, 7));
	EXPECT_EQ(3u, t.trip);
	EXPECT_NE(nullptr, tdm_triggers_take(&t, 0, 11));
}

TEST_F(Trigger, AddingSaysWhetherItIsReached)
{
	struct tdm_trigger a = {}, b = {};

	a.threshold = 5;
	b.threshold = 4;
	EXPECT_EQ(0, tdm_triggers_add(&t, &a, 4, 0));
	EXPECT_NE(0, tdm_triggers_add(&t, &b, 4, 0));
	EXPECT_EQ(&b, tdm_triggers_take(&t, 4, 0));
	tdm_triggers_remove(&t, &a, 0);
	EXPECT_EQ(UINT64_MAX, t.trip);
}

TEST_F(Trigger, TheLargestValues)
{
	auto *a = add(UINT64_MAX, 0, 0, TDM_TRIGGER_BOTH);

	EXPECT_EQ(nullptr, tdm_triggers_take(&t, UINT64_MAX - 2, 1));
	/* The sum of both values has no end at 64 bits. */
	EXPECT_EQ(a, tdm_triggers_take(&t, UINT64_MAX, UINT64_MAX));
}

TEST_F(Trigger, AnyOrderOfAddingIsTakenInOrder)
{
	std::mt19937_64 random(20);

	for (int round = 0; round < 50; round++) {
		uint64_t last = 0, no = 0;
		struct tdm_trigger *x;

		for (int i = 0; i < 40; i++)
			add(random() % 12, 0, 0,
			    random() % 2 ? TDM_TRIGGER_VALUE :
					   TDM_TRIGGER_BOTH);
		tdm_triggers_remove(&t, all.back().get(), 0);
		for (uint64_t value = 0; value < 12; value++) {
			while ((x = tdm_triggers_take(&t, value, 0))) {
				EXPECT_LE(x->threshold, value);
				ASSERT_TRUE(x->threshold > last || !no ||
					    x->no >= no);
				last = x->threshold;
				no = x->no;
			}
			EXPECT_GT(t.trip, value);
		}
		EXPECT_EQ(UINT64_MAX, t.trip);
	}
}

} // namespace
