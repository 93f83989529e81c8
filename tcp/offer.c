/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interfaces that an application is offered, and their order; see iface.h.
 *
 * Each call asks the kernel again. No packet is sent: connecting a UDP socket
 * tells which address the routing table chooses for a destination.
 *
 * Called without locks, by any thread; keeps no state.
 */
#include "tcp/offer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_errno.h>

#include "base/atomic.h"
#include "base/env.h"
#include "base/iflist.h"
#include "base/os.h"
#include "tcp/iface.h"
#include "tcp/ifscan.h"
#include "tcp/refuse.h"

/* Find the source address of packets to @dest. Returns 0, or -1: no route. */
static int route_source(const struct tdm_addr *dest, struct tdm_addr *src)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	int fd, ret = -1;

	fd = tdm_os.socket(dest->u.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (!tdm_os.connect(fd, &dest->u.sa, (socklen_t)tdm_addr_len(dest)) &&
	    !tdm_os.getsockname(fd, (struct sockaddr *)&ss, &len)) {
		ret = tdm_addr_from_bind(src, &ss, len);
		tdm_addr_set_port(src, 0);
	}
	tdm_os.close(fd);
	return ret;
}

static void mark_via(const struct tdm_addr *dest, struct tdm_iface *table,
		     size_t count)
{
	struct tdm_addr via;
	size_t i;

	if (route_source(dest, &via))
		return;
	for (i = 0; i < count; i++)
		table[i].via = tdm_addr_same_ip(&table[i].ip, &via);
}

/*
 * Mark the address from which packets to @node, an address that no host has,
 * leave.
 */
static void mark_outside(const char *node, int worth, struct tdm_iface *table,
			 size_t count)
{
	struct tdm_addr dest, outside;
	size_t i;

	if (tdm_addr_from_node(&dest, node))
		return;
	tdm_addr_set_port(&dest, 9);
	if (route_source(&dest, &outside))
		return;
	for (i = 0; i < count; i++) {
		if (tdm_addr_same_ip(&table[i].ip, &outside))
			table[i].outside = worth;
	}
}

/*
 * Not 0 when @src belongs to @i. All of 127/8 belongs to the loopback
 * interface, listed or not.
 */
static int has_source(const struct tdm_iface *i, const struct tdm_addr *src)
{
	return tdm_addr_same_ip(&i->ip, src) ||
	       (i->ip.u.sa.sa_family == src->u.sa.sa_family &&
		tdm_addr_is_loopback(&i->ip) && tdm_addr_is_loopback(src));
}

/*
 * Not 0 when the user wants the interface. The name in the hints takes
 * precedence.
 */
static int is_wanted(const struct tdm_iface_ask *ask, struct tdm_iface *i)
{
	if (ask->name)
		return !strcasecmp(i->name, ask->name);
	i->place = tdm_env.iface ? tdm_iflist_place(tdm_env.iface, i->name,
						    &i->ip.u.sa) :
				   1;
	return i->place > 0;
}

static int fits(const struct tdm_iface_ask *ask, struct tdm_iface *i)
{
	char network[TDM_NETWORK_STR_BYTES];

	if (ask->family && i->ip.u.sa.sa_family != ask->family)
		return 0;
	if (ask->network &&
	    strcmp(tdm_iface_network(i, network), ask->network) != 0)
		return 0;
	/* An explicit address is used even without carrier. */
	if (ask->src ? !has_source(i, ask->src) : !tdm_iface_has_carrier(i))
		return 0;
	return is_wanted(ask, i);
}

/*
 * Write the interfaces of @table to @text: "eth0 (192.0.2.2), eth1 (no
 * carrier)".
 */
static void list_ifaces(const struct tdm_iface *table, size_t count, char *text,
			size_t size)
{
	char ip[TDM_NETWORK_STR_BYTES], *slash;
	size_t i, n = 0;

	*text = 0;
	for (i = 0; i < count && n < size; i++) {
		struct tdm_iface alone = table[i];

		alone.bits = tdm_addr_len(&alone.ip) == sizeof(alone.ip.u.in) ?
				     32 :
				     128;
		tdm_iface_network(&alone, ip);
		slash = strchr(ip, '/');
		if (slash)
			*slash = '\0';
		n += (size_t)snprintf(
			text + n, size - n, "%s%s (%s)", n ? ", " : "",
			table[i].name,
			tdm_iface_has_carrier(&table[i]) ? ip : "no carrier");
	}
}

/*
 * Log why there is no entry. A list in the environment that matches no
 * interface is a mistake, so warn, but only once.
 */
