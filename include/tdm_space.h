/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fields of an fi_addr_t beside the index: fi_av(3) "PEER GROUPS",
 * fi_rx_addr(3), and authorization keys. Pure; both tiers use it.
 *
 * 	63 .. 64 - c	receive context, c = rx_ctx_bits of the AV
 * 	     .. 32	group, from fi_group_addr(3)
 * 	31 ..  0	index of the AV; from TDM_SPACE_WILD on, a wildcard:
 * 			TDM_SPACE_WILD + k	anybody by key k, k > 0
 * 			TDM_SPACE_ANY		anybody
 *
 * FI_ADDR_UNSPEC is anybody of group 0. A *match address* is an address without
 * a receive context, in which anybody of group 0 is TDM_SPACE_ANY. Matching
 * compares match addresses. fi_group_addr(FI_ADDR_UNSPEC, g) is FI_ADDR_UNSPEC,
 * as libfabric defines it; anybody of group g is fi_group_addr(TDM_SPACE_ANY,
 * g).
 */
#ifndef TDM_SPACE_H
#define TDM_SPACE_H

#include <rdma/fabric.h>

#include "base/base.h"

#define TDM_SPACE_WILD 0x80000000u
#define TDM_SPACE_ANY 0xffffffffu

/*
 * The largest group. In a group with all 32 bits set, the wildcard for any peer
 * would be FI_ADDR_UNSPEC.
 */
#define TDM_SPACE_GROUP_MOST 0xfffffffeu

/*
 * The group of the messages of collective operations, in domains with
 * FI_COLLECTIVE. Groups of the application are lower there.
 */
#define TDM_COLL_GROUP 0x00800000u

/* The layout of the addresses of an AV. */
struct tdm_space {
	int ctx_bits;	    /* rx_ctx_bits */
	uint32_t max_group; /* of the domain; 0: no groups */
};

/* The parts of an address. */
struct tdm_place {
	fi_addr_t addr; /* bits 31 .. 0 */
	uint32_t group;
	uint32_t ctx;
};

/* Returns how many bits a group number up to @max needs. */
static inline int tdm_space_group_bits(uint32_t max)
{
	return max ? 32 - __builtin_clz(max) : 0;
}

static inline int tdm_space_is_wild(fi_addr_t addr)
{
	return (int)(addr >> 31 & 1);
}

/* Returns the match address with the low 32 bits @low, in the group of @of. */
static inline fi_addr_t tdm_space_in_group(fi_addr_t of, uint32_t low)
{
	return (of & ~(fi_addr_t)UINT32_MAX) | low;
}

/*
 * Returns the wildcard for peers with key number @key (0: for any peer), in the
 * group of @of.
 */
static inline fi_addr_t tdm_space_by_key(fi_addr_t of, uint32_t key)
{
	return tdm_space_in_group(of,
				  key ? TDM_SPACE_WILD | key : TDM_SPACE_ANY);
}

/* Returns the key number of @addr if it is a wildcard by key, else 0. */
static inline uint32_t tdm_space_key(fi_addr_t addr)
{
	uint32_t low = (uint32_t)addr;

	return low > TDM_SPACE_WILD && low < TDM_SPACE_ANY ?
		       low - TDM_SPACE_WILD :
		       0;
}

/* Returns @addr as a match address: without its receive context. */
static inline fi_addr_t tdm_space_match_addr(fi_addr_t addr)
{
	return addr == FI_ADDR_UNSPEC ? TDM_SPACE_ANY : addr;
}

/* Returns the source that a completion reports for @addr. */
static inline fi_addr_t tdm_space_source(fi_addr_t addr)
{
	return tdm_space_is_wild(addr) ? FI_ADDR_UNSPEC : (uint32_t)addr;
}

/* Returns the match address of @addr, an index or FI_ADDR_UNSPEC, in @group. */
static inline fi_addr_t tdm_space_of(fi_addr_t addr, uint32_t group)
{
	return (fi_addr_t)group << 32 | (uint32_t)addr;
}

/* Split @addr into *@place. Returns 0, or -1: the group is too large. */
static inline int tdm_space_split(const struct tdm_space *space, fi_addr_t addr,
				  struct tdm_place *place)
{
	int bits = space->ctx_bits;

	addr = tdm_space_match_addr(addr);
	place->ctx = bits ? (uint32_t)(addr >> (64 - bits)) : 0;
	addr &= ~0ull >> bits;
	place->group = (uint32_t)(addr >> 32);
	place->addr = (uint32_t)addr;
	return place->group > space->max_group ? -1 : 0;
}

/* Returns the AV index in @addr, an address of @space. */
static inline fi_addr_t tdm_space_index(const struct tdm_space *space,
					fi_addr_t addr)
{
	if (!space->ctx_bits && !space->max_group)
		return addr;
	return (uint32_t)addr;
}

#endif /* TDM_SPACE_H */
