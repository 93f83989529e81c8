/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans that compute: barrier, reduce, allreduce, reduce-scatter. See build.h.
 * A barrier is an allreduce of nothing.
 *
 * No lock, no state.
 */
#include "coll/build.h"

#include "coll/hosts.h"

/*
 * Reduce @d of all into that of @root: on each host, then from leader to
 * leader.
 */
static void merge(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		  uint32_t root, struct tdm_coll_data d, struct tdm_coll_at tmp)
{
	const struct tdm_coll_team leaders = tdm_coll_leaders(map, root);
	const struct tdm_coll_team here = tdm_coll_here(map);
	uint32_t lead = leaders.rank[map->host[map->me]];

	tdm_coll_team_reduce(p, &here, tdm_coll_place_in(map, lead), d, tmp);
	tdm_coll_team_reduce(p, &leaders, map->host[root], d, tmp);
}

static void merge_for_all(struct tdm_coll_plan *p,
			  const struct tdm_coll_map *map,
			  struct tdm_coll_data d, struct tdm_coll_at tmp)
{
	const struct tdm_coll_team leaders = tdm_coll_leaders(map, 0);
	const struct tdm_coll_team here = tdm_coll_here(map);
	uint32_t lead = leaders.rank[map->host[map->me]];
	uint32_t first = tdm_coll_place_in(map, lead);

	if (map->hosts == 1) {
		tdm_coll_team_allreduce(p, &here, d, tmp);
		return;
	}
	tdm_coll_team_reduce(p, &here, first, d, tmp);
	tdm_coll_team_allreduce(p, &leaders, d, tmp);
	tdm_coll_team_bcast(p, &here, first, d);
}

void tdm_coll_barrier(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		      const struct tdm_coll_job *job)
{
	const struct tdm_coll_data none = { tdm_coll_tmp(0), 0, 1 };

	(void)job;
	merge_for_all(p, map, none, none.at);
}

void tdm_coll_allreduce(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
			const struct tdm_coll_job *job)
{
	const struct tdm_coll_data d = { tdm_coll_out(0), job->block,
					 job->unit };

	tdm_coll_plan_copy(p, d.at, tdm_coll_in(0), d.len);
	merge_for_all(p, map, d, tdm_coll_plan_tmp(p, d.len));
}

void tdm_coll_reduce(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		     const struct tdm_coll_job *job)
{
	struct tdm_coll_data d = { tdm_coll_out(0), job->block, job->unit };

	/* only the root has a result buffer */
	if (map->me != job->root)
		d.at = tdm_coll_plan_tmp(p, d.len);
	tdm_coll_plan_copy(p, d.at, tdm_coll_in(0), d.len);
	merge(p, map, job->root, d, tdm_coll_plan_tmp(p, d.len));
}

/* Each gets its block of the others, one after the other. */
static void each_its_block(struct tdm_coll_plan *p,
			   const struct tdm_coll_map *map,
			   const struct tdm_coll_job *job)
{
	struct tdm_coll_at tmp = tdm_coll_plan_tmp(p, job->block);
	uint32_t n = map->size, i, to, from;

	tdm_coll_plan_copy(p, tdm_coll_out(0),
			   tdm_coll_in(map->me * job->block), job->block);
	for (i = 1; i < n; i++) {
		to = (uint32_t)(((uint64_t)map->me + i) % n);
		from = (uint32_t)(((uint64_t)map->me + n - i) % n);
		tdm_coll_plan_round(p);
		tdm_coll_plan_recv(p, from, tmp, job->block);
		tdm_coll_plan_send(p, to, tdm_coll_in(to * job->block),
				   job->block);
		tdm_coll_plan_reduce(p, tdm_coll_out(0), tmp, job->block);
	}
}

void tdm_coll_reduce_scatter(struct tdm_coll_plan *p,
			     const struct tdm_coll_map *map,
			     const struct tdm_coll_job *job)
{
	struct tdm_coll_job from_first = { job->block, job->unit, 0 };
	struct tdm_coll_data d = { tdm_coll_out(0), map->size * job->block,
				   job->unit };

	if (map->hosts == 1 || job->block >= TDM_COLL_BIG_BYTES) {
		each_its_block(p, map, job);
		return;
	}
	d.at = tdm_coll_plan_tmp(p, d.len);
	tdm_coll_plan_copy(p, d.at, tdm_coll_in(0), d.len);
	merge(p, map, 0, d, tdm_coll_plan_tmp(p, d.len));
	if (!map->me)
		tdm_coll_deal(p, map, &from_first, d.at);
	else
		tdm_coll_take(p, map, &from_first);
}
