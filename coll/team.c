/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parts of plans. See team.h.
 *
 * In a tree, members are counted from the root. The parent of member v is v with
 * its lowest digit that is not 0 set to 0, in the number system of the base that
 * the team has: 2 between hosts. In a ring, member i sends to i + 1.
 *
 * No lock, no state.
 */
#include "coll/team.h"

enum {
	FAR_BASE = 2,  /* of trees between hosts */
	NEAR_BASE = 8, /* on one host */
};

/* Returns the place that is @by behind @place, in a team of @count. */
static uint32_t after(uint32_t place, uint32_t by, uint32_t count)
{
	return (uint32_t)(((uint64_t)place + by) % count);
}

static int is_alone(const struct tdm_coll_team *t)
{
	return t->me >= t->count || t->count < 2;
}

static uint32_t base_of(const struct tdm_coll_team *t)
{
	return t->near ? NEAR_BASE : FAR_BASE;
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

struct tdm_coll_data tdm_coll_piece(struct tdm_coll_data d, uint32_t i,
				    uint32_t count)
{
	size_t from = cut(d, tdm_min(i, count), count);
	size_t to = cut(d, tdm_min(i + 1, count), count);
	const struct tdm_coll_data piece = { tdm_coll_behind(d.at, from),
					     to - from, d.unit };

	return piece;
}

struct pieces {
	struct tdm_coll_data data;
	uint32_t count;
};

static size_t piece_of(const void *arg, uint32_t i, struct tdm_coll_at *at)
{
	const struct pieces *p = arg;
	const struct tdm_coll_data piece = tdm_coll_piece(p->data, i, p->count);

	*at = piece.at;
	return piece.len;
}

/* As ring(), by one message from each to each. */
static void swap(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
		 uint32_t full, tdm_coll_piece_fn piece, const void *arg)
{
	struct tdm_coll_at mine, at;
	size_t my_len = piece(arg, t->me, &mine), len;
	uint32_t i, peer;

	tdm_coll_plan_round(p);
	for (i = 1; i < t->count; i++) {
		peer = after(t->me, t->count - i, t->count);
		len = piece(arg, peer, &at);
		if (t->me != full && len)
			tdm_coll_plan_recv(p, t->rank[peer], at, len);
	}
	for (i = 1; i < t->count; i++) {
		peer = after(t->me, i, t->count);
		if (peer != full && my_len)
			tdm_coll_plan_send(p, t->rank[peer], mine, my_len);
	}
}

/* As tdm_coll_team_ring(); the member @full (count: none) has all already. */
static void ring(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
		 uint32_t full, tdm_coll_piece_fn piece, const void *arg)
{
	uint32_t next = after(t->me, 1, t->count), i;
	uint32_t prev = after(t->me, t->count - 1, t->count);
	struct tdm_coll_at at;
	size_t len;

	if (t->near) {
		swap(p, t, full, piece, arg);
		return;
	}
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

/*
 * Sets *@unit to that of the lowest digit of @v that is not 0, and returns that
 * digit's amount; for the root, to the first unit that is not below @count.
 */
static uint32_t digit_of(uint32_t v, uint32_t base, uint32_t count,
			 uint64_t *unit)
{
	*unit = 1;
	while (*unit < count && !(v % (*unit * base)))
		*unit *= base;
	return v ? (uint32_t)(v % (*unit * base)) : 0;
}

static void bcast_tree(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
		       uint32_t root, struct tdm_coll_data d)
{
	uint32_t v = after(t->me, t->count - root, t->count), i;
	uint32_t base = base_of(t);
	uint64_t unit, child;
	uint32_t up = digit_of(v, base, t->count, &unit);

	tdm_coll_plan_come(p);
	if (v) {
		tdm_coll_plan_round(p);
		tdm_coll_plan_recv(p, t->rank[after(v - up, root, t->count)],
				   d.at, d.len);
		tdm_coll_plan_round(p);
	}
	while (unit /= base) {
		for (i = 1; i < base; i++) {
			child = v + i * unit;
			if (child < t->count)
				tdm_coll_plan_send(
					p,
					t->rank[after((uint32_t)child, root,
						      t->count)],
					d.at, d.len);
		}
	}
}

void tdm_coll_team_bcast(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
			 uint32_t root, struct tdm_coll_data d)
{
	if (is_alone(t))
		return;
	/* A flat tree of a few members reads each byte no more often. */
	if (is_big(t, d) && (!t->near || t->count > NEAR_BASE))
		bcast_pieces(p, t, root, d);
	else
		bcast_tree(p, t, root, d);
}

/*
 * Each member reduces its piece: it gets that piece of the others, one after the
 * other, and gives them theirs.
 */
static void reduce_pieces(struct tdm_coll_plan *p,
			  const struct tdm_coll_team *t, struct tdm_coll_data d)
{
	const struct tdm_coll_data mine = tdm_coll_piece(d, t->me, t->count);
	struct tdm_coll_at tmp;
	struct tdm_coll_data other;
	uint32_t i, to;

	if (t->near) {
		tdm_coll_team_deal(p, t, d.at, d, t->count);
		return;
	}
	tmp = tdm_coll_plan_tmp(p, mine.len);
	for (i = 1; i < t->count; i++) {
		to = after(t->me, i, t->count);
		other = tdm_coll_piece(d, to, t->count);
		tdm_coll_plan_round(p);
		tdm_coll_plan_recv(
			p, t->rank[after(t->me, t->count - i, t->count)], tmp,
			mine.len);
		tdm_coll_plan_send(p, t->rank[to], other.at, other.len);
		tdm_coll_plan_reduce(p, mine.at, tmp, mine.len);
	}
}

void tdm_coll_team_deal(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
			struct tdm_coll_at from, struct tdm_coll_data d,
			uint32_t count)
{
	const struct tdm_coll_data mine = tdm_coll_piece(d, t->me, count);
	const struct tdm_coll_data all = { from, d.len, d.unit };
	struct tdm_coll_at tmp =
		tdm_coll_plan_tmp(p, (t->count - 1) * mine.len);
	uint32_t i, peer;

	tdm_coll_plan_round(p);
	tdm_coll_plan_copy(p, mine.at, tdm_coll_piece(all, t->me, count).at,
			   mine.len);
	for (i = 1; i < t->count && mine.len; i++) {
		peer = after(t->me, t->count - i, t->count);
		tdm_coll_plan_recv(p, t->rank[peer],
				   tdm_coll_behind(tmp, (i - 1) * mine.len),
				   mine.len);
	}
	for (i = 1; i < t->count; i++) {
		peer = after(t->me, i, t->count);
		const struct tdm_coll_data its =
			tdm_coll_piece(all, peer, count);

		if (its.len)
			tdm_coll_plan_send(p, t->rank[peer], its.at, its.len);
	}
	for (i = 1; i < t->count; i++)
		tdm_coll_plan_reduce(p, mine.at,
				     tdm_coll_behind(tmp, (i - 1) * mine.len),
				     mine.len);
	tdm_coll_plan_round(p);
}

void tdm_coll_team_share(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
			 struct tdm_coll_data d, uint32_t count)
{
	const struct pieces all = { d, count };

	if (!is_alone(t))
		ring(p, t, t->count, piece_of, &all);
}

/* Receive the data of the children whose digit has @unit, and reduce them. */
static void reduce_children(struct tdm_coll_plan *p,
			    const struct tdm_coll_team *t, uint32_t root,
			    uint64_t unit, struct tdm_coll_data d)
{
	uint32_t v = after(t->me, t->count - root, t->count), i, n = 0;
	struct tdm_coll_at tmp;
	uint64_t child;

	while (n + 1 < base_of(t) && v + (n + 1) * unit < t->count)
		n++;
	tmp = tdm_coll_plan_tmp(p, n * d.len);
	tdm_coll_plan_round(p);
	for (i = 0; i < n; i++) {
		child = v + (i + 1) * unit;
		tdm_coll_plan_recv(
			p, t->rank[after((uint32_t)child, root, t->count)],
			tdm_coll_behind(tmp, i * d.len), d.len);
	}
	for (i = 0; i < n; i++)
		tdm_coll_plan_reduce(p, d.at, tdm_coll_behind(tmp, i * d.len),
				     d.len);
}

static void reduce_tree(struct tdm_coll_plan *p, const struct tdm_coll_team *t,
			uint32_t root, struct tdm_coll_data d)
{
	uint32_t v = after(t->me, t->count - root, t->count);
	uint32_t base = base_of(t), up;
	uint64_t unit, low;

	up = digit_of(v, base, t->count, &unit);
	for (low = 1; low < unit; low *= base)
		reduce_children(p, t, root, low, d);
	tdm_coll_plan_round(p);
	if (v)
		tdm_coll_plan_send(p, t->rank[after(v - up, root, t->count)],
				   d.at, d.len);
}

void tdm_coll_team_reduce(struct tdm_coll_plan *p,
			  const struct tdm_coll_team *t, uint32_t root,
			  struct tdm_coll_data d)
{
	const struct pieces all = { d, t->count };

	if (is_alone(t))
		return;
	if (!is_big(t, d)) {
		reduce_tree(p, t, root, d);
		return;
	}
	reduce_pieces(p, t, d);
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
			     struct tdm_coll_data d)
{
	if (is_alone(t))
		return;
	if (is_big(t, d)) {
		reduce_pieces(p, t, d);
		tdm_coll_team_share(p, t, d, t->count);
	} else if (t->near) {
		reduce_tree(p, t, 0, d);
		bcast_tree(p, t, 0, d);
	} else {
		double_up(p, t, d, tdm_coll_plan_tmp(p, d.len));
	}
}
