/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The doorbell: which rings are polled, and for which rings a peer wakes this
 * process when it has written a record.
 */
#ifndef TDM_SHM_BELL_H
#define TDM_SHM_BELL_H

#include <stdint.h>

#include "base/base.h"
#include "shm/pair.h"

struct tdm_shm_ep;
struct tdm_shm_session;

/* Wake the peer of @pair in the ways that @bits, its bell word, asks for. */
void tdm_shm_bell_ring(struct tdm_shm_pair *pair, uint32_t bits);

/* assign: give @s a bit of the hints page. Errors: -FI_ENOMEM, -FI_ENOSPC. */
int tdm_shm_bell_assign(struct tdm_shm_ep *ep,
			struct tdm_shm_session *s) tdm_must_check;
void tdm_shm_bell_release(struct tdm_shm_session *s);

/*
 * Called when @pair begins to wait for something else: its bell word is set
 * again before the next sleep, and a sleep that has begun is ended.
 */
void tdm_shm_bell_again(struct tdm_shm_pair *pair);

/*
 * Poll the ring of @pair in each pass from now on, at least until it is empty.
 */
void tdm_shm_bell_promote(struct tdm_shm_pair *pair);
void tdm_shm_bell_forget(struct tdm_shm_pair *pair);

/* Poll the rings whose bits are set in the hints page. */
void tdm_shm_bell_scan(struct tdm_shm_ep *ep);

/*
 * Called every 10 ms: takes silent rings out of the hot set, and polls a few
 * cold rings.
 */
void tdm_shm_bell_upkeep(struct tdm_shm_ep *ep);

/*
 * Prepare to sleep: asks all peers to write the eventfd. Returns 0, or
 * -FI_EAGAIN when there is work.
 */
int tdm_shm_bell_arm(struct tdm_shm_ep *ep);

/*
 * Wake the peer if it asks for that. Call it after publishing a record or
 * chunk.
 */
static inline void tdm_shm_bell(struct tdm_shm_pair *pair)
{
	uint32_t bits;

	if (pair->fence)
		tdm_fence_full();
	bits = tdm_a32_load_relaxed(&pair->peer->bell);
	if (tdm_unlikely(bits))
		tdm_shm_bell_ring(pair, bits);
}

/*
 * Wake the peer if it waits for space. Call it after giving back slots or
 * chunks.
 */
static inline void tdm_shm_bell_space(struct tdm_shm_pair *pair)
{
	uint32_t bits;

	if (pair->fence)
		tdm_fence_full();
	bits = tdm_a32_load_relaxed(&pair->peer->bell);
	if (tdm_unlikely(bits & TDM_SHM_BELL_SPACE))
		tdm_shm_bell_ring(pair, bits);
}

#endif /* TDM_SHM_BELL_H */
