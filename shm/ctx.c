/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to and from the receive contexts of scalable endpoints (tdm_ctx.h),
 * and those of groups (tdm_space.h).
 *
 * The messages of a ring are for the context and group selected last; at first
 * 0 and 0. A message for others is preceded by a SELECT record, so messages of
 * usual endpoints need none.
 *
 * Invariants:
 *  1. pair->tx_ctx and tx_group are those of the last SELECT in the ring.
 *  2. ep->by_addr, by which sends find their pair at once, has no pair whose
 *     tx_ctx or tx_group is not 0: sends to such a pair come here and select
 *     anew.
 *  3. pair->srx is the SRX of the context selected by the peer.
 *
 * Locking: domain lock held. Spec: doc/PROTOCOL-shm.md "Receive contexts".
 */
#include "shm/ctx.h"

#include <rdma/fi_errno.h>

#include "shm/bell.h"
#include "shm/ep.h"
#include "shm/rma.h"
#include "shm/tx.h"

tdm_static_assert((int)TDM_SHM_CTX_MOST == (int)TDM_CTX_MOST,
		  "a SELECT can name every context");

void tdm_shm_ctx_import(struct tdm_shm_ep *ep)
{
	tdm_source_offer(ep->srx);
	ep->done.ctx = tdm_open_ops(&ep->srx->ep_fid.fid, TDM_CTX_OPS);
	ep->contexts = ep->done.ctx ? ep->done.ctx->count(ep->srx) : 1;
}

void tdm_shm_ctx_reset(struct tdm_shm_pair *pair)
{
	pair->tx_ctx = 0;
	pair->tx_group = 0;
	if (pair->self) {
		pair->peer_contexts = pair->ep->contexts;
		pair->peer_groups = pair->ep->domain->max_group > 0;
		pair->peer_atomics = 1;
		pair->peer_ranges = 1;
	}
	pair->srx = NULL;
	(void)!tdm_shm_ctx_select(pair, 0, 0);
}

int tdm_shm_ctx_select(struct tdm_shm_pair *pair, unsigned int index,
		       uint64_t group)
{
	struct tdm_shm_ep *ep = pair->ep;

	if (index >= ep->contexts || group > TDM_SPACE_GROUP_MOST ||
	    (group && !ep->domain->max_group))
		return -1;
	if (ep->srx)
		pair->srx = ep->done.ctx ? ep->done.ctx->srx(ep->srx, index) :
					   ep->srx;
	tdm_shm_pair_source(pair, pair->owner_addr, (uint32_t)group);
	return 0;
}

/*
 * Select the context and group of @place for the next record of @pair, by a
 * SELECT if others are selected.
 */
static ssize_t select_tx(struct tdm_shm_pair *pair,
			 const struct tdm_place *place)
{
	uint64_t group = place->group;
	uint8_t *slot;

	if (pair->tx_ctx == place->ctx && pair->tx_group == group)
		return 0;
	if (place->ctx >= pair->peer_contexts || (group && !pair->peer_groups))
		return -FI_EADDRNOTAVAIL;
	slot = tdm_shm_tx_room(pair, 1, TDM_SHM_TX_SPARE);
	if (!slot)
		return tdm_shm_tx_full(pair, NULL);
	memcpy(slot + 8, &group, 8);
	tdm_shm_ring_publish(&pair->tx, 1,
			     tdm_shm_word0(0, TDM_SHM_REC_SELECT, 0,
					   (uint16_t)place->ctx));
	tdm_shm_bell(pair);
	pair->tx_ctx = (uint16_t)place->ctx;
	pair->tx_group = place->group;
	return 0;
}

ssize_t tdm_shm_ctx_send(struct tdm_shm_ep *ep, const struct tdm_xfer *x,
			 const struct tdm_space *space)
{
	struct tdm_xfer y = *x;
	struct tdm_place place;
	struct tdm_shm_pair *pair;
	ssize_t ret = -FI_EADDRNOTAVAIL;

	if (tdm_space_split(space, x->addr, &place) ||
	    place.ctx >= TDM_CTX_MOST)
		return ret;
	if (x->flags & TDM_ONE_SIDED)
		place.group = 0;
	y.addr = place.addr;
	pair = tdm_shm_tx_pair(ep, y.addr, &ret);
	if (!pair)
		return ret;
	ret = tdm_shm_tx_approach(pair);
	if (!ret)
		ret = select_tx(pair, &place);
	if (!ret)
		ret = y.flags & TDM_ONE_SIDED ? tdm_shm_rma_send(ep, &y) :
						tdm_shm_tx_send(ep, &y);
	if ((pair->tx_ctx || pair->tx_group) && ep->by_addr[y.addr] == pair) {
		ep->by_addr[y.addr] = NULL;
		pair->refs--;
		tdm_shm_pair_release(pair);
	}
	return ret;
}
