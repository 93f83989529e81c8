/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records on a TCP connection, as doc/PROTOCOL-tcp.md lays them out, all
 * integers little-endian; the greetings before them: greeting.h. Pure functions
 * over byte ranges: no state, no system call, no byte trusted (fuzzed).
 */
#ifndef TDM_TCP_WIRE_RECORD_H
#define TDM_TCP_WIRE_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "av/addr.h"
#include "base/auth.h"
#include "base/base.h"
#include "tdm_amo.h"

enum {
	TDM_WIRE_PREFIX_BYTES = 8,	/* common to all records */
	TDM_WIRE_HEAD_BYTES = 48,	/* the longest header */
	TDM_WIRE_ACK_BYTES = 32,	/* most of ACK, POSITION, IDLE_CLOSE */
	TDM_WIRE_GROUP_BYTES = 16,	/* header of a GROUP */
	TDM_WIRE_RANGE_BYTES = 32,	/* header of a RANGE */
	TDM_WIRE_EAGER_BYTES = 1 << 20, /* longest payload of an EAGER */
	TDM_WIRE_WRITE_BYTES = 4 << 20, /* longest payload of a WRITE */
	TDM_WIRE_DATA_BYTES = 1 << 20,	/* longest payload of a DATA */
	TDM_WIRE_RTS_COUNT = 1 << 16,	/* announced, unanswered: at most */
	TDM_WIRE_CHARGE_BYTES = 512,	/* credit an empty EAGER takes */
	TDM_WIRE_CREDIT_LEAST = 64 << 10, /* bytes, in a greeting */
	TDM_WIRE_CREDIT_MOST = 64 << 20,
	TDM_WIRE_CTX_MOST = 1 << 16, /* receive contexts of an endpoint */
	TDM_WIRE_LEFT_BYTES = 4096,  /* longest payload sent while closing */
};

/* The rid of a CTS that answers a CANCEL: the message is withdrawn. */
#define TDM_WIRE_CANCELLED UINT32_MAX

#define TDM_WIRE_MSG_MAX (1ull << 62) /* longest message, bytes */

enum tdm_wire_op {
	TDM_WIRE_EAGER = 1,  /* a message with its payload */
	TDM_WIRE_RTS,	     /* a message announced */
	TDM_WIRE_CTS,	     /* asks for the bytes of an announced message */
	TDM_WIRE_DATA,	     /* some of these bytes */
	TDM_WIRE_DONE,	     /* placed in the target's buffer, or refused */
	TDM_WIRE_ACK,	     /* records received, credit given back */
	TDM_WIRE_GOODBYE,    /* nothing follows */
	TDM_WIRE_WRITE,	     /* a one-sided write with its payload */
	TDM_WIRE_AWRITE,     /* a one-sided write announced */
	TDM_WIRE_READ,	     /* a one-sided read: send these bytes */
	TDM_WIRE_CANCEL,     /* drop an announced message if unmatched */
	TDM_WIRE_GROUP,	     /* the group of the messages that follow */
	TDM_WIRE_IDLE_CLOSE, /* a step of an idle close; acknowledges as well */
	TDM_WIRE_ATOMIC,     /* an atomic operation with its operands */
	TDM_WIRE_LEFT,	/* an announced payload, unasked: its sender closes */
	TDM_WIRE_RANGE, /* a further range of the next one-sided operation */
	TDM_WIRE_LOCAL, /* about a further transport, before all others */
	TDM_WIRE_POSITION, /* an ACK beside the stream: stream received */
	TDM_WIRE_OP_COUNT
};

enum tdm_wire_flag {
	TDM_WIRE_F_TAG = 1,    /* tagged: 8 bytes of tag follow */
	TDM_WIRE_F_DATA = 2,   /* 8 bytes of remote CQ data follow */
	TDM_WIRE_F_ACK = 4,    /* the sender wants it acknowledged */
	TDM_WIRE_F_DONE = 8,   /* EAGER: id follows, answer with DONE */
	TDM_WIRE_F_ABORT = 16, /* DATA: no more will come */
	/* CTS: the message waited for its receive; ACK: so did a long EAGER */
	TDM_WIRE_F_WAITED = 16,
	TDM_WIRE_F_NOW = 32,  /* DATA, with ACK: acknowledge at once */
	TDM_WIRE_F_FULL = 64, /* ACK: no more credit for now */
	TDM_WIRE_F_LEFT = 128 /* EAGER, WRITE: the sender closes, no credit */
};

