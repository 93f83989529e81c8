/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pairs of an endpoint: made at first use, and changed by events of both
 * transports and of the address vector.
 *
 * Lock: held in all of this file.
 */
#include "tcp/pairs.h"

#include <errno.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "av/locality.h"
#include "base/advice.h"
#include "base/env.h"
#include "base/folder.h"
#include "base/log.h"
#include "peer/eq.h"
#include "peer/import_eq.h"
#include "tcp/coll.h"
#include "tcp/deferred.h"
#include "tcp/fabric.h"
#include "tcp/keys.h"
#include "tcp/root.h"
#include "tcp/tier.h"
#include "tcp/tier_foreign.h"
#include "tcp/wire/offer.h"
#include "tdm_live.h"
#include "tdm_open.h"

static int pairs_reserve(struct tdm_root *root, fi_addr_t addr)
{
	size_t max = tdm_roundup_pow2(tdm_max(addr + 1, 16)), i;
	struct tdm_pair **pair;

	if (addr < root->pairs)
		return 0;
	pair = realloc(root->pair, max * sizeof(struct tdm_pair *));
	if (!pair)
		return -FI_ENOMEM;
	for (i = root->pairs; i < max; i++)
		pair[i] = NULL;
	root->pair = pair;
	root->pairs = max;
	root->ep.fast_pairs =
		root->ep.rx_space || tdm_av_is_named(root->ep.av) ? 0 : max;
	return 0;
}

/* Returns the pair of another index of the same address, or NULL. */
static struct tdm_pair *pair_of_same(const struct tdm_root *root,
				     fi_addr_t addr)
{
	fi_addr_t i = tdm_av_lowest(root->ep.av, addr);

	for (; i != FI_ADDR_UNSPEC; i = tdm_av_next_same(root->ep.av, i)) {
		if (i < root->pairs && root->pair[i])
			return root->pair[i];
	}
	return NULL;
}

struct tdm_pair *tdm_ep_pair_of(const struct tdm_root *root, fi_addr_t addr)
{
	if (addr < root->pairs && root->pair[addr])
		return root->pair[addr];
	return pair_of_same(root, addr);
}

struct tdm_pair *tdm_ep_pair(struct tdm_root *root, fi_addr_t addr)
{
	struct tdm_pair *p;

	if (!tdm_av_has(root->ep.av, addr) || !tdm_ep_key_ok(root, addr) ||
	    pairs_reserve(root, addr))
		return NULL;
	if (root->pair[addr])
		return root->pair[addr];
	p = pair_of_same(root, addr);
	if (!p)
		p = tdm_pair_new();
	if (!p)
		return NULL;
	p->refs++;
	root->pair[addr] = p;
	return p;
}

int tdm_ep_probes(const struct tdm_root *root, const struct tdm_pair *p)
{
	return p->conn && p->agreed != TDM_PATH_REMOTE && !root->foreign;
}

void tdm_ep_free_pairs(struct tdm_root *root)
{
	size_t i;

	for (i = 0; i < root->pairs; i++) {
		struct tdm_pair *p = root->pair[i];

		if (!p || --p->refs)
			continue;
		free(p->history);
		free(p);
	}
	free(root->pair);
	root->pair = NULL;
	root->pairs = 0;
	root->ep.fast_pairs = 0;
	tdm_history_free(&root->removed);
}

static struct tdm_root *from_user(struct tdm_av_user *user)
{
	return tdm_container_of(user, struct tdm_root, av_user);
}

void tdm_ep_av_changed(struct tdm_av_user *user, int moved)
{
	struct tdm_root *root = from_user(user);
	int t;

	for (t = 0; t < TDM_TRANSPORTS; t++)
		tdm_tier[t]->resolve(root, moved);
}

