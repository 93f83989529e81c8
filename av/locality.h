/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells whether an IP address belongs to this network namespace. A peer with
 * such an address may be local; the attach decides (shm/attach.c).
 */
#ifndef TDM_AV_LOCALITY_H
#define TDM_AV_LOCALITY_H

#include "av/addr.h"

/* tdm_locality_is_here() for addresses that are not loopback addresses. */
int tdm_locality_lists(const struct tdm_addr *a);

/*
 * Not 0 when the IP of @a is one of this network namespace's own. The list of
 * interface addresses is read at the first call, and again when @a is not in it
 * and the last reading is more than a second ago. Thread-safe.
 */
static inline int tdm_locality_is_here(const struct tdm_addr *a)
{
	return tdm_addr_is_loopback(a) || tdm_locality_lists(a);
}

/*
 * Returns a summary of the list, for checks of many addresses; reads the list
 * again if the last reading is more than a second ago. Each address of this
 * namespace sets one bit of 64.
 */
uint64_t tdm_locality_filter(void);

/* 0 when @a is certainly not in the list that @filter summarises. */
static inline int tdm_locality_may_be(uint64_t filter, const struct tdm_addr *a)
{
	return tdm_addr_is_loopback(a) ||
	       (filter >> (tdm_addr_ip_hash(a) & 63) & 1);
}

#endif /* TDM_AV_LOCALITY_H */
