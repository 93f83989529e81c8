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
	/* all: "The index of the first address inserted into an FI_AV_TABLE
	 * will be 0, and successive insertions will be given sequential
	 * indices.  Sequential indices will be assigned across insertion calls
	 * on the same AV." */
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
	/* all: "An address is inserted at the lowest index that corresponds to
	 * an unused table location, with indices starting at 0." */
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
	/* 2.1: "providers are encouraged to align the behavior of FI_AV_MAP
	 * with FI_AV_TABLE."  2-dev: "In the version 2 series, the behavior of
	 * FI_AV_MAP is aligned with that of FI_AV_TABLE."  1.20 has the value
	 * opaque: any will do. */
	fi_addr_t a[2];

	open(FI_SOCKADDR_IN, 0, FI_AV_MAP);
	ASSERT_EQ(2, insert(some(2), a));
	EXPECT_EQ(0u, a[0]);
	EXPECT_EQ(1u, a[1]);
}

TEST_F(AvTable, TypeIsChosenAndWrittenBack)
{
	/* all: FI_AV_UNSPEC: "The AV type used will be returned through the
	 * type field in fi_av_attr."  2-dev: "By default, all AVs act as
	 * FI_AV_TABLE." */
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
	/* all: count: "Indicates the expected number of addresses"; ep_per_node:
	 * "The provider uses this value to optimize resource allocations." */
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
	/* all: FI_READ: "An AV opened for read-only access must be named".
	 * FI_SYMMETRIC: "allows for highly-optimized storage": a hint. */
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
	/* all: "The map_addr field is ignored if name is NULL." */
	struct fi_av_attr a;

	memset(&a, 0, sizeof(a));
	a.map_addr = this;
	ASSERT_EQ(0, try_open(FI_SOCKADDR_IN, &a));
	EXPECT_EQ(this, a.map_addr);
}

TEST_F(AvTable, FiAddrMayBeNull)
{
	/* all: "Because insertions occur at a pre-determined index, the fi_addr
	 * parameter may be NULL. ... individual insertion failures cannot be
	 * reported and the application must use other calls, such as
	 * fi_av_lookup to learn which specific addresses failed to insert." */
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
	/* all: "An application may make any number of insertion calls with
	 * FI_MORE set ... Providers are free to ignore FI_MORE." */
	auto s = some(2);

	open();
	EXPECT_EQ(1, one(s[0], nullptr, FI_MORE));
	EXPECT_EQ(1, one(s[1]));
	EXPECT_EQ("192.0.2.1:2", at(1));
}

TEST_F(AvTable, SyncErrTellsEach)
{
	/* all: FI_SYNC_ERR: "the context parameter of insertion calls
	 * references an array of integers ... Successful insertions will be
	 * updated to 0. Failures will contain a fabric errno code." */
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
	/* 1.20, 2.1: "Insertion calls ... will return the number of addresses
	 * that were successfully inserted."  all: "In the case of failure, the
	 * return value will be less than the number of addresses"; "the fi_addr
	 * buffer associated with a failed or aborted insertion will be set to
	 * FI_ADDR_NOTAVAIL." */
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
	/* all: "All other calls return ... a negative value corresponding to
	 * fabric errno on error." */
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
	/* all: "The fi_addr parameter acts as input/output in this case ...
	 * Note that the output from the AV insertion call is unchanged." */
	fi_addr_t a[3] = { 77, 88, 99 };
	auto s = some(3);

	memset(&s[1], 0, sizeof(s[1]));
	open();
	EXPECT_EQ(0u, tdm_av_ids(tav)->count);
	ASSERT_EQ(2, insert(s, a, FI_AV_USER_ID));
	EXPECT_EQ(0u, a[0]);
	EXPECT_EQ(FI_ADDR_NOTAVAIL, a[1]);
	EXPECT_EQ(1u, a[2]);
	EXPECT_EQ(77u, tdm_id(tdm_av_ids(tav), 0));
	EXPECT_EQ(99u, tdm_id(tdm_av_ids(tav), 1));
	EXPECT_EQ(-FI_EINVAL, insert(s, nullptr, FI_AV_USER_ID));
	a[0] = 55;
	ASSERT_EQ(2, fi_av_insertsym(av, "10.0.0.1", 1, "1", 2, a,
				     FI_AV_USER_ID, nullptr));
	EXPECT_EQ(55u, tdm_id(tdm_av_ids(tav), 2));
	EXPECT_EQ(2u, a[0]);
	for (uint16_t i = 0; i < 1000; i++)
		ASSERT_EQ(1, one(in4("192.0.2.9", uint16_t(i + 1))));
	EXPECT_EQ(900u, tdm_id(tdm_av_ids(tav), 900));
	EXPECT_EQ(FI_ADDR_UNSPEC, tdm_id(tdm_av_ids(tav), FI_ADDR_UNSPEC));
}

