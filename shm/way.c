/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of a way; see way.h. Messages of one class take the same way for a
 * *run* of messages; the first messages of a run do not count, since they still
 * overlap with the run before. A way that was tried and found bad is tried less
 * and less often, until the cost of the chosen one changes: then the machine
 * has changed, and all are tried again. A class of which nothing is known
 * begins with what is known of the nearest one, and tries the other ways after a
 * short run: what is best may differ, or have changed since the other class was used.
 *
 * Lock: domain held, which guards the costs that a pair keeps.
 */
#include "shm/way.h"

#include <string.h>

#include "base/base.h"

enum {
	WAY_UNIT_BYTES = 64 * 1024,
	WAY_LONG_CLASS = 6, /* 1 MiB */
	WAY_RUN = 64,	    /* messages by the chosen way */
	WAY_SKIP = 8,	    /* first messages of a run or trial: not counted */
	/* the same for messages of 1 MiB and more */
	WAY_LONG_RUN = 16,
	WAY_LONG_TRIAL = 3,
	WAY_LONG_SKIP = 1,
	/*
	 * runs of the chosen way between trials; greatest number of them, for
	 * ways that are bad
	 */
	WAY_EVERY = 4,
	WAY_SELDOM = 32,
};

static unsigned class_of(uint64_t bytes)
{
	unsigned c = 0;

	while (bytes >= 2 * TDM_SHM_WAY_LEAST_BYTES &&
	       c + 1 < TDM_SHM_WAY_CLASSES) {
		bytes /= 2;
		c++;
	}
	return c;
}

static uint8_t cheapest(const struct tdm_shm_way_class *c)
{
	uint8_t way, best = 0;

	for (way = 1; way < TDM_SHM_WAYS; way++) {
		if (c->cost[way] < c->cost[best])
			best = way;
	}
	return best;
}

/* The way that @c would take if it tried none. */
static uint8_t chosen(const struct tdm_shm_way_class *c)
{
	uint8_t way;

	for (way = 0; way < TDM_SHM_WAYS; way++) {
		if (!c->cost[way])
			return c->now;
	}
	return c->trial ? cheapest(c) : c->now;
}

/* Begin to use class @k with what the nearest class in use has learned. */
static void adopt(struct tdm_shm_ways *w, unsigned k)
{
	unsigned d;

	for (d = 1; d < TDM_SHM_WAY_CLASSES; d++) {
		const struct tdm_shm_way_class *from = NULL;

		if (k >= d && w->sizes[k - d].every)
			from = &w->sizes[k - d];
		else if (k + d < TDM_SHM_WAY_CLASSES && w->sizes[k + d].every)
			from = &w->sizes[k + d];
		if (!from)
			continue;
		memcpy(w->sizes[k].cost, from->cost, sizeof(from->cost));
		w->sizes[k].now = chosen(from);
		w->sizes[k].due = TDM_SHM_WAYS - 1;
		break;
	}
	w->sizes[k].every = WAY_EVERY;
	w->sizes[k].wait = WAY_EVERY;
}

enum tdm_shm_way tdm_shm_way_choose(struct tdm_shm_ways *w, uint64_t bytes)
{
	unsigned k = class_of(bytes);

	if (tdm_unlikely(!w->sizes[k].every))
		adopt(w, k);
	return (enum tdm_shm_way)w->sizes[k].now;
}

static void begin(struct tdm_shm_way_class *c, uint8_t way, int trial)
{
	c->now = way;
	c->trial = (uint8_t)trial;
	c->count = 0;
	c->ns = 0;
	c->bytes = 0;
}

/* Try the next way that is not @best. */
static void try_next(struct tdm_shm_way_class *c, uint8_t best)
{
	do {
		c->next = (uint8_t)((c->next + 1) % TDM_SHM_WAYS);
	} while (c->next == best);
	begin(c, c->next, 1);
}

/*
 * Called when a run of the present way is over, with its cost: chooses the next
 * way.
 */
static void decide(struct tdm_shm_way_class *c, uint32_t cost)
{
	uint64_t before = c->cost[c->now];
	int changed = before && (cost > 2 * before || before > 2ull * cost);
	uint8_t way, best;

	if (!c->trial && before)
		cost = (uint32_t)((before + cost) / 2);
	c->cost[c->now] = cost;
	for (way = 0; way < TDM_SHM_WAYS; way++) {
		if (!c->cost[way]) {
			begin(c, way, 1);
			return;
		}
	}
	best = cheapest(c);
	if (c->trial) {
		c->every = 2ull * cost > 3ull * c->cost[best] ?
				   tdm_min(2 * c->every, WAY_SELDOM) :
				   WAY_EVERY;
		c->wait = c->every;
		c->due -= !!c->due;
	} else if (changed) {
		c->every = WAY_EVERY;
		c->due = TDM_SHM_WAYS - 1;
	} else if (!--c->wait) {
		c->due = 1;
	}
	if (c->due)
		try_next(c, best);
	else
		begin(c, best, 0);
}

/*
 * Not 0 when the run is long enough, or has shown that another way is far
 * better.
 */
static int is_over(const struct tdm_shm_way_class *c, uint32_t length,
		   uint32_t skip, uint64_t cost)
{
	uint64_t best = c->cost[cheapest(c)];

	if (c->count >= length)
		return 1;
	return best && cost > 2 * best && c->now != cheapest(c) &&
	       c->count >= skip + (c->trial ? 2 : 8);
}

void tdm_shm_way_took(struct tdm_shm_ways *w, uint64_t bytes,
		      enum tdm_shm_way way, uint64_t ns)
{
	unsigned k = class_of(bytes);
	struct tdm_shm_way_class *c = &w->sizes[k];
	int is_long = k >= WAY_LONG_CLASS;
	uint32_t skip = is_long ? WAY_LONG_SKIP : WAY_SKIP;
	uint32_t length = is_long ? WAY_LONG_TRIAL : TDM_SHM_WAY_TRIAL;
	uint64_t cost;

	if (!c->trial && c->cost[way] && !c->due)
		length = is_long ? WAY_LONG_RUN : WAY_RUN;
	if (way != c->now || ++c->count <= skip)
		return;
	c->ns += ns;
	c->bytes += bytes;
	cost = (uint64_t)((double)c->ns * WAY_UNIT_BYTES / (double)c->bytes);
	cost = tdm_min(cost + 1, (uint64_t)UINT32_MAX);
	if (is_over(c, length, skip, cost))
		decide(c, (uint32_t)cost);
}
