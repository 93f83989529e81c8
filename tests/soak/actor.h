/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An actor of the soak: its endpoint, its operations under way and its receives.
 * actor.c reads the queue and takes what comes; traffic.c posts.
 */
#ifndef TDT_SOAK_ACTOR_H
#define TDT_SOAK_ACTOR_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "message.h"
#include "tests/harness/drive.h"

enum {
	TDT_SOAK_OPS = 512,   /* operations under way */
	TDT_SOAK_WINDOW = 96, /* of them to one actor */
	TDT_SOAK_LIVES = 4,
	TDT_SOAK_KEY = 7,      /* of the memory of each actor */
	TDT_SOAK_SHORTS = 512, /* posted receives of class TAGGED */
	TDT_SOAK_LONGS = 6,
	TDT_SOAK_BUFFERS = 2, /* of class MULTI */
	TDT_SOAK_BUFFER = 256 << 10,
};

/* What other actors write to; the key's memory begins here. */
struct tdt_soak_memory {
	/* of each actor's life, modulo TDT_SOAK_LIVES: a dead one's may come late */
	uint64_t counters[TDT_SOAK_ACTORS][TDT_SOAK_LIVES];
	unsigned char areas[TDT_SOAK_ACTORS][TDT_SOAK_LIVES][TDT_SOAK_AREA];
};

enum tdt_soak_what {
	TDT_SOAK_SEND,
	TDT_SOAK_WRITE,
	TDT_SOAK_READ,
	TDT_SOAK_ADD,
	TDT_SOAK_RECV,
	TDT_SOAK_BUFFER_RECV,
};

/* The context of an operation. */
struct tdt_soak_op {
	struct fi_context2 context; /* libfabric's, first */
	enum tdt_soak_what what;
	int busy;		  /* posted and not ended */
	size_t to;		  /* of a receive that failed: the sender */
	struct tdt_soak_op *next; /* of those that are free */
	unsigned char *buf;	  /* room bytes, and eight for a canary */
	size_t room, len;
	/* of a receive */
	enum tdt_soak_class kind;
	int over; /* ended, and one that was posted before it has not */
	int failed;
};

/* Receives of a class in the order in which they were posted. */
struct tdt_soak_inbox {
	struct tdt_soak_op *ops;
	size_t count, oldest;
};

struct tdt_soak_peer {
	fi_addr_t addr;
	unsigned busy;	/* operations under way */
	unsigned longs; /* of them of class LONG */
	int failing;	/* an error came: a new epoch when busy is 0 */
	int writing;	/* a write, or the read of what it wrote, */
	int unread;	/* which is still to be posted */
	uint64_t write_key, write_life;
	int adding;
	uint64_t add_life; /* of the target, when the fetch-add was posted */
	int unknown;	   /* the counter's value is not known */
};

struct tdt_soak_actor {
	struct tdt_soak_board *board;
	struct tdt_soak_line *line;
	size_t me;
	uint32_t life;
	uint64_t random;
	struct tdt_world *w;
	struct tdt_ep *ep;
	struct fid_mr *mr;
	struct tdt_soak_memory memory;
	struct tdt_soak_peer peers[TDT_SOAK_ACTORS];
	struct tdt_soak_op ops[TDT_SOAK_OPS];
	struct tdt_soak_op *unused;
	struct tdt_soak_op longs[TDT_SOAK_ACTORS][2]; /* sends of class LONG */
	struct tdt_soak_op writes[TDT_SOAK_ACTORS];   /* and the read after */
	struct tdt_soak_op adds[TDT_SOAK_ACTORS];
	struct tdt_soak_inbox inbox[TDT_SOAK_MULTI];
	struct tdt_soak_op buffers[TDT_SOAK_BUFFERS];
	uint64_t old[TDT_SOAK_ACTORS]; /* results of fetch-adds */
};

/* The first thing that is wrong ends the process. Takes a printf format. */
void tdt_soak_wrong(struct tdt_soak_actor *a, const char *format, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* Room for the operations. */
void tdt_soak_traffic_init(struct tdt_soak_actor *a);

/* Post some operations to actor @to. Returns how many. */
unsigned tdt_soak_post(struct tdt_soak_actor *a, size_t to);

/* @op, not a receive, has ended with @err, positive, or 0. */
void tdt_soak_ended(struct tdt_soak_actor *a, struct tdt_soak_op *op, int err);

/* An operation to actor @to ended with @err. */
void tdt_soak_failed(struct tdt_soak_actor *a, size_t to, int err);

/* Post the reads that are still to be posted. */
void tdt_soak_read_back(struct tdt_soak_actor *a);

/* Has all that this actor posted to others ended? */
int tdt_soak_idle(const struct tdt_soak_actor *a);

#endif /* TDT_SOAK_ACTOR_H */
