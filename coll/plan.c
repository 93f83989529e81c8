/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans of collective operations. See plan.h.
 *
 * No lock: the caller guards its plans.
 */
#include "coll/plan.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_STEPS = 16, ALIGN_BYTES = 64 };

void tdm_coll_plan_init(struct tdm_coll_plan *p)
{
	memset(p, 0, sizeof(*p));
	p->next = 1;
}

void tdm_coll_plan_fini(struct tdm_coll_plan *p)
{
	free(p->step);
	tdm_coll_plan_init(p);
}

struct tdm_coll_at tdm_coll_plan_tmp(struct tdm_coll_plan *p, size_t bytes)
{
	struct tdm_coll_at at = tdm_coll_tmp(p->tmp);

	if (bytes > SIZE_MAX / 2 - p->tmp - ALIGN_BYTES)
		p->failed = 1;
	else
		p->tmp += (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
	return at;
}

void tdm_coll_plan_round(struct tdm_coll_plan *p)
{
	p->next = 1;
}

void tdm_coll_plan_come(struct tdm_coll_plan *p)
{
	if (p->receives)
		p->next = 1;
}

static void append(struct tdm_coll_plan *p, struct tdm_coll_step step)
{
	struct tdm_coll_step *more;

	if (p->count == p->max) {
		p->max = p->max ? p->max * 2 : FIRST_STEPS;
		more = realloc(p->step, p->max * sizeof(*more));
		if (!more) {
			p->max = p->count;
			p->failed = 1;
			return;
		}
		p->step = more;
	}
	if (p->next)
		p->transfers = p->receives = 0;
	step.begins = (uint8_t)p->next;
	p->next = 0;
	p->step[p->count++] = step;
	if (step.what == TDM_COLL_SEND || step.what == TDM_COLL_RECV)
		p->widest = tdm_max(p->widest, ++p->transfers);
	p->receives += step.what == TDM_COLL_RECV;
}

void tdm_coll_plan_send(struct tdm_coll_plan *p, uint32_t rank,
			struct tdm_coll_at from, size_t len)
{
	const struct tdm_coll_step s = {
		.what = TDM_COLL_SEND, .rank = rank, .from = from, .len = len
	};

	append(p, s);
}

void tdm_coll_plan_recv(struct tdm_coll_plan *p, uint32_t rank,
			struct tdm_coll_at to, size_t len)
{
	const struct tdm_coll_step s = {
		.what = TDM_COLL_RECV, .rank = rank, .to = to, .len = len
	};

	append(p, s);
}

static void append_local(struct tdm_coll_plan *p, enum tdm_coll_what what,
			 struct tdm_coll_at to, struct tdm_coll_at from,
			 size_t len)
{
	const struct tdm_coll_step s = {
		.what = (uint8_t)what, .from = from, .to = to, .len = len
	};

	if (!len)
		return;
	if (p->transfers)
		p->next = 1;
	append(p, s);
}

void tdm_coll_plan_copy(struct tdm_coll_plan *p, struct tdm_coll_at to,
			struct tdm_coll_at from, size_t len)
{
	if (to.buf != from.buf || to.at != from.at)
		append_local(p, TDM_COLL_COPY, to, from, len);
}

void tdm_coll_plan_reduce(struct tdm_coll_plan *p, struct tdm_coll_at to,
			  struct tdm_coll_at from, size_t len)
{
	append_local(p, TDM_COLL_REDUCE, to, from, len);
}
