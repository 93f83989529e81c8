/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoint addresses in all their external forms; see addr.h. Pure functions
 * over untrusted bytes.
 *
 * Invariant: every byte of a struct tdm_addr that its family does not use is
 * 0, so two equal addresses are equal byte for byte.
 *
 * No state: no lock.
 * Spec: fi_av(3) (FI_SOCKADDR*, FI_ADDR_STR), fi_getinfo(3) (addr_format).
 */
#include "av/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

/* Longest text of an IPv6 address with brackets, scope id and port. */
enum { TAIL_BYTES = INET6_ADDRSTRLEN + 24 };

static const char IN_PREFIX[] = "fi_sockaddr_in://";
static const char IN6_PREFIX[] = "fi_sockaddr_in6://";

size_t tdm_addr_len(const struct tdm_addr *a)
{
	switch (a->u.sa.sa_family) {
	case AF_INET:
		return sizeof(a->u.in);
	case AF_INET6:
		return sizeof(a->u.in6);
	default:
		return 0;
	}
}

static void set_in(struct tdm_addr *a, struct in_addr ip, in_port_t port)
{
	memset(a, 0, sizeof(*a));
	a->u.in.sin_family = AF_INET;
	a->u.in.sin_addr = ip;
	a->u.in.sin_port = port;
}

static void set_in6(struct tdm_addr *a, const struct in6_addr *ip,
		    in_port_t port, uint32_t scope)
{
	if (IN6_IS_ADDR_V4MAPPED(ip)) {
		struct in_addr v4;

		memcpy(&v4, &ip->s6_addr[12], sizeof(v4));
		set_in(a, v4, port);
		return;
	}
	memset(a, 0, sizeof(*a));
	a->u.in6.sin6_family = AF_INET6;
	a->u.in6.sin6_addr = *ip;
	a->u.in6.sin6_port = port;
	if (IN6_IS_ADDR_LINKLOCAL(ip))
		a->u.in6.sin6_scope_id = scope;
}

int tdm_addr_from_bind(struct tdm_addr *a, const void *sa, size_t len)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	sa_family_t family;

	if (!sa || len < sizeof(family))
		return -FI_EINVAL;
	memcpy(&family, sa, sizeof(family));
	if (family == AF_INET && len >= sizeof(in)) {
		memcpy(&in, sa, sizeof(in));
		set_in(a, in.sin_addr, in.sin_port);
		return 0;
	}
	if (family == AF_INET6 && len >= sizeof(in6)) {
		memcpy(&in6, sa, sizeof(in6));
		set_in6(a, &in6.sin6_addr, in6.sin6_port, in6.sin6_scope_id);
		return 0;
	}
	return -FI_EINVAL;
}

static int is_wildcard(const struct tdm_addr *a)
{
	return a->u.sa.sa_family == AF_INET ?
		       a->u.in.sin_addr.s_addr == htonl(INADDR_ANY) :
		       IN6_IS_ADDR_UNSPECIFIED(&a->u.in6.sin6_addr);
}

int tdm_addr_from_sockaddr(struct tdm_addr *a, const void *sa, size_t len)
{
	struct tdm_addr tmp;
	int ret = tdm_addr_from_bind(&tmp, sa, len);

	if (ret)
		return ret;
	if (is_wildcard(&tmp) || !tdm_addr_port(&tmp))
		return -FI_EINVAL;
	*a = tmp;
	return 0;
}

/*
 * Returns the value of @text, which must be a decimal number of at most @max
 * and nothing else; -1 otherwise.
 */
static int64_t parse_number(const char *text, int64_t max)
{
	int64_t v = 0;

	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		v = v * 10 + (*text - '0');
		if (v > max)
			return -1;
	}
	return v;
}

/*
 * Parse @host, "ip%scope", into @a. The text is NUL-terminated; the function
 * writes to it.
 */
static int parse_ip6(struct tdm_addr *a, char *host, in_port_t port)
{
	char *percent = strchr(host, '%');
	struct in6_addr ip6;
	int64_t scope = 0;

	if (percent) {
		*percent = '\0';
		scope = parse_number(percent + 1, UINT32_MAX);
		if (scope < 0)
			return -FI_EINVAL;
	}
	if (inet_pton(AF_INET6, host, &ip6) != 1)
		return -FI_EINVAL;
	set_in6(a, &ip6, port, (uint32_t)scope);
	return 0;
}

