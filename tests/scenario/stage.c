/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing what a scenario needs: see play.h. Locking: none, one
 * thread.
 */
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "tests/harness/fault.h"
#include "tests/harness/os_fault.h"

struct fi_provider *fi_prov_ini(void);

enum { COMPS = 4096 }; /* completions between two turns, at most */

static unsigned char regions[TDT_PLAY_EPS][TDT_PLAY_REGION];

/* The provider, which reads its parameters at each call of that function. */
static struct fi_provider *provider(void)
{
	static struct fi_provider *prov;

	if (!prov)
		prov = fi_prov_ini();
	return prov;
}

void tdt_play_begin(void)
{
	(void)provider();
}

void tdt_play_attr(const struct tdt_play *p, struct tdt_attr *attr)
{
	tdt_attr_init(attr);
	attr->eps = 2;
	attr->prov = provider();
	attr->no_tcp_only = 1;
	attr->caps |= FI_RMA | FI_ATOMIC;
	if (p->scenario->set)
		p->scenario->set(attr);
	if (p->two)
		attr->eps = 1;
	attr->no_insert = 1;
}

struct tdt_ep *tdt_play_ep(struct tdt_play *p, size_t i)
{
	if (p->two)
		return i == p->side ? &p->w->eps[0] : NULL;
	if (i < p->w->count)
		return &p->w->eps[i];
	return p->more && i < p->w->count + p->more->count ?
		       &p->more->eps[i - p->w->count] :
		       NULL;
}

/* Room for completions now, so that no allocation of ours can fail. */
static void reserve(struct tdt_world *w)
{
	size_t i;

	tdt_alloc_pause(1);
	for (i = 0; i < w->count; i++) {
		w->eps[i].comps = calloc(COMPS, sizeof(*w->eps[i].comps));
		w->eps[i].comp_room = COMPS;
		if (!w->eps[i].comps)
			abort();
	}
	tdt_alloc_pause(0);
}

int tdt_play_know(struct tdt_play *p, size_t from, size_t to)
{
	struct tdt_ep *a = tdt_play_ep(p, from), *b = tdt_play_ep(p, to);
	int ret = fi_av_insert(a->av, b->name, 1, &p->addr[from][to], 0, NULL);

	if (ret == 1)
		return 0;
	return tdt_play_try(p, "fi_av_insert", ret < 0 ? ret : -FI_ENOMEM);
}

/* Each knows each. With two processes, also the other one's endpoint. */
static int acquaint(struct tdt_play *p)
{
	size_t other = !p->side, i, k;
	struct tdt_ep *ep = &p->w->eps[0];
	int ret = 0;

	if (p->two) {
		if (tdt_tell_name(p->fd, ep) ||
		    tdt_hear_name(p->fd, ep, &p->addr[p->side][other]))
			return -FI_ECONNRESET;
		return fi_av_insert(ep->av, ep->name, 1,
				    &p->addr[p->side][p->side], 0, NULL) == 1 ?
			       0 :
			       -FI_ENOMEM;
	}
	for (i = 0; i < p->w->count; i++) {
		for (k = 0; k < p->w->count && !ret; k++)
			ret = tdt_play_know(p, i, k);
	}
	return ret;
}

/* fi_getinfo(3) has one error for all reasons. */
static void opened(struct tdt_play *p, int ret)
{
	if (!p->err || !tdt_play_struck(p) ||
	    (ret != -FI_ENODATA && ret != -p->err))
		tdt_play_try(p, tdt_error(), ret);
}

int tdt_play_open(struct tdt_play *p)
{
	struct tdt_attr attr;
	int ret;

	p->random = p->seed;
	p->count = 0;
	p->used = 0;
	p->lost_injects = 0;
	p->tag = 1000;
	memset(p->addr, 0xff, sizeof(p->addr)); /* FI_ADDR_UNSPEC */
	tdt_play_attr(p, &attr);
	ret = tdt_world_open(&attr, &p->w);
	opened(p, ret);
	if (ret) {
		p->w = NULL;
		return ret;
	}
	reserve(p->w);
	ret = acquaint(p);
	if (ret)
		tdt_play_close(p);
	return ret;
}

