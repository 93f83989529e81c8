/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single-producer, single-consumer ring of 128-byte slots. The slots are in the
 * producer's segment, the consumer's progress word is in the consumer's: each
 * process writes only its own memory.
 *
 * A record takes n adjacent slots and never passes the ring's end (a PAD
 * record fills the remaining slots). Its first 8 bytes, word 0, hold the lap of
 * the ring in the low half: the record has arrived when that equals the
 * consumer's lap. Laps count from 1 and skip 0, so zeroed slots hold no record.
 *
 * Producer invariants:
 *  1. The slot where the next record will start is free, and its word 0 is
 *     either 0 or the lap of an earlier record: never payload. `dirty` has a
 *     bit for each slot that was inside a record since it last started one;
 *     such a slot is zeroed before the record in front of it is published.
 *     Therefore one slot is always kept free.
 *  2. head - max(credit, base) slots are in use; at least 1 slot is not.
 *  3. Records end at `limit` at most: where the ring is full, or earlier, at
 *     `look`, where the producer checks whether the consumer is alive.
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

#include "base/atomic.h"
#include "shm/record.h"

struct tdm_shm_ring_tx {
	uint8_t *slots;	 /* own segment */
	uint64_t *dirty; /* bitmap, private */
	uint32_t count;	 /* slots of the ring */
	uint32_t idx;	 /* slot where the next record starts */
	uint32_t lap;
	uint32_t gen;	 /* number of the pair's ring: 0, 1, ... */
	uint64_t head;	 /* slots published in all rings of the pair */
	uint64_t base;	 /* head when this ring began */
	uint64_t credit; /* the consumer's progress, as last read */
	/* head at the next liveness check; UINT64_MAX: never */
	uint64_t look;
	uint64_t limit; /* min(max(credit, base) + count, look) */
};

enum { TDM_SHM_SHOW_SLOTS = 256 };

/* Returns how many slots of @count, at most, are consumed before that is published. */
static inline uint32_t tdm_shm_ring_unshown(uint32_t count)
{
	return tdm_min(count / 4, (uint32_t)TDM_SHM_SHOW_SLOTS);
}

static inline uint32_t tdm_shm_lap_next(uint32_t lap)
{
	return lap + 1 ? lap + 1 : 1;
}

static inline tdm_a64 *tdm_shm_slot_word(uint8_t *slots, uint32_t idx)
{
	return (tdm_a64 *)(void *)(slots + (size_t)idx * TDM_SHM_SLOT_BYTES);
}

/*
 * Set up a ring of @count zeroed @slots; @dirty is a zeroed bitmap of @count
 * bits.
 */
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
	r->look = UINT64_MAX;
	r->limit = r->head + count;
}

/* Returns the head at which the ring is full, by the progress last read. */
static inline uint64_t tdm_shm_ring_end(const struct tdm_shm_ring_tx *r)
{
	return (r->credit > r->base ? r->credit : r->base) + r->count;
}

/* Returns how many slots are not in use, by the progress last read. */
static inline uint32_t tdm_shm_ring_free(const struct tdm_shm_ring_tx *r)
{
	return (uint32_t)(tdm_shm_ring_end(r) - r->head);
}

/* Let no record end after position @look, however much room there is. */
static inline void tdm_shm_ring_look(struct tdm_shm_ring_tx *r, uint64_t look)
{
	uint64_t end = tdm_shm_ring_end(r);

	r->look = look;
	r->limit = end < look ? end : look;
}

/*
 * Store the consumer's progress @consumed. Returns 0, or -1: the value is
 * impossible.
 */
static inline int tdm_shm_ring_credit(struct tdm_shm_ring_tx *r,
				      uint64_t consumed)
{
	if (consumed - r->credit > r->head - r->credit)
		return -1;
	r->credit = consumed;
	tdm_shm_ring_look(r, r->look);
	return 0;
}

/* Set the bits [@from, @to) of @dirty. */
static inline void tdm_shm_ring_mark(uint64_t *dirty, uint32_t from,
				     uint32_t to)
{
	while (from < to) {
		uint32_t end = tdm_min(to, (from | 63) + 1);

		dirty[from / 64] |= ~0ull >> (64 - (end - from)) << (from % 64);
		from = end;
	}
}

/*
 * Publish the record of @n slots that starts at idx. @word0: without the lap.
 * The caller has written the body to slots that tdm_shm_ring_reserve()
 * returned.
 */
static inline void tdm_shm_ring_publish(struct tdm_shm_ring_tx *r, uint32_t n,
					uint64_t word0)
{
	uint32_t at = r->idx, next = at + n, lap = r->lap;

	tdm_shm_ring_mark(r->dirty, at + 1, next);
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
 * Returns how many slots must be free for a record of @n slots that leaves
 * @spare.
 */
static inline uint32_t tdm_shm_ring_need(const struct tdm_shm_ring_tx *r,
					 uint32_t n, uint32_t spare)
{
	uint32_t left = r->count - r->idx;

	return n + 1 + spare + (tdm_unlikely(n > 1 && left < n) ? left : 0);
}

/*
 * Reserve @n slots for a record, if @spare slots remain free after it.
 * Publishes a PAD record if the record would cross the end of the ring. Returns
 * the address of the first slot; NULL: the record would end after `limit`.
 */
static inline uint8_t *tdm_shm_ring_reserve(struct tdm_shm_ring_tx *r,
					    uint32_t n, uint32_t spare)
{
	uint32_t left = r->count - r->idx;

	if (tdm_unlikely((uint32_t)(r->limit - r->head) <
			 tdm_shm_ring_need(r, n, spare)))
		return NULL;
	if (tdm_unlikely(n > 1 && left < n))
		tdm_shm_ring_publish(r, left,
				     tdm_shm_word0(0, TDM_SHM_REC_PAD, 0,
						   (uint16_t)left));
	return r->slots + (size_t)r->idx * TDM_SHM_SLOT_BYTES;
}

/*
 * Returns how many bytes a record may carry in a ring of @slots, at most @most.
 */
static inline size_t tdm_shm_eager_room(uint32_t slots, size_t most)
{
	size_t room =
		(size_t)(slots / 4) * TDM_SHM_SLOT_BYTES - TDM_CACHE_LINE_BYTES;

	return room < most ? room : most;
}

#endif /* TDM_SHM_RING_H */
