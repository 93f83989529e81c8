/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ways by which an announced message can reach its receive, and what each
 * has cost this pair lately. Which way is fastest depends on the machine, on
 * the size, on what both processes do meanwhile, and it changes while they run.
 * So this code measures: most messages take the way that was cheapest, and now
 * and then a few take another one.
 *
 * Pure: no clock, no system call.
 */
#ifndef TDM_SHM_WAY_H
#define TDM_SHM_WAY_H

#include <stdint.h>

enum tdm_shm_way {
	TDM_SHM_WAY_READ,   /* the receiver reads the sender's memory */
	TDM_SHM_WAY_BOTH,   /* and the sender also sends chunks */
	TDM_SHM_WAY_CHUNKS, /* chunks only, as long as they keep coming */
	TDM_SHM_WAYS
};

enum {
	TDM_SHM_WAY_LEAST_BYTES = 16 * 1024, /* shorter messages are read */
	TDM_SHM_WAY_CLASSES = 10,	     /* 16 KiB, 32 KiB, ... 8 MiB */
	/* messages of a trial of reading, and at most of another way */
	TDM_SHM_WAY_TRIAL = 16,
	TDM_SHM_WAY_TRIAL_MOST = 17,
};

/* The costs learnt for messages of one size class. */
struct tdm_shm_way_class {
	uint32_t cost[TDM_SHM_WAYS]; /* ns for 64 KiB; 0: not known */
	uint8_t now;		     /* the way that messages take */
	uint8_t trial;		     /* 1: only to learn its cost */
	uint8_t tried;		     /* ways tried since the last run, bits */
	uint8_t used;		     /* 1: a message had this class */
	uint32_t count;		     /* messages of this run */
	uint32_t since;		     /* messages since the last trial */
	uint32_t slow; /* last messages that took more than twice the cost, */
	uint64_t slow_ns, slow_bytes; /* and sums over them */
	uint64_t ns, bytes;	      /* sums over the messages that count */
	uint64_t four_ns,
		four_bytes; /* and over those after them: three at most, */
	uint64_t slowest_ns, slowest_bytes; /* and the slowest of these */
	uint32_t four;			    /* how many they are */
	uint64_t all_ns, all_bytes; /* and over all messages of this run */
	uint64_t spent; /* ns of all messages of this class, late ones limited */
	uint64_t hastened; /* when all ways were due at once the last time; 0: never */
	/*
	 * when a way may be tried again: by the clock of the caller, and what spent must
	 * have reached
	 */
	uint64_t again[TDM_SHM_WAYS], after[TDM_SHM_WAYS];
};

struct tdm_shm_ways {
	struct tdm_shm_way_class sizes[TDM_SHM_WAY_CLASSES];
};

/*
 * Returns the way for a message of @bytes, at least TDM_SHM_WAY_LEAST_BYTES. If
 * @w is all 0, nothing is known yet.
 */
enum tdm_shm_way tdm_shm_way_choose(struct tdm_shm_ways *w, uint64_t bytes);

/*
 * Record that a message of @bytes came by @way and took @ns: from its
 * announcement, or from the end of the message before it if that was later. It ended at
 * @now, ns of a clock that never goes back.
 */
void tdm_shm_way_took(struct tdm_shm_ways *w, uint64_t bytes,
		      enum tdm_shm_way way, uint64_t ns, uint64_t now);

#endif /* TDM_SHM_WAY_H */
