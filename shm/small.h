/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending the most common messages: those that fit one slot, whose sender waits for no
 * answer of the peer. Locking: domain lock held. Spec: doc/PROTOCOL-shm.md "Records".
 */
#ifndef TDM_SHM_SMALL_H
#define TDM_SHM_SMALL_H

#include "shm/bell.h"
#include "shm/copy.h"
#include "shm/pair.h"
#include "shm/tx.h"

/* Returns the most payload of a message with the flags @op in one slot, bytes. */
static inline size_t tdm_shm_small_bytes(uint64_t op)
{
	return TDM_SHM_BODY_BYTES -
	       tdm_shm_rec_extra(op & FI_REMOTE_CQ_DATA ? TDM_SHM_REC_DATA : 0);
}

/*
 * Not 0 for the most common message: one slot, one buffer, no answer. @data: 0, or
 * FI_REMOTE_CQ_DATA for one that has that.
 */
static inline int tdm_shm_small_is(const struct tdm_xfer *x, uint64_t data)
{
	return x->len <= tdm_shm_small_bytes(data) && x->count == 1 &&
	       (x->flags & (FI_REMOTE_CQ_DATA | TDM_DELIVERED | FI_FENCE)) ==
		       data;
}

/*
 * Send a message that tdm_shm_small_is() describes, with @data if @op has FI_REMOTE_CQ_DATA.
 * The caller reports its completion. Returns 0, or -1: no room.
 */
static tdm_always_inline int tdm_shm_small_put(struct tdm_shm_pair *pair,
					       uint64_t op, uint64_t tag,
					       uint64_t data, const void *buf,
					       size_t len)
{
	uint8_t *slot = tdm_shm_ring_reserve(&pair->tx, 1, TDM_SHM_TX_SPARE);
	uint8_t flags = 0, *body;

	if (tdm_unlikely(!slot)) {
		slot = tdm_shm_tx_room(pair, 1, TDM_SHM_TX_SPARE);
		if (!slot)
			return -1;
	}
	memcpy(slot + 8, &tag, 8);
	body = slot + TDM_SHM_HEAD_BYTES;
	if (op & FI_REMOTE_CQ_DATA) {
		memcpy(body, &data, 8);
		body += 8;
		flags = TDM_SHM_REC_DATA;
	}
	tdm_shm_copy(body, buf, len);
	tdm_shm_ring_publish(&pair->tx, 1,
			     tdm_shm_word0(0,
					   op & FI_TAGGED ? TDM_SHM_REC_TAG :
							    TDM_SHM_REC_MSG,
					   flags, (uint16_t)len));
	tdm_shm_bell(pair);
	/* The next one may be as long: warm() fetches its second line. */
	if (body + len > slot + TDM_CACHE_LINE_BYTES) {
		pair->warm_at = 0;
		pair->warm_end = TDM_SHM_SLOT_BYTES;
	}
	pair->tx_msgs++;
	pair->tx_bytes += len;
	return 0;
}

#endif /* TDM_SHM_SMALL_H */
