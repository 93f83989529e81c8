/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_av_set(3) 2.1: ordered sets of the addresses of an address vector. */
#include <rdma/fi_collective.h>

#include "tests/contract/av_fixture.h"

extern "C" {
#include "av/set.h"
}

namespace
{

using namespace tdt;

using Members = std::vector<fi_addr_t>;

class AvSet : public AvAlone
{
protected:
	std::vector<struct fid_av_set *> sets;

	~AvSet() override
	{
		for (auto *set : sets)
			EXPECT_EQ(0, fi_close(&set->fid));
	}

	/* A vector with the indices 0 to @n - 1. */
	void fill(size_t n)
	{
		open();
		for (size_t i = 0; i < n; i++)
			ASSERT_EQ(1, one(in4("192.0.2.1", uint16_t(i + 1))));
	}

	static struct fi_av_set_attr empty()
	{
		struct fi_av_set_attr a;

		memset(&a, 0, sizeof(a));
		a.start_addr = a.end_addr = FI_ADDR_NOTAVAIL;
		return a;
	}

	static struct fi_av_set_attr range(fi_addr_t from, fi_addr_t to,
					   uint64_t stride = 1)
	{
		struct fi_av_set_attr a = empty();

		a.start_addr = from;
		a.end_addr = to;
		a.stride = stride;
		return a;
	}

	int refused(struct fi_av_set_attr a)
	{
		struct fid_av_set *set = nullptr;
		int ret = fi_av_set(av, &a, &set, nullptr);

		if (!ret)
			sets.push_back(set);
		return ret;
	}

	struct fid_av_set *make(struct fi_av_set_attr a)
	{
		EXPECT_EQ(0, refused(a));
		return sets.back();
	}

	struct fid_av_set *make(const Members &m)
	{
		struct fid_av_set *set = make(empty());

		for (fi_addr_t i : m)
			EXPECT_EQ(0, fi_av_set_insert(set, i));
		return set;
	}

	Members of(struct fid_av_set *set)
	{
		const fi_addr_t *list;
		size_t n = tdm_av_set_members(set, &list);

		return Members(list, list + n);
	}
};

TEST_F(AvSet, BeginsEmptyOrWithARange)
{
	/* fi_av_set 2.1, fi_av_set_attr, start_addr: both ends belong to the
	 * range; FI_ADDR_NOTAVAIL makes an empty set. stride: the distance of
	 * members. count 0: the provider chooses. */
	fill(10);
	EXPECT_EQ(Members(), of(make(empty())));
	EXPECT_EQ(Members({ 2, 3, 4 }), of(make(range(2, 4))));
	EXPECT_EQ(Members({ 1, 4, 7 }), of(make(range(1, 9, 3))));
	EXPECT_EQ(Members({ 5 }), of(make(range(5, 5, 0))));
	EXPECT_EQ(Members({ 8, 9 }), of(make(range(8, 400))));
	EXPECT_EQ(Members({ 0 }), of(make(range(0, 9, UINT64_MAX))));
}

TEST_F(AvSet, TakesAddressesThatAreInUseOnly)
{
	/* fi_av_set 2.1, fi_av_set_attr, start_addr: valid addresses of the
	 * range are added. */
	fi_addr_t gone = 3;

	fill(6);
	ASSERT_EQ(0, fi_av_remove(av, &gone, 1, 0));
	EXPECT_EQ(Members({ 1, 2, 4, 5 }), of(make(range(1, 5))));
	EXPECT_EQ(Members({ 1, 5 }), of(make(range(1, 5, 2))));
}

TEST_F(AvSet, Universe)
{
	/* fi_av_set 2.1, FLAGS, FI_UNIVERSE: all addresses of the vector. */
	struct fi_av_set_attr a = empty();

	fill(70);
	a.flags = FI_UNIVERSE;
	Members m = of(make(a));

	ASSERT_EQ(70u, m.size());
	for (size_t i = 0; i < m.size(); i++)
		EXPECT_EQ(i, m[i]);
}

TEST_F(AvSet, RefusesWhatIsWrong)
{
	struct fid_av_set *set;
	struct fi_av_set_attr a;
	uint8_t key[4] = {};

	fill(4);
	EXPECT_EQ(-FI_EINVAL, fi_av_set(av, nullptr, &set, nullptr));
	EXPECT_EQ(-FI_EINVAL, refused(range(3, 1)));
	EXPECT_EQ(-FI_EINVAL, refused(range(1, FI_ADDR_NOTAVAIL)));
	EXPECT_EQ(-FI_EINVAL, refused(range(FI_ADDR_NOTAVAIL, 1)));
	EXPECT_EQ(-FI_EINVAL, refused(range(0, 3, 0)));
	/* the range has more addresses than count */
	a = range(0, 3);
	a.count = 3;
	EXPECT_EQ(-FI_EINVAL, refused(a));
	a.count = 4;
	EXPECT_EQ(0, refused(a));
	a = empty();
	a.flags = 1;
	EXPECT_EQ(-FI_EBADFLAGS, refused(a));
	a = empty();
	a.comm_key_size = sizeof(key);
	EXPECT_EQ(-FI_EINVAL, refused(a));
	a.comm_key = key;
	EXPECT_EQ(-FI_EOPNOTSUPP, refused(a));
}

TEST_F(AvSet, ARangeNeedsATable)
{
	/* fi_av_set 2.1, fi_av_set_attr, start_addr: FI_AV_TABLE only. */
	open(FI_SOCKADDR_IN, 0, FI_AV_MAP);
	ASSERT_EQ(1, one(in4("192.0.2.1", 1)));
	EXPECT_EQ(-FI_EINVAL, refused(range(0, 0)));
	EXPECT_EQ(Members({ 0 }), of(make(Members({ 0 }))));
}

TEST_F(AvSet, UnionAppendsWhatIsNew)
{
	/* fi_av_set 2.1, fi_av_set_union 1: new members go to the end. */
	struct fid_av_set *dst;

	fill(8);
	dst = make(Members({ 5, 1 }));
	ASSERT_EQ(0, fi_av_set_union(dst, make(Members({ 7, 1, 0 }))));
	EXPECT_EQ(Members({ 5, 1, 7, 0 }), of(dst));
	ASSERT_EQ(0, fi_av_set_union(dst, dst));
	EXPECT_EQ(Members({ 5, 1, 7, 0 }), of(dst));
}

TEST_F(AvSet, IntersectAndDiffKeepTheOrder)
{
	/* fi_av_set 2.1, fi_av_set_intersect 1, fi_av_set_diff 1. */
	struct fid_av_set *a, *b, *src;

	fill(100);
	a = make(Members({ 99, 3, 64, 0 }));
	b = make(Members({ 99, 3, 64, 0 }));
	src = make(Members({ 0, 99, 50 }));
	ASSERT_EQ(0, fi_av_set_intersect(a, src));
	EXPECT_EQ(Members({ 99, 0 }), of(a));
	ASSERT_EQ(0, fi_av_set_diff(b, src));
	EXPECT_EQ(Members({ 3, 64 }), of(b));
	EXPECT_EQ(Members({ 0, 99, 50 }), of(src));
	ASSERT_EQ(0, fi_av_set_intersect(a, a));
	EXPECT_EQ(Members({ 99, 0 }), of(a));
	ASSERT_EQ(0, fi_av_set_diff(a, a));
	EXPECT_EQ(Members(), of(a));
	/* an emptied set is as good as a new one */
	EXPECT_EQ(0, fi_av_set_insert(a, 99));
	EXPECT_EQ(Members({ 99 }), of(a));
}

TEST_F(AvSet, InsertAndRemove)
{
	/* fi_av_set 2.1, fi_av_set_insert 1, fi_av_set_remove 1. */
	struct fid_av_set *set;

	fill(5);
	set = make(range(0, 3));
	EXPECT_EQ(0, fi_av_set_remove(set, 1));
	EXPECT_EQ(Members({ 0, 2, 3 }), of(set));
	EXPECT_EQ(0, fi_av_set_insert(set, 1));
	EXPECT_EQ(Members({ 0, 2, 3, 1 }), of(set));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_insert(set, 1)) << "it is there";
	EXPECT_EQ(-FI_EINVAL, fi_av_set_insert(set, 5)) << "not in the vector";
	EXPECT_EQ(-FI_EINVAL, fi_av_set_insert(set, FI_ADDR_UNSPEC));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_remove(set, 4));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_remove(set, FI_ADDR_UNSPEC));
	EXPECT_EQ(Members({ 0, 2, 3, 1 }), of(set));
}

