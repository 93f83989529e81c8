/* SPDX-License-Identifier: BSD-2-Clause */
/* The invariants of a ring's sending end, shm/ring.h, which is private. */
#ifndef TDT_RING_VALID_H
#define TDT_RING_VALID_H

#ifdef __cplusplus
extern "C" {
#endif

#include "shm/ring.h"

#ifdef __cplusplus
}
#endif

/* Do the invariants of the sending end @r hold? */
static inline int tdt_ring_valid(const struct tdm_shm_ring_tx *r)
{
	uint64_t end = tdm_shm_ring_end(r);

	return r->slots && r->count >= TDM_SHM_SLOTS_LEAST &&
	       r->count <= TDM_SHM_SLOTS_MOST && r->idx < r->count && r->lap &&
	       r->credit <= r->head && r->base <= r->head &&
	       r->limit == (end < r->look ? end : r->look) && r->head < end &&
	       r->head <= r->limit &&
	       !(r->dirty[r->idx / 64] >> (r->idx % 64) & 1);
}

#endif /* TDT_RING_VALID_H */
