/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The evil twin: a process with a complete endpoint, which speaks the protocol
 * and, from a point that the seed chooses, breaks it. Over TCP it changes a
 * field, repeats, exchanges, cuts, drops or adds records on their way to the
 * kernel; over shared memory a second thread writes the twin's own segments while
 * the victim reads them, and packets of the attach have other bytes and
 * descriptors.
 *
 * Locking: in the twin's process one flag between its two threads; else none.
 */
#ifndef TDT_TWIN_H
#define TDT_TWIN_H

#include "play.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	TDT_TWIN_REGION = 64 << 10, /* bytes that it lets the victim reach */
	TDT_TWIN_KEY = 0x7e57,
	TDT_TWIN_LARGE = 150000, /* its longest message */
};

/* What a twin does with one seed; then it takes the next order. */
struct tdt_twin_order {
	uint64_t seed;
	enum tdt_tier tier;
	struct tdt_name victim;
	uint64_t key; /* of the region of the victim that it may use */
};

/*
 * The process: takes orders from @fd, one after the other. It answers each by
 * the name of an endpoint (struct tdt_name) and, unless it ends by the order, by
 * one byte when it has closed that.
 */
int tdt_twin(int fd);

#ifdef __cplusplus
}
#endif

#endif /* TDT_TWIN_H */
