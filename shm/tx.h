/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends through the ring of a pair. */
#ifndef TDM_SHM_TX_H
#define TDM_SHM_TX_H

#include <stddef.h>
#include <sys/types.h>

#include "shm/pair.h"
#include "tdm_xfer.h"

struct tdm_shm_ep;

/*
 * Send @x; x->addr is an index of the bound AV. Returns 0, or -FI_EAGAIN
 * (attach under way, ring or context full), -FI_EINVAL, -FI_ECONNREFUSED,
 * -FI_EHOSTUNREACH; the operation has not begun then.
 */
ssize_t tdm_shm_tx_send(struct tdm_shm_ep *ep, struct tdm_xfer *x);

/*
 * The calls inject of struct fi_ops_msg and fi_ops_tagged: @len bytes at @buf,
 * the caller's again at return. Errors: of tdm_shm_tx_send(), and -FI_EMSGSIZE.
 */
ssize_t tdm_shm_tx_inject(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t addr);
ssize_t tdm_shm_tx_tinject(struct fid_ep *ep, const void *buf, size_t len,
			   fi_addr_t addr, uint64_t tag);

/* Read the peer's progress; breaks the pair when the value is impossible. */
void tdm_shm_tx_credit(struct tdm_shm_pair *pair);

/*
 * As tdm_shm_ring_reserve(); reads the peer's progress when need be and checks
 * from time to time whether the peer is alive: if not, @pair is broken.
 */
uint8_t *tdm_shm_tx_room(struct tdm_shm_pair *pair, uint32_t n, uint32_t spare);

/*
 * After tdm_shm_tx_room() returned NULL: one step of progress. Returns
 * -FI_EAGAIN, or 0 if the peer is gone: @x (NULL: none) ended with
 * FI_ECONNRESET.
 */
ssize_t tdm_shm_tx_full(struct tdm_shm_pair *pair, const struct tdm_xfer *x);

/*
 * FI_FENCE: returns not 0, after one step of progress, while operations to the
 * peer are under way. Those in the ring do not count: they precede later
 * records anyway.
 */
int tdm_shm_tx_fenced(struct tdm_shm_pair *pair);

/*
 * @pair (NULL: unknown) is not up: take a step towards a session, then send @x.
 */
ssize_t tdm_shm_tx_slow(struct tdm_shm_ep *ep, struct tdm_shm_pair *pair,
			struct tdm_xfer *x);

/*
 * Fill the announcement of @op, whose len, count and iov are set; the buffers'
 * addresses only if there is room for them.
 */
void tdm_shm_rts_of(struct tdm_shm_rts *rts, const struct tdm_shm_op *op);

/* Fill the announcement of @x, whose buffers @op keeps. */
void tdm_shm_rts_fill(struct tdm_shm_rts *rts, struct tdm_shm_op *op,
		      const struct tdm_xfer *x);

/* The pair of index @addr, made if need be; NULL: *@ret is the error. */
struct tdm_shm_pair *tdm_shm_tx_pair(struct tdm_shm_ep *ep, fi_addr_t addr,
				     ssize_t *ret);

/*
 * One step towards a session: 0 when @pair is up, else the result of the send.
 */
ssize_t tdm_shm_tx_approach(struct tdm_shm_pair *pair);

#endif /* TDM_SHM_TX_H */
