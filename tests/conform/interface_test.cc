/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interfaces that fi_getinfo(3) offers, their order, and those that hints and
 * FI_TANDEM_IFACE leave. A host with several networks is a network namespace
 * of a child; where that is not allowed, these tests say so.
 *
 * Spec: fi_tandem(7), ADDRESSES.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>

#include "tests/harness/fixture.h"
#include "tests/harness/raw.h"

extern "C" {
#include "tests/harness/child.h"
}

namespace
{

/* ---- a host with several networks ---------------------------------------- */

/* d1 is where a default route may lead; the cable of dead0 is not plugged in. */
const char links[] = "link set lo up\n"
		     "link add d0 type veth peer name d0p\n"
		     "link add d1 type veth peer name d1p\n"
		     "link add docker0 type veth peer name dockerp\n"
		     "link add six0 type veth peer name six0p\n"
		     "link add dead0 type veth peer name dead0p\n"
		     "link set d0p up\n"
		     "link set d1p up\n"
		     "link set dockerp up\n"
		     "link set six0p up\n"
		     "link set d0 up\n"
		     "link set d1 up\n"
		     "link set docker0 up\n"
		     "link set six0 up\n"
		     "link set dead0 up\n"
		     "link set d0 mtu 1400 address 02:00:5e:10:00:01\n"
		     "address add fd77::1/64 dev d1 nodad\n"
		     "address add fd78::1/64 dev six0 nodad\n";
const char ipv4[] = "address add 10.77.91.1/24 dev d0\n"
		    "address add 10.77.92.1/24 dev d1\n"
		    "address add 10.77.92.7/24 dev d1\n"
		    "address add 172.17.0.1/16 dev docker0\n"
		    "address add 10.77.93.1/24 dev dead0\n";
const char route[] = "route add default via 10.77.92.2\n";

int write_file(const char *path, const std::string &text)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return -1;
	fputs(text.c_str(), f);
	return fclose(f);
}

/* A network namespace for this process. */
int leave_network()
{
	uid_t uid = geteuid();

	if (!uid)
		return unshare(CLONE_NEWNET);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return -1;
	return write_file("/proc/self/uid_map",
			  "0 " + std::to_string(uid) + " 1");
}

int run_ip(const std::string &commands)
{
	FILE *ip = popen("ip -batch - >/dev/null 2>&1", "w");

	if (!ip)
		return -1;
	fputs(commands.c_str(), ip);
	return pclose(ip);
}

int is_running(const char *name)
{
	struct ifaddrs *list, *i;
	int yes = 0;

	if (getifaddrs(&list))
		return 0;
	for (i = list; i; i = i->ifa_next)
		yes |= !strcmp(i->ifa_name, name) &&
		       (i->ifa_flags & IFF_RUNNING);
	freeifaddrs(list);
	return yes;
}

/* The kernel tells the state of links a little later. */
int links_settle()
{
	uint64_t end = tdt_now_ms() + tdt_deadline_ms();

	while (!is_running("d0") || !is_running("d1") ||
	       !is_running("docker0") || !is_running("six0") ||
	       is_running("dead0")) {
		if (tdt_now_ms() > end)
			return -1;
		poll(nullptr, 0, 1);
	}
	return 0;
}

/* ---- a question ---------------------------------------------------------- */

/* The request of a test, as words KEY=VALUE. */
struct Query {
	std::string node, service;
	uint64_t flags = 0;
	bool ipv4 = true, route = false, nic = false;
	struct fi_info *hints = fi_allocinfo();

	explicit Query(const char *words)
	{
		std::istringstream in(words ? words : "");
		std::string word;

		hints->fabric_attr->prov_name = strdup(tdt_prov_name());
		while (in >> word)
			read(word.substr(0, word.find('=')),
			     word.substr(word.find('=') + 1));
	}

	~Query()
	{
		fi_freeinfo(hints);
	}

	void address(const std::string &text, void **to, size_t *len)
	{
		auto *a = static_cast<struct sockaddr_in *>(
			calloc(1, sizeof(struct sockaddr_in)));

		a->sin_family = AF_INET;
		a->sin_port = htons(4711);
		inet_pton(AF_INET, text.c_str(), &a->sin_addr);
		*to = a;
		*len = sizeof(*a);
	}

