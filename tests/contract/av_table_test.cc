/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_av(3): opening, inserting, removing, looking up. "1.20", "2.1" and
 * "2-dev" name the three versions of the manual; "all" is what they agree on.
 * doc/av-sentences.md maps each sentence to its test.
 */
#include "tests/contract/av_fixture.h"
#include "tests/harness/log.h"

namespace
{

using namespace tdt;

class AvTable : public AvAlone
{
protected:
	/* @n different addresses, 192.0.2.1:1 and so on. */
	std::vector<struct sockaddr_in> some(size_t n)
	{
		std::vector<struct sockaddr_in> list;

		for (size_t i = 0; i < n; i++)
			list.push_back(in4("192.0.2.1", uint16_t(i + 1)));
		return list;
	}

	int insert(const std::vector<struct sockaddr_in> &s,
		   fi_addr_t *a = nullptr, uint64_t flags = 0,
		   void *context = nullptr)
	{
		return fi_av_insert(av, s.data(), s.size(), a, flags, context);
	}

	int remove(fi_addr_t a, uint64_t flags = 0)
	{
		return fi_av_remove(av, &a, 1, flags);
	}
};

TEST_F(AvTable, IndicesAreInsertionOrderAcrossCalls)
{
	/* fi_av(3) all versions, fi_av_open 4: indices begin with 0 and count
	 * up, across calls. */
	auto s = some(5);
	fi_addr_t a[5];

	open();
	ASSERT_EQ(2, fi_av_insert(av, &s[0], 2, a, 0, nullptr));
	ASSERT_EQ(3, fi_av_insert(av, &s[2], 3, a + 2, 0, nullptr));
	for (size_t i = 0; i < 5; i++) {
		EXPECT_EQ(i, a[i]);
		EXPECT_EQ("192.0.2.1:" + std::to_string(i + 1), at(i));
	}
}

TEST_F(AvTable, LowestUnusedIndex)
{
	/* fi_av(3) all versions, fi_av_insert 3: an address takes the lowest
	 * free index, 0 at first. */
	auto s = some(6);
	fi_addr_t a[3];

	open();
	ASSERT_EQ(6, insert(s));
	ASSERT_EQ(0, remove(4));
	ASSERT_EQ(0, remove(1));
	ASSERT_EQ(3, fi_av_insert(av, &s[0], 3, a, 0, nullptr));
	EXPECT_EQ(1u, a[0]);
	EXPECT_EQ(4u, a[1]);
	EXPECT_EQ(6u, a[2]);
}

TEST_F(AvTable, MapBehavesAsTable)
{
	/* fi_av(3) 2.1, fi_av_open 3: FI_AV_MAP should behave as FI_AV_TABLE;
	 * 2-dev: it does. 1.20 has the value opaque: any will do. */
	fi_addr_t a[2];

	open(FI_SOCKADDR_IN, 0, FI_AV_MAP);
	ASSERT_EQ(2, insert(some(2), a));
	EXPECT_EQ(0u, a[0]);
	EXPECT_EQ(1u, a[1]);
}

TEST_F(AvTable, TypeIsChosenAndWrittenBack)
{
	/* fi_av(3) all versions, fi_av_open 5: FI_AV_UNSPEC: the type chosen is
	 * written back. 2-dev: every vector is a table. */
	struct fi_av_attr a;

	memset(&a, 0, sizeof(a));
	a.type = FI_AV_UNSPEC;
	ASSERT_EQ(0, try_open(FI_SOCKADDR_IN, &a));
	EXPECT_EQ(FI_AV_TABLE, a.type);
	EXPECT_EQ(this, av->fid.context);
	close();
	a.type = static_cast<enum fi_av_type>(77);
	EXPECT_EQ(-FI_EINVAL, try_open(FI_SOCKADDR_IN, &a));
}

TEST_F(AvTable, SizesAreHints)
{
	/* fi_av(3) all versions, fi_av_open 8: count and ep_per_node help the
	 * provider to plan its memory. */
	for (size_t hint : { size_t(0), size_t(1), size_t(100), SIZE_MAX }) {
		struct fi_av_attr a;

		memset(&a, 0, sizeof(a));
		a.count = hint;
		a.ep_per_node = hint;
		ASSERT_EQ(0, try_open(FI_SOCKADDR_IN, &a));
		EXPECT_EQ(500, insert(some(500)));
		EXPECT_EQ("192.0.2.1:500", at(499));
		close();
	}
}

TEST_F(AvTable, FlagsOfOpen)
{
	/* fi_av(3) all versions, fi_av_open 19: FI_READ: the vector has a name.
	 * FI_SYMMETRIC helps to save memory: a hint. */
	struct fi_av_attr a;

	open(FI_SOCKADDR_IN, FI_SYMMETRIC);
	EXPECT_EQ(3, insert(some(3)));
	close();
	memset(&a, 0, sizeof(a));
	a.flags = FI_READ;
	EXPECT_EQ(-FI_EINVAL, try_open(FI_SOCKADDR_IN, &a));
	a.flags = 1ULL << 62;
	EXPECT_EQ(-FI_EBADFLAGS, try_open(FI_SOCKADDR_IN, &a));
	a.flags = 0;
	a.rx_ctx_bits = -1;
	EXPECT_EQ(-FI_EINVAL, try_open(FI_SOCKADDR_IN, &a));
	a.rx_ctx_bits = 64;
	EXPECT_EQ(-FI_EINVAL, try_open(FI_SOCKADDR_IN, &a));
}

TEST_F(AvTable, MapAddrIsIgnoredWithoutAName)
{
	/* fi_av(3) all versions, fi_av_open 13: without a name, map_addr means
	 * nothing. */
	struct fi_av_attr a;

	memset(&a, 0, sizeof(a));
	a.map_addr = this;
	ASSERT_EQ(0, try_open(FI_SOCKADDR_IN, &a));
	EXPECT_EQ(this, a.map_addr);
}

TEST_F(AvTable, FiAddrMayBeNull)
{
	/* fi_av(3) all versions, fi_av_insert 4: the output array may be
	 * missing; fi_av_lookup then tells which addresses failed. */
	auto s = some(3);

	s[1].sin_port = 0;
	open();
	EXPECT_EQ(2, insert(s));
	EXPECT_EQ((Texts{ "192.0.2.1:1", "192.0.2.1:3" }), all());
	EXPECT_EQ(0, fi_av_insert(av, s.data(), 0, nullptr, 0, nullptr));
	EXPECT_EQ(0, fi_av_insert(av, nullptr, 0, nullptr, 0, nullptr));
}

TEST_F(AvTable, MoreIsAHint)
{
	/* fi_av(3) all versions, fi_av_insert 9: FI_MORE may be set on any
	 * number of calls; a hint. */
	auto s = some(2);

	open();
	EXPECT_EQ(1, one(s[0], nullptr, FI_MORE));
	EXPECT_EQ(1, one(s[1]));
	EXPECT_EQ("192.0.2.1:2", at(1));
}

TEST_F(AvTable, SyncErrTellsEach)
{
	/* fi_av(3) all versions, fi_av_insert 10: FI_SYNC_ERR: the context
	 * is an array of int: 0 for an address that was inserted, else its
	 * errno. */
	auto s = some(3);
	int err[3] = { 7, 7, 7 };

	s[1].sin_family = AF_UNIX;
	open();
	EXPECT_EQ(2, insert(s, nullptr, FI_SYNC_ERR, err));
	EXPECT_EQ(0, err[0]);
	EXPECT_EQ(FI_EINVAL, err[1]);
	EXPECT_EQ(0, err[2]);
	EXPECT_EQ(-FI_EINVAL, insert(s, nullptr, FI_SYNC_ERR, nullptr));
}

TEST_F(AvTable, FailuresAreCountedAndMarked)
{
	/* fi_av(3) 1.20, 2.1, RETURN VALUES 1: the call returns the number
	 * inserted. all: failed addresses are missing from it and have
	 * FI_ADDR_NOTAVAIL. */
	auto s = some(4);
	fi_addr_t a[4] = { 9, 9, 9, 9 };

	memset(&s[1], 0, sizeof(s[1]));
	s[3].sin_addr.s_addr = 0;
	open();
	EXPECT_EQ(2, insert(s, a));
	EXPECT_EQ(0u, a[0]);
	EXPECT_EQ(FI_ADDR_NOTAVAIL, a[1]);
	EXPECT_EQ(1u, a[2]);
	EXPECT_EQ(FI_ADDR_NOTAVAIL, a[3]);
}

TEST_F(AvTable, WrongUseInsertsNothing)
{
	/* fi_av(3) all versions, RETURN VALUES 4: every other call returns 0 or
	 * a negative errno. */
	auto s = some(2);
	fi_addr_t a[2] = { 9, 9 };

	open();
	EXPECT_EQ(-FI_EBADFLAGS, insert(s, a, 1ULL << 62));
	EXPECT_EQ(-FI_EBADFLAGS, insert(s, a, FI_EVENT));
	EXPECT_EQ(-FI_EINVAL, fi_av_insert(av, nullptr, 2, a, 0, nullptr));
	EXPECT_EQ(-FI_EINVAL,
		  fi_av_insert(av, s.data(), SIZE_MAX, a, 0, nullptr));
	EXPECT_EQ(-FI_EINVAL, fi_av_insert(av, s.data(), size_t(INT32_MAX) + 1,
					   a, 0, nullptr));
	EXPECT_EQ(-FI_EBADFLAGS, fi_av_insertsym(av, "10.0.0.1", 1, "1", 1, a,
						 1ULL << 62, nullptr));
	EXPECT_EQ(9u, a[0]);
	EXPECT_EQ("", at(0));
}

TEST_F(AvTable, UserIdPerInsert)
{
	/* fi_av(3) all versions, USER IDENTIFIERS FOR ADDRESSES 3: the array is
	 * input and output, and the output is as without ids. */
	fi_addr_t a[3] = { 77, 88, 99 };
	auto s = some(3);

	memset(&s[1], 0, sizeof(s[1]));
	open();
	EXPECT_EQ(0u, tdm_av_user_ids(tav)->count);
	ASSERT_EQ(2, insert(s, a, FI_AV_USER_ID));
	EXPECT_EQ(0u, a[0]);
	EXPECT_EQ(FI_ADDR_NOTAVAIL, a[1]);
	EXPECT_EQ(1u, a[2]);
	EXPECT_EQ(77u, tdm_user_id(tdm_av_user_ids(tav), 0));
	EXPECT_EQ(99u, tdm_user_id(tdm_av_user_ids(tav), 1));
	EXPECT_EQ(-FI_EINVAL, insert(s, nullptr, FI_AV_USER_ID));
	a[0] = 55;
	ASSERT_EQ(2, fi_av_insertsym(av, "10.0.0.1", 1, "1", 2, a,
				     FI_AV_USER_ID, nullptr));
	EXPECT_EQ(55u, tdm_user_id(tdm_av_user_ids(tav), 2));
	EXPECT_EQ(2u, a[0]);
	for (uint16_t i = 0; i < 1000; i++)
		ASSERT_EQ(1, one(in4("192.0.2.9", uint16_t(i + 1))));
	EXPECT_EQ(900u, tdm_user_id(tdm_av_user_ids(tav), 900));
	EXPECT_EQ(FI_ADDR_UNSPEC,
		  tdm_user_id(tdm_av_user_ids(tav), FI_ADDR_UNSPEC));
}

TEST_F(AvTable, UserIdOfTheVector)
{
	/* fi_av(3) 1.20, 2.1, fi_av_insert 12: ids of a vector and of
	 * insertions exclude each other; fi_av_set_user_id: ids are
	 * FI_ADDR_NOTAVAIL at first. */
	fi_addr_t a[100] = {};
	auto s = some(100);

	open(FI_SOCKADDR_IN, FI_AV_USER_ID);
	EXPECT_EQ(-FI_EINVAL, insert(s, a, FI_AV_USER_ID));
	ASSERT_EQ(100, insert(s, a));
	for (size_t i = 0; i < 100; i++)
		EXPECT_EQ(FI_ADDR_NOTAVAIL,
			  tdm_user_id(tdm_av_user_ids(tav), i));
	EXPECT_EQ(0, fi_av_set_user_id(av, 99, 5, 0));
	EXPECT_EQ(5u, tdm_user_id(tdm_av_user_ids(tav), 99));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_user_id(av, 100, 5, 0));
	EXPECT_GT(0, fi_av_set_user_id(av, 99, 6, 1ULL << 62));
	ASSERT_EQ(0, remove(99));
	ASSERT_EQ(1, one(s[99]));
	EXPECT_EQ(FI_ADDR_NOTAVAIL, tdm_user_id(tdm_av_user_ids(tav), 99));
	close();
	open();
	ASSERT_EQ(1, one(s[0]));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_user_id(av, 0, 5, 0));
}

