/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * av/table.h: dense indices and the reverse lookup against a model, and the
 * memory that fi_tandem(7) promises.
 */
#include <arpa/inet.h>
#include <cstring>
#include <malloc.h>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

extern "C" {
#include "av/table.h"
#include "tests/harness/fault.h"
#include "tests/harness/sanitized.h"
}

namespace
{

/* The @n-th of many different addresses. */
struct tdm_addr address(uint32_t n, bool six = false)
{
	struct tdm_addr a;

	memset(&a, 0, sizeof(a));
	if (six) {
		a.u.in6.sin6_family = AF_INET6;
		a.u.in6.sin6_port = htons(uint16_t(n % 97 + 1));
		a.u.in6.sin6_addr.s6_addr[0] = 0x20;
		memcpy(&a.u.in6.sin6_addr.s6_addr[12], &n, 4);
		return a;
	}
	a.u.in.sin_family = AF_INET;
	a.u.in.sin_port = htons(uint16_t(n % 64 + 5000));
	a.u.in.sin_addr.s_addr = htonl(0x0a000001 + n / 64);
	return a;
}

class Table : public testing::Test
{
protected:
	struct tdm_table t;

	Table()
	{
		EXPECT_EQ(0, tdm_table_init(&t, 0));
	}

	~Table() override
	{
		tdm_table_fini(&t);
	}

	uint32_t add(const struct tdm_addr &a, uint32_t *low = nullptr)
	{
		uint32_t i = 12345, l = 12345;

		EXPECT_EQ(0, tdm_table_add(&t, &a, tdm_addr_hash(&a), &i, &l));
		if (low)
			*low = l;
		return i;
	}
};

TEST_F(Table, AgreesWithAModel)
{
	/* Random inserts, copies and removals of both families. */
	std::map<uint32_t, std::pair<uint32_t, bool>> model; /* by index */
	std::map<std::pair<uint32_t, bool>, std::set<uint32_t>> where;
	std::set<uint32_t> free_below;
	std::mt19937 rnd(7);
	uint32_t end = 0;

	for (int step = 0; step < 60000; step++) {
		if (rnd() % 5 < 3 || model.empty()) {
			std::pair<uint32_t, bool> key(rnd() % 3000,
						      rnd() % 3 == 0);
			uint32_t want =
				free_below.empty() ? end : *free_below.begin();
			uint32_t low,
				i = add(address(key.first, key.second), &low);
			auto &set = where[key];

			ASSERT_EQ(want, i);
			ASSERT_EQ(set.empty() ? TDM_TABLE_NONE : *set.begin(),
				  low);
			free_below.erase(i);
			if (i == end)
				end++;
			set.insert(i);
			model[i] = key;
		} else {
			auto it = model.lower_bound(rnd() % end);

			if (it == model.end())
				continue;
			tdm_table_remove(&t, it->first);
			where[it->second].erase(it->first);
			free_below.insert(it->first);
			model.erase(it);
		}
		if (step % 997)
			continue;
		ASSERT_EQ(model.size(), t.live);
		for (const auto &w : where) {
			struct tdm_addr a =
				address(w.first.first, w.first.second);

			ASSERT_EQ(w.second.empty() ? TDM_TABLE_NONE :
						     *w.second.begin(),
				  tdm_table_find(&t, &a));
		}
		for (uint32_t i = 0; i < end + 3; i++) {
			struct tdm_addr a;

			ASSERT_EQ(model.count(i) == 1, !!tdm_table_has(&t, i));
			if (!model.count(i))
				continue;
			tdm_table_get(&t, i, &a);
			struct tdm_addr want =
				address(model[i].first, model[i].second);
			ASSERT_TRUE(tdm_addr_equal(&want, &a));
		}
	}
}

TEST_F(Table, NeverMoreThan48BytesForAnAddress)
{
	/*
	 * fi_tandem(7), ADDRESS VECTORS: An IPv4 address uses at most 48 bytes,
	 * its share of the reverse table included. At every size, reserved or
	 * grown one by one.
	 */
	struct mallinfo2 before, now;
	double worst = 0;

	if (TDT_SANITIZED)
		GTEST_SKIP() << "the sanitizer's heap tells no sizes";
	tdm_table_fini(&t);
	before = mallinfo2();
	ASSERT_EQ(0, tdm_table_init(&t, 0));
	for (uint32_t n = 1; n <= 1u << 20; n++) {
		add(address(n));
		if (n < 4096 || (n & (n - 1) & (n - 2) && n % 4099))
			continue;
		now = mallinfo2();
		worst = std::max(worst,
				 double(now.uordblks + now.hblkhd -
					before.uordblks - before.hblkhd) /
					 n);
	}
	EXPECT_LE(worst, 48.0);
	EXPECT_GT(worst, 28.0) << "the measure is wrong";
	tdm_table_fini(&t);
	for (uint32_t n : { 100000u, 1000000u, (1u << 20) + 1 }) {
		before = mallinfo2();
		ASSERT_EQ(0, tdm_table_init(&t, 0));
		tdm_table_reserve(&t, n);
		for (uint32_t i = 0; i < n; i++)
			add(address(i));
		now = mallinfo2();
		EXPECT_LE(double(now.uordblks + now.hblkhd - before.uordblks -
				 before.hblkhd) /
				  n,
			  48.0);
		tdm_table_fini(&t);
	}
	ASSERT_EQ(0, tdm_table_init(&t, 0));
}

TEST_F(Table, CopiesOfOneAddressTakeLinearTime)
{
	/* A million copies: in quadratic time the watchdog would bite. */
	struct tdm_addr a = address(1);
	uint32_t low, i;

	for (i = 0; i < 1000000; i++)
		ASSERT_EQ(i, add(a, &low));
	EXPECT_EQ(0u, low);
	for (i = 0; i < 1000000; i++)
		tdm_table_remove(&t, i);
	EXPECT_EQ(0u, t.live);
	EXPECT_EQ(TDM_TABLE_NONE, tdm_table_find(&t, &a));
}

TEST_F(Table, MemoryThatFailsChangesNothing)
{
	struct tdm_addr a = address(0);
	uint32_t i, low, n = 0;
	unsigned failed = 0;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without the allocation wrappers";
	while (n < 5000) {
		a = address(n, n % 5 == 0);
		tdt_alloc_fail(1, 1);
		int ret = tdm_table_add(&t, &a, tdm_addr_hash(&a), &i, &low);
		tdt_alloc_stop();
		if (ret) {
			failed++;
			ASSERT_EQ(-FI_ENOMEM, ret);
			ASSERT_EQ(n, t.live);
			ASSERT_EQ(TDM_TABLE_NONE, tdm_table_find(&t, &a));
			ASSERT_EQ(n, add(a));
		} else {
			ASSERT_EQ(n, i);
		}
		n++;
	}
	EXPECT_GT(failed, 5u);
	tdt_alloc_fail(1, 1);
	tdm_table_reserve(&t, 1000000);
	tdt_alloc_stop();
	ASSERT_EQ(n, add(address(n)));
}

TEST_F(Table, AbsurdHintsCostNothing)
{
	tdm_table_fini(&t);
	ASSERT_EQ(0, tdm_table_init(&t, SIZE_MAX));
	tdm_table_reserve(&t, SIZE_MAX);
	tdm_table_reserve(&t, TDM_TABLE_MOST + size_t(1));
	EXPECT_EQ(0u, add(address(3)));
	EXPECT_LE(t.entries_max, 1u << 20);
}

} // namespace
