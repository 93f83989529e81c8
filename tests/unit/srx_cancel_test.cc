/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_endpoint(3), fi_cancel, of many receives: each is found, in any order, and
 * the receives looked at are counted.
 */
#include <algorithm>
#include <random>

#include "srx_mock.h"
#include "tests/harness/fault.h"

using namespace srx_test;

namespace
{

class SrxCancel : public Srx
{
protected:
	enum { COUNT = 4000, EACH = 40 };

	char context[COUNT];

	/* All with contexts of their own; every third one is untagged. */
	void post_all()
	{
		for (size_t i = 0; i < COUNT; i++)
			post_one(i, &context[i]);
		srx->looked_at = 0;
	}

	void post_one(size_t i, void *with)
	{
		ASSERT_EQ(post(i % 3 ? FI_TAGGED : FI_MSG, ANY, i, nullptr, 0,
			       with),
			  0);
	}

	void cancel(void *with)
	{
		size_t before = cq.got.size();

		ASSERT_EQ(tdm_srx_cancel(srx, with), 0);
		ASSERT_EQ(cq.got.size(), before + 1);
		ASSERT_EQ(cq.got.back().err, FI_ECANCELED);
		ASSERT_EQ(cq.got.back().context, with);
	}

	std::vector<size_t> numbers()
	{
		std::vector<size_t> all(COUNT);

		for (size_t i = 0; i < COUNT; i++)
			all[i] = i;
		return all;
	}

	void in_order(const std::vector<size_t> &order)
	{
		cq.got.clear();
		post_all();
		for (size_t i : order) {
			cancel(&context[i]);
			ASSERT_EQ(tdm_srx_cancel(srx, this), -FI_ENOENT);
			if (HasFatalFailure())
				return;
		}
		EXPECT_LE(srx->looked_at, uint64_t(COUNT) * 2 * EACH);
		EXPECT_EQ(entries(srx), 0u);
	}
};

TEST_F(SrxCancel, OldestFirst)
{
	in_order(numbers());
}

TEST_F(SrxCancel, NewestFirst)
{
	auto order = numbers();

	std::reverse(order.begin(), order.end());
	in_order(order);
}

TEST_F(SrxCancel, InAnyOrder)
{
	auto order = numbers();

	std::shuffle(order.begin(), order.end(), std::mt19937(1));
	in_order(order);
}

/* One that was posted since is not newer than it is, and found as soon. */
TEST_F(SrxCancel, WhilePostingGoesOn)
{
	std::mt19937 rng(2);

	post_all();
	for (size_t i = 0; i < 2 * COUNT; i++) {
		size_t one = rng() % COUNT;

		cancel(&context[one]);
		if (HasFatalFailure())
			return;
		post_one(one, &context[one]);
	}
	/* An index of all is made anew for every SCAN_MOST posted, at most. */
	EXPECT_LE(srx->looked_at,
		  uint64_t(2 * COUNT) * (2 * EACH + COUNT / 16));
}

/* Of one context always the oldest, though others have come and gone. */
TEST_F(SrxCancel, TheOldestOfAContext)
{
	char mine;

	for (size_t i = 0; i < COUNT; i++)
		post_one(i, i % 2 ? &mine : &context[i]);
	for (size_t i = COUNT - 2; i > COUNT / 2; i -= 2)
		cancel(&context[i]);
	srx->looked_at = 0;
	for (size_t i = 1; i < COUNT; i += 2) {
		/* As its entry was used again, this one is the newest. */
		post_one(i, &mine);
		cancel(&mine);
		ASSERT_EQ(cq.got.back().tag, i % 3 ? i : 0) << i;
	}
	for (size_t i = 1; i < COUNT; i += 2) {
		cancel(&mine);
		ASSERT_EQ(cq.got.back().tag, i % 3 ? i : 0) << i;
	}
	EXPECT_EQ(tdm_srx_cancel(srx, &mine), -FI_ENOENT);
	EXPECT_LE(srx->looked_at, uint64_t(COUNT) * 4 * EACH);
}

TEST_F(SrxCancel, NeedsNoMemory)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "allocations cannot be made to fail here";
	post_all();
	for (unsigned nth : { 1, 2 }) {
		tdt_alloc_fail(nth, 0);
		EXPECT_EQ(tdm_srx_cancel(srx, &context[COUNT / nth - 1]), 0);
		EXPECT_EQ(tdt_alloc_stop(), 1u);
	}
	EXPECT_EQ(tdm_srx_cancel(srx, &context[COUNT - 1]), -FI_ENOENT);
}

} // namespace
