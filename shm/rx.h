/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that come out of a ring. */
#ifndef TDM_SHM_RX_H
#define TDM_SHM_RX_H

#include <stddef.h>

#include "shm/pair.h"

/*
 * Consume up to @budget records and return how many. rx_take: the caller has
 * read @word0, that of a new record.
 */
int tdm_shm_rx_poll(struct tdm_shm_pair *pair, int budget);
int tdm_shm_rx_take(struct tdm_shm_pair *pair, uint64_t word0, int budget);

/*
 * Handle a record of @len bytes that the peer sent over the lifeline when it
 * closed. Returns 0, -FI_ESHUTDOWN for GOODBYE, or -FI_EPROTO: it is not valid.
 */
int tdm_shm_rx_left(struct tdm_shm_pair *pair, const uint8_t *record,
		    size_t len);

/*
 * Called when the ring is empty, since its next slot has @word0, which is no
 * record: gives the consumed slots back, or breaks the pair when no slot can
 * have @word0.
 */
void tdm_shm_rx_idle(struct tdm_shm_pair *pair, uint64_t word0);

extern struct fi_ops_srx_peer tdm_shm_srx_peer_ops;

#endif /* TDM_SHM_RX_H */
