/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of struct tdm_tier_ops for the TCP transport. It gets the exports
 * of the owner's queues and counters in a struct tdm_done, and imports nothing.
 *
 * Lock: held in all of this file.
 */
#include <rdma/fi_errno.h>

#include "tcp/bind.h"
#include "tcp/root.h"
#include "tcp/tier.h"
#include "tcp/wire/look.h"

static int start(struct tdm_domain *d)
{
	return tdm_loop_open(&d->loop);
}

static void stop(struct tdm_domain *d)
{
	if (d->loop)
		tdm_loop_close(d->loop);
}

static int arm(struct tdm_domain *d)
{
	struct tdm_list *pos;
	int ret;

	tdm_list_for_each(pos, &d->roots) {
		ret = tdm_tcp_arm(
			tdm_list_entry(pos, struct tdm_root, node)->tcp);
		if (ret)
			return ret;
	}
	return tdm_loop_arm(d->loop);
}

/*
 * Returns the traffic class of @root, fi_endpoint(3); if unset, that of its
 * domain.
 */
static uint32_t tclass(const struct tdm_root *root)
{
	return root->ep.info->tx_attr->tclass ?
		       root->ep.info->tx_attr->tclass :
		       root->ep.domain->info->domain_attr->tclass;
}

static int open_tcp(struct tdm_root *root)
{
	struct tdm_tcp_attr attr = {
		.loop = root->ep.domain->loop,
		.engine = &root->ep.domain->engine,
		.srx = root->ep.rx_side->export_to(&root->ep,
						   TDM_TRANSPORT_TCP),
		.av = root->ep.av,
		.domain = &root->ep.domain->fid,
		.tx_size = root->ep.info->tx_attr->size,
		.order = tdm_order(root->ep.info->tx_attr->msg_order),
		.tclass = tclass(root),
		.spaces = tdm_domain_spaces(root->ep.domain),
		.groups = root->ep.domain->info->domain_attr->max_group_id ||
			  (root->ep.domain->info->caps & FI_COLLECTIVE),
		.keys = root->keys,
		.accepted = tdm_ep_accepted,
		.lost = tdm_ep_lost,
		.taken = tdm_ep_taken,
		.crowded = tdm_ep_crowded,
		.arg = root,
	};
	int ret;

	tdm_ep_done(&root->ep, TDM_TRANSPORT_TCP, &attr.done);
	ret = tdm_tcp_open(&attr, &root->tcp);
	return ret ? ret : tdm_tcp_bind(root->tcp, &root->name);
}

static int listen_tcp(struct tdm_root *root)
{
	return tdm_tcp_listen(root->tcp);
}

static void close_tcp(struct tdm_root *root)
{
	if (root->tcp)
		tdm_tcp_close(root->tcp);
	root->tcp = NULL;
}

static ssize_t cancel(struct tdm_root *root, void *context)
{
	return tdm_tx_cancel(root->tcp, context);
}

static size_t tx_left(const struct tdm_root *root)
{
	return tdm_tcp_tx_left(root->tcp);
}

static void rebound(struct tdm_root *root)
{
	struct tdm_done done;

	if (!root->tcp)
		return;
	tdm_ep_done(&root->ep, TDM_TRANSPORT_TCP, &done);
	tdm_tcp_set_done(root->tcp, &done);
}

static void resolve(struct tdm_root *root, int moved)
{
	if (root->tcp)
		tdm_tcp_resolve(root->tcp, moved);
}

/* A probe has no session to keep. */
static void forget(struct tdm_root *root, const struct tdm_pair *p,
		   fi_addr_t addr)
{
	if (tdm_ep_probes(root, p))
		tdm_conn_drop(p->conn);
	else if (p->conn)
		tdm_tcp_forget(root->tcp, addr);
}

/*
 * Returns the connection with @addr that carries messages or, if the pair is
 * new, will carry them, or NULL: a pair by TCP has a connection as soon as it
 * sends. A peer that connected before its address was inserted has one without
 * a pair.
 */
static const struct tdm_conn *
live_conn(struct tdm_root *root, const struct tdm_pair *p, fi_addr_t addr)
{
	const struct tdm_conn *conn = p ? p->conn : NULL;
	struct tdm_addr a;

	if (!conn && root->tcp && !tdm_av_addr(root->ep.av, addr, &a))
		conn = tdm_conn_find(root->tcp, &a);
	if (!conn || tdm_conn_agreed(conn))
		return conn;
	return p && p->agreed == TDM_PATH_REMOTE && !p->history ? conn : NULL;
}

static int session(struct tdm_root *root, fi_addr_t addr,
		   struct tdm_report_path *out)
{
	const struct tdm_pair *p = tdm_ep_pair_of(root, addr);
	const struct tdm_conn *conn = live_conn(root, p, addr);

	if (!conn)
		return -FI_ENODATA;
	out->path = TDM_REPORT_TCP;
	out->reason = p ? p->reason : TDM_REASON_NONE;
	out->tcp = tdm_history_counts(conn);
	return 0;
}

static void look(struct tdm_root *root, fi_addr_t addr, struct tdm_look *out)
{
	const struct tdm_pair *p = tdm_ep_pair_of(root, addr);

	if (p && p->conn)
		tdm_conn_look(p->conn, out);
}

const struct tdm_tier_ops tdm_tier_tcp = {
	.start = start,
	.stop = stop,
	.arm = arm,
	/* The loop has all sockets in the descriptor already. */
	.watch = tdm_tier_no_watch,
	/* It reports to the exports that tdm_ep_done() gives it. */
	.import_cq = tdm_tier_no_cq,
	.import_cntr = tdm_tier_no_cntr,
	/* It calls accepted() and lost() of struct tdm_tcp_attr at once. */
	.deliver = tdm_tier_no_deliver,
	.open = open_tcp,
	.listen = listen_tcp,
	.close = close_tcp,
	.cancel = cancel,
	.tx_left = tx_left,
	.bind_cntr = tdm_tier_no_bind, /* rebound() has the new export */
	.rebound = rebound,
	.resolve = resolve,
	.forget = forget,
	.session = session,
	.look = look,
};
