/* SPDX-License-Identifier: BSD-2-Clause */
/* The doorbell: which pairs are polled, and which announce themselves. */
#ifndef TDM_SHM_BELL_H
#define TDM_SHM_BELL_H

#include <stdint.h>

#include "base/base.h"
#include "shm/pair.h"

struct tdm_shm_ep;
struct tdm_shm_session;

/* Wake the peer of @pair as @bits, its bell word, asks. */
void tdm_shm_bell_ring(struct tdm_shm_pair *pair, uint32_t bits);

/* Give @s a bit of the hints page; -FI_ENOMEM, -FI_ENOSPC. */
int tdm_shm_bell_assign(struct tdm_shm_ep *ep,
			struct tdm_shm_session *s) tdm_must_check;
void tdm_shm_bell_release(struct tdm_shm_session *s);

/*
 * @pair waits for something else now: set its bell word again before the next
 * sleep, and end a sleep that has begun.
 */
void tdm_shm_bell_again(struct tdm_shm_pair *pair);

/* Poll @pair's ring from now on, at least until it is empty. */
void tdm_shm_bell_promote(struct tdm_shm_pair *pair);
void tdm_shm_bell_forget(struct tdm_shm_pair *pair);

/* Poll the rings whose bits are set in the hints page. */
void tdm_shm_bell_scan(struct tdm_shm_ep *ep);

/* Every 10 ms: silent rings leave the hot set; a few cold ones are swept. */
void tdm_shm_bell_upkeep(struct tdm_shm_ep *ep);

/* Prepare to sleep: 0, or -FI_EAGAIN when there is work. */
int tdm_shm_bell_arm(struct tdm_shm_ep *ep);

/* Call after publishing a record or chunk. */
static inline void tdm_shm_bell(struct tdm_shm_pair *pair)
{
	uint32_t bits;

	if (pair->fence)
		tdm_fence_full();
	bits = tdm_a32_load_relaxed(&pair->peer->bell);
	if (tdm_unlikely(bits))
		tdm_shm_bell_ring(pair, bits);
}

/* Call after giving back slots or chunks. */
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
