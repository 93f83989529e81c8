/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints of a play: see sim_play.h. Locking: none, one thread. */
#include <stdlib.h>
#include <string.h>

#include <rdma/providers/fi_prov.h>

#include "av/locality.h"
#include "base/env.h"
#include "peer/patience.h"
#include "sim_check.h"
#include "tests/harness/world.h"

struct fi_provider *fi_prov_ini(void);

enum { PORT = 7000, CQ_SIZE = 512 };

static struct fi_provider *prov;
static struct fi_info *model;

void tds_stage_begin(void)
{
	struct tdt_attr attr;
	struct fi_info *hints;

	if (model)
		return;
	prov = fi_prov_ini();
	tdm_env.stat = 0;
	tdt_attr_init(&attr);
	attr.caps |= FI_RMA | FI_ATOMIC;
	attr.threading = FI_THREAD_DOMAIN;
	hints = tdt_hints(&attr);
	if (!hints ||
	    prov->getinfo(TDT_API, "127.0.0.1", NULL, FI_SOURCE, hints, &model))
		abort();
	model->fabric_attr->api_version = TDT_API;
	fi_freeinfo(hints);
}

void tds_stage_reset(void)
{
	memset(&tdm_patience, 0, sizeof(tdm_patience));
	(void)tdm_locality_filter();
}

static void name_of(const struct tds_play *p, int place, struct sockaddr_in *a)
{
	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_addr = tds_host_ip(p->host[place]);
	a->sin_port = htons((uint16_t)(PORT + place));
}

static void must(struct tds_play *p, const char *what, int ret)
{
	if (ret)
		tds_wrong(p, "%s: %s", what, fi_strerror(-ret));
}

static void open_queues(struct tds_play *p, struct tds_ep *e)
{
	struct fi_cq_attr cq = { .size = CQ_SIZE,
				 .format = FI_CQ_FORMAT_TAGGED,
				 .wait_obj = FI_WAIT_NONE };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_NONE };
	struct fi_av_attr av = { .type = FI_AV_TABLE };

	must(p, "fi_av_open", fi_av_open(e->domain, &av, &e->av, e));
	must(p, "fi_cq_open", fi_cq_open(e->domain, &cq, &e->cq, e));
	must(p, "fi_eq_open", fi_eq_open(e->fabric, &eq, &e->eq, e));
}

static void insert_all(struct tds_play *p, struct tds_ep *e)
{
	int i;

	for (i = 0; i < p->places; i++) {
		struct sockaddr_in a;

		name_of(p, i, &a);
		if (fi_av_insert(e->av, &a, 1, &e->addr[i], 0, NULL) != 1)
			tds_wrong(p, "fi_av_insert");
	}
}

static void open_ep(struct tds_play *p, struct tds_ep *e)
{
	must(p, "fi_fabric",
	     prov->fabric(e->info->fabric_attr, &e->fabric, NULL));
	e->fabric->api_version = TDT_API;
	must(p, "fi_domain", fi_domain(e->fabric, e->info, &e->domain, e));
	open_queues(p, e);
	must(p, "fi_endpoint", fi_endpoint(e->domain, e->info, &e->ep, e));
	must(p, "fi_ep_bind", fi_ep_bind(e->ep, &e->av->fid, 0));
	must(p, "fi_ep_bind",
	     fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV));
	must(p, "fi_ep_bind", fi_ep_bind(e->ep, &e->eq->fid, 0));
	must(p, "fi_setopt",
	     fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
		       &p->longest, sizeof(p->longest)));
	must(p, "fi_enable", fi_enable(e->ep));
	insert_all(p, e);
	must(p, "fi_mr_reg",
	     fi_mr_reg(
		     e->domain, e->region, TDS_EPS * TDS_CELLS * TDS_CELL_BYTES,
		     FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &e->mr, NULL));
}

struct tds_ep *tds_alive_at(struct tds_play *p, int place)
{
	int n = p->now_at[place];

	return n >= 0 && p->ep[n].alive ? &p->ep[n] : NULL;
}

/*
 * An attempt to reach the dead predecessor of @e meets @e, and the last attempts of
 * the predecessor are read yet: where they cross those of @e, one side gives up a
 * session that the other one has begun, and breaks its connection.
 */
static void inherit(struct tds_play *p, struct tds_ep *e)
{
	int i;

	for (i = 0; i < p->places; i++) {
		const struct tds_ep *other = tds_alive_at(p, i);

		if (other && i != e->place &&
		    tds_unmet(e->info->src_addr, other->info->src_addr))
			tds_harm(p, e->place, i,
				 TDS_HARM_HEIR | TDS_HARM_RESET);
	}
}

int tds_ep_open(struct tds_play *p, int place)
{
	static unsigned char regions[TDS_EPS]
				    [TDS_EPS * TDS_CELLS * TDS_CELL_BYTES];
	int n = p->eps++;
	struct tds_ep *e = &p->ep[n];

	memset(e, 0, sizeof(*e));
	e->place = place;
	e->life = (int)++p->life[place];
	e->proc = tds_proc_new(p->host[place]);
	e->proc->shm_on = (int)(p->seed >> place & 3) != 0;
	e->region = regions[n];
	memset(e->region, 0, sizeof(regions[n]));
	e->info = fi_dupinfo(model);
	if (!e->info)
		abort();
	name_of(p, place, e->info->src_addr);
	inherit(p, e);
	tds_enter(e->proc);
	open_ep(p, e);
	e->alive = 1;
	p->now_at[place] = n;
	tds_trace("endpoint %d opens at place %d, host %d, shared memory %s", n,
		  place, p->host[place], e->proc->shm_on ? "on" : "off");
	return n;
}

#define CLOSE(obj)                                                             \
	do {                                                                   \
		if (obj)                                                       \
			must(p, "fi_close of " #obj, fi_close(&(obj)->fid));   \
		(obj) = NULL;                                                  \
	} while (0)

void tds_ep_close(struct tds_play *p, struct tds_ep *e)
{
	tds_trace("endpoint %d closes%s", (int)(e - p->ep),
		  e->proc->dead ? ", dead" : "");
	tds_enter(e->proc);
	e->alive = 0;
	CLOSE(e->ep);
	CLOSE(e->mr);
	CLOSE(e->cq);
	CLOSE(e->av);
	CLOSE(e->domain);
	CLOSE(e->eq);
	CLOSE(e->fabric);
	fi_freeinfo(e->info);
	e->info = NULL;
	if (!e->proc->dead && e->proc->nfds)
		tds_wrong(p, "endpoint %d leaves %u descriptors",
			  (int)(e - p->ep), e->proc->nfds);
}

/* Remove the address of @place, and insert it again. */
void tds_ep_remove(struct tds_play *p, struct tds_ep *e, int place)
{
	struct sockaddr_in a;

	tds_trace("endpoint %d removes place %d", (int)(e - p->ep), place);
	tds_enter(e->proc);
	tds_harm(p, e->place, place, TDS_HARM_REMOVED);
	must(p, "fi_av_remove", fi_av_remove(e->av, &e->addr[place], 1, 0));
	name_of(p, place, &a);
	if (fi_av_insert(e->av, &a, 1, &e->addr[place], 0, NULL) != 1)
		tds_wrong(p, "fi_av_insert after fi_av_remove");
}
