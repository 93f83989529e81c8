/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that a foreign provider sends. The context of each is a record of
 * ours, so its completion need not be of the form that the owner wants, and an
 * operation whose remote endpoint is gone can end before the provider forgets
 * it.
 *
 * Lock: domain held. Spec: fi_peer(3), fi_msg(3), fi_tagged(3).
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "peer/foreign_priv.h"
#include "tdm_op.h"

/* The flags of an operation that are passed on to the provider. */
#define PASSED                                                                 \
	(FI_REMOTE_CQ_DATA | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |       \
	 FI_DELIVERY_COMPLETE)

static uint64_t passed(uint64_t flags)
{
	uint64_t f = (flags & PASSED) | FI_COMPLETION;

	/* A message placed in a buffer counts as matched. */
	return flags & FI_MATCH_COMPLETE ? f | FI_DELIVERY_COMPLETE : f;
}

static void tx_free(struct tdm_foreign_tx *t)
{
	tdm_list_del(&t->node);
	free(t->copy);
	t->mark.check = t->mark.serial;
	tdm_pool_free(&t->ep->f->txs, t);
}

/*
 * Not 0 when the bytes of @x must be copied: the caller may use the buffer again
 * at once and the provider cannot copy so much, or it takes fewer elements.
 */
static int needs_copy(const struct tdm_foreign *f, const struct tdm_xfer *x)
{
	const struct fi_tx_attr *a = f->info->tx_attr;

	return x->count > a->iov_limit ||
	       (x->flags & FI_INJECT && x->len > a->inject_size);
}

/* Returns a record for @x. NULL: out of memory. */
static struct tdm_foreign_tx *tx_new(struct tdm_foreign_peer *peer,
				     const struct tdm_xfer *x)
{
	struct tdm_foreign_ep *ep = peer->ep;
	struct tdm_foreign_tx *t = tdm_pool_alloc(&ep->f->txs);

	if (!t)
		return NULL;
	tdm_foreign_mark(ep->f, &t->mark);
	t->ep = ep;
	t->peer = peer;
	t->context = x->context;
	t->len = x->len;
	t->flags = x->flags;
	t->addr = x->addr;
	t->copy = NULL;
	tdm_list_init(&t->node);
	tdm_list_append(&peer->txs, &t->node);
	if (!needs_copy(ep->f, x))
		return t;
	t->copy = malloc(tdm_max(x->len, (size_t)1));
	if (!t->copy) {
		tx_free(t);
		return NULL;
	}
	tdm_iov_copy_from(t->copy, x->iov, x->count, 0, x->len);
	return t;
}

static ssize_t post(struct tdm_foreign_peer *peer, const struct tdm_xfer *x,
		    struct tdm_foreign_tx *t)
{
	const struct iovec copy = { t->copy, x->len };
	struct fi_msg_tagged msg = {
		.msg_iov = t->copy ? &copy : x->iov,
		.iov_count = t->copy ? 1 : x->count,
		.addr = peer->to,
		.tag = x->tag,
		.context = t,
		.data = x->data,
	};
	const struct fi_msg plain = {
		.msg_iov = msg.msg_iov,
		.iov_count = msg.iov_count,
		.addr = msg.addr,
		.context = msg.context,
		.data = msg.data,
	};
	uint64_t flags = passed(x->flags);

	if ((x->flags & FI_INJECT) && !t->copy)
		flags |= FI_INJECT;
	return x->flags & FI_TAGGED ? fi_tsendmsg(peer->ep->ep, &msg, flags) :
				      fi_sendmsg(peer->ep->ep, &plain, flags);
}

ssize_t tdm_foreign_send(struct tdm_foreign_peer *peer,
			 const struct tdm_xfer *x)
{
	struct tdm_foreign_tx *t = tx_new(peer, x);
	struct tdm_foreign *was;
	uint32_t serial;
	ssize_t ret;

	if (!t)
		return -FI_ENOMEM;
	serial = t->mark.serial;
	was = tdm_foreign_enter(peer->ep->f);
	ret = post(peer, x, t);
	if (ret && !tdm_foreign_same(&t->mark, serial)) {
		tdm_foreign_breach("a send that has ended and fails");
		ret = 0;
	}
	tdm_foreign_leave(was);
	if (!ret)
		return 0;
	tx_free(t);
	return ret < 0 ? ret : -FI_EIO;
}

static ssize_t tx_end(struct fid_peer_cq *cq, void *context, uint64_t flags,
		      size_t len, void *buf, uint64_t data, uint64_t tag,
		      fi_addr_t src)
{
	struct tdm_foreign_tx *t = tdm_foreign_tx_named(context), done;

	if (!t)
		return 0;
	done = *t;
	tx_free(t);
	done.peer->counts.tx_msgs++;
	done.peer->counts.tx_bytes += done.len;
	if (done.flags && !done.ep->closing)
		tdm_done_send(&done.ep->done, done.context, done.flags);
	return 0;
}

static void fail(const struct tdm_foreign_tx *t, int err, int prov_errno)
{
	if (!t->flags || t->ep->closing)
		return;
	tdm_done_send_err(&t->ep->done, t->context, t->flags, t->addr,
			  tdm_result_of(tdm_failed(err, prov_errno, 0),
					&t->peer->from));
}

static ssize_t tx_failed(struct fid_peer_cq *cq,
			 const struct fi_cq_err_entry *e)
{
	struct tdm_foreign_tx *t = tdm_foreign_tx_named(e->op_context), done;

	if (!t)
		return 0;
	done = *t;
	tx_free(t);
	fail(&done, e->err > 0 ? e->err : FI_EIO, e->prov_errno);
	return 0;
}

struct fi_ops_cq_owner tdm_foreign_tx_ops = {
	.size = sizeof(tdm_foreign_tx_ops),
	.write = tx_end,
	.writeerr = tx_failed,
};

void tdm_foreign_abandon(struct tdm_foreign_peer *peer, int err)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &peer->txs) {
		struct tdm_foreign_tx *t =
			tdm_list_entry(pos, struct tdm_foreign_tx, node);

		fail(t, err, 0);
		t->flags = 0;
	}
}

void tdm_foreign_tx_free(struct tdm_foreign_peer *peer)
{
	while (!tdm_list_empty(&peer->txs))
		tx_free(tdm_list_entry(peer->txs.next, struct tdm_foreign_tx,
				       node));
}
