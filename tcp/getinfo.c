/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_getinfo(3) of the provider: one info, its addresses taken from node,
 * service and hints, its domain named after the network interface.
 *
 * Interface choice, when nothing is asked for: FI_TANDEM_IFACE; else the one
 * a packet to the outside would leave by; else the first that is up, neither
 * loopback nor link-local; else loopback. No packet is sent to find out.
 *
 * Called without locks, by any thread; keeps no state.
 */
#include "tcp/getinfo.h"
#include "tcp/refuse.h"
#include "tdm_info.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/atomic.h"
#include "base/os.h"
#include "base/env.h"

/* An interface that could be used. */
struct choice {
	char name[IF_NAMESIZE];
	struct tdm_addr ip; /* port 0 */
};

/* The family an address format asks for; AF_UNSPEC when it does not care. */
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
 * Would the kernel route a packet to @dest from this host, and from which
 * address? A connected UDP socket answers without sending anything.
 */
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

/* How good an interface address is; higher wins, 0 is unusable. */
static int rank(const struct ifaddrs *i, const struct tdm_addr *ip,
		const struct tdm_addr *outside)
{
	if (!(i->ifa_flags & IFF_UP))
		return 0;
	if (tdm_addr_is_loopback(ip))
		return 2;
	if (ip->u.sa.sa_family == AF_INET6 &&
	    IN6_IS_ADDR_LINKLOCAL(&ip->u.in6.sin6_addr))
		return 1;
	if (outside && tdm_addr_same_ip(ip, outside))
		return 5;
	return i->ifa_flags & IFF_RUNNING ? 4 : 3;
}

static int wanted(const struct ifaddrs *i, const struct tdm_addr *ip,
		  const char *name, const struct tdm_addr *want)
{
	if (name && strcasecmp(i->ifa_name, name))
		return 0;
	if (!want || tdm_addr_same_ip(ip, want))
		return 1;
	/* All of 127/8 is the loopback interface's, listed or not. */
	return ip->u.sa.sa_family == want->u.sa.sa_family &&
	       tdm_addr_is_loopback(ip) && tdm_addr_is_loopback(want);
}

/* The addresses of @list that could be used, "eth0 (192.0.2.2), lo (::1)". */
static void list_ifaces(const struct ifaddrs *list, char *text, size_t size)
{
	char ip[INET6_ADDRSTRLEN];
	struct tdm_addr a;
	size_t n = 0;

	*text = 0;
	for (; list && n < size; list = list->ifa_next) {
		if (!list->ifa_addr ||
		    tdm_addr_from_bind(&a, list->ifa_addr,
				       sizeof(struct sockaddr_in6)) ||
		    !rank(list, &a, NULL))
			continue;
		inet_ntop(a.u.sa.sa_family,
			  a.u.sa.sa_family == AF_INET ?
				  (const void *)&a.u.in.sin_addr :
				  (const void *)&a.u.in6.sin6_addr,
			  ip, sizeof(ip));
		n += (size_t)snprintf(text + n, size - n, "%s%s (%s)",
				      n ? ", " : "", list->ifa_name, ip);
	}
}

static int is_there(const struct ifaddrs *list, const char *name)
{
	for (; list; list = list->ifa_next) {
		if (!strcasecmp(list->ifa_name, name))
			return 1;
	}
	return 0;
}

/*
 * Say why choose() found nothing. An interface of the environment that does not
 * exist is a mistake: somebody should look, but once is enough.
 */
static void tell_none(const struct ifaddrs *list, const char *name,
		      const struct tdm_addr *want)
{
	static tdm_a64 warned;
	char text[TDM_ADDR_STR_BYTES], all[512];

	list_ifaces(list, all, sizeof(all));
	if (name && !is_there(list, name)) {
		if (name == tdm_env.iface &&
		    tdm_refuse_level() == FI_LOG_INFO &&
		    !tdm_a64_exchange(&warned, 1))
			TDM_WARN(CORE,
				 "FI_TANDEM_IFACE=%s: no such interface; "
				 "there are %s",
				 name, all);
		else
			TDM_REFUSED("no interface %s; there are %s", name, all);
	} else if (want) {
		TDM_REFUSED("no interface%s%s has the address %s; there are %s",
			    name ? " called " : "", name ? name : "",
			    tdm_addr_text(want, text, sizeof(text)), all);
	} else {
		TDM_REFUSED("no address%s%s of the family asked for is up; "
			    "there are %s",
			    name ? " of interface " : "", name ? name : "",
			    all);
	}
}

