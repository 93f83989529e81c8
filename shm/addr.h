/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket addresses as names of endpoints, made from untrusted bytes.
 */
#ifndef TDM_SHM_ADDR_H
#define TDM_SHM_ADDR_H

#include <stdint.h>
#include <string.h>

#include "base/base.h"

/* An endpoint's address; unused bytes are 0, so that memcmp() compares. */
struct tdm_shm_addr {
	uint32_t len; /* bytes: 16 or 28; 0: unset */
	uint8_t sa[28];
	/*
	 * number, in the AV, of the key by which the endpoint is reached; 0: no
	 * key, or the endpoint's own
	 */
	uint32_t key;
};

/*
 * Returns 0 when @sa is a sockaddr_in or sockaddr_in6 of @len bytes with a
 * port, else -1.
 */
int tdm_shm_sockaddr_check(const void *sa, size_t len);

/*
 * Set *@a to the address of @len bytes at @sa, without a key. Errors:
 * -FI_EINVAL.
 */
int tdm_shm_addr_set(struct tdm_shm_addr *a, const void *sa,
		     size_t len) tdm_must_check;

/*
 * Set *@a to an address to which nothing leads but our sockets: a unique local
 * IPv6 address (RFC 4193) at random, and a port. Errors: -errno.
 */
int tdm_shm_addr_choose(struct tdm_shm_addr *a) tdm_must_check;

/*
 * Write the IP of @a as text to @buf of @len bytes, at least INET6_ADDRSTRLEN.
 * Returns @buf.
 */
const char *tdm_shm_addr_ip(const struct tdm_shm_addr *a, char *buf,
			    size_t len);
unsigned tdm_shm_addr_port(const struct tdm_shm_addr *a);

/* Not 0 when @a and @b name the same endpoint, whichever keys they have. */
static inline int tdm_shm_addr_same(const struct tdm_shm_addr *a,
				    const struct tdm_shm_addr *b)
{
	return a->len == b->len && !memcmp(a->sa, b->sa, sizeof(a->sa));
}

static inline int tdm_shm_addr_equal(const struct tdm_shm_addr *a,
				     const struct tdm_shm_addr *b)
{
	return a->key == b->key && tdm_shm_addr_same(a, b);
}

static inline uint32_t tdm_shm_addr_hash(const struct tdm_shm_addr *a)
{
	uint64_t h = (uint64_t)a->key << 32 | a->len, w[4] = { 0 };
	int i;

	memcpy(w, a->sa, sizeof(a->sa));
	for (i = 0; i < 4; i++)
		h = (h ^ w[i]) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(h >> 32);
}

#endif /* TDM_SHM_ADDR_H */
