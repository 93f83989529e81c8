/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of a way; see way.h. Messages of one class take the same way for a
 * *run* of messages; the first messages of a run do not count, since they still
 * overlap with the run before. The other ways are tried, each for a few messages, when
 * pace.between messages have passed since the last trial and the way is not postponed.
 * A trial that took longer than the cheapest way would have, late messages included,
 * postpones its way: by WAY_PRICE times the difference, way_rest_most_ns at most, and until the messages of
 * the class have taken WAY_SHARE times the difference. So trials cost little, however
 * dear a way is and however rare messages are, and a pair that was silent tries the
 * other ways soon. A process that does something else makes a message late: of
 * each four messages the slowest does not count, and the others count at most WAY_LATE
 * times the cost of their way, or of the cheapest one.
 * If the cost of the chosen way changes, or pace.slow messages in a row take twice as long
 * as they did, the machine has changed: what was known of the way is forgotten, all
 * others are tried, and then this one again. A class of which nothing is known
 * begins with what is known of the nearest one, and tries the other ways: what is best
 * may differ, or have changed since the other class was used. A way is tried the later
 * the dearer the nearest class found it, as if that trial had been here.
 *
 * Lock: domain held, which guards the costs that a pair keeps.
 */
#include "shm/way.h"

#include <string.h>

#include "base/base.h"
#include "shm/record.h"

enum {
	WAY_UNIT_BYTES = 64 * 1024,
	WAY_BONUS_CLASS = 2, /* 64 KiB */
	WAY_LONG_CLASS = 6,  /* 1 MiB */
	/* of way_short; see struct pace */
	WAY_SKIP = 8,
	WAY_COUNT = 8,
	WAY_BETWEEN = 192,
	/*
	 * A way is not tried again before this many times the extra cost of its
	 * last trial has passed,
	 */
	WAY_PRICE = 100,
	WAY_SHARE = 16, /* and messages have taken this many times it. */
	/*
	 * A message counts at most this many times the cost of its way. In a trial it
	 * counts more: that cost may be unknown, or have changed since the last one.
	 */
	WAY_LATE = 3,
	WAY_LATE_TRIAL = 8,
};

/* How many messages measure a way; fewer where each of them takes long. */
struct pace {
	uint32_t run;	  /* messages by the chosen way */
	uint32_t skip;	  /* first messages of a run or trial: not counted */
	uint32_t count;	  /* messages of a trial that count */
	uint32_t between; /* messages between trials */
	uint32_t slow;	  /* slow messages in a row end a run */
	uint64_t hasten_ns; /* least time from one change of the machine to the next */
	uint32_t bonus; /* of what reading costs, 1/bonus does not count */
};

static const struct pace way_small = {
	.run = 64,
	.skip = WAY_SKIP,
	.count = WAY_COUNT,
	.between = WAY_BETWEEN,
	.slow = 8,
	.hasten_ns = 200000000,
	.bonus = UINT32_MAX,
};

/* Of the classes from WAY_BONUS_CLASS on. */
static const struct pace way_short = {
	.run = 64,
	.skip = WAY_SKIP,
	.count = WAY_COUNT,
	.between = WAY_BETWEEN,
	.slow = 8,
	.hasten_ns = 200000000,
	.bonus = 8,
};

/* Of the classes from WAY_LONG_CLASS on. */
static const struct pace way_long = {
	.run = 16,
	.skip = 1,
	.count = 4,
	.between = 64,
	.slow = 3,
	.hasten_ns = 1000000000,
	.bonus = 8,
};

tdm_static_assert(WAY_SKIP + WAY_COUNT == TDM_SHM_WAY_TRIAL &&
			  TDM_SHM_BOUNCE_CHUNKS + 1 + WAY_COUNT ==
				  TDM_SHM_WAY_TRIAL_MOST,
		  "way.h says how long trials are");

/* The least and the greatest time between trials of a way. */
static const uint64_t way_rest_ns = 5000000;
static const uint64_t way_rest_most_ns = 2000000000;

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

