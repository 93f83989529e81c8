/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends through the ring of a pair. */
#ifndef TDM_SHM_TX_H
#define TDM_SHM_TX_H

#include <stddef.h>
#include <sys/types.h>

#include "shm/pair.h"
#include "tdm_xfer.h"

struct tdm_shm_ep;

enum { TDM_SHM_TX_SPARE = 2 }; /* slots kept for control records */

/*
 * Send @x; x->addr is an index of the bound AV. Returns 0, or -FI_EAGAIN (an
 * attach is under way, or the ring or context is full), -FI_EINVAL,
 * -FI_ECONNREFUSED, -FI_EHOSTUNREACH; after an error the operation has not
 * begun.
 */
ssize_t tdm_shm_tx_send(struct tdm_shm_ep *ep, struct tdm_xfer *x);

/*
 * Read the peer's progress in the ring; breaks the pair when the value is
 * impossible.
 */
void tdm_shm_tx_credit(struct tdm_shm_pair *pair);

/*
 * As tdm_shm_ring_reserve(), but reads the peer's progress when need be, and
 * checks from time to time whether the peer is alive: if not, breaks @pair.
 */
uint8_t *tdm_shm_tx_room(struct tdm_shm_pair *pair, uint32_t n, uint32_t spare);

/*
 * Called when control records wait for slots: from now on tdm_shm_tx_room() writes
 * them before it has room for a message, however much room there is by then.
 */
void tdm_shm_tx_hold(struct tdm_shm_pair *pair);

/*
 * Called after tdm_shm_tx_room() returned NULL: makes one step of progress.
 * Returns -FI_EAGAIN; or 0 if the peer has died: then @x (NULL: none) has ended
 * with FI_ECONNRESET.
 */
ssize_t tdm_shm_tx_full(struct tdm_shm_pair *pair, const struct tdm_xfer *x);

/*
 * For FI_FENCE: returns not 0, after one step of progress, while operations to
 * the peer are under way. Operations that are complete in the ring do not
 * count: later records follow them anyway.
 */
int tdm_shm_tx_fenced(struct tdm_shm_pair *pair);

/*
 * Called when @pair (NULL: none yet) is not up: makes a step towards a session,
 * and sends @x if it is up then.
 */
ssize_t tdm_shm_tx_slow(struct tdm_shm_ep *ep, struct tdm_shm_pair *pair,
			struct tdm_xfer *x);

/*
 * Fill @rts, the announcement of @op, whose len, count and iov are set. The
 * addresses of the buffers are given only if there is room for all.
 */
void tdm_shm_rts_of(struct tdm_shm_rts *rts, const struct tdm_shm_op *op);

/* Fill @rts, the announcement of @x, whose buffers @op keeps. */
void tdm_shm_rts_fill(struct tdm_shm_rts *rts, struct tdm_shm_op *op,
		      const struct tdm_xfer *x);

/*
 * Returns the pair of index @addr, making it if need be. NULL: *@ret is the
 * error.
 */
struct tdm_shm_pair *tdm_shm_tx_pair(struct tdm_shm_ep *ep, fi_addr_t addr,
				     ssize_t *ret);

/*
 * Make one step towards a session. Returns 0 when @pair is up, else what the
 * send returns.
 */
ssize_t tdm_shm_tx_approach(struct tdm_shm_pair *pair);

#endif /* TDM_SHM_TX_H */
