/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing the world of world.h: fi_getinfo(3), fi_fabric(3),
 * fi_domain(3), fi_av(3), fi_cq(3), fi_cntr(3), fi_eq(3), fi_endpoint(3) in
 * the order an application uses.
 *
 * Each endpoint has a domain and an AV of its own unless attr.one_domain is
 * set, so that two endpoints of one process meet as two processes would.
 */
#include "world.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drive.h"

static char error[256];

#define TRY(call)                                                              \
	do {                                                                   \
		ret = (call);                                                  \
		if (ret) {                                                     \
			snprintf(error, sizeof(error), "%s: %s (%d)", #call,   \
				 fi_strerror(-ret), ret);                      \
			goto err;                                              \
		}                                                              \
	} while (0)

const char *tdt_error(void)
{
	return error;
}

const char *tdt_prov_name(void)
{
	const char *s = getenv("TANDEM_TEST_PROV");

	return s && *s ? s : "tandem";
}

enum tdt_path tdt_path(void)
{
	const char *s = getenv("TANDEM_TEST_PATH");

	if (s && !strcmp(s, "remote"))
		return TDT_REMOTE;
	if (s && !strcmp(s, "mixed"))
		return TDT_MIXED;
	return TDT_LOCAL;
}

/* The module of the build tree: .libs beside, or above, this program. */
static void find_module(void)
{
	static const char *const places[] = { "/.libs", "/../.libs",
					      "/../../.libs" };
	char dir[4096], file[4200];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	char *slash;
	size_t i;

	if (n <= 0)
		return;
	dir[n] = 0;
	slash = strrchr(dir, '/');
	if (slash)
		*slash = 0;
	for (i = 0; i < 3; i++) {
		snprintf(file, sizeof(file), "%s%s/libtandem-fi.so", dir,
			 places[i]);
		if (access(file, R_OK))
			continue;
		snprintf(file, sizeof(file), "%s%s", dir, places[i]);
		setenv("FI_PROVIDER_PATH", file, 0);
		return;
	}
}

void tdt_environment(void)
{
	if (getenv("TDT_ROLE"))
		return; /* a child has its parent's */
	if (!getenv("TANDEM_TEST_PATH"))
		setenv("TANDEM_TEST_PATH", "local", 1);
	setenv("FI_TANDEM_SHM", tdt_path() == TDT_REMOTE ? "off" : "auto", 1);
	setenv("FI_PROVIDER", tdt_prov_name(), 0);
	if (!getenv("FI_PROVIDER_PATH"))
		find_module();
}

void tdt_attr_init(struct tdt_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->eps = tdt_path() == TDT_MIXED ? 3 : 2;
	attr->type = FI_EP_RDM;
	attr->caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_MULTI_RECV |
		     FI_DIRECTED_RECV;
	attr->format = FI_CQ_FORMAT_TAGGED;
	attr->wait = FI_WAIT_NONE;
	attr->cntr_wait = FI_WAIT_NONE;
	attr->eq_wait = FI_WAIT_NONE;
	attr->threading = FI_THREAD_SAFE;
	attr->addr_format = FI_SOCKADDR_IN;
	attr->node = "127.0.0.1";
}

struct fi_info *tdt_hints(const struct tdt_attr *attr)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = attr->caps;
	hints->addr_format = attr->addr_format;
	hints->ep_attr->type = attr->type;
	hints->domain_attr->threading = attr->threading;
	hints->domain_attr->control_progress = attr->progress;
	hints->domain_attr->data_progress = attr->progress;
	hints->domain_attr->max_group_id = attr->max_group;
	hints->domain_attr->auth_key_size = attr->key_size;
	if (attr->key) {
		hints->domain_attr->auth_key = malloc(attr->key_size);
		if (hints->domain_attr->auth_key)
			memcpy(hints->domain_attr->auth_key, attr->key,
			       attr->key_size);
	}
	hints->tx_attr->op_flags = attr->tx_op_flags;
	hints->rx_attr->op_flags = attr->rx_op_flags;
	hints->tx_attr->size = attr->tx_size;
	hints->tx_attr->tclass = attr->tclass;
	hints->domain_attr->tclass = attr->domain_tclass;
	hints->rx_attr->size = attr->rx_size;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(tdt_prov_name());
	return hints;
}

static int open_set(struct tdt_ep *ep)
{
	struct fid_fabric *fabric = ep->world->fabric;
	struct fi_wait_attr attr;
	int ret;

	memset(&attr, 0, sizeof(attr));
	attr.wait_obj = ep->world->attr.set;
	if (attr.wait_obj == FI_WAIT_NONE)
		return 0;
	TRY(fabric->ops->wait_open(fabric, &attr, &ep->set));
	return 0;
err:
	return ret;
}

