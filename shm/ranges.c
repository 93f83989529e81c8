/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending and receiving RANGES records; see ranges.h.
 *
 * Invariants:
 *  1. No record comes between RANGES and its operation: room for both is
 *     reserved together, and both are published in one go.
 *  2. At the target pair->more belongs to the next one-sided operation, and is
 *     kept while the record of that operation stays in the ring for want of
 *     memory.
 *
 * Locking: domain lock held.
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "shm/rma.h"
#include "shm/tx.h"

uint8_t *tdm_shm_ranges_take(struct tdm_shm_pair *pair,
			     const struct tdm_xfer *x, uint32_t n)
{
	uint32_t more = tdm_shm_ranges_slots(x->more_count);
	uint8_t *slot = tdm_shm_tx_room(pair, more + n, TDM_SHM_TX_SPARE);

	return slot ? slot + (size_t)more * TDM_SHM_SLOT_BYTES : NULL;
}

void tdm_shm_ranges_publish(struct tdm_shm_pair *pair, const struct tdm_xfer *x)
{
	struct tdm_shm_range list[TDM_RMA_IOV_LIMIT - 1];
	uint8_t *slot =
		pair->tx.slots + (size_t)pair->tx.idx * TDM_SHM_SLOT_BYTES;
	size_t i;

	for (i = 0; i < x->more_count; i++) {
		list[i].addr = x->more[i].addr;
		list[i].len = x->more[i].len;
		list[i].key = x->more[i].key;
	}
	memset(slot + 8, 0, 8);
	memcpy(slot + TDM_SHM_HEAD_BYTES, list,
	       x->more_count * sizeof(list[0]));
	tdm_shm_ring_publish(&pair->tx, tdm_shm_ranges_slots(x->more_count),
			     tdm_shm_word0(0, TDM_SHM_REC_RANGES, 0,
					   (uint16_t)x->more_count));
}

int tdm_shm_ranges_rx(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		      const uint8_t *slot)
{
	struct tdm_shm_range list[TDM_RMA_IOV_LIMIT - 1];
	size_t i;

	if (!pair->more)
		pair->more = calloc(TDM_RMA_IOV_LIMIT - 1, sizeof(*pair->more));
	if (!pair->more)
		return -FI_EAGAIN;
	memcpy(list, slot + TDM_SHM_HEAD_BYTES, rec->aux * sizeof(list[0]));
	for (i = 0; i < rec->aux; i++) {
		pair->more[i].addr = list[i].addr;
		pair->more[i].len = list[i].len;
		pair->more[i].key = list[i].key;
	}
	pair->more_count = rec->aux;
	return 0;
}
