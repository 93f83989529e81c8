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
#include <sys/socket.h>

#include "tdm_base.h"

/* One endpoint address; unused bytes are 0, so that memcmp() compares. */
struct tdm_addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} u;
};

/* libfabric 2.3 and later: sockaddr_in or sockaddr_in6. */
enum { TDM_SOCKADDR_IP = 17 };

/* Longest text tdm_addr_format() writes, NUL included. */
enum { TDM_ADDR_STR_BYTES = 96 };

/* Bytes of the sockaddr in @a: 16 or 28; 0 for an unset address. */
size_t tdm_addr_len(const struct tdm_addr *a);

/*
 * Take a socket address of @len bytes from outside. IPv4-mapped IPv6 becomes
 * IPv4; flow info is dropped, a scope id is kept for link-local addresses
 * only. Errors: -FI_EINVAL for a short buffer, another family, or port or
 * address 0.
 */
int tdm_addr_from_sockaddr(struct tdm_addr *a, const void *sa,
			   size_t len) tdm_must_check;

/* As above but the wildcard address and port 0 are accepted (listeners). */
int tdm_addr_from_bind(struct tdm_addr *a, const void *sa,
		       size_t len) tdm_must_check;

/*
 * Parse the FI_ADDR_STR form. @len: most bytes to read; a NUL ends earlier.
 * Errors: -FI_EINVAL.
 */
int tdm_addr_from_str(struct tdm_addr *a, const char *str,
		      size_t len) tdm_must_check;

/*
 * Write the FI_ADDR_STR form, NUL-terminated, cut to @size bytes. Returns the
 * bytes the whole text needs, NUL included. @size may be 0.
 */
size_t tdm_addr_format(const struct tdm_addr *a, char *buf, size_t size);

int tdm_addr_equal(const struct tdm_addr *a, const struct tdm_addr *b);
uint64_t tdm_addr_hash(const struct tdm_addr *a);
uint16_t tdm_addr_port(const struct tdm_addr *a);
void tdm_addr_set_port(struct tdm_addr *a, uint16_t port);

/* IPv4 127/8 or ::1. */
int tdm_addr_is_loopback(const struct tdm_addr *a);

/* Same IP, whatever the ports. */
int tdm_addr_same_ip(const struct tdm_addr *a, const struct tdm_addr *b);

#endif /* TDM_AV_ADDR_H */
