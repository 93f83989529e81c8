/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data that another process has written: the records of a ring and the
 * heads of bounce chunks. Pure: no state, no system call. The caller first
 * copies the bytes out of shared memory and passes the copy, so that they
 * cannot change after a check. doc/PROTOCOL-shm.md fixes offsets and values.
 * Both sides run on one machine: numbers are in its byte order.
 */
#ifndef TDM_SHM_RECORD_H
#define TDM_SHM_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

enum {
	TDM_SHM_SLOT_BYTES = 128,
	TDM_SHM_HEAD_BYTES = 16, /* of a record: word 0 and the tag */
	TDM_SHM_BODY_BYTES = TDM_SHM_SLOT_BYTES - TDM_SHM_HEAD_BYTES,
	TDM_SHM_EAGER_MOST_BYTES = 60000, /* payload; len has 16 bits */
	TDM_SHM_IOV_MOST = 4,
	TDM_SHM_CHUNK_BYTES = 64 * 1024,
	TDM_SHM_BOUNCE_CHUNKS = 8, /* of an area of this side */
	TDM_SHM_CHUNKS_MOST = 1024,
	TDM_SHM_SLOTS_LEAST = 16,
	TDM_SHM_SLOTS_MOST = 16384,
	TDM_SHM_RTS_MOST = 1 << 16, /* announced messages without an answer */
};

/* Kinds of records. 0 is invalid, so that zeroed memory holds no record. */
enum tdm_shm_rec_op {
	TDM_SHM_REC_MSG = 1,	 /* whole message, aux: payload bytes */
	TDM_SHM_REC_TAG = 2,	 /* the same, tagged */
	TDM_SHM_REC_RTS_MSG = 3, /* announces a message; struct tdm_shm_rts */
	TDM_SHM_REC_RTS_TAG = 4,
	TDM_SHM_REC_ACK = 5,  /* tag: id; aux: enum tdm_shm_status */
	TDM_SHM_REC_PULL = 6, /* tag: id; struct tdm_shm_pull_body */
	/* tag: id; aux 0: cannot send the bytes, 1: drop it if unmatched */
	TDM_SHM_REC_FAIL = 7,
	TDM_SHM_REC_PAD = 8,	  /* aux: slots left to the end of the ring */
	TDM_SHM_REC_MOVED = 9,	  /* aux: slots; tag: generation of next ring */
	TDM_SHM_REC_GOODBYE = 10, /* the sender closes; last record */
	/* One-sided operations; tag: id of the initiator's. */
	TDM_SHM_REC_WRITE = 11,	    /* where, data, payload; aux: size */
	TDM_SHM_REC_RTS_WRITE = 12, /* struct tdm_shm_rts_write; tag: 0 */
	TDM_SHM_REC_READ = 13,	    /* struct tdm_shm_read */
	TDM_SHM_REC_READ_DATA = 14, /* the bytes, if few; aux: how many */
	TDM_SHM_REC_RTS_READ = 15,  /* announces them; struct tdm_shm_rts */
	/* later messages are for context aux and group tag */
	TDM_SHM_REC_SELECT = 16,
	TDM_SHM_REC_ATOMIC = 17, /* tdm_shm_amo; aux: operand bytes */
	TDM_SHM_REC_RANGES = 18, /* ranges.h; aux: how many */
	TDM_SHM_REC_COUNT
};

/* In MSG, TAG and WRITE each adds 8 bytes before the payload, in this order. */
enum {
	TDM_SHM_REC_DATA = 1,	 /* remote CQ data; RTS: rts.data is set */
	TDM_SHM_REC_DELIVER = 2, /* id: send an ACK after placement */
};

enum tdm_shm_status {
	TDM_SHM_STATUS_OK = 0,
	TDM_SHM_STATUS_FAULT = 1,  /* the sender's buffer could not be read */
	TDM_SHM_STATUS_ACCESS = 2, /* no such region, or access not granted */
	TDM_SHM_STATUS_OPERATION = 3, /* no such atomic operation */
};

/*
 * Returns word 0 of a record. @seq, the lap of the ring, makes the record
 * valid; the sender writes the whole word by one release store.
 */
static inline uint64_t tdm_shm_word0(uint32_t seq, uint8_t op, uint8_t flags,
				     uint16_t aux)
{
	return seq | (uint64_t)op << 32 | (uint64_t)flags << 40 |
	       (uint64_t)aux << 48;
}

struct tdm_shm_rec {
	uint8_t op;
	uint8_t flags;
	uint16_t aux;
	uint32_t slots; /* that the record takes in the ring */
	uint32_t extra; /* bytes of the body before the payload */
};

