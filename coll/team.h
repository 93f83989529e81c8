/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts that plans consist of: what a team, some of the members of a group,
 * does together. Each function appends the steps of the caller to its plan; all
 * of the team append the same part, with the same lengths. A team that the caller
 * is not in, or of one member, appends nothing.
 *
 * Data of TDM_COLL_BIG_BYTES and more are cut into a piece for each member, so
 * that each byte is sent about twice, whatever the size of the team. Shorter
 * ones go by trees, in as few steps as possible. Trees of a team on one host are
 * flat: a message costs less there than the wait of one more member, which may
 * have to be given a processor first; and its members exchange pieces all at once,
 * not in turn.
 *
 * No lock, no state.
 */
#ifndef TDM_COLL_TEAM_H
#define TDM_COLL_TEAM_H

#include "coll/plan.h"

enum { TDM_COLL_BIG_BYTES = 32768 };

struct tdm_coll_team {
	const uint32_t *rank; /* rank[count]: its members */
	uint32_t count;
	uint32_t me; /* the caller's place in rank[]; >= count: it is not in */
	int near;    /* 1: all are on one host */
};

/* Data of a part: @len bytes at @at, in values of @unit bytes. */
struct tdm_coll_data {
	struct tdm_coll_at at;
	size_t len, unit;
};

/* Returns piece @i of @data cut into @count; those from @count on are empty. */
struct tdm_coll_data tdm_coll_piece(struct tdm_coll_data data, uint32_t i,
				    uint32_t count);

/* Broadcast @data from the place @root of @team. */
void tdm_coll_team_bcast(struct tdm_coll_plan *plan,
			 const struct tdm_coll_team *team, uint32_t root,
			 struct tdm_coll_data data);

/*
 * Reduce the @data of all into those of the place @root; the others' data
 * change as well.
 */
void tdm_coll_team_reduce(struct tdm_coll_plan *plan,
			  const struct tdm_coll_team *team, uint32_t root,
			  struct tdm_coll_data data);

/* As tdm_coll_team_reduce(), into the data of all. */
void tdm_coll_team_allreduce(struct tdm_coll_plan *plan,
			     const struct tdm_coll_team *team,
			     struct tdm_coll_data data);

/*
 * For a team on one host: reduce what all have at @from so that member i has piece
 * i of @data, cut into @count <= the number of members. @from may be @data.at.
 */
void tdm_coll_team_deal(struct tdm_coll_plan *plan,
			const struct tdm_coll_team *team,
			struct tdm_coll_at from, struct tdm_coll_data data,
			uint32_t count);

/* Member i has piece i of @data, cut into @count: give it to all others. */
void tdm_coll_team_share(struct tdm_coll_plan *plan,
			 const struct tdm_coll_team *team,
			 struct tdm_coll_data data, uint32_t count);

/*
 * Pass pieces around a ring until all have all: @piece(@arg, i, &at) sets the
 * place of the piece of member i of @team and returns its bytes.
 */
typedef size_t (*tdm_coll_piece_fn)(const void *arg, uint32_t i,
				    struct tdm_coll_at *at);
void tdm_coll_team_ring(struct tdm_coll_plan *plan,
			const struct tdm_coll_team *team,
			tdm_coll_piece_fn piece, const void *arg);

#endif /* TDM_COLL_TEAM_H */
