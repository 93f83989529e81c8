/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The teams of a plan by hosts, and the halves of a scatter. Included by
 * build.c, which has them all, and reduce.c.
 *
 * No lock, no state but map->lead.
 */
#ifndef TDM_COLL_HOSTS_H
#define TDM_COLL_HOSTS_H

#include "coll/build.h"
#include "coll/team.h"

/* build.c: returns the members on @host. */
struct tdm_coll_team tdm_coll_host_team(const struct tdm_coll_map *map,
					uint32_t host);

/* Returns the members on the caller's host. */
static inline struct tdm_coll_team tdm_coll_here(const struct tdm_coll_map *map)
{
	return tdm_coll_host_team(map, map->host[map->me]);
}

/* Returns the place of @rank in the team of its host. */
static inline uint32_t tdm_coll_place_in(const struct tdm_coll_map *map,
					 uint32_t rank)
{
	return map->place[rank] - map->first[map->host[rank]];
}

/*
 * build.c: returns the leaders of all hosts, by host: @root on its own, on
 * others the lowest rank. They are in map->lead until the next call.
 */
struct tdm_coll_team tdm_coll_leaders(const struct tdm_coll_map *map,
				      uint32_t root);

/*
 * build.c: what the root and the others do in a scatter of the blocks at @from;
 * map->lead has the leaders for the root.
 */
void tdm_coll_deal(struct tdm_coll_plan *plan, const struct tdm_coll_map *map,
		   const struct tdm_coll_job *job, struct tdm_coll_at from);
void tdm_coll_take(struct tdm_coll_plan *plan, const struct tdm_coll_map *map,
		   const struct tdm_coll_job *job);

#endif /* TDM_COLL_HOSTS_H */