int tdt_play_more(struct tdt_play *p, const struct tdt_attr *attr)
{
	int ret = tdt_world_open(attr, &p->more);

	opened(p, ret);
	if (ret)
		p->more = NULL;
	else
		reserve(p->more);
	return ret;
}

void tdt_play_close_more(struct tdt_play *p)
{
	if (p->more && tdt_world_close(p->more))
		tdt_play_wrong(p, "close of one more: %s", tdt_error());
	p->more = NULL;
}

void tdt_play_close(struct tdt_play *p)
{
	size_t i;

	for (i = 0; i < TDT_PLAY_EPS; i++)
		tdt_play_hide(p, i);
	tdt_play_close_more(p);
	if (p->w && tdt_world_close(p->w))
		tdt_play_wrong(p, "close: %s", tdt_error());
	p->w = NULL;
}

uint64_t tdt_play_key(size_t ep)
{
	return 0x4700 + ep;
}

int tdt_play_expose(struct tdt_play *p, size_t ep)
{
	struct tdt_ep *e = tdt_play_ep(p, ep);
	int ret;

	if (!e)
		return 0;
	p->region[ep] = regions[ep];
	memset(regions[ep], (int)ep, sizeof(regions[ep]));
	ret = fi_mr_reg(e->domain, regions[ep], sizeof(regions[ep]),
			FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE,
			0, tdt_play_key(ep), 0, &p->mr[ep], NULL);
	if (ret)
		p->mr[ep] = NULL;
	return tdt_play_try(p, "fi_mr_reg", ret);
}

int tdt_play_hide(struct tdt_play *p, size_t ep)
{
	int ret = p->mr[ep] ? fi_close(&p->mr[ep]->fid) : 0;

	if (ret)
		tdt_play_wrong(p, "fi_close of a region: %s",
			       fi_strerror(-ret));
	p->mr[ep] = NULL;
	return ret;
}

/* ---- a whole play --------------------------------------------------------- */

static void both_ways(struct tdt_play *p, size_t len)
{
	size_t last = p->two ? 1 : p->w->count - 1, i;

	for (i = 0; i < last; i++) {
		tdt_play_pass(p, i, i + 1, 16, 1);
		tdt_play_pass(p, i + 1, i, len, 1);
	}
	tdt_play_wait(p);
}

/*
 * What struck, if only in the first exchange, is over. Pairs that it broke are
 * found out by the second, whose operations may fail; the third succeeds.
 */
static void heal(struct tdt_play *p, void (*calm)(void))
{
	int keep = p->lenient;

	both_ways(p, 16);
	p->lenient |= tdt_play_struck(p) && !p->invisible;
	calm();
	if (p->alone)
		return;
	both_ways(p, 16);
	p->lenient = 0;
	p->invisible = 0;
	both_ways(p, 100000);
	p->lenient = keep;
}

static void env_of(const struct tdt_play *p)
{
	tdm_env.shm = p->tier == TDT_TIER_TCP ? TDM_SHM_OFF : TDM_SHM_AUTO;
	tdm_env.conn_timeout_ms = 3000;
	tdm_env.refused_timeout_ms = 100;
}

const char *tdt_play_whole(struct tdt_play *p,
			   const struct tdt_play_hooks *hooks)
{
	struct tdm_env saved;
	int invisible = p->invisible;

	provider();
	saved = tdm_env;
	p->problem[0] = 0;
	env_of(p);
	if (tdt_play_open(p)) {
		hooks->calm();
		if (!p->problem[0])
			tdt_play_open(p);
	}
	if (p->w && !p->problem[0])
		p->scenario->run(p);
	if (p->w && !p->problem[0])
		heal(p, hooks->calm);
	if (p->w)
		tdt_play_turn(p);
	hooks->closing();
	tdt_play_close(p);
	p->invisible = invisible;
	tdm_env = saved;
	return p->problem;
}
