/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that a foreign provider receives: its calls to the receive context
 * that it imports are passed on to the owner's export, and the owner's calls to
 * it, with an entry of its own for each message. So the provider needs no user
 * ids, no descriptors of the owner and no flags of it, and may have another
 * layout of entries than tandem was built with.
 *
 * A provider that takes FI_COMPLETION into account reports only what has the
 * flag; every entry has it here, and tdm_done_recv() knows whether the owner
 * wants an entry.
 *
 * Lock: domain held. Spec: fi_peer(3), "PEER SRX".
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "peer/foreign_priv.h"
#include "tdm_nosys.h"
#include "tdm_source.h"

/* ---- the provider's calls ------------------------------------------------ */

/*
 * Have the provider fill one buffer, which the whole message fits, in place of
 * the elements of the receive.
 */
static void gather(struct tdm_foreign_rx *r)
{
	if (r->err)
		return;
	r->bounce = malloc(tdm_max(r->bytes, (size_t)1));
	if (!r->bounce) {
		r->err = FI_ENOMEM;
		return;
	}
	r->iov[0].iov_base = r->bounce;
	r->iov[0].iov_len = r->bytes;
	r->rx.count = 1;
	r->rx.msg_size = r->bytes;
}

/*
 * Let the entry of @r describe the receive that its message has matched. A
 * message that is too long for it goes to memory of ours: libfabric's shm crashes
 * when one that waited is truncated.
 */
static void show_match(struct tdm_foreign_rx *r)
{
	const size_t limit = tdm_min(r->ep->f->info->rx_attr->iov_limit,
				     (size_t)TDM_IOV_LIMIT);
	const struct fi_peer_rx_entry *own = r->own;
	size_t i;

	r->state = TDM_FOREIGN_FILLING;
	r->rx.msg_size = own->msg_size;
	r->rx.count = tdm_min(own->count, limit);
	for (i = 0; i < r->rx.count; i++)
		r->iov[i] = own->iov[i];
	if (own->count > limit || r->bytes > tdm_iov_len(own->iov, own->count))
		gather(r);
}

static struct tdm_foreign_rx *rx_new(struct tdm_foreign_ep *ep, fi_addr_t from)
{
	struct tdm_foreign_rx *r = tdm_pool_alloc(&ep->f->rxs);

	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	tdm_foreign_mark(ep->f, &r->mark);
	r->ep = ep;
	r->peer = tdm_foreign_peer_at(ep, from);
	tdm_list_init(&r->node);
	tdm_list_append(r->peer ? &r->peer->rxs : &ep->strays, &r->node);
	r->rx.srx = &ep->port->lent;
	r->rx.addr = from;
	r->rx.context = r;
	r->rx.iov = r->iov;
	r->rx.desc = r->desc;
	return r;
}

static void rx_free(struct tdm_foreign_rx *r)
{
	tdm_list_del(&r->node);
	free(r->bounce);
	r->mark.check = r->mark.serial;
	tdm_pool_free(&r->ep->f->rxs, r);
}

/* Take over what the provider says of the message of @r. */
static void describe(struct tdm_foreign_rx *r, uint64_t kind,
		     const struct fi_peer_match_attr *attr)
{
	r->bytes = attr->msg_size;
	if (r->bytes > TDM_MAX_MSG_BYTES) {
		tdm_foreign_breach("a message longer than its limit");
		r->bytes = TDM_MAX_MSG_BYTES;
		r->err = FI_EIO;
	}
	r->rx.msg_size = r->bytes;
	r->rx.tag = attr->tag;
	r->rx.flags = kind | FI_RECV | FI_COMPLETION;
}

static int get(struct fid_peer_srx *lent, uint64_t kind,
	       const struct fi_peer_match_attr *attr,
	       struct fi_peer_rx_entry **entry)
{
	struct tdm_foreign_ep *ep = tdm_foreign_ep_called(lent);
	struct tdm_offer offer = { .attr = *attr };
	struct fi_ops_srx_owner *ops;
	struct tdm_foreign_rx *r;
	int ret = -FI_ENOMEM;