TEST_F(AvTable, RemoveInvalidates)
{
	/* fi_av(3) all versions, fi_av_remove 1: the call takes addresses out.
	 * 2.1, 2-dev: their fi_addr_t serves no operation; 1.20: until an
	 * insertion hands it out again. */
	fi_addr_t set[3] = { 0, 7, 2 };
	unsigned char raw[16];
	size_t len = sizeof(raw);

	open();
	ASSERT_EQ(4, insert(some(4)));
	/* The bad one is told of, and the others go. */
	EXPECT_EQ(-FI_EINVAL, fi_av_remove(av, set, 3, 0));
	for (fi_addr_t i : { 0, 2, 7 })
		EXPECT_EQ(-FI_EINVAL, fi_av_lookup(av, i, raw, &len));
	EXPECT_FALSE(tdm_av_has(tav, 0));
	EXPECT_EQ("192.0.2.1:2", at(1));
	EXPECT_EQ("192.0.2.1:4", at(3));
	EXPECT_EQ(-FI_EINVAL, remove(0));
	EXPECT_EQ(0, fi_av_remove(av, nullptr, 0, 0));
	EXPECT_EQ(-FI_EINVAL, fi_av_remove(av, nullptr, 1, 0));
}

TEST_F(AvTable, RemoveFlagsAreReserved)
{
	/* fi_av(3) 2-dev, fi_av_bind 1: the flags have to be 0. */
	open();
	ASSERT_EQ(1, insert(some(1)));
	EXPECT_GT(0, remove(0, FI_MORE));
	EXPECT_EQ("192.0.2.1:1", at(0));
}

