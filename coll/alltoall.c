/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of fi_alltoall. See build.h.
 *
 * Short blocks go by the leaders: each gets those of its host, a row from each
 * member, exchanges one bundle with each other leader, and gives each member its
 * row. So the network carries one message for each pair of hosts. Others go
 * directly: they would be copied twice more.
 *
 * No lock, no state but map->lead.
 */
#include "coll/build.h"

#include "coll/hosts.h"

enum {
	WINDOW = 16,	    /* direct exchanges at a time */
	ROWS_BYTES = 65536, /* by leaders: the most for one host */
	ROWS_BLOCKS = 4096,
};

/* The blocks of a leader, each of job->block bytes. */
struct desk {
	struct tdm_coll_plan *p;
	const struct tdm_coll_map *map;
	const struct tdm_coll_job *job;
	struct tdm_coll_team here;
	uint32_t host;
	/*
	 * rows: of each member here, one for each rank; away and came: of each
	 * other host, those of each member there for, or from, each member here
	 */
	struct tdm_coll_at rows, away, came;
};

static struct tdm_coll_at nth(const struct desk *d, struct tdm_coll_at at,
			      size_t block)
{
	return tdm_coll_behind(at, block * d->job->block);
}

/* Returns the place of the block of member @i here for @rank, in the rows. */
static struct tdm_coll_at in_row(const struct desk *d, uint32_t i,
				 uint32_t rank)
{
	return nth(d, d->rows, (size_t)i * d->map->size + rank);
}

/* Returns where the bundle for, or from, @host is in its buffer, in blocks. */
static size_t bundle(const struct desk *d, uint32_t host)
{
	uint32_t before = d->map->first[host];

	if (host > d->host)
		before -= d->here.count;
	return (size_t)before * d->here.count;
}

static uint32_t members(const struct tdm_coll_map *map, uint32_t host)
{
	return map->first[host + 1] - map->first[host];
}

static void collect_rows(const struct desk *d)
{
	size_t row = d->map->size * d->job->block;
	uint32_t i;

	tdm_coll_plan_copy(d->p, in_row(d, d->here.me, 0), tdm_coll_in(0), row);
	for (i = 0; i < d->here.count; i++) {
		if (i != d->here.me)
			tdm_coll_plan_recv(d->p, d->here.rank[i],
					   in_row(d, i, 0), row);
	}
}

/* A bundle has the blocks of one sender after the other. */
static void pack(const struct desk *d, uint32_t host)
{
	const uint32_t *there = d->map->order + d->map->first[host];
	uint32_t n = members(d->map, host), i, k;
	size_t at = bundle(d, host);

	for (i = 0; i < d->here.count; i++) {
		for (k = 0; k < n; k++)
			tdm_coll_plan_copy(d->p, nth(d, d->away, at++),
					   in_row(d, i, there[k]),
					   d->job->block);
	}
}

static void swap_bundles(const struct desk *d)
{
	uint32_t h;

	for (h = 0; h < d->map->hosts; h++) {
		if (h != d->host)
			pack(d, h);
	}
	for (h = 0; h < d->map->hosts; h++) {
		size_t len = (size_t)members(d->map, h) * d->here.count *
			     d->job->block;

		if (h == d->host)
			continue;
		tdm_coll_plan_recv(d->p, d->map->lead[h],
				   nth(d, d->came, bundle(d, h)), len);
		tdm_coll_plan_send(d->p, d->map->lead[h],
				   nth(d, d->away, bundle(d, h)), len);
	}
}

/* Returns the place of the block from @rank for member @i here. */
static struct tdm_coll_at block_from(const struct desk *d, uint32_t rank,
				     uint32_t i)
{
	uint32_t host = d->map->host[rank];
	uint32_t place = tdm_coll_place_in(d->map, rank);

	if (host == d->host)
		return in_row(d, place, d->here.rank[i]);
	return nth(d, d->came,
		   bundle(d, host) + (size_t)place * d->here.count + i);
}

static void give_rows(const struct desk *d)
{
	uint32_t size = d->map->size, i, r;
	struct tdm_coll_at out = tdm_coll_plan_tmp(
		d->p, (size_t)d->here.count * size * d->job->block);

	for (i = 0; i < d->here.count; i++) {
		for (r = 0; r < size; r++)
			tdm_coll_plan_copy(d->p,
					   i == d->here.me ?
						   nth(d, tdm_coll_out(0), r) :
						   nth(d, out,
						       (size_t)i * size + r),
					   block_from(d, r, i), d->job->block);
	}
	for (i = 0; i < d->here.count; i++) {
		if (i != d->here.me)
			tdm_coll_plan_send(d->p, d->here.rank[i],
					   nth(d, out, (size_t)i * size),
					   size * d->job->block);
	}
}

static void by_leaders(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		       const struct tdm_coll_job *job)
{
	const struct tdm_coll_team leaders = tdm_coll_leaders(map, 0);
	struct desk d = { p,
			  map,
			  job,
			  tdm_coll_here(map),
			  map->host[map->me],
			  .rows = { TDM_COLL_TMP, 0 } };
	size_t row = map->size * job->block, far;
	uint32_t lead = leaders.rank[d.host];

	if (map->me != lead) {
		tdm_coll_plan_recv(p, lead, tdm_coll_out(0), row);
		tdm_coll_plan_send(p, lead, tdm_coll_in(0), row);
		return;
	}
	far = (size_t)d.here.count * (map->size - d.here.count) * job->block;
	d.rows = tdm_coll_plan_tmp(p, d.here.count * row);
	d.away = tdm_coll_plan_tmp(p, far);
	d.came = tdm_coll_plan_tmp(p, far);
	collect_rows(&d);
	swap_bundles(&d);
	give_rows(&d);
}

static void directly(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		     const struct tdm_coll_job *job)
{
	uint32_t n = map->size, i, to, from;

	tdm_coll_plan_copy(p, tdm_coll_out(map->me * job->block),
			   tdm_coll_in(map->me * job->block), job->block);
	for (i = 1; i < n; i++) {
		if (i % WINDOW == 1)
			tdm_coll_plan_round(p);
		to = (uint32_t)(((uint64_t)map->me + i) % n);
		from = (uint32_t)(((uint64_t)map->me + n - i) % n);
		tdm_coll_plan_recv(p, from, tdm_coll_out(from * job->block),
				   job->block);
		tdm_coll_plan_send(p, to, tdm_coll_in(to * job->block),
				   job->block);
	}
}

void tdm_coll_alltoall(struct tdm_coll_plan *p, const struct tdm_coll_map *map,
		       const struct tdm_coll_job *job)
{
	size_t most = 0;
	uint32_t h;

	for (h = 0; h < map->hosts; h++)
		most = tdm_max(most, (size_t)members(map, h) * map->size);
	if (map->hosts > 1 && map->hosts < map->size && most <= ROWS_BLOCKS &&
	    job->block <= ROWS_BYTES / most)
		by_leaders(p, map, job);
	else
		directly(p, map, job);
}
