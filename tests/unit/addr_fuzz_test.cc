/* SPDX-License-Identifier: BSD-2-Clause */
/* tests/fuzz/addr_fuzz.c without libFuzzer. */
#include <arpa/inet.h>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/mutate.h"

namespace
{

std::string raw(const char *ip, uint32_t scope)
{
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	memset(&six, 0, sizeof(six));
	memset(&four, 0, sizeof(four));
	six.sin6_family = AF_INET6;
	six.sin6_scope_id = scope;
	six.sin6_port = four.sin_port = htons(4711);
	four.sin_family = AF_INET;
	if (inet_pton(AF_INET, ip, &four.sin_addr) == 1)
		return std::string(1, 0) +
		       std::string(reinterpret_cast<char *>(&four),
				   sizeof(four));
	EXPECT_EQ(1, inet_pton(AF_INET6, ip, &six.sin6_addr)) << ip;
	return std::string(1, 0) +
	       std::string(reinterpret_cast<char *>(&six), sizeof(six));
}

TEST(AddrFuzz, KeepsItsPromisesForAnyBytes)
{
	/* A broken promise aborts. */
	const std::vector<std::string> seeds = {
		raw("192.0.2.1", 0),
		raw("2001:db8::1", 0),
		raw("::ffff:10.0.0.1", 0),
		raw("fe80::1", 3),
		raw("::", 0),
		"\001fi_sockaddr_in://192.0.2.1:4711",
		"\001fi_sockaddr_in6://[fe80::1%3]:65535",
		"\001fi_sockaddr_in6://[ffff:ffff:ffff:ffff:ffff:ffff:"
		"255.255.255.255%2147483647]:65535",
		"\002255.255.255.255",
		"\002ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%12",
		"\002node009",
		"\00299999999999999999999",
		"\0020xffffffffffffffff",
	};

	mutate(tdt_fuzz_addr, seeds);
}

} // namespace
