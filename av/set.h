/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vector sets, fi_av_set(3): ordered subsets of the addresses of an
 * address vector, the members of collective operations. A set holds indices of
 * its vector; an address that leaves the vector leaves its sets.
 *
 * Lock: the domain lock; taken inside by the calls of the application.
 */
#ifndef TDM_AV_SET_H
#define TDM_AV_SET_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_collective.h>

struct tdm_av;

/*
 * The addresses that fi_av_set_addr(3) returns: these bits, and a number below
 * TDM_SPACE_WILD. No endpoint has such an address, since TDM_SPACE_WILD is set.
 */
#define TDM_AV_SET_ADDR 0x5345540080000000ull

/* fi_av_set(3), a call of the application. */
int tdm_av_set_open(struct fid_av *av, struct fi_av_set_attr *attr,
		    struct fid_av_set **set, void *context);

/* Remove @index, which leaves @av, from the sets of @av. Lock: held. */
void tdm_av_set_forget(struct tdm_av *av, fi_addr_t index);

/*
 * Set *@member to the members of @set, in their order; valid until the set or
 * its vector changes. Returns their number. Lock: held.
 */
size_t tdm_av_set_members(const struct fid_av_set *set,
			  const fi_addr_t **member);

/* Returns the flags of @set that name operations, FI_BARRIER_SET and the like. */
uint64_t tdm_av_set_flags(const struct fid_av_set *set);

/* Not 0 when @set is a set of @av (not NULL). Lock: held. */
int tdm_av_set_is_of(const struct tdm_av *av, const struct fid_av_set *set);

/* Not 0 when @addr is the address of a set of @av. Lock: held. */
int tdm_av_is_set_addr(const struct tdm_av *av, fi_addr_t addr);

/* Not 0 while @av has sets: it cannot be closed. Lock: held. */
int tdm_av_has_sets(const struct tdm_av *av);

#endif /* TDM_AV_SET_H */
