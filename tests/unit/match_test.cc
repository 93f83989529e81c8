/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The matching engine: single rules by name, then random schedules against a
 * reference that scans plain lists. TDT_MATCH_SCHEDULES raises the number of
 * schedules, TDT_SEED repeats the one a failure printed.
 */
#include <gtest/gtest.h>

#include <cinttypes>
#include <deque>
#include <list>
#include <memory>
#include <vector>

extern "C" {
#include "peer/match_priv.h"
#include "tests/harness/fault.h"
#include "tests/harness/sanitized.h"
#include "tests/harness/seeded.h"
}

namespace
{

struct Item {
	tdm_match_msg msg = {};
	tdm_match_item &m = msg.item;
	uint64_t id = 0;
};

Item *item_of(tdm_match_item *m)
{
	return reinterpret_cast<Item *>(m);
}

class Match : public ::testing::Test
{
protected:
	void SetUp() override
	{
		m = tdm_match_alloc();
		ASSERT_NE(m, nullptr);
	}

	void TearDown() override
	{
		tdm_match_free(m);
	}

	Item *make(fi_addr_t addr, uint64_t tag, uint64_t ignore)
	{
		items.emplace_back();
		items.back().m.addr = addr;
		items.back().m.tag = tag;
		items.back().m.ignore = ignore;
		return &items.back();
	}

	Item *post(fi_addr_t addr, uint64_t tag, uint64_t ignore = 0)
	{
		Item *i = make(addr, tag, ignore);

		tdm_match_post(m, &i->m);
		return i;
	}

	Item *arrive(fi_addr_t addr, uint64_t tag)
	{
		Item *i = make(addr, tag, 0);

		tdm_match_arrive(m, &i->msg);
		return i;
	}

	Item *posted(fi_addr_t addr, uint64_t tag)
	{
		return item_of(tdm_match_find_posted(m, addr, tag));
	}

	Item *arrived(fi_addr_t addr, uint64_t tag, uint64_t ignore = 0)
	{
		return item_of(tdm_match_find_arrived(m, addr, tag, ignore));
	}

	void remove(Item *i)
	{
		tdm_match_remove(m, &i->m);
	}

