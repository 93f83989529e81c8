/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints of a foreign provider, and the remote endpoints that they know.
 * Each endpoint has queues and an address vector of its own, so that whatever
 * the provider reports there belongs to it. See foreign_priv.h.
 *
 * A remote endpoint that is gone stays in the provider's address vector until
 * the endpoint closes: messages that it had sent may still be there.
 *
 * Lock: domain held. Spec: fi_peer(3), fi_av(3) FI_AV_USER_ID.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "peer/foreign_priv.h"
#include "tdm_source.h"

/* Highest address of a provider that takes no user ids. */
enum { ADDRS_MOST = 1 << 16 };

static int open_cq(struct tdm_foreign_ep *ep, struct fid_peer_cq *end,
		   struct fi_ops_cq_owner *ops, struct fid_cq **cq)
{
	struct fi_cq_attr attr = {
		.flags = FI_PEER,
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = FI_WAIT_NONE,
	};
	struct fi_peer_cq_context ctx = { .size = sizeof(ctx), .cq = end };

	memset(end, 0, sizeof(*end));
	end->fid.fclass = FI_CLASS_PEER_CQ;
	end->fid.context = ep;
	end->owner_ops = ops;
	return fi_cq_open(ep->f->domain, &attr, cq, &ctx);
}

static int open_srx(struct tdm_foreign_ep *ep)
{
	struct fi_rx_attr attr = *ep->f->info->rx_attr;
	struct fi_peer_srx_context ctx = {
		.size = sizeof(ctx),
		.srx = &ep->port->lent,
	};
	int ret;

	tdm_foreign_lend(ep);
	attr.op_flags = FI_PEER;
	ret = fi_srx_context(ep->f->domain, &attr, &ep->srx, &ctx);
	if (ret)
		return ret;
	if (ep->srx)
		return fi_ep_bind(ep->ep, &ep->srx->fid, 0);
	/* libfabric's sm2 makes no object: it wants the export itself. */
	ep->port->lent.ep_fid.fid.fclass = FI_CLASS_SRX_CTX;
	return fi_ep_bind(ep->ep, &ep->port->lent.ep_fid.fid, 0);
}

static int bind_all(struct tdm_foreign_ep *ep)
{
	int ret = fi_ep_bind(ep->ep, &ep->av->fid, 0);

	if (!ret)
		ret = fi_ep_bind(ep->ep, &ep->tx_cq->fid,
				 FI_TRANSMIT | FI_SELECTIVE_COMPLETION);
	if (!ret)
		ret = fi_ep_bind(ep->ep, &ep->rx_cq->fid, FI_RECV);
	return ret ? ret : open_srx(ep);
}

/* Returns how the provider tells the name of @ep, or -FI_EINVAL: it does not. */
static int ask_name(struct tdm_foreign_ep *ep)
{
	int ret;

	ep->namelen = sizeof(ep->name);
	ret = fi_getname(&ep->ep->fid, ep->name, &ep->namelen);
	if (!ret && (!ep->namelen || ep->namelen > sizeof(ep->name)))
		ret = -FI_EINVAL;
	if (ret)
		ep->namelen = 0;
	return ret;
}

/* Not 0 when the provider can be told of receives that match later. */
static int is_lent(const struct tdm_foreign_ep *ep)
{
	const struct fi_ops_srx_peer *ops = ep->port->lent.peer_ops;
	const uint64_t caps = ep->f->info->caps;

	return ops && (!(caps & FI_MSG) || ops->start_msg) &&
	       (!(caps & FI_TAGGED) || ops->start_tag);
}

static int open_all(struct tdm_foreign_ep *ep)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	int ret;

	ret = open_cq(ep, &ep->port->tx_end, &tdm_foreign_tx_ops, &ep->tx_cq);
	if (!ret)
		ret = open_cq(ep, &ep->port->rx_end, &tdm_foreign_rx_ops,
			      &ep->rx_cq);
	if (!ret)
		ret = fi_av_open(ep->f->domain, &av, &ep->av, NULL);
	if (!ret)
		ret = fi_endpoint(ep->f->domain, ep->f->info, &ep->ep, NULL);
	if (!ret)
		ret = bind_all(ep);
	if (!ret)
		ret = fi_enable(ep->ep);
	if (!ret && !is_lent(ep))
		ret = -FI_ENOSYS;
	return ret ? ret : ask_name(ep);
}

int tdm_foreign_ep_open(struct tdm_foreign *f, const struct fi_info *info,
			struct fid_peer_srx *srx, const struct tdm_done *done,
			struct tdm_foreign_ep **out)
{
	struct tdm_foreign_port *port = tdm_pool_alloc(&f->ports);
	struct tdm_foreign_ep *ep = port ? calloc(1, sizeof(*ep)) : NULL;
	struct tdm_foreign *was;
	int ret;

