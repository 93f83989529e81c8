/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of the statistics segment, from what endpoints, pairs and
 * transports have. Records of endpoints come first: their number is known, while
 * peers are written until the segment is full.
 *
 * Lock: held in all of this file.
 */
#include "tcp/stat.h"

#include <string.h>

#include "base/env.h"
#include "base/inject.h"
#include "tcp/backlog.h"
#include "tcp/root.h"
#include "tcp/stat_format.h"
#include "tcp/tier.h"
#include "tcp/wire/look.h"
#include "tdm_look.h"

/* The endpoint that is being described. */
struct sums {
	struct tdm_stat_ep *to;
	const struct tdm_srx *last; /* counted: contexts may share one */
};

/* Not 0 when the pair with index @i is described under this index. */
static int shown(const struct tdm_root *root, size_t i)
{
	return root->pair[i] && tdm_av_has(root->ep.av, i) &&
	       tdm_av_lowest(root->ep.av, i) == i;
}

size_t tdm_stat_records(const struct tdm_domain *d)
{
	struct tdm_list *pos;
	size_t n = 0, i;

	tdm_list_for_each(pos, &d->roots) {
		const struct tdm_root *root =
			tdm_list_entry(pos, struct tdm_root, node);

		n++;
		for (i = 0; i < root->pairs; i++)
			n += !!shown(root, i);
	}
	return n;
}

static void put_addr(struct tdm_stat_addr *to, const struct tdm_addr *a)
{
	size_t n = tdm_min(tdm_addr_len(a), sizeof(to->bytes));

	memcpy(to->bytes, &a->u.sa, n);
	to->addrlen = (uint32_t)n;
}

static void put_counts(uint64_t to[4], const struct tdm_report_counts *c)
{
	to[0] = c->tx_msgs;
	to[1] = c->tx_bytes;
	to[2] = c->rx_msgs;
	to[3] = c->rx_bytes;
}

static void put_path(struct tdm_stat_peer *to,
		     const struct tdm_report_path *path)
{
	to->path = path->path;
	to->state = path->state;
	to->reason = path->reason;
	to->err = (uint32_t)path->err;
	to->large_rx = path->large_rx;
	to->large_tx = path->large_tx;
	to->lives = path->lives;
	put_counts(to->shm, &path->shm);
	put_counts(to->tcp, &path->tcp);
	put_counts(to->foreign, &path->foreign);
}

static void put_look(struct tdm_stat_peer *to, const struct tdm_pair *p,
		     const struct tdm_look *look)
{
	struct tdm_list *pos;

	to->queued = look->queued;
	to->pending = look->pending;
	to->credit = look->credit;
	to->given = look->given;
	to->held = look->held;
	to->tries = look->tries;
	to->tries_err = look->err;
	to->full = look->full;
	if (!p->queue)
		return;
	tdm_list_for_each(pos, &p->queue->waiting)
		to->backlog++;
	to->tries = tdm_max(to->tries, (uint32_t)p->queue->tries);
}

static void put_peer(struct tdm_stat_peer *to, struct tdm_root *root, size_t i,
		     const struct tdm_report_path *path)
{
	struct tdm_look look;
	struct tdm_addr a;
	int t;

	memset(to, 0, sizeof(*to));
	memset(&look, 0, sizeof(look));
	if (!tdm_av_addr(root->ep.av, i, &a))
		put_addr(&to->addr, &a);
	to->index = i;
	put_path(to, path);
	for (t = 0; t < TDM_TRANSPORTS; t++)
		tdm_tier[t]->look(root, i, &look);
	put_look(to, root->pair[i], &look);
}

static void put_cq(struct tdm_stat_ep *to, const struct tdm_cq *cq)
{
	size_t n = cq ? tdm_cq_waiting(cq) : 0;

	if (!cq || (to->cq_size && n <= to->cq_waiting))
		return;
	to->cq_waiting = n;
	to->cq_size = tdm_cq_size(cq);
}

/* Add the queues of @ep, an endpoint or a context, to those of its root. */
static void add_queues(struct tdm_ep *ep, void *arg)
{
	struct sums *s = (struct sums *)arg;
	size_t posted, waiting;

	put_cq(s->to, ep->tx_cq);
	put_cq(s->to, ep->rx_cq);
	if (!ep->srx || ep->srx == s->last)
		return;
	s->last = ep->srx;
	tdm_srx_depth(ep->srx, &posted, &waiting);
	s->to->posted += posted;
	s->to->waiting += waiting;
}

static void put_ep(struct tdm_stat_ep *to, struct tdm_root *root)
{
	struct sums sums = { .to = to };
	struct tdm_tcp_look look;

	memset(to, 0, sizeof(*to));
	put_addr(&to->addr, &root->name);
	to->scalable = root->ep.kind->fclass == FI_CLASS_SEP;
	to->no_shm = root->local ? TDM_REASON_NONE : root->local_why;
	tdm_tcp_look(root->tcp, &look);
	to->account = look.account;
	to->account_most = tdm_env.unexp_max_bytes;
	to->tx_used = look.used;
	to->tx_size = root->ep.info->tx_attr->size;
	to->tcp_open = look.open;
	to->tcp_retries = look.retries;
	root->ep.kind->for_each(root, add_queues, &sums);
}

/* Describe the peers of @root in @at[@room]. Returns how many. */
static size_t put_peers(struct tdm_stat_ep *ep, struct tdm_root *root,
			struct tdm_stat_peer *at, size_t room)
{
	struct tdm_report_path path;
	struct tdm_stat_peer none;
	size_t i;

	for (i = 0; i < root->pairs; i++) {
		struct tdm_stat_peer *to = ep->peers < room ? &at[ep->peers] :
							      &none;

		if (!shown(root, i))
			continue;
		tdm_history_path(root, i, &path);
		put_peer(to, root, i, &path);
		if (path.state == TDM_REPORT_IN_USE)
			ep->paths[path.path % TDM_ARRAY_LEN(ep->paths)]++;
		ep->held += to->held;
		ep->backlog += to->backlog;
		ep->peers += to != &none;
		ep->peers_left += to == &none;
	}
	return ep->peers;
}

void tdm_stat_fill(struct tdm_domain *d, struct tdm_stat_head *h)
{
	struct tdm_stat_ep *ep = (struct tdm_stat_ep *)(h + 1);
	const size_t room = h->bytes / TDM_STAT_RECORD_BYTES - 1;
	struct tdm_stat_peer *peer;
	struct tdm_list *pos;
	size_t eps = 0, k = 0, n;

	tdm_list_for_each(pos, &d->roots)
		eps++;
	n = tdm_min(eps, room);
	peer = (struct tdm_stat_peer *)(ep + n);
	h->eps = (uint32_t)n;
	h->eps_left = (uint32_t)(eps - n);
	h->peers = 0;
	h->peers_left = 0;
	h->passes = d->engine.passes;
	h->inject_bytes = tdm_a64_load_relaxed(&tdm_inject_bytes);
	tdm_list_for_each(pos, &d->roots) {
		struct tdm_root *root =
			tdm_list_entry(pos, struct tdm_root, node);

		if (k == n)
			break;
		put_ep(&ep[k], root);
		h->peers += (uint32_t)put_peers(&ep[k], root, peer + h->peers,
						room - n - h->peers);
		h->peers_left += ep[k].peers_left;
		k++;
	}
}
