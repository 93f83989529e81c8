/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A soak: processes, the actors, that exchange messages, writes, reads and
 * atomic operations without end while others of them are killed, started again at
 * the same address, and stopped, and TCP connections are reset; and a ledger that
 * judges all of it.
 *
 * The first two of four actors live to the end: between them nothing may be
 * lost. The others are mortal; each of their lives is a process of its own. A
 * stream is the messages of one class from one life of an actor to another actor.
 * The sender begins a new epoch of its streams to a mortal actor after an error.
 *
 * What the ledger asks for: each operation ends once; an error is one that
 * fi_tandem(7), FAULTS, has for the end of a peer, and that peer is mortal; in
 * each stream the numbers of the messages have no repetition, no exchange and no gap
 * but for receives that ended in an error as the sender died; the bytes of a message
 * are those that were sent, and those behind it are untouched; a read gives what was
 * written before, a fetch-add the sum of all before; at rest each message sent has
 * been received, the sums at both ends are equal, and each process holds what it held
 * before.
 */
#ifndef TDT_SOAK_H
#define TDT_SOAK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a soak is to do. */
struct tdt_soak_plan {
	uint64_t messages; /* to be received by all together */
	unsigned rests;	   /* at equal distances; the last one is the end */
	unsigned strikes;  /* between two rests */
	int resets;	   /* 1: half of the strikes break TCP connections */
	uint64_t seed;
};

/* What it did. */
struct tdt_soak_result {
	uint64_t messages, bytes, writes, atomics, errors;
	unsigned kills, stops, resets;
	char problem[512]; /* "": no violation */
};

/*
 * Run the soak in processes that have this one's environment. Returns 0, or -1
 * with @result->problem.
 */
int tdt_soak_run(const struct tdt_soak_plan *plan,
		 struct tdt_soak_result *result);

#ifdef __cplusplus
}
#endif

#endif /* TDT_SOAK_H */
