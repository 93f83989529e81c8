/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plans of the operations of fi_collective(3), by the hosts of the members:
 * members of one host work together first, and one of them, their leader, then
 * exchanges with the leaders of other hosts, so that data cross the network once
 * per host where that is possible.
 *
 * No lock, no state.
 */
#ifndef TDM_COLL_BUILD_H
#define TDM_COLL_BUILD_H

#include "coll/plan.h"

/* The members of a group by host. All members have the same map but for @me. */
struct tdm_coll_map {
	uint32_t size; /* members */
	uint32_t me;   /* the caller's rank; the one field that differs */
	uint32_t hosts;
	uint32_t *host;	 /* host[size]: of each rank, 0 to hosts - 1 */
	uint32_t *order; /* order[size]: ranks by host, each in rank order */
	uint32_t *first; /* first[hosts + 1]: where in order[] a host begins */
	uint32_t *place; /* place[size]: where in order[] a rank is */
	uint32_t *lead;	 /* lead[hosts]: for a plan, the leader of each host */
};

/*
 * Fill in @map for @size members of which member i is on the host with the key
 * host_key[i]. Errors: -FI_ENOMEM; @map is empty then.
 */
int tdm_coll_map_init(struct tdm_coll_map *map, uint32_t size, uint32_t me,
		      const uint64_t *host_key) tdm_must_check;
void tdm_coll_map_fini(struct tdm_coll_map *map);

/*
 * An operation as one member asks for it. Each member contributes at TDM_COLL_IN and finds its
 * result at TDM_COLL_OUT; a block is block bytes, whole values of unit bytes.
 *
 *              IN                  OUT
 *   barrier    -                   -
 *   broadcast  -                   a block; the root's is sent
 *   reduce     a block             a block at the root
 *   allreduce  a block             a block
 *   scatter    a block of each     a block
 *              member, at the root
 *   gather     a block             a block of each member, at the root
 *   allgather  a block             a block of each member
 *   reduce_scatter  a block for    a block
 *              each member
 *   alltoall   a block for each    a block of each member
 *              member
 */
struct tdm_coll_job {
	size_t block, unit;
	uint32_t root;
};

/* Append the whole plan of the caller to the empty @plan. */
typedef void (*tdm_coll_build_fn)(struct tdm_coll_plan *plan,
				  const struct tdm_coll_map *map,
				  const struct tdm_coll_job *job);

void tdm_coll_barrier(struct tdm_coll_plan *plan,
		      const struct tdm_coll_map *map,
		      const struct tdm_coll_job *job);
void tdm_coll_broadcast(struct tdm_coll_plan *plan,
			const struct tdm_coll_map *map,
			const struct tdm_coll_job *job);
void tdm_coll_reduce(struct tdm_coll_plan *plan, const struct tdm_coll_map *map,
		     const struct tdm_coll_job *job);
void tdm_coll_allreduce(struct tdm_coll_plan *plan,
			const struct tdm_coll_map *map,
			const struct tdm_coll_job *job);
void tdm_coll_scatter(struct tdm_coll_plan *plan,
		      const struct tdm_coll_map *map,
		      const struct tdm_coll_job *job);
void tdm_coll_gather(struct tdm_coll_plan *plan, const struct tdm_coll_map *map,
		     const struct tdm_coll_job *job);
void tdm_coll_allgather(struct tdm_coll_plan *plan,
			const struct tdm_coll_map *map,
			const struct tdm_coll_job *job);
void tdm_coll_reduce_scatter(struct tdm_coll_plan *plan,
			     const struct tdm_coll_map *map,
			     const struct tdm_coll_job *job);
void tdm_coll_alltoall(struct tdm_coll_plan *plan,
		       const struct tdm_coll_map *map,
		       const struct tdm_coll_job *job);

/*
 * The plan by which a group is made, over one tree of all members: OUT has a
 * block for each member, of which the caller has filled in its own; at the end
 * it has those of all. Parent and child call each other first, so that each
 * learns if the other is gone. If a message does not come, its bytes are to be 0
 * and the plan goes on.
 */
void tdm_coll_meet(struct tdm_coll_plan *plan, const struct tdm_coll_map *map,
		   const struct tdm_coll_job *job);

#endif /* TDM_COLL_BUILD_H */
