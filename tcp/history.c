/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a pair, past connections and sessions included (its *lives*). The
 * transports count what is under way (session() of tier.h); the report of the
 * end of a session or connection has its last counts.
 *
 * Lock: held in all of this file.
 */
#include "tcp/history.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "tcp/root.h"
#include "tcp/tier.h"
#include "tcp/tier_foreign.h"

/* By enum tdm_reason; the same list as in fi_tandem(7), REPORT. */
static const char *const reasons[TDM_REASON_COUNT] = {
	[TDM_REASON_NONE] = "",
	[TDM_REASON_HOST] = "other host or network namespace",
	[TDM_REASON_NO_LISTENER] = "no shared memory on the other side",
	[TDM_REASON_UID] = "other user id",
	[TDM_REASON_VERSION] = "incompatible version",
	[TDM_REASON_REFUSED] = "refused by the other side",
	[TDM_REASON_RESOURCE] =
		"memory, file descriptors or system calls refused",
	[TDM_REASON_SEGMENT] = "segment not sealed",
	[TDM_REASON_DISABLED] = "disabled",
	[TDM_REASON_NAME] = "attach name in use by another process",
	[TDM_REASON_FOREIGN] = "messages by another provider",
	[TDM_REASON_FOLDER] = "FI_TANDEM_SHM_DIR cannot be used",
	[TDM_REASON_NO_SOCKET] = "not in the folder FI_TANDEM_SHM_DIR",
};

const char *tdm_reason_text(uint32_t reason)
{
	return reason < TDM_REASON_COUNT ? reasons[reason] : "";
}

/* The same list as in doc/guide/troubleshooting.md. */
static const char *const advice[TDM_REASON_COUNT] = {
	[TDM_REASON_HOST] =
		"nothing if the peer is on another host; containers "
		"of one host share memory through a folder, "
		"FI_TANDEM_SHM_DIR",
	[TDM_REASON_NO_LISTENER] =
		"the report and the log of the peer say why it has none; a "
		"peer that was not reached has ended or has not started, or "
		"each host has its address, as that of docker0: set "
		"FI_TANDEM_IFACE there",
	[TDM_REASON_UID] = "run both processes as one user",
	[TDM_REASON_VERSION] = "install one release of tandem on both sides",
	[TDM_REASON_REFUSED] = "the report and the log of the peer say why",
	[TDM_REASON_RESOURCE] =
		"ulimit -n, ulimit -f, the memory limit of the container, "
		"memfd_create and unix sockets in the sandbox: the log says "
		"which, here or at the peer",
	[TDM_REASON_SEGMENT] = "the kernel or sandbox of the peer lacks sealed "
			       "memory",
	[TDM_REASON_DISABLED] = "unset FI_TANDEM_SHM, unless the program "
				"forbids shared memory",
	[TDM_REASON_NAME] = "start the program again: it gets another port",
	[TDM_REASON_FOLDER] = "make it a folder of this user with mode 0700",
	[TDM_REASON_NO_SOCKET] =
		"name the same folder at the peer, if it is on "
		"this host",
};

const char *tdm_reason_advice(uint32_t reason)
{
	return reason < TDM_REASON_COUNT && advice[reason] ? advice[reason] :
							     "";
}

static void add(struct tdm_report_counts *to,
		const struct tdm_report_counts *more)
{
	to->tx_msgs += more->tx_msgs;
	to->tx_bytes += more->tx_bytes;
	to->rx_msgs += more->rx_msgs;
	to->rx_bytes += more->rx_bytes;
}

struct tdm_report_counts tdm_history_counts(const struct tdm_conn *conn)
{
	const struct tdm_conn_stats *s = tdm_conn_stats(conn);
	const struct tdm_report_counts counts = {
		.tx_msgs = s->tx_msgs,
		.tx_bytes = s->tx_bytes,
		.rx_msgs = s->rx_msgs,
		.rx_bytes = s->rx_bytes,
	};

	return counts;
}

/* Returns the record of @p, made when there is none. NULL: out of memory. */
static struct tdm_history *history_of(struct tdm_root *root, struct tdm_pair *p)
{
	if (!p->history) {
		p->history = calloc(1, sizeof(*p->history));
		if (p->history)
			tdm_list_init(&p->history->node);
		else
			root->lives_lost++;
	}
	return p->history;
}

static void end(struct tdm_history *l, enum tdm_report_kind path, int err)
{
	l->count++;
	l->path = path;
	l->state = err == FI_ESHUTDOWN ? TDM_REPORT_CLOSED : TDM_REPORT_LOST;
	l->err = err == FI_ESHUTDOWN ? 0 : err;
}

void tdm_history_end_local(struct tdm_root *root, struct tdm_pair *p,
			   const struct tdm_peer_event *event)
{
	const struct tdm_report_counts counts = {
		.tx_msgs = event->tx_msgs,
		.tx_bytes = event->tx_bytes,
		.rx_msgs = event->rx_msgs,
		.rx_bytes = event->rx_bytes,
	};
	struct tdm_history *l = history_of(root, p);

	if (!l)
		return;
	end(l, TDM_REPORT_SHM, event->err);
	l->reason = TDM_REASON_NONE;
	l->large_rx = event->large_rx;
	l->large_tx = event->large_tx;
	add(&l->shm, &counts);
}