void tdm_ep_av_removed(struct tdm_av_user *user, fi_addr_t addr)
{
	struct tdm_root *root = from_user(user);
	struct tdm_pair *p = addr < root->pairs ? root->pair[addr] : NULL;
	int t;

	if (!p && tdm_env.report)
		/*
		 * The peer may have connected before its address was inserted.
		 */
		p = tdm_ep_pair(root, addr);
	if (tdm_av_lowest(root->ep.av, addr) == addr)
		tdm_coll_lost(root, addr, FI_ECONNABORTED);
	tdm_deferred_removed(root, addr);
	tdm_backlog_removed(root, addr);
	/*
	 * Its queued messages must not look like those of the next owner of the
	 * index.
	 */
	root->ep.rx_side->forget(&root->ep, addr);
	if (!p)
		return;
	if (p->refs == 1)
		tdm_history_removed(root, p, addr);
	root->pair[addr] = NULL;
	if (--p->refs)
		return;
	for (t = 0; t < TDM_TRANSPORTS; t++)
		tdm_tier[t]->forget(root, p, addr);
	free(p);
}

static void report_loss(struct tdm_root *root, fi_addr_t addr, int err,
			const void *name, size_t namelen)
{
	struct fi_eq_err_entry e = {
		.fid = &root->ep.own.fid.fid,
		.context = root->ep.own.fid.fid.context,
		.data = addr,
		.err = err,
		.err_data = (void *)(uintptr_t)name,
		.err_data_size = namelen,
	};
	struct tdm_eq *eq = root->eq ? root->eq : root->ep.domain->eq;
	struct tdm_import_eq *lent = root->lent_eq;

	if (!lent)
		lent = __atomic_load_n(&root->ep.domain->fabric->lent_eq,
				       __ATOMIC_ACQUIRE);
	if (lent)
		tdm_import_eq_lost(lent, &e);
	else if (eq)
		tdm_eq_write_err(eq, &e);
}

static struct tdm_root *root_of_local(struct tdm_domain *d,
				      const struct fid *fid)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &d->roots) {
		struct tdm_root *root =
			tdm_list_entry(pos, struct tdm_root, node);

		if (root->local && &root->local->fid == fid)
			return root;
	}
	return NULL;
}

static void peer_up(struct tdm_root *root, struct tdm_pair *p, fi_addr_t addr)
{
	root->local_pairs++;
	root->ep.domain->local_pairs++;
	if (p && p->agreed == TDM_PATH_REMOTE && p->conn &&
	    !tdm_conn_agreed(p->conn) && !tdm_conn_waits(p->conn))
		tdm_pair_detached(p, 0); /* it would get no session beside */
	if (!p || p->agreed != TDM_PATH_UNKNOWN)
		return;
	p->local = tdm_av_local(root->ep.av, addr);
	if (p->local != FI_ADDR_NOTAVAIL)
		tdm_pair_attached(root, p);
}

static void peer_lost(struct tdm_root *root, struct tdm_pair *p,
		      const struct tdm_peer_event *event)
{
	if (root->local_pairs) {
		root->local_pairs--;
		root->ep.domain->local_pairs--;
	}
	if (p)
		tdm_history_end_local(root, p, event);
	if (p && p->agreed == TDM_PATH_LOCAL)
		tdm_pair_lost(p);
	tdm_coll_lost(root, event->entry.data, event->err);
	report_loss(root, event->entry.data, event->err, event->addr,
		    tdm_min(event->addrlen, sizeof(event->addr)));
}