static const struct pace *pace_of(unsigned k)
{
	return k < WAY_BONUS_CLASS ? &way_small :
	       k < WAY_LONG_CLASS  ? &way_short :
				     &way_long;
}

/* What @way costs for the choice. Reading counts less: it takes no time of the sender. */
static uint32_t price(const struct tdm_shm_way_class *c,
		      const struct pace *pace, uint8_t way)
{
	uint32_t cost = c->cost[way];

	return way == TDM_SHM_WAY_READ ? cost - cost / pace->bonus : cost;
}

static uint8_t cheapest(const struct tdm_shm_way_class *c,
			const struct pace *pace)
{
	uint8_t way, best = 0;

	for (way = 1; way < TDM_SHM_WAYS; way++) {
		if (price(c, pace, way) < price(c, pace, best))
			best = way;
	}
	return best;
}

/* Returns the least cost that is known, or 0. */
static uint32_t least_known(const struct tdm_shm_way_class *c)
{
	uint32_t cost = 0;
	uint8_t way;

	for (way = 0; way < TDM_SHM_WAYS; way++) {
		if (c->cost[way] && (!cost || c->cost[way] < cost))
			cost = c->cost[way];
	}
	return cost;
}

/* The way that @c would take if it tried none. */
static uint8_t chosen(const struct tdm_shm_way_class *c,
		      const struct pace *pace)
{
	uint8_t way;

	for (way = 0; way < TDM_SHM_WAYS; way++) {
		if (!c->cost[way])
			return c->now;
	}
	return c->trial ? cheapest(c, pace) : c->now;
}

static uint64_t ns_of(uint64_t bytes, uint64_t cost)
{
	return (uint64_t)((double)bytes * (double)cost / WAY_UNIT_BYTES);
}

/* Postpone each way of @c as if a trial with messages of @bytes had cost what it should. */
static void postpone_all(struct tdm_shm_way_class *c, const struct pace *pace,
			 uint64_t bytes)
{
	const uint64_t trial = (pace->skip + pace->count) * bytes;
	const uint32_t best = c->cost[cheapest(c, pace)] ? least_known(c) : 0;
	uint8_t way;

	for (way = 0; best && way < TDM_SHM_WAYS; way++)
		c->after[way] =
			WAY_SHARE * tdm_min(ns_of(trial, c->cost[way] - best),
					    way_rest_most_ns);
}

/*
 * Begin to use class @k, with a message of @bytes, with what the nearest class in use
 * has learned.
 */
static void adopt(struct tdm_shm_ways *w, unsigned k, uint64_t bytes)
{
	unsigned d;

	for (d = 1; d < TDM_SHM_WAY_CLASSES; d++) {
		const struct tdm_shm_way_class *from = NULL;

		if (k >= d && w->sizes[k - d].used)
			from = &w->sizes[k - d];
		else if (k + d < TDM_SHM_WAY_CLASSES && w->sizes[k + d].used)
			from = &w->sizes[k + d];
		if (!from)
			continue;
		memcpy(w->sizes[k].cost, from->cost, sizeof(from->cost));
		w->sizes[k].now =
			chosen(from, pace_of((unsigned)(from - w->sizes)));
		postpone_all(&w->sizes[k], pace_of(k), bytes);
		break;
	}
	w->sizes[k].used = 1;
	w->sizes[k].since = WAY_BETWEEN;
}

enum tdm_shm_way tdm_shm_way_choose(struct tdm_shm_ways *w, uint64_t bytes)
{
	unsigned k = class_of(bytes);

	if (tdm_unlikely(!w->sizes[k].used))
		adopt(w, k, bytes);
	return (enum tdm_shm_way)w->sizes[k].now;
}

static void begin(struct tdm_shm_way_class *c, uint8_t way, int trial)
{
	c->now = way;
	c->trial = (uint8_t)trial;
	c->count = 0;
	c->ns = 0;
	c->bytes = 0;
	c->four = 0;
	c->four_ns = 0;
	c->four_bytes = 0;
	c->all_ns = 0;
	c->all_bytes = 0;
	c->slow = 0;
}

