/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_PEEK, FI_CLAIM and FI_DISCARD of fi_trecvmsg(3).
 *
 * The result of a peek is always written to the CQ, because it is the peek's
 * only purpose: FI_ENOMSG, or an entry that describes the message. Peeking
 * changes no counter. A claimed message moves from the match queue to
 * srx->claimed, and internal[0] of the caller's fi_context points to it;
 * FI_CLAIM only compares that word with the entries on srx->claimed, and never
 * dereferences it.
 *
 * To discard a message, this file calls discard_tag() of its transport once and
 * frees the entry: the transport does not give it back.
 *
 * Lock: domain held.
 */
#include "peer/srx_space.h"

/* Write a completion that describes the message of @e. */
static void describe(struct tdm_srx *srx, const struct tdm_srx_entry *e,
		     void *context)
{
	const struct tdm_done *done = tdm_srx_port_done(e->rx.srx);
	struct fid_peer_cq *cq = done->rx_cq;

	if (cq)
		cq->owner_ops->write(
			cq, context,
			FI_TAGGED | FI_RECV | (e->rx.flags & FI_REMOTE_CQ_DATA),
			e->rx.msg_size, NULL, e->rx.cq_data, e->rx.tag,
			tdm_srx_reported(done, e->rx.addr));
}

static void write_error(struct tdm_srx *srx, const struct tdm_xfer *x, int err)
{
	struct fid_peer_cq *cq = srx->done.rx_cq;
	struct fi_cq_err_entry entry;

	if (!cq)
		return;
	memset(&entry, 0, sizeof(entry));
	entry.op_context = x->context;
	entry.flags = FI_TAGGED | FI_RECV;
	entry.tag = x->tag;
	entry.err = err;
	entry.src_addr = tdm_srx_reported(
		&srx->done, srx->spaces ? tdm_space_source(x->addr) : x->addr);
	cq->owner_ops->writeerr(cq, &entry);
}

static ssize_t peek(struct tdm_srx *srx, const struct tdm_xfer *x)
{
	struct fi_context *ctx = (struct fi_context *)x->context;
	const struct tdm_match_item want = {
		.addr = tdm_srx_source(srx, TDM_SRX_TAG, x),
		.tag = x->tag,
		.ignore = x->ignore,
	};
	struct tdm_match_item *item;
	struct tdm_srx_msg *msg;

	if ((x->flags & FI_CLAIM) && !ctx)
		return -FI_EINVAL;
	item = tdm_srx_find_arrived(srx, TDM_SRX_TAG, &want);
	if (!item) {
		if (x->flags & FI_CLAIM)
			ctx->internal[0] = NULL;
		write_error(srx, x, FI_ENOMSG);
		return 0;
	}
	msg = tdm_srx_msg_of_item(item);
	describe(srx, &msg->e, x->context);
	if (x->flags & FI_CLAIM) {
		tdm_srx_take(srx, msg);
		tdm_srx_step(&msg->e.state, TDM_SRX_CLAIMED);
		msg->e.rx.context = ctx;
		tdm_list_append(&srx->claimed, &msg->link);
		ctx->internal[0] = msg;
	} else if (x->flags & FI_DISCARD) {
		tdm_srx_take(srx, msg);
		tdm_srx_discard(srx, msg);
	}
	return 0;
}

static struct tdm_srx_msg *find_claimed(struct tdm_srx *srx, void *context)
{
	const struct fi_context *ctx = (const struct fi_context *)context;
	struct tdm_list *pos;

	if (!ctx)
		return NULL;
	tdm_list_for_each(pos, &srx->claimed) {
		struct tdm_srx_msg *msg = tdm_srx_msg_of_link(pos);

		if (msg == ctx->internal[0] && msg->e.rx.context == context)
			return msg;
	}
	return NULL;
}

static ssize_t claim(struct tdm_srx *srx, const struct tdm_xfer *x)
{
	struct tdm_srx_msg *msg = find_claimed(srx, x->context);

	if (!msg)
		return -FI_EINVAL;
	if (!(x->flags & FI_DISCARD) && tdm_srx_msg_fill(srx, msg, x))
		return -FI_ENOMEM;
	tdm_list_del(&msg->link);
	if (x->flags & FI_DISCARD) {
		if (x->flags & FI_COMPLETION)
			describe(srx, &msg->e, x->context);
		if (msg->e.state == TDM_SRX_LOST)
			tdm_srx_entry_free(srx, &msg->e);
		else
			tdm_srx_discard(srx, msg);
		return 0;
	}
	if (msg->e.state == TDM_SRX_LOST) {
		struct fi_peer_rx_entry *rx = &msg->e.rx;

		rx->addr = tdm_srx_reported(&srx->done, rx->addr);
		tdm_done_recv_err(&srx->done, rx,
				  tdm_failed(FI_ECONNRESET, 0, 0));
		tdm_srx_entry_free(srx, &msg->e);
		return 0;
	}
	tdm_srx_start(msg);
	return 0;
}

ssize_t tdm_srx_peek(struct tdm_srx *srx, const struct tdm_xfer *x,
		     enum tdm_srx_kind kind)
{
	if (kind != TDM_SRX_TAG || (x->flags & FI_MULTI_RECV))
		return -FI_EINVAL;
	switch (x->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) {
	case FI_PEEK:
	case FI_PEEK | FI_CLAIM:
	case FI_PEEK | FI_DISCARD:
		return peek(srx, x);
	case FI_CLAIM:
	case FI_CLAIM | FI_DISCARD:
		return claim(srx, x);
	default:
		return -FI_EINVAL;
	}
}