	tdm_match *m = nullptr;
	std::deque<Item> items;
};

const fi_addr_t ANY = FI_ADDR_UNSPEC;

/* fi_tagged(3) 2.1, fi_trecv 1: Receives are tried in the order in which they
 * were posted. */
TEST_F(Match, TheReceivePostedFirstWinsWhateverItsClass)
{
	Item *masked = post(ANY, 0x10, 0xf);
	Item *any = post(ANY, 0x12);
	Item *exact = post(3, 0x12);
	Item *directed_mask = post(3, 0, ~0ull);

	for (Item *want : { masked, any, exact, directed_mask }) {
		EXPECT_EQ(posted(3, 0x12), want);
		remove(want);
	}
	EXPECT_EQ(posted(3, 0x12), nullptr);
}

TEST_F(Match, TheMessageArrivedFirstWins)
{
	Item *a = arrive(1, 5), *b = arrive(2, 5), *c = arrive(1, 5);

	EXPECT_EQ(arrived(ANY, 5), a);
	EXPECT_EQ(arrived(2, 5), b);
	EXPECT_EQ(arrived(2, 4, 1), b);
	remove(a);
	EXPECT_EQ(arrived(1, 5), c);
	EXPECT_EQ(arrived(ANY, 0, ~0ull), b);
}

/*
 * fi_tagged(3) 2.1, DESCRIPTION 1: Tags match when they are equal in the bits
 * that count.
 */
TEST_F(Match, IgnoredBitsOfTheReceivesTagDoNotMatter)
{
	Item *r = post(ANY, 0xabcd, 0xff);

	EXPECT_EQ(posted(0, 0xab00), r);
	EXPECT_EQ(posted(0, 0xaaff), nullptr);
	remove(r);
	arrive(0, 0xab12);
	EXPECT_NE(arrived(ANY, 0xabff, 0xff), nullptr);
	EXPECT_EQ(arrived(ANY, 0xacff, 0xff), nullptr);
}

TEST_F(Match, AllBitsOfATagCount)
{
	for (int bit = 0; bit < 64; bit++) {
		Item *r = post(0, 1ull << bit);

		EXPECT_EQ(posted(0, 1ull << bit), r);
		EXPECT_EQ(posted(0, 1ull << ((bit + 1) % 64)), nullptr);
		remove(r);
	}
}

TEST_F(Match, AnUnknownSourceMatchesOnlyReceivesFromAnySource)
{
	Item *exact = post(7, 1), *masked = post(7, 1, 2);

	EXPECT_EQ(posted(ANY, 1), nullptr);
	Item *any = post(ANY, 1);
	EXPECT_EQ(posted(ANY, 1), any);
	remove(exact);
	remove(masked);
	remove(any);

	Item *msg = arrive(ANY, 1);
	EXPECT_EQ(arrived(7, 1), nullptr);
	EXPECT_EQ(arrived(7, 0, 1), nullptr);
	EXPECT_EQ(arrived(ANY, 1), msg);
}

TEST_F(Match, ANamedSourceKeepsItsPlaceInTheOrder)
{
	Item *first = arrive(ANY, 1), *second = arrive(7, 1);
	Item *third = arrive(ANY, 1);

	tdm_match_set_source(m, &third->m, 7);
	tdm_match_set_source(m, &first->m, 7);
	for (Item *want : { first, second, third }) {
		EXPECT_EQ(arrived(7, 1), want);
		EXPECT_EQ(arrived(ANY, 1), want);
		remove(want);
	}
}

TEST_F(Match, AForgottenSourceTakesItsPlaceAmongTheUnknown)
{
	Item *a = arrive(ANY, 1), *b = arrive(7, 1), *c = arrive(ANY, 1);

	tdm_match_clear_source(m, &b->m);
	EXPECT_EQ(arrived(7, 1), nullptr);
	EXPECT_EQ(tdm_match_unknown(m)->next->next, &b->m.bucket);
	for (Item *want : { a, b, c }) {
		EXPECT_EQ(arrived(ANY, 1), want);
		remove(want);
	}
}

TEST_F(Match, UnknownSourcesAreListedOldestFirst)
{
	Item *a = arrive(ANY, 1);
	arrive(3, 1);
	Item *b = arrive(ANY, 2);
	struct tdm_list *l = tdm_match_unknown(m);

	EXPECT_EQ(l->next, &a->m.bucket);
	EXPECT_EQ(l->next->next, &b->m.bucket);
	tdm_match_set_source(m, &a->m, 9);
	EXPECT_EQ(l->next, &b->m.bucket);
	remove(b);
	EXPECT_TRUE(tdm_list_empty(l));
}

TEST_F(Match, MoreMasksThanSlotsStayInOrder)
{
	std::vector<Item *> want;

	for (int i = 0; i < 20; i++)
		want.push_back(post(i & 1 ? ANY : 4, 0x40, 1ull << i));
	want.push_back(post(4, 0x40));
	for (Item *w : want) {
		ASSERT_EQ(posted(4, 0x40), w);
		remove(w);
	}
	/* The slots are free again. */
	Item *r = post(ANY, 1, 0xf00);
	EXPECT_EQ(posted(0, 0x301), r);
}

TEST_F(Match, TablesGrowAndFindEverythingInOrder)
{
	enum { KEYS = 3000, EACH = 3 };
	std::vector<Item *> rx, msg;

	for (int n = 0; n < EACH; n++) {
		for (uint64_t k = 0; k < KEYS; k++) {
			rx.push_back(post(k % 50, k << 8));
			msg.push_back(arrive(k % 50, k << 20 | 1));
		}
	}
	EXPECT_EQ(tdm_match_posted_count(m), size_t(KEYS * EACH));
	EXPECT_EQ(tdm_match_arrived_count(m), size_t(KEYS * EACH));
	for (size_t i = 0; i < rx.size(); i++) {
		uint64_t k = i % KEYS;

		ASSERT_EQ(posted(k % 50, k << 8), rx[i]);
		ASSERT_EQ(arrived(k % 50, k << 20 | 1), msg[i]);
		ASSERT_EQ(arrived(ANY, k << 20 | 1), msg[i]);
		ASSERT_EQ(arrived(ANY, k << 20, 1), msg[i]);
		ASSERT_EQ(arrived(k % 50, k << 20, 1), msg[i]);
		remove(rx[i]);
		remove(msg[i]);
	}
	EXPECT_EQ(tdm_match_posted_count(m), 0u);
	EXPECT_EQ(tdm_match_arrived_count(m), 0u);
}

/* Lookups are O(1) because keys spread over buckets; items of one key do not
 * need any. */
TEST_F(Match, BucketsFollowTheNumberOfKeys)
{
	for (int i = 0; i < 10000; i++)
		post(ANY, 0);
	EXPECT_EQ(tdm_match_find_posted(m, 1, 1), nullptr);
	EXPECT_EQ(m->posted.count, 10000u);
	EXPECT_EQ(m->posted.buckets, size_t(TDM_MATCH_BUCKETS));
	for (uint64_t i = 0; i < 10000; i++)
		post(i % 7, i);
	EXPECT_EQ(tdm_match_find_posted(m, 8, 1), nullptr);
	EXPECT_EQ(m->posted.count, 20000u);
	EXPECT_GE(m->posted.buckets, 16384u);
	for (uint64_t i = 0; i < 10000; i++)
		arrive(i % 7, i << 32);
	EXPECT_GE(m->by_src.buckets, 8192u);
	EXPECT_GE(m->by_tag.buckets, 8192u);
}

TEST_F(Match, ReceivesMetInOrderAreNotFiled)
{
	Item *a = post(1, 10), *b = post(1, 11, 1), *c = post(ANY, 12);

	EXPECT_EQ(tdm_match_first(m, 1, 11), nullptr);
	for (Item *i : { a, b, c }) {
		EXPECT_EQ(tdm_match_first(m, 1, i->m.tag), &i->m);
		EXPECT_EQ(posted(1, i->m.tag), i);
		EXPECT_EQ(m->posted.count, 0u);
		i == b ? remove(i) : tdm_match_remove_first(m, &i->m);
	}
	EXPECT_EQ(tdm_match_first(m, 1, 12), nullptr);
	/* Not the first: now all that are there are filed. */
	a = post(1, 12);
	b = post(1, 13);
	EXPECT_EQ(posted(1, 13), b);
	EXPECT_EQ(m->posted.count, 2u);
	c = post(2, 14);
	EXPECT_EQ(m->posted.count, 2u);
	EXPECT_EQ(tdm_match_first(m, 1, 12), nullptr);
	remove(a);
	remove(b);
	EXPECT_EQ(m->posted.count, 0u);
	EXPECT_EQ(tdm_match_posted_count(m), 1u);
	EXPECT_EQ(tdm_match_first(m, 2, 14), &c->m);
}

TEST_F(Match, MaskIndexesComeAndGoWithoutLosingMessages)
{
	const int masks = 12;
	uint64_t tag = 0;

	for (int i = 0; i < 200; i++)
		arrive(i % 5, 1000 + i);
	for (int round = 0; round < 3; round++) {
		for (int k = 0; k < masks; k++) {
			uint64_t ignore = 1ull << (20 + k);

			/* Nothing but the 100th has this tag. */
			Item *i = arrived(ANY, 1100 | ignore, ignore);
			ASSERT_NE(i, nullptr);
			EXPECT_EQ(i->m.tag, 1100u);
			EXPECT_EQ(arrived(1, 1100, ignore), nullptr);
		}
		EXPECT_EQ(m->n_index, unsigned(TDM_MATCH_MASKS));
		/* Enough arrivals to let every index go idle. */
		for (int i = 0; i < 3000; i++)
			remove(arrive(0, 5000000 + tag++));
		EXPECT_EQ(m->n_index, 0u);
	}
}

/* ----------------------------------------------- against a plain scan */

enum { SCHEDULES = TDT_SANITIZED ? 2000 : 50000 };

struct Rng {
	uint64_t s;
	explicit Rng(uint64_t seed) : s(seed)
	{
	}
	uint64_t next()
	{
		uint64_t z = (s += 0x9e3779b97f4a7c15ull);

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ z >> 27) * 0x94d049bb133111ebull;
		return z ^ z >> 31;
	}
	unsigned upto(unsigned n)
	{
		return n ? unsigned(next() % n) : 0;
	}
};