/* The way to be tried at @now in place of @best, or @best. */
static uint8_t due(const struct tdm_shm_way_class *c, const struct pace *pace,
		   uint8_t best, uint64_t now)
{
	uint8_t way, first = best;

	if (!c->trial && c->since < pace->between)
		return best;
	for (way = 0; way < TDM_SHM_WAYS; way++) {
		if (way != best && c->again[way] <= now &&
		    c->after[way] <= c->spent && !(c->tried >> way & 1) &&
		    (first == best || c->again[way] < c->again[first]))
			first = way;
	}
	return first;
}

/* Not 0 when the last change of the machine is so long ago that there may be another. */
static int may_change(const struct tdm_shm_way_class *c,
		      const struct pace *pace, uint64_t now)
{
	return !c->hastened || now - c->hastened > pace->hasten_ns;
}

/*
 * The machine has changed: try all ways, the present one again after the others, for
 * it may have been slow for a moment only.
 */
static void hasten(struct tdm_shm_way_class *c)
{
	uint8_t way;

	c->since = WAY_BETWEEN;
	for (way = 0; way < TDM_SHM_WAYS; way++)
		c->again[way] = c->after[way] = 0;
}

/* The present way has been tried: set when it may be tried again. */
static void postpone(struct tdm_shm_way_class *c, const struct pace *pace,
		     uint64_t now)
{
	uint32_t best = c->cost[cheapest(c, pace)];
	uint64_t good = ns_of(c->all_bytes, best), more;

	/* Before all costs are known, none says what a trial should cost. */
	more = best && c->all_ns > good ? c->all_ns - good : 0;
	more = tdm_min(more, way_rest_most_ns);
	c->again[c->now] = now + tdm_clamp(WAY_PRICE * more, way_rest_ns,
					   way_rest_most_ns);
	c->after[c->now] = c->spent + WAY_SHARE * more;
}

/*
 * Called when a run of the present way is over, with its cost: chooses the next
 * way.
 */
static void decide(struct tdm_shm_way_class *c, const struct pace *pace,
		   uint32_t cost, uint64_t now)
{
	uint64_t before = c->cost[c->now];
	int changed = before && !c->trial && may_change(c, pace, now) &&
		      (cost > 2 * before || before > 2ull * cost);
	uint8_t way, best;

	/* A short run says less. */
	if (!c->trial && before && !changed)
		cost = c->count < pace->run ?
			       (uint32_t)((3 * before + cost) / 4) :
			       (uint32_t)((before + cost) / 2);
	c->cost[c->now] = cost;
	postpone(c, pace, now);
	for (way = 0; way < TDM_SHM_WAYS; way++) {
		if (!c->cost[way]) {
			begin(c, way, 1);
			return;
		}
	}
	if (changed) {
		c->hastened = now;
		hasten(c);
	}
	best = cheapest(c, pace);
	way = due(c, pace, best, now);
	c->since = way == best ? c->since : 0;
	c->tried = (uint8_t)(way == best ? 0 : c->tried | 1u << way);
	begin(c, way, way != best);
}

/* Returns the most that a message of @bytes counts. */
static uint64_t late_ns(const struct tdm_shm_way_class *c, uint64_t bytes)
{
	uint64_t times = c->trial ? WAY_LATE_TRIAL : WAY_LATE;
	uint32_t best = least_known(c);

	return best ? times * ns_of(bytes, tdm_max(best, c->cost[c->now])) :
		      UINT64_MAX / 4;
}

/*
 * Returns how many messages of @bytes at the begin of a run by the present way do not
 * count. Chunks go through a lap of their area first: memory that was not used
 * lately is slow.
 */
