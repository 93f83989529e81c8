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
		  uint32_t root, struct tdm_coll_data d)
{
	const struct tdm_coll_team leaders = tdm_coll_leaders(map, root);
	const struct tdm_coll_team here = tdm_coll_here(map);
	uint32_t lead = leaders.rank[map->host[map->me]];

	tdm_coll_team_reduce(p, &here, tdm_coll_place_in(map, lead), d);
	tdm_coll_team_reduce(p, &leaders, map->host[root], d);
}

static void merge_for_all(struct tdm_coll_plan *p,
			  const struct tdm_coll_map *map,
			  struct tdm_coll_data d)
{
	const struct tdm_coll_team leaders = tdm_coll_leaders(map, 0);
	const struct tdm_coll_team here = tdm_coll_here(map);
	uint32_t lead = leaders.rank[map->host[map->me]];
	uint32_t first = tdm_coll_place_in(map, lead);

	if (map->hosts == 1) {
		tdm_coll_team_allreduce(p, &here, d);
		return;
	}
	tdm_coll_team_reduce(p, &here, first, d);
	tdm_coll_team_allreduce(p, &leaders, d);
	tdm_coll_team_bcast(p, &here, first, d);
}

void tdm_coll_barrier(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		      const struct tdm_coll_job *job)
{
	const struct tdm_coll_data none = { tdm_coll_tmp(0), 0, 1 };

	(void)job;
	merge_for_all(p, map, none);
}

/*
 * Returns the members at @place of their hosts, by host. They are in map->lead, as
 * leaders are.
 */
static struct tdm_coll_team lane_of(const struct tdm_coll_map *map,
				    uint32_t place)
{
	uint32_t h;
	struct tdm_coll_team team = { map->lead, map->hosts, UINT32_MAX, 0 };

	for (h = 0; h < map->hosts; h++)
		map->lead[h] = map->order[map->first[h] + place];
	if (map->lead[map->host[map->me]] == map->me)
		team.me = map->host[map->me];
	return team;
}

/*
 * Into how many pieces an allreduce of @d is cut, each of which one member of each
 * host reduces with its like of the others: as many as the smallest host has
 * members. 0: leaders exchange all of it, since it is short, or hosts differ so
 * much that most members of the larger ones would have nothing to do.
 */
static uint32_t lanes(const struct tdm_coll_map *map, struct tdm_coll_data d)
{
	uint32_t least = map->size, most = 0, h, n;

	for (h = 0; h < map->hosts; h++) {
		n = map->first[h + 1] - map->first[h];
		least = tdm_min(least, n);
		most = tdm_max(most, n);
	}
	return d.len < TDM_COLL_BIG_BYTES || d.len / d.unit < least ||
			       most == 1 || most / 2 > least ?
		       0 :
		       least;
}

void tdm_coll_allreduce(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
			const struct tdm_coll_job *job)
{
	const struct tdm_coll_data d = { tdm_coll_out(0), job->block,
					 job->unit };
	const struct tdm_coll_team here = tdm_coll_here(map);
	uint32_t count = lanes(map, d);
	struct tdm_coll_team lane;

	if (!count) {
		tdm_coll_plan_copy(p, d.at, tdm_coll_in(0), d.len);
		merge_for_all(p, map, d);
		return;
	}
	tdm_coll_team_deal(p, &here, tdm_coll_in(0), d, count);
	if (here.me < count) {
		lane = lane_of(map, here.me);
		tdm_coll_team_allreduce(p, &lane,
					tdm_coll_piece(d, here.me, count));
	}
	tdm_coll_team_share(p, &here, d, count);
}

void tdm_coll_reduce(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		     const struct tdm_coll_job *job)
{
	struct tdm_coll_data d = { tdm_coll_out(0), job->block, job->unit };

	/* only the root has a result buffer */
	if (map->me != job->root)
		d.at = tdm_coll_plan_tmp(p, d.len);
	tdm_coll_plan_copy(p, d.at, tdm_coll_in(0), d.len);
	merge(p, map, job->root, d);
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
	merge(p, map, 0, d);
	if (!map->me)
		tdm_coll_deal(p, map, &from_first, d.at);
	else
		tdm_coll_take(p, map, &from_first);
}
