/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoint addresses: the socket address of an endpoint's TCP listener, in
 * the formats FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_SOCKADDR and FI_ADDR_STR
 * ("fi_sockaddr_in://ip:port", "fi_sockaddr_in6://[ip]:port").
 *
 * Pure: no state, no system call, no byte trusted. All input that comes from
 * outside as an address is parsed here and nowhere else (fuzzed).
 */
#ifndef TDM_AV_ADDR_H
#define TDM_AV_ADDR_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"

/*
 * One endpoint address; unused bytes are 0, so that memcmp() compares. The same
 * endpoint with two authorization keys has two addresses.
 */
struct tdm_addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} u;
	/* number of its key in the AV; 0: none, or the endpoint's own */
	uint32_t key;
};

/*
 * The address format FI_SOCKADDR_IP of libfabric 2.3: sockaddr_in or
 * sockaddr_in6.
 */
enum { TDM_SOCKADDR_IP = 17 };

/* Longest text tdm_addr_format() writes, NUL included. */
enum { TDM_ADDR_STR_BYTES = 96 };

/*
 * Returns the size of the sockaddr in @a: 16 or 28 bytes; 0 if @a is not set.
 */
size_t tdm_addr_len(const struct tdm_addr *a);

/*
 * Sets *@a to the socket address of @len bytes at @sa, which came from outside.
 * IPv4-mapped IPv6 becomes IPv4; flow info is dropped, a scope id is kept for
 * link-local addresses only. Errors: -FI_EINVAL for a short buffer, another
 * family, or port or address 0.
 */
int tdm_addr_from_sockaddr(struct tdm_addr *a, const void *sa,
			   size_t len) tdm_must_check;

/* As above but the wildcard address and port 0 are accepted (listeners). */
int tdm_addr_from_bind(struct tdm_addr *a, const void *sa,
		       size_t len) tdm_must_check;

/*
 * Parse an address in FI_ADDR_STR form. Reads at most @len bytes of @str; a NUL
 * ends it earlier. Errors: -FI_EINVAL.
 */
int tdm_addr_from_str(struct tdm_addr *a, const char *str,
		      size_t len) tdm_must_check;

/* As above but the wildcard address and port 0 are accepted (listeners). */
int tdm_addr_from_bind_str(struct tdm_addr *a, const char *str,
			   size_t len) tdm_must_check;

/*
 * Write the FI_ADDR_STR form, NUL-terminated, cut to @size bytes. Returns the
 * bytes the whole text needs, NUL included. @size may be 0.
 */
size_t tdm_addr_format(const struct tdm_addr *a, char *buf, size_t size);

/*
 * Write @a as IP:PORT, for the log, to @buf of @size bytes, at least
 * TDM_ADDR_STR_BYTES. Returns where in @buf the text begins.
 */
const char *tdm_addr_text(const struct tdm_addr *a, char *buf, size_t size);

/*
 * Write @a in the address format @format (FI_SOCKADDR_IN6 has IPv4 addresses
 * mapped), cut to @size bytes. Returns the bytes the whole address needs.
 */
size_t tdm_addr_encode(const struct tdm_addr *a, uint32_t format, void *buf,
		       size_t size);

int tdm_addr_equal(const struct tdm_addr *a, const struct tdm_addr *b);

static inline uint64_t tdm_addr_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline uint64_t tdm_addr_hash(const struct tdm_addr *a)
{
	uint64_t lo, hi;

	if (a->u.sa.sa_family == AF_INET)
		return tdm_addr_mix(((uint64_t)a->u.in.sin_addr.s_addr << 16 |
				     a->u.in.sin_port) ^
				    (uint64_t)a->key << 48);
	memcpy(&lo, &a->u.in6.sin6_addr.s6_addr[0], 8);
	memcpy(&hi, &a->u.in6.sin6_addr.s6_addr[8], 8);
	return tdm_addr_mix(
		lo ^ tdm_addr_mix(hi ^
				  tdm_addr_mix((uint64_t)a->u.in6.sin6_scope_id
						       << 16 |
					       a->u.in6.sin6_port) ^
				  (uint64_t)a->key << 48));
}

/* Returns a hash of the IP and its scope alone. */
static inline uint64_t tdm_addr_ip_hash(const struct tdm_addr *a)
{
	uint64_t lo, hi;

	if (a->u.sa.sa_family == AF_INET)
		return tdm_addr_mix(a->u.in.sin_addr.s_addr);
	memcpy(&lo, &a->u.in6.sin6_addr.s6_addr[0], 8);
	memcpy(&hi, &a->u.in6.sin6_addr.s6_addr[8], 8);
	return tdm_addr_mix(lo ^ tdm_addr_mix(hi ^ a->u.in6.sin6_scope_id));
}

uint16_t tdm_addr_port(const struct tdm_addr *a);
void tdm_addr_set_port(struct tdm_addr *a, uint16_t port);

/* Not 0 for an IP in 127/8, and for ::1. */
static inline int tdm_addr_is_loopback(const struct tdm_addr *a)
{
	if (a->u.sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a->u.in6.sin6_addr);
	return ntohl(a->u.in.sin_addr.s_addr) >> 24 == 127;
}

/*
 * Parse @node, a node of fi_getinfo(3) in numeric form: an IPv4 address in four
 * parts, or an IPv6 address with or without a numeric scope ("fe80::1%2"). The
 * port of @a becomes 0. Errors: -FI_EINVAL for all else, names included.
 */
int tdm_addr_from_node(struct tdm_addr *a, const char *node) tdm_must_check;

/* Parse a port in decimal digits, 1 to 65535. Returns it, or -FI_EINVAL. */
int tdm_addr_parse_port(const char *service) tdm_must_check;

/*
 * Add @n < 2^63 to the IP, with carry over all its bytes. Errors: -FI_EINVAL
 * past the last address; *@a is unchanged then.
 */
int tdm_addr_step(struct tdm_addr *a, uint64_t n) tdm_must_check;

/*
 * Write to @buf the @n-th host name after @name: the number at its end plus @n,
 * in at least as many digits ("node009" + 1 = "node010", "node9" + 1 =
 * "node10"). Writes at most @size bytes, NUL included. Errors: -FI_EINVAL when
 * @name has no number at the end (unless @n is 0), or when the result does not
 * fit.
 */
int tdm_addr_name_step(const char *name, uint64_t n, char *buf,
		       size_t size) tdm_must_check;

/* Not 0 when @a and @b have the same IP, whatever their ports. */
int tdm_addr_same_ip(const struct tdm_addr *a, const struct tdm_addr *b);

#endif /* TDM_AV_ADDR_H */
