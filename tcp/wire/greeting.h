/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The greeting: the first bytes of each side on a TCP connection, before its
 * records (record.h). Pure functions over byte ranges: no state, no system call,
 * no byte trusted (fuzzed). greeting.c; doc/PROTOCOL-tcp.md, "Greeting".
 */
#ifndef TDM_TCP_WIRE_GREETING_H
#define TDM_TCP_WIRE_GREETING_H

#include "tcp/wire/record.h"

enum {
	TDM_WIRE_VERSION = 1, /* of this code, and the oldest it supports */
	TDM_WIRE_GREETING_BYTES = 128,
	TDM_WIRE_ID_BYTES = 16,	    /* incarnation id of an endpoint */
	TDM_WIRE_PROVEN_BYTES = 96, /* of a greeting: all but its proof */
};

enum { TDM_WIRE_HELLO = 1, TDM_WIRE_REJECT, TDM_WIRE_RESUME };

/* Bits of tdm_wire_greeting.features. */
enum {
	TDM_WIRE_FEATURE_GROUPS = 1,	 /* the sender accepts GROUP */
	TDM_WIRE_FEATURE_AUTH = 2,	 /* the greeting has nonce and proof */
	TDM_WIRE_FEATURE_IDLE_CLOSE = 4, /* the sender accepts IDLE_CLOSE */
	TDM_WIRE_FEATURE_ATOMIC = 8,	 /* ... ATOMIC */
	TDM_WIRE_FEATURE_NOW = 16,	 /* ... flag NOW */
	TDM_WIRE_FEATURE_CREDIT = 32, /* ... flag FULL, and credit that grows */
	TDM_WIRE_FEATURE_LEFT = 64,   /* ... LEFT, and the flag */
	TDM_WIRE_FEATURE_RANGES = 128,	/* ... RANGE */
	TDM_WIRE_FEATURE_LOCAL = 256,	/* ... LOCAL, and will send it */
	TDM_WIRE_FEATURE_RESUME = 512,	/* ... POSITION, and RESUME greetings */
	TDM_WIRE_FEATURE_WRITES = 1024, /* ... long WRITE, without credit */
	TDM_WIRE_FEATURE_BLOCKS = 2048, /* ... blocks.h */
	TDM_WIRE_FEATURE_CRC = 4096,	/* the sender asks for blocks */
	TDM_WIRE_FEATURE_WAITED = 8192, /* ... flag WAITED, and says it */
};

enum tdm_wire_reason {
	TDM_WIRE_R_VERSION = 1, /* no version in common */
	TDM_WIRE_R_FEATURE,	/* a required feature is missing */
	TDM_WIRE_R_DUPLICATE,	/* the other connection of the pair is kept */
	TDM_WIRE_R_BUSY,	/* the address has a live connection */
	TDM_WIRE_R_LOST,	/* RESUME: there is no such session */
};

struct tdm_wire_greeting {
	uint8_t kind;	 /* TDM_WIRE_HELLO, ... */
	uint8_t reason;	 /* REJECT: enum tdm_wire_reason */
	uint16_t oldest; /* protocol versions spoken */
	uint16_t newest;
	uint32_t features; /* understood */
	uint32_t required; /* features that the sender cannot do without */
	uint8_t id[TDM_WIRE_ID_BYTES];
	struct tdm_addr addr; /* the endpoint's; scope id not transmitted */
	uint64_t credit;      /* bytes of EAGER that the sender will hold */
	uint32_t eager;	      /* longest EAGER payload that it accepts */
	uint32_t rts;	      /* most announcements waiting that it accepts */
	uint32_t contexts;    /* receive contexts it has; at least 1 */
	uint64_t received;    /* RESUME: bytes of the stream */
	uint64_t session; /* RESUME with AUTH: the first 8 bytes of its id */
	uint8_t nonce[TDM_AUTH_NONCE_BYTES]; /* AUTH; or a session's id */
	uint8_t proof[TDM_AUTH_PROOF_BYTES];
};

/* Not 0 while @p[len] can be the beginning of a greeting. */
int tdm_wire_is_greeting(const uint8_t *p, size_t len);

/* Write @g to @p[TDM_WIRE_GREETING_BYTES]. */
void tdm_wire_greeting_encode(uint8_t *p, const struct tdm_wire_greeting *g);

/*
 * Decode and check @p[TDM_WIRE_GREETING_BYTES]; of a HELLO of other versions
 * only the versions: compare them first. 0 or -TDM_WIRE_E_GREETING.
 */
int tdm_wire_greeting_decode(const uint8_t *p,
			     struct tdm_wire_greeting *g) tdm_must_check;

/* Not 0 when this version can work with a peer that sent @g. */
int tdm_wire_version_ok(const struct tdm_wire_greeting *g);

#endif /* TDM_TCP_WIRE_GREETING_H */