static int open_cqs(struct tdt_ep *ep)
{
	const struct tdt_attr *a = &ep->world->attr;
	struct fi_cq_attr cq;
	int ret;

	if (a->no_cq)
		return 0;
	memset(&cq, 0, sizeof(cq));
	cq.format = a->format;
	cq.wait_obj = ep->set ? FI_WAIT_SET : a->wait;
	cq.wait_set = ep->set;
	cq.size = a->cq_size;
	TRY(fi_cq_open(ep->domain, &cq, &ep->rx_cq, ep));
	if (a->one_cq) {
		ep->tx_cq = ep->rx_cq;
		TRY(fi_ep_bind(ep->ep, &ep->rx_cq->fid,
			       FI_TRANSMIT | FI_RECV | a->tx_bind));
		return 0;
	}
	TRY(fi_cq_open(ep->domain, &cq, &ep->tx_cq, ep));
	TRY(fi_ep_bind(ep->ep, &ep->tx_cq->fid, FI_TRANSMIT | a->tx_bind));
	TRY(fi_ep_bind(ep->ep, &ep->rx_cq->fid, FI_RECV | a->rx_bind));
	return 0;
err:
	return ret;
}

static int open_cntrs(struct tdt_ep *ep)
{
	struct fi_cntr_attr cntr;
	int ret;

	if (!ep->world->attr.cntrs)
		return 0;
	memset(&cntr, 0, sizeof(cntr));
	cntr.events = FI_CNTR_EVENTS_COMP;
	cntr.wait_obj = ep->set ? FI_WAIT_SET : ep->world->attr.cntr_wait;
	cntr.wait_set = ep->set;
	TRY(fi_cntr_open(ep->domain, &cntr, &ep->tx_cntr, ep));
	TRY(fi_cntr_open(ep->domain, &cntr, &ep->rx_cntr, ep));
	TRY(fi_ep_bind(ep->ep, &ep->tx_cntr->fid, FI_SEND));
	TRY(fi_ep_bind(ep->ep, &ep->rx_cntr->fid, FI_RECV));
	return 0;
err:
	return ret;
}

static int open_domain(struct tdt_ep *ep)
{
	struct tdt_world *w = ep->world;
	struct fi_av_attr av;
	int ret;

	if (w->attr.one_domain && ep->index) {
		ep->domain = w->eps[0].domain;
		ep->av = w->eps[0].av;
		return 0;
	}
	memset(&av, 0, sizeof(av));
	av.type = FI_AV_TABLE;
	av.count = w->count;
	av.flags = w->attr.av_flags;
	av.name = w->attr.av_name;
	TRY(fi_domain(w->fabric, ep->info, &ep->domain, ep));
	TRY(fi_av_open(ep->domain, &av, &ep->av, ep));
	ep->map_addr = av.map_addr;
	return 0;
err:
	return ret;
}

/* In a mixed world the last endpoint neither sends nor accepts shm. */
static int keep_to_tcp(struct tdt_ep *ep)
{
	bool permitted = false;
	int ret;

	if ((tdt_path() != TDT_MIXED || ep->world->attr.no_tcp_only) &&
	    !ep->world->attr.tcp_last)
		return 0;
	if (ep->index + 1 != ep->world->count)
		return 0;
	TRY(fi_setopt(&ep->ep->fid, FI_OPT_ENDPOINT,
		      FI_OPT_SHARED_MEMORY_PERMITTED, &permitted,
		      sizeof(permitted)));
	return 0;
err:
	return ret;
}

static int open_eq(struct tdt_ep *ep)
{
	struct fi_eq_attr attr;
	int ret;

	if (!ep->world->attr.eq)
		return 0;
	memset(&attr, 0, sizeof(attr));
	attr.wait_obj = ep->set ? FI_WAIT_SET : ep->world->attr.eq_wait;
	attr.wait_set = ep->set;
	TRY(fi_eq_open(ep->world->fabric, &attr, &ep->eq, ep));
	TRY(fi_ep_bind(ep->ep, &ep->eq->fid, 0));
	return 0;
err:
	return ret;
}

int tdt_ep_open(struct tdt_ep *ep)
{
	struct tdt_world *w = ep->world;
	int ret;

	ep->info = fi_dupinfo(w->info);
	if (!ep->info)
		return -FI_ENOMEM;
	TRY(open_domain(ep));
	TRY(fi_endpoint(ep->domain, ep->info, &ep->ep, ep));
	TRY(fi_ep_bind(ep->ep, &ep->av->fid, 0));
	TRY(open_set(ep));
	TRY(open_cqs(ep));
	TRY(open_cntrs(ep));
	TRY(open_eq(ep));
	TRY(keep_to_tcp(ep));
	return 0;
err:
	return ret;
}

int tdt_ep_enable(struct tdt_ep *ep)
{
	int ret;

	TRY(fi_enable(ep->ep));
	ep->namelen = sizeof(ep->name);
	TRY(fi_getname(&ep->ep->fid, ep->name, &ep->namelen));
	return 0;
err:
	return ret;
}

