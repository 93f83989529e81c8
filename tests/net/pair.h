/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exchange of one process: pair.c has its course, pair_ops.c its operations.
 * One thread.
 */
#ifndef TDT_NET_PAIR_H
#define TDT_NET_PAIR_H

#include <stddef.h>
#include <stdint.h>

#include "tools/endpoint.h"

enum kind { MESSAGE, TAGGED_1, TAGGED_2, STREAMS, WRITE = STREAMS, ADD };

enum {
	SLOTS = 8,    /* operations under way */
	RECEIVES = 4, /* posted for each stream */
	LINE_BYTES = 512,
	LARGEST_BYTES = 1 << 20,
	COUNT_MOST = 1 << 20,
};

/* Operation @number of a side. */
struct plan {
	enum kind kind;
	int delivery; /* FI_DELIVERY_COMPLETE is asked for */
	size_t len;   /* bytes */
	uint64_t key; /* of the bytes, and no other operation's */
};

enum state { FREE, UNDER_WAY, WRITTEN, READING };

struct op {
	struct fi_context2 ctx; /* first */
	enum state state;
	struct plan plan;
	unsigned char *buf, *back; /* @back: what was read or fetched */
	size_t place;		   /* in the other side's memory, of a write */
};

struct receive {
	struct fi_context2 ctx; /* first */
	enum kind stream;
	int posted;
	struct plan plan; /* of the message that must come */
	int is_beyond;	  /* after the last message */
	unsigned char *buf;
};

/* The registered memory: buffers of @largest bytes, then the two words. */
struct memory {
	unsigned char *base, *target;
	uint64_t *word, *one;
	size_t bytes;
};

struct pair {
	int side;
	const char *address;
	uint64_t seed, count, deadline_s;
	size_t largest;
	struct tool_endpoint at;
	struct fid_mr *mr;
	void *desc;
	fi_addr_t peer;
	uint64_t peer_base, peer_key; /* of the peer's memory */
	struct memory m;
	struct op ops[SLOTS];
	struct receive receives[STREAMS][RECEIVES];
	uint64_t next;		    /* operation to be posted */
	uint64_t expected[STREAMS]; /* operation of the peer to look at next */
	uint64_t ended, sent, received, to_come, bytes, read_back, added;
	uint64_t adds;		/* of this side, all together */
	uint64_t adds_here;	/* of the other side */
	unsigned char *fetched; /* by value: was it fetched? */
	char in[LINE_BYTES];
	size_t have;
	int peer_done;
};

extern struct pair pair;

/* Say how far this side is, and @what there is to say. */
void pair_tell(const char *what);

/* Say what is wrong and end the process. */
void pair_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Die if @ret, of the call @what, is not 0. */
void pair_need(ssize_t ret, const char *what);

/* Returns the plan of operation @number of @side; the seed decides it. */
struct plan pair_plan(int side, uint64_t number);

/* ---- pair_ops.c: operations and their ends -------------------------------- */

/* Post the receives, and the operations, for which there is room. */
void pair_post_receives(void);
void pair_post_operations(void);

/* Wait for completions, at most @wait_ms, and check what has come. */
void pair_look(int wait_ms);

#endif /* TDT_NET_PAIR_H */