TEST_F(AvTable, RemovedAddressIsInsertedAgain)
{
	/* fi_av(3) all versions, NOTES 1: an address can be removed and
	 * inserted again. */
	auto s = some(3);

	open();
	ASSERT_EQ(3, insert(s));
	for (fi_addr_t i : { 1, 0, 2, 1 }) {
		fi_addr_t again = 9;

		ASSERT_EQ(0, remove(i));
		ASSERT_EQ(1, one(s[i], &again));
		EXPECT_EQ(i, again);
	}
	EXPECT_EQ((Texts{ "192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3" }),
		  all());
}

TEST_F(AvTable, CloseNeedsNoRemoval)
{
	/* fi_av(3) 1.20, fi_av_remove 3: nobody has to remove addresses,
	 * closing does it (2.1, 2-dev alike). */
	open();
	ASSERT_EQ(400, insert(some(400)));
	EXPECT_EQ(0, fi_close(&av->fid));
	av = nullptr;
}

TEST_F(AvTable, CloseWithEndpointsIsEbusy)
{
	/* fi_av(3) all versions, fi_close 2: a vector that others use stays
	 * open: -FI_EBUSY. */
	struct tdm_av_user user;

	memset(&user, 0, sizeof(user));
	user.changed = [](struct tdm_av_user *, int) {
	};
	user.removed = [](struct tdm_av_user *, fi_addr_t) {
	};
	open(FI_SOCKADDR_IN, FI_EVENT);
	tdm_av_attach(tav, &user);
	EXPECT_EQ(-FI_EBUSY, fi_close(&av->fid));
	open_eq();
	EXPECT_EQ(0, bind());
	EXPECT_EQ(0, insert(some(1)));
	EXPECT_EQ("192.0.2.1:1", at(0));
	tdm_av_detach(tav, &user);
}

