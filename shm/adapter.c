/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the receive side of an endpoint and another owner: see adapter.h.
 *
 *   get_*: a receive ----------------------------------------> FILLING
 *   get_*: no receive --> ASKED -- queue_* --> WAITING -- start --> FILLING
 *   WAITING -- given back by rx.c or unexp.c --> GONE -- start, discard --> freed
 *
 * Invariants:
 *  1. While the owner's list has an entry (WAITING, GONE), the peer_context of the
 *     owner's entry leads to ours, which outlives endpoint and receive context.
 *  2. Before the first entry is here, no start and no discard can come, so that the
 *     layout may still change.
 *
 * Lock: as adapter.h says.
 */
#include "shm/adapter.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/iov.h"
#include "shm/domain.h"
#include "shm/ep.h"
#include "shm/rx.h"
#include "tdm_layout.h"
#include "tdm_open.h"
#include "tdm_xfer.h"

enum state { ASKED, WAITING, FILLING, GONE };

struct tdm_shm_adapter {
	struct fid_peer_srx fid; /* the endpoint's */
	struct fid_peer_srx *owner;
	struct tdm_shm_srx *srx;
	struct tdm_list queued; /* struct entry: WAITING, GONE */
	enum tdm_layout layout; /* of the owner's entries */
	int learned;		/* 1: one of them was seen */
	/* while the owner asks for sources: that of the endpoint */
	fi_addr_t (*get_addr)(struct fi_peer_rx_entry *entry);
};

/* A message. */
struct entry {
	struct fi_peer_rx_entry rx; /* the endpoint's */
	struct tdm_list node;
	struct tdm_shm_domain *domain;
	struct tdm_shm_adapter *adapter; /* NULL: it has closed */
	struct fi_peer_rx_entry *own;	 /* the owner's: tdm_layout.h */
	enum state state;
	uint64_t kind; /* FI_MSG or FI_TAGGED */
	struct iovec none;
	void *no_desc;
};

/* The adapter whose owner asks for sources in this thread. */
static __thread struct tdm_shm_adapter *resolving;

static struct tdm_shm_adapter *adapter_of(struct fid_peer_srx *fid)
{
	return tdm_container_of(fid, struct tdm_shm_adapter, fid);
}

static struct entry *entry_of(struct fi_peer_rx_entry *rx)
{
	return tdm_container_of(rx, struct entry, rx);
}

static void entry_free(struct entry *e)
{
	tdm_list_del(&e->node);
	tdm_pool_free(&e->domain->adapted, e);
}

static struct fi_peer_rx_entry *raw_of(const struct entry *e)
{
	return tdm_layout_raw(e->adapter->layout, e->own);
}

/* ---- the endpoint's calls ------------------------------------------------ */

/* Let @e describe the receive that the owner's entry has got. */
static void show_match(struct entry *e)
{
	const struct fi_peer_rx_entry *own = e->own;

	e->state = FILLING;
	if (e->rx.addr == FI_ADDR_UNSPEC)
		e->rx.addr = own->addr;
	e->rx.context = own->context;
	e->rx.flags = e->kind | FI_RECV | (own->flags & FI_COMPLETION) |
		      (e->rx.flags & FI_REMOTE_CQ_DATA);
	e->rx.count = own->iov ? tdm_min(own->count, (size_t)TDM_IOV_LIMIT) : 0;
	e->rx.iov = e->rx.count ? own->iov : &e->none;
	e->rx.desc = own->desc ? own->desc : &e->no_desc;
	e->rx.msg_size =
		tdm_min(e->rx.msg_size, tdm_iov_len(e->rx.iov, e->rx.count));
}

static struct fi_ops_srx_peer peer_ops[TDM_LAYOUTS];

/* The first entry of an owner is here: it may tell the layout of all of them. */
static void learn(struct tdm_shm_adapter *a, const struct fi_peer_rx_entry *raw)
{
	a->layout = tdm_layout_seen(a->layout, raw, a->owner);
	a->owner->peer_ops = &peer_ops[a->layout];
	a->learned = 1;
}

