/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pairs of an endpoint: made at first use, and changed by events of both
 * transports and of the address vector.
 *
 * Lock: held in all of this file.
 */
#include "tcp/pairs.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "av/locality.h"
#include "base/env.h"
#include "base/log.h"
#include "peer/eq.h"
#include "tcp/deferred.h"
#include "tcp/keys.h"
#include "tcp/root.h"
#include "tcp/tier.h"
#include "tdm_live.h"
#include "tdm_open.h"

static int pairs_reserve(struct tdm_ep *ep, fi_addr_t addr)
{
	size_t max = tdm_roundup_pow2(tdm_max(addr + 1, 16)), i;
	struct tdm_pair **pair;

	if (addr < ep->pairs)
		return 0;
	pair = realloc(ep->pair, max * sizeof(struct tdm_pair *));
	if (!pair)
		return -FI_ENOMEM;
	for (i = ep->pairs; i < max; i++)
		pair[i] = NULL;
	ep->pair = pair;
	ep->pairs = max;
	ep->fast_pairs = ep->rx_space || tdm_av_is_named(ep->av) ? 0 : max;
	return 0;
}

/* Returns the pair of another index of the same address, or NULL. */
static struct tdm_pair *alias_pair(const struct tdm_ep *ep, fi_addr_t addr)
{
	fi_addr_t i = tdm_av_lowest(ep->av, addr);

	for (; i != FI_ADDR_UNSPEC; i = tdm_av_next_alias(ep->av, i)) {
		if (i < ep->pairs && ep->pair[i])
			return ep->pair[i];
	}
	return NULL;
}

struct tdm_pair *tdm_ep_pair_of(const struct tdm_ep *ep, fi_addr_t addr)
{
	if (addr < ep->pairs && ep->pair[addr])
		return ep->pair[addr];
	return alias_pair(ep, addr);
}

struct tdm_pair *tdm_ep_pair(struct tdm_ep *ep, fi_addr_t addr)
{
	struct tdm_pair *p;

	if (!tdm_av_has(ep->av, addr) || !tdm_ep_key_ok(ep->root, addr) ||
	    pairs_reserve(ep, addr))
		return NULL;
	if (ep->pair[addr])
		return ep->pair[addr];
	p = alias_pair(ep, addr);
	if (!p)
		p = tdm_pair_new();
	if (!p)
		return NULL;
	p->refs++;
	ep->pair[addr] = p;
	return p;
}

void tdm_ep_free_pairs(struct tdm_ep *ep)
{
	size_t i;

	for (i = 0; i < ep->pairs; i++) {
		struct tdm_pair *p = ep->pair[i];

		if (!p || --p->refs)
			continue;
		free(p->history);
		free(p);
	}
	free(ep->pair);
	ep->pair = NULL;
	ep->pairs = 0;
	ep->fast_pairs = 0;
	tdm_history_free(&ep->removed);
}

static struct tdm_ep *from_user(struct tdm_av_user *user)
{
	return &tdm_container_of(user, struct tdm_root, av_user)->ep;
}

void tdm_ep_av_changed(struct tdm_av_user *user, int moved)
{
	struct tdm_ep *ep = from_user(user);
	int t;

	for (t = 0; t < TDM_TRANSPORTS; t++)
		tdm_tier[t]->resolve(ep, moved);
}

void tdm_ep_av_removed(struct tdm_av_user *user, fi_addr_t addr)
{
	struct tdm_ep *ep = from_user(user);
	struct tdm_pair *p = addr < ep->pairs ? ep->pair[addr] : NULL;
	int t;

	if (!p && tdm_env.report)
		/*
		 * The peer may have connected before its address was inserted.
		 */
		p = tdm_ep_pair(ep, addr);
	tdm_deferred_removed(ep, addr);
	tdm_backlog_removed(ep, addr);
	/*
	 * Its queued messages must not look like those of the next owner of the
	 * index.
	 */
	ep->rx_side->forget(ep, addr);
	if (!p)
		return;
	if (p->refs == 1)
		tdm_history_removed(ep, p, addr);
	ep->pair[addr] = NULL;
	if (--p->refs)
		return;
	for (t = 0; t < TDM_TRANSPORTS; t++)
		tdm_tier[t]->forget(ep, p, addr);
	free(p);
}

static void report_loss(struct tdm_ep *ep, fi_addr_t addr, int err,
			const void *name, size_t namelen)
{
	struct fi_eq_err_entry e = {
		.fid = &ep->own.fid.fid,
		.context = ep->own.fid.fid.context,
		.data = addr,
		.err = err,
		.err_data = (void *)(uintptr_t)name,
		.err_data_size = namelen,
	};
	struct tdm_eq *eq = ep->root->eq ? ep->root->eq : ep->domain->eq;

	if (eq)
		tdm_eq_write_err(eq, &e);
}

static struct tdm_ep *ep_of_local(struct tdm_domain *d, const struct fid *fid)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &d->roots) {
		struct tdm_ep *ep =
			&tdm_list_entry(pos, struct tdm_root, node)->ep;

		if (ep->local && &ep->local->fid == fid)
			return ep;
	}
	return NULL;
}

