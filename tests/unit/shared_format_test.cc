/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * av/shared_format.c: what is believed of the file of a named address vector.
 */
#include <arpa/inet.h>
#include <cstring>
#include <string>

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

extern "C" {
#include "av/shared_format.h"
}

namespace
{

struct tdm_addr addr_of(const char *text)
{
	struct tdm_addr a;

	EXPECT_EQ(0, tdm_addr_from_str(&a, text, strlen(text) + 1)) << text;
	return a;
}

const char *const texts[] = {
	"fi_sockaddr_in://192.0.2.1:1",
	"fi_sockaddr_in://255.255.255.255:65535",
	"fi_sockaddr_in6://[2001:db8::1]:4711",
	"fi_sockaddr_in6://[fe80::1%7]:4711",
};

std::string path_of(unsigned uid, const std::string &domain,
		    const std::string &name)
{
	char path[TDM_SHARED_PATHNAME_BYTES + 1];

	memset(path, '#', sizeof(path));
	if (tdm_shared_pathname(path, uid, domain.c_str(), name.c_str()))
		return "";
	EXPECT_EQ('#', path[TDM_SHARED_PATHNAME_BYTES]);
	return path;
}

TEST(SharedFormat, PathIsOneFilePerVector)
{
	EXPECT_EQ("/dev/shm/tandem-av.0.lo.a", path_of(0, "lo", "a"));
	EXPECT_EQ("/dev/shm/tandem-av.1000.eth0%2E7.My_av-1",
		  path_of(1000, "eth0.7", "My_av-1"));
}

TEST(SharedFormat, PathEscapes)
{
	EXPECT_EQ("/dev/shm/tandem-av.7.lo.%2E%2E%2Fx%25%0A%FF",
		  path_of(7, "lo", "../x%\n\xff"));
	EXPECT_NE(path_of(1, "a", "b%2Ec"), path_of(1, "a", "b.c"));
	EXPECT_NE(path_of(1, "a", "b.c"), path_of(1, "a.b", "c"));
	EXPECT_EQ("", path_of(1, "lo", ""));
}

TEST(SharedFormat, PathFitsOrIsRefused)
{
	size_t longest = 0;

	for (size_t n = 1; n < 400; n++) {
		std::string p = path_of(4294967295u, "lo", std::string(n, 'x'));

		if (!p.empty()) {
			EXPECT_EQ(n, longest + 1) << "without gaps";
			longest = n;
			EXPECT_GE(255u, p.size() - strlen("/dev/shm/"));
			EXPECT_GT(size_t(TDM_SHARED_PATHNAME_BYTES), p.size());
		}
		path_of(0, std::string(n, '.'), "x");
		path_of(0, "x", std::string(n, '.'));
	}
	EXPECT_LT(200u, longest);
}

TEST(SharedFormat, EntriesAreReadAsWritten)
{
	struct tdm_shared_entry e, zero;
	struct tdm_addr b;

	memset(&zero, 0, sizeof(zero));
	EXPECT_EQ(0, tdm_shared_decode(&zero, &b));
	for (const char *text : texts) {
		struct tdm_addr a = addr_of(text);

		tdm_shared_encode(&e, &a);
		ASSERT_EQ(1, tdm_shared_decode(&e, &b)) << text;
		EXPECT_TRUE(tdm_addr_equal(&a, &b)) << text;
	}
}

TEST(SharedFormat, TornAndChangedEntriesAreNone)
{
	/* Any mix of two entries, or of an entry and nothing. */
	struct tdm_shared_entry e[5], mix;
	struct tdm_addr a;

	memset(e, 0, sizeof(e));
	for (size_t i = 0; i < 4; i++) {
		a = addr_of(texts[i]);
		tdm_shared_encode(&e[i], &a);
	}
	for (const auto &from : e) {
		for (const auto &to : e) {
			for (size_t n = 0; n < sizeof(mix); n++) {
				mix = from;
				memcpy(&mix, &to, n);
				int ret = tdm_shared_decode(&mix, &a);

				if (memcmp(&mix, &from, sizeof(mix)) &&
				    memcmp(&mix, &to, sizeof(mix))) {
					EXPECT_EQ(-FI_EIO, ret) << n;
				} else {
					EXPECT_LE(0, ret);
				}
			}
		}
	}
	for (size_t bit = 0; bit < 8 * sizeof(mix); bit++) {
		mix = e[2];
		reinterpret_cast<uint8_t *>(&mix)[bit / 8] ^=
			uint8_t(1 << bit % 8);
		EXPECT_EQ(-FI_EIO, tdm_shared_decode(&mix, &a)) << bit;
	}
}

TEST(SharedFormat, ImpossibleEntriesAreNone)
{
	/* Sums that are right do not make an address. */
	struct tdm_shared_entry e;
	struct tdm_addr a, out;

	for (int i = 0; i < 4; i++) {
		memset(&a, 0, sizeof(a));
		a.u.in.sin_family = AF_INET;
		a.u.in.sin_port = htons(i == 0 ? 0 : 1);
		a.u.in.sin_addr.s_addr = htonl(i == 1 ? 0 : 0xc0000201);
		if (i >= 2) {
			memset(&a, 0, sizeof(a));
			a.u.in6.sin6_family = AF_INET6;
			a.u.in6.sin6_port = htons(1);
			/* Mapped IPv4; a scope that counts for nothing. */
			inet_pton(AF_INET6,
				  i == 2 ? "::ffff:192.0.2.1" : "2001:db8::1",
				  &a.u.in6.sin6_addr);
			a.u.in6.sin6_scope_id = i == 2 ? 0 : 9;
		}
		tdm_shared_encode(&e, &a);
		EXPECT_EQ(-FI_EIO, tdm_shared_decode(&e, &out)) << i;
	}
}

TEST(SharedFormat, HeadsOfAnyBytes)
{
	struct tdm_shared_fixed good, bad;

	tdm_shared_fixed_init(&good, FI_SOCKADDR_IN);
	EXPECT_EQ(0, tdm_shared_fixed_check(&good, TDM_SHARED_FILE_BYTES,
					    FI_SOCKADDR_IN));
	EXPECT_EQ(-FI_EINVAL,
		  tdm_shared_fixed_check(&good, TDM_SHARED_FILE_BYTES,
					 FI_SOCKADDR_IN6));
	for (uint64_t bytes : { uint64_t(0), uint64_t(sizeof(good)),
				uint64_t(TDM_SHARED_FILE_BYTES) - 1,
				uint64_t(TDM_SHARED_FILE_BYTES) + 1 })
		EXPECT_EQ(-FI_EIO,
			  tdm_shared_fixed_check(&good, bytes, FI_SOCKADDR_IN));
	for (size_t bit = 0; bit < 8 * sizeof(bad); bit++) {
		bad = good;
		reinterpret_cast<uint8_t *>(&bad)[bit / 8] ^=
			uint8_t(1 << bit % 8);
		EXPECT_GT(0, tdm_shared_fixed_check(&bad, TDM_SHARED_FILE_BYTES,
						    FI_SOCKADDR_IN))
			<< bit;
	}
}

} // namespace