	void read(const std::string &key, const std::string &value)
	{
		if (key == "source")
			node = value, flags |= FI_SOURCE;
		else if (key == "node")
			node = value, service = "4711";
		else if (key == "port")
			service = value, flags |= FI_SOURCE;
		else if (key == "src")
			address(value, &hints->src_addr, &hints->src_addrlen);
		else if (key == "dest")
			address(value, &hints->dest_addr, &hints->dest_addrlen);
		else if (key == "domain")
			hints->domain_attr->name = strdup(value.c_str());
		else if (key == "fabric")
			hints->fabric_attr->name = strdup(value.c_str());
		else if (key == "type")
			hints->ep_attr->type = FI_EP_DGRAM;
		else if (key == "format")
			hints->addr_format =
				static_cast<uint32_t>(std::stoul(value));
		else if (key == "route")
			route = true;
		else if (key == "ipv6-only")
			ipv4 = false;
		else if (key == "nic")
			nic = true;
	}
};

/* The addresses as text, whatever their format is. */
std::string address_of(const struct fi_info *i)
{
	char buf[INET6_ADDRSTRLEN] = "?";
	auto *sin = static_cast<struct sockaddr_in *>(i->src_addr);
	auto *sin6 = static_cast<struct sockaddr_in6 *>(i->src_addr);

	if (i->addr_format == FI_ADDR_STR)
		return static_cast<char *>(i->src_addr);
	if (sin->sin_family == AF_INET)
		inet_ntop(AF_INET, &sin->sin_addr, buf, sizeof(buf));
	else
		inet_ntop(AF_INET6, &sin6->sin6_addr, buf, sizeof(buf));
	return buf + (sin->sin_port ?
			      ":" + std::to_string(ntohs(sin->sin_port)) :
			      std::string());
}

/* The name, driver and link of an entry, as fi_nic(3) has them. */
std::string nic_of(const struct fi_info *i)
{
	if (!i->nic)
		return "none";
	return std::string(i->nic->device_attr->name) + "," +
	       i->nic->device_attr->driver + "," + i->nic->link_attr->address +
	       "," + std::to_string(i->nic->link_attr->mtu) + "," +
	       i->nic->link_attr->network_type + "," +
	       std::to_string(i->nic->link_attr->state == FI_LINK_UP) + "," +
	       std::to_string(i->nic->bus_attr->bus_type == FI_BUS_UNKNOWN);
}

/* Ask in a namespace of our own and tell "name=address ..." of the entries. */
TDT_ROLE(offered)
{
	Query q(arg);
	struct fi_info *info = nullptr;
	std::string text;
	int ret;

	if (leave_network()) {
		text = "skip: no network namespace may be made here";
	} else if (run_ip(links)) {
		text = "skip: no ip(8), or no veth(4) interfaces";
	} else if ((q.ipv4 && run_ip(ipv4)) || (q.route && run_ip(route)) ||
		   links_settle()) {
		text = "the interfaces cannot be set up";
	} else {
		ret = fi_getinfo(
			TDT_API, q.node.empty() ? nullptr : q.node.c_str(),
			q.service.empty() ? nullptr : q.service.c_str(),
			q.flags, q.hints, &info);
		if (ret)
			text = fi_strerror(-ret);
		for (struct fi_info *i = info; i; i = i->next)
			text += (text.empty() ? "" : " ") +
				std::string(i->domain_attr->name) + "=" +
				(q.nic ? nic_of(i) : address_of(i));
		fi_freeinfo(info);
	}
	return tdt_tell(fd, text.data(), text.size());
}

std::string offered_to(const char *words, const char *iface = nullptr)
{
	struct tdt_child child = { 0, -1 };
	char text[2048];

	if (iface)
		setenv("FI_TANDEM_IFACE", iface, 1);
	int ret = tdt_child_start(&child, "offered", words);
	unsetenv("FI_TANDEM_IFACE");
	if (ret)
		return "no child";
	ssize_t n = tdt_hear(child.fd, text, sizeof(text));
	EXPECT_EQ(0, tdt_child_wait(&child));
	return n > 0 ? std::string(text, static_cast<size_t>(n)) : "no answer";
}

#define EXPECT_OFFER(want, ...)                                                \
	do {                                                                   \
		std::string got = offered_to(__VA_ARGS__);                     \
                                                                               \
		if (!got.compare(0, 6, "skip: "))                              \
			GTEST_SKIP() << got.substr(6);                         \
		EXPECT_EQ(want, got);                                          \
	} while (0)

