/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of plans. See team.h.
 *
 * Trees are binomial: member v, counted from the root, has the parent v without
 * its lowest bit. In a ring, member i sends to i + 1.
 *
 * No lock, no state.
 */
#include "coll/team.h"

/* Returns the place that is @by behind @place, in a team of @count. */
static uint32_t after(uint32_t place, uint32_t by, uint32_t count)
{
	return (uint32_t)(((uint64_t)place + by) % count);
}

static int is_alone(const struct tdm_coll_team *t)
{
	return t->me >= t->count || t->count < 2;
}

/* Two members gain nothing by cutting. */
static int is_big(const struct tdm_coll_team *t, struct tdm_coll_data d)
{
	return d.len >= TDM_COLL_BIG_BYTES && t->count > 2 &&
	       d.len / d.unit >= t->count;
}

/* Returns where piece @i of @count begins, in bytes. */
static size_t cut(struct tdm_coll_data d, uint32_t i, uint32_t count)
{
	size_t values = d.len / d.unit;

	/* values / count, and one more for each of the first */
	return (values / count * i + tdm_min((size_t)i, values % count)) *
	       d.unit;
}

struct pieces {
	struct tdm_coll_data data;
	uint32_t count;
};

static size_t piece_of(const void *arg, uint32_t i, struct tdm_coll_at *at)
{
	const struct pieces *p = arg;
	size_t from = cut(p->data, i, p->count);

	*at = tdm_coll_behind(p->data.at, from);
	return cut(p->data, i + 1, p->count) - from;
}

/* As tdm_coll_team_ring(); the member @full (count: none) has all already. */
static void ring(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
		 uint32_t full, tdm_coll_piece_fn piece, const void *arg)
{
	uint32_t next = after(t->me, 1, t->count), i;
	uint32_t prev = after(t->me, t->count - 1, t->count);
	struct tdm_coll_at at;
	size_t len;

	for (i = 0; i + 1 < t->count; i++) {
		tdm_coll_plan_round(p);
		if (next != full) {
			len = piece(arg, after(t->me, t->count - i, t->count),
				    &at);
			tdm_coll_plan_send(p, t->rank[next], at, len);
		}
		if (t->me != full) {
			len = piece(arg, after(prev, t->count - i, t->count),
				    &at);
			tdm_coll_plan_recv(p, t->rank[prev], at, len);
		}
	}
}

void tdm_coll_team_ring(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
			tdm_coll_piece_fn piece, const void *arg)
{
	if (!is_alone(t))
		ring(p, t, t->count, piece, arg);
}

/*
 * The piece of each member but the root goes from the root to it, or with
 * @gather from it to the root.
 */
static void root_pieces(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
			uint32_t root, const struct pieces *all, int gather)
{
	struct tdm_coll_at at;
	uint32_t i, peer;
	size_t len;

	tdm_coll_plan_round(p);
	for (i = 0; i < t->count; i++) {
		if (i == root || (t->me != root && t->me != i))
			continue;
		len = piece_of(all, i, &at);
		peer = t->rank[t->me == root ? i : root];
		if ((t->me == root) != gather)
			tdm_coll_plan_send(p, peer, at, len);
		else
			tdm_coll_plan_recv(p, peer, at, len);
	}
}

/* Each member gets its piece from the root, and the others by the ring. */
static void bcast_pieces(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
			 uint32_t root, struct tdm_coll_data d)
{
	const struct pieces all = { d, t->count };

	root_pieces(p, t, root, &all, 0);
	ring(p, t, root, piece_of, &all);
}

static void bcast_tree(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
		       uint32_t root, struct tdm_coll_data d)
{
	uint32_t v = after(t->me, t->count - root, t->count), bit = 1;

	while (bit < t->count && !(v & bit))
		bit <<= 1;
	tdm_coll_plan_round(p);
	if (v)
		tdm_coll_plan_recv(p, t->rank[after(v - bit, root, t->count)],
				   d.at, d.len);
	tdm_coll_plan_round(p);
	while (bit >>= 1) {
		if (v + bit < t->count)
			tdm_coll_plan_send(
				p, t->rank[after(v + bit, root, t->count)],
				d.at, d.len);
	}
}

void tdm_coll_team_bcast(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
			 uint32_t root, struct tdm_coll_data d)
{
	if (is_alone(t))
		return;
	if (is_big(t, d))
		bcast_pieces(p, t, root, d);
	else
		bcast_tree(p, t, root, d);
}

/*
 * Each member reduces its piece: it gets that piece of the others, one after the
 * other, and gives them theirs.
 */
