/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on several ranges at the target: a RANGES record has all ranges
 * but the first; the record of the operation, which has the first, follows it
 * in the ring. See doc/PROTOCOL-shm.md, "One-sided operations".
 */
#ifndef TDM_SHM_RANGES_H
#define TDM_SHM_RANGES_H

#include "shm/record.h"
#include "tdm_amo.h"

struct tdm_shm_pair;
struct tdm_xfer;

struct tdm_shm_range {
	uint64_t addr;
	uint64_t len;
	uint64_t key;
};

tdm_static_assert(sizeof(struct tdm_shm_range) == 24, "RANGES layout");

static inline uint32_t tdm_shm_ranges_slots(size_t count)
{
	return tdm_shm_rec_slots(count * sizeof(struct tdm_shm_range));
}

enum {
	/* Slots of the longest RANGES. */
	TDM_SHM_RANGES_SLOTS =
		(TDM_SHM_HEAD_BYTES +
		 (TDM_RMA_IOV_LIMIT - 1) * sizeof(struct tdm_shm_range) +
		 TDM_SHM_SLOT_BYTES - 1) /
		TDM_SHM_SLOT_BYTES,
};

/*
 * tdm_shm_ranges_room() followed by tdm_shm_ranges_put(), for @x with
 * TDM_RANGES. Returns the slot for the operation's record of @n slots, or NULL:
 * no room. Lock: domain held.
 */
uint8_t *tdm_shm_ranges_take(struct tdm_shm_pair *pair,
			     const struct tdm_xfer *x, uint32_t n);
void tdm_shm_ranges_publish(struct tdm_shm_pair *pair,
			    const struct tdm_xfer *x);

/* Handle the RANGES at @slot; as tdm_shm_rma_rx(). */
int tdm_shm_ranges_rx(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		      const uint8_t *slot);

#endif /* TDM_SHM_RANGES_H */