TEST(Interfaces, OnePerInterfaceAndFamilyBestFirst)
{
	/* "one entry for each network interface and address family ... that can
	 * be used, the best first. Interfaces that are down or have no carrier
	 * are left out." Consumers that walk the list find lo at its end. */
	ONLY_TANDEM();
	EXPECT_OFFER("d0=10.77.91.1 d1=10.77.92.1 d1=fd77::1 six0=fd78::1 "
		     "docker0=172.17.0.1 lo=127.0.0.1 lo=::1",
		     "");
	EXPECT_OFFER("d1=10.77.92.1 d1=fd77::1 d0=10.77.91.1 six0=fd78::1 "
		     "docker0=172.17.0.1 lo=127.0.0.1 lo=::1",
		     "route=1");
	EXPECT_OFFER("d1=fd77::1 six0=fd78::1 lo=127.0.0.1 lo=::1",
		     "ipv6-only=1");
	EXPECT_OFFER("d0=10.77.91.1 d1=10.77.92.1 d1=fd77::1 six0=fd78::1 "
		     "docker0=172.17.0.1 lo=127.0.0.1 lo=::1",
		     "type=dgram");
}

TEST(Interfaces, SourceLeavesItsInterface)
{
	/* "node with FI_SOURCE, or src_addr: the entry with that address
	 * remains. An explicit address is also taken of an interface that has
	 * no carrier." */
	ONLY_TANDEM();
	EXPECT_OFFER("d1=10.77.92.7", "source=10.77.92.7 route=1");
	EXPECT_OFFER("d0=10.77.91.1:4711", "src=10.77.91.1");
	EXPECT_OFFER("dead0=10.77.93.1", "source=10.77.93.1");
	EXPECT_OFFER("lo=127.0.0.5", "source=127.0.0.5");
	EXPECT_OFFER("No data available", "source=10.77.94.1");
	/* The wildcard is an address of all; its port is that of all. */
	EXPECT_OFFER("d0=10.77.91.1:99 d1=10.77.92.1:99 d1=fd77::1:99 "
		     "six0=fd78::1:99 docker0=172.17.0.1:99 lo=127.0.0.1:99 "
		     "lo=::1:99",
		     "port=99");
}

TEST(Interfaces, DestinationPutsItsInterfaceFirst)
{
	/* Order 1: "the address from which the destination would be reached",
	 * and only the family of a destination remains. */
	ONLY_TANDEM();
	EXPECT_OFFER("d1=10.77.92.1 d0=10.77.91.1 docker0=172.17.0.1 "
		     "lo=127.0.0.1",
		     "node=10.77.92.9");
	EXPECT_OFFER("docker0=172.17.0.1 d1=10.77.92.1 d0=10.77.91.1 "
		     "lo=127.0.0.1",
		     "dest=172.17.0.9 route=1");
	EXPECT_OFFER("six0=fd78::1 d1=fd77::1 lo=::1", "node=fd78::9");
}

TEST(Interfaces, NamesLeaveTheirs)
{
	/* "domain_attr.name: an interface; ... fabric_attr.name: a network". */
	ONLY_TANDEM();
	EXPECT_OFFER("d1=10.77.92.1 d1=fd77::1", "domain=d1");
	EXPECT_OFFER("No data available", "domain=dead0");
	EXPECT_OFFER("d0=10.77.91.1", "fabric=10.77.91.0/24");
	EXPECT_OFFER("lo=127.0.0.1", "fabric=127.0.0.0/8 route=1");
	EXPECT_OFFER("No data available", "fabric=10.77.92.0/24 domain=d0");
}

TEST(Interfaces, FormatLeavesItsFamily)
{
	/* "In an address format for both families ... an interface has one
	 * entry, of the better of its families." */
	auto format = [](uint32_t f) {
		return "format=" + std::to_string(f);
	};

	ONLY_TANDEM();
	EXPECT_OFFER("d0=10.77.91.1 d1=10.77.92.1 docker0=172.17.0.1 "
		     "lo=127.0.0.1",
		     format(FI_SOCKADDR_IN).c_str());
	EXPECT_OFFER("d1=fd77::1 six0=fd78::1 lo=::1",
		     format(FI_SOCKADDR_IN6).c_str());
	EXPECT_OFFER("d0=10.77.91.1 d1=10.77.92.1 six0=fd78::1 "
		     "docker0=172.17.0.1 lo=127.0.0.1",
		     format(FI_SOCKADDR).c_str());
	EXPECT_OFFER("d0=fi_sockaddr_in://10.77.91.1:0 "
		     "d1=fi_sockaddr_in://10.77.92.1:0 "
		     "six0=fi_sockaddr_in6://[fd78::1]:0 "
		     "docker0=fi_sockaddr_in://172.17.0.1:0 "
		     "lo=fi_sockaddr_in://127.0.0.1:0",
		     format(FI_ADDR_STR).c_str());
}