bool takes(const Item &rx, fi_addr_t addr, uint64_t tag)
{
	return (rx.m.addr == ANY || rx.m.addr == addr) &&
	       (rx.m.tag & ~rx.m.ignore) == (tag & ~rx.m.ignore);
}

/* One schedule: the engine and the reference side by side. */
class Schedule
{
public:
	Schedule(tdm_match *match, uint64_t seed) : m(match), rng(seed)
	{
		sources = 1 + rng.upto(6);
		tags = 1 + rng.upto(8);
		masks = rng.upto(4) ? rng.upto(5) : 14;
		mask_rate = rng.upto(4) * 25;
		any_rate = rng.upto(5) * 25;
		unknown_rate = rng.upto(2) ? 0 : rng.upto(100);
		weight[0] = 1 + rng.upto(20); /* post */
		weight[1] = 1 + rng.upto(20); /* arrive */
		weight[2] = rng.upto(4);      /* cancel */
		weight[3] = rng.upto(4);      /* withdraw */
		weight[4] = rng.upto(4);      /* late source */
		weight[5] = rng.upto(6);      /* look only */
	}

	bool run(unsigned steps)
	{
		for (unsigned i = 0; i < steps && ok; i++)
			step();
		check_lists();
		while (ok && !rx.empty())
			drop(rx, rng.upto(unsigned(rx.size())));
		while (ok && !msg.empty())
			drop(msg, rng.upto(unsigned(msg.size())));
		ok = ok && !tdm_match_posted_count(m) &&
		     !tdm_match_arrived_count(m) && !m->live &&
		     !m->posted.count && !m->by_src.count && !m->by_tag.count &&
		     !m->nodes.in_use && tdm_list_empty(tdm_match_unknown(m));
		return ok;
	}

private:
	using List = std::vector<std::unique_ptr<Item>>;

