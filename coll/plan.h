/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of one member for one collective operation: what it sends, receives,
 * copies and reduces, in rounds. The steps of a round that need no other member
 * are done first, in their order; then all its transfers begin, and when all of
 * them have ended, the next round begins. Two members exchange the messages of an
 * operation in the order of their plans.
 *
 * A plan names places by buffer and offset, and members by rank. It does not
 * know how messages are sent, what the data are, or where the buffers lie.
 *
 * No lock: the caller guards its plans.
 */
#ifndef TDM_COLL_PLAN_H
#define TDM_COLL_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

enum tdm_coll_what {
	TDM_COLL_SEND,
	TDM_COLL_RECV,
	TDM_COLL_COPY,
	TDM_COLL_REDUCE
};

/* The buffers of an operation. */
enum tdm_coll_buf {
	TDM_COLL_IN,  /* the member's contribution; only read */
	TDM_COLL_OUT, /* its result */
	TDM_COLL_TMP, /* plan.tmp bytes for intermediate data */
	TDM_COLL_BUFS
};

/* A place in a buffer. */
struct tdm_coll_at {
	enum tdm_coll_buf buf;
	size_t at; /* bytes */
};

struct tdm_coll_step {
	uint8_t what;	/* enum tdm_coll_what */
	uint8_t begins; /* 1: it begins a round */
	uint32_t rank;	/* transfers: the other member */
	/* Copies and reductions have both; a transfer has the one it uses. */
	struct tdm_coll_at from, to;
	size_t len; /* bytes */
};

struct tdm_coll_plan {
	struct tdm_coll_step *step; /* step[count] */
	size_t count, max;
	size_t widest; /* the most transfers of one round */
	size_t tmp;    /* bytes of TDM_COLL_TMP */
	int failed;    /* memory ran out: the plan is of no use */

	size_t transfers; /* of the last round */
	size_t receives;  /* of them, receives */
	int next;	  /* 1: the next step begins a round */
};

static inline struct tdm_coll_at tdm_coll_in(size_t at)
{
	const struct tdm_coll_at place = { TDM_COLL_IN, at };

	return place;
}

static inline struct tdm_coll_at tdm_coll_out(size_t at)
{
	const struct tdm_coll_at place = { TDM_COLL_OUT, at };

	return place;
}

static inline struct tdm_coll_at tdm_coll_tmp(size_t at)
{
	const struct tdm_coll_at place = { TDM_COLL_TMP, at };

	return place;
}

/* Returns the place @bytes behind @at. */
static inline struct tdm_coll_at tdm_coll_behind(struct tdm_coll_at at,
						 size_t bytes)
{
	at.at += bytes;
	return at;
}

/* init: an empty plan; fini: free its steps. */
void tdm_coll_plan_init(struct tdm_coll_plan *plan);
void tdm_coll_plan_fini(struct tdm_coll_plan *plan);

/* Returns the place of @bytes more of TDM_COLL_TMP, aligned for any type. */
struct tdm_coll_at tdm_coll_plan_tmp(struct tdm_coll_plan *plan, size_t bytes);

/* Let the next step begin a round. */
void tdm_coll_plan_round(struct tdm_coll_plan *plan);

/* The same if the last round has receives: sends that need their data follow. */
void tdm_coll_plan_come(struct tdm_coll_plan *plan);

/*
 * Append a transfer with the member @rank. A message of 0 bytes is a message
 * too.
 */
void tdm_coll_plan_send(struct tdm_coll_plan *plan, uint32_t rank,
			struct tdm_coll_at from, size_t len);
void tdm_coll_plan_recv(struct tdm_coll_plan *plan, uint32_t rank,
			struct tdm_coll_at to, size_t len);

/*
 * Append a copy, or a reduction of @from into @to. It begins a round if the
 * last one has transfers. Nothing is appended for 0 bytes, or for a copy of a
 * place to itself.
 */
void tdm_coll_plan_copy(struct tdm_coll_plan *plan, struct tdm_coll_at to,
			struct tdm_coll_at from, size_t len);
void tdm_coll_plan_reduce(struct tdm_coll_plan *plan, struct tdm_coll_at to,
			  struct tdm_coll_at from, size_t len);

#endif /* TDM_COLL_PLAN_H */
