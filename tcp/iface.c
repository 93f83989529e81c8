/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ranking of interfaces; see iface.h.
 *
 * Invariant: the order is transitive. An unknown speed has one place among the
 * known ones, so that no three interfaces form a circle.
 *
 * No state: no lock.
 */
#include "tcp/iface.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* ---- kinds --------------------------------------------------------------- */

static int one_of(const char *const *patterns, size_t n, const char *text)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!fnmatch(patterns[i], text, 0))
			return 1;
	}
	return 0;
}

/* Made by managers of containers and virtual machines, the same everywhere. */
static int is_same_everywhere(const struct tdm_iface *i)
{
	static const char *const names[] = {
		"docker*", "br-[0-9a-f]*", "virbr*", "cni*",
		"podman*", "lxcbr*",	   "lxdbr*", "incusbr*",
		"veth*",   "cali*",	   "kube-*", "nodelocaldns",
		"vmnet*",  "vboxnet*",	   "azure*", "cbr[0-9]*",
	};

	return one_of(names, TDM_ARRAY_LEN(names), i->name);
}

static int is_virtual(const struct tdm_iface *i)
{
	static const char *const drivers[] = {
		"bridge", "veth",   "tun",	 "dummy",	"vxlan",
		"geneve", "gre*",   "ip*gre*",	 "ip*tnl*",	"ipip",
		"sit",	  "vti*",   "wireguard", "openvswitch", "ifb",
		"nlmon",  "erspan", "xfrm",
	};
	uint32_t ip = i->ip.u.sa.sa_family == AF_INET ?
			      ntohl(i->ip.u.in.sin_addr.s_addr) :
			      0;

	/*
	 * 169.254/16: a host that was assigned no address takes one of these.
	 */
	return i->flags & IFF_POINTOPOINT || ip >> 16 == 0xa9fe ||
	       one_of(drivers, TDM_ARRAY_LEN(drivers), i->driver);
}

enum tdm_iface_kind tdm_iface_kind(const struct tdm_iface *i)
{
	if (i->ip.u.sa.sa_family == AF_INET6 &&
	    IN6_IS_ADDR_LINKLOCAL(&i->ip.u.in6.sin6_addr))
		return TDM_IFACE_LINK_LOCAL;
	if (tdm_addr_is_loopback(&i->ip))
		return TDM_IFACE_LOOPBACK;
	/* Some hosts have a routed address on the loopback interface. */
	if (i->flags & IFF_LOOPBACK)
		return i->outside ? TDM_IFACE_REAL : TDM_IFACE_LOOPBACK;
	if (i->gateway)
		return TDM_IFACE_REAL;
	if (is_same_everywhere(i))
		return TDM_IFACE_SAME;
	return is_virtual(i) ? TDM_IFACE_VIRTUAL : TDM_IFACE_REAL;
}

int tdm_iface_has_carrier(const struct tdm_iface *i)
{
	return i->flags & IFF_UP && i->flags & (IFF_RUNNING | IFF_LOOPBACK);
}

/* ---- order --------------------------------------------------------------- */

/*
 * An unknown speed counts as the highest on the interface of the default route,
 * which may be the fastest, else as the lowest.
 */
static uint64_t speed(const struct tdm_iface *i)
{
	return i->gateway && !i->speed_bps ? UINT64_MAX : i->speed_bps;
}

/* Below 0 when @a is less than @b. */
static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int better(const void *pa, const void *pb)
{
	const struct tdm_iface *a = pa, *b = pb;
	int c;

	if ((c = compare((uint64_t)b->via, (uint64_t)a->via)) ||
	    (c = compare(a->place, b->place)) ||
	    (c = compare(tdm_iface_kind(a), tdm_iface_kind(b))) ||
	    (c = compare(speed(b), speed(a))) ||
	    (c = compare((uint64_t)b->gateway, (uint64_t)a->gateway)) ||
	    (c = compare(a->order, b->order)) ||
	    (c = compare(a->ip.u.sa.sa_family, b->ip.u.sa.sa_family)))
		return c;
	return compare((uint64_t)b->outside, (uint64_t)a->outside);
}

void tdm_iface_find_gateways(struct tdm_iface *table, size_t count)
{
	size_t i, k;

	for (i = 0; i < count; i++) {
		table[i].gateway = 0;
		for (k = 0; k < count; k++) {
			if (!strcmp(table[i].name, table[k].name))
				table[i].gateway = tdm_max(table[i].gateway,
							   table[k].outside);
		}
	}
}

/* By insertion: few entries, and equal ones keep the order of the kernel. */
void tdm_iface_sort(struct tdm_iface *table, size_t count)
{
	struct tdm_iface one;
	size_t i, k;

	for (i = 1; i < count; i++) {
		one = table[i];
		for (k = i; k && better(&one, &table[k - 1]) < 0; k--)
			table[k] = table[k - 1];
		table[k] = one;
	}
}

/* ---- networks ------------------------------------------------------------ */

static unsigned family_bits(const struct tdm_addr *a)
{
	return a->u.sa.sa_family == AF_INET ? 32 : 128;
}

static const uint8_t *ip_bytes(const struct tdm_addr *a)
{
	return a->u.sa.sa_family == AF_INET ?
		       (const uint8_t *)&a->u.in.sin_addr :
		       (const uint8_t *)&a->u.in6.sin6_addr;
}

const char *tdm_iface_network(const struct tdm_iface *i, char *buf)
{
	struct tdm_addr net = i->ip;
	uint8_t *b = (uint8_t *)ip_bytes(&net);
	unsigned k, n = family_bits(&net);
	size_t len;

	for (k = i->bits; k < n; k++)
		b[k / 8] &= (uint8_t)~(0x80u >> k % 8);
	inet_ntop(net.u.sa.sa_family, b, buf, INET6_ADDRSTRLEN);
	len = strlen(buf);
	snprintf(buf + len, TDM_NETWORK_STR_BYTES - len, "/%u", i->bits);
	return buf;
}