/* Reasons for refusing bytes; prov_errno of operations that fail by them. */
enum tdm_wire_error {
	TDM_WIRE_E_OP = 1,  /* unknown record */
	TDM_WIRE_E_FLAGS,   /* flags or reserved bits the record cannot have */
	TDM_WIRE_E_LENGTH,  /* payload length out of bounds */
	TDM_WIRE_E_VALUE,   /* another field out of bounds */
	TDM_WIRE_E_ID,	    /* names an operation that does not exist */
	TDM_WIRE_E_ACK,	    /* acknowledges what was not sent */
	TDM_WIRE_E_CREDIT,  /* more than the credit allows */
	TDM_WIRE_E_STATE,   /* not allowed now */
	TDM_WIRE_E_GREETING /* not a greeting */
};

/* Result of a one-sided operation; in a DONE. */
enum tdm_wire_status {
	TDM_WIRE_S_OK,	   /* also of messages */
	TDM_WIRE_S_ACCESS, /* key, range or right refused, or region closed */
	TDM_WIRE_S_MEMORY, /* the target has none */
	TDM_WIRE_S_OPERATION, /* ATOMIC: there is no such operation */
	TDM_WIRE_STATUSES
};

/* The steps of an idle close, in a IDLE_CLOSE. */
enum tdm_wire_step {
	TDM_WIRE_ASK = 1, /* may the session be closed? */
	TDM_WIRE_YES,	  /* yes; the next record is GO or STAY */
	TDM_WIRE_NO,	  /* not now */
	TDM_WIRE_GO,	  /* it is closed */
	TDM_WIRE_STAY,	  /* it continues */
	TDM_WIRE_STEPS
};

/* A decoded header. op and flags tell which fields are valid. */
struct tdm_wire_rec {
	uint8_t op, flags;
	uint16_t ctx;  /* EAGER, RTS, WRITE, AWRITE, ATOMIC: receive context */
	uint32_t len;  /* payload bytes that follow the header */
	uint64_t tag;  /* F_TAG */
	uint64_t data; /* F_DATA; ACK, POSITION: stream received, bytes */
	uint32_t id;   /* sender's: in all records with an id but DATA */
	uint32_t rid;  /* receiver's: CTS, DATA; READ, ATOMIC: of the DATA */
	uint32_t status;    /* DONE: enum tdm_wire_status */
	uint64_t key, addr; /* WRITE, AWRITE, READ, ATOMIC, RANGE: the place */
	struct tdm_amo amo; /* ATOMIC: the operation */
	uint64_t total;	    /* all bytes; ATOMIC: of the target; CTS: wanted; */
			    /* LEFT: announcements before that of the message */
	uint64_t acked; /* ACK, IDLE_CLOSE: records with payload received, from 0 */
	uint64_t freed; /* ACK, IDLE_CLOSE: credit given back, bytes, from 0 */
	uint32_t group; /* GROUP */
	uint32_t step;	/* IDLE_CLOSE: enum tdm_wire_step; LOCAL: offer.h */
};

/*
 * Returns the length, at most TDM_WIRE_HEAD_BYTES, of the header whose first
 * TDM_WIRE_PREFIX_BYTES are at @p, or -enum tdm_wire_error.
 */
int tdm_wire_head_bytes(const uint8_t *p) tdm_must_check;

/*
 * Decode the header at @p, all of whose tdm_wire_head_bytes() are there, and check the
 * fields that tdm_wire_head_bytes(), which must have accepted it, has not. Returns 0 and
 * *@rec, or -enum tdm_wire_error.
 */
int tdm_wire_decode(const uint8_t *p, struct tdm_wire_rec *rec) tdm_must_check;

/* Write the header of @rec to @p[TDM_WIRE_HEAD_BYTES]; returns its length. */
size_t tdm_wire_encode(uint8_t *p, const struct tdm_wire_rec *rec);

#endif /* TDM_TCP_WIRE_RECORD_H */