	if (!ep)
		return -FI_EINVAL;
	ops = ep->own->owner_ops;
	r = rx_new(ep, attr->addr);
	if (!r)
		goto err;
	describe(r, kind, attr);
	offer.attr.msg_size = r->bytes;
	offer.attr.addr = r->peer ? r->peer->addr : FI_ADDR_UNSPEC;
	if (r->peer)
		offer.from = (const struct sockaddr *)&r->peer->from;
	ret = kind & FI_TAGGED ? ops->get_tag(ep->own, &offer.attr, &r->own) :
				 ops->get_msg(ep->own, &offer.attr, &r->own);
	if (ret && ret != -FI_ENOENT)
		goto err;
	if (!ret)
		show_match(r);
	*entry = tdm_foreign_shown(r);
	return ret;
err:
	TDM_WARN(EP_DATA, "provider %s drops a message: %s", ep->f->name,
		 fi_strerror(-ret));
	if (r)
		rx_free(r);
	return ret;
}

static int get_msg(struct fid_peer_srx *lent, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **entry)
{
	return get(lent, FI_MSG, attr, entry);
}

static int get_tag(struct fid_peer_srx *lent, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **entry)
{
	return get(lent, FI_TAGGED, attr, entry);
}

/* Hand on @data of a message with @flags of the provider, fi_cq(3). */
static void take_data(const struct tdm_foreign_rx *r, uint64_t flags,
		      uint64_t data)
{
	if (!(flags & FI_REMOTE_CQ_DATA))
		return;
	r->own->flags |= FI_REMOTE_CQ_DATA;
	r->own->cq_data = data;
}

/* queue_msg() and queue_tag(). */
static int queue(struct fi_peer_rx_entry *entry)
{
	struct tdm_foreign_rx *r = tdm_foreign_rx_called(entry);
	struct fi_ops_srx_owner *ops;
	struct fi_peer_rx_entry *own;

	if (!r)
		return -FI_EINVAL;
	if (r->state != TDM_FOREIGN_ASKED) {
		tdm_foreign_breach("an entry queued twice, or with a receive");
		return -FI_EINVAL;
	}
	r->state = TDM_FOREIGN_WAITING;
	ops = r->ep->own->owner_ops;
	own = r->own;
	own->peer_context = r;
	take_data(r, r->rx.flags, r->rx.cq_data);
	return r->rx.flags & FI_TAGGED ? ops->queue_tag(own) :
					 ops->queue_msg(own);
}

/*
 * Returns how a receive ends when the provider has failed with @err, a positive
 * fi_errno: but for want of memory the bytes did not come, and it may have known
 * before us that their sender is gone.
 */
static struct tdm_result failed(int err)
{
	return tdm_failed(err == FI_ENOMEM || err == FI_ETRUNC ? err :
								 FI_ECONNRESET,
			  err, 0);
}

/* The address of the sender of @r in the owner's format; NULL: unknown. */
static const void *peer_name(const struct tdm_foreign_rx *r)
{
	return r->peer ? &r->peer->from : NULL;
}

/* End the operation of @r, with @result, unless it was reported. */
static void end(struct tdm_foreign_rx *r, const struct tdm_result *result)
{
	struct fi_peer_rx_entry *own = r->own;

	if (!result->err && r->peer) {
		r->peer->counts.rx_msgs++;
		r->peer->counts.rx_bytes += result->len;
	}
	r->own = NULL;
	r->state = TDM_FOREIGN_ENDED;
	if (r->ep->closing)
		; /* fi_close(3): operations end without an entry */
	else if (result->err)
		tdm_done_recv_err(&r->ep->done, own,
				  tdm_result_of(*result, peer_name(r)));
	else
		tdm_done_recv(&r->ep->done, own, result->len);
	own->srx->owner_ops->free_entry(own);
}

static void free_entry(struct fi_peer_rx_entry *entry)
{
	const struct tdm_result lost = failed(FI_EIO);
	struct tdm_foreign_rx *r = tdm_foreign_rx_called(entry);

	if (!r)
		return;
	switch (r->state) {
	case TDM_FOREIGN_ASKED:
		r->own->srx->owner_ops->free_entry(r->own);
		break;
	case TDM_FOREIGN_WAITING:
		/* The owner's list still leads here: start() and discard(). */
		tdm_foreign_breach("a waiting message freed");
		r->state = TDM_FOREIGN_DROPPED;
		return;
	case TDM_FOREIGN_FILLING:
		tdm_foreign_breach("a receive freed before its end");
		end(r, &lost);
		break;
	case TDM_FOREIGN_DROPPED:
		tdm_foreign_breach("a waiting message freed twice");
		return;
	case TDM_FOREIGN_ENDED:
		break;
	}
	rx_free(r);
}