/*
 * The best interface: named @name if not NULL, owning IP @want if not NULL,
 * of @family if not AF_UNSPEC (IPv4 before IPv6 otherwise). Out: *@best.
 */
static int choose(const char *name, const struct tdm_addr *want, int family,
		  struct choice *best)
{
	struct tdm_addr outside, dest, ip;
	struct ifaddrs *list, *i;
	int best_rank = 0, r, routed = 0;

	/* 192.0.2.1 is of the documentation range: never a host. */
	memset(&dest, 0, sizeof(dest));
	dest.u.in.sin_family = AF_INET;
	dest.u.in.sin_addr.s_addr = htonl(0xc0000201);
	dest.u.in.sin_port = htons(9);
	if (!name && !want && family != AF_INET6)
		routed = !route_source(&dest, &outside);
	if (getifaddrs(&list))
		return -FI_ENODATA;
	for (i = list; i; i = i->ifa_next) {
		if (!i->ifa_addr ||
		    tdm_addr_from_bind(&ip, i->ifa_addr,
				       sizeof(struct sockaddr_in6)) ||
		    (family && ip.u.sa.sa_family != family) ||
		    !wanted(i, &ip, name, want))
			continue;
		r = 2 * rank(i, &ip, routed ? &outside : NULL);
		if (r && ip.u.sa.sa_family == AF_INET)
			r++;
		if (r > best_rank) {
			best_rank = r;
			best->ip = ip;
			memcpy(best->name, i->ifa_name,
			       strnlen(i->ifa_name, IF_NAMESIZE - 1) + 1);
		}
	}
	if (!best_rank)
		tell_none(list, name, want);
	freeifaddrs(list);
	return best_rank ? 0 : -FI_ENODATA;
}

/* A name, or a port that fits 16 bits: the resolver would cut larger ones. */
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

/* @node in FI_ADDR_STR form; a port of 0 is for what is to be bound only. */
static int from_text(const char *node, uint64_t flags, struct tdm_addr *a)
{
	size_t len = strlen(node) + 1;

	return flags & FI_SOURCE ? tdm_addr_from_bind_str(a, node, len) :
				   tdm_addr_from_str(a, node, len);
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

/* An address of the application's info, in whichever format it is. */
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

/* What the caller said about both addresses. */
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

/* The port of FI_SOURCE with a service and no node. */
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

int tdm_info_addresses(const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info *info)
{
	const char *name = info->domain_attr->name;
	uint32_t format = hints ? hints->addr_format : FI_FORMAT_UNSPEC;
	int family = format_family(format);
	struct choice c = { .name = "" };
	struct asked q = { .have_src = 0 };
	struct tdm_addr via;
	uint16_t port = 0;
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
	if (!name && hints && hints->domain_attr)
		name = hints->domain_attr->name;
	if (!name)
		name = tdm_env.iface;
	if (q.have_src)
		ret = choose(name, &q.src, AF_UNSPEC, &c);
	else if (q.have_dest && !route_source(&q.dest, &via))
		ret = choose(name, &via, AF_UNSPEC, &c);
	else
		ret = choose(name, NULL,
			     q.have_dest ? q.dest.u.sa.sa_family : family, &c);
	if (ret)
		return ret;
	if (q.have_src)
		c.ip = q.src;
	else
		tdm_addr_set_port(&c.ip, port);
	if (format == FI_FORMAT_UNSPEC)
		format = c.ip.u.sa.sa_family == AF_INET ? FI_SOCKADDR_IN :
							  FI_SOCKADDR_IN6;
	info->addr_format = format;
	free(info->domain_attr->name);
	info->domain_attr->name = strdup(c.name);
	if (!info->domain_attr->name)
		return -FI_ENOMEM;
	ret = put(info, &c.ip, &info->src_addr, &info->src_addrlen);
	if (!ret && q.have_dest)
		ret = put(info, &q.dest, &info->dest_addr, &info->dest_addrlen);
	return ret;
}

/*
 * ofi_rxd makes reliable endpoints of anybody's datagrams, and the core lists
 * what it makes before what we offer ourselves: applications would take our
 * datagrams with its protocol on top, for nothing.
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
	tdm_opened_fill(i);
	*info = i;
	return 0;
}

int tdm_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info)
{
	int ret;

	/* Layered providers ask for what no application did. */
	if (flags & TDM_GETINFO_LAYERED)
		tdm_refuse_set_level(FI_LOG_DEBUG);
	ret = answer(version, node, service, flags, hints, info);
	tdm_refuse_set_level(FI_LOG_INFO);
	return ret;
}
