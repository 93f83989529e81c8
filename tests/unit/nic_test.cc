/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The description of hardware that fi_nic(3) defines, of interfaces that the
 * tests make up; and fi_getinfo(3) when memory or system calls fail.
 */
#include <cstring>
#include <net/if_arp.h>
#include <string>

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

extern "C" {
#include "tcp/getinfo.h"
#include "tcp/iface.h"
#include "tdm_provider.h"
#include "tests/harness/fault.h"
#include "tests/harness/log.h"
#include "tests/harness/os_fault.h"
#include "tcp/nic.h"
struct fi_provider *fi_prov_ini(void);
}

namespace
{

struct tdm_iface ethernet()
{
	struct tdm_iface i;

	memset(&i, 0, sizeof(i));
	strcpy(i.name, "eth7");
	strcpy(i.driver, "e1000");
	strcpy(i.bus, "00ff:3b:1f.7");
	i.flags = IFF_UP | IFF_RUNNING;
	i.speed_bps = 25000000000;
	i.mtu_bytes = 9000;
	i.hw_type = ARPHRD_ETHER;
	i.hw_len = 6;
	for (uint8_t k = 0; k < 6; k++)
		i.hw[k] = static_cast<uint8_t>(0x0a + 0x10 * k);
	return i;
}

TEST(Nic, ShowsTheInterface)
{
	/* fi_nic(3) 2.1, Device Attributes 2 to 7, Bus Attributes 2 to 6, Link
	 * Attributes 2 to 6. */
	struct tdm_iface i = ethernet();
	struct fid_nic *nic = tdm_nic_open(&i, 1);

	ASSERT_NE(nullptr, nic);
	EXPECT_EQ(size_t(FI_CLASS_NIC), nic->fid.fclass);
	EXPECT_STREQ("eth7", nic->device_attr->name);
	EXPECT_STREQ("e1000", nic->device_attr->driver);
	EXPECT_EQ(FI_BUS_PCI, nic->bus_attr->bus_type);
	EXPECT_EQ(0xffu, nic->bus_attr->attr.pci.domain_id);
	EXPECT_EQ(0x3bu, nic->bus_attr->attr.pci.bus_id);
	EXPECT_EQ(0x1fu, nic->bus_attr->attr.pci.device_id);
	EXPECT_EQ(7u, nic->bus_attr->attr.pci.function_id);
	EXPECT_STREQ("0a:1a:2a:3a:4a:5a", nic->link_attr->address);
	EXPECT_EQ(9000u, nic->link_attr->mtu);
	EXPECT_EQ(25000000000u, nic->link_attr->speed);
	EXPECT_EQ(FI_LINK_UP, nic->link_attr->state);
	EXPECT_STREQ("Ethernet", nic->link_attr->network_type);
	EXPECT_EQ(0, fi_close(&nic->fid));
}

TEST(Nic, UnknownIsNull)
{
	/* fi_nic(3) 2.1, NETWORK INTERFACE CARD ATTRIBUTES 2: fields that are
	 * not available are NULL or 0. */
	struct tdm_iface i;

	memset(&i, 0, sizeof(i));
	strcpy(i.name, "x");
	for (const char *bus : { "", "N/A", "usb-1.2", "0000:3b:00.0x" }) {
		strcpy(i.bus, bus);
		struct fid_nic *nic = tdm_nic_open(&i, 1);

		ASSERT_NE(nullptr, nic);
		EXPECT_EQ(nullptr, nic->device_attr->driver);
		EXPECT_EQ(nullptr, nic->device_attr->firmware);
		EXPECT_EQ(nullptr, nic->device_attr->vendor_id);
		EXPECT_EQ(FI_BUS_UNKNOWN, nic->bus_attr->bus_type) << bus;
		EXPECT_EQ(nullptr, nic->link_attr->address);
		EXPECT_EQ(nullptr, nic->link_attr->network_type);
		EXPECT_EQ(FI_LINK_DOWN, nic->link_attr->state);
		EXPECT_EQ(0, fi_close(&nic->fid));
	}
}

TEST(Nic, PlaceOnTheBusIsToldOnRequest)
{
	struct tdm_iface i = ethernet();
	struct fid_nic *nic = tdm_nic_open(&i, 0);

	ASSERT_NE(nullptr, nic);
	EXPECT_EQ(FI_BUS_UNKNOWN, nic->bus_attr->bus_type);
	EXPECT_STREQ("e1000", nic->device_attr->driver);
	EXPECT_EQ(0, fi_close(&nic->fid));
}

TEST(Nic, InfiniBandAddressIsWhole)
{
	struct tdm_iface i = ethernet();

	i.hw_type = ARPHRD_INFINIBAND;
	i.hw_len = sizeof(i.hw);
	memset(i.hw, 0xfe, sizeof(i.hw));
	struct fid_nic *nic = tdm_nic_open(&i, 1);

	ASSERT_NE(nullptr, nic);
	EXPECT_EQ(59u, strlen(nic->link_attr->address));
	EXPECT_STREQ("InfiniBand", nic->link_attr->network_type);
	EXPECT_EQ(0, fi_close(&nic->fid));
}

TEST(Nic, CopyOutlivesTheInfo)
{
	/* fi_getinfo(3) 2.1, DESCRIPTION 8: fi_dupinfo: a copy of the whole
	 * structure. */
	struct tdm_iface i = ethernet();
	struct fi_info *info = fi_allocinfo(), *copy;
	struct fid_nic *nic = tdm_nic_open(&i, 1);

	ASSERT_NE(nullptr, nic);
	info->nic = nic;
	copy = fi_dupinfo(info);
	ASSERT_NE(nullptr, copy);
	ASSERT_NE(nullptr, copy->nic);
	EXPECT_NE(nic, copy->nic);
	fi_freeinfo(info);
	EXPECT_STREQ("eth7", copy->nic->device_attr->name);
	EXPECT_STREQ("0a:1a:2a:3a:4a:5a", copy->nic->link_attr->address);
	EXPECT_EQ(0x3bu, copy->nic->bus_attr->attr.pci.bus_id);
	std::string text = fi_tostr(copy, FI_TYPE_INFO);
	EXPECT_NE(std::string::npos, text.find("pci: 00ff:3b:1f.7\n")) << text;
	EXPECT_NE(std::string::npos, text.find("mtu: 9000\n")) << text;
	fi_freeinfo(copy);
}

TEST(Nic, TextKeepsToItsRoom)
{
	struct tdm_iface i = ethernet();
	struct fid_nic *nic = tdm_nic_open(&i, 1);
	std::string whole;

	ASSERT_NE(nullptr, nic);
	for (size_t len = 1; len < 512; len++) {
		std::string buf(len + 1, '#');

		buf[0] = '\0';
		nic->fid.ops->tostr(&nic->fid, &buf[0], len);
		EXPECT_EQ('#', buf[len]) << len;
		EXPECT_GT(len, strlen(buf.c_str()));
		whole = buf.c_str();
	}
	EXPECT_NE(std::string::npos, whole.find("network_type: Ethernet\n"));
	EXPECT_EQ(0, fi_close(&nic->fid));
}

/* ---- the kernel is asked ------------------------------------------------- */

/* Names, families and formats of all entries. */
std::string offer(struct fi_info *info)
{
	std::string text;

	for (; info; info = info->next)
		text += info->domain_attr->name + std::string("/") +
			std::to_string(info->addr_format) + " ";
	return text;
}

class Asked : public testing::Test
{
protected:
	struct fi_provider *prov = fi_prov_ini();
	struct fi_info *info = nullptr;