/* Offer the message of @e. Returns 0, -FI_ENOENT, or why there is no entry. */
static int ask(struct tdm_shm_adapter *a, struct entry *e,
	       struct fi_peer_match_attr *attr)
{
	struct fi_ops_srx_owner *ops = a->owner->owner_ops;
	struct fi_peer_rx_entry *raw = NULL;
	int ret = e->kind & FI_TAGGED ? ops->get_tag(a->owner, attr, &raw) :
					ops->get_msg(a->owner, attr, &raw);

	if ((ret && ret != -FI_ENOENT) || !raw)
		return -FI_ENOMEM;
	if (tdm_unlikely(!a->learned))
		learn(a, raw);
	e->own = tdm_layout_own(a->layout, raw);
	if (!ret)
		show_match(e);
	return ret;
}

static int get(struct fid_peer_srx *fid, uint64_t kind,
	       struct fi_peer_match_attr *attr, struct fi_peer_rx_entry **out)
{
	struct tdm_shm_adapter *a = adapter_of(fid);
	struct tdm_shm_domain *domain = a->srx->domain;
	struct entry *e = tdm_pool_alloc(&domain->adapted);
	int ret;

	if (!e)
		return -FI_ENOMEM;
	memset(e, 0, sizeof(*e));
	tdm_list_init(&e->node);
	e->domain = domain;
	e->adapter = a;
	e->kind = kind;
	e->rx.srx = fid;
	e->rx.addr = attr->addr;
	e->rx.msg_size = attr->msg_size;
	e->rx.tag = kind & FI_TAGGED ? attr->tag : 0;
	e->rx.flags = kind | FI_RECV;
	e->rx.iov = &e->none;
	e->rx.desc = &e->no_desc;
	ret = ask(a, e, attr);
	if (ret && ret != -FI_ENOENT) {
		entry_free(e);
		return ret;
	}
	*out = &e->rx;
	return ret;
}

static int get_msg(struct fid_peer_srx *fid, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **entry)
{
	return get(fid, FI_MSG, attr, entry);
}

static int get_tag(struct fid_peer_srx *fid, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **entry)
{
	return get(fid, FI_TAGGED, attr, entry);
}

static int queue(struct fi_peer_rx_entry *rx)
{
	struct entry *e = entry_of(rx);
	struct tdm_shm_adapter *a = e->adapter;
	struct fi_ops_srx_owner *ops = a->owner->owner_ops;

	e->own->peer_context = e;
	e->own->msg_size = rx->msg_size;
	e->own->flags |= rx->flags & FI_REMOTE_CQ_DATA;
	e->own->cq_data = rx->cq_data;
	e->state = WAITING;
	tdm_list_append(&a->queued, &e->node);
	return e->kind & FI_TAGGED ? ops->queue_tag(raw_of(e)) :
				     ops->queue_msg(raw_of(e));
}

static void free_entry(struct fi_peer_rx_entry *rx)
{
	struct entry *e = entry_of(rx);

	if (e->state == WAITING) {
		e->state = GONE;
		return;
	}
	if (e->adapter)
		e->adapter->owner->owner_ops->free_entry(raw_of(e));
	entry_free(e);
}

/*
 * Called by the owner with an entry whose source it does not know: perhaps one of
 * another peer, so that nothing but the pointer may be looked at.
 */
static fi_addr_t source(struct fi_peer_rx_entry *raw)
{
	const struct fi_peer_rx_entry *own =
		tdm_layout_own(resolving->layout, raw);
	struct tdm_list *pos;

	tdm_list_for_each(pos, &resolving->queued) {
		struct entry *e = tdm_list_entry(pos, struct entry, node);

		if (e->own != own || e->state != WAITING)
			continue;
		e->rx.addr = resolving->get_addr(&e->rx);
		return e->rx.addr;
	}
	return FI_ADDR_UNSPEC;
}

