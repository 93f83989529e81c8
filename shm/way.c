/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See way.h. Messages of one class take the same way for a run; the first ones
 * of a run still meet messages of the run before and do not count. A way that
 * was tried and found bad is tried less often.
 */
#include "shm/way.h"

#include "base/base.h"

enum { WAY_UNIT_BYTES = 64 * 1024 };

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

enum tdm_shm_way tdm_shm_way_choose(const struct tdm_shm_ways *w,
				    uint64_t bytes)
{
	return (enum tdm_shm_way)w->sizes[class_of(bytes)].now;
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

/* Is @way so dear that it is tried seldom? */
static int is_bad(const struct tdm_shm_way_class *c, uint8_t way)
{
	return c->cost[way] / 3 > c->cost[cheapest(c)] / 2;
}

static void begin(struct tdm_shm_way_class *c, uint8_t way, int trial)
{
	c->now = way;
	c->trial = (uint8_t)trial;
	c->count = 0;
	c->ns = 0;
	c->bytes = 0;
}

/* The run is over and its cost known: which one follows? */
static void decide(struct tdm_shm_way_class *c)
{
	uint8_t way, best;

	for (way = 0; way < TDM_SHM_WAYS; way++) {
		if (!c->cost[way]) {
			begin(c, way, 1);
			return;
		}
	}
	best = cheapest(c);
	if (c->trial || !c->wait) {
		c->next = (uint8_t)((c->next + 1) % TDM_SHM_WAYS);
		if (c->next == best)
			c->next = (uint8_t)((c->next + 1) % TDM_SHM_WAYS);
		c->wait = is_bad(c, c->next) ? TDM_SHM_WAY_SELDOM :
					       TDM_SHM_WAY_EVERY;
	} else if (!--c->wait && c->next != best) {
		begin(c, c->next, 1);
		return;
	}
	begin(c, best, 0);
}

void tdm_shm_way_took(struct tdm_shm_ways *w, uint64_t bytes,
		      enum tdm_shm_way way, uint64_t ns)
{
	struct tdm_shm_way_class *c = &w->sizes[class_of(bytes)];
	uint64_t cost;

	if (way != c->now)
		return;
	if (++c->count > TDM_SHM_WAY_SKIP) {
		c->ns += ns;
		c->bytes += bytes;
	}
	if (c->count <
	    (c->trial || !c->cost[way] ? TDM_SHM_WAY_TRIAL : TDM_SHM_WAY_RUN))
		return;
	cost = (uint64_t)((double)c->ns * WAY_UNIT_BYTES / (double)c->bytes);
	cost = tdm_min(cost, (uint64_t)UINT32_MAX) + 1;
	if (c->cost[way])
		cost = (c->cost[way] + cost) / 2;
	c->cost[way] = (uint32_t)tdm_min(cost, (uint64_t)UINT32_MAX);
	decide(c);
}