	if (!ep) {
		if (port)
			tdm_pool_free(&f->ports, port);
		return -FI_ENOMEM;
	}
	memset(port, 0, sizeof(*port));
	port->ep = ep;
	ep->port = port;
	ep->f = f;
	ep->own = srx;
	ep->done = *done;
	tdm_list_init(&ep->strays);
	tdm_list_init(&ep->here);
	tdm_list_init(&ep->node);
	tdm_list_append(&f->eps, &ep->node);
	tdm_foreign_here_open(ep);
	was = tdm_foreign_enter(f);
	ret = open_all(ep);
	tdm_foreign_leave(was);
	if (ret) {
		tdm_foreign_ep_close(ep);
		return ret;
	}
	*out = ep;
	return 0;
}

static void peer_free(struct tdm_foreign_peer *peer)
{
	tdm_foreign_tx_free(peer);
	tdm_foreign_rx_free(&peer->rxs);
	free(peer);
}

static void close_fids(struct tdm_foreign_ep *ep)
{
	struct tdm_foreign *was = tdm_foreign_enter(ep->f);

	if (ep->ep)
		tdm_foreign_close_fid(ep->f, &ep->ep->fid, "endpoint");
	if (ep->srx)
		tdm_foreign_close_fid(ep->f, &ep->srx->fid, "receive context");
	if (ep->av)
		tdm_foreign_close_fid(ep->f, &ep->av->fid, "address vector");
	if (ep->rx_cq)
		tdm_foreign_close_fid(ep->f, &ep->rx_cq->fid,
				      "completion queue");
	if (ep->tx_cq)
		tdm_foreign_close_fid(ep->f, &ep->tx_cq->fid,
				      "completion queue");
	tdm_foreign_leave(was);
}

void tdm_foreign_ep_free(struct tdm_foreign_ep *ep)
{
	size_t i;

	close_fids(ep);
	for (i = 0; i < ep->count; i++)
		peer_free(ep->peer[i]);
	tdm_foreign_rx_free(&ep->strays);
	ep->port->ep = NULL;
	free(ep->peer);
	free(ep->at);
	free(ep);
}

/* Forget @peer with its endpoint; the owner gets back what it has lent. */
static void peer_close(struct tdm_foreign_peer *peer)
{
	tdm_foreign_rx_fail(&peer->rxs, 0);
	if (peer->key)
		peer->ep->f->peers--;
	if (peer->left)
		peer->ep->f->peers--;
	tdm_foreign_unrefer(peer);
}

void tdm_foreign_ep_close(struct tdm_foreign_ep *ep)
{
	size_t i;

	if (!ep)
		return;
	ep->closing = 1;
	tdm_list_del(&ep->node);
	tdm_foreign_rx_fail(&ep->strays, 0);
	for (i = 0; i < ep->count; i++)
		peer_close(ep->peer[i]);
	tdm_foreign_here_close(ep);
}

void tdm_foreign_ep_set_done(struct tdm_foreign_ep *ep,
			     const struct tdm_done *done)
{
	ep->done = *done;
}

const void *tdm_foreign_ep_name(const struct tdm_foreign_ep *ep, size_t *len)
{
	*len = ep->namelen;
	return ep->name;
}

/* ---- remote endpoints ---------------------------------------------------- */

/* Make room for element @n in *@array, which has *@room. */
static int reserve(struct tdm_foreign_peer ***array, size_t *room, size_t n)
{
	size_t more = tdm_max(2 * *room, (size_t)16);
	struct tdm_foreign_peer **p;

	if (n < *room)
		return 0;
	more = tdm_max(more, n + 1);
	p = realloc(*array, more * sizeof(struct tdm_foreign_peer *));
	if (!p)
		return -FI_ENOMEM;
	memset(p + *room, 0,
	       (more - *room) * sizeof(struct tdm_foreign_peer *));
	*array = p;
	*room = more;
	return 0;
}

/* Insert @peer, which has the next slot, into the provider's AV. */
static int insert(struct tdm_foreign_ep *ep, struct tdm_foreign_peer *peer,
		  const void *name)
{
	struct tdm_foreign *was = tdm_foreign_enter(ep->f);
	fi_addr_t a = ep->count;
	int ret = fi_av_insert(ep->av, name, 1, &a,
			       ep->f->user_ids ? FI_AV_USER_ID : 0, NULL);

	tdm_foreign_leave(was);
	if (ret != 1)
		return ret < 0 ? ret : -FI_EADDRNOTAVAIL;
	peer->to = a;
	if (ep->f->user_ids)
		return 0;
	ret = a < ADDRS_MOST ? reserve(&ep->at, &ep->at_count, a) :
			       -FI_EADDRNOTAVAIL;
	if (!ret)
		ep->at[a] = peer;
	return ret;
}

