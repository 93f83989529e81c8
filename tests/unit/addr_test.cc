/* SPDX-License-Identifier: BSD-2-Clause */
/* av/addr.h: endpoint addresses in all their outside forms. */
#include <arpa/inet.h>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

extern "C" {
#include "av/addr.h"
}

namespace
{

struct sockaddr_in in4(const char *ip, uint16_t port)
{
	struct sockaddr_in sin;

	memset(&sin, 0, sizeof(sin));
	sin.sin_family = AF_INET;
	sin.sin_port = htons(port);
	EXPECT_EQ(1, inet_pton(AF_INET, ip, &sin.sin_addr));
	return sin;
}

struct sockaddr_in6 in6(const char *ip, uint16_t port, uint32_t scope = 0)
{
	struct sockaddr_in6 sin;

	memset(&sin, 0, sizeof(sin));
	sin.sin6_family = AF_INET6;
	sin.sin6_port = htons(port);
	sin.sin6_scope_id = scope;
	EXPECT_EQ(1, inet_pton(AF_INET6, ip, &sin.sin6_addr));
	return sin;
}

struct tdm_addr made4(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = in4(ip, port);
	struct tdm_addr a;

	EXPECT_EQ(0, tdm_addr_from_sockaddr(&a, &sin, sizeof(sin)));
	return a;
}

struct tdm_addr made6(const char *ip, uint16_t port, uint32_t scope = 0)
{
	struct sockaddr_in6 sin = in6(ip, port, scope);
	struct tdm_addr a;

