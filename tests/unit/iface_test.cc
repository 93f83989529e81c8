/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interfaces that a list names, and their ranking, over tables of
 * interfaces: fi_tandem(7), ADDRESSES and FI_TANDEM_IFACE. Nothing here asks
 * the system.
 */
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

extern "C" {
#include "base/iflist.h"
#include "tcp/iface.h"
}

namespace
{

constexpr unsigned UP = IFF_UP | IFF_RUNNING;
constexpr uint64_t GBIT = 1000000000;

struct tdm_iface iface(const char *name, const char *ip, unsigned bits = 24,
		       uint64_t gbit = 0, const char *driver = "")
{
	struct tdm_iface i;

	memset(&i, 0, sizeof(i));
	strcpy(i.name, name);
	strcpy(i.driver, driver);
	EXPECT_EQ(0, tdm_addr_from_node(&i.ip, ip));
	i.bits = bits;
	i.flags = UP | (strcmp(name, "lo") ? 0 : IFF_LOOPBACK);
	i.speed_bps = gbit * GBIT;
	return i;
}

struct tdm_iface outside(struct tdm_iface i, int worth = 2)
{
	i.outside = worth;
	return i;
}

using Table = std::vector<struct tdm_iface>;

/* "name/family" of all, in their order. */
std::string names(const Table &t)
{
	std::string text;

	for (auto &i : t)
		text += std::string(text.empty() ? "" : " ") + i.name +
			(i.ip.u.sa.sa_family == AF_INET ? "/4" : "/6");
	return text;
}

std::string sorted(Table t)
{
	std::vector<std::string> seen;

	for (auto &i : t) {
		auto at = std::find(seen.begin(), seen.end(), i.name);

		i.order = static_cast<unsigned>(at - seen.begin());
		if (at == seen.end())
			seen.push_back(i.name);
	}
	tdm_iface_find_gateways(t.data(), t.size());
	tdm_iface_sort(t.data(), t.size());
	return names(t);
}

TEST(Iface, FasterLinksAreBetter)
{
	/* fi_tandem(7), ADDRESSES, order 4: "the faster first ... A speed that
	 * is not known is the lowest". */
	EXPECT_EQ("ib0/4 eth1/4 eth0/4 eth2/4",
		  sorted({ iface("eth0", "10.0.0.1", 24, 1),
			   iface("eth1", "10.1.0.1", 24, 10),
			   iface("eth2", "10.2.0.1"),
			   iface("ib0", "10.3.0.1", 24, 100) }));
}

TEST(Iface, DefaultRouteDecidesBetweenEqualSpeeds)
{
	EXPECT_EQ("eth1/4 eth0/4",
		  sorted({ iface("eth0", "10.0.0.1", 24, 10),
			   outside(iface("eth1", "10.1.0.1", 24, 10)) }));
	EXPECT_EQ("eth1/4 eth0/4",
		  sorted({ iface("eth0", "10.0.0.1"),
			   outside(iface("eth1", "10.1.0.1")) }))
		<< "both not known";
	EXPECT_EQ("fast0/4 mgmt0/4",
		  sorted({ outside(iface("mgmt0", "10.0.0.1", 24, 1)),
			   iface("fast0", "10.1.0.1", 24, 100) }))
		<< "speed goes first";
}

TEST(Iface, DefaultRouteOfUnknownSpeedGoesFirst)
{
	/* "if it is that of the interface by which packets leave the host, it
	 * is the highest". */
	EXPECT_EQ("eth1/4 eth0/4 eth2/4",
		  sorted({ iface("eth0", "10.0.0.1", 24, 100),
			   outside(iface("eth1", "10.1.0.1")),
			   iface("eth2", "10.2.0.1") }));
}

TEST(Iface, KindsGoBeforeSpeeds)
{
	/* ADDRESSES, order 3. */
	EXPECT_EQ("eth0/4 bond0/4 wg0/4 br0/4 docker0/4 virbr0/4 lo/4 lo/6 "
		  "eth0/6",
		  sorted({ iface("lo", "127.0.0.1", 8), iface("lo", "::1", 128),
			   iface("docker0", "172.17.0.1", 16, 10, "bridge"),
			   iface("virbr0", "192.168.122.1", 24, 0, "bridge"),
			   iface("wg0", "10.9.0.1", 24, 1, "wireguard"),
			   iface("br0", "10.8.0.1", 24, 0, "bridge"),
			   iface("eth0", "fe80::1%2", 64, 10, "e1000"),
			   iface("eth0", "10.0.0.1", 24, 10, "e1000"),
			   iface("bond0", "10.1.0.1", 24, 0, "bonding") }));
}

TEST(Iface, DefaultRouteLiftsVirtualInterfaces)
{
	/* "and any by which packets leave the host": a container has nothing
	 * but a veth, a host with virtual machines nothing but a bridge. */
	EXPECT_EQ(
		"br0/4 docker0/4",
		sorted({ iface("docker0", "172.17.0.1", 16, 0, "bridge"),
			 outside(iface("br0", "10.0.0.1", 24, 0, "bridge")) }));
	EXPECT_EQ(
		"eth0/4 eth0/6 br-1f/4",
		sorted({ iface("br-1f", "172.18.0.1", 16, 10, "bridge"),
			 iface("eth0", "fd00::1", 64, 10, "veth"),
			 outside(iface("eth0", "10.0.0.2", 24, 10, "veth")) }))
		<< "both families of it";
}

TEST(Iface, PointToPointIsVirtual)
{
	struct tdm_iface tun = iface("tun0", "10.9.0.1", 32, 100);

	tun.flags |= IFF_POINTOPOINT;
	EXPECT_EQ("eth0/4 tun0/4",
		  sorted({ tun, iface("eth0", "10.0.0.1", 24, 1) }));
}

TEST(Iface, ManagedInterfacesAreKnownByName)
{
	for (const char *name :
	     { "docker0", "docker_gwbridge", "br-0123456789ab", "virbr0",
	       "cni0", "veth12ab", "cali1", "lxdbr0", "podman1", "vboxnet0" }) {
		struct tdm_iface i = iface(name, "10.0.0.1");

		EXPECT_EQ(TDM_IFACE_SAME, tdm_iface_kind(&i)) << name;
	}
	for (const char *name : { "eth0", "enp3s0", "ib0", "hsn0", "wlan0",
				  "bond0", "eth0.5", "team0", "br-lan" }) {
		struct tdm_iface i = iface(name, "10.0.0.1");

		EXPECT_EQ(TDM_IFACE_REAL, tdm_iface_kind(&i)) << name;
	}
}

TEST(Iface, LoopbackWithARoutedAddressIsReal)
{
	/* Where routing protocols run on hosts, the address of the host is on
	 * the loopback interface. */
	struct tdm_iface i = outside(iface("lo", "10.255.0.1", 32));

	EXPECT_EQ(TDM_IFACE_REAL, tdm_iface_kind(&i));
	i.outside = 0;
	EXPECT_EQ(TDM_IFACE_LOOPBACK, tdm_iface_kind(&i));
}

TEST(Iface, DestinationAndPlaceGoFirst)
{
	Table t = { iface("eth0", "10.0.0.1", 24, 100),
		    iface("lo", "127.0.0.1", 8) };

	t[1].via = 1;
	EXPECT_EQ("lo/4 eth0/4", sorted(t));
	t[1].via = 0;
	t[0].place = 2;
	t[1].place = 1;
	EXPECT_EQ("lo/4 eth0/4", sorted(t));
}

TEST(Iface, OneOrderWhateverTheKernelListsFirst)
{
	/* Every permutation of the table gives the same order: it is total. */
	Table t = { iface("a", "10.0.0.1", 24, 1),
		    iface("b", "10.1.0.1"),
		    outside(iface("c", "10.2.0.1", 24, 10)),
		    iface("d", "10.3.0.1", 24, 100),
		    iface("docker0", "172.17.0.1", 16, 10, "bridge"),
		    iface("lo", "127.0.0.1", 8) };
	std::vector<int> turn = { 0, 1, 2, 3, 4, 5 };

	tdm_iface_find_gateways(t.data(), t.size());
	do {
		Table other;

		for (int k : turn)
			other.push_back(t[static_cast<size_t>(k)]);
		tdm_iface_sort(other.data(), other.size());
		ASSERT_EQ("d/4 c/4 a/4 b/4 docker0/4 lo/4", names(other));
	} while (std::next_permutation(turn.begin(), turn.end()));
}

TEST(Iface, NoCarrierNoLink)
{
	struct tdm_iface i = iface("eth0", "10.0.0.1");

	EXPECT_TRUE(tdm_iface_has_carrier(&i));
	i.flags = IFF_UP;
	EXPECT_FALSE(tdm_iface_has_carrier(&i));
	i.flags = IFF_UP | IFF_LOOPBACK;
	EXPECT_TRUE(tdm_iface_has_carrier(&i));
	i.flags = IFF_RUNNING;
	EXPECT_FALSE(tdm_iface_has_carrier(&i));
}

struct List {
	const char *list, *name, *ip;
	unsigned place;
};

TEST(Iface, PlaceInAList)
{
	/* fi_tandem(7), FI_TANDEM_IFACE. */
	static const List lists[] = {
		{ "eth0", "eth0", "10.0.0.1", 1 },
		{ "eth0", "eth01", "10.0.0.1", 0 },
		{ "ETH0", "eth0", "10.0.0.1", 1 },
		{ "eth1,eth0", "eth0", "10.0.0.1", 2 },
		{ " eth1 , eth0 ", "eth0", "10.0.0.1", 2 },
		{ "ib*", "ib1", "10.0.0.1", 1 },
		{ "ib*", "eth0", "10.0.0.1", 0 },
		{ "10.0.0.0/8", "eth0", "10.255.0.1", 1 },
		{ "10.0.0.0/8", "eth0", "11.0.0.1", 0 },
		{ "10.128.0.0/9", "eth0", "10.127.0.1", 0 },
		{ "10.128.0.0/9", "eth0", "10.128.0.1", 1 },
		{ "0.0.0.0/0", "eth0", "10.0.0.1", 1 },
		{ "0.0.0.0/0", "eth0", "fd00::1", 0 },
		{ "10.0.0.1", "eth0", "10.0.0.1", 1 },
		{ "10.0.0.1", "eth0", "10.0.0.2", 0 },
		{ "fd00::/8", "eth0", "fd77::1", 1 },
		{ "fd00::/8", "eth0", "fe80::1%2", 0 },
		{ "^docker0,lo", "eth0", "10.0.0.1", 1 },
		{ "^docker0,lo", "docker0", "172.17.0.1", 0 },
		{ "^docker0,lo", "lo", "127.0.0.1", 0 },
		{ "^docker0,^lo", "lo", "127.0.0.1", 0 },
		{ "eth*,^eth1", "eth0", "10.0.0.1", 1 },
		{ "eth*,^eth1", "eth1", "10.0.0.1", 0 },
		{ "eth*,^eth1", "ib0", "10.0.0.1", 0 },
		{ "^127.0.0.0/8", "lo", "127.0.0.1", 0 },
		{ "^", "eth0", "10.0.0.1", 1 },
		{ ",,", "eth0", "10.0.0.1", 1 },
	};

	for (auto &l : lists) {
		struct tdm_iface i = iface(l.name, l.ip);

		EXPECT_TRUE(tdm_iflist_ok(l.list)) << l.list;
		EXPECT_EQ(l.place, tdm_iflist_place(l.list, i.name, &i.ip.u.sa))
			<< l.list << " " << l.name << " " << l.ip;
	}
}

TEST(Iface, ListsThatAreNone)
{
	for (const char *list :
	     { "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8x", "10.0.0.0/-1",
	       "10.0/8", "eth0/24", "fd00::/129", "/8", "eth0,10.0.0.0/99",
	       "10.0.0.0/4294967304" })
		EXPECT_FALSE(tdm_iflist_ok(list)) << list;
	EXPECT_FALSE(tdm_iflist_ok(std::string(64, 'x').c_str()));
	EXPECT_TRUE(tdm_iflist_ok(std::string(63, 'x').c_str()));
}

TEST(Iface, NetworkOfAnAddress)
{
	/* fi_tandem(7), ADDRESSES: "such as 192.0.2.0/24". */
	static const struct {
		const char *ip;
		unsigned bits;
		const char *network;
	} cases[] = {
		{ "192.0.2.77", 24, "192.0.2.0/24" },
		{ "192.0.2.77", 32, "192.0.2.77/32" },
		{ "192.0.2.77", 0, "0.0.0.0/0" },
		{ "10.255.3.1", 9, "10.128.0.0/9" },
		{ "2001:db8:1:2::3", 64, "2001:db8:1:2::/64" },
		{ "2001:db8:1:2::3", 61, "2001:db8:1::/61" },
		{ "fe80::1%2", 64, "fe80::/64" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 128,
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128" },
	};

	for (auto &c : cases) {
		struct tdm_iface i = iface("eth0", c.ip, c.bits);
		char buf[TDM_NETWORK_STR_BYTES];

		EXPECT_STREQ(c.network, tdm_iface_network(&i, buf));
	}
}

} // namespace
