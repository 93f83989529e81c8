/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collective operations of entrants in turn. An entrant is a library with
 * COLL_MEMBERS processes, half of them on each of two hosts. All entrants run for
 * the whole time, and their processes sleep until the runner gives them an order:
 * one operation with one size, so many times. So all meet the same machine.
 *
 * Files: coll.c the runner, coll_side.c what all members share, coll_fab.c a
 * member that drives libfabric, coll_mpi.c one that is an MPI process.
 */
#ifndef BENCH_COLL_H
#define BENCH_COLL_H

#include <stddef.h>
#include <stdint.h>

enum {
	COLL_MEMBERS = 8,
	COLL_ENTRANTS_MOST = 8,
	COLL_NAME_BYTES = 256,	   /* longest address of an endpoint */
	COLL_MOST_BYTES = 1 << 20, /* of one member's contribution */
};

enum coll_kind {
	COLL_BARRIER,
	COLL_BROADCAST, /* from member 0 */
	COLL_ALLREDUCE, /* the sum of values of 8 bytes */
	COLL_ALLGATHER, /* each contributes bytes / COLL_MEMBERS */
	COLL_ALLTOALL,	/* each sends bytes / COLL_MEMBERS to each */
	COLL_KINDS
};

/* An entrant, in the page that all processes share. */
struct coll_seat {
	/* the order, written by the runner */
	uint32_t kind, bytes, count;
	uint32_t go;	/* number of the order; UINT32_MAX: end */
	uint32_t done;	/* members that have carried out all so far, in total */
	uint32_t known; /* members whose name is here */
	int32_t lacks;	/* not 0: the entrant does not offer the operation */
	int32_t wrong;	/* not 0: a result was not right */
	char why[256];	/* it has failed */
	uint64_t begin[COLL_MEMBERS], end[COLL_MEMBERS]; /* ns */
	uint32_t name_bytes[COLL_MEMBERS];
	char name[COLL_MEMBERS][COLL_NAME_BYTES];
};

struct coll_page {
	struct coll_seat seat[COLL_ENTRANTS_MOST];
};

struct coll_member {
	struct coll_seat *seat;
	uint32_t rank;
	uint64_t *in, *out; /* COLL_MOST_BYTES each */
	/*
	 * Carry out the operation of the seat once. Returns 0, or -1: the entrant
	 * does not offer it.
	 */
	int (*run)(struct coll_member *m);
	void (*poll)(struct coll_member *m); /* make progress once */
	void *priv;
};

/* Map the page of the file @path, which the runner has made. */
struct coll_page *coll_map(const char *path);

/* Carry out orders until the end. */
void coll_serve(struct coll_member *m);

/* Note that the member has failed, and end the process. */
void coll_die(struct coll_seat *seat, const char *what, const char *why)
	__attribute__((noreturn));

/* CLOCK_MONOTONIC in ns. */
uint64_t coll_now(void);

/* Sleep while *@word is @value, some ms at most; wake all that sleep so. */
void coll_sleep(uint32_t *word, uint32_t value);
void coll_wake(uint32_t *word);

/*
 * Be the member @rank of @seat over the provider @provider of libfabric, at the
 * address @node of its host. Returns at the end.
 */
void coll_fab(struct coll_seat *seat, uint32_t rank, const char *provider,
	      const char *node);

#endif /* BENCH_COLL_H */