void tdm_ep_peer_event(void *domain, const struct tdm_peer_event *event)
{
	struct tdm_root *root = root_of_local(domain, event->entry.fid);
	fi_addr_t addr = event->entry.data;
	struct tdm_pair *p;

	if (!root)
		return;
	p = addr == FI_ADDR_UNSPEC ? NULL : tdm_ep_pair(root, addr);
	switch (event->type) {
	case TDM_PEER_UP:
		peer_up(root, p, addr);
		break;
	case TDM_PEER_REFUSED:
		if (p && event->reason < TDM_REASON_COUNT)
			p->reason = (uint8_t)event->reason;
		break;
	case TDM_PEER_LOST:
		peer_lost(root, p, event);
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
	if (ret == -ENOTDIR)
		return TDM_REASON_FOLDER;
	return ret == -FI_EADDRINUSE ? TDM_REASON_NAME : TDM_REASON_RESOURCE;
}

void tdm_ep_no_local(struct tdm_root *root, int ret)
{
	root->local_why = why_not(ret);
	if (root->local_why == TDM_REASON_FOLDER)
		return; /* the user has been told */
	if (ret == -FI_ENOCQ)
		TDM_INFO(EP_CTRL, "endpoint without shared memory: no queue "
				  "or counter of it could drive the peer");
	else
		TDM_WARN(EP_CTRL, "endpoint without shared memory: %s: %s",
			 fi_strerror(-ret), tdm_advice_local(-ret));
}

/* Returns why a peer connected by TCP and not by shared memory. */
static uint8_t remote_reason(const struct tdm_root *root,
			     const struct tdm_conn *conn)
{
	const struct tdm_addr *a = tdm_conn_addr(conn);

	if (tdm_folder_serves(&a->u.sa) && !tdm_folder_has(&a->u.sa))
		return TDM_REASON_NO_SOCKET;
	if (!tdm_folder_serves(&a->u.sa) && !tdm_locality_is_here(a))
		return TDM_REASON_HOST;
	return root->local ? TDM_REASON_REFUSED : root->local_why;
}

int tdm_ep_taken(void *arg, const struct tdm_addr *addr)
{
	const struct tdm_live_ops *ops;
	const struct tdm_root *root = arg;

	if (!root->local)
		return 0;
	ops = tdm_open_ops(&root->local->fid, TDM_LIVE_OPS);
	return ops &&
	       ops->live(root->local, &addr->u, tdm_addr_len(addr), addr->key);
}

/* waits() of struct tdm_live_ops. */
static int waits_for_tcp(void *arg, const void *addr, size_t len, uint32_t key)
{
	const struct tdm_root *root = arg;
	const struct tdm_conn *conn;
	struct tdm_addr a;

	if (!root->tcp || tdm_addr_from_sockaddr(&a, addr, len))
		return 0;
	a.key = key;
	conn = tdm_conn_find(root->tcp, &a);
	return conn && tdm_conn_waits(conn);
}

void tdm_ep_be_asked(struct tdm_root *root)
{
	const struct tdm_live_ops *ops =
		tdm_open_ops(&root->local->fid, TDM_LIVE_OPS);

	if (ops && ops->size >= sizeof(*ops))
		ops->ask(root->local, waits_for_tcp, root);
}

void tdm_ep_accepted(void *arg, struct tdm_conn *conn, fi_addr_t addr)
{
	struct tdm_root *root = arg;
	struct tdm_pair *p;

	p = addr == FI_ADDR_UNSPEC ? NULL : tdm_ep_pair(root, addr);
	if (!p)
		return;
	if (root->foreign && tdm_conn_may_meet(conn)) {
		p->conn = conn; /* the next send agrees on the path */
		return;
	}
	if (p->reason == TDM_REASON_NONE)
		p->reason = remote_reason(root, conn);
	p->conn = conn;
	tdm_pair_connected(p);
}

void tdm_ep_lost(void *arg, struct tdm_conn *conn, fi_addr_t addr, int err)
{
	/* why operations fail: those that a peer which closes leaves are reset */
	const int why = err == FI_ESHUTDOWN ? FI_ECONNRESET : err;
	const struct tdm_addr *name = tdm_conn_addr(conn);
	struct tdm_root *root = arg;
	struct tdm_pair *own;
	int probe, foreign;
	size_t i;

	foreign = tdm_tier_foreign_lost(root, conn, why);
	own = addr == FI_ADDR_UNSPEC ? NULL : tdm_ep_pair(root, addr);
	if (own)
		tdm_history_end_remote(root, own, conn, err, foreign);

	for (i = 0; i < root->pairs; i++) {
		struct tdm_pair *p = root->pair[i];

		if (!p || p->conn != conn)
			continue;
		probe = tdm_ep_probes(root, p);
		tdm_pair_lost(p);
		if (!probe)
			tdm_backlog_lost(root, p, why);
		/* A restarted peer may grant what it refused before. */
		if (root->local && tdm_av_has(root->ep.av, i))
			tdm_av_local_renew(root->ep.av, i);
	}
	tdm_coll_lost(root, addr, err);
	report_loss(root, addr, err, name, tdm_addr_len(name));
}

void tdm_ep_crowded(void *arg, struct tdm_idle *idle)
{
	struct tdm_root *root = arg;
	struct tdm_list *pos;

	tdm_list_for_each(pos, &root->ep.domain->roots)
		tdm_tcp_idle(tdm_list_entry(pos, struct tdm_root, node)->tcp,
			     idle);
}