	void step()
	{
		unsigned sum = 0, at, op = 0;

		for (unsigned w : weight)
			sum += w;
		at = rng.upto(sum);
		while (at >= weight[op])
			at -= weight[op++];
		switch (op) {
		case 0:
			post();
			break;
		case 1:
			arrive();
			break;
		case 2:
			if (!rx.empty())
				drop(rx, rng.upto(unsigned(rx.size())));
			break;
		case 3:
			if (!msg.empty())
				drop(msg, rng.upto(unsigned(msg.size())));
			break;
		case 4:
			rng.upto(4) ? late_source() : forget();
			break;
		default:
			look();
		}
	}

	std::unique_ptr<Item> make(bool posting)
	{
		static const uint64_t mask[14] = {
			~0ull,	    0xf,
			0x3,	    0xf0,
			1ull << 63, 0xff,
			0x1,	    0x2,
			0x4,	    0x8,
			0x30,	    0xc0,
			0x1fe,	    0xffffffff00000000ull
		};
		auto i = std::make_unique<Item>();
		unsigned p = posting ? any_rate : unknown_rate;

		i->id = ++next_id;
		i->m.addr = rng.upto(100) < p ? ANY : rng.upto(sources);
		i->m.tag = rng.upto(tags) * 0x1b;
		if (!rng.upto(8))
			i->m.tag |= 1ull << 63;
		if (posting && masks && rng.upto(100) < mask_rate)
			i->m.ignore = mask[rng.upto(masks)];
		return i;
	}

	size_t ref_posted(fi_addr_t addr, uint64_t tag)
	{
		size_t i = 0;

		while (i < rx.size() && !takes(*rx[i], addr, tag))
			i++;
		return i;
	}

	size_t ref_arrived(const Item &r)
	{
		size_t i = 0;

		while (i < msg.size() &&
		       !takes(r, msg[i]->m.addr, msg[i]->m.tag))
			i++;
		return i;
	}

	void expect(tdm_match_item *got, const List &l, size_t want)
	{
		ok = ok && (want == l.size() ? !got : got == &l[want]->m);
	}

	void drop(List &l, size_t i)
	{
		tdm_match_remove(m, &l[i]->m);
		l.erase(l.begin() + long(i));
	}

	void post()
	{
		auto r = make(true);
		size_t want = ref_arrived(*r);

		expect(tdm_match_find_arrived(m, r->m.addr, r->m.tag,
					      r->m.ignore),
		       msg, want);
		if (want < msg.size()) {
			drop(msg, want);
			return;
		}
		tdm_match_post(m, &r->m);
		rx.push_back(std::move(r));
	}

	void give(fi_addr_t addr, uint64_t tag, bool *taken)
	{
		size_t want = ref_posted(addr, tag);
		tdm_match_item *first = tdm_match_first(m, addr, tag);

		if (first && rng.upto(5)) {
			expect(first, rx, want);
			*taken = true;
			tdm_match_remove_first(m, first);
			rx.erase(rx.begin());
			return;
		}
		expect(tdm_match_find_posted(m, addr, tag), rx, want);
		*taken = want < rx.size();
		/* Now and then it stays posted, as multi-recv buffers do. */
		if (*taken && rng.upto(5))
			drop(rx, want);
	}

	void arrive()
	{
		auto i = make(false);
		bool taken;

		give(i->m.addr, i->m.tag, &taken);
		if (taken)
			return;
		tdm_match_arrive(m, &i->msg);
		msg.push_back(std::move(i));
	}