static uint32_t skip_of(const struct tdm_shm_way_class *c,
			const struct pace *pace, uint64_t bytes)
{
	uint64_t chunks = tdm_max(bytes / TDM_SHM_CHUNK_BYTES, (uint64_t)1);

	return c->now == TDM_SHM_WAY_READ || !c->trial ?
		       pace->skip :
		       (uint32_t)tdm_max(TDM_SHM_BOUNCE_CHUNKS / chunks + 1,
					 (uint64_t)pace->skip);
}

/*
 * Not 0 when the run, of which messages count, is long enough, or has shown that
 * another way is far better. A run by the chosen way is short when another one is to be
 * tried.
 */
static int is_over(const struct tdm_shm_way_class *c, const struct pace *pace,
		   uint32_t skip, uint64_t cost, uint64_t now)
{
	uint32_t trial = skip + pace->count;
	uint8_t best = cheapest(c, pace);

	if (!c->trial && c->count >= pace->run)
		return 1;
	if (c->count >= trial && (c->trial || !c->cost[c->now] ||
				  due(c, pace, c->now, now) != c->now))
		return 1;
	return c->cost[best] && cost > 2ull * c->cost[best] && c->now != best &&
	       c->count >= skip + WAY_COUNT;
}

static uint32_t cost_of(uint64_t ns, uint64_t bytes)
{
	uint64_t cost = (uint64_t)((double)ns * WAY_UNIT_BYTES / (double)bytes);

	return (uint32_t)tdm_min(cost + 1, (uint64_t)UINT32_MAX);
}

/*
 * Count @ns of a message of @bytes by the chosen way as slow, or begin anew. Returns not 0
 * when so many were slow, one after another, that the machine has changed.
 */
static int is_slower(struct tdm_shm_way_class *c, const struct pace *pace,
		     uint64_t bytes, uint64_t ns)
{
	uint32_t cost = c->cost[c->now];

	if (c->trial || !cost || ns <= 2 * ns_of(bytes, cost)) {
		c->slow = 0;
		return 0;
	}
	if (!c->slow++)
		c->slow_ns = c->slow_bytes = 0;
	c->slow_ns += ns;
	c->slow_bytes += bytes;
	return c->slow >= pace->slow;
}

/*
 * Add @ns of a message of @bytes to what the run has cost. Returns not 0 when that makes
 * four messages, of which the slowest does not count: its process may have been away.
 */
static int counts(struct tdm_shm_way_class *c, uint64_t bytes, uint64_t ns)
{
	c->four_ns += ns;
	c->four_bytes += bytes;
	if (!c->four || (double)ns * (double)c->slowest_bytes >
				(double)c->slowest_ns * (double)bytes) {
		c->slowest_ns = ns;
		c->slowest_bytes = bytes;
	}
	if (++c->four < 4)
		return 0;
	c->ns += c->four_ns - c->slowest_ns;
	c->bytes += c->four_bytes - c->slowest_bytes;
	c->four = 0;
	c->four_ns = c->four_bytes = 0;
	return 1;
}

void tdm_shm_way_took(struct tdm_shm_ways *w, uint64_t bytes,
		      enum tdm_shm_way way, uint64_t ns, uint64_t now)
{
	unsigned k = class_of(bytes);
	struct tdm_shm_way_class *c = &w->sizes[k];
	const struct pace *pace = pace_of(k);
	uint32_t skip, cost;

	if (way != c->now)
		return;
	ns = tdm_min(ns, late_ns(c, bytes));
	c->spent += ns;
	c->all_ns += ns;
	c->all_bytes += bytes;
	c->since += !c->trial;
	skip = skip_of(c, pace, bytes);
	if (++c->count <= skip)
		return;
	if (is_slower(c, pace, bytes, ns) && may_change(c, pace, now)) {
		decide(c, pace, cost_of(c->slow_ns, c->slow_bytes), now);
		return;
	}
	if (!counts(c, bytes, ns))
		return;
	cost = cost_of(c->ns, c->bytes);
	if (is_over(c, pace, skip, cost, now))
		decide(c, pace, cost, now);
}