/* Returns the source of the message whose entry at the owner is @own. */
static fi_addr_t source(struct fi_peer_rx_entry *own)
{
	const struct tdm_foreign_rx *r = own->peer_context;

	return r && r->peer ? r->peer->addr : FI_ADDR_UNSPEC;
}

void tdm_foreign_resolve(struct tdm_foreign_ep *ep)
{
	ep->own->owner_ops->foreach_unspec_addr(ep->own, source);
}

static void
foreach_unspec_addr(struct fid_peer_srx *lent,
		    fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	struct tdm_foreign_ep *ep = tdm_foreign_ep_called(lent);
	struct tdm_list *pos, *tmp;

	if (!ep)
		return;
	tdm_list_for_each_safe(pos, tmp, &ep->strays) {
		struct tdm_foreign_rx *r =
			tdm_list_entry(pos, struct tdm_foreign_rx, node);

		if (r->state != TDM_FOREIGN_WAITING)
			continue;
		r->rx.addr = get_addr(tdm_foreign_shown(r));
		r->peer = tdm_foreign_peer_at(ep, r->rx.addr);
		if (!r->peer)
			continue;
		tdm_list_del(&r->node);
		tdm_list_append(&r->peer->rxs, &r->node);
	}
	tdm_foreign_resolve(ep);
}

static struct fi_ops_srx_owner lent_ops = {
	.size = sizeof(lent_ops),
	.get_msg = get_msg,
	.get_tag = get_tag,
	.queue_msg = queue,
	.queue_tag = queue,
	.foreach_unspec_addr = foreach_unspec_addr,
	.free_entry = free_entry,
};

/* ---- the owner's calls --------------------------------------------------- */

/* start_msg() and start_tag(). */
static int start(struct fi_peer_rx_entry *own)
{
	struct tdm_foreign_rx *r = own->peer_context;
	struct fi_ops_srx_peer *ops = r->ep->port->lent.peer_ops;
	const uint32_t serial = r->mark.serial;
	struct tdm_result result = failed(FI_EIO);
	struct tdm_foreign *was;
	int ret;

	if (r->state == TDM_FOREIGN_DROPPED) {
		end(r, &result);
		rx_free(r);
		return 0;
	}
	if (r->peer && !r->peer->key)
		tdm_foreign_peer_linger(r->peer);
	show_match(r);
	was = tdm_foreign_enter(r->ep->f);
	ret = r->rx.flags & FI_TAGGED ? ops->start_tag(tdm_foreign_shown(r)) :
					ops->start_msg(tdm_foreign_shown(r));
	tdm_foreign_leave(was);
	/* The provider may have ended the receive, and freed the record. */
	if (!ret || ret == -FI_EINPROGRESS ||
	    !tdm_foreign_same(&r->mark, serial) || !r->own)
		return 0;
	result = failed(-ret);
	end(r, &result);
	return 0;
}

/* discard_msg() and discard_tag(): the owner frees its entry. */
static int discard(struct fi_peer_rx_entry *own)
{
	struct tdm_foreign_rx *r = own->peer_context;
	struct fi_ops_srx_peer *ops = r->ep->port->lent.peer_ops;
	int (*call)(struct fi_peer_rx_entry *) =
		r->rx.flags & FI_TAGGED ? ops->discard_tag : ops->discard_msg;
	const int dropped = r->state == TDM_FOREIGN_DROPPED;
	const uint32_t serial = r->mark.serial;
	struct tdm_foreign *f = r->ep->f, *was;
	int ret = -FI_ENOSYS;

	r->own = NULL;
	r->state = TDM_FOREIGN_ENDED;
	was = tdm_foreign_enter(f);
	if (dropped)
		ret = 0;
	else if (call)
		ret = call(tdm_foreign_shown(r));
	tdm_foreign_leave(was);
	if (ret)
		TDM_INFO(EP_DATA, "provider %s does not discard a message: %s",
			 f->name, fi_strerror(-ret));
	else if (tdm_foreign_same(&r->mark, serial))
		rx_free(r);
	return 0;
}

static struct fi_ops_srx_peer start_ops = {
	.size = sizeof(start_ops),
	.start_msg = start,
	.start_tag = start,
	.discard_msg = discard,
	.discard_tag = discard,
};

/* ---- completions --------------------------------------------------------- */

/*
 * Returns how the receive of @r ends when the provider has placed a message of
 * @len bytes, or as many of them as there was room for.
 */
