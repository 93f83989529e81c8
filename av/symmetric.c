/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the addresses that a call of fi_av_insertsvc(3) or fi_av_insertsym(3)
 * stands for. A node is an IP address, whose successors are computed, or a host
 * name that ends with a number; each of its successors is resolved separately.
 * All services of a node come before the next node.
 *
 * Names are resolved through the table of base/os.h.
 *
 * Locking: none; resolving a name may block. Spec: fi_av(3), fi_getinfo(3).
 */
#include "av/symmetric.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "av/av_priv.h"
#include "av/follow.h"
#include "av/insert.h"
#include "base/log.h"
#include "base/os.h"

static const char TEXT[] = "fi_sockaddr";

/* Not 0 when @node looks like an address in FI_ADDR_STR form. */
static int is_text(const char *node)
{
	return !strncmp(node, TEXT, sizeof(TEXT) - 1) && strstr(node, "://");
}

static int is_digits(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == '\0';
}

/* Returns the fi_errno for a code of getaddrinfo(3). */
static int error_of(int code)
{
	switch (code) {
	case EAI_MEMORY:
		return -FI_ENOMEM;
	case EAI_AGAIN:
		return -FI_EAGAIN;
	default:
		return -FI_ENODATA;
	}
}

static void set_service(struct tdm_av_range *r, const char *service)
{
	/* A number that is not a valid port is an error, not a service name. */
	r->port = tdm_addr_parse_port(service);
	if (r->port < 0 && !is_digits(service))
		r->service = service;
}

int tdm_av_range_init(struct tdm_av_range *r, uint32_t format, const char *node,
		      const char *service)
{
	char next[NI_MAXHOST];

	r->format = format;
	if (!node || !!service == is_text(node))
		return -FI_EINVAL;
	if (r->svccnt && r->nodecnt > INT32_MAX / r->svccnt)
		return -FI_EINVAL;
	if (!service) {
		r->err = tdm_addr_from_str(&r->base, node, SIZE_MAX / 2);
		r->port = r->err ? 0 : tdm_addr_port(&r->base);
		return 0;
	}
	set_service(r, service);
	if (!tdm_addr_from_node(&r->base, node))
		return 0;
	/* No IP address, and no host name whose number could be increased. */
	if (strchr(node, ':') && r->nodecnt > 1)
		return -FI_EINVAL;
	if (strnlen(node, sizeof(next)) == sizeof(next))
		r->err = -FI_EINVAL;
	else if (r->nodecnt > 1 &&
		 tdm_addr_name_step(node, 1, next, sizeof(next)))
		return -FI_EINVAL;
	r->node = node;
	return 0;
}

/*
 * Set *@a to the address of a usable family that the resolver returns for
 * @node, or for @service alone when that is NULL.
 */
static int ask(const char *node, const char *service, uint32_t format,
	       struct tdm_addr *a)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *i;
	int ret, code;

	hints.ai_family = format == FI_SOCKADDR_IN  ? AF_INET :
			  format == FI_SOCKADDR_IN6 ? AF_INET6 :
						      AF_UNSPEC;
	if (hints.ai_family == AF_INET6)
		hints.ai_flags = AI_V4MAPPED;
	code = tdm_os.getaddrinfo(node, service, &hints, &list);
	if (code) {
		TDM_INFO(AV, "node \"%s\" service \"%s\" not resolved: %s",
			 node ? node : "", service ? service : "",
			 gai_strerror(code));
		return error_of(code);
	}
	ret = -FI_ENODATA;
	for (i = list; i && ret; i = i->ai_next)
		ret = tdm_addr_from_bind(a, i->ai_addr, i->ai_addrlen);
	tdm_os.freeaddrinfo(list);
	return ret;
}

int tdm_av_range_node(const struct tdm_av_range *r, size_t n,
		      struct tdm_addr *a)
{
	char name[NI_MAXHOST];
	struct tdm_addr service;
	int ret = r->err, port = r->port;

	if (ret)
		return ret;
	if (r->node) {
		ret = tdm_addr_name_step(r->node, n, name, sizeof(name));
		if (!ret)
			ret = ask(name, r->service, r->format, a);
		if (!ret && r->service)
			port = tdm_addr_port(a);
	} else {
		*a = r->base;
		ret = tdm_addr_step(a, n);
		if (!ret && r->service) {
			ret = ask(NULL, r->service, FI_SOCKADDR, &service);
			port = ret ? 0 : tdm_addr_port(&service);
		}
	}
	if (!ret && port < 0)
		ret = port;
	if (!ret)
		tdm_addr_set_port(a, (uint16_t)port);
	return ret;
}

void tdm_av_range_put(const struct tdm_av_range *r, struct tdm_av_call *call,
		      const struct tdm_addr *first, int err)
{
	struct tdm_addr a, out;
	uint64_t hash = 0;
	size_t port, i;
	int ret;

	tdm_av_change_begin(call->av);
	for (i = 0; i < r->svccnt; i++) {
		ret = err;
		if (!ret) {
			a = *first;
			port = tdm_addr_port(first) + i;
			tdm_addr_set_port(&a, (uint16_t)port);
			ret = port > UINT16_MAX ?
				      -FI_EINVAL :
				      tdm_addr_from_sockaddr(&out, &a,
							     sizeof(a));
		}
		if (!ret)
			hash = tdm_addr_hash(&out);
		tdm_av_put(call, &out, hash, ret);
	}
	tdm_av_change_end(call->av);
}
