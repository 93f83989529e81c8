/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does an IP address belong to this network namespace? A peer with such an
 * address may be local; the attach decides (shm/attach.c).
 */
#ifndef TDM_AV_LOCALITY_H
#define TDM_AV_LOCALITY_H

#include "av/addr.h"

/* tdm_locality_is_here() of an address that is no loopback address. */
int tdm_locality_lists(const struct tdm_addr *a);

/*
 * Not 0 when the IP of @a is one of this network namespace's own. The list
 * of interface addresses is read once and again when an unknown address is
 * asked for more than a second after the last reading. Thread-safe.
 */
static inline int tdm_locality_is_here(const struct tdm_addr *a)
{
	return tdm_addr_is_loopback(a) || tdm_locality_lists(a);
}

/*
 * A summary of the list, for checks of many addresses; the list is read again
 * first, as above. Each address of this namespace sets one bit of 64.
 */
uint64_t tdm_locality_filter(void);

/* 0 when @a is certainly not in the list that @filter summarises. */
static inline int tdm_locality_may_be(uint64_t filter, const struct tdm_addr *a)
{
	return tdm_addr_is_loopback(a) ||
	       (filter >> (tdm_addr_ip_hash(a) & 63) & 1);
}

#endif /* TDM_AV_LOCALITY_H */
