/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans that move data without looking at them, and the map. See build.h;
 * reduce.c has the plans that compute.
 *
 * No lock, no state.
 */
#include "coll/build.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "coll/hosts.h"

/* ---- the map ------------------------------------------------------------- */

struct keyed {
	uint64_t key;
	uint32_t rank;
};

static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/*
 * Fill in @map from k[size], which is sorted. Hosts are numbered in the order of
 * their keys, which is the same at all members.
 */
static void arrange(struct tdm_coll_map *map, const struct keyed *k)
{
	uint32_t i;

	for (i = 0; i < map->size; i++) {
		if (!i || k[i].key != k[i - 1].key)
			map->first[map->hosts++] = i;
		map->order[i] = k[i].rank;
		map->place[k[i].rank] = i;
		map->host[k[i].rank] = map->hosts - 1;
	}
	map->first[map->hosts] = map->size;
}

int tdm_coll_map_init(struct tdm_coll_map *map, uint32_t size, uint32_t me,
		      const uint64_t *host_key)
{
	struct keyed *k = malloc(size * sizeof(*k));
	uint32_t *all = malloc((5 * (size_t)size + 1) * sizeof(*all)), i;

	memset(map, 0, sizeof(*map));
	if (!k || !all) {
		free(k);
		free(all);
		return -FI_ENOMEM;
	}
	for (i = 0; i < size; i++) {
		k[i].key = host_key[i];
		k[i].rank = i;
	}
	qsort(k, size, sizeof(*k), by_key);
	map->size = size;
	map->me = me;
	map->host = all;
	map->order = all + size;
	map->place = all + 2 * (size_t)size;
	map->lead = all + 3 * (size_t)size;
	map->first = all + 4 * (size_t)size;
	arrange(map, k);
	free(k);
	return 0;
}

void tdm_coll_map_fini(struct tdm_coll_map *map)
{
	free(map->host);
	memset(map, 0, sizeof(*map));
}

static struct tdm_coll_team all_of(const struct tdm_coll_map *map)
{
	const struct tdm_coll_team all = { map->order, map->size,
					   map->place[map->me],
					   map->hosts == 1 };

	return all;
}

struct tdm_coll_team tdm_coll_host_team(const struct tdm_coll_map *map,
					uint32_t host)
{
	const struct tdm_coll_team team = {
		map->order + map->first[host],
		map->first[host + 1] - map->first[host],
		map->host[map->me] == host ?
			map->place[map->me] - map->first[host] :
			UINT32_MAX,
		1
	};

	return team;
}

struct tdm_coll_team tdm_coll_leaders(const struct tdm_coll_map *map,
				      uint32_t root)
{
	uint32_t mine = map->host[map->me], h;
	struct tdm_coll_team team = { map->lead, map->hosts, UINT32_MAX, 0 };

	for (h = 0; h < map->hosts; h++)
		map->lead[h] = map->host[root] == h ? root :
						      map->order[map->first[h]];
	if (map->lead[mine] == map->me)
		team.me = mine;
	return team;
}

/* ---- one block for all --------------------------------------------------- */

/* Broadcast @d from @root: from leader to leader, then on each host. */
static void spread(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		   uint32_t root, struct tdm_coll_data d)
{
	const struct tdm_coll_team leaders = tdm_coll_leaders(map, root);
	const struct tdm_coll_team here = tdm_coll_here(map);
	uint32_t lead = leaders.rank[map->host[map->me]];

	tdm_coll_team_bcast(p, &leaders, map->host[root], d);
	tdm_coll_team_bcast(p, &here, tdm_coll_place_in(map, lead), d);
}

void tdm_coll_broadcast(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
			const struct tdm_coll_job *job)
{
	const struct tdm_coll_data d = { tdm_coll_out(0), job->block,
					 job->unit };

	spread(p, map, job->root, d);
}

/* ---- one block of or for each -------------------------------------------- */

/*
 * Whether the blocks of a host travel in one message. Large ones would be copied
 * twice more than they need to.
 */
static int in_bundles(const struct tdm_coll_map *map,
		      const struct tdm_coll_job *job)
{
	return map->hosts > 1 && job->block < TDM_COLL_BIG_BYTES;
}

/* Returns the place of the block of @rank in @buf, which is in rank order. */
static struct tdm_coll_at block(struct tdm_coll_at buf, uint32_t rank,
				const struct tdm_coll_job *job)
{
	return tdm_coll_behind(buf, rank * job->block);
}

/*
 * The root receives the block of each member that sends to it, and bundles into
 * @bundle, which is in the order of the map; then it puts those in their places.
 */
