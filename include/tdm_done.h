/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How an operation ends: at most one completion and exactly one count, written
 * through the owner's exported objects (fi_peer(3)). Both transports end their
 * operations here. So completions and counts are the same for both. Operations
 * with TDM_DEFERRED go to tdm_op.h, which no transport notices.
 *
 * All functions: domain lock held.
 */
#ifndef TDM_DONE_H
#define TDM_DONE_H

#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_peer.h>

#include "base/base.h"
#include "tdm_ctx.h"
#include "tdm_entry.h"
#include "tdm_op.h"
#include "tdm_source.h"
#include "tdm_user_id.h"

/*
 * The objects that report the operations of one endpoint. A NULL member is not
 * bound.
 */
struct tdm_done {
	struct fid_peer_cq *tx_cq;
	struct fid_peer_cq *rx_cq;
	struct fid_peer_cntr *send_cntr;	 /* bound with FI_SEND */
	struct fid_peer_cntr *recv_cntr;	 /* bound with FI_RECV */
	struct fid_peer_cntr *write_cntr;	 /* FI_WRITE */
	struct fid_peer_cntr *read_cntr;	 /* FI_READ */
	struct fid_peer_cntr *remote_write_cntr; /* FI_REMOTE_WRITE */
	struct fid_peer_cntr *remote_read_cntr;	 /* FI_REMOTE_READ */
	/* Scalable endpoints: reports receives; rx_cq etc. are NULL. */
	const struct tdm_ctx_ops *ctx;
	const struct tdm_user_ids *user_ids; /* of the AV; NULL: none */
	int strangers;	  /* FI_SOURCE_ERR: unknown sources are errors */
	uint64_t refused; /* of FI_REMOTE_READ, _WRITE: not granted */
};

/* Returns the counter of an operation with @flags, or NULL. */
static inline struct fid_peer_cntr *tdm_done_tx_cntr(const struct tdm_done *d,
						     uint64_t flags)
{
	if (flags & FI_SEND)
		return d->send_cntr;
	return flags & FI_READ ? d->read_cntr : d->write_cntr;
}

static inline struct fid_peer_cntr *tdm_done_rx_cntr(const struct tdm_done *d,
						     uint64_t flags)
{
	if (flags & FI_RECV)
		return d->recv_cntr;
	return flags & FI_REMOTE_READ ? d->remote_read_cntr :
					d->remote_write_cntr;
}

/*
 * Report a send, or a read or write at its initiator, as successful. @flags: of
 * the tdm_xfer; without FI_COMPLETION only the counter changes.
 */
static inline void tdm_done_send(const struct tdm_done *d, void *context,
				 uint64_t flags)
{
	struct fid_peer_cntr *cntr = tdm_done_tx_cntr(d, flags);

	if (tdm_unlikely(flags & TDM_DEFERRED)) {
		tdm_op_sent(d, context, flags);
		return;
	}
	if (cntr)
		cntr->owner_ops->inc(cntr);
	if ((flags & FI_COMPLETION) && d->tx_cq)
		d->tx_cq->owner_ops->write(d->tx_cq, context,
					   flags & TDM_CQ_TX_FLAGS, 0, NULL, 0,
					   0, FI_ADDR_NOTAVAIL);
}

/*
 * Report a send to @addr as failed; @result has the error. An error entry is
 * written even if no completion was asked for, as fi_cq(3) requires. @context
 * is NULL for inject calls.
 */
static inline void tdm_done_send_err(const struct tdm_done *d, void *context,
				     uint64_t flags, fi_addr_t addr,
				     struct tdm_result result)
{
	struct fid_peer_cntr *cntr = tdm_done_tx_cntr(d, flags);
	struct fi_cq_err_entry e;

	if (flags & TDM_DEFERRED) {
		tdm_op_send_ended(d, context, flags, addr, result);
		return;
	}
	if (cntr)
		cntr->owner_ops->incerr(cntr);
	if (!d->tx_cq)
		return;
	tdm_entry_of_send_error(&e, context, flags, result.err,
				result.prov_errno);
	e.src_addr = d->user_ids ? tdm_user_id(d->user_ids, addr) : addr;
	tdm_source_name(&e, result.peer);
	d->tx_cq->owner_ops->writeerr(d->tx_cq, &e);
}