TEST_F(AvTable, DuplicatesAreChained)
{
	/* fi_av(3) all versions, NOTES 1: a second copy of an address is
	 * undefined: fi_tandem(7) defines it. */
	auto s = some(1);
	struct tdm_addr a;

	ASSERT_EQ(0, tdm_addr_from_sockaddr(&a, &s[0], sizeof(s[0])));
	open();
	for (fi_addr_t i = 0; i < 3; i++) {
		fi_addr_t got = 9;

		ASSERT_EQ(1, one(s[0], &got));
		EXPECT_EQ(i, got);
	}
	EXPECT_EQ(0u, tdm_av_find(tav, &a));
	ASSERT_EQ(0, remove(0));
	EXPECT_EQ(1u, tdm_av_find(tav, &a));
	EXPECT_EQ("192.0.2.1:1", at(2));
}

TEST_F(AvTable, LookupTruncates)
{
	/* fi_av(3) all versions, fi_av_lookup 1: the address has the vector's
	 * format; one that does not fit is cut off, and addrlen becomes the
	 * size needed. To the byte. */
	struct sockaddr_in6 s = in6("2001:db8::1", 513);

	open(FI_SOCKADDR_IN6);
	ASSERT_EQ(1, fi_av_insert(av, &s, 1, nullptr, 0, nullptr));
	for (size_t room = 0; room < 40; room++) {
		unsigned char got[48];
		size_t len = room, n = std::min(room, sizeof(s));

		memset(got, 0xcc, sizeof(got));
		ASSERT_EQ(0, fi_av_lookup(av, 0, got, &len));
		EXPECT_EQ(sizeof(s), len);
		EXPECT_EQ(0, memcmp(got, &s, n));
		EXPECT_EQ(0xcc, got[n]);
	}
	EXPECT_EQ(-FI_EINVAL, fi_av_lookup(av, 0, nullptr, nullptr));
}