static void
foreach_unspec_addr(struct fid_peer_srx *fid,
		    fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	struct tdm_shm_adapter *a = adapter_of(fid), *outer = resolving;

	resolving = a;
	a->get_addr = get_addr;
	a->owner->owner_ops->foreach_unspec_addr(a->owner, source);
	resolving = outer;
}

static struct fi_ops_srx_owner owner_ops = {
	.size = sizeof(owner_ops),
	.get_msg = get_msg,
	.get_tag = get_tag,
	.queue_msg = queue,
	.queue_tag = queue,
	.foreach_unspec_addr = foreach_unspec_addr,
	.free_entry = free_entry,
};

/* ---- the owner's calls --------------------------------------------------- */

/* The message of @e is gone, but the owner has found a receive for it. */
static int end_gone(struct entry *e)
{
	struct tdm_shm_ep *ep = e->adapter ? e->adapter->srx->ep : NULL;

	if (!ep)
		return -FI_EOPBADSTATE;
	show_match(e);
	tdm_done_recv_err(&ep->done, &e->rx, tdm_failed(FI_ECONNRESET, 0, 0));
	free_entry(&e->rx);
	return 0;
}

static int start(enum tdm_layout layout, struct fi_peer_rx_entry *raw)
{
	struct entry *e = tdm_layout_own(layout, raw)->peer_context;

	tdm_list_del(&e->node);
	if (e->state == GONE)
		return end_gone(e);
	show_match(e);
	return tdm_shm_srx_peer_ops.start_msg(&e->rx);
}

/* The owner frees its entry. */
static int discard(enum tdm_layout layout, struct fi_peer_rx_entry *raw)
{
	struct entry *e = tdm_layout_own(layout, raw)->peer_context;

	if (e->state != GONE)
		(void)tdm_shm_srx_peer_ops.discard_msg(&e->rx);
	entry_free(e);
	return 0;
}

TDM_LAYOUT_CALLS(start, discard)

static struct fi_ops_srx_peer peer_ops[TDM_LAYOUTS] = {
	[TDM_LAYOUT_OLDER] = TDM_LAYOUT_OPS(older),
	[TDM_LAYOUT_NEWER] = TDM_LAYOUT_OPS(newer),
};

/* ---- open and close ------------------------------------------------------ */

/* Was the owner made with our headers? */
static int is_ours(const struct tdm_shm_srx *srx)
{
	return tdm_open_ops(&srx->owner->ep_fid.fid, TDM_HELD_OPS) ||
	       tdm_shm_domain_rma(srx->domain);
}

size_t tdm_shm_adapter_entry_bytes(void)
{
	return sizeof(struct entry);
}

int tdm_shm_adapter_open(struct tdm_shm_srx *srx)
{
	struct tdm_shm_adapter *a;

	srx->used = srx->owner;
	if (is_ours(srx)) {
		srx->owner->peer_ops = &tdm_shm_srx_peer_ops;
		return 0;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return -FI_ENOMEM;
	a->owner = srx->owner;
	a->srx = srx;
	tdm_list_init(&a->queued);
	a->layout = tdm_layout_of(fi_version());
	a->fid.ep_fid.fid.fclass = FI_CLASS_PEER_SRX;
	a->fid.owner_ops = &owner_ops;
	srx->adapter = a;
	srx->used = &a->fid;
	srx->owner->peer_ops = &peer_ops[a->layout];
	return 0;
}

/* The endpoint offers no more messages. */
static void leave(struct tdm_shm_ep *ep)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &ep->pairs)
		tdm_list_entry(pos, struct tdm_shm_pair, all)->srx = NULL;
	ep->srx = NULL;
	ep->account = &ep->held_own;
	ep->srx_obj = NULL;
}

void tdm_shm_adapter_close(struct tdm_shm_srx *srx)
{
	struct tdm_list *node;

	if (srx->ep)
		leave(srx->ep);
	if (!srx->adapter)
		return;
	while ((node = tdm_list_pop(&srx->adapter->queued)))
		tdm_list_entry(node, struct entry, node)->adapter = NULL;
	free(srx->adapter);
}
