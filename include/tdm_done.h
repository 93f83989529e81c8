/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How an operation ends: at most one completion and exactly one count, written
 * through the owner's exported objects (fi_peer(3)). Both transports end their
 * operations here, so that fi_cq(3) and fi_cntr(3) hold alike for both.
 *
 * All functions: domain lock held.
 */
#ifndef TDM_DONE_H
#define TDM_DONE_H

#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_peer.h>

#include "tdm_base.h"

/* Where the operations of one endpoint end. NULL members: not bound. */
struct tdm_done {
	struct fid_peer_cq *tx_cq;
	struct fid_peer_cq *rx_cq;
	struct fid_peer_cntr *send_cntr; /* bound with FI_SEND */
	struct fid_peer_cntr *recv_cntr; /* bound with FI_RECV */
};

/* The flags of fi_cq(3) that describe an operation in a completion. */
#define TDM_CQ_FLAGS                                                          \
	(FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_REMOTE_CQ_DATA |         \
	 FI_MULTI_RECV | FI_CLAIM)

/*
 * A send ended well. @flags: of the tdm_xfer; without FI_COMPLETION only the
 * counter moves.
 */
static inline void tdm_done_send(const struct tdm_done *d, void *context,
				 uint64_t flags)
{
	if (d->send_cntr)
		d->send_cntr->owner_ops->inc(d->send_cntr);
	if ((flags & FI_COMPLETION) && d->tx_cq)
		d->tx_cq->owner_ops->write(
			d->tx_cq, context,
			flags & (FI_SEND | FI_MSG | FI_TAGGED), 0, NULL, 0, 0,
			FI_ADDR_NOTAVAIL);
}

/*
 * A send failed: an error entry is written whether or not a completion was
 * asked for, as fi_cq(3) requires. @err: positive fi_errno. @prov_errno: the
 * transport's own reason. @context is NULL for inject calls.
 */
static inline void tdm_done_send_err(const struct tdm_done *d, void *context,
				     uint64_t flags, int err, int prov_errno,
				     fi_addr_t addr)
{
	struct fi_cq_err_entry e;

	if (d->send_cntr)
		d->send_cntr->owner_ops->incerr(d->send_cntr);
	if (!d->tx_cq)
		return;
	memset(&e, 0, sizeof(e));
	e.op_context = context;
	e.flags = flags & (FI_SEND | FI_MSG | FI_TAGGED);
	e.err = err;
	e.prov_errno = prov_errno;
	e.src_addr = addr;
	d->tx_cq->owner_ops->writeerr(d->tx_cq, &e);
}

/*
 * The message of @e is in place: @len bytes were written to e->iov. Uses
 * e->flags, context, tag, cq_data and addr. The caller then frees the entry.
 */
static inline void tdm_done_recv(const struct tdm_done *d,
				 const struct fi_peer_rx_entry *e, size_t len)
{
	if (d->recv_cntr)
		d->recv_cntr->owner_ops->inc(d->recv_cntr);
	if ((e->flags & (FI_COMPLETION | FI_REMOTE_CQ_DATA)) && d->rx_cq)
		d->rx_cq->owner_ops->write(
			d->rx_cq, e->context, e->flags & TDM_CQ_FLAGS, len,
			e->iov[0].iov_base, e->cq_data, e->tag, e->addr);
}

/*
 * The receive of @e failed. @len: bytes placed; @olen: bytes of the message
 * that did not fit (FI_ETRUNC), else 0. The caller then frees the entry.
 */
static inline void tdm_done_recv_err(const struct tdm_done *d,
				     const struct fi_peer_rx_entry *e,
				     size_t len, size_t olen, int err,
				     int prov_errno)
{
	struct fi_cq_err_entry x;

	if (d->recv_cntr)
		d->recv_cntr->owner_ops->incerr(d->recv_cntr);
	if (!d->rx_cq)
		return;
	memset(&x, 0, sizeof(x));
	x.op_context = e->context;
	x.flags = e->flags & TDM_CQ_FLAGS;
	x.len = len;
	x.buf = e->iov[0].iov_base;
	x.data = e->cq_data;
	x.tag = e->tag;
	x.olen = olen;
	x.err = err;
	x.prov_errno = prov_errno;
	x.src_addr = e->addr;
	d->rx_cq->owner_ops->writeerr(d->rx_cq, &x);
}

#endif /* TDM_DONE_H */
