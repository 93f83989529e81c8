/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vectors: fi_av(3). Addresses are FI_SOCKADDR_IN. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "tests/harness/fixture.h"

namespace
{

struct sockaddr_in sin_of(const char *ip, uint16_t port)
{
	struct sockaddr_in sin;

	memset(&sin, 0, sizeof(sin));
	sin.sin_family = AF_INET;
	sin.sin_port = htons(port);
	inet_pton(AF_INET, ip, &sin.sin_addr);
	return sin;
}

class Av : public Case
{
protected:
	struct fid_av *av = nullptr;

	Av()
	{
		attr.no_enable = 1;
		attr.eps = 1;
	}

	void open_av(uint64_t flags = 0, enum fi_av_type type = FI_AV_TABLE)
	{
		struct fi_av_attr a;

		OPEN();
		memset(&a, 0, sizeof(a));
		a.type = type;
		a.flags = flags;
		ASSERT_EQ(0, fi_av_open(rx()->domain, &a, &av, this));
	}

	void TearDown() override
	{
		if (av) {
			EXPECT_EQ(0, fi_close(&av->fid));
		}
		Case::TearDown();
	}

	fi_addr_t insert(const struct sockaddr_in &sin)
	{
		fi_addr_t a = 12345;

		EXPECT_EQ(1, fi_av_insert(av, &sin, 1, &a, 0, nullptr));
		return a;
	}