static void collect(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		    const struct tdm_coll_job *job, struct tdm_coll_at bundle)
{
	int bundles = in_bundles(map, job);
	uint32_t i, rank, h;

	tdm_coll_plan_round(p);
	tdm_coll_plan_copy(p, block(tdm_coll_out(0), map->me, job),
			   tdm_coll_in(0), job->block);
	for (rank = 0; rank < map->size; rank++) {
		if (rank != map->me &&
		    (!bundles || map->host[rank] == map->host[map->me]))
			tdm_coll_plan_recv(p, rank,
					   block(tdm_coll_out(0), rank, job),
					   job->block);
	}
	if (!bundles)
		return;
	for (h = 0; h < map->hosts; h++) {
		if (h != map->host[map->me])
			tdm_coll_plan_recv(p, map->lead[h],
					   block(bundle, map->first[h], job),
					   (map->first[h + 1] - map->first[h]) *
						   job->block);
	}
	for (i = 0; i < map->size; i++) {
		if (map->host[map->order[i]] != map->host[map->me])
			tdm_coll_plan_copy(
				p, block(tdm_coll_out(0), map->order[i], job),
				block(bundle, i, job), job->block);
	}
}

void tdm_coll_gather(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		     const struct tdm_coll_job *job)
{
	const struct tdm_coll_team leaders = tdm_coll_leaders(map, job->root);
	const struct tdm_coll_team here = tdm_coll_here(map);
	uint32_t lead = leaders.rank[map->host[map->me]], i;
	struct tdm_coll_at bundle = tdm_coll_tmp(0);

	if (map->me == job->root) {
		if (in_bundles(map, job))
			bundle = tdm_coll_plan_tmp(p, map->size * job->block);
		collect(p, map, job, bundle);
		return;
	}
	if (!in_bundles(map, job) || map->me != lead) {
		tdm_coll_plan_send(p, in_bundles(map, job) ? lead : job->root,
				   tdm_coll_in(0), job->block);
		return;
	}
	bundle = tdm_coll_plan_tmp(p, here.count * job->block);
	tdm_coll_plan_copy(p, block(bundle, here.me, job), tdm_coll_in(0),
			   job->block);
	for (i = 0; i < here.count; i++) {
		if (i != here.me)
			tdm_coll_plan_recv(p, here.rank[i],
					   block(bundle, i, job), job->block);
	}
	tdm_coll_plan_round(p);
	tdm_coll_plan_send(p, job->root, bundle, here.count * job->block);
}

void tdm_coll_deal(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		   const struct tdm_coll_job *job, struct tdm_coll_at from)
{
	int bundles = in_bundles(map, job);
	struct tdm_coll_at bundle = tdm_coll_tmp(0);
	uint32_t i, rank, h, mine = map->host[map->me];

	tdm_coll_plan_round(p);
	tdm_coll_plan_copy(p, tdm_coll_out(0), block(from, map->me, job),
			   job->block);
	if (bundles)
		bundle = tdm_coll_plan_tmp(p, map->size * job->block);
	for (i = 0; bundles && i < map->size; i++) {
		rank = map->order[i];
		if (map->host[rank] != mine)
			tdm_coll_plan_copy(p, block(bundle, i, job),
					   block(from, rank, job), job->block);
	}
	for (h = 0; bundles && h < map->hosts; h++) {
		if (h != mine)
			tdm_coll_plan_send(p, map->lead[h],
					   block(bundle, map->first[h], job),
					   (map->first[h + 1] - map->first[h]) *
						   job->block);
	}
	for (rank = 0; rank < map->size; rank++) {
		if (rank != map->me && (!bundles || map->host[rank] == mine))
			tdm_coll_plan_send(p, rank, block(from, rank, job),
					   job->block);
	}
}

void tdm_coll_take(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		   const struct tdm_coll_job *job)
{
	const struct tdm_coll_team here = tdm_coll_here(map);
	uint32_t lead = map->lead[map->host[map->me]], i;
	struct tdm_coll_at bundle;

	tdm_coll_plan_round(p);
	if (!in_bundles(map, job) || map->me != lead) {
		tdm_coll_plan_recv(p, in_bundles(map, job) ? lead : job->root,
				   tdm_coll_out(0), job->block);
		return;
	}
	bundle = tdm_coll_plan_tmp(p, here.count * job->block);
	tdm_coll_plan_recv(p, job->root, bundle, here.count * job->block);
	tdm_coll_plan_copy(p, tdm_coll_out(0), block(bundle, here.me, job),
			   job->block);
	for (i = 0; i < here.count; i++) {
		if (i != here.me)
			tdm_coll_plan_send(p, here.rank[i],
					   block(bundle, i, job), job->block);
	}
}

void tdm_coll_scatter(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		      const struct tdm_coll_job *job)
{
	(void)tdm_coll_leaders(map, job->root);
	if (map->me == job->root)
		tdm_coll_deal(p, map, job, tdm_coll_in(0));
	else
		tdm_coll_take(p, map, job);
}

/* ---- one block of each for all ------------------------------------------- */

struct blocks {
	const struct tdm_coll_map *map;
	const struct tdm_coll_job *job;
	struct tdm_coll_at at;
};

static size_t block_of(const void *arg, uint32_t i, struct tdm_coll_at *at)
{
	const struct blocks *b = arg;

	*at = block(b->at, b->map->order[i], b->job);
	return b->job->block;
}