static int insert_peers(struct tdt_ep *ep)
{
	struct tdt_world *w = ep->world;
	size_t i;

	for (i = 0; i < w->count; i++) {
		int ret;

		if (w->attr.one_domain && ep->index) {
			ep->peers[i] = w->eps[0].peers[i];
			continue;
		}
		ret = fi_av_insert(ep->av, w->eps[i].name, 1, &ep->peers[i], 0,
				   NULL);
		if (ret != 1) {
			snprintf(error, sizeof(error), "fi_av_insert: %d", ret);
			return ret < 0 ? ret : -FI_EOTHER;
		}
	}
	return 0;
}

/* Set up the provider as the core does after loading it. */
static int getinfo(const struct tdt_attr *a, const struct fi_info *hints,
		   struct fi_info **info)
{
	int ret;

	if (!a->prov)
		return fi_getinfo(TDT_API, a->node, a->service, FI_SOURCE,
				  hints, info);
	ret = a->prov->getinfo(TDT_API, a->node, a->service, FI_SOURCE, hints,
			       info);
	if (!ret)
		(*info)->fabric_attr->api_version = TDT_API;
	return ret;
}

static int fabric(const struct tdt_attr *a, struct fi_fabric_attr *attr,
		  struct fid_fabric **fid)
{
	int ret;

	if (!a->prov)
		return fi_fabric(attr, fid, NULL);
	ret = a->prov->fabric(attr, fid, NULL);
	if (!ret)
		(*fid)->api_version = TDT_API;
	return ret;
}

static int open_fabric(struct tdt_world *w)
{
	struct fi_info *hints = tdt_hints(&w->attr);
	int ret = -FI_ENOMEM;

	if (!hints)
		goto err;
	TRY(getinfo(&w->attr, hints, &w->info));
	TRY(fabric(&w->attr, w->info->fabric_attr, &w->fabric));
err:
	if (hints)
		fi_freeinfo(hints);
	return ret;
}

int tdt_world_open(const struct tdt_attr *attr, struct tdt_world **world)
{
	struct tdt_world *w = calloc(1, sizeof(*w));
	size_t i;
	int ret = -FI_ENOMEM;

	if (!w)
		goto err;
	w->attr = *attr;
	w->count = attr->eps;
	TRY(open_fabric(w));
	for (i = 0; i < w->count; i++) {
		w->eps[i].world = w;
		w->eps[i].index = i;
		TRY(tdt_ep_open(&w->eps[i]));
	}
	for (i = 0; !attr->no_enable && i < w->count; i++)
		TRY(tdt_ep_enable(&w->eps[i]));
	for (i = 0; !attr->no_enable && !attr->no_insert && i < w->count; i++)
		TRY(insert_peers(&w->eps[i]));
	*world = w;
	return 0;
err:
	if (w)
		tdt_world_close(w);
	return ret;
}

static void close_fid(struct fid *fid, const char *what, int *first)
{
	int ret = fid ? fi_close(fid) : 0;

	if (!ret || *first)
		return;
	*first = ret;
	snprintf(error, sizeof(error), "fi_close(%s): %s (%d)", what,
		 fi_strerror(-ret), ret);
}

#define CLOSE(obj)                                                             \
	do {                                                                   \
		close_fid((obj) ? &(obj)->fid : NULL, #obj, &ret);             \
		(obj) = NULL;                                                  \
	} while (0)

int tdt_ep_close(struct tdt_ep *ep)
{
	int ret = 0;

	CLOSE(ep->ep);
	if (ep->tx_cq == ep->rx_cq)
		ep->tx_cq = NULL;
	CLOSE(ep->tx_cq);
	CLOSE(ep->rx_cq);
	CLOSE(ep->tx_cntr);
	CLOSE(ep->rx_cntr);
	CLOSE(ep->eq);
	CLOSE(ep->set);
	if (!ep->world || !ep->world->attr.one_domain) {
		CLOSE(ep->av);
		CLOSE(ep->domain);
	}
	if (ep->info)
		fi_freeinfo(ep->info);
	ep->info = NULL;
	free(ep->comps);
	ep->comps = NULL;
	ep->comp_count = ep->comp_room = 0;
	return ret;
}

int tdt_world_close(struct tdt_world *w)
{
	int ret = 0, one;
	size_t i;

	for (i = 0; i < w->count; i++) {
		one = tdt_ep_close(&w->eps[i]);
		if (!ret)
			ret = one;
	}
	if (w->attr.one_domain) {
		CLOSE(w->eps[0].av);
		CLOSE(w->eps[0].domain);
	}
	CLOSE(w->fabric);
	if (w->info)
		fi_freeinfo(w->info);
	free(w);
	return ret;
}
