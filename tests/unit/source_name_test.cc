/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host names that fi_getinfo(3) gets with FI_SOURCE: fi_tandem(7), ADDRESSES,
 * warns of one that stands for a loopback address. The resolver is ours, the
 * interfaces are the host's.
 */
#include <cstring>
#include <map>
#include <string>

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <gtest/gtest.h>

#include "base/env.h"
#include "tests/harness/log.h"

extern "C" {
#include "base/os.h"
#include "tcp/getinfo.h"
}

namespace
{

const std::map<std::string, std::string> hosts = {
	{ "myhost", "127.0.1.1" },
	{ "sixth", "::1" },
	{ "localhost", "127.0.0.1" },
	{ "ip6-loopback", "::1" },
};

int resolve(const char *node, const char *service, const struct addrinfo *hints,
	    struct addrinfo **list)
{
	auto h = node ? hosts.find(node) : hosts.end();

	if (h == hosts.end())
		return tdm_os_system.getaddrinfo(node, service, hints, list);
	if (hints && hints->ai_flags & AI_NUMERICHOST)
		return EAI_NONAME;
	return tdm_os_system.getaddrinfo(h->second.c_str(), service, hints,
					 list);
}

/* Has this host an interface that others reach? */
bool has_network()
{
	struct ifaddrs *list, *i;
	bool yes = false;

	if (getifaddrs(&list))
		return false;
	for (i = list; i; i = i->ifa_next)
		yes |= i->ifa_addr && i->ifa_flags & IFF_UP &&
		       i->ifa_flags & IFF_RUNNING &&
		       !(i->ifa_flags & IFF_LOOPBACK) &&
		       (i->ifa_addr->sa_family == AF_INET ||
			i->ifa_addr->sa_family == AF_INET6);
	freeifaddrs(list);
	return yes;
}

class SourceName : public testing::Test
{
protected:
	struct tdm_env saved = tdm_env;

	void SetUp() override
	{
		tdm_env.iface = nullptr;
		tdm_os.getaddrinfo = resolve;
		tdt_log_reset();
		tdt_log_expect("which no other host reaches");
	}

	void TearDown() override
	{
		tdm_os.getaddrinfo = tdm_os_system.getaddrinfo;
		tdm_env = saved;
		tdt_log_reset();
	}

	/* Warnings by fi_getinfo() for @node, which must succeed. */
	size_t warned(const char *node, uint64_t flags = FI_SOURCE,
		      const char *name = nullptr)
	{
		struct fi_info *hints = fi_allocinfo(), *info = nullptr;
		size_t before = tdt_log_count("");

		if (name)
			hints->domain_attr->name = strdup(name);
		EXPECT_EQ(0, tdm_getinfo(FI_VERSION(2, 1), node, "4711", flags,
					 hints, &info))
			<< node;
		fi_freeinfo(hints);
		fi_freeinfo(info);
		return tdt_log_count("") - before;
	}
};

TEST_F(SourceName, ThatStandsForLoopbackIsWarnedOf)
{
	const size_t told = has_network();

	EXPECT_EQ(told, warned("myhost"));
	EXPECT_EQ(told, tdt_log_count("myhost stands for 127.0.1.1"));
	EXPECT_EQ(0u, warned("myhost")) << "twice";
	EXPECT_EQ(told, warned("sixth"));
	EXPECT_EQ(told, tdt_log_count("sixth stands for "));
}

TEST_F(SourceName, ThatMeansTheHostItselfIsNot)
{
	for (auto node : { "localhost", "ip6-loopback", "127.0.0.1",
			   "127.0.1.1", "127.1", "::1" })
		EXPECT_EQ(0u, warned(node)) << node;
	/* The domain hint asks for loopback. */
	EXPECT_EQ(0u, warned("myhost", FI_SOURCE, "lo"));
	/* A destination on this host. */
	EXPECT_EQ(0u, warned("myhost", 0));
}

} // namespace