static struct tdm_result placed(const struct tdm_foreign_rx *r, size_t len)
{
	const struct fi_peer_rx_entry *own = r->own;
	size_t room = tdm_iov_len(own->iov, own->count);

	if (r->err)
		return tdm_failed(r->err, 0, 0);
	if (len > r->bytes) {
		tdm_foreign_breach("a message longer than announced");
		return tdm_failed(FI_EIO, 0, 0);
	}
	if (r->bounce)
		tdm_iov_copy_to(own->iov, own->count, 0, r->bounce,
				tdm_min(len, room));
	return len > room ? tdm_truncated(room, len - room) :
			    tdm_succeeded(len);
}

/* Returns the receive of the completion for @context, or NULL: there is none. */
static struct tdm_foreign_rx *ending(void *context)
{
	struct tdm_foreign_rx *r = tdm_foreign_rx_named(context);

	if (r && r->state != TDM_FOREIGN_FILLING &&
	    r->state != TDM_FOREIGN_ENDED)
		tdm_foreign_breach("a completion without a receive");
	else if (r && r->told++)
		tdm_foreign_breach("a receive that ends twice");
	else
		return r && r->own ? r : NULL;
	return NULL;
}

static ssize_t rx_end(struct fid_peer_cq *cq, void *context, uint64_t flags,
		      size_t len, void *buf, uint64_t data, uint64_t tag,
		      fi_addr_t src)
{
	struct tdm_foreign_rx *r = ending(context);
	struct tdm_result result;

	if (!r)
		return 0;
	take_data(r, flags, data);
	result = placed(r, len);
	end(r, &result);
	return 0;
}

static ssize_t rx_failed(struct fid_peer_cq *cq,
			 const struct fi_cq_err_entry *e)
{
	struct tdm_foreign_rx *r = ending(e->op_context);
	struct tdm_result result = failed(e->err);

	if (!r)
		return 0;
	if (e->err == FI_ETRUNC)
		result = placed(r, r->bytes);
	take_data(r, e->flags, e->data);
	end(r, &result);
	return 0;
}

struct fi_ops_cq_owner tdm_foreign_rx_ops = {
	.size = sizeof(tdm_foreign_rx_ops),
	.write = rx_end,
	.writeerr = rx_failed,
};

void tdm_foreign_rx_fail(struct tdm_list *rxs, int err)
{
	const struct tdm_result lost = tdm_failed(err, 0, 0);
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, rxs) {
		struct tdm_foreign_rx *r =
			tdm_list_entry(pos, struct tdm_foreign_rx, node);

		if (r->state == TDM_FOREIGN_FILLING)
			end(r, &lost);
	}
}

void tdm_foreign_rx_free(struct tdm_list *rxs)
{
	while (!tdm_list_empty(rxs))
		rx_free(tdm_list_entry(rxs->next, struct tdm_foreign_rx, node));
}

/* ---- what the provider imports ------------------------------------------- */

static int lent_close(struct fid *fid)
{
	return -FI_ENOSYS;
}

static struct fi_ops lent_fid_ops = {
	.size = sizeof(lent_fid_ops),
	.close = lent_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static ssize_t lent_cancel(fid_t fid, void *context)
{
	return -FI_ENOENT;
}

static int lent_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	return -FI_ENOPROTOOPT;
}

static int lent_setopt(fid_t fid, int level, int name, const void *val,
		       size_t len)
{
	return -FI_ENOPROTOOPT;
}

static struct fi_ops_ep lent_ep_ops = {
	.size = sizeof(lent_ep_ops),
	.cancel = lent_cancel,
	.getopt = lent_getopt,
	.setopt = lent_setopt,
	.tx_ctx = tdm_no_ep_tx_ctx,
	.rx_ctx = tdm_no_ep_rx_ctx,
	.rx_size_left = tdm_no_ep_size_left,
	.tx_size_left = tdm_no_ep_size_left,
};

void tdm_foreign_lend(struct tdm_foreign_ep *ep)
{
	struct fid_peer_srx *lent = &ep->port->lent;

	lent->ep_fid.fid.fclass = FI_CLASS_PEER_SRX;
	lent->ep_fid.fid.context = ep->port;
	lent->ep_fid.fid.ops = &lent_fid_ops;
	lent->ep_fid.ops = &lent_ep_ops;
	lent->owner_ops = &lent_ops;
	ep->own->peer_ops = &start_ops;
	tdm_source_offer(ep->own);
}
