/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching with groups and keys against a plain list: invariants 1 to 5 of
 * peer/match.h, over random schedules.
 */
#include <list>
#include <random>

#include <gtest/gtest.h>

extern "C" {
#include "peer/match.h"
#include "tdm_space.h"
}

namespace
{

struct Item {
	struct tdm_match_msg msg = {};
	struct tdm_match_item &m = msg.item;
};

/* The sender of a message; its address determines its key. */
uint32_t key_of(fi_addr_t addr)
{
	return tdm_space_is_wild(addr) ? tdm_space_key(addr) :
					 (uint32_t)addr % 3;
}

bool takes(const Item &rx, const Item &msg)
{
	fi_addr_t want = rx.m.addr, addr = msg.m.addr;

	if ((want ^ addr) >> 32 || ((rx.m.tag ^ msg.m.tag) & ~rx.m.ignore))
		return false;
	if ((uint32_t)want == TDM_SPACE_ANY)
		return true;
	if (tdm_space_is_wild(want))
		return tdm_space_key(want) == msg.m.key;
	return want == addr;
}

class Plain
{
public:
	std::list<Item *> posted, arrived;

	Item *find_posted(const Item &msg)
	{
		for (Item *i : posted) {
			if (takes(*i, msg))
				return i;
		}
		return nullptr;
	}
	Item *find_arrived(const Item &rx)
	{
		for (Item *i : arrived) {
			if (takes(rx, *i))
				return i;
		}
		return nullptr;
	}
};

class Spaces : public testing::TestWithParam<int>
{
protected:
	struct tdm_match *m = tdm_match_alloc_spaces();
	Plain plain;
	std::list<Item> items;
	std::mt19937 random{ (unsigned)GetParam() };

	~Spaces()
	{
		tdm_match_free(m);
	}

	uint32_t pick(uint32_t n)
	{
		return random() % n;
	}

	/* A source: known, by a key only, or nobody's. */
	fi_addr_t sender()
	{
		uint32_t low = pick(4) ? pick(5) :
			       pick(2) ? TDM_SPACE_WILD + 1 + pick(2) :
					 TDM_SPACE_ANY;

		return tdm_space_of(low, pick(3));
	}

	Item *make(fi_addr_t addr)
	{
		static const uint64_t masks[] = { 0, 0, 1, 3, 7, ~0ull };

		items.emplace_back();
		items.back().m.addr = addr;
		items.back().m.tag = pick(4);
		items.back().m.ignore = masks[pick(6)];
		return &items.back();
	}

	void post()
	{
		Item *rx = make(sender());
		Item *want = plain.find_arrived(*rx);
		auto *got = tdm_match_find_arrived_space(
			m, rx->m.addr, rx->m.tag, rx->m.ignore);

		ASSERT_EQ(want ? &want->m : nullptr, got);
		if (want) {
			tdm_match_remove(m, got);
			plain.arrived.remove(want);
			return;
		}
		tdm_match_post(m, &rx->m);
		plain.posted.push_back(rx);
	}

	void arrive()
	{
		Item *msg = make(sender());

		msg->m.ignore = 0;
		msg->m.key = key_of(msg->m.addr);
		Item *want = plain.find_posted(*msg);
		auto *got = tdm_match_find_posted_space(m, msg->m.addr,
							msg->m.key, msg->m.tag);

		ASSERT_EQ(want ? &want->m : nullptr, got);
		if (want) {
			tdm_match_remove(m, got);
			plain.posted.remove(want);
			return;
		}
		tdm_match_arrive_space(m, &msg->msg);
		plain.arrived.push_back(msg);
	}

	/* A source becomes known, or unknown again. */
	void learn()
	{
		size_t n = plain.arrived.size();
		auto it = plain.arrived.begin();

		if (!n)
			return;
		std::advance(it, pick((uint32_t)n));
		struct tdm_match_item *i = &(*it)->m;

		if (tdm_space_is_wild(i->addr))
			tdm_match_set_source(
				m, i, tdm_space_in_group(i->addr, i->key + 3));
		else
			tdm_match_clear_source(m, i);
	}
};

TEST_P(Spaces, AgreesWithAList)
{
	for (int i = 0; i < 4000; i++) {
		uint32_t what = pick(10);

		if (what < 4)
			post();
		else if (what < 9)
			arrive();
		else
			learn();
		if (HasFatalFailure())
			return;
		if (plain.arrived.size() + plain.posted.size() > 300) {
			for (Item *x : plain.arrived)
				tdm_match_remove(m, &x->m);
			for (Item *x : plain.posted)
				tdm_match_remove(m, &x->m);
			plain.arrived.clear();
			plain.posted.clear();
		}
	}
}

INSTANTIATE_TEST_SUITE_P(Seeds, Spaces, testing::Range(1, 40));

TEST(SpaceNames, AreTakenApart)
{
	struct tdm_space both = { 4, 0xffff };
	struct tdm_place p;
	fi_addr_t a = tdm_space_of(17, 9) | 5ull << 60;

	ASSERT_EQ(0, tdm_space_split(&both, a, &p));
	EXPECT_EQ(17u, p.addr);
	EXPECT_EQ(9u, p.group);
	EXPECT_EQ(5u, p.ctx);
	EXPECT_EQ(17u, tdm_space_index(&both, a));
	EXPECT_EQ(-1, tdm_space_split(&both, 1ull << 48 | 17, &p));
	ASSERT_EQ(0, tdm_space_split(&both, FI_ADDR_UNSPEC, &p));
	EXPECT_EQ(TDM_SPACE_ANY, p.addr);
	EXPECT_EQ(0u, p.group + p.ctx);
	EXPECT_EQ(0, tdm_space_group_bits(0));
	EXPECT_EQ(1, tdm_space_group_bits(1));
	EXPECT_EQ(10, tdm_space_group_bits(1000));
	EXPECT_EQ(32, tdm_space_group_bits(TDM_SPACE_GROUP_MOST));
}

} // namespace