	void holds(fi_addr_t a, const struct sockaddr_in &sin)
	{
		struct sockaddr_in got;
		size_t len = sizeof(got);

		ASSERT_EQ(0, fi_av_lookup(av, a, &got, &len));
		EXPECT_EQ(sizeof(got), len);
		EXPECT_EQ(sin.sin_family, got.sin_family);
		EXPECT_EQ(sin.sin_port, got.sin_port);
		EXPECT_EQ(sin.sin_addr.s_addr, got.sin_addr.s_addr);
	}
};

TEST_F(Av, IndicesAreInsertionOrder)
{
	/* fi_av(3) 2.1, fi_av_open 4: Indices begin with 0 and count up. */
	std::vector<struct sockaddr_in> list;
	std::vector<fi_addr_t> got(100, 7);

	OK(open_av());
	for (uint16_t i = 0; i < 100; i++)
		list.push_back(sin_of("192.0.2.1", (uint16_t)(1000 + i)));
	ASSERT_EQ(60,
		  fi_av_insert(av, list.data(), 60, got.data(), 0, nullptr));
	ASSERT_EQ(40, fi_av_insert(av, &list[60], 40, &got[60], 0, nullptr));
	for (size_t i = 0; i < 100; i++) {
		EXPECT_EQ(i, got[i]);
		OK(holds(i, list[i]));
	}
}

TEST_F(Av, FiAddrMayBeNull)
{
	/* fi_av(3) 2.1, fi_av_insert 4: Indices can be foretold, so the output
	 * array may be missing. */
	struct sockaddr_in a = sin_of("192.0.2.1", 1);

	OK(open_av());
	ASSERT_EQ(1, fi_av_insert(av, &a, 1, nullptr, 0, nullptr));
	OK(holds(0, a));
	EXPECT_EQ(0, fi_av_insert(av, &a, 0, nullptr, 0, nullptr));
}

TEST_F(Av, RemovedIndexIsTheNextOneUsed)
{
	/* fi_av(3) 2.1, fi_av_insert 3: An address takes the lowest free index,
	 * also one that was removed and comes back. */
	struct sockaddr_in s[6];
	fi_addr_t out;

	OK(open_av());
	for (uint16_t i = 0; i < 6; i++) {
		s[i] = sin_of("192.0.2.7", (uint16_t)(100 + i));
		ASSERT_EQ(i, insert(s[i]));
	}
	for (fi_addr_t i : { 4, 1 }) {
		out = i;
		ASSERT_EQ(0, fi_av_remove(av, &out, 1, 0));
	}
	EXPECT_EQ(1u, insert(s[1]));
	EXPECT_EQ(4u, insert(s[4]));
	EXPECT_EQ(6u, insert(sin_of("192.0.2.8", 1)));
	for (size_t i = 0; i < 6; i++)
		OK(holds(i, s[i]));
}

TEST_F(Av, UnusedIndexIsEinval)
{
	/* fi_av(3) of 2.5 and newer: fi_av_lookup and fi_av_remove of an unset
	 * address give -FI_EINVAL. */
	struct sockaddr_in got;
	size_t len = sizeof(got);
	fi_addr_t bad;

	ONLY_TANDEM();
	OK(open_av());
	insert(sin_of("192.0.2.1", 1));
	insert(sin_of("192.0.2.1", 2));
	bad = 0;
	ASSERT_EQ(0, fi_av_remove(av, &bad, 1, 0));
	for (fi_addr_t a : { fi_addr_t(0), fi_addr_t(2), fi_addr_t(1) << 40,
			     FI_ADDR_UNSPEC }) {
		EXPECT_EQ(-FI_EINVAL, fi_av_lookup(av, a, &got, &len));
		bad = a;
		EXPECT_EQ(-FI_EINVAL, fi_av_remove(av, &bad, 1, 0));
	}
	OK(holds(1, sin_of("192.0.2.1", 2)));
}

TEST_F(Av, LookupTruncatesAndTellsTheSize)
{
	/* fi_av(3) 2.1, fi_av_lookup 1: An address that does not fit is cut
	 * off, and addrlen becomes the size needed. */
	struct sockaddr_in s = sin_of("192.0.2.1", 513);
	unsigned char got[32];

	OK(open_av());
	insert(s);
	for (size_t room = 0; room <= 20; room++) {
		size_t len = room;

		memset(got, 0xcc, sizeof(got));
		ASSERT_EQ(0, fi_av_lookup(av, 0, got, &len));
		EXPECT_EQ(sizeof(s), len);
		EXPECT_EQ(0, memcmp(got, &s, std::min(room, (size_t)8)));
		EXPECT_EQ(0xcc, got[std::min(room, sizeof(s))]);
	}
}

TEST_F(Av, StraddrTruncatesAndTellsTheSize)
{
	/* fi_av(3) 2.1, fi_av_straddr 1: Any address can be written as text;
	 * text that does not fit is cut off, and the buffer is returned. */
	struct sockaddr_in s = sin_of("192.0.2.1", 513);
	char whole[128] = "", buf[128];
	size_t need = sizeof(whole);

	OK(open_av());
	ASSERT_EQ(whole, fi_av_straddr(av, &s, whole, &need));
	EXPECT_STREQ("fi_sockaddr_in://192.0.2.1:513", whole);
	EXPECT_EQ(strlen(whole) + 1, need);
	for (size_t room = 1; room < need + 3; room++) {
		size_t len = room;

		memset(buf, '#', sizeof(buf));
		ASSERT_EQ(buf, fi_av_straddr(av, &s, buf, &len));
		EXPECT_EQ(need, len);
		EXPECT_EQ('#', buf[room]);
		EXPECT_EQ(std::string(whole).substr(0, room - 1),
			  std::string(buf));
	}
}

TEST_F(Av, BadAddressFailsAlone)
{
	/* fi_av(3) 2.1, RETURN VALUES 1: Failed addresses are missing from the
	 * count and have FI_ADDR_NOTAVAIL in the output array. */
	struct sockaddr_in s[3] = { sin_of("192.0.2.1", 1),
				    {},
				    sin_of("192.0.2.3", 3) };
	fi_addr_t a[3] = { 9, 9, 9 };
	int ret;

	tdt_log_expect("");
	OK(open_av());
	ret = fi_av_insert(av, s, 3, a, 0, nullptr);
	EXPECT_LT(ret, 3);
	EXPECT_EQ(0u, a[0]);
	EXPECT_EQ(FI_ADDR_NOTAVAIL, a[1]);
	if (ret == 2) {
		OK(holds(a[2], s[2]));
	} else {
		EXPECT_EQ(FI_ADDR_NOTAVAIL, a[2]);
	}
}

TEST_F(Av, SyncErrTellsEach)
{
	/* fi_av(3) 2.1, fi_av_insert 10: FI_SYNC_ERR: 0 for an address that was
	 * inserted, else its errno. */
	struct sockaddr_in s[3] = { sin_of("192.0.2.1", 1),
				    sin_of("192.0.2.2", 1),
				    {} };
	int errors[3] = { 77, 77, 77 };
	fi_addr_t a[3];

	tdt_log_expect("");
	OK(open_av());
	EXPECT_EQ(2, fi_av_insert(av, s, 3, a, FI_SYNC_ERR, errors));
	EXPECT_EQ(0, errors[0]);
	EXPECT_EQ(0, errors[1]);
	EXPECT_GT(errors[2], 0);
}

TEST_F(Av, UnspecifiedTypeIsChosen)
{
	/* fi_av(3) 2.1, fi_av_open 5: FI_AV_UNSPEC: the type that was chosen is
	 * written back. */
	struct fi_av_attr a;

	OPEN();
	memset(&a, 0, sizeof(a));
	a.type = FI_AV_UNSPEC;
	ASSERT_EQ(0, fi_av_open(rx()->domain, &a, &av, this));
	EXPECT_EQ(FI_AV_TABLE, a.type);
	EXPECT_EQ(this, av->fid.context);
}

TEST_F(Av, MapIsAlignedWithTable)
{
	/* fi_av(3) 2.1, fi_av_open 3: FI_AV_MAP should behave as FI_AV_TABLE
	 * does. */
	ONLY_TANDEM();
	OK(open_av(0, FI_AV_MAP));
	EXPECT_EQ(0u, insert(sin_of("192.0.2.1", 1)));
	EXPECT_EQ(1u, insert(sin_of("192.0.2.1", 2)));
}

TEST_F(Av, DuplicateGetsItsOwnIndex)
{
	/* fi_tandem(7): "An address that is inserted twice gets two indices
	 * (duplicates), which reach the same peer." */
	struct sockaddr_in s = sin_of("192.0.2.1", 1);
	fi_addr_t first = 0;

	ONLY_TANDEM();
	OK(open_av());
	EXPECT_EQ(0u, insert(s));
	EXPECT_EQ(1u, insert(s));
	ASSERT_EQ(0, fi_av_remove(av, &first, 1, 0));
	OK(holds(1, s));
}

TEST_F(Av, InsertsvcTakesNamesAndNumbers)
{
	/* fi_av(3) 2.1, fi_av_insertsvc 1: Node and service are names, as those
	 * of fi_getinfo. */
	fi_addr_t a = 9;

	OK(open_av());
	ASSERT_EQ(1, fi_av_insertsvc(av, "127.0.0.1", "4711", &a, 0, nullptr));
	EXPECT_EQ(0u, a);
	OK(holds(0, sin_of("127.0.0.1", 4711)));
	ASSERT_EQ(1, fi_av_insertsvc(av, "localhost", "4712", &a, 0, nullptr));
	EXPECT_EQ(1u, a);
	OK(holds(1, sin_of("127.0.0.1", 4712)));
}

TEST_F(Av, InsertsvcWithoutANodeIsThisHost)
{
	/* fi_av(3) 2.1, fi_av_insertsvc 1: node and service as in
	 * fi_getinfo(3), where either may be missing. */
	fi_addr_t a = 9;

	ONLY_TANDEM();
	OK(open_av());
	ASSERT_EQ(1, fi_av_insertsvc(av, nullptr, "4711", &a, 0, nullptr));
	OK(holds(a, sin_of("127.0.0.1", 4711)));
}

TEST_F(Av, InsertsvcTakesAnAddrStr)
{
	/* fi_av(3) 2.1, fi_av_insertsvc 1: node may be an FI_ADDR_STR, without
	 * a service. */
	fi_addr_t a = 9;

	ONLY_TANDEM();
	OK(open_av());
	ASSERT_EQ(1, fi_av_insertsvc(av, "fi_sockaddr_in://192.0.2.9:99",
				     nullptr, &a, 0, nullptr));
	OK(holds(a, sin_of("192.0.2.9", 99)));
}

TEST_F(Av, InsertsymCountsOrIsRefused)
{
	/* fi_av(3) 2.1, fi_av_insertsym 3: The example: two nodes with two
	 * services each are four addresses, node by node. A provider without it
	 * says so. */
	fi_addr_t a[4] = { 9, 9, 9, 9 };
	int ret;

	OK(open_av());
	ret = fi_av_insertsym(av, "10.1.1.1", 2, "5000", 2, a, 0, nullptr);
	if (ret == -FI_ENOSYS)
		GTEST_SKIP() << "fi_tandem(7): not offered";
	ASSERT_EQ(4, ret);
	OK(holds(a[0], sin_of("10.1.1.1", 5000)));
	OK(holds(a[1], sin_of("10.1.1.1", 5001)));
	OK(holds(a[2], sin_of("10.1.1.2", 5000)));
	OK(holds(a[3], sin_of("10.1.1.2", 5001)));
}

TEST_F(Av, CountIsAHintOnly)
{
	/* fi_av(3) 2.1, fi_av_open 7: count is how many addresses are expected.
	 * It is not a limit. */
	struct fi_av_attr a;

	OPEN();
	memset(&a, 0, sizeof(a));
	a.type = FI_AV_TABLE;
	a.count = 2;
	ASSERT_EQ(0, fi_av_open(rx()->domain, &a, &av, nullptr));
	for (uint16_t i = 0; i < 3000; i++)
		ASSERT_EQ(i, insert(sin_of("192.0.2.1", (uint16_t)(i + 1))));
	OK(holds(2999, sin_of("192.0.2.1", 3000)));
}

TEST_F(Av, MoreIsAHint)
{
	/* fi_av(3) 2.1, fi_av_insert 9: FI_MORE is a hint. */
	struct sockaddr_in s[2] = { sin_of("192.0.2.1", 1),
				    sin_of("192.0.2.2", 1) };
	fi_addr_t a[2];

	OK(open_av());
	EXPECT_EQ(1, fi_av_insert(av, &s[0], 1, &a[0], FI_MORE, nullptr));
	EXPECT_EQ(1, fi_av_insert(av, &s[1], 1, &a[1], 0, nullptr));
	OK(holds(0, s[0]));
	OK(holds(1, s[1]));
}

TEST_F(Av, WhatIsNotOfferedIsRefused)
{
	/* fi_av(3) 2.1, fi_av_open 19: FI_READ needs a name. Unknown flags are
	 * refused, never ignored. */
	struct fi_av_attr a;
	struct fid_av *other = nullptr;

	ONLY_TANDEM();
	OPEN();
	for (uint64_t flags : { uint64_t(FI_READ), uint64_t(1) << 62 }) {
		memset(&a, 0, sizeof(a));
		a.flags = flags;
		EXPECT_GT(0, fi_av_open(rx()->domain, &a, &other, nullptr))
			<< flags;
	}
	EXPECT_EQ(nullptr, other);
	struct fi_av_attr plain;

	memset(&plain, 0, sizeof(plain));
	EXPECT_EQ(0, fi_av_open(rx()->domain, &plain, &av, nullptr));
}

class AvTraffic : public Case
{
};

TEST_F(AvTraffic, RemovedAndInsertedAgainStillReached)
{
	/* fi_av(3) 2.1, NOTES 1: An address can be removed and inserted
	 * again. */
	OPEN();
	for (auto *from : senders()) {
		for (int i = 0; i < 3; i++) {
			fi_addr_t there = addr(from, rx());

			OK(fence(from));
			ASSERT_EQ(0, fi_av_remove(from->av, &there, 1, 0));
			ASSERT_EQ(1, fi_av_insert(from->av, rx()->name, 1,
						  &from->peers[0], 0, nullptr));
			EXPECT_EQ(there, from->peers[0]);
		}
	}
}

TEST_F(AvTraffic, RemovedSourceIsNotAvailable)
{
	/* fi_av(3) 2.1, fi_av_remove 2: A peer may go on sending after its
	 * address was removed. fi_cq(3) 2.1, fi_cq_readfrom 4: its source is
	 * then FI_ADDR_NOTAVAIL. */
	OPEN();
	for (auto *from : senders()) {
		char out = 1, in = 0;
		struct tdt_comp c;
		fi_addr_t there = addr(rx(), from);

		OK(fence(from));
		ASSERT_EQ(0, fi_av_remove(rx()->av, &there, 1, 0));
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		OK(done(rx(), &in, FI_RECV | FI_MSG, &c));
		EXPECT_EQ(FI_ADDR_NOTAVAIL, c.src);
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

TEST_F(AvTraffic, SourceIsTheLowestDuplicate)
{
	/* fi_tandem(7), FI_SOURCE: "its index in the address vector, the lowest
	 * one if it was inserted more than once". */
	ONLY_TANDEM();
	OPEN();
	for (auto *from : senders()) {
		char out = 1, in = 0;
		struct tdt_comp c;
		fi_addr_t second, first = addr(rx(), from);

		ASSERT_EQ(1, fi_av_insert(rx()->av, from->name, 1, &second, 0,
					  nullptr));
		for (fi_addr_t want :
		     { std::min(first, second), std::max(first, second) }) {
			ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
			ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
			OK(done(rx(), &in, FI_RECV | FI_MSG, &c));
			EXPECT_EQ(want, c.src);
			OK(done(from, &out, FI_SEND | FI_MSG));
			if (want != std::max(first, second)) {
				ASSERT_EQ(0,
					  fi_av_remove(rx()->av, &want, 1, 0));
			}
		}
	}
}

TEST_F(AvTraffic, WaitingMessageKeepsItsSenderAsAliasesChange)
{
	/* fi_tandem(7), FI_SOURCE: a message is from the lowest index of its
	 * sender; fi_getinfo(3), FI_DIRECTED_RECV: a receive from that index
	 * takes it, also if the sender had another one when it was sent. */
	ONLY_TANDEM();
	attr.caps |= FI_DIRECTED_RECV;
	OPEN();
	for (auto *from : senders()) {
		fi_addr_t low = addr(rx(), from), high, again;
		char out = 1, in = 0;
		struct tdt_op op = {};
		struct tdt_comp c;

		ASSERT_EQ(1, fi_av_insert(rx()->av, from->name, 1, &high, 0,
					  nullptr));
		ASSERT_LT(low, high);
		ASSERT_EQ(0, fi_av_remove(rx()->av, &low, 1, 0));
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		OK(fence(from));
		/* The lowest index changes twice while the message waits. */
		ASSERT_EQ(1, fi_av_insert(rx()->av, from->name, 1, &again, 0,
					  nullptr));
		ASSERT_EQ(low, again);
		ASSERT_EQ(0, fi_av_remove(rx()->av, &high, 1, 0));
		op.call = TDT_RECV;
		op.buf = &in;
		op.len = 1;
		op.addr = low;
		op.context = &in;
		ASSERT_EQ(0, tdt_post(rx(), &op));
		OK(done(rx(), &in, FI_RECV | FI_MSG, &c));
		EXPECT_EQ(low, c.src);
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

TEST_F(AvTraffic, InsertBetweenBindAndEnable)
{
	/* fi_endpoint(3) 2.1, fi_ep_bind 2: An AV is bound before the endpoint
	 * is enabled. Addresses may be inserted at any time. */
	attr.no_enable = 1;
	OPEN();
	ASSERT_EQ(0, tdt_ep_enable(rx()));
	for (auto *from : senders()) {
		char out = 1, in = 0;

		ASSERT_EQ(1, fi_av_insert(from->av, rx()->name, 1,
					  &from->peers[0], 0, nullptr));
		ASSERT_EQ(0, tdt_ep_enable(from));
		ASSERT_EQ(0, tdt_recv(rx(), &in, 1, &in));
		ASSERT_EQ(0, tdt_send(from, rx(), &out, 1, &out));
		OK(done(rx(), &in, FI_RECV | FI_MSG));
		OK(done(from, &out, FI_SEND | FI_MSG));
	}
}

} // namespace
