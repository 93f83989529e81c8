/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a pair, and how both sides agree on it.
 *
 *             attached, ours or the peer's
 *   UNKNOWN ---------------------------------> LOCAL
 *    ^ ^ |                                       |
 *    | | +---- settled on TCP, or accepted ----> REMOTE
 *    | +------ connection lost ------------------+
 *    +-------- session lost, or found to be gone by a send
 *
 * An endpoint with a foreign peer has FOREIGN in place of LOCAL: agreed by both
 * sides over their connection, and left when that is lost.
 *
 * LOCAL -> REMOTE: the peer connected by TCP, its session is dead, but the end
 * of the session has not been reported yet.
 *
 * Agreeing, for an address that may be local: attach; if nobody listens there,
 * find out by TCP whether the process exists at all (a *probe*); if it does,
 * attach once more, and only then settle on TCP. An endpoint makes its attach
 * socket before its TCP port accepts, so the second refusal is final. An
 * address that is no candidate is REMOTE at once.
 *
 * Invariants:
 *  1. Only set_path() changes the agreed path.
 *  2. path is agreed, or QUEUED.
 *  3. search is ATTACH unless agreed is UNKNOWN.
 *  4. conn is set when agreed is REMOTE or FOREIGN, and NULL when it is LOCAL.
 *  5. brief is set once a session existed, or an agreement failed.
 */
#include "tcp/pair.h"

#include <assert.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/base.h"
#include "base/env.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/trace.h"
#include "tcp/history.h"
#include "tcp/root.h"

#define BIT(path) (1u << TDM_PATH_##path)

static const struct {
	const char *name;
	unsigned next; /* paths that may follow */
} paths[] tdm_unused = {
	[TDM_PATH_UNKNOWN] = { "unknown", BIT(UNKNOWN) | BIT(LOCAL) |
						  BIT(REMOTE) | BIT(FOREIGN) },
	[TDM_PATH_LOCAL] = { "local", BIT(UNKNOWN) | BIT(REMOTE) },
	[TDM_PATH_REMOTE] = { "remote", BIT(UNKNOWN) },
	[TDM_PATH_FOREIGN] = { "foreign", BIT(UNKNOWN) },
};

static void set_path(struct tdm_pair *p, enum tdm_path path)
{
	assert(paths[p->agreed].next & (1u << path));
	TDM_TRACE3(route, p, paths[p->agreed].name, paths[path].name);
	TDM_DBG(EP_CTRL, "path %s -> %s", paths[p->agreed].name,
		paths[path].name);
	p->agreed = (uint8_t)path;
	if (p->path != TDM_PATH_QUEUED)
		p->path = (uint8_t)path;
	p->search = TDM_SEARCH_ATTACH;
}

struct tdm_pair *tdm_pair_new(void)
{
	struct tdm_pair *p = calloc(1, sizeof(*p));

	if (p)
		p->local = FI_ADDR_NOTAVAIL;
	return p;
}

void tdm_pair_attached(struct tdm_root *root, struct tdm_pair *p)
{
	set_path(p, TDM_PATH_LOCAL);
	p->brief = 1;
	p->reason = TDM_REASON_NONE;
	if (p->conn)
		root->tiers->drop(p->conn);
	p->conn = NULL;
}

void tdm_pair_connected(struct tdm_pair *p)
{
	char text[TDM_ADDR_STR_BYTES];

	if (p->agreed == TDM_PATH_REMOTE)
		return;
	set_path(p, TDM_PATH_REMOTE);
	/* The peer tells its reason later: shm/ has logged it. */
	TDM_INFO(EP_CTRL, "%s: tcp%s%s",
		 tdm_addr_text(tdm_conn_addr(p->conn), text, sizeof(text)),
		 p->reason ? ": " : "", tdm_reason_text(p->reason));
}

void tdm_pair_lost(struct tdm_pair *p)
{
	p->conn = NULL;
	p->foreign = NULL;
	p->brief = 1;
	set_path(p, TDM_PATH_UNKNOWN);
}

void tdm_pair_detached(struct tdm_pair *p, ssize_t err)
{
	set_path(p, TDM_PATH_UNKNOWN);
	if (err == -FI_ECONNREFUSED)
		p->search = TDM_SEARCH_PROBE;
}

void tdm_pair_hold(struct tdm_pair *p)
{
	p->path = TDM_PATH_QUEUED;
}

void tdm_pair_release(struct tdm_pair *p)
{
	p->path = p->agreed;
}

/* ---- the agreement ------------------------------------------------------- */

