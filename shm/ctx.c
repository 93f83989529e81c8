/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to and from the receive contexts of scalable endpoints (tdm_ctx.h).
 *
 * The messages of a ring are for the context selected last; at first for
 * context 0. So a message for another one is preceded by a SELECT record, and
 * those of usual endpoints are what they would be without contexts.
 *
 * Invariants:
 *  1. pair->tx_ctx is what the last SELECT in the ring says.
 *  2. ep->by_addr, by which sends find their pair at once, has no pair whose
 *     tx_ctx is not 0: such sends come here and select anew.
 *  3. pair->srx is the SRX of the context selected by the peer.
 *
 * Locking: domain lock held. Spec: doc/PROTOCOL-shm.md "Receive contexts".
 */
#include <rdma/fi_errno.h>

#include "shm/ctx.h"
#include "shm/path.h"
#include "shm/rma.h"

tdm_static_assert((int)TDM_SHM_CTX_MOST == (int)TDM_CTX_MOST,
		  "a SELECT can name every context");

void tdm_shm_ctx_import(struct tdm_shm_ep *ep)
{
	struct fid *fid = &ep->srx->ep_fid.fid;
	void *ops = NULL;

	/* An owner without contexts need not have the call. */
	ep->contexts = 1;
	if (!fid->ops || fid->ops->size < sizeof(struct fi_ops) ||
	    !fid->ops->ops_open ||
	    fid->ops->ops_open(fid, TDM_CTX_OPS, 0, &ops, NULL) || !ops)
		return;
	ep->done.ctx = ops;
	ep->contexts = ep->done.ctx->count(ep->srx);
}

void tdm_shm_ctx_reset(struct tdm_shm_pair *pair)
{
	pair->tx_ctx = 0;
	if (pair->self)
		pair->peer_contexts = pair->ep->contexts;
	pair->srx = NULL;
	(void)!tdm_shm_ctx_select(pair, 0);
}

int tdm_shm_ctx_select(struct tdm_shm_pair *pair, unsigned int index)
{
	struct tdm_shm_ep *ep = pair->ep;

	if (index >= ep->contexts)
		return -1;
	if (ep->srx)
		pair->srx = ep->done.ctx ? ep->done.ctx->srx(ep->srx, index) :
					   ep->srx;
	return 0;
}

/* Have the next record of @pair be for context @index. */
static ssize_t select_tx(struct tdm_shm_pair *pair, uint16_t index)
{
	uint8_t *slot;

	if (pair->tx_ctx == index)
		return 0;
	if (index >= pair->peer_contexts)
		return -FI_EADDRNOTAVAIL;
	slot = tdm_shm_tx_room(pair, 1, TDM_SHM_TX_SPARE);
	if (!slot)
		return tdm_shm_tx_full(pair);
	memset(slot + 8, 0, 8);
	tdm_shm_ring_publish(&pair->tx, 1,
			     tdm_shm_word0(0, TDM_SHM_REC_SELECT, 0, index));
	tdm_shm_bell(pair);
	pair->tx_ctx = index;
	return 0;
}

ssize_t tdm_shm_ctx_send(struct tdm_shm_ep *ep, const struct tdm_xfer *x,
			 int bits)
{
	struct tdm_xfer y = *x;
	struct tdm_shm_pair *pair;
	uint64_t index = x->addr >> (64 - bits);
	ssize_t ret = -FI_EADDRNOTAVAIL;

	if (index >= TDM_CTX_MOST)
		return ret;
	y.addr = x->addr & (~0ull >> bits);
	pair = tdm_shm_tx_pair(ep, y.addr, &ret);
	if (!pair)
		return ret;
	ret = tdm_shm_tx_approach(pair);
	if (!ret)
		ret = select_tx(pair, (uint16_t)index);
	if (!ret)
		ret = y.flags & FI_RMA ? tdm_shm_rma_send(ep, &y) :
					 tdm_shm_tx_send(ep, &y);
	if (pair->tx_ctx && ep->by_addr[y.addr] == pair) {
		ep->by_addr[y.addr] = NULL;
		pair->refs--;
		tdm_shm_pair_release(pair);
	}
	return ret;
}