	void late_source()
	{
		std::vector<size_t> unknown;
		bool taken;

		for (size_t i = 0; i < msg.size(); i++) {
			if (msg[i]->m.addr == ANY)
				unknown.push_back(i);
		}
		if (unknown.empty())
			return;
		size_t i = unknown[rng.upto(unsigned(unknown.size()))];
		tdm_match_set_source(m, &msg[i]->m, rng.upto(sources));
		ok = ok && msg[i]->m.addr != ANY;
		give(msg[i]->m.addr, msg[i]->m.tag, &taken);
		if (taken)
			drop(msg, i);
	}

	void forget()
	{
		fi_addr_t addr = rng.upto(sources);

		for (auto &i : msg) {
			if (i->m.addr == addr && rng.upto(3))
				tdm_match_clear_source(m, &i->m);
		}
	}

	void look()
	{
		auto r = make(true);

		expect(tdm_match_find_arrived(m, r->m.addr, r->m.tag,
					      r->m.ignore),
		       msg, ref_arrived(*r));
		r = make(false);
		expect(tdm_match_find_posted(m, r->m.addr, r->m.tag), rx,
		       ref_posted(r->m.addr, r->m.tag));
	}

	void check_list(struct tdm_list *head, const List &l, size_t count)
	{
		struct tdm_list *pos = head->next;

		ok = ok && count == l.size();
		for (size_t i = 0; ok && i < l.size(); i++, pos = pos->next)
			ok = pos == &l[i]->m.all;
		ok = ok && pos == head;
	}

	void check_lists()
	{
		check_list(tdm_match_posted(m), rx, tdm_match_posted_count(m));
		check_list(tdm_match_arrived(m), msg,
			   tdm_match_arrived_count(m));
	}

	tdm_match *m;
	Rng rng;
	unsigned sources, tags, masks, mask_rate, any_rate, unknown_rate;
	unsigned weight[6];
	List rx, msg;
	uint64_t next_id = 0;
	bool ok = true;
};

void run_schedules(uint64_t count, uint64_t salt, unsigned steps)
{
	tdm_match *m = tdm_match_alloc();
	uint64_t one = tdt_number("TDT_SEED", 0);

	for (uint64_t i = 0; i < (one ? 1 : count); i++) {
		uint64_t seed = one ? one : salt + i;

		/* Mostly the same engine, so that old tables serve new keys. */
		if (i % 64 == 63) {
			tdm_match_free(m);
			m = tdm_match_alloc();
		}
		ASSERT_NE(m, nullptr);
		Schedule s(m, seed);
		ASSERT_TRUE(s.run(steps + unsigned(seed % steps)))
			<< "repeat with TDT_SEED=" << seed;
	}
	tdm_match_free(m);
}

TEST(MatchRandom, ShortSchedulesAgreeWithAPlainScan)
{
	run_schedules(tdt_number("TDT_MATCH_SCHEDULES", SCHEDULES), 1000000,
		      25);
}

TEST(MatchRandom, LongSchedulesAgreeWithAPlainScan)
{
	run_schedules(tdt_number("TDT_MATCH_SCHEDULES", SCHEDULES) / 500,
		      1ull << 40, 4000);
}

/* Tables that cannot grow and indexes that cannot be built cost time only. */
TEST(MatchRandom, SchedulesWithoutMemoryAgreeToo)
{
	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "allocations cannot be made to fail here";
	for (uint64_t seed = 1; seed <= 400; seed++) {
		tdm_match *m = tdm_match_alloc();

		ASSERT_NE(m, nullptr);
		/* From the n-th on, or the n-th alone. */
		tdt_alloc_fail(unsigned(1 + seed % 7), seed & 1);
		Schedule s(m, seed);
		bool ok = s.run(1500);
		tdt_alloc_stop();
		tdm_match_free(m);
		ASSERT_TRUE(ok) << "seed " << seed;
	}
}

TEST(MatchAlloc, SurvivesEveryFailedAllocation)
{
	unsigned n = 0, failed;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "allocations cannot be made to fail here";
	do {
		tdt_alloc_fail(++n, 0);
		tdm_match *m = tdm_match_alloc();
		failed = tdt_alloc_stop();
		EXPECT_EQ(m != nullptr, !failed);
		tdm_match_free(m);
	} while (failed && n < 100);
	EXPECT_EQ(n, 5u);
	tdm_match_free(nullptr);
}

} // namespace
