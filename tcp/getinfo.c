/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo(3) of the provider: offer.c finds the interfaces for node, service
 * and hints, and each gets an info with its own addresses and names of domain
 * and fabric.
 *
 * Called without locks, by any thread; keeps no state.
 */
#include "tcp/getinfo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/os.h"
#include "tcp/attr.h"
#include "tcp/iface.h"
#include "tcp/nic.h"
#include "tcp/offer.h"
#include "tcp/opened.h"
#include "tcp/refuse.h"
#include "tcp/tier.h"
#include "tdm_info.h"

/*
 * Returns the family of an address format; AF_UNSPEC for a format of both
 * families.
 */
static int format_family(uint32_t format)
{
	switch (format) {
	case FI_SOCKADDR_IN:
		return AF_INET;
	case FI_SOCKADDR_IN6:
		return AF_INET6;
	default:
		return AF_UNSPEC;
	}
}

static int format_known(uint32_t format)
{
	return format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR ||
	       format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6 ||
	       format == FI_ADDR_STR || format == TDM_SOCKADDR_IP;
}

/*
 * Not 0 for a name, and for a port that fits 16 bits: the resolver would
 * truncate larger ones.
 */
static int service_fits(const char *service)
{
	char *end;
	unsigned long port;

	if (!service || *service < '0' || *service > '9')
		return 1;
	errno = 0;
	port = strtoul(service, &end, 10);
	return *end || (!errno && port <= 65535);
}

/* Decode @node, in FI_ADDR_STR form; only a source may have port 0. */
static int from_text(const char *node, uint64_t flags, struct tdm_addr *a)
{
	size_t len = strlen(node) + 1;

	return flags & FI_SOURCE ? tdm_addr_from_bind_str(a, node, len) :
				   tdm_addr_from_str(a, node, len);
}

/* Returns 1 when @node is a host name: no FI_ADDR_STR text, no IP address. */
static int is_name(const char *node, uint64_t flags)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *list;
	struct tdm_addr a;

	if (!from_text(node, flags, &a))
		return 0;
	if (tdm_os.getaddrinfo(node, NULL, &hints, &list))
		return 1;
	tdm_os.freeaddrinfo(list);
	return 0;
}

/* Resolve @node and @service. Out: *@a. */
static int resolve(const char *node, const char *service, uint64_t flags,
		   int family, struct tdm_addr *a)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_family = family };
	struct addrinfo *list, *i;
	int ret = -FI_ENODATA;

	if (node && !service && !from_text(node, flags, a))
		return 0;
	if ((node && !*node) || !service_fits(service)) {
		TDM_REFUSED("node \"%s\" service \"%s\": %s", node ? node : "",
			    service ? service : "",
			    node && !*node ? "no name" : "no port");
		return -FI_ENODATA;
	}
	if (flags & FI_NUMERICHOST)
		hints.ai_flags |= AI_NUMERICHOST;
	if (tdm_os.getaddrinfo(node, service, &hints, &list)) {
		TDM_REFUSED("node \"%s\" service \"%s\" not resolved",
			    node ? node : "", service ? service : "");
		return -FI_ENODATA;
	}
	for (i = list; i && ret; i = i->ai_next) {
		if (!tdm_addr_from_bind(a, i->ai_addr, i->ai_addrlen))
			ret = 0;
	}
	tdm_os.freeaddrinfo(list);
	return ret;
}

/* Decode an address of the application's info, in whichever format it is. */
static int from_hint(const struct fi_info *hints, const void *addr, size_t len,
		     struct tdm_addr *a)
{
	int ret = hints->addr_format == FI_ADDR_STR ?
			  tdm_addr_from_bind_str(a, addr, len) :
			  tdm_addr_from_bind(a, addr, len);

	return ret ? tdm_refuse_hint("src_addr or dest_addr",
				     "no address of the format asked for") :
		     0;
}

/* Store @a in the info in its address format. Out: *@addr, *@len. */
static int put(const struct fi_info *info, const struct tdm_addr *a,
	       void **addr, size_t *len)
{
	char text[TDM_ADDR_STR_BYTES];
	const void *from = a;
	size_t n = tdm_addr_len(a);

	if (info->addr_format == FI_ADDR_STR) {
		n = tdm_addr_format(a, text, sizeof(text));
		from = text;
	}
	*addr = malloc(n);
	if (!*addr)
		return -FI_ENOMEM;
	memcpy(*addr, from, n);
	*len = n;
	return 0;
}

