/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that two processes share: sealed memfds. A segment is written by one
 * process only and mapped read-only by the other; the exception is the hints
 * page, which peers write. doc/PROTOCOL-shm.md fixes the layouts.
 */
#ifndef TDM_SHM_REGION_H
#define TDM_SHM_REGION_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "shm/packet.h"
#include "shm/record.h"

/* Signals that a process asks for, in struct tdm_shm_seg.bell. */
enum {
	TDM_SHM_BELL_COLD = 1,	 /* ring not polled: set the hint bit */
	TDM_SHM_BELL_ASLEEP = 2, /* and write the eventfd */
	TDM_SHM_BELL_SPACE = 4,	 /* also signal free slots and chunks */
};

/*
 * The first 1024 bytes of a segment that X made for its peer Y. X writes, Y
 * reads. Words that change at different times are 128 bytes apart
 * (adjacent-line prefetch). The slots of the ring from X to Y follow.
 */
struct tdm_shm_seg {
	/* constant once the peer has the segment */
	uint64_t magic;
	uint32_t version;
	uint32_t slots;
	uint32_t bytes;
	uint32_t gen; /* 0 for the first ring of the session */
	uint8_t incarnation[16];
	uint8_t pad0[88];

	tdm_a64 consumed; /* slots of the ring Y -> X that X has consumed */
	uint8_t pad1[120];

	tdm_a32 bell; /* read-mostly: bits TDM_SHM_BELL_* */
	tdm_a32 hold; /* not 0: send no payload; TDM_SHM_HOLD_* */
	/*
	 * X may have reported so many of the messages that it has announced in
	 * the session, from the first on, as aborted: their memory is its
	 * application's again, unless X sends chunks of it.
	 */
	tdm_a64 recalled;
	uint8_t pad2[112];

	/* chunks of Y's bounce area that X has consumed */
	tdm_a64 bounce_consumed;
	uint8_t pad3[120];

	/* chunks that X has published in its bounce area */
	tdm_a64 bounce_produced;
	uint8_t pad4[504];
};

tdm_static_assert(sizeof(struct tdm_shm_seg) == 1024, "segment head layout");
tdm_static_assert(offsetof(struct tdm_shm_seg, consumed) == 128, "own line");
tdm_static_assert(offsetof(struct tdm_shm_seg, bell) == 256, "own line");
tdm_static_assert(offsetof(struct tdm_shm_seg, recalled) == 264,
		  "in the line of bell");
tdm_static_assert(offsetof(struct tdm_shm_seg, bounce_consumed) == 384,
		  "own line");
tdm_static_assert(offsetof(struct tdm_shm_seg, bounce_produced) == 512,
		  "own line");

/* Bits of hold. */
enum {
	TDM_SHM_HOLD_ANNOUNCE = 1, /* Y must announce messages */
	TDM_SHM_HOLD_GONE = 2,	   /* X has ended the session */
};

/*
 * Slots of the successive rings of a pair: segments of 4, 64 and 256 KiB, and
 * 2 MiB for a stream.
 */
enum {
	TDM_SHM_PAGE_BYTES = 4096,
	TDM_SHM_RING_SMALL_SLOTS = 24,
	TDM_SHM_RING_BUSY_SLOTS = 504,
	TDM_SHM_RING_LARGE_SLOTS = 2040,
	TDM_SHM_RING_STREAM_SLOTS = 16376,
};

/* Returns the size of the segment that holds a ring of @slots. */
static inline size_t tdm_shm_seg_bytes(uint32_t slots)
{
	size_t n =
		sizeof(struct tdm_shm_seg) + (size_t)slots * TDM_SHM_SLOT_BYTES;

	return (n + TDM_SHM_PAGE_BYTES - 1) & ~(size_t)(TDM_SHM_PAGE_BYTES - 1);
}

/*
 * Returns the size of a bounce area: the table of chunk heads, then the chunks.
 */
static inline size_t tdm_shm_bounce_bytes(uint32_t chunks)
{
	return ((size_t)chunks + 1) * TDM_SHM_CHUNK_BYTES;
}

/*
 * The hints page of a process: 8 summary words, one bit per leaf word, then
 * 504 leaf words, one bit per pair. Peers set bits, the process clears them.
 * Garbage in it can at worst cause a needless poll or a delayed one.
 */
enum {
	TDM_SHM_HINT_SUMMARY = 8,
	TDM_SHM_HINT_LEAVES = 504,
	TDM_SHM_HINT_BYTES = 4096,
};

struct tdm_shm_hints {
	tdm_a64 summary[TDM_SHM_HINT_SUMMARY];
	tdm_a64 leaf[TDM_SHM_HINT_LEAVES];
};

tdm_static_assert(sizeof(struct tdm_shm_hints) == TDM_SHM_HINT_BYTES,
		  "hints page layout");

/* A mapping; all 0: none. */
struct tdm_shm_region {
	void *base;
	size_t bytes;
	/* descriptor + 1 of an own region until the peer has it; 0: none */
	int fd_plus1;
};

/*
 * Not 0 when this process may make a region of @bytes. 0: RLIMIT_FSIZE is
 * lower, and the attempt would raise SIGXFSZ, setrlimit(2).
 */
int tdm_shm_region_allowed(size_t bytes);

/*
 * Make @bytes of zeroed memory in a memfd, allocated in full so that no later
 * touch can fail, mapped writable, then sealed against shrinking and growing
 * and, with @single_writer, against every later writable mapping and hole.
 * Errors: -errno of the call that failed, -EFBIG when tdm_shm_region_allowed()
 * forbids it; after an error there is no region.
 */
int tdm_shm_region_create(struct tdm_shm_region *r, const char *name,
			  size_t bytes, int single_writer) tdm_must_check;

static inline int tdm_shm_region_fd(const struct tdm_shm_region *r)
{
	return r->fd_plus1 - 1;
}

/*
 * Map a peer's memory: read-only if it is @single_writer. @fd stays the
 * caller's. Errors: TDM_SHM_BAD_REGION when it is not a memfd of exactly @bytes
 * with the seals that tdm_shm_region_create() sets, else -errno of a call that
 * may succeed another time.
 */
enum { TDM_SHM_BAD_REGION = -4097 }; /* beside the errno values */
int tdm_shm_region_map(struct tdm_shm_region *r, int fd, size_t bytes,
		       int single_writer) tdm_must_check;

/*
 * Called when the peer has the descriptor: closes ours and keeps the mapping.
 */
void tdm_shm_region_handed(struct tdm_shm_region *r);

/* Unmap and close. Accepts a zeroed @r, and leaves it so. */
void tdm_shm_region_fini(struct tdm_shm_region *r);

/*
 * Check that the head of a mapped segment of the peer has the values that the
 * peer announced: @slots, @gen and @incarnation. Reads each field once. Returns
 * 0 or -1.
 */
int tdm_shm_seg_check(const struct tdm_shm_seg *seg, uint32_t slots,
		      uint32_t gen, const uint8_t incarnation[16]);

/* Fill in the constant part of the head of an own segment. */
void tdm_shm_seg_init(struct tdm_shm_seg *seg, uint32_t slots, uint32_t gen,
		      const uint8_t incarnation[16]);

static inline uint8_t *tdm_shm_seg_slots(struct tdm_shm_seg *seg)
{
	return (uint8_t *)seg + sizeof(*seg);
}

#endif /* TDM_SHM_REGION_H */