void tdm_history_end_remote(struct tdm_root *root, struct tdm_pair *p,
			    const struct tdm_conn *conn, int err, int foreign)
{
	const struct tdm_report_counts counts = tdm_history_counts(conn);
	struct tdm_history *l;

	/*
	 * A failed attempt to reach a peer that is gone does not count as a
	 * life.
	 */
	if (!foreign && (p->history || p->agreed != TDM_PATH_REMOTE) &&
	    !counts.tx_msgs && !counts.rx_msgs)
		return;
	l = history_of(root, p);
	if (!l)
		return;
	end(l, foreign ? TDM_REPORT_FOREIGN : TDM_REPORT_TCP, err);
	l->reason = foreign ? TDM_REASON_FOREIGN : p->reason;
	l->large_rx = TDM_REPORT_LARGE_NONE;
	l->large_tx = TDM_REPORT_LARGE_NONE;
	add(&l->tcp, &counts);
}

static void fill(struct tdm_report_path *out, const struct tdm_history *l)
{
	memset(out, 0, sizeof(*out));
	if (!l)
		return;
	out->path = l->path;
	out->reason = l->reason;
	out->state = l->in_use ? TDM_REPORT_IN_USE : l->state;
	out->err = l->err;
	out->large_rx = l->large_rx;
	out->large_tx = l->large_tx;
	out->lives = l->count;
	out->shm = l->shm;
	out->tcp = l->tcp;
	out->foreign = l->foreign;
}

/* Add the life that goes on, whose path and counts are @now, to @out. */
static void in_use(struct tdm_report_path *out,
		   const struct tdm_report_path *now)
{
	out->path = now->path;
	out->reason = now->reason;
	out->state = TDM_REPORT_IN_USE;
	out->err = 0;
	out->large_rx = now->large_rx;
	out->large_tx = now->large_tx;
	out->lives++;
	add(&out->shm, &now->shm);
	add(&out->tcp, &now->tcp);
}

static void finish(struct tdm_report_path *out, uint64_t lacks)
{
	struct tdm_report_counts all = out->shm;

	add(&all, &out->tcp);
	add(&all, &out->foreign);
	out->tx_msgs = all.tx_msgs;
	out->tx_bytes = all.tx_bytes;
	out->rx_msgs = all.rx_msgs;
	out->rx_bytes = all.rx_bytes;
	out->reason_text = tdm_reason_text(out->reason);
	if (out->path != TDM_REPORT_FOREIGN)
		return;
	out->provider = tdm_env.local;
	out->lacks = lacks;
}

void tdm_history_path(struct tdm_root *root, fi_addr_t addr,
		      struct tdm_report_path *out)
{
	const struct tdm_pair *p = tdm_ep_pair_of(root, addr);
	struct tdm_report_path now;
	int ret = -FI_ENODATA, t;

	fill(out, p ? p->history : NULL);
	/* A session by shared memory counts before a connection that it ends. */
	for (t = TDM_TRANSPORTS; ret && t-- > 0;) {
		memset(&now, 0, sizeof(now));
		ret = tdm_tier[t]->session(root, addr, &now);
	}
	if (!ret)
		in_use(out, &now);
	else if (p && !p->history)
		out->reason = p->reason;
	tdm_tier_foreign_count(root, addr, &out->foreign);
	finish(out, tdm_tier_foreign_lacks(root));
}

void tdm_history_path_removed(const struct tdm_root *root,
			      const struct tdm_history *history,
			      struct tdm_report_path *out)
{
	fill(out, history);
	finish(out, tdm_tier_foreign_lacks(root));
}

void tdm_history_removed(struct tdm_root *root, struct tdm_pair *p,
			 fi_addr_t addr)
{
	struct tdm_report_path path;
	struct tdm_history *l;

	tdm_history_path(root, addr, &path);
	l = tdm_env.report && path.state != TDM_REPORT_IDLE ?
		    history_of(root, p) :
		    NULL;
	if (!l || tdm_av_addr(root->ep.av, addr, &l->addr)) {
		free(p->history);
		p->history = NULL;
		return;
	}
	l->count = path.lives;
	l->path = path.path;
	l->reason = path.reason;
	l->large_rx = path.large_rx;
	l->large_tx = path.large_tx;
	l->shm = path.shm;
	l->tcp = path.tcp;
	l->foreign = path.foreign;
	l->in_use = path.state == TDM_REPORT_IN_USE;
	l->index = addr;
	tdm_list_append(&root->removed, &l->node);
	p->history = NULL;
}

void tdm_history_free(struct tdm_list *removed)
{
	struct tdm_list *node;

	while ((node = tdm_list_pop(removed)))
		free(tdm_list_entry(node, struct tdm_history, node));
}