/*
 * Parse @tail, "ip:port" or, with @v6, "[ip%scope]:port", into @a. The text is
 * NUL-terminated; the function writes to it.
 */
static int parse_tail(struct tdm_addr *a, char *tail, int v6)
{
	char *host = tail, *colon = strrchr(tail, ':'), *end;
	struct in_addr ip;
	int64_t port;

	if (!colon)
		return -FI_EINVAL;
	*colon = '\0';
	port = parse_number(colon + 1, 65535);
	if (port < 0)
		return -FI_EINVAL;
	if (!v6) {
		if (inet_pton(AF_INET, host, &ip) != 1)
			return -FI_EINVAL;
		set_in(a, ip, htons((uint16_t)port));
		return 0;
	}
	end = colon - 1;
	if (*host++ != '[' || end < host || *end != ']')
		return -FI_EINVAL;
	*end = '\0';
	return parse_ip6(a, host, htons((uint16_t)port));
}

int tdm_addr_from_bind_str(struct tdm_addr *a, const char *str, size_t len)
{
	size_t n = str ? strnlen(str, len) : 0;
	struct tdm_addr tmp;
	char tail[TAIL_BYTES];
	size_t skip;
	int v6, ret;

	if (n > sizeof(IN_PREFIX) - 1 &&
	    !memcmp(str, IN_PREFIX, sizeof(IN_PREFIX) - 1)) {
		skip = sizeof(IN_PREFIX) - 1;
		v6 = 0;
	} else if (n > sizeof(IN6_PREFIX) - 1 &&
		   !memcmp(str, IN6_PREFIX, sizeof(IN6_PREFIX) - 1)) {
		skip = sizeof(IN6_PREFIX) - 1;
		v6 = 1;
	} else {
		return -FI_EINVAL;
	}
	if (n - skip >= sizeof(tail))
		return -FI_EINVAL;
	memcpy(tail, str + skip, n - skip);
	tail[n - skip] = '\0';
	ret = parse_tail(&tmp, tail, v6);
	if (!ret)
		*a = tmp;
	return ret;
}

int tdm_addr_from_str(struct tdm_addr *a, const char *str, size_t len)
{
	struct tdm_addr tmp;
	int ret = tdm_addr_from_bind_str(&tmp, str, len);

	if (ret)
		return ret;
	if (is_wildcard(&tmp) || !tdm_addr_port(&tmp))
		return -FI_EINVAL;
	*a = tmp;
	return 0;
}

int tdm_addr_from_node(struct tdm_addr *a, const char *node)
{
	size_t n = node ? strnlen(node, TAIL_BYTES) : 0;
	char host[TAIL_BYTES];
	struct tdm_addr tmp;
	struct in_addr ip;

	if (!n || n >= sizeof(host))
		return -FI_EINVAL;
	memcpy(host, node, n);
	host[n] = '\0';
	if (inet_pton(AF_INET, host, &ip) == 1) {
		set_in(&tmp, ip, 0);
	} else if (parse_ip6(&tmp, host, 0)) {
		return -FI_EINVAL;
	}
	if (is_wildcard(&tmp))
		return -FI_EINVAL;
	*a = tmp;
	return 0;
}

int tdm_addr_parse_port(const char *service)
{
	int64_t port = parse_number(service, 65535);

	return port > 0 ? (int)port : -FI_EINVAL;
}

int tdm_addr_step(struct tdm_addr *a, uint64_t n)
{
	struct in6_addr ip6;
	struct in_addr ip;
	int i;

	if (a->u.sa.sa_family == AF_INET) {
		n += ntohl(a->u.in.sin_addr.s_addr);
		if (n > UINT32_MAX)
			return -FI_EINVAL;
		ip.s_addr = htonl((uint32_t)n);
		set_in(a, ip, a->u.in.sin_port);
		return 0;
	}
	ip6 = a->u.in6.sin6_addr;
	for (i = 15; i >= 0 && n; i--) {
		n += ip6.s6_addr[i];
		ip6.s6_addr[i] = (uint8_t)n;
		n >>= 8;
	}
	if (n)
		return -FI_EINVAL;
	set_in6(a, &ip6, a->u.in6.sin6_port, a->u.in6.sin6_scope_id);
	return 0;
}

/*
 * Add @n to the @digits decimal digits that end before @end. Returns the carry,
 * which the caller writes in front of them.
 */