/* Returns how many slots a record with @body bytes after the head takes. */
static inline uint32_t tdm_shm_rec_slots(size_t body)
{
	return (uint32_t)((TDM_SHM_HEAD_BYTES + body + TDM_SHM_SLOT_BYTES - 1) /
			  TDM_SHM_SLOT_BYTES);
}

static inline uint32_t tdm_shm_rec_extra(uint8_t flags)
{
	return ((flags & TDM_SHM_REC_DATA) ? 8u : 0u) +
	       ((flags & TDM_SHM_REC_DELIVER) ? 8u : 0u);
}

/*
 * Decode @word0. @room: slots from here to the end of the ring, which no record
 * crosses. Out: *@rec. Returns 0, or -1: @word0 begins no valid record.
 */
int tdm_shm_rec_decode(struct tdm_shm_rec *rec, uint64_t word0,
		       uint32_t room) tdm_must_check;

/*
 * Not 0 when @word0 is that of the most common record with @flags, 0 or
 * TDM_SHM_REC_DATA: one slot, with tdm_shm_word_aux() bytes of a message. One
 * comparison tells op, 1 or 2, and flags; a second one the length.
 */
static inline int tdm_shm_word_small(uint64_t word0, uint8_t flags)
{
	return (uint32_t)(word0 >> 32 & 0xffff) -
			       (TDM_SHM_REC_MSG | (uint32_t)flags << 8) <=
		       1u &&
	       word0 >> 48 <= TDM_SHM_BODY_BYTES - tdm_shm_rec_extra(flags);
}

static inline uint8_t tdm_shm_word_op(uint64_t word0)
{
	return (uint8_t)(word0 >> 32);
}

static inline uint16_t tdm_shm_word_aux(uint64_t word0)
{
	return (uint16_t)(word0 >> 48);
}

struct tdm_shm_rts {
	uint64_t id;	/* of the operation, opaque to the receiver */
	uint64_t len;	/* bytes, sum of iov unless count is 0 */
	uint64_t data;	/* remote CQ data */
	uint32_t count; /* 0: the bytes come in chunks only */
	uint32_t zero;
	struct {
		uint64_t addr; /* in the sender's address space */
		uint64_t len;
	} iov[TDM_SHM_IOV_MOST];
};

/*
 * Copy an announcement to or from the @body of a record. One of a single element ends
 * with the first cache line of its slot, and the other line is not touched.
 */
void tdm_shm_rts_put(uint8_t *body, const struct tdm_shm_rts *rts);
void tdm_shm_rts_get(struct tdm_shm_rts *rts, const uint8_t *body);

/* Returns 0, or -1: @rts has too many elements, or wrong sums. */
int tdm_shm_rts_check(const struct tdm_shm_rts *rts) tdm_must_check;

/* PULL: the receiver asks for bytes [offset, offset + bytes) in chunks. */
struct tdm_shm_pull_body {
	uint64_t offset;
	uint64_t bytes;
};

/* Returns 0, or -1: @pull is empty, or is outside of @len bytes. */
int tdm_shm_pull_check(const struct tdm_shm_pull_body *pull,
		       uint64_t len) tdm_must_check;

/* The place that a one-sided operation names; the target's owner checks it. */
struct tdm_shm_where {
	uint64_t key;
	uint64_t addr;
};

struct tdm_shm_rts_write {
	struct tdm_shm_rts rts;
	struct tdm_shm_where where;
};

struct tdm_shm_read {
	struct tdm_shm_where where;
	uint64_t len; /* bytes */
};

/* Check @read. Returns 0, or -1: no operation has this length. */
int tdm_shm_read_check(const struct tdm_shm_read *read) tdm_must_check;

/* Head of a bounce chunk: an entry of the table in the bounce area's page 0. */
struct tdm_shm_chunk {
	uint64_t id;
	uint64_t offset; /* of the first byte within the message */
	uint32_t len;	 /* 1..TDM_SHM_CHUNK_BYTES; 0 with a status */
	uint32_t status; /* enum tdm_shm_status: not OK ends the transfer */
	uint64_t zero2;
};

/*
 * Check that @chunk continues a transfer at byte @at, with @left bytes to come.
 * Returns 0, or -1: it does not.
 */
int tdm_shm_chunk_check(const struct tdm_shm_chunk *chunk, uint64_t at,
			uint64_t left) tdm_must_check;

#endif /* TDM_SHM_RECORD_H */
