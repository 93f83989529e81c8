/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the actors and the director of a soak share: see soak.h.
 *
 * Locking: none. Each member has one writer; what others read while it runs is
 * written and read by TDT_SOAK_SET() and TDT_SOAK_GET(), the rest at rest.
 */
#ifndef TDT_SOAK_BOARD_H
#define TDT_SOAK_BOARD_H

#include "soak.h"
#include "tests/harness/child.h"
#include "tests/harness/holdings.h"
#include "tests/harness/seeded.h"

enum {
	TDT_SOAK_ACTORS = 4,
	TDT_SOAK_LASTING = 2,
	TDT_SOAK_AREA = 64 << 10, /* bytes that an actor writes at another */
	TDT_SOAK_SMALL = 4096, /* bytes of a message of class SMALL, at most */
	TDT_SOAK_LARGE = 1 << 20,
	TDT_SOAK_UNTAGGED = 2048,
};

/* Of messages; each has receives of its own. */
enum tdt_soak_class {
	TDT_SOAK_TAGGED, /* up to TDT_SOAK_SMALL bytes, any source */
	TDT_SOAK_LONG,	 /* up to TDT_SOAK_LARGE bytes, any source */
	TDT_SOAK_MULTI,	 /* up to TDT_SOAK_UNTAGGED bytes, in shared buffers */
	TDT_SOAK_CLASSES
};

/* Where a stream is: the next message has the number @next. */
struct tdt_soak_stream {
	uint32_t life; /* of the sender */
	uint32_t epoch;
	uint64_t next;
	/* receives since the last message that ended as the sender died */
	uint64_t cut;
};

/* An actor's line of the board. The director writes life, the actor the rest. */
struct tdt_soak_line {
	uint32_t life;	   /* 1, 2, ... */
	uint32_t named;	   /* the life that has written name */
	uint32_t resting;  /* the order that it has come to rest for */
	uint64_t messages; /* received, in all lives */
	struct tdt_name name;
	uint64_t bytes, writes, atomics, errors; /* in all lives */
	struct tdt_soak_stream sent[TDT_SOAK_ACTORS][TDT_SOAK_CLASSES];
	struct tdt_soak_stream heard[TDT_SOAK_ACTORS][TDT_SOAK_CLASSES];
	uint64_t added[TDT_SOAK_ACTORS]; /* to its counter at that actor */
	uint64_t sums[TDT_SOAK_ACTORS];	 /* the counters of the others here */
	struct tdt_holdings held;	 /* at rest */
	char problem[256];		 /* what was wrong first, or "" */
};

/* Orders of the director: an even number, go on; an odd one, come to rest. */
enum { TDT_SOAK_LEAVE = 0x7fffffff };

struct tdt_soak_board {
	uint32_t order;
	uint64_t seed;
	struct tdt_soak_line lines[TDT_SOAK_ACTORS];
};

#define TDT_SOAK_SET(member, value)                                            \
	__atomic_store_n(&(member), value, __ATOMIC_RELEASE)
#define TDT_SOAK_GET(member) __atomic_load_n(&(member), __ATOMIC_ACQUIRE)

#endif /* TDT_SOAK_BOARD_H */