TEST_F(AvTable, UnsetIsEinval)
{
	/* fi_tandem(7), and fi_av(3) since 2.5: an index that is not in use. */
	unsigned char raw[16];
	size_t len = sizeof(raw);

	open();
	ASSERT_EQ(1, insert(some(1)));
	for (fi_addr_t i : { fi_addr_t(1), fi_addr_t(1) << 32,
			     fi_addr_t(UINT32_MAX), FI_ADDR_NOTAVAIL }) {
		EXPECT_EQ(-FI_EINVAL, fi_av_lookup(av, i, raw, &len));
		EXPECT_EQ(-FI_EINVAL, remove(i));
	}
}

TEST_F(AvTable, StraddrTruncates)
{
	/* fi_av(3) all versions, fi_av_straddr 1: any address can be written as
	 * text; addrlen becomes the size needed, text that does not fit is cut
	 * off, the buffer is returned. */
	struct sockaddr_in6 s = in6("2001:db8::1", 513);
	const std::string whole = "fi_sockaddr_in6://[2001:db8::1]:513";
	struct sockaddr_in none;

	open(FI_SOCKADDR_IN6);
	for (size_t room = 0; room < whole.size() + 4; room++) {
		char buf[64];
		size_t len = room;

		memset(buf, '#', sizeof(buf));
		ASSERT_EQ(buf, fi_av_straddr(av, &s, buf, &len));
		EXPECT_EQ(whole.size() + 1, len);
		EXPECT_EQ('#', buf[room]);
		if (room) {
			EXPECT_EQ(whole.substr(0, room - 1), buf);
		}
	}
	close();
	open();
	char buf[8] = "x";
	size_t len = sizeof(buf);

	memset(&none, 0, sizeof(none));
	EXPECT_EQ(buf, fi_av_straddr(av, &none, buf, &len));
	EXPECT_STREQ("", buf);
	EXPECT_EQ(nullptr, fi_av_straddr(av, nullptr, buf, &len));
	EXPECT_EQ(nullptr, fi_av_straddr(av, &none, buf, nullptr));
}

TEST_F(AvTable, RxAddrNamesAContext)
{
	/* fi_av(3) all versions, fi_rx_addr 1: fi_rx_addr makes the address of
	 * a receive context. */
	struct fi_av_attr a;

	memset(&a, 0, sizeof(a));
	a.rx_ctx_bits = 4;
	ASSERT_EQ(0, try_open(FI_SOCKADDR_IN, &a));
	EXPECT_EQ(4, tdm_av_space(tav)->ctx_bits);
	EXPECT_EQ((fi_addr_t(3) << 60) | 5, fi_rx_addr(5, 3, 4));
}

} // namespace