static size_t bundle_of(const void *arg, uint32_t host, struct tdm_coll_at *at)
{
	const struct blocks *b = arg;
	const uint32_t *first = b->map->first;

	*at = block(b->at, first[host], b->job);
	return (first[host + 1] - first[host]) * b->job->block;
}

/* The leader gets the blocks of its host. */
static void gather_here(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
			const struct tdm_coll_job *job, uint32_t lead)
{
	const struct tdm_coll_team here = tdm_coll_here(map);
	uint32_t i;

	if (map->me != lead) {
		tdm_coll_plan_send(p, lead,
				   block(tdm_coll_out(0), map->me, job),
				   job->block);
		return;
	}
	for (i = 0; i < here.count; i++) {
		if (i != here.me)
			tdm_coll_plan_recv(p, here.rank[i],
					   block(tdm_coll_out(0), here.rank[i],
						 job),
					   job->block);
	}
}

/* The leaders exchange the blocks of their hosts, one bundle each. */
static void swap_bundles(struct tdm_coll_plan *p,
			 const struct tdm_coll_map *map,
			 const struct tdm_coll_job *job,
			 const struct tdm_coll_team *leaders)
{
	struct blocks all = { map, job,
			      tdm_coll_plan_tmp(p, map->size * job->block) };
	uint32_t mine = map->host[map->me], i, rank;

	for (i = map->first[mine]; i < map->first[mine + 1]; i++)
		tdm_coll_plan_copy(p, block(all.at, i, job),
				   block(tdm_coll_out(0), map->order[i], job),
				   job->block);
	tdm_coll_team_ring(p, leaders, bundle_of, &all);
	for (i = 0; i < map->size; i++) {
		rank = map->order[i];
		if (map->host[rank] != mine)
			tdm_coll_plan_copy(p, block(tdm_coll_out(0), rank, job),
					   block(all.at, i, job), job->block);
	}
}

void tdm_coll_allgather(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
			const struct tdm_coll_job *job)
{
	const struct tdm_coll_team leaders = tdm_coll_leaders(map, 0);
	const struct tdm_coll_team here = tdm_coll_here(map);
	const struct tdm_coll_team all = all_of(map);
	const struct blocks each = { map, job, tdm_coll_out(0) };
	const struct tdm_coll_data whole = { tdm_coll_out(0),
					     map->size * job->block,
					     job->unit };
	uint32_t lead = leaders.rank[map->host[map->me]];

	tdm_coll_plan_copy(p, block(tdm_coll_out(0), map->me, job),
			   tdm_coll_in(0), job->block);
	if (map->hosts == map->size ||
	    (map->hosts == 1 && whole.len >= TDM_COLL_BIG_BYTES)) {
		tdm_coll_team_ring(p, &all, block_of, &each);
		return;
	}
	gather_here(p, map, job, lead);
	if (map->me == lead && map->hosts > 1)
		swap_bundles(p, map, job, &leaders);
	tdm_coll_plan_round(p);
	tdm_coll_team_bcast(p, &here, tdm_coll_place_in(map, lead), whole);
}

/* ---- making a group ------------------------------------------------------ */

/*
 * Exchange empty messages with the parent and the children, so that each learns
 * of the loss of the other. @low: the lowest bit of the caller's rank.
 */
static void call_neighbours(struct tdm_coll_plan *p,
			    const struct tdm_coll_map *map, uint32_t low)
{
	const struct tdm_coll_at none = tdm_coll_out(0);
	uint32_t bit;

	if (map->me) {
		tdm_coll_plan_send(p, map->me - low, none, 0);
		tdm_coll_plan_recv(p, map->me - low, none, 0);
	}
	for (bit = low >> 1; bit; bit >>= 1) {
		if (map->me + bit >= map->size)
			continue;
		tdm_coll_plan_send(p, map->me + bit, none, 0);
		tdm_coll_plan_recv(p, map->me + bit, none, 0);
	}
}

void tdm_coll_meet(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		   const struct tdm_coll_job *job)
{
	uint32_t v = map->me, n = map->size, low = 1, bit;
	const struct tdm_coll_at all = tdm_coll_out(0);

	/* the lowest bit of v, or a power of two that is not below n */
	while (low < n && !(v & low))
		low <<= 1;
	call_neighbours(p, map, low);
	tdm_coll_plan_round(p);
	for (bit = low >> 1; bit; bit >>= 1) {
		/* the blocks of the child and of all below it */
		if (v + bit < n)
			tdm_coll_plan_recv(p, v + bit, block(all, v + bit, job),
					   tdm_min(bit, n - v - bit) *
						   job->block);
	}
	tdm_coll_plan_round(p);
	if (v) {
		tdm_coll_plan_send(p, v - low, block(all, v, job),
				   tdm_min(low, n - v) * job->block);
		tdm_coll_plan_recv(p, v - low, all, n * job->block);
		tdm_coll_plan_round(p);
	}
	for (bit = low >> 1; bit; bit >>= 1) {
		if (v + bit < n)
			tdm_coll_plan_send(p, v + bit, all, n * job->block);
	}
}