int tdm_foreign_peer_open(struct tdm_foreign_ep *ep,
			  const struct tdm_foreign_peer_attr *attr,
			  struct tdm_foreign_peer **out)
{
	char name[TDM_FOREIGN_NAME_BYTES + 1] = "";
	struct tdm_foreign_peer *peer;
	int ret;

	if (!attr->namelen || attr->namelen > TDM_FOREIGN_NAME_BYTES)
		return -FI_EINVAL;
	/* A text ends by a 0, whatever the other side has sent. */
	memcpy(name, attr->name, attr->namelen);
	peer = calloc(1, sizeof(*peer));
	if (!peer || reserve(&ep->peer, &ep->room, ep->count)) {
		free(peer);
		return -FI_ENOMEM;
	}
	peer->ep = ep;
	ret = tdm_foreign_refer(peer, attr->name, attr->namelen);
	if (ret) {
		free(peer);
		return ret;
	}
	peer->addr = attr->addr;
	peer->key = attr->key;
	memcpy(&peer->from, attr->from, tdm_source_bytes(attr->from));
	tdm_list_init(&peer->txs);
	tdm_list_init(&peer->rxs);
	ret = insert(ep, peer, name);
	if (ret) {
		tdm_foreign_unrefer(peer);
		free(peer);
		return ret;
	}
	ep->peer[ep->count++] = peer;
	ep->f->peers++;
	*out = peer;
	return 0;
}

struct tdm_foreign_peer *tdm_foreign_peer_find(const struct tdm_foreign_ep *ep,
					       const void *key)
{
	size_t i = ep->count;

	while (i-- > 0) {
		if (ep->peer[i]->key == key)
			return ep->peer[i];
	}
	return NULL;
}

void tdm_foreign_each(struct tdm_foreign_ep *ep,
		      void (*call)(void *arg, struct tdm_foreign_peer *peer,
				   const void *key),
		      void *arg)
{
	size_t i;

	for (i = 0; i < ep->count; i++) {
		if (ep->peer[i]->key)
			call(arg, ep->peer[i], ep->peer[i]->key);
	}
}

void tdm_foreign_peer_source(struct tdm_foreign_peer *peer, fi_addr_t addr)
{
	peer->addr = addr;
}

struct tdm_foreign_counts tdm_foreign_count(const struct tdm_foreign_ep *ep,
					    fi_addr_t addr)
{
	struct tdm_foreign_counts all = { .tx_msgs = 0 };
	size_t i;

	for (i = 0; i < ep->count; i++) {
		const struct tdm_foreign_peer *peer = ep->peer[i];

		if (peer->addr != addr)
			continue;
		all.tx_msgs += peer->counts.tx_msgs;
		all.tx_bytes += peer->counts.tx_bytes;
		all.rx_msgs += peer->counts.rx_msgs;
		all.rx_bytes += peer->counts.rx_bytes;
	}
	return all;
}

void tdm_foreign_forget(struct tdm_foreign_ep *ep, fi_addr_t addr)
{
	size_t i;

	for (i = 0; i < ep->count; i++) {
		struct tdm_foreign_peer *peer = ep->peer[i];

		if (peer->addr != addr)
			continue;
		peer->addr = FI_ADDR_UNSPEC;
		memset(&peer->counts, 0, sizeof(peer->counts));
	}
}

void tdm_foreign_peer_lost(struct tdm_foreign_peer *peer, int err)
{
	if (!peer->key)
		return;
	peer->key = NULL;
	peer->err = err;
	tdm_foreign_peer_linger(peer);
	peer->ep->f->peers--;
}

/* Called at each pass while a remote endpoint is going. */
static void bury(struct tdm_foreign_ep *ep)
{
	size_t i;

	for (i = 0; i < ep->count; i++) {
		struct tdm_foreign_peer *peer = ep->peer[i];

		if (!peer->left || --peer->left)
			continue;
		ep->dying--;
		ep->f->peers--;
		tdm_foreign_rx_fail(&peer->rxs, peer->err);
		tdm_foreign_abandon(peer, peer->err);
	}
}

/* One read drives the endpoint; its result does not matter. */
void tdm_foreign_progress(struct tdm_foreign *f)
{
	struct tdm_foreign *was;
	struct tdm_list *pos;

	tdm_foreign_check_outside(f);
	tdm_foreign_reap(f);
	if (!f->peers)
		return;
	was = tdm_foreign_enter(f);
	tdm_list_for_each(pos, &f->eps) {
		struct tdm_foreign_ep *ep =
			tdm_list_entry(pos, struct tdm_foreign_ep, node);

		fi_cq_read(ep->rx_cq, NULL, 0);
		if (tdm_unlikely(ep->dying))
			bury(ep);
	}
	tdm_foreign_leave(was);
}

int tdm_foreign_busy(const struct tdm_foreign *f)
{
	return f->peers > 0;
}
