/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page that the runner shares with the two measured processes of a subject:
 * the order of the moment, and the times that it gave.
 *
 * A subject is a provider, or another library, with its settings. Its two
 * processes ("sides" 0 and 1) are pinned to one core each and sleep until the
 * runner gives an order: one kind of work with one size. They carry it out as
 * BENCH_BATCHES pairs of batches, the machine's limit and the subject in turn,
 * and side 0 writes down how long each took. So limit and subject meet the
 * same machine, and subjects that take turns meet it within milliseconds of one
 * another.
 */
#ifndef BENCH_CTL_H
#define BENCH_CTL_H

#include <stddef.h>
#include <stdint.h>

enum {
	BENCH_SIDES = 2,
	BENCH_PAIRS_MOST = 8,	    /* pairs of processes at work at once */
	BENCH_BATCHES = 8,	    /* pairs of batches per order */
	BENCH_NAME_BYTES = 512,	    /* longest address of an endpoint */
	BENCH_AREA_BYTES = 1 << 22, /* of shared memory for the limits */
	BENCH_LINE_BYTES = 128,
	BENCH_WHY_BYTES = 256, /* why there is no figure */
};

enum bench_kind {
	BENCH_QUIT,
	BENCH_LATENCY,	   /* half round trip, the receive is posted first */
	BENCH_LATE,	   /* the same; posted when the send has completed */
	BENCH_RATE,	   /* fi_tsend, a window, then one answer */
	BENCH_INJECT,	   /* fi_tinject, a window, then one answer */
	BENCH_STREAM,	   /* a window of large messages, then one answer */
	BENCH_STREAM_LATE, /* the same, receives posted after the announcement */
	BENCH_STREAM_FRESH, /* the same as STREAM, each from and to new memory */
	BENCH_WRITE,	    /* one-sided, a window, to completion */
	BENCH_WRITE_PLACED, /* the same with FI_DELIVERY_COMPLETE */
	BENCH_WRITE_DATA,   /* half round trip of writes that tell the target */
	BENCH_READ,
	BENCH_FETCH_ADD,
	BENCH_MATCH,	  /* receives posted in advance, matched in reverse */
	BENCH_UNEXPECTED, /* messages there in advance, received in reverse */
	BENCH_EMPTY,	  /* fi_cq_read that finds nothing */
	BENCH_MULTI,	  /* fi_send into buffers of FI_MULTI_RECV, as RATE */
	BENCH_START,	  /* open and close all that an endpoint needs */
	BENCH_FIRST,	  /* messages to endpoints that never had one */
	BENCH_IDLE,	  /* EMPTY, endpoints contacted before are idle */
	BENCH_WAKE,	  /* half round trip, both sides sleep in between */
};

enum bench_limit {
	BENCH_LIMIT_LINE,	/* a cache line there and back, half */
	BENCH_LIMIT_COPY,	/* a copy in and a copy out, with one flag */
	BENCH_LIMIT_CMA,	/* process_vm_readv after a flag */
	BENCH_LIMIT_LARGE,	/* the better of COPY and CMA */
	BENCH_LIMIT_TCP,	/* the bytes and 16 more over a polled socket */
	BENCH_LIMIT_TCP_STREAM, /* the same in one direction */
	BENCH_LIMIT_WAKE,	/* a byte over the socket, poll(2) before it */
	BENCH_LIMIT_YIELD,	/* LINE, sched_yield(2) while it is away */
	BENCH_LIMIT_OPEN,	/* a listening socket, shared memory */
	BENCH_LIMIT_CONNECT,	/* a new connection, a byte there and back */
	BENCH_LIMIT_CALL,	/* one system call that does nothing */
};

#define BENCH_ALIGNED(n) __attribute__((aligned(n)))

struct bench_order {
	enum bench_kind kind;
	enum bench_limit limit;
	uint64_t bytes;	 /* of a message */
	uint32_t window; /* messages under way, or depth of the queue */
	uint32_t count;	 /* operations of the subject in a batch */
	uint32_t lcount; /* operations of the limit in a batch */
	/* pairs of batches, without a warm-up; 0: BENCH_BATCHES after one */
	uint32_t batches;
	/* pairs of processes that do this at once; 0: one */
	uint32_t pairs;
};

struct bench_ctl {
	/* written by the runner */
	struct bench_order order;
	BENCH_ALIGNED(BENCH_LINE_BYTES)
	volatile uint32_t go; /* number of the order */
	/* written by the sides */
	BENCH_ALIGNED(BENCH_LINE_BYTES) volatile uint32_t done[BENCH_SIDES];
	volatile int32_t failed; /* errno of a side that gave up */
	char why[BENCH_WHY_BYTES];
	/* half round trip of a cache line, just before each pair of batches */
	double line_ns[BENCH_BATCHES];
	double limit_ns[BENCH_BATCHES]; /* per operation */
	double subject_ns[BENCH_BATCHES];
	/* the sides of all pairs, in the page of the first: bench_ctl_gather() */
	BENCH_ALIGNED(BENCH_LINE_BYTES) volatile uint32_t come;
	/* the sides among themselves */
	BENCH_ALIGNED(BENCH_LINE_BYTES) volatile uint64_t meet[BENCH_SIDES][16];
	BENCH_ALIGNED(BENCH_LINE_BYTES) volatile uint64_t line[BENCH_SIDES][16];
	char name[BENCH_SIDES][BENCH_NAME_BYTES];
	uint32_t name_bytes[BENCH_SIDES];
	int32_t pid[BENCH_SIDES];
	uint64_t addr[BENCH_SIDES]; /* of the buffers of each side */
	uint64_t key[BENCH_SIDES];  /* of the region over them */
	uint16_t port;		    /* of the raw socket of side 0 */
	BENCH_ALIGNED(4096) unsigned char area[BENCH_SIDES][BENCH_AREA_BYTES];
};

/* Make a control page; the descriptor goes to *@fd. */
struct bench_ctl *bench_ctl_make(int *fd);

/* The runner: it needs @c of bench_ctl_make() and its descriptor no more. */
void bench_ctl_drop(struct bench_ctl *c, int fd);

/* Map the control page that the runner made, at @path of /proc. */
struct bench_ctl *bench_ctl_map(const char *path);

/* The runner: give @order to both sides. */
void bench_ctl_give(struct bench_ctl *c, const struct bench_order *order);

/*
 * The runner: wait until both sides have carried out their order. Returns 0, or
 * the errno with which a side gave up (ETIMEDOUT: not at @until, ns).
 */
int bench_ctl_wait(struct bench_ctl *c, uint64_t until);

/* A side: sleep until an order comes after order number @last; its number. */
uint32_t bench_ctl_next(struct bench_ctl *c, uint32_t last);

/* A side: order @number is carried out. */
void bench_ctl_done(struct bench_ctl *c, int side, uint32_t number);

/* A side: wait, polling, until the other one is here too. */
void bench_ctl_meet(struct bench_ctl *c, int side);

/*
 * A side: sleep until all @sides of all pairs are here, too. @first is the page
 * of the first pair.
 */
void bench_ctl_gather(struct bench_ctl *first, uint32_t sides);

/* A side gives up: tell the runner @what and @err, end the process. */
void bench_die(const char *what, int err) __attribute__((noreturn));

/* The control page that bench_die() writes to. */
extern struct bench_ctl *bench_ctl_mine;

/* CLOCK_MONOTONIC in ns. */
uint64_t bench_now(void);

static inline void bench_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

#endif /* BENCH_CTL_H */