static void peer_up(struct tdm_ep *ep, struct tdm_pair *p, fi_addr_t addr)
{
	ep->local_pairs++;
	ep->domain->local_pairs++;
	if (!p || p->agreed != TDM_PATH_UNKNOWN)
		return;
	p->local = tdm_av_local(ep->av, addr);
	if (p->local != FI_ADDR_NOTAVAIL)
		tdm_pair_attached(ep, p);
}

static void peer_lost(struct tdm_ep *ep, struct tdm_pair *p,
		      const struct tdm_peer_event *event)
{
	if (ep->local_pairs) {
		ep->local_pairs--;
		ep->domain->local_pairs--;
	}
	if (p)
		tdm_history_end_local(ep, p, event);
	if (p && p->agreed == TDM_PATH_LOCAL)
		tdm_pair_lost(p);
	report_loss(ep, event->entry.data, event->err, event->addr,
		    tdm_min(event->addrlen, sizeof(event->addr)));
}

void tdm_ep_peer_event(void *domain, const struct tdm_peer_event *event)
{
	struct tdm_ep *ep = ep_of_local(domain, event->entry.fid);
	fi_addr_t addr = event->entry.data;
	struct tdm_pair *p;

	if (!ep)
		return;
	p = addr == FI_ADDR_UNSPEC ? NULL : tdm_ep_pair(ep, addr);
	switch (event->type) {
	case TDM_PEER_UP:
		peer_up(ep, p, addr);
		break;
	case TDM_PEER_REFUSED:
		if (p && event->reason < TDM_REASON_COUNT)
			p->reason = (uint8_t)event->reason;
		break;
	case TDM_PEER_LOST:
		peer_lost(ep, p, event);
		break;
	default:
		break;
	}
}

/* Returns why there is no shared memory when opening it returned @ret. */
static uint8_t why_not(int ret)
{
	if (ret == -FI_ENOCQ) /* no queue or counter bound */
		return TDM_REASON_DISABLED;
	return ret == -FI_EADDRINUSE ? TDM_REASON_NAME : TDM_REASON_RESOURCE;
}

void tdm_ep_no_local(struct tdm_ep *ep, int ret)
{
	ep->local_why = why_not(ret);
	if (ret == -FI_ENOCQ)
		TDM_INFO(EP_CTRL, "endpoint without shared memory: no queue "
				  "or counter of it could drive the peer");
	else
		TDM_WARN(EP_CTRL, "endpoint without shared memory: %s",
			 ret == -FI_EADDRINUSE ?
				 "its attach socket's name is in use" :
				 fi_strerror(-ret));
}

/* Returns why a peer connected by TCP and not by shared memory. */
static uint8_t remote_reason(const struct tdm_ep *ep,
			     const struct tdm_conn *conn)
{
	if (!tdm_locality_is_here(tdm_conn_addr(conn)))
		return TDM_REASON_HOST;
	return ep->local ? TDM_REASON_REFUSED : ep->local_why;
}

int tdm_ep_taken(void *arg, const struct tdm_addr *addr)
{
	const struct tdm_live_ops *ops;
	const struct tdm_ep *ep = arg;

	if (!ep->local)
		return 0;
	ops = tdm_open_ops(&ep->local->fid, TDM_LIVE_OPS);
	return ops &&
	       ops->live(ep->local, &addr->u, tdm_addr_len(addr), addr->key);
}

void tdm_ep_accepted(void *arg, struct tdm_conn *conn, fi_addr_t addr)
{
	struct tdm_ep *ep = arg;
	struct tdm_pair *p;

	p = addr == FI_ADDR_UNSPEC ? NULL : tdm_ep_pair(ep, addr);
	if (!p)
		return;
	if (p->reason == TDM_REASON_NONE)
		p->reason = remote_reason(ep, conn);
	p->conn = conn;
	tdm_pair_connected(p);
}

void tdm_ep_lost(void *arg, struct tdm_conn *conn, fi_addr_t addr, int err)
{
	const struct tdm_addr *name = tdm_conn_addr(conn);
	struct tdm_ep *ep = arg;
	struct tdm_pair *own;
	int remote;
	size_t i;

	own = addr == FI_ADDR_UNSPEC ? NULL : tdm_ep_pair(ep, addr);
	if (own)
		tdm_history_end_remote(ep, own, conn, err);

	for (i = 0; i < ep->pairs; i++) {
		struct tdm_pair *p = ep->pair[i];

		if (!p || p->conn != conn)
			continue;
		remote = p->agreed == TDM_PATH_REMOTE;
		tdm_pair_lost(p);
		if (remote)
			tdm_backlog_lost(ep, p,
					 err == FI_ESHUTDOWN ? FI_ECONNRESET :
							       err);
		/* A restarted peer may grant what it refused before. */
		if (ep->local && tdm_av_has(ep->av, i))
			tdm_av_local_renew(ep->av, i);
	}
	report_loss(ep, addr, err, name, tdm_addr_len(name));
}

void tdm_ep_crowded(void *arg, struct tdm_idle *idle)
{
	struct tdm_ep *ep = arg;
	struct tdm_list *pos;

	tdm_list_for_each(pos, &ep->domain->roots)
		tdm_tcp_idle(tdm_list_entry(pos, struct tdm_root, node)->ep.tcp,
			     idle);
}