static int connect_to(struct tdm_root *root, struct tdm_pair *p, fi_addr_t addr)
{
	if (!p->conn)
		p->conn = root->tiers->conn(root, addr);
	return p->conn ? 0 : -FI_ENOMEM;
}

static ssize_t settle_remote(struct tdm_root *root, struct tdm_pair *p,
			     const struct tdm_xfer *x)
{
	if (tdm_env.shm == TDM_SHM_ONLY)
		return -FI_EHOSTUNREACH;
	if (connect_to(root, p, x->addr))
		return -FI_ENOMEM;
	tdm_pair_connected(p);
	return root->tiers->send_remote(p->conn, x);
}

static ssize_t send_foreign(struct tdm_root *root, struct tdm_pair *p,
			    const struct tdm_xfer *x)
{
	return x->flags & TDM_ONE_SIDED ?
		       root->tiers->send_remote(p->conn, x) :
		       root->tiers->send_foreign(p->foreign, x);
}

int tdm_pair_in_folder(const struct tdm_root *root, fi_addr_t addr)
{
	struct tdm_addr a;

	return tdm_av_addr(root->ep.av, addr, &a) ||
	       !tdm_folder_serves(&a.u.sa) || tdm_folder_has(&a.u.sa);
}

static ssize_t attach(struct tdm_root *root, struct tdm_pair *p,
		      const struct tdm_xfer *x)
{
	ssize_t ret;

	p->local = root->tiers->local_addr(root, x->addr);
	if (p->local == FI_ADDR_NOTAVAIL) {
		p->reason = TDM_REASON_HOST;
		return settle_remote(root, p, x);
	}
	ret = root->tiers->send_local(root, p, x);
	if (!ret) {
		tdm_pair_attached(root, p);
		return 0;
	}
	if (ret == -FI_EHOSTUNREACH)
		return settle_remote(root, p, x);
	if (ret != -FI_ECONNREFUSED)
		return ret;
	p->reason = !tdm_env.shm_dir || tdm_pair_in_folder(root, x->addr) ?
			    TDM_REASON_NO_LISTENER :
			    TDM_REASON_NO_SOCKET;
	if (tdm_env.shm == TDM_SHM_ONLY) {
		if (!tdm_backlog_over(p))
			return -FI_EAGAIN;
		p->brief = 1;
		return ret;
	}
	if (p->search == TDM_SEARCH_AGAIN)
		return settle_remote(root, p, x);
	p->search = TDM_SEARCH_PROBE;
	return -FI_EAGAIN;
}

static ssize_t probe(struct tdm_root *root, struct tdm_pair *p,
		     const struct tdm_xfer *x)
{
	int ret;

	if (connect_to(root, p, x->addr))
		return -FI_ENOMEM;
	ret = root->tiers->probe(p->conn);
	if (ret == -FI_EAGAIN)
		return ret;
	if (!ret) {
		p->search = TDM_SEARCH_AGAIN;
		return attach(root, p, x);
	}
	/* The peer does not listen (yet): the next try starts over. */
	p->search = TDM_SEARCH_ATTACH;
	if (ret == -FI_ECONNREFUSED)
		return -FI_EAGAIN;
	p->brief = 1;
	/* Every probe was refused until the time-out: report the refusal. */
	return ret == -FI_ETIMEDOUT ? -FI_ECONNREFUSED : ret;
}

/*
 * Agree with the other side about the foreign peer, over a TCP session that
 * carries nothing before.
 */
static ssize_t meet(struct tdm_root *root, struct tdm_pair *p,
		    const struct tdm_xfer *x)
{
	int ret;

	if (!root->tiers->may_meet(root, x->addr)) {
		p->reason = TDM_REASON_HOST;
		return settle_remote(root, p, x);
	}
	if (connect_to(root, p, x->addr))
		return -FI_ENOMEM;
	ret = root->tiers->meet(root, p);
	if (ret == -FI_EOPNOTSUPP) {
		p->reason = TDM_REASON_REFUSED;
		return settle_remote(root, p, x);
	}
	if (ret)
		return ret;
	set_path(p, TDM_PATH_FOREIGN);
	p->reason = TDM_REASON_FOREIGN;
	return send_foreign(root, p, x);
}

ssize_t tdm_pair_agree(struct tdm_root *root, struct tdm_pair *p,
		       const struct tdm_xfer *x)
{
	if (p->agreed == TDM_PATH_FOREIGN)
		return send_foreign(root, p, x);
	if (root->foreign)
		return meet(root, p, x);
	if (!root->local) {
		p->reason = root->local_why;
		return settle_remote(root, p, x);
	}
	return p->search == TDM_SEARCH_PROBE ? probe(root, p, x) :
					       attach(root, p, x);
}
