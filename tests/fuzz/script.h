/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scripts: sequences of calls of libfabric, right and wrong ones, made from any
 * bytes. A script is played by two endpoints of one process, which reach each
 * other by one tier. What it comes to (what each call returned, how each
 * operation ended, and the bytes of all buffers) must not depend on the tier.
 *
 * A step is SCRIPT_STEP_BYTES of the input; those behind SCRIPT_STEPS steps, and
 * a last one that is not whole, are not played.
 */
#ifndef TDT_SCRIPT_H
#define TDT_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "tests/harness/world.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	SCRIPT_STEP_BYTES = 8,
	SCRIPT_STEPS = 48,
	SCRIPT_NOBODY = 8, /* errors of operations without context, counted */
};

/* The outcome of one step. */
struct tdt_deed_end {
	ssize_t ret;	/* of the call */
	int ends;	/* completions and errors with its context */
	int err;	/* of the last one, and its other members */
	uint64_t flags; /* ORed over all */
	uint64_t len;	/* summed, as the next one */
	uint64_t olen;
	uint64_t tag, data; /* of those of messages that were received */
	uint64_t src;	    /* 0: none; else 1 + the index of the endpoint */
	uint64_t sum;	    /* over the bytes of its buffer afterwards */
};

/* The outcome of a script. */
struct tdt_script_end {
	size_t steps;
	struct tdt_deed_end deeds[SCRIPT_STEPS];
	uint64_t regions[2]; /* sums over the exposed memory */
	uint64_t data;	     /* of writes, as their targets were told */
	uint64_t left;	     /* messages that no receive was for */
	int nobody[SCRIPT_NOBODY];
};

/*
 * Play @data[@size] in a world of its own: through shared memory, or with @tcp
 * over TCP; @prov as in struct tdt_attr. Returns NULL, and *@end; or a
 * promise that was broken, a static text: a call that never ends, an operation
 * that ends twice or not at all, an object that does not close.
 */
const char *tdt_script_play(const uint8_t *data, size_t size, int tcp,
			    struct fi_provider *prov,
			    struct tdt_script_end *end);

/*
 * Play @data[@size] over both tiers. Returns NULL, or a static text as
 * tdt_script_play() does; also when the two ends differ.
 */
const char *tdt_script_compare(const uint8_t *data, size_t size,
			       struct fi_provider *prov);

#ifdef __cplusplus
}
#endif

#endif /* TDT_SCRIPT_H */