TEST_F(AvTable, UserIdOfTheVector)
{
	/* 1.20, 2.1: "Using the FI_AV_USER_ID flag per insert is invalid if the
	 * AV was opened with the FI_AV_USER_ID"; fi_av_set_user_id: "By default,
	 * all fi_addr_t's will be assigned the user ID FI_ADDR_NOTAVAIL." */
	fi_addr_t a[100] = {};
	auto s = some(100);

	open(FI_SOCKADDR_IN, FI_AV_USER_ID);
	EXPECT_EQ(-FI_EINVAL, insert(s, a, FI_AV_USER_ID));
	ASSERT_EQ(100, insert(s, a));
	for (size_t i = 0; i < 100; i++)
		EXPECT_EQ(FI_ADDR_NOTAVAIL, tdm_id(tdm_av_ids(tav), i));
	EXPECT_EQ(0, fi_av_set_user_id(av, 99, 5, 0));
	EXPECT_EQ(5u, tdm_id(tdm_av_ids(tav), 99));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_user_id(av, 100, 5, 0));
	EXPECT_GT(0, fi_av_set_user_id(av, 99, 6, 1ULL << 62));
	ASSERT_EQ(0, remove(99));
	ASSERT_EQ(1, one(s[99]));
	EXPECT_EQ(FI_ADDR_NOTAVAIL, tdm_id(tdm_av_ids(tav), 99));
	close();
	open();
	ASSERT_EQ(1, one(s[0]));
	EXPECT_EQ(-FI_EINVAL, fi_av_set_user_id(av, 0, 5, 0));
}

TEST_F(AvTable, RemoveInvalidates)
{
	/* all: "fi_av_remove removes a set of addresses from an address
	 * vector."  2.1, 2-dev: "The corresponding fi_addr_t values are
	 * invalidated and may not be used in data transfer calls."  1.20: "is
	 * invalid until it is returned again by a new fi_av_insert." */
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
	/* 2-dev: "Flags are reserved for future use and must be 0." */
	open();
	ASSERT_EQ(1, insert(some(1)));
	EXPECT_GT(0, remove(0, FI_MORE));
	EXPECT_EQ("192.0.2.1:1", at(0));
}

TEST_F(AvTable, RemovedAddressIsInsertedAgain)
{
	/* all: "providers are required to support the removal, followed by the
	 * re-insertion of an address." */
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
	/* 1.20: "Inserted addresses are not required to be removed.  fi_av_close
	 * will automatically cleanup any resources" (2.1, 2-dev alike). */
	open();
	ASSERT_EQ(400, insert(some(400)));
	EXPECT_EQ(0, fi_close(&av->fid));
	av = nullptr;
}

TEST_F(AvTable, CloseWithEndpointsIsEbusy)
{
	/* all: "If resources are still associated with the AV when attempting
	 * to close, the call will return -FI_EBUSY." */
	struct tdm_av_user user;

	memset(&user, 0, sizeof(user));
	user.inserted = [](struct tdm_av_user *) {
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

TEST_F(AvTable, DuplicatesAreAliases)
{
	/* all: "Attempting to insert a duplicate copy of the same address into
	 * an AV may result in undefined behavior": fi_tandem(7) defines it. */
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
	/* all: "The returned address is the same format as those stored by the
	 * AV. ... If the actual address is larger than what can fit into the
	 * buffer, it will be truncated.  On output, addrlen is set to the size
	 * of the buffer needed to store the address". To the byte. */
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
	/* all: "the address itself is not required to have been inserted ...
	 * On output, addrlen is set to the size of the buffer needed to store
	 * the address. ... If the provided buffer is too small, the results
	 * will be truncated.  fi_av_straddr returns a pointer to buf." */
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
	/* all: fi_rx_addr: "convert an endpoint address ... into an address
	 * that specifies a target receive context." */
	struct fi_av_attr a;

	memset(&a, 0, sizeof(a));
	a.rx_ctx_bits = 4;
	ASSERT_EQ(0, try_open(FI_SOCKADDR_IN, &a));
	EXPECT_EQ(4, tdm_av_space(tav)->ctx_bits);
	EXPECT_EQ((fi_addr_t(3) << 60) | 5, fi_rx_addr(5, 3, 4));
}

} // namespace