static uint64_t add_digits(char *end, size_t digits, uint64_t n)
{
	while (digits-- && n) {
		unsigned int d;

		end--;
		d = (unsigned int)(*end - '0') + (unsigned int)(n % 10);
		n = n / 10 + d / 10;
		*end = (char)('0' + d % 10);
	}
	return n;
}

int tdm_addr_name_step(const char *name, uint64_t n, char *buf, size_t size)
{
	size_t len = strnlen(name, size), digits = 0;
	char front[24];
	uint64_t rest;
	int extra = 0;

	if (len >= size)
		return -FI_EINVAL;
	while (digits < len && name[len - digits - 1] >= '0' &&
	       name[len - digits - 1] <= '9')
		digits++;
	if (n && !digits)
		return -FI_EINVAL;
	memcpy(buf, name, len + 1);
	rest = add_digits(buf + len, digits, n);
	if (rest)
		extra = snprintf(front, sizeof(front), "%llu",
				 (unsigned long long)rest);
	if (len + (size_t)extra >= size)
		return -FI_EINVAL;
	memmove(buf + len - digits + extra, buf + len - digits, digits + 1);
	memcpy(buf + len - digits, front, (size_t)extra);
	return 0;
}

size_t tdm_addr_format(const struct tdm_addr *a, char *buf, size_t size)
{
	char ip[INET6_ADDRSTRLEN];
	int n;

	if (a->u.sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a->u.in.sin_addr, ip, sizeof(ip));
		n = snprintf(buf, size, "%s%s:%u", IN_PREFIX, ip,
			     tdm_addr_port(a));
	} else if (a->u.sa.sa_family == AF_INET6) {
		uint32_t scope = a->u.in6.sin6_scope_id;

		inet_ntop(AF_INET6, &a->u.in6.sin6_addr, ip, sizeof(ip));
		n = scope ? snprintf(buf, size, "%s[%s%%%u]:%u", IN6_PREFIX, ip,
				     scope, tdm_addr_port(a)) :
			    snprintf(buf, size, "%s[%s]:%u", IN6_PREFIX, ip,
				     tdm_addr_port(a));
	} else {
		n = snprintf(buf, size, "%s", "");
	}
	return (size_t)n + 1;
}

const char *tdm_addr_text(const struct tdm_addr *a, char *buf, size_t size)
{
	const char *slashes;

	tdm_addr_format(a, buf, size);
	slashes = strstr(buf, "//");
	return slashes ? slashes + 2 : buf;
}

size_t tdm_addr_encode(const struct tdm_addr *a, uint32_t format, void *buf,
		       size_t size)
{
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 };
	char text[TDM_ADDR_STR_BYTES];
	const void *from = a;
	size_t len = tdm_addr_len(a);

	if (format == FI_ADDR_STR) {
		len = tdm_addr_format(a, text, sizeof(text));
		from = text;
	} else if (format == FI_SOCKADDR_IN6 && a->u.sa.sa_family == AF_INET) {
		mapped.sin6_port = a->u.in.sin_port;
		mapped.sin6_addr.s6_addr[10] = 0xff;
		mapped.sin6_addr.s6_addr[11] = 0xff;
		memcpy(&mapped.sin6_addr.s6_addr[12], &a->u.in.sin_addr, 4);
		from = &mapped;
		len = sizeof(mapped);
	}
	if (size)
		memcpy(buf, from, tdm_min(len, size));
	return len;
}

int tdm_addr_equal(const struct tdm_addr *a, const struct tdm_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Finaliser of SplitMix64: every input bit reaches every output bit. */
uint16_t tdm_addr_port(const struct tdm_addr *a)
{
	return ntohs(a->u.sa.sa_family == AF_INET6 ? a->u.in6.sin6_port :
						     a->u.in.sin_port);
}

void tdm_addr_set_port(struct tdm_addr *a, uint16_t port)
{
	if (a->u.sa.sa_family == AF_INET6)
		a->u.in6.sin6_port = htons(port);
	else
		a->u.in.sin_port = htons(port);
}

int tdm_addr_same_ip(const struct tdm_addr *a, const struct tdm_addr *b)
{
	if (a->u.sa.sa_family != b->u.sa.sa_family)
		return 0;
	if (a->u.sa.sa_family == AF_INET)
		return a->u.in.sin_addr.s_addr == b->u.in.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->u.in6.sin6_addr, &b->u.in6.sin6_addr) &&
	       a->u.in6.sin6_scope_id == b->u.in6.sin6_scope_id;
}
