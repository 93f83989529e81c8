/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_av(3), fi_av_insertsvc and fi_av_insertsym, and the forms of address.
 * "1.20", "2.1" and "2-dev" name the three versions of the manual; "all" is
 * what they agree on.
 */
#include "tests/contract/av_fixture.h"
#include "tests/harness/log.h"

namespace
{

using namespace tdt;

class AvForm : public AvAlone
{
protected:
	int sym(const char *node, size_t nodes, const char *service,
		size_t services, fi_addr_t *a = nullptr, uint64_t flags = 0,
		void *context = nullptr)
	{
		return fi_av_insertsym(av, node, nodes, service, services, a,
				       flags, context);
	}

	int svc(const char *node, const char *service, fi_addr_t *a = nullptr)
	{
		return fi_av_insertsvc(av, node, service, a, 0, nullptr);
	}
};

TEST_F(AvForm, SymmetricExampleOfTheManual)
{
	/* fi_av(3) all versions, fi_av_insertsym 3: the example: two nodes with
	 * two services each, node by node; nodecnt times svccnt addresses. */
	fi_addr_t a[4] = { 9, 9, 9, 9 };

	open();
	ASSERT_EQ(4, sym("10.1.1.1", 2, "5000", 2, a));
	EXPECT_EQ((Texts{ "10.1.1.1:5000", "10.1.1.1:5001", "10.1.1.2:5000",
			  "10.1.1.2:5001" }),
		  all());
	for (size_t i = 0; i < 4; i++)
		EXPECT_EQ(i, a[i]);
	EXPECT_TRUE(names.asked.empty());
}

TEST_F(AvForm, SymmetricHostNames)
{
	/* fi_av(3) all versions, fi_av_insertsym 3: the example with a host
	 * name: it counts up as the address does. Each name is resolved for
	 * itself. */
	names.hosts["host10"] = "192.0.2.77";
	names.hosts["host11"] = "198.51.100.3";
	open();
	ASSERT_EQ(4, sym("host10", 2, "5000", 2));
	EXPECT_EQ((Texts{ "192.0.2.77:5000", "192.0.2.77:5001",
			  "198.51.100.3:5000", "198.51.100.3:5001" }),
		  all());
	EXPECT_EQ((Texts{ "host10", "host11" }), names.asked);
}

TEST_F(AvForm, PaddingOfNamesIsKept)
{
	/* fi_tandem(7): "node009 is followed by node010". */
	for (const char *n : { "node008", "node009", "node010", "node011" })
		names.hosts[n] = "192.0.2.1";
	open();
	EXPECT_EQ(4, sym("node008", 4, "1", 1));
	EXPECT_EQ((Texts{ "node008", "node009", "node010", "node011" }),
		  names.asked);
	names.asked.clear();
	names.hosts["n99"] = names.hosts["n100"] = "192.0.2.1";
	EXPECT_EQ(2, sym("n99", 2, "1", 1));
	EXPECT_EQ((Texts{ "n99", "n100" }), names.asked);
}

TEST_F(AvForm, NameWithoutNumberIsForOneNode)
{
	/* fi_av(3) all versions, fi_av_insertsym 2: a name that is to count up
	 * ends in a number. */
	names.hosts["head"] = "192.0.2.1";
	open();
	EXPECT_EQ(-FI_EINVAL, sym("head", 2, "1", 1));
	EXPECT_EQ(2, sym("head", 1, "1", 2));
}

TEST_F(AvForm, CarryAcrossBytes)
{
	/* fi_av(3) all versions, fi_av_insertsym 2: nodes count up from the
	 * first, nodecnt of them. */
	open();
	ASSERT_EQ(2, sym("10.1.1.255", 2, "1", 1));
	ASSERT_EQ(2, sym("10.255.255.255", 2, "2", 1));
	EXPECT_EQ((Texts{ "10.1.1.255:1", "10.1.2.0:1", "10.255.255.255:2",
			  "11.0.0.0:2" }),
		  all());
}

TEST_F(AvForm, CarryAcrossBytesIpv6)
{
	/* all: as above, for IPv6. */
	open(FI_SOCKADDR_IN6);
	ASSERT_EQ(2, sym("2001:db8::ff", 2, "1", 1));
	ASSERT_EQ(2, sym("2001:db8::ffff:ffff", 2, "1", 1));
	ASSERT_EQ(2, sym("2001:db8:0:0:ffff:ffff:ffff:ffff", 2, "1", 1));
	EXPECT_EQ((Texts{ "[2001:db8::ff]:1", "[2001:db8::100]:1",
			  "[2001:db8::ffff:ffff]:1", "[2001:db8::1:0:0]:1",
			  "[2001:db8::ffff:ffff:ffff:ffff]:1",
			  "[2001:db8:0:1::]:1" }),
		  all());
}

TEST_F(AvForm, EndOfTheAddressesFailsAlone)
{
	/* fi_av(3) all versions, RETURN VALUES 1: failed addresses are missing
	 * from the count. */
	fi_addr_t a[4];
	int err[4] = { 9, 9, 9, 9 };

	open();
	EXPECT_EQ(2, sym("255.255.255.254", 4, "1", 1, a, FI_SYNC_ERR, err));
	EXPECT_EQ((Texts{ "255.255.255.254:1", "255.255.255.255:1" }), all());
	EXPECT_EQ(FI_ADDR_NOTAVAIL, a[2]);
	EXPECT_EQ(0, err[1]);
	EXPECT_EQ(FI_EINVAL, err[2]);
	EXPECT_EQ(2, sym("192.0.2.1", 1, "65534", 4, a, FI_SYNC_ERR, err));
	EXPECT_EQ(FI_EINVAL, err[3]);
	close();
	open(FI_SOCKADDR_IN6);
	EXPECT_EQ(1, sym("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 2, "1", 1));
}

TEST_F(AvForm, UnresolvableNodeFailsAlone)
{
	/* all: as above; the rest of the list is inserted. */
	fi_addr_t a[6];
	int err[6];

	names.hosts["n1"] = "192.0.2.1";
	names.hosts["n3"] = "192.0.2.3";
	open();
	EXPECT_EQ(4, sym("n1", 3, "5", 2, a, FI_SYNC_ERR, err));
	for (int i : { 0, 1, 4, 5 })
		EXPECT_EQ(0, err[i]);
	for (int i : { 2, 3 }) {
		EXPECT_EQ(FI_ENODATA, err[i]);
		EXPECT_EQ(FI_ADDR_NOTAVAIL, a[i]);
	}
	EXPECT_EQ(2u, a[4]);
	EXPECT_EQ("192.0.2.3:5", at(2));
}

TEST_F(AvForm, CountsThatOverflow)
{
	open();
	EXPECT_EQ(-FI_EINVAL, sym("10.0.0.1", SIZE_MAX, "1", 2));
	EXPECT_EQ(-FI_EINVAL, sym("10.0.0.1", 1u << 16, "1", 1u << 15));
	EXPECT_EQ(-FI_EINVAL, sym("10.0.0.1", 2, "1", SIZE_MAX / 2 + 1));
	EXPECT_EQ(0, sym("10.0.0.1", 0, "1", SIZE_MAX));
	EXPECT_EQ(0, sym("10.0.0.1", SIZE_MAX, "1", 0));
	EXPECT_EQ("", at(0));
}

TEST_F(AvForm, LongNames)
{
	std::string name(4096, 'n'), digits(4096, '9');
	fi_addr_t a = 9;

	open();
	EXPECT_EQ(0, svc(name.c_str(), "1", &a));
	EXPECT_EQ(FI_ADDR_NOTAVAIL, a);
	EXPECT_EQ(0, svc(digits.c_str(), "1"));
	EXPECT_EQ(0, svc("10.0.0.1", digits.c_str()));
	EXPECT_GE(0, sym(digits.c_str(), 2, "1", 1));
	EXPECT_EQ(0, svc("10.0.0.1", name.c_str()));
	EXPECT_EQ(0,
		  svc(("fi_sockaddr_in://" + digits + ":1").c_str(), nullptr));
	EXPECT_EQ("", at(0));
}

TEST_F(AvForm, ServiceNodeAndBoth)
{
	/* fi_av(3) all versions, fi_av_insertsvc 1: node is a host or an
	 * address, service an address of the transport, both as text. */
	names.hosts["host"] = "192.0.2.5";
	names.services["echo"] = "7";
	open();
	EXPECT_EQ(1, svc("192.0.2.1", "4711"));
	EXPECT_EQ(1, svc("host", "4711"));
	EXPECT_EQ(1, svc("host", "echo"));
	EXPECT_EQ(2, sym("192.0.2.9", 1, "echo", 2));
	EXPECT_EQ((Texts{ "192.0.2.1:4711", "192.0.2.5:4711", "192.0.2.5:7",
			  "192.0.2.9:7", "192.0.2.9:8" }),
		  all());
	EXPECT_EQ(-FI_EINVAL, svc(nullptr, nullptr));
	EXPECT_EQ(-FI_EINVAL, sym(nullptr, 1, "1", 1));
	EXPECT_EQ(-FI_EINVAL, svc("host", nullptr));
	for (const char *bad : { "0", "65536", "-1", "", "x", "99999999999" })
		EXPECT_EQ(0, svc("192.0.2.1", bad)) << bad;
	for (const char *bad : { "", "nobody", "0.0.0.0", "::" })
		EXPECT_EQ(0, svc(bad, "1")) << bad;
}

TEST_F(AvForm, AddrStrAsNode)
{
	/* fi_av(3) all versions, fi_av_insertsvc 1: node may be an FI_ADDR_STR,
	 * without a service. */
	open();
	EXPECT_EQ(1, svc("fi_sockaddr_in://192.0.2.9:99", nullptr));
	EXPECT_EQ("192.0.2.9:99", at(0));
	EXPECT_EQ(-FI_EINVAL, svc("fi_sockaddr_in://192.0.2.9:99", "99"));
	EXPECT_EQ(0, svc("fi_sockaddr_in://192.0.2.9", nullptr));
	EXPECT_EQ(0, svc("fi_sockaddr_ib://192.0.2.9:99", nullptr));
	/* Not of the vector's format. */
	EXPECT_EQ(0, svc("fi_sockaddr_in6://[2001:db8::1]:9", nullptr));
	EXPECT_EQ(4, sym("fi_sockaddr_in://192.0.2.255:1", 2, nullptr, 2));
	EXPECT_EQ("192.0.3.0:2", at(4));
}

TEST_F(AvForm, AddrStrTakesAnArrayOfStrings)
{
	/* fi_av(3) all versions, fi_av_insert 1: FI_ADDR_STR: the addresses are
	 * an array of pointers to text. */
	const char *s[5] = { "fi_sockaddr_in://192.0.2.1:1",
			     "fi_sockaddr_in6://[fe80::1%3]:2", nullptr,
			     "nonsense", "fi_sockaddr_in://192.0.2.2:1" };
	fi_addr_t a[5];
	char text[96];
	size_t len = sizeof(text);

	open(FI_ADDR_STR);
	EXPECT_EQ(3, fi_av_insert(av, s, 5, a, 0, nullptr));
	EXPECT_EQ((Texts{ "192.0.2.1:1", "[fe80::1%3]:2", "192.0.2.2:1" }),
		  all());
	EXPECT_EQ(FI_ADDR_NOTAVAIL, a[2]);
	EXPECT_EQ(FI_ADDR_NOTAVAIL, a[3]);
	EXPECT_EQ(2u, a[4]);
	ASSERT_EQ(0, fi_av_lookup(av, 1, text, &len));
	EXPECT_STREQ(s[1], text);
	EXPECT_EQ(strlen(s[1]) + 1, len);
	for (size_t room = 0; room < 12; room++) {
		len = room;
		memset(text, '#', sizeof(text));
		ASSERT_EQ(0, fi_av_lookup(av, 0, text, &len));
		EXPECT_EQ(strlen(s[0]) + 1, len);
		EXPECT_EQ(0, memcmp(text, s[0], room));
		EXPECT_EQ('#', text[room]);
	}
}

TEST_F(AvForm, FormatOfTheDomain)
{
	/* fi_av(3) all versions, fi_av_insert 1: addresses are of the format
	 * that the domain's fi_info named. */
	struct sockaddr_in6 six[2] = { in6("2001:db8::1", 1),
				       in6("::ffff:10.0.0.1", 2) };
	struct sockaddr_in four[2] = { in4("10.0.0.1", 1), in4("10.0.0.2", 1) };
	struct sockaddr_in6 got;
	size_t len = sizeof(got);

	open(FI_SOCKADDR_IN);
	EXPECT_EQ(0, fi_av_insert(av, six, 1, nullptr, 0, nullptr));
	four[0].sin_family = AF_UNIX;
	EXPECT_EQ(1, fi_av_insert(av, four, 2, nullptr, 0, nullptr));
	four[0].sin_family = AF_INET;
	close();
	open(FI_SOCKADDR_IN6);
	EXPECT_EQ(2, fi_av_insert(av, six, 2, nullptr, 0, nullptr));
	/* A mapped address that was inserted is returned mapped. */
	ASSERT_EQ(0, fi_av_lookup(av, 1, &got, &len));
	EXPECT_EQ(sizeof(got), len);
	EXPECT_EQ(0, memcmp(&got, &six[1], sizeof(got)));
	memcpy(&got, &four[0], sizeof(four[0]));
	EXPECT_EQ(0, fi_av_insert(av, &got, 1, nullptr, 0, nullptr));
	close();
	open(FI_SOCKADDR);
	EXPECT_EQ(2, fi_av_insert(av, six, 2, nullptr, 0, nullptr));
	EXPECT_EQ(2, fi_av_insert(av, four, 2, nullptr, 0, nullptr));
	EXPECT_EQ((Texts{ "[2001:db8::1]:1", "10.0.0.1:2", "10.0.0.1:1",
			  "10.0.0.2:1" }),
		  all());
}

TEST_F(AvForm, ScopeIds)
{
	/* fi_tandem(7): a scope id is part of a link-local address. */
	struct sockaddr_in6 s[2] = { in6("fe80::1", 1, 2),
				     in6("fe80::1", 1, 3) };

	open(FI_SOCKADDR_IN6);
	EXPECT_EQ(2, fi_av_insert(av, s, 2, nullptr, 0, nullptr));
	EXPECT_EQ(2, sym("fe80::ff%4", 2, "1", 1));
	EXPECT_EQ((Texts{ "[fe80::1%2]:1", "[fe80::1%3]:1", "[fe80::ff%4]:1",
			  "[fe80::100%4]:1" }),
		  all());
}

} // namespace