struct asked {
	int have_src, have_dest;
	struct tdm_addr src, dest;
};

/* Set *@q to the addresses that the caller asks for. */
static int asked_addresses(const char *node, const char *service,
			   uint64_t flags, const struct fi_info *hints,
			   struct asked *q)
{
	int family = format_family(hints ? hints->addr_format : 0);
	int ret = 0;

	if ((node || service) && (flags & FI_SOURCE)) {
		if (node) {
			ret = resolve(node, service, flags, family, &q->src);
			q->have_src = 1;
		}
	} else if (node || service) {
		ret = resolve(node, service, flags, family, &q->dest);
		q->have_dest = 1;
	}
	if (ret || !hints)
		return ret;
	if (!(flags & FI_SOURCE) && hints->src_addr) {
		ret = from_hint(hints, hints->src_addr, hints->src_addrlen,
				&q->src);
		q->have_src = 1;
	}
	if (!ret && !q->have_dest && hints->dest_addr &&
	    ((!node && !service) || (flags & FI_SOURCE))) {
		ret = from_hint(hints, hints->dest_addr, hints->dest_addrlen,
				&q->dest);
		q->have_dest = 1;
	}
	return ret;
}

/* Set *@port to the port of FI_SOURCE with a service and no node. */
static int source_port(const char *service, uint64_t flags, int family,
		       uint16_t *port)
{
	struct tdm_addr a;
	int ret = resolve(NULL, service, flags, family, &a);

	if (!ret)
		*port = tdm_addr_port(&a);
	return ret;
}

static int is_any(const struct tdm_addr *a)
{
	return a->u.sa.sa_family == AF_INET ?
		       a->u.in.sin_addr.s_addr == htonl(INADDR_ANY) :
		       IN6_IS_ADDR_UNSPECIFIED(&a->u.in6.sin6_addr);
}

/*
 * Not 0 when @i is as good as @best. MPICH divides its processes among all
 * interfaces whose place on the bus is known, whatever their network and speed.
 */
static int as_good(const struct tdm_iface *i, const struct tdm_iface *best)
{
	char a[TDM_NETWORK_STR_BYTES], b[TDM_NETWORK_STR_BYTES];

	return !strcmp(tdm_iface_network(i, a), tdm_iface_network(best, b)) &&
	       i->speed_bps == best->speed_bps;
}

/*
 * Fill @info for interface @i with address @src; @best is the first of the
 * list.
 */
static int fill(struct fi_info *info, const struct tdm_iface *i,
		const struct tdm_iface *best, const struct tdm_addr *src,
		const struct asked *q)
{
	char network[TDM_NETWORK_STR_BYTES];
	int ret;

	if (info->addr_format == FI_FORMAT_UNSPEC)
		info->addr_format = src->u.sa.sa_family == AF_INET ?
					    FI_SOCKADDR_IN :
					    FI_SOCKADDR_IN6;
	free(info->domain_attr->name);
	free(info->fabric_attr->name);
	info->domain_attr->name = strdup(i->name);
	info->fabric_attr->name = strdup(tdm_iface_network(i, network));
	if (!info->domain_attr->name || !info->fabric_attr->name)
		return -FI_ENOMEM;
	if (!(i->flags & IFF_LOOPBACK)) {
		info->nic = tdm_nic_open(i, as_good(i, best));
		if (!info->nic)
			return -FI_ENOMEM;
	}
	ret = put(info, src, &info->src_addr, &info->src_addrlen);
	if (!ret && q->have_dest)
		ret = put(info, &q->dest, &info->dest_addr,
			  &info->dest_addrlen);
	return ret;
}

/*
 * Fill @info for the first entry of @table, and append copies of it for the
 * others.
 */
