/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a CQ, shared by cq.c (open and close), cq_write.c and
 * cq_read.c.
 *
 * Invariants:
 *  1. Entries are numbered from 0 in the order they were written. Those in
 *     [head, tail) have not been read; entry n of the first `room` of them is
 *     in ring slot n & mask, the others are in the overflow chunks, in order.
 *     So the
 *     overflow is empty unless tail - head > room.
 *  2. An error entry has the number of the entry it precedes; errors are
 *     listed oldest first. No entry after the first error is read before that
 *     error.
 *  3. head and tail go back to 0 when the CQ is empty, so that steady traffic
 *     uses the first slots only and stays in the L1 cache.
 *  4. After an overrun room is 0: no entry is added after the one that was
 *     lost.
 *
 * Ring words are stored and loaded one at a time: a load wider than the store
 * before it cannot be forwarded and waits for the cache.
 *
 * Locking: all of it is guarded by the domain lock.
 */
#ifndef TDM_PEER_CQ_PRIV_H
#define TDM_PEER_CQ_PRIV_H

#include "base/atomic.h"
#include "base/pool.h"
#include "peer/cq.h"
#include "peer/errstr.h"
#include "peer/wait.h"

enum {
	TDM_CQ_CHUNK_ENTRIES = 256,

	/* 8-byte words of an entry of each format. */
	TDM_CQ_WORDS_CONTEXT = sizeof(struct fi_cq_entry) / 8,
	TDM_CQ_WORDS_MSG = sizeof(struct fi_cq_msg_entry) / 8,
	TDM_CQ_WORDS_DATA = sizeof(struct fi_cq_data_entry) / 8,
	TDM_CQ_WORDS_TAGGED = sizeof(struct fi_cq_tagged_entry) / 8,
};

tdm_static_assert(sizeof(struct fi_cq_tagged_entry) == 48,
		  "entries are written as 8-byte words");

/* A failed operation. err_data, when not NULL, is a copy made by malloc. */
struct tdm_cq_err {
	struct tdm_cq_err *next;
	uint64_t at; /* number of the entry this error precedes */
	struct fi_cq_err_entry entry;
	union tdm_errpeer peer; /* err_data, if it is an address */
};

/* Entries that did not fit the ring, in the widest format and with source. */
struct tdm_cq_chunk {
	struct tdm_cq_chunk *next;
	unsigned int first; /* the entry to move to the ring next */
	unsigned int used;
	struct {
		struct fi_cq_tagged_entry entry;
		fi_addr_t src;
	} slots[TDM_CQ_CHUNK_ENTRIES];
};

struct tdm_cq_export {
	struct fid_peer_cq peer;
	struct tdm_cq *cq;
};

struct tdm_cq {
	struct fid_cq fid;
	struct tdm_engine *engine;
	uint64_t head;	    /* next entry to read */
	uint64_t tail;	    /* next entry to write */
	uint64_t room;	    /* entries the ring holds; see invariant 4 */
	uint64_t size;	    /* entries the CQ was opened for, >= the ring's */
	uint64_t mask;	    /* ring slots - 1 */
	tdm_a64 *ring;	    /* (mask + 1) * words */
	fi_addr_t *src;	    /* mask + 1, or NULL without FI_SOURCE */
	unsigned int words; /* of an entry, TDM_CQ_WORDS_* */
	int empty;	    /* what a read that finds nothing returns */
	int overrun;	    /* memory was exhausted: entries are lost */
	struct tdm_cq_err *errs;
	struct tdm_cq_err **errs_end;
	size_t nerrs;
	struct tdm_cq_chunk *over; /* oldest first */
	struct tdm_cq_chunk *over_last;
	struct tdm_cq_chunk *spare; /* allocated ahead, for the next need */
	uint64_t over_count;	    /* entries in the chunks */
	struct tdm_wait wait;

	int interrupt; /* fi_cq_signal was called */
	enum fi_cq_wait_cond wait_cond;
	struct tdm_pool err_pool; /* struct tdm_cq_err */
	void *err_data; /* of the error read last; the next read frees it */
	struct tdm_errlast last; /* that error */
	struct tdm_cq_export exports[TDM_TRANSPORTS];
	/*
	 * Another owner's, to which transports report; NULL: this queue. With it
	 * nothing is ever in the queue, and reading only makes progress.
	 */
	struct fid_peer_cq *owner;
	struct fid_cq *local;
	size_t users;
	void (*closed)(void *arg);
	void *closed_arg;
};

/* Returns the table of exported calls of a CQ with entries of @words. */
struct fi_ops_cq_owner *tdm_cq_owner_ops(unsigned int words);

/* Allocates an empty chunk; NULL: out of memory. */
struct tdm_cq_chunk *tdm_cq_chunk_alloc(void);

/*
 * Move overflow entries to free ring slots. Call this after head has moved,
 * when there is an overflow.
 */
void tdm_cq_refill(struct tdm_cq *cq);

/* The application's calls; written to the fid by cq.c. */
extern struct fi_ops_cq tdm_cq_ops;

#endif /* TDM_PEER_CQ_PRIV_H */
