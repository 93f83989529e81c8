/* SPDX-License-Identifier: BSD-2-Clause */
/* The consumer's side of the ring that shm/ring.h describes. */
#ifndef TDM_SHM_RING_RX_H
#define TDM_SHM_RING_RX_H

#include "shm/ring.h"

enum { TDM_SHM_FETCH_BYTES = 512 }; /* most to fetch ahead */

struct tdm_shm_ring_rx {
	const uint8_t *slots; /* the peer's segment, read-only */
	uint32_t count;
	uint32_t idx; /* slot where the next record starts */
	uint32_t lap;
	uint32_t gen;
	uint64_t tail;	/* slots consumed in all rings */
	uint64_t shown; /* tail as last published */
};

static inline void tdm_shm_ring_rx_init(struct tdm_shm_ring_rx *r,
					const uint8_t *slots, uint32_t count)
{
	r->slots = slots;
	r->count = count;
	r->idx = 0;
	r->lap = 1;
}

static inline const uint8_t *tdm_shm_ring_slot(const struct tdm_shm_ring_rx *r)
{
	return r->slots + (size_t)r->idx * TDM_SHM_SLOT_BYTES;
}

/* Returns word 0 of the slot for which the consumer waits. */
static inline uint64_t tdm_shm_ring_peek(const struct tdm_shm_ring_rx *r)
{
	return tdm_a64_load_acquire(
		(const tdm_a64 *)(const void *)tdm_shm_ring_slot(r));
}

static inline int tdm_shm_ring_there(const struct tdm_shm_ring_rx *r,
				     uint64_t word0)
{
	return (uint32_t)word0 == r->lap;
}

/*
 * Not 0 when @word0, which is no record of this lap, can be an earlier state of
 * the slot.
 */
static inline int tdm_shm_ring_sane(const struct tdm_shm_ring_rx *r,
				    uint64_t word0)
{
	return !(uint32_t)word0 || (int32_t)((uint32_t)word0 - r->lap) < 0;
}

/*
 * Start to fetch the first lines of the record for which the consumer waited,
 * which has @len bytes: they come from the producer's cache while the message is
 * being matched. @len is the producer's word.
 */
static inline void tdm_shm_ring_fetch(const struct tdm_shm_ring_rx *r,
				      size_t len)
{
	const uint8_t *slot = tdm_shm_ring_slot(r);
	size_t most = (size_t)(r->count - r->idx) * TDM_SHM_SLOT_BYTES, at;

	most = tdm_min(most, (size_t)TDM_SHM_FETCH_BYTES);
	len = tdm_min(len + TDM_CACHE_LINE_BYTES, most);
	for (at = TDM_CACHE_LINE_BYTES; at < len; at += TDM_CACHE_LINE_BYTES)
		tdm_prefetch(slot + at);
}

/* Not 0 when so many slots were consumed that the progress must be published. */
static inline int tdm_shm_ring_show_now(const struct tdm_shm_ring_rx *r)
{
	return r->tail - r->shown >= tdm_shm_ring_unshown(r->count);
}

/* Step over a record of @n slots; @n must be <= count - idx. */
static inline void tdm_shm_ring_step(struct tdm_shm_ring_rx *r, uint32_t n)
{
	r->idx += n;
	r->tail += n;
	if (tdm_unlikely(r->idx == r->count)) {
		r->idx = 0;
		r->lap = tdm_shm_lap_next(r->lap);
	}
}

#endif /* TDM_SHM_RING_RX_H */