static int fill_all(struct fi_info *info, const struct tdm_iface *table,
		    size_t count, const struct asked *q, uint16_t port)
{
	struct fi_info *last = info;
	struct tdm_addr src;
	size_t i;
	int ret;

	for (i = 1; i < count; i++) {
		last->next = fi_dupinfo(info);
		if (!last->next)
			return -FI_ENOMEM;
		last = last->next;
		last->next = NULL;
	}
	for (i = 0; i < count; i++, info = info->next) {
		src = q->have_src ? q->src : table[i].ip;
		if (!q->have_src)
			tdm_addr_set_port(&src, port);
		ret = fill(info, &table[i], table, &src, q);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Copy the names of domain and fabric by which the hints choose interfaces to
 * @ask.
 */
static void asked_names(const struct fi_info *hints, const struct fi_info *info,
			struct tdm_iface_ask *ask)
{
	ask->name = info->domain_attr->name;
	ask->network = info->fabric_attr->name;
	if (!ask->name && hints && hints->domain_attr)
		ask->name = hints->domain_attr->name;
	if (!ask->network && hints && hints->fabric_attr)
		ask->network = hints->fabric_attr->name;
}

int tdm_info_addresses(const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info *info)
{
	uint32_t format = hints ? hints->addr_format : FI_FORMAT_UNSPEC;
	int family = format_family(format);
	struct tdm_iface_ask ask = { .family = family };
	struct asked q = { .have_src = 0 };
	struct tdm_iface *table;
	uint16_t port = 0;
	size_t count;
	int ret;

	if (!format_known(format))
		return tdm_refuse_value("addr_format", FI_TYPE_ADDR_FORMAT,
					format);
	ret = asked_addresses(node, service, flags, hints, &q);
	if (!ret && !node && service && (flags & FI_SOURCE))
		ret = source_port(service, flags, family, &port);
	if (ret)
		return ret;
	if (q.have_src && is_any(&q.src)) {
		port = tdm_addr_port(&q.src);
		q.have_src = 0;
	}
	if (format != FI_FORMAT_UNSPEC)
		info->addr_format = format;
	asked_names(hints, info, &ask);
	ask.both_in_one = info->addr_format != FI_FORMAT_UNSPEC;
	if (q.have_src) {
		ask.src = &q.src;
		ask.family = AF_UNSPEC;
		if (node && flags & FI_SOURCE && tdm_addr_is_loopback(&q.src) &&
		    is_name(node, flags))
			tdm_iface_tell_local(&ask, node);
	} else if (q.have_dest) {
		ask.dest = &q.dest;
		ask.family = q.dest.u.sa.sa_family;
	}
	ret = tdm_iface_offer(&ask, &table, &count);
	if (ret)
		return ret;
	/*
	 * One endpoint reaches all peers: an owner that opens every entry would
	 * have several paths to each.
	 */
	if (info->caps & FI_PEER)
		count = 1;
	ret = fill_all(info, table, count, &q, port);
	free(table);
	return ret;
}

/*
 * Not 0 when a layered provider asks for datagrams. ofi_rxd builds reliable
 * endpoints on any provider's datagrams, and the core lists them before our own
 * reliable endpoints: applications would use our datagrams with a needless
 * protocol on top.
 */
static int for_layers(uint64_t flags, const struct fi_info *hints)
{
	if (!(flags & TDM_GETINFO_LAYERED) || !hints || !hints->ep_attr ||
	    hints->ep_attr->type != FI_EP_DGRAM)
		return 0;
	TDM_REFUSED("no datagram endpoints for layered providers");
	return -FI_ENODATA;
}

static int answer(uint32_t version, const char *node, const char *service,
		  uint64_t flags, const struct fi_info *hints,
		  struct fi_info **info)
{
	struct fi_info *i;
	int ret = for_layers(flags, hints);

	if (ret)
		return ret;
	i = tdm_info_base();
	if (!i)
		return -FI_ENOMEM;
	ret = tdm_info_apply(version, hints, i);
	if (!ret)
		ret = tdm_opened_ask(hints, i);
	if (!ret)
		ret = tdm_info_addresses(node, service, flags, hints, i);
	if (ret) {
		tdm_info_free(i);
		return ret;
	}
	*info = i;
	for (; i; i = i->next)
		tdm_opened_fill(i);
	return 0;
}

/* Returns the peer that an owner other than ours asks for, or NULL. */
static const struct fi_provider *asked_peer(const struct fi_info *hints)
{
	if (!hints || !(hints->caps & FI_PEER) || !hints->domain_attr)
		return NULL;
	return tdm_tier_local_peer(hints->domain_attr->name);
}

int tdm_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info)
{
	const struct fi_provider *peer = asked_peer(hints);
	int ret;

	if (peer)
		return peer->getinfo(version, node, service, flags, hints,
				     info);
	/* A request of a layered provider, not of an application: log less. */
	if (flags & TDM_GETINFO_LAYERED)
		tdm_refuse_set_level(FI_LOG_DEBUG);
	ret = answer(version, node, service, flags, hints, info);
	tdm_refuse_set_level(FI_LOG_INFO);
	return ret;
}
