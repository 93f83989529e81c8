/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the interfaces and their properties from the kernel; see iface.h.
 *
 * ioctl(2) is used, since /sys/class/net shows the network namespace of the
 * process that mounted it, which may be another one. A property that the kernel
 * does not tell stays unknown; that is no error.
 *
 * Lock: none; nothing is kept between calls but that a warning was given.
 */
#include "tcp/ifscan.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <netpacket/packet.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/atomic.h"
#include "base/base.h"
#include "base/log.h"
#include "base/os.h"
#include "tcp/iface.h"
#include "tcp/refuse.h"

static unsigned mask_bits(const struct sockaddr *mask)
{
	const uint8_t *b;
	unsigned n, bits = 0;

	if (!mask)
		return 0;
	if (mask->sa_family == AF_INET) {
		b = (const uint8_t *)&((const struct sockaddr_in *)mask)
			    ->sin_addr;
		n = 32;
	} else {
		b = (const uint8_t *)&((const struct sockaddr_in6 *)mask)
			    ->sin6_addr;
		n = 128;
	}
	while (bits < n && b[bits / 8] & 0x80u >> bits % 8)
		bits++;
	return bits;
}

/* One command of ethtool for interface @name; @cmd begins with its number. */
static int ethtool(int fd, const char *name, void *cmd)
{
	struct ifreq r;
	size_t n = strcspn(name, ":"); /* an address with a label */

	memset(&r, 0, sizeof(r));
	memcpy(r.ifr_name, name, n);
	r.ifr_data = cmd;
	return tdm_os.ifreq(fd, SIOCETHTOOL, &r);
}

static uint64_t ask_speed(int fd, const char *name)
{
	struct ethtool_cmd cmd = { .cmd = ETHTOOL_GSET };
	uint32_t mbit;

	if (ethtool(fd, name, &cmd))
		return 0;
	mbit = (uint32_t)cmd.speed_hi << 16 | cmd.speed;
	/* Some drivers report an unknown speed as a number of 16 bits. */
	if (mbit == (uint32_t)SPEED_UNKNOWN || mbit == UINT16_MAX)
		return 0;
	return (uint64_t)mbit * 1000000;
}

static void ask_driver(int fd, struct tdm_iface *i)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };

	if (ethtool(fd, i->name, &info))
		return;
	memcpy(i->driver, info.driver,
	       strnlen(info.driver, sizeof(i->driver) - 1));
	memcpy(i->bus, info.bus_info,
	       strnlen(info.bus_info, sizeof(i->bus) - 1));
	memcpy(i->firmware, info.fw_version,
	       strnlen(info.fw_version, sizeof(i->firmware) - 1));
}

static void ask_mtu(int fd, struct tdm_iface *i)
{
	struct ifreq r;

	memset(&r, 0, sizeof(r));
	memcpy(r.ifr_name, i->name, strcspn(i->name, ":"));
	if (!tdm_os.ifreq(fd, SIOCGIFMTU, &r) && r.ifr_mtu > 0)
		i->mtu_bytes = (size_t)r.ifr_mtu;
}

/* Find the link-layer address of @i, which @list has beside IP addresses. */
static void find_hardware(const struct ifaddrs *list, struct tdm_iface *i)
{
	size_t n = strcspn(i->name, ":"); /* an address with a label */
	const struct sockaddr_ll *ll;

	for (; list; list = list->ifa_next) {
		if (list->ifa_addr && list->ifa_addr->sa_family == AF_PACKET &&
		    !strncmp(list->ifa_name, i->name, n) && !list->ifa_name[n])
			break;
	}
	if (!list)
		return;
	ll = (const struct sockaddr_ll *)list->ifa_addr;
	i->hw_type = ll->sll_hatype;
	i->hw_len = (uint8_t)tdm_min(ll->sll_halen, sizeof(i->hw));
	/* Longer addresses continue after the end of the structure. */
	memcpy(i->hw,
	       (const uint8_t *)ll + offsetof(struct sockaddr_ll, sll_addr),
	       i->hw_len);
}

/*
 * Copy the properties from an earlier entry of the same interface, or ask the
 * kernel.
 */
static void ask(int fd, const struct ifaddrs *list, struct tdm_iface *table,
		size_t at)
{
	struct tdm_iface *i = &table[at], one = *i;
	size_t k;

	for (k = 0; k < at; k++) {
		if (!strcmp(table[k].name, i->name)) {
			*i = table[k];
			i->ip = one.ip;
			i->bits = one.bits;
			return;
		}
	}
	i->order = (unsigned)at;
	if (i->flags & IFF_LOOPBACK)
		return;
	find_hardware(list, i);
	if (fd < 0)
		return;
	i->speed_bps = ask_speed(fd, i->name);
	ask_driver(fd, i);
	ask_mtu(fd, i);
}

/* Returns 0, or -1: @from is not a usable address. */
static int take(const struct ifaddrs *from, struct tdm_iface *i)
{
	if (!from->ifa_addr || !(from->ifa_flags & IFF_UP) ||
	    tdm_addr_from_bind(&i->ip, from->ifa_addr,
			       sizeof(struct sockaddr_in6)))
		return -1;
	memcpy(i->name, from->ifa_name,
	       strnlen(from->ifa_name, IF_NAMESIZE - 1));
	i->bits = mask_bits(from->ifa_netmask);
	i->flags = from->ifa_flags;
	return 0;
}

/* Log once at WARN that the interfaces cannot be listed; then as a refusal. */
static void tell_refused(int err)
{
	static tdm_a64 warned;
	enum fi_log_level level = FI_LOG_WARN;

	if (tdm_a64_exchange(&warned, 1))
		level = tdm_refuse_level();
	TDM_LOG_(level, FI_LOG_CORE,
		 "the network interfaces cannot be listed: %s (does a sandbox "
		 "forbid AF_NETLINK sockets?)",
		 strerror(err));
}

int tdm_iface_scan(struct tdm_iface **table, size_t *count)
{
	struct ifaddrs *list, *l;
	struct tdm_iface *t;
	size_t n = 0;
	int fd;

	if (tdm_os.getifaddrs(&list)) {
		tell_refused(errno);
		return -FI_ENODATA;
	}
	for (l = list; l; l = l->ifa_next)
		n++;
	t = calloc(n + 1, sizeof(*t));
	if (!t) {
		freeifaddrs(list);
		return -FI_ENOMEM;
	}
	fd = tdm_os.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fd = tdm_os.socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (n = 0, l = list; l; l = l->ifa_next) {
		if (!take(l, &t[n]))
			ask(fd, list, t, n++);
	}
	if (fd >= 0)
		tdm_os.close(fd);
	freeifaddrs(list);
	*table = t;
	*count = n;
	return 0;
}