TEST(Interfaces, EnvironmentListsThem)
{
	/* FI_TANDEM_IFACE: "a list with commas, the preferred one first". */
	ONLY_TANDEM();
	EXPECT_OFFER("docker0=172.17.0.1", "", "docker0");
	EXPECT_OFFER("lo=127.0.0.1 lo=::1 d0=10.77.91.1", "", "lo,D0");
	EXPECT_OFFER("d0=10.77.91.1 d1=10.77.92.1", "", "10.0.0.0/8");
	EXPECT_OFFER("d1=fd77::1 six0=fd78::1", "", "fd00::/8");
	EXPECT_OFFER("d1=10.77.92.1 d1=fd77::1 d0=10.77.91.1 six0=fd78::1",
		     "route=1", "^docker0,lo");
	EXPECT_OFFER("d0=10.77.91.1 d1=10.77.92.1 d1=fd77::1", "", "d[0-9]");
	EXPECT_OFFER("No data available", "", "10.78.0.0/16");
	/* "domain_attr.name of the hints goes before this list." */
	EXPECT_OFFER("d0=10.77.91.1", "domain=d0", "d1");
	/* The destination and the list: order 1, then 2. */
	EXPECT_OFFER("d0=10.77.91.1 lo=127.0.0.1", "node=10.77.91.9", "lo,d0");
}

TEST(Interfaces, NicShowsTheInterface)
{
	/* "nic of an entry, fi_nic(3), describes its interface, unless that is
	 * loopback". */
	ONLY_TANDEM();
	EXPECT_OFFER("d0=d0,veth,02:00:5e:10:00:01,1400,Ethernet,1,1",
		     "domain=d0 nic=1");
	EXPECT_OFFER("lo=none lo=none", "domain=lo nic=1");
}

/* ---- on this host -------------------------------------------------------- */

using Offers = Raw;

TEST_F(Offers, DifferAndCanAllBeOpened)
{
	/* fi_getinfo(3) 2.1, DESCRIPTION 1: the list is of endpoints that can
	 * be opened; an application that chooses tells entries apart by their
	 * domain and address format. */
	std::set<std::string> seen;
	struct fi_info *all;

	ONLY_TANDEM();
	for (uint32_t format :
	     { uint32_t(FI_FORMAT_UNSPEC), uint32_t(FI_SOCKADDR),
	       uint32_t(FI_ADDR_STR) }) {
		renew();
		seen.clear();
		hints->addr_format = format;
		ASSERT_EQ(0, get());
		all = info;
		for (; info; info = info->next) {
			EXPECT_TRUE(
				seen.insert(info->domain_attr->name +
					    std::to_string(info->addr_format))
					.second)
				<< info->domain_attr->name;
			ASSERT_NO_FATAL_FAILURE(open_domain());
			struct fid_ep *ep = endpoint();

			ASSERT_NE(nullptr, ep);
			ASSERT_EQ(0, fi_ep_bind(ep, &av()->fid, 0));
			ASSERT_EQ(0, fi_ep_bind(ep, &cq()->fid,
						FI_SEND | FI_RECV));
			EXPECT_EQ(0, fi_enable(ep));
			close_all();
		}
		EXPECT_NE(nullptr, all->fabric_attr->name);
		info = all;
	}
}

TEST_F(Offers, OpenObjectsLeaveTheirs)
{
	/* "An open domain in domain_attr.domain of the hints stands for its
	 * interface and its address format, and an open fabric ... for its
	 * network"; "An entry refers to the fabric and the domain of its names
	 * that were opened first." */
	ONLY_TANDEM();
	hints->domain_attr->name = strdup("lo");
	hints->addr_format = FI_SOCKADDR_IN;
	ASSERT_EQ(0, get());
	ASSERT_NO_FATAL_FAILURE(open_domain());
	renew();
	hints->domain_attr->domain = domain;
	ASSERT_EQ(0, get());
	EXPECT_STREQ("lo", info->domain_attr->name);
	EXPECT_EQ(uint32_t(FI_SOCKADDR_IN), info->addr_format);
	EXPECT_EQ(nullptr, info->next);
	renew();
	hints->fabric_attr->fabric = fabric;
	ASSERT_EQ(0, get());
	EXPECT_STREQ("127.0.0.0/8", info->fabric_attr->name);
	EXPECT_EQ(nullptr, info->next);
	hints->fabric_attr->name = strdup("10.99.99.0/24");
	EXPECT_EQ(-FI_ENODATA, get());
	renew();
	ASSERT_EQ(0, get());
	for (struct fi_info *i = info; i; i = i->next) {
		bool same = i->addr_format == FI_SOCKADDR_IN &&
			    !strcmp(i->domain_attr->name, "lo");

		EXPECT_EQ(same ? domain : nullptr, i->domain_attr->domain);
		EXPECT_EQ(same ? fabric : nullptr, i->fabric_attr->fabric);
	}
}

} // namespace
