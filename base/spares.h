/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers that are used again: of some KiB, allocated and freed for each message.
 * malloc(3) returns such memory to the system when the end of its heap becomes free,
 * and each page of it is then faulted in again for the next message. A buffer that
 * is given back is kept for one of about its size, the oldest ones are freed first. No lock:
 * callers serialise their calls for one object.
 */
#ifndef TDM_BASE_SPARES_H
#define TDM_BASE_SPARES_H

#include <stddef.h>
#include <stdint.h>

enum {
	TDM_SPARES_MOST = 32, /* buffers that are kept */
	TDM_SPARES_MOST_BYTES = 512 * 1024,
	/* sizes that are kept: bytes of a buffer */
	TDM_SPARES_SMALLEST = 8 * 1024,
	TDM_SPARES_LARGEST = 128 * 1024,
};

/* Zeroed: none is kept. */
struct tdm_spares {
	uint32_t count, bytes; /* of the kept ones */
	struct {
		void *buf;
		uint32_t bytes;
	} kept[TDM_SPARES_MOST]; /* in the order in which they were given back */
};

/*
 * Returns a buffer of at least @bytes, not 0, or NULL: no memory, and none is kept any
 * more. Out: *@got, its size. It goes back by tdm_spares_give().
 */
void *tdm_spares_take(struct tdm_spares *s, uint32_t bytes, uint32_t *got);

/*
 * Give @buf of @bytes, *got of tdm_spares_take(), back. 0 bytes: a buffer of malloc(3),
 * which is freed. NULL: nothing happens.
 */
void tdm_spares_give(struct tdm_spares *s, void *buf, uint32_t bytes);

/* Free what is kept. @s is empty afterwards. */
void tdm_spares_fini(struct tdm_spares *s);

#endif /* TDM_BASE_SPARES_H */