/*
 * The rare cases of tdm_done_recv(). Returns 1 when the completion is written,
 * 0 when the caller must go on.
 */
static tdm_noinline __attribute__((unused)) int
tdm_done_recv_rare(const struct tdm_done *d, const struct fi_peer_rx_entry *e,
		   size_t len)
{
	struct fid_peer_cntr *region = (struct fid_peer_cntr *)e->owner_context;
	struct fi_cq_err_entry x;

	/* The entry is one of include/tdm_rma.h: count at its region. */
	if ((e->flags & FI_RMA) && region)
		region->owner_ops->inc(region);
	if ((e->flags & TDM_DEFERRED) && !d->ctx) {
		tdm_op_received(d, e, len);
		return 1;
	}
	if (e->flags & (FI_RMA | TDM_DEFERRED) || !d->rx_cq ||
	    !(e->flags & (FI_COMPLETION | FI_REMOTE_CQ_DATA)))
		return 0;
	if (d->recv_cntr)
		d->recv_cntr->owner_ops->inc(d->recv_cntr);
	/* fi_cq(3), FI_EADDRNOTAVAIL: tdm_source.h. */
	tdm_entry_of_error(&x, e, len, FI_EADDRNOTAVAIL);
	tdm_source_name(&x, (const struct sockaddr *)e->owner_context);
	d->rx_cq->owner_ops->writeerr(d->rx_cq, &x);
	return 1;
}

/*
 * Report the receive of @e as successful: @len bytes were written to e->iov.
 * Uses e->flags, context, tag, cq_data and addr. The caller then frees the
 * entry. Entries of include/tdm_rma.h complete here too, but only those with
 * remote CQ data get an entry in the CQ.
 */
static inline void tdm_done_recv(const struct tdm_done *d,
				 const struct fi_peer_rx_entry *e, size_t len)
{
	const uint64_t rare = FI_RMA | FI_SOURCE_ERR | TDM_DEFERRED;
	struct fid_peer_cntr *cntr = tdm_done_rx_cntr(d, e->flags);

	if (tdm_unlikely(e->flags & rare) && tdm_done_recv_rare(d, e, len))
		return;
	if (cntr)
		cntr->owner_ops->inc(cntr);
	if (tdm_unlikely(!d->rx_cq)) {
		if (d->ctx)
			d->ctx->recv(e, len);
		return;
	}
	if (e->flags & (FI_COMPLETION | FI_REMOTE_CQ_DATA))
		d->rx_cq->owner_ops->write(d->rx_cq, e->context,
					   e->flags & TDM_CQ_FLAGS, len,
					   e->iov[0].iov_base, e->cq_data,
					   e->tag, e->addr);
}

/* Report the receive of @e as failed. The caller then frees the entry. */
static inline void tdm_done_recv_err(const struct tdm_done *d,
				     const struct fi_peer_rx_entry *e,
				     struct tdm_result result)
{
	struct fid_peer_cntr *cntr = tdm_done_rx_cntr(d, e->flags);
	struct fi_cq_err_entry x;

	/* The target of a one-sided operation does not learn of its failure. */
	if (e->flags & FI_RMA)
		return;
	if ((e->flags & TDM_DEFERRED) && !d->ctx) {
		tdm_op_recv_ended(d, e, result);
		return;
	}
	if (cntr)
		cntr->owner_ops->incerr(cntr);
	if (!d->rx_cq) {
		if (d->ctx)
			d->ctx->recv_err(e, &result);
		return;
	}
	tdm_entry_of_error(&x, e, result.len, result.err);
	x.olen = result.olen;
	x.prov_errno = result.prov_errno;
	tdm_source_name(&x, result.peer);
	d->rx_cq->owner_ops->writeerr(d->rx_cq, &x);
}

#endif /* TDM_DONE_H */
