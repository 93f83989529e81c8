/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a connection that are allocated when they are needed. All
 * functions: domain lock held.
 *
 * Invariant: c->busy is tdm_not_busy, or c's own. Code that only looks need not
 * know which; code that adds something calls tdm_busy_need() first.
 */
#include "tcp/wire/parts.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "tcp/wire/tcp.h"

#define EMPTY(list)                                                            \
	{ (struct tdm_list *)(uintptr_t)&tdm_not_busy.list,                    \
	  (struct tdm_list *)(uintptr_t)&tdm_not_busy.list }

const struct tdm_busy tdm_not_busy = {
	.dataq = EMPTY(dataq),
	.waitq = EMPTY(waitq),
	.ctlq = EMPTY(ctlq),
	.rxs = EMPTY(rxs),
};

static struct tdm_busy *nothing(void)
{
	return (struct tdm_busy *)(uintptr_t)&tdm_not_busy;
}

void tdm_busy_init(struct tdm_conn *c)
{
	c->busy = nothing();
}

int tdm_busy_make(struct tdm_conn *c)
{
	struct tdm_busy *b = calloc(1, sizeof(*b));

	if (!b)
		return -FI_ENOMEM;
	tdm_list_init(&b->dataq);
	tdm_list_init(&b->waitq);
	tdm_list_init(&b->ctlq);
	tdm_list_init(&b->rxs);
	c->busy = b;
	return 0;
}

void tdm_busy_free(struct tdm_conn *c)
{
	struct tdm_busy *b = c->busy;

	if (b != nothing()) {
		tdm_ids_fini(&b->ids);
		tdm_ids_fini(&b->rids);
		free(b->more);
		free(b);
	}
	c->busy = nothing();
}

static int is_empty(const struct tdm_busy *b)
{
	return tdm_list_empty(&b->dataq) && tdm_list_empty(&b->waitq) &&
	       tdm_list_empty(&b->ctlq) && tdm_list_empty(&b->rxs) &&
	       !b->ids.used && !b->rids.used && !b->rts && !b->announced &&
	       !b->more_count;
}

void tdm_busy_trim(struct tdm_conn *c)
{
	if (!c->borrow && !c->head_len && is_empty(c->busy))
		tdm_busy_free(c);
}

void tdm_busy_forget(struct tdm_conn *c)
{
	struct tdm_busy *b = c->busy;

	if (b == nothing())
		return;
	b->left_at = NULL;
	b->rts = 0;
	b->more_count = 0;
	tdm_ids_fini(&b->ids);
	tdm_ids_fini(&b->rids);
	tdm_busy_trim(c);
}

struct tdm_setup *tdm_setup_get(struct tdm_conn *c)
{
	struct tdm_setup *s = c->setup;

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->conn = c;
	s->timer.fired = tdm_conn_timer;
	c->setup = s;
	return s;
}

void tdm_setup_disarm(struct tdm_conn *c)
{
	if (c->setup)
		tdm_loop_timer_disarm(&c->setup->timer);
}

void tdm_setup_forget_greeting(struct tdm_conn *c)
{
	struct tdm_setup *s = c->setup;

	if (!s)
		return;
	free(s->greeting);
	s->greeting = NULL;
	s->greeting_len = 0;
}

void tdm_setup_free(struct tdm_conn *c)
{
	tdm_setup_disarm(c);
	tdm_setup_forget_greeting(c);
	free(c->setup);
	c->setup = NULL;
}