	EXPECT_EQ(0, tdm_addr_from_sockaddr(&a, &sin, sizeof(sin)));
	return a;
}

std::string str(const struct tdm_addr &a)
{
	char buf[TDM_ADDR_STR_BYTES] = "";
	size_t n = tdm_addr_format(&a, buf, sizeof(buf));

	EXPECT_EQ(n, strlen(buf) + 1);
	return buf;
}

int parse(struct tdm_addr *a, const std::string &s)
{
	return tdm_addr_from_str(a, s.c_str(), s.size());
}

TEST(Addr, LengthIsThatOfTheSockaddr)
{
	struct tdm_addr none;

	memset(&none, 0, sizeof(none));
	EXPECT_EQ(0u, tdm_addr_len(&none));
	struct tdm_addr a = made4("10.0.0.1", 5), b = made6("::2", 5);
	EXPECT_EQ(16u, tdm_addr_len(&a));
	EXPECT_EQ(28u, tdm_addr_len(&b));
}

TEST(Addr, ShortOrForeignSockaddrIsRefused)
{
	struct sockaddr_in sin = in4("10.0.0.1", 5);
	struct sockaddr_in6 sin6 = in6("2001:db8::1", 5);
	struct tdm_addr a;

	for (size_t len = 0; len < sizeof(sin); len++)
		EXPECT_EQ(-FI_EINVAL, tdm_addr_from_sockaddr(&a, &sin, len));
	for (size_t len = 0; len < sizeof(sin6); len++)
		EXPECT_EQ(-FI_EINVAL, tdm_addr_from_sockaddr(&a, &sin6, len));
	for (int family : { AF_UNSPEC, AF_UNIX, 0xffff }) {
		sin.sin_family = static_cast<sa_family_t>(family);
		EXPECT_EQ(-FI_EINVAL,
			  tdm_addr_from_sockaddr(&a, &sin, sizeof(sin)));
	}
	EXPECT_EQ(-FI_EINVAL, tdm_addr_from_sockaddr(&a, nullptr, 16));
}

TEST(Addr, WildcardAndPortZeroAreForListenersOnly)
{
	struct sockaddr_in any = in4("0.0.0.0", 5), port = in4("10.0.0.1", 0);
	struct sockaddr_in6 any6 = in6("::", 5);
	struct tdm_addr a;

	EXPECT_EQ(-FI_EINVAL, tdm_addr_from_sockaddr(&a, &any, sizeof(any)));
	EXPECT_EQ(-FI_EINVAL, tdm_addr_from_sockaddr(&a, &port, sizeof(port)));
	EXPECT_EQ(-FI_EINVAL, tdm_addr_from_sockaddr(&a, &any6, sizeof(any6)));
	EXPECT_EQ(0, tdm_addr_from_bind(&a, &any, sizeof(any)));
	EXPECT_EQ(0, tdm_addr_from_bind(&a, &port, sizeof(port)));
	EXPECT_EQ(0, tdm_addr_from_bind(&a, &any6, sizeof(any6)));
}

TEST(Addr, PaddingAndFlowInfoDoNotCount)
{
	struct sockaddr_in a = in4("10.0.0.1", 5), b = a;
	struct sockaddr_in6 c = in6("2001:db8::1", 5), d = c;
	struct tdm_addr x, y;

	memset(b.sin_zero, 0xff, sizeof(b.sin_zero));
	ASSERT_EQ(0, tdm_addr_from_sockaddr(&x, &a, sizeof(a)));
	ASSERT_EQ(0, tdm_addr_from_sockaddr(&y, &b, sizeof(b)));
	EXPECT_EQ(0, memcmp(&x, &y, sizeof(x)));
	d.sin6_flowinfo = 77;
	d.sin6_scope_id = 3; /* not link-local */
	ASSERT_EQ(0, tdm_addr_from_sockaddr(&x, &c, sizeof(c)));
	ASSERT_EQ(0, tdm_addr_from_sockaddr(&y, &d, sizeof(d)));
	EXPECT_TRUE(tdm_addr_equal(&x, &y));
	EXPECT_EQ(tdm_addr_hash(&x), tdm_addr_hash(&y));
}

TEST(Addr, MappedIsTheIpv4Address)
{
	struct tdm_addr a = made6("::ffff:10.1.2.3", 99);
	struct tdm_addr b = made4("10.1.2.3", 99);

	EXPECT_TRUE(tdm_addr_equal(&a, &b));
	EXPECT_EQ(16u, tdm_addr_len(&a));
}

TEST(Addr, ScopeCountsForLinkLocal)
{
	struct tdm_addr a = made6("fe80::1", 9, 2), b = made6("fe80::1", 9, 3);

	EXPECT_FALSE(tdm_addr_equal(&a, &b));
}

TEST(Addr, TextRoundTrip)
{
	EXPECT_EQ("fi_sockaddr_in://10.0.0.1:80", str(made4("10.0.0.1", 80)));
	EXPECT_EQ("fi_sockaddr_in6://[2001:db8::1]:65535",
		  str(made6("2001:db8::1", 65535)));
	for (const struct tdm_addr &a :
	     { made4("255.255.255.254", 1), made6("::1", 443),
	       made6("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 65535),
	       made6("fe80::1", 9, 12) }) {
		struct tdm_addr b;

		ASSERT_EQ(0, parse(&b, str(a))) << str(a);
		EXPECT_TRUE(tdm_addr_equal(&a, &b)) << str(a);
	}
}

TEST(Addr, TextIsCutToItsBuffer)
{
	struct tdm_addr a = made4("10.0.0.1", 80);
	const std::string whole = str(a);

	for (size_t size = 0; size <= whole.size() + 2; size++) {
		std::vector<char> buf(size + 1, '#');

		EXPECT_EQ(whole.size() + 1,
			  tdm_addr_format(&a, buf.data(), size));
		EXPECT_EQ('#', buf[size]) << "wrote behind its buffer";
		if (size) {
			EXPECT_EQ(whole.substr(0, size - 1), buf.data());
		}
	}
	EXPECT_EQ(whole.size() + 1, tdm_addr_format(&a, nullptr, 0));
}

TEST(Addr, BadTextIsRefused)
{
	static const char *const bad[] = {
		"",
		"fi_sockaddr_in://",
		"fi_sockaddr_in://10.0.0.1",
		"fi_sockaddr_in://10.0.0.1:",
		"fi_sockaddr_in://10.0.0.1:0",
		"fi_sockaddr_in://10.0.0.1:65536",
		"fi_sockaddr_in://10.0.0.1:99999999999999999999",
		"fi_sockaddr_in://10.0.0.1:-1",
		"fi_sockaddr_in://10.0.0.1: 5",
		"fi_sockaddr_in://10.0.0.1:5x",
		"fi_sockaddr_in://10.0.0:5",
		"fi_sockaddr_in://10.0.0.256:5",
		"fi_sockaddr_in://localhost:5",
		"fi_sockaddr_in://:5",
		"fi_sockaddr_in://0.0.0.0:5",
		"fi_sockaddr_in://[::1]:5",
		"fi_sockaddr_in6://::1:5",
		"fi_sockaddr_in6://[::1]",
		"fi_sockaddr_in6://[::1:5",
		"fi_sockaddr_in6://::1]:5",
		"fi_sockaddr_in6://[]:5",
		"fi_sockaddr_in6://[::]:5",
		"fi_sockaddr_in6://[:5",
		"fi_sockaddr_in6://]:5",
		"fi_sockaddr_in6://[::1]x:5",
		"fi_sockaddr_ib://1:5",
		"sockaddr_in://10.0.0.1:5",
		"10.0.0.1:5",
	};
	struct tdm_addr a;

	for (const char *s : bad)
		EXPECT_EQ(-FI_EINVAL, parse(&a, s)) << s;
	EXPECT_EQ(-FI_EINVAL, parse(&a, std::string(5000, '1')));
	EXPECT_EQ(-FI_EINVAL, parse(&a, "fi_sockaddr_in://" +
						std::string(4096, '1') + ":5"));
}

TEST(Addr, TextNeedsNoTerminator)
{
	const std::string s = "fi_sockaddr_in://10.0.0.1:801234";
	struct tdm_addr a, b = made4("10.0.0.1", 801);
	std::vector<char> exact(s.begin(), s.begin() + 29);

	ASSERT_EQ(0, tdm_addr_from_str(&a, exact.data(), exact.size()));
	EXPECT_TRUE(tdm_addr_equal(&a, &b)) << str(a);
}

TEST(Addr, ComparesIpAndPort)
{
	struct tdm_addr a = made4("10.0.0.1", 5), b = made4("10.0.0.1", 6);
	struct tdm_addr c = made4("10.0.0.2", 5), d = made6("2001:db8::1", 5);

	EXPECT_FALSE(tdm_addr_equal(&a, &b));
	EXPECT_FALSE(tdm_addr_equal(&a, &c));
	EXPECT_FALSE(tdm_addr_equal(&a, &d));
	EXPECT_TRUE(tdm_addr_same_ip(&a, &b));
	EXPECT_FALSE(tdm_addr_same_ip(&a, &c));
	EXPECT_FALSE(tdm_addr_same_ip(&a, &d));
	EXPECT_EQ(5, tdm_addr_port(&a));
	tdm_addr_set_port(&a, 6);
	EXPECT_TRUE(tdm_addr_equal(&a, &b));
	tdm_addr_set_port(&d, 65535);
	EXPECT_EQ(65535, tdm_addr_port(&d));
}

TEST(Addr, NodeIsNumeric)
{
	struct tdm_addr a;

	ASSERT_EQ(0, tdm_addr_from_node(&a, "10.0.0.1"));
	EXPECT_EQ("fi_sockaddr_in://10.0.0.1:0", str(a));
	ASSERT_EQ(0, tdm_addr_from_node(&a, "fe80::1%7"));
	EXPECT_EQ("fi_sockaddr_in6://[fe80::1%7]:0", str(a));
	ASSERT_EQ(0, tdm_addr_from_node(&a, "::ffff:10.0.0.1"));
	EXPECT_EQ("fi_sockaddr_in://10.0.0.1:0", str(a));
	for (const char *s :
	     { "", "host", "10.0.0", "10.0.0.1 ", "0.0.0.0", "::", "fe80::1%",
	       "fe80::1%eth0", "[::1]", "10.0.0.1:5", "1:2:3:4:5:6:7:8:9" })
		EXPECT_EQ(-FI_EINVAL, tdm_addr_from_node(&a, s)) << s;
	EXPECT_EQ(-FI_EINVAL, tdm_addr_from_node(&a, nullptr));
	EXPECT_EQ(-FI_EINVAL,
		  tdm_addr_from_node(&a, std::string(4096, '1').c_str()));
}

TEST(Addr, StepCarries)
{
	struct tdm_addr a = made4("10.255.255.255", 5);
	struct tdm_addr b = made6("2001:db8::ffff:ffff:ffff:fffe", 5);

	ASSERT_EQ(0, tdm_addr_step(&a, 1));
	EXPECT_EQ("fi_sockaddr_in://11.0.0.0:5", str(a));
	ASSERT_EQ(0, tdm_addr_step(&a, 0xf4ffffff));
	EXPECT_EQ("fi_sockaddr_in://255.255.255.255:5", str(a));
	EXPECT_EQ(-FI_EINVAL, tdm_addr_step(&a, 1));
	EXPECT_EQ(-FI_EINVAL, tdm_addr_step(&a, INT64_MAX));
	EXPECT_EQ("fi_sockaddr_in://255.255.255.255:5", str(a));
	ASSERT_EQ(0, tdm_addr_step(&b, 0));
	ASSERT_EQ(0, tdm_addr_step(&b, 2));
	EXPECT_EQ("fi_sockaddr_in6://[2001:db8:0:1::]:5", str(b));
	ASSERT_EQ(0, tdm_addr_step(&b, INT64_MAX));
	EXPECT_EQ("fi_sockaddr_in6://[2001:db8:0:1:7fff:ffff:ffff:ffff]:5",
		  str(b));
	b = made6("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0", 5);
	EXPECT_EQ(0, tdm_addr_step(&b, 15));
	EXPECT_EQ(-FI_EINVAL, tdm_addr_step(&b, 1));
	b = made6("fe80::ff", 5, 3);
	ASSERT_EQ(0, tdm_addr_step(&b, 1));
	EXPECT_EQ("fi_sockaddr_in6://[fe80::100%3]:5", str(b));
}

TEST(Addr, NameStepKeepsThePadding)
{
	struct {
		const char *name;
		uint64_t n;
		const char *want;
	} cases[] = {
		{ "node009", 1, "node010" },
		{ "node009", 0, "node009" },
		{ "host10", 1, "host11" },
		{ "n9", 1, "n10" },
		{ "n99", 901, "n1000" },
		{ "n0", 12345, "n12345" },
		{ "99", 1, "100" },
		{ "head", 0, "head" },
		{ "n1.x", 0, "n1.x" },
		{ "n18446744073709551615", 1, "n18446744073709551616" },
		{ "n5", UINT64_MAX, "n18446744073709551620" },
	};
	char buf[64];

	for (const auto &c : cases) {
		ASSERT_EQ(0, tdm_addr_name_step(c.name, c.n, buf, sizeof(buf)))
			<< c.name;
		EXPECT_STREQ(c.want, buf);
	}
	EXPECT_EQ(-FI_EINVAL, tdm_addr_name_step("head", 1, buf, sizeof(buf)));
	EXPECT_EQ(-FI_EINVAL, tdm_addr_name_step("n1.x", 1, buf, sizeof(buf)));
	EXPECT_EQ(-FI_EINVAL, tdm_addr_name_step("", 1, buf, sizeof(buf)));
	EXPECT_EQ(0, tdm_addr_name_step("n99", 0, buf, 4));
	EXPECT_EQ(-FI_EINVAL, tdm_addr_name_step("n99", 1, buf, 4));
	EXPECT_EQ(0, tdm_addr_name_step("n99", 1, buf, 5));
	EXPECT_EQ(-FI_EINVAL, tdm_addr_name_step("n99", 0, buf, 3));
}

TEST(Addr, Loopback)
{
	struct tdm_addr a = made4("127.0.0.1", 5), b = made4("127.9.9.9", 5);
	struct tdm_addr c = made6("::1", 5), d = made4("128.0.0.1", 5);
	struct tdm_addr e = made6("::2", 5);

	EXPECT_TRUE(tdm_addr_is_loopback(&a));
	EXPECT_TRUE(tdm_addr_is_loopback(&b));
	EXPECT_TRUE(tdm_addr_is_loopback(&c));
	EXPECT_FALSE(tdm_addr_is_loopback(&d));
	EXPECT_FALSE(tdm_addr_is_loopback(&e));
}

TEST(AddrText, WhatIsBoundMayLeaveThePortOpen)
{
	/* fi_tandem(7), ADDRESSES: port 0 until the endpoint is enabled; also
	 * as text. Peers are never at port 0. */
	static const char *const open_ports[] = {
		"fi_sockaddr_in://127.0.0.1:0",
		"fi_sockaddr_in://0.0.0.0:17",
		"fi_sockaddr_in6://[::1]:0",
		"fi_sockaddr_in6://[::]:0",
	};
	struct tdm_addr a;

	for (const char *text : open_ports) {
		size_t len = strlen(text) + 1;
		char again[TDM_ADDR_STR_BYTES];

		ASSERT_EQ(0, tdm_addr_from_bind_str(&a, text, len)) << text;
		EXPECT_EQ(len, tdm_addr_format(&a, again, sizeof(again)));
		EXPECT_STREQ(text, again);
		EXPECT_EQ(-FI_EINVAL, tdm_addr_from_str(&a, text, len)) << text;
	}
	for (const char *text :
	     { "fi_sockaddr_in://127.0.0.1:-1",
	       "fi_sockaddr_in://127.0.0.1:", "fi_sockaddr_in://127.0.0.1" })
		EXPECT_EQ(-FI_EINVAL,
			  tdm_addr_from_bind_str(&a, text, strlen(text) + 1));
}

} // namespace