static void reduce_pieces(struct tdm_coll_plan *p,
			  const struct tdm_coll_team *t, struct tdm_coll_data d,
			  struct tdm_coll_at tmp)
{
	const struct pieces all = { d, t->count };
	struct tdm_coll_at mine, at;
	size_t my_len = piece_of(&all, t->me, &mine), len;
	uint32_t i, to;

	for (i = 1; i < t->count; i++) {
		to = after(t->me, i, t->count);
		len = piece_of(&all, to, &at);
		tdm_coll_plan_round(p);
		tdm_coll_plan_recv(
			p, t->rank[after(t->me, t->count - i, t->count)], tmp,
			my_len);
		tdm_coll_plan_send(p, t->rank[to], at, len);
		tdm_coll_plan_reduce(p, mine, tmp, my_len);
	}
}

static void reduce_tree(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
			uint32_t root, struct tdm_coll_data d,
			struct tdm_coll_at tmp)
{
	uint32_t v = after(t->me, t->count - root, t->count), bit;

	for (bit = 1; bit < t->count && !(v & bit); bit <<= 1) {
		if (v + bit >= t->count)
			continue;
		tdm_coll_plan_round(p);
		tdm_coll_plan_recv(p, t->rank[after(v + bit, root, t->count)],
				   tmp, d.len);
		tdm_coll_plan_reduce(p, d.at, tmp, d.len);
	}
	tdm_coll_plan_round(p);
	if (v)
		tdm_coll_plan_send(p, t->rank[after(v - bit, root, t->count)],
				   d.at, d.len);
}

void tdm_coll_team_reduce(struct tdm_coll_plan *p,
			  const struct tdm_coll_team *t, uint32_t root,
			  struct tdm_coll_data d, struct tdm_coll_at tmp)
{
	const struct pieces all = { d, t->count };

	if (is_alone(t))
		return;
	if (!is_big(t, d)) {
		reduce_tree(p, t, root, d, tmp);
		return;
	}
	reduce_pieces(p, t, d, tmp);
	root_pieces(p, t, root, &all, 1);
}

/*
 * Exchange data and reduce them. Both partners reduce those of the higher one
 * into those of the lower one, since some operations keep one of two values that
 * compare as equal, or do not compare.
 */
static void exchange(struct tdm_coll_plan *p, uint32_t rank, int lower,
		     struct tdm_coll_data d, struct tdm_coll_at tmp)
{
	tdm_coll_plan_round(p);
	tdm_coll_plan_recv(p, rank, tmp, d.len);
	tdm_coll_plan_send(p, rank, d.at, d.len);
	if (lower) {
		tdm_coll_plan_reduce(p, d.at, tmp, d.len);
		return;
	}
	tdm_coll_plan_reduce(p, tmp, d.at, d.len);
	tdm_coll_plan_copy(p, d.at, tmp, d.len);
}

/*
 * Recursive doubling over a power of two of members. The others, the odd ones of
 * the first, give their data to the member before them and get the result back.
 * All have the same result.
 */
static void double_up(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
		      struct tdm_coll_data d, struct tdm_coll_at tmp)
{
	uint32_t whole = 1, extra, v, bit, other;

	while (whole <= t->count / 2)
		whole *= 2;
	extra = t->count - whole;
	tdm_coll_plan_round(p);
	if (t->me < 2 * extra && t->me % 2) {
		tdm_coll_plan_send(p, t->rank[t->me - 1], d.at, d.len);
		tdm_coll_plan_round(p);
		tdm_coll_plan_recv(p, t->rank[t->me - 1], d.at, d.len);
		return;
	}
	if (t->me < 2 * extra) {
		tdm_coll_plan_recv(p, t->rank[t->me + 1], tmp, d.len);
		tdm_coll_plan_reduce(p, d.at, tmp, d.len);
	}
	v = t->me < 2 * extra ? t->me / 2 : t->me - extra;
	for (bit = 1; bit < whole; bit *= 2) {
		other = v ^ bit;
		other = other < extra ? 2 * other : other + extra;
		exchange(p, t->rank[other], !(v & bit), d, tmp);
	}
	tdm_coll_plan_round(p);
	if (t->me < 2 * extra)
		tdm_coll_plan_send(p, t->rank[t->me + 1], d.at, d.len);
}

void tdm_coll_team_allreduce(struct tdm_coll_plan *p,
			     const struct tdm_coll_team *t,
			     struct tdm_coll_data d, struct tdm_coll_at tmp)
{
	const struct pieces all = { d, t->count };

	if (is_alone(t))
		return;
	if (!is_big(t, d)) {
		double_up(p, t, d, tmp);
		return;
	}
	reduce_pieces(p, t, d, tmp);
	ring(p, t, t->count, piece_of, &all);
}