TEST_F(AvSet, AnAddressThatLeavesTheVectorLeavesItsSets)
{
	/* fi_av_set 2.1, DESCRIPTION 1: a set is a subset of a vector. */
	struct fid_av_set *set;
	fi_addr_t gone = 2;

	fill(4);
	set = make(range(0, 3));
	ASSERT_EQ(0, fi_av_remove(av, &gone, 1, 0));
	EXPECT_EQ(Members({ 0, 1, 3 }), of(set));
	ASSERT_EQ(1, one(in4("192.0.2.9", 9), &gone));
	EXPECT_EQ(2u, gone);
	EXPECT_EQ(Members({ 0, 1, 3 }), of(set));
}

TEST_F(AvSet, SetsOfOneVectorOnly)
{
	struct fid_av_set *mine, *other;
	struct fi_av_set_attr none = empty();
	struct tdm_av *first;
	struct fid_av *kept;

	fill(3);
	mine = make(range(0, 2));
	first = tav;
	kept = av;
	fill(3);
	ASSERT_EQ(0, fi_av_set(av, &none, &other, nullptr));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_union(other, mine));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_intersect(other, mine));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_diff(other, mine));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_union(other, nullptr));
	ASSERT_EQ(0, fi_close(&other->fid));
	close();
	tav = first;
	av = kept;
}

TEST_F(AvSet, KeepsTheVectorOpen)
{
	/* fi_av(3) 2.1, fi_close: -FI_EBUSY while objects use the vector. */
	struct fid_av_set *set;

	fill(1);
	set = make(empty());
	EXPECT_EQ(-FI_EBUSY, fi_close(&av->fid));
	sets.clear();
	EXPECT_EQ(0, fi_close(&set->fid));
}

TEST_F(AvSet, AddressesOfSetsDiffer)
{
	/* fi_av_set 2.1, fi_av_set_addr 1. */
	fi_addr_t a, b;

	fill(2);
	ASSERT_EQ(0, fi_av_set_addr(make(range(0, 1)), &a));
	ASSERT_EQ(0, fi_av_set_addr(make(range(0, 1)), &b));
	EXPECT_NE(a, b);
	for (fi_addr_t i : { a, b }) {
		EXPECT_NE(FI_ADDR_NOTAVAIL, i);
		EXPECT_EQ(-FI_EINVAL, fi_av_remove(av, &i, 1, 0));
	}
	EXPECT_EQ(-FI_EINVAL, fi_av_set_addr(sets.back(), nullptr));
}

} // namespace