static void tell_none(const struct tdm_iface_ask *ask, struct tdm_iface *table,
		      size_t count)
{
	static tdm_a64 warned;
	const char *name = ask->name ? ask->name : tdm_env.iface;
	char text[TDM_ADDR_STR_BYTES], all[512];
	size_t i;

	list_ifaces(table, count, all, sizeof(all));
	for (i = 0; i < count; i++) {
		if (tdm_iface_has_carrier(&table[i]) &&
		    is_wanted(ask, &table[i]))
			break;
	}
	if (i == count && name) {
		if (!ask->name && tdm_refuse_level() == FI_LOG_INFO &&
		    !tdm_a64_exchange(&warned, 1))
			tdm_tell_user("FI_TANDEM_IFACE=%s: no such interface; "
				      "there are %s",
				      name, all);
		else
			TDM_REFUSED("no interface %s; there are %s", name, all);
	} else if (ask->src) {
		TDM_REFUSED("no interface%s%s has the address %s; there are %s",
			    name ? " called " : "", name ? name : "",
			    tdm_addr_text(ask->src, text, sizeof(text)), all);
	} else {
		TDM_REFUSED("no address%s%s of the family and network asked "
			    "for is up; there are %s",
			    name ? " of interface " : "", name ? name : "",
			    all);
	}
}

/* Not 0 for names whose meaning is the host itself. */
static int is_own_name(const char *node)
{
	return strcasestr(node, "localhost") || strcasestr(node, "loopback");
}

static uint64_t name_hash(const char *name)
{
	uint64_t hash = 1;

	while (*name)
		hash = hash * 31 + (unsigned char)*name++;
	return hash;
}

void tdm_iface_tell_local(const struct tdm_iface_ask *ask, const char *node)
{
	static tdm_a64 told;
	char text[TDM_ADDR_STR_BYTES];
	uint64_t name = name_hash(node);
	struct tdm_iface *t;
	size_t i, n;

	if (is_own_name(node) || tdm_refuse_level() != FI_LOG_INFO ||
	    tdm_iface_scan(&t, &n))
		return;
	for (i = 0; i < n; i++) {
		if (!(t[i].flags & IFF_LOOPBACK) &&
		    tdm_iface_has_carrier(&t[i]) && is_wanted(ask, &t[i]))
			break;
	}
	/* A program may ask for the same name many times. */
	if (i < n && tdm_a64_exchange(&told, name) != name)
		tdm_tell_user("the name %s stands for %s here, which no other "
			      "host reaches (/etc/hosts?); %s has another "
			      "address",
			      node, tdm_addr_text(ask->src, text, sizeof(text)),
			      t[i].name);
	free(t);
}

/* Keep the entries that fit @ask. Returns how many. */
static size_t keep(const struct tdm_iface_ask *ask, struct tdm_iface *table,
		   size_t count)
{
	size_t i, n = 0;

	for (i = 0; i < count; i++) {
		if (fits(ask, &table[i]))
			table[n++] = table[i];
	}
	return n;
}

/* Keep the first entry of each interface and family of a sorted table. */
static size_t drop_second(struct tdm_iface *table, size_t count, int both)
{
	size_t i, k, n = 0;

	for (i = 0; i < count; i++) {
		for (k = 0; k < n; k++) {
			if (!strcmp(table[k].name, table[i].name) &&
			    (both || table[k].ip.u.sa.sa_family ==
					     table[i].ip.u.sa.sa_family))
				break;
		}
		if (k == n)
			table[n++] = table[i];
	}
	return n;
}

/*
 * Drop link-local addresses from a sorted table, since their scope means
 * nothing to another host; keep them if there is nothing else, or if the
 * request is for what they reach.
 */
static size_t drop_link_local(struct tdm_iface *table, size_t count)
{
	size_t i, n = 0, others = 0;

	for (i = 0; i < count; i++)
		others += tdm_iface_kind(&table[i]) != TDM_IFACE_LINK_LOCAL;
	for (i = 0; i < count; i++) {
		if (!others || table[i].via ||
		    tdm_iface_kind(&table[i]) != TDM_IFACE_LINK_LOCAL)
			table[n++] = table[i];
	}
	return n;
}

int tdm_iface_offer(const struct tdm_iface_ask *ask, struct tdm_iface **table,
		    size_t *count)
{
	struct tdm_iface *t;
	size_t all, n;
	int ret;

	ret = tdm_iface_scan(&t, &all);
	if (ret)
		return ret;
	if (ask->dest)
		mark_via(ask->dest, t, all);
	/* Addresses for documentation: no host has them. */
	if (!ask->src && ask->family != AF_INET6)
		mark_outside("192.0.2.1", 2, t, all);
	if (!ask->src && ask->family != AF_INET)
		mark_outside("2001:db8::1", 1, t, all);
	tdm_iface_find_gateways(t, all);
	n = keep(ask, t, all);
	if (!n) {
		tell_none(ask, t, all);
		free(t);
		return -FI_ENODATA;
	}
	tdm_iface_sort(t, n);
	n = drop_link_local(t, n);
	*count = drop_second(t, n, ask->both_in_one);
	*table = t;
	return 0;
}
