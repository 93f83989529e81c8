/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Habits of the applications at both ends of a connection, as this side has seen them:
 * our application replies promptly, or it does not (prompt.h); the peer's posts its
 * receives in time, or it does not (tx.c).
 */
#ifndef TDM_TCP_WIRE_HABITS_H
#define TDM_TCP_WIRE_HABITS_H

#include <stdint.h>

enum tdm_prompt_kind {
	TDM_PROMPT_ACK,	 /* a message whose sender waits for its ACK */
	TDM_PROMPT_DONE, /* a message or write whose sender waits for DONE */
	TDM_PROMPT_KINDS
};

/* Whether the application replies promptly: prompt.h. */
struct tdm_prompt {
	uint64_t since_ns; /* when what is replied to came, while watch is not 0 */
	uint32_t pass;	   /* in which it came */
	uint16_t hits[TDM_PROMPT_KINDS]; /* prompt replies in a row */
	uint8_t watch; /* 1 + kind: the next message sent is timed; or 0 */
	uint8_t waits; /* 1: a message waits for its ACK, or for a reply with it */
	uint8_t lingers; /* 1: the output is DONEs that may wait for a reply */
	uint8_t corked;	 /* 1: the kernel keeps them until more is sent, */
	uint32_t cork_pass; /* since this pass, */
	uint64_t cork_ns;   /* and this time */
	uint8_t doubt; /* how often it kept them long: more replies are needed */
	uint8_t uncorks;   /* 1: it is in acks for that alone */
	uint8_t turn;	   /* counts trusted replies, of which few are timed */
	uint8_t doubt_ack; /* how often an ACK waited in vain */
};

/* So many receives in a row that were posted in time make the next one likely to be. */
enum { TDM_POSTED = 4 };

/* Whether messages find their receives. Spec: doc/adr/0049-long-messages-unasked.md. */
struct tdm_posted {
	uint32_t eager; /* longest EAGER while hits is TDM_POSTED, bytes */
	uint8_t hits;	/* messages announced in a row that found a receive */
	uint8_t waited; /* 1: a long EAGER of the peer waits; to be told */
};

#endif /* TDM_TCP_WIRE_HABITS_H */
