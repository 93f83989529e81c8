/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single-producer, single-consumer ring of 128-byte slots. The slots lie in
 * the producer's segment, the consumer's progress word in the consumer's:
 * each process writes only memory of its own.
 *
 * A record takes n adjacent slots and never passes the ring's end (a PAD
 * record fills the rest). Its first 8 bytes, word 0, hold the lap of the ring
 * in the low half: the record is there when that equals the lap the consumer
 * is in. Laps count from 1 and skip 0, so zeroed slots hold no record.
 *
 * Producer invariants:
 *  1. The slot where the next record will start is free, and its word 0 is
 *     either 0 or the lap of an earlier record: never payload. `dirty` has a
 *     bit for each slot that was inside a record since it last started one;
 *     such a slot is zeroed before the record in front of it is published.
 *     Therefore one slot is always kept free.
 *  2. head - max(credit, base) slots are in use, limit - head are not: 1 or more.
 *
 * Memory order. The producer writes the body and, where needed, zeroes the
 * next start with plain stores and then stores word 0 with release; the
 * consumer loads word 0 with acquire: it sees the whole record and the clean
 * next start. The consumer stores `consumed` with release after its last read
 * of the slots; the producer loads it with acquire before it writes them
 * again. Nothing else orders the two. Positions are 64-bit and free-running.
 */
#ifndef TDM_SHM_RING_H
#define TDM_SHM_RING_H

#include "shm/record.h"
#include "tdm_atomic.h"

struct tdm_shm_ring_tx {
	uint8_t *slots;	 /* own segment */
	uint64_t *dirty; /* bitmap, private */
	uint32_t count;	 /* slots of the ring */
	uint32_t idx;	 /* slot where the next record starts */
	uint32_t lap;
	uint32_t gen;	 /* 0, 1, ... of the pair's rings */
	uint64_t head;	 /* slots published, over all rings of the pair */
	uint64_t base;	 /* head when this ring began */
	uint64_t credit; /* the consumer's progress as last read */
	uint64_t limit;	 /* max(credit, base) + count */
};

struct tdm_shm_ring_rx {
	const uint8_t *slots; /* the peer's segment, read-only */
	uint32_t count;
	uint32_t idx; /* slot where the next record starts */
	uint32_t lap;
	uint32_t gen;
	uint64_t tail;	/* slots consumed, over all rings */
	uint64_t shown; /* tail as last published */
};

static inline uint32_t tdm_shm_lap_next(uint32_t lap)
{
	return lap + 1 ? lap + 1 : 1;
}

static inline tdm_a64 *tdm_shm_slot_word(uint8_t *slots, uint32_t idx)
{
	return (tdm_a64 *)(void *)(slots + (size_t)idx * TDM_SHM_SLOT_BYTES);
}

/* Start with zeroed @slots; @dirty: zeroed bitmap of @count bits. */
static inline void tdm_shm_ring_tx_init(struct tdm_shm_ring_tx *r,
					uint8_t *slots, uint32_t count,
					uint64_t *dirty)
{
	r->slots = slots;
	r->dirty = dirty;
	r->count = count;
	r->idx = 0;
	r->lap = 1;
	r->base = r->head;
	r->limit = r->head + count;
}

static inline void tdm_shm_ring_rx_init(struct tdm_shm_ring_rx *r,
					const uint8_t *slots, uint32_t count)
{
	r->slots = slots;
	r->count = count;
	r->idx = 0;
	r->lap = 1;
}

/* Slots not in use, as last known. */
static inline uint32_t tdm_shm_ring_free(const struct tdm_shm_ring_tx *r)
{
	return (uint32_t)(r->limit - r->head);
}

/* Take the consumer's progress; -1 when it cannot be true. */
static inline int tdm_shm_ring_credit(struct tdm_shm_ring_tx *r,
				      uint64_t consumed)
{
	if (consumed - r->credit > r->head - r->credit)
		return -1;
	r->credit = consumed;
	if (consumed > r->base)
		r->limit = consumed + r->count;
	return 0;
}

/*
 * Make the record of @n slots that starts at idx visible. @word0: without
 * the lap. The body is written; room was there (tdm_shm_ring_reserve()).
 */
static inline void tdm_shm_ring_publish(struct tdm_shm_ring_tx *r, uint32_t n,
					uint64_t word0)
{
	uint32_t at = r->idx, next = at + n, lap = r->lap, i;

	for (i = at + 1; i < next; i++)
		r->dirty[i / 64] |= 1ull << (i % 64);
	if (tdm_unlikely(next == r->count)) {
		next = 0;
		r->lap = tdm_shm_lap_next(lap);
	}
	if (tdm_unlikely(r->dirty[next / 64] >> (next % 64) & 1)) {
		tdm_a64_store_relaxed(tdm_shm_slot_word(r->slots, next), 0);
		r->dirty[next / 64] &= ~(1ull << (next % 64));
	}
	r->idx = next;
	r->head += n;
	tdm_a64_store_release(tdm_shm_slot_word(r->slots, at), word0 | lap);
}

/*
 * Room for a record of @n slots, with @spare slots left after it? Publishes
 * a PAD record when the ring's end is in the way. Returns the first slot's
 * address, or NULL when the ring is full as far as is known.
 */
static inline uint8_t *tdm_shm_ring_reserve(struct tdm_shm_ring_tx *r,
					    uint32_t n, uint32_t spare)
{
	uint32_t left = r->count - r->idx, need = n + 1 + spare;

	if (tdm_unlikely(n > 1 && left < n))
		need += left;
	if (tdm_unlikely(tdm_shm_ring_free(r) < need))
		return NULL;
	if (tdm_unlikely(n > 1 && left < n))
		tdm_shm_ring_publish(r, left,
				     tdm_shm_word0(0, TDM_SHM_REC_PAD, 0,
						   (uint16_t)left));
	return r->slots + (size_t)r->idx * TDM_SHM_SLOT_BYTES;
}

static inline const uint8_t *tdm_shm_ring_slot(const struct tdm_shm_ring_rx *r)
{
	return r->slots + (size_t)r->idx * TDM_SHM_SLOT_BYTES;
}

/* Word 0 of the slot the consumer waits for. */
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

/* Can @word0, not there yet, be an earlier state of the slot? */
static inline int tdm_shm_ring_sane(const struct tdm_shm_ring_rx *r,
				    uint64_t word0)
{
	return !(uint32_t)word0 || (int32_t)((uint32_t)word0 - r->lap) < 0;
}

/* Step over a record of @n slots; n <= count - idx. */
static inline void tdm_shm_ring_step(struct tdm_shm_ring_rx *r, uint32_t n)
{
	r->idx += n;
	r->tail += n;
	if (tdm_unlikely(r->idx == r->count)) {
		r->idx = 0;
		r->lap = tdm_shm_lap_next(r->lap);
	}
}

/* Do the invariants hold? For tests and debug assertions: private state. */
static inline int tdm_shm_ring_valid(const struct tdm_shm_ring_tx *r)
{
	uint64_t from = r->credit > r->base ? r->credit : r->base;

	return r->slots && r->count >= TDM_SHM_SLOTS_LEAST &&
	       r->count <= TDM_SHM_SLOTS_MOST && r->idx < r->count && r->lap &&
	       r->credit <= r->head && r->base <= r->head &&
	       r->limit == from + r->count && r->head < r->limit &&
	       !(r->dirty[r->idx / 64] >> (r->idx % 64) & 1);
}

#endif /* TDM_SHM_RING_H */