	int get()
	{
		return prov->getinfo(fi_version(), nullptr, nullptr, 0, nullptr,
				     &info);
	}

	void drop()
	{
		fi_freeinfo(info);
		info = nullptr;
	}
};

TEST_F(Asked, NoMemoryIsSaid)
{
	unsigned nth = 1, failed;

	if (!tdt_alloc_can_fail())
		GTEST_SKIP() << "linked without --wrap=malloc";
	do {
		tdt_alloc_fail(nth, 0);
		int ret = get();
		failed = tdt_alloc_stop();
		ASSERT_EQ(failed ? -FI_ENOMEM : 0, ret) << nth;
		ASSERT_EQ(!failed, !!info) << nth;
		drop();
	} while (failed && ++nth < 1000);
	EXPECT_FALSE(failed);
	EXPECT_LT(3u, nth);
}

TEST_F(Asked, RefusedListIsWarnedOf)
{
	/* fi_tandem(7), ADDRESSES: if the kernel does not list the interfaces,
	 * the log warns. */
	tdt_log_reset();
	tdt_log_expect("cannot be listed");
	tdt_os_install();
	tdt_fail_from(TDT_OS_GETIFADDRS, 1, EPERM);
	EXPECT_EQ(-FI_ENODATA, get());
	EXPECT_EQ(-FI_ENODATA, get());
	tdt_os_remove();
	EXPECT_EQ(1u, tdt_log_count("network interfaces cannot be listed: "
				    "Operation not permitted"));
	ASSERT_EQ(0, get());
	drop();
}

TEST_F(Asked, SilenceOfTheKernelChangesNoEntry)
{
	/* fi_tandem(7), ADDRESSES: speed and driver order what is there; the
	 * same interfaces are there without. */
	ASSERT_EQ(0, get());
	size_t all = offer(info).size();
	drop();
	for (auto call :
	     { TDT_OS_IFREQ, TDT_OS_SOCKET, TDT_OS_CONNECT, TDT_OS_GETSOCKNAME,
	       TDT_OS_OPEN_FILE, TDT_OS_READ }) {
		tdt_os_install();
		tdt_fail_from(call, 1, EPERM);
		EXPECT_EQ(0, get()) << tdt_os_name(call);
		tdt_os_remove();
		EXPECT_EQ(all, offer(info).size()) << tdt_os_name(call);
		drop();
	}
}

} // namespace
