/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The description of an interface's hardware that fi_getinfo(3) returns, see
 * fi_nic(3): one block of memory that holds the texts too, so that copying the
 * block copies all of it.
 *
 * Invariant: pointers of the public structures lead into the same block, or are
 * NULL where nothing is known. link_attr and bus_attr are never NULL: some
 * applications use them without a check.
 *
 * Lock: none; a block belongs to the fi_info that refers to it.
 */
#include "tcp/nic.h"

#include <fcntl.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/base.h"
#include "base/os.h"
#include "tcp/getinfo.h"
#include "tcp/iface.h"
#include "tdm_nosys.h"

enum { HW_STR_BYTES = 3 * TDM_IFACE_HW_BYTES, PCI_ID_BYTES = 8 };

struct tdm_nic {
	struct fid_nic nic;
	struct fi_device_attr device;
	struct fi_bus_attr bus;
	struct fi_link_attr link;
	/* "": not known. */
	char name[IF_NAMESIZE];
	char driver[TDM_IFACE_DRIVER_BYTES];
	char firmware[TDM_IFACE_DRIVER_BYTES];
	char vendor_id[PCI_ID_BYTES]; /* "0x8086" */
	char device_id[PCI_ID_BYTES];
	char address[HW_STR_BYTES]; /* "02:00:5e:10:00:00" */
	char type[sizeof("InfiniBand")];
};

static struct fi_ops nic_ops;

static char *known(char *text)
{
	return *text ? text : NULL;
}

/* Point all public pointers into @n. */
static void point(struct tdm_nic *n)
{
	n->nic.fid.fclass = FI_CLASS_NIC;
	n->nic.fid.context = NULL;
	n->nic.fid.ops = &nic_ops;
	n->nic.device_attr = &n->device;
	n->nic.bus_attr = &n->bus;
	n->nic.link_attr = &n->link;
	n->device.name = known(n->name);
	n->device.driver = known(n->driver);
	n->device.firmware = known(n->firmware);
	n->device.vendor_id = known(n->vendor_id);
	n->device.device_id = known(n->device_id);
	n->link.address = known(n->address);
	n->link.network_type = known(n->type);
}

/*
 * Copy the first line of the file @what that sysfs(5) has of the PCI device
 * @bus to @to.
 */
static void read_pci(const char *bus, const char *what, char *to)
{
	char pathname[96];
	ssize_t n = 0;
	int fd;

	snprintf(pathname, sizeof(pathname), "/sys/bus/pci/devices/%s/%s", bus,
		 what);
	fd = tdm_os.open_file(pathname, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	n = tdm_os.read(fd, to, PCI_ID_BYTES - 1);
	tdm_os.close(fd);
	to[n > 0 ? n : 0] = '\0';
	to[strcspn(to, "\n")] = '\0';
}

static void set_device(struct tdm_nic *n, const struct tdm_iface *i, int bus)
{
	unsigned domain, number, device, function;
	int end = 0;

	memcpy(n->name, i->name, sizeof(n->name));
	memcpy(n->driver, i->driver, sizeof(n->driver));
	memcpy(n->firmware, i->firmware, sizeof(n->firmware));
	n->bus.bus_type = FI_BUS_UNKNOWN;
	if (sscanf(i->bus, "%4x:%2x:%2x.%1x%n", &domain, &number, &device,
		   &function, &end) != 4 ||
	    i->bus[end])
		return;
	read_pci(i->bus, "vendor", n->vendor_id);
	read_pci(i->bus, "device", n->device_id);
	if (!bus)
		return;
	n->bus.bus_type = FI_BUS_PCI;
	n->bus.attr.pci.domain_id = (uint16_t)domain;
	n->bus.attr.pci.bus_id = (uint8_t)number;
	n->bus.attr.pci.device_id = (uint8_t)device;
	n->bus.attr.pci.function_id = (uint8_t)function;
}

static void set_link(struct tdm_nic *n, const struct tdm_iface *i)
{
	char *at = n->address;
	unsigned k;

	for (k = 0; k < i->hw_len; k++)
		at += sprintf(at, "%s%02x", k ? ":" : "", i->hw[k]);
	n->link.mtu = i->mtu_bytes;
	n->link.speed = (size_t)i->speed_bps;
	n->link.state = tdm_iface_has_carrier(i) ? FI_LINK_UP : FI_LINK_DOWN;
	if (i->hw_type == ARPHRD_ETHER)
		strcpy(n->type, "Ethernet");
	else if (i->hw_type == ARPHRD_INFINIBAND)
		strcpy(n->type, "InfiniBand");
}

struct fid_nic *tdm_nic_open(const struct tdm_iface *i, int bus)
{
	struct tdm_nic *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	set_device(n, i, bus);
	set_link(n, i);
	point(n);
	return &n->nic;
}

static int nic_close(struct fid *fid)
{
	free(tdm_container_of(fid, struct tdm_nic, nic.fid));
	return 0;
}

/* FI_DUP of fi_dupinfo(3): @arg is a struct fid_nic **. */
static int nic_control(struct fid *fid, int command, void *arg)
{
	struct tdm_nic *n;

	if (command != FI_DUP)
		return -FI_ENOSYS;
	n = malloc(sizeof(*n));
	if (!n)
		return -FI_ENOMEM;
	*n = *tdm_container_of(fid, struct tdm_nic, nic.fid);
	point(n);
	*(struct fid_nic **)arg = &n->nic;
	return 0;
}

static const char *or_none(const char *text)
{
	return text ? text : "(none)";
}

/*
 * For fi_tostr(3) of an info: append to the text in @buf, which has @len bytes.
 */
static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	const struct tdm_nic *n =
		tdm_container_of(fid, const struct tdm_nic, nic.fid);
	const struct fi_pci_attr *pci = &n->bus.attr.pci;
	size_t at = strnlen(buf, len);
	char place[32] = "(none)";

	if (n->bus.bus_type == FI_BUS_PCI)
		snprintf(place, sizeof(place), "%04x:%02x:%02x.%x",
			 pci->domain_id, pci->bus_id, pci->device_id,
			 pci->function_id);
	snprintf(buf + at, len - at,
		 "    nic:\n"
		 "        name: %s\n"
		 "        driver: %s\n"
		 "        firmware: %s\n"
		 "        vendor_id: %s\n"
		 "        device_id: %s\n"
		 "        pci: %s\n"
		 "        address: %s\n"
		 "        mtu: %zu\n"
		 "        speed: %zu\n"
		 "        state: %s\n"
		 "        network_type: %s\n",
		 n->name, or_none(n->device.driver),
		 or_none(n->device.firmware), or_none(n->device.vendor_id),
		 or_none(n->device.device_id), place, or_none(n->link.address),
		 n->link.mtu, n->link.speed,
		 n->link.state == FI_LINK_UP ? "FI_LINK_UP" : "FI_LINK_DOWN",
		 or_none(n->link.network_type));
	return 0;
}

static struct fi_ops nic_ops = {
	.size = sizeof(nic_ops),
	.close = nic_close,
	.bind = tdm_no_fi_bind,
	.control = nic_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = nic_tostr,
	.ops_set = tdm_no_fi_ops_set,
};
