/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multi-recv buffers, FI_MULTI_RECV in fi_msg(3) and fi_cq(3).
 *
 * The buffer stays POSTED at its place in the order while messages are packed
 * into it, without gaps; each message has an entry of its own, whose buffer is
 * exactly its part. A message larger than the free rest of the buffer is
 * truncated to it (its transport writes FI_ETRUNC). When the rest is empty, or
 * smaller than the minimum that was set when the buffer was posted, the buffer
 * is SPENT.
 *
 * The buffer is released exactly once, after its last message has ended: by a
 * completion with the flag FI_MULTI_RECV alone, even if no completions were
 * asked for, or by the FI_ECANCELED entry of fi_cancel(3), which then has that
 * flag. The release is not part of the last message's completion, because
 * messages may end in another order than they began. The release is reported at
 * the endpoint whose message ended last.
 *
 * Lock: domain held.
 */
#include "peer/srx_space.h"

static void release(struct tdm_srx *srx, struct tdm_srx_entry *p)
{
	const struct tdm_done *done =
		p->side->port ? tdm_srx_port_done(p->side->port) : &srx->done;
	struct fid_peer_cq *cq = done->rx_cq;

	if (srx->flushed)
		return;
	if (p->side->cancelled)
		tdm_done_recv_err(done, &p->rx, tdm_failed(FI_ECANCELED, 0, 0));
	else if (p->rx.flags & TDM_DEFERRED)
		tdm_op_released(done, &p->rx);
	else if (cq)
		cq->owner_ops->write(cq, p->rx.context, FI_MULTI_RECV, 0, NULL,
				     0, 0, FI_ADDR_NOTAVAIL);
}

void tdm_srx_multi_put(struct tdm_srx *srx, struct tdm_srx_entry *parent)
{
	if (--parent->side->refs || parent->state != TDM_SRX_SPENT)
		return;
	release(srx, parent);
	tdm_srx_entry_free(srx, parent);
}

void tdm_srx_multi_take(struct tdm_srx *srx, struct tdm_srx_entry *parent,
			struct tdm_srx_msg *msg, size_t size)
{
	struct tdm_srx_side *side = parent->side;
	struct tdm_srx_entry *child = &msg->e;
	size_t left = parent->iov.iov_len - side->used;
	size_t len = tdm_min(size, left);

	child->iov.iov_base = (char *)parent->iov.iov_base + side->used;
	child->iov.iov_len = len;
	child->desc = side->desc[0];
	child->rx.count = 1;
	child->rx.context = parent->rx.context;
	child->rx.msg_size = len;
	child->rx.flags = (child->rx.flags & FI_REMOTE_CQ_DATA) |
			  (parent->rx.flags & ~FI_MULTI_RECV);
	msg->parent = parent;
	side->refs++;
	side->used += len;
	left -= len;
	if (!left || left < side->min) {
		tdm_match_remove(srx->match[parent->kind], &parent->item);
		tdm_srx_entry_unpost(srx, parent);
		tdm_srx_step(&parent->state, TDM_SRX_SPENT);
	}
}

ssize_t tdm_srx_multi_recv(struct tdm_srx *srx, const struct tdm_xfer *x,
			   enum tdm_srx_kind kind)
{
	struct tdm_match_item *item, want;
	struct tdm_srx_entry *p;

	if (x->count != 1)
		return -FI_EINVAL;
	if (tdm_srx_post(srx, x, kind, &p))
		return -FI_ENOMEM;
	p->rx.flags |= FI_MULTI_RECV;
	p->side->refs = 1; /* our own, while waiting messages are matched */
	p->side->used = 0;
	p->side->min = srx->min_multi_recv;
	p->side->cancelled = 0;
	p->side->port = NULL;
	want = p->item;
	srx->settling++;
	while (p->state == TDM_SRX_POSTED &&
	       (item = tdm_srx_find_arrived(srx, kind, &want)))
		tdm_srx_join(srx, p, tdm_srx_msg_of_item(item));
	srx->settling--;
	tdm_srx_multi_put(srx, p);
	tdm_srx_settle(srx);
	return 0;
}
