/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credit: what a peer may send before anything of it is received, and the
 * account it comes from; credit.c says how. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_CREDIT_H
#define TDM_TCP_WIRE_CREDIT_H

#include <stdint.h>

#include "base/base.h"

#include "tcp/wire/record.h"

enum {
	/* With less than that unused, a peer hears of more, or FULL. */
	TDM_CREDIT_LOW_BYTES = 32 << 10,
	/* Longest message that waits for credit rather than be announced. */
	TDM_CREDIT_WAIT_BYTES = TDM_CREDIT_LOW_BYTES - TDM_WIRE_CHARGE_BYTES,
};

/* Most credit that a peer may have unused, bytes. */
#define TDM_CREDIT_UNUSED_MOST (1ull << 41)

struct tdm_conn;
struct tdm_rx;
struct tdm_tcp;
struct tdm_wire_greeting;
struct tdm_wire_rec;

/* Credit a message of @len payload bytes takes: payload and book-keeping. */
static inline uint64_t tdm_credit_charge(uint32_t len)
{
	return (uint64_t)len + TDM_WIRE_CHARGE_BYTES;
}

/* Find the endpoint's account. */
void tdm_credit_init(struct tdm_tcp *tcp);

/*
 * The credit to say in a HELLO to the peer of @c (NULL: a new one). @g: what
 * it has said, NULL when nothing yet: then there is at least the share that
 * every peer has.
 */
uint64_t tdm_credit_first(const struct tdm_tcp *tcp, const struct tdm_conn *c,
			  const struct tdm_wire_greeting *g);

/* Announced operations that a peer may have unanswered, for the same HELLO. */
uint32_t tdm_credit_announced(const struct tdm_tcp *tcp);

/* A session stands, @c->credit is what our HELLO said. */
void tdm_credit_begin(struct tdm_conn *c);

/*
 * Give @c what it may have by now: called for each ACK. Returns the sum of all
 * credit given beyond the HELLO's. Out: *@full, whether the peer is to announce
 * what finds no credit, because no more will come before receives are posted.
 */
uint64_t tdm_credit_give(struct tdm_conn *c, int *full);

/* There is little left of what @c was given: have an ACK say what is next. */
void tdm_credit_low(struct tdm_conn *c);

/* Count the announced @rx, which waits for a receive, until it is freed. */
void tdm_credit_announce(struct tdm_rx *rx);

/*
 * A message or write of the peer, which closes, has come without credit: it is
 * given now. Errors: -FI_ENOSPC, there is no room for the message.
 */
int tdm_credit_left(struct tdm_conn *c,
		    const struct tdm_wire_rec *rec) tdm_must_check;

/* The same for the payload of @rx, which was announced. Errors: -FI_ENOSPC. */
int tdm_credit_keep_left(struct tdm_rx *rx) tdm_must_check;

/*
 * The session of @c is over. What waits of it stays in the account; of a peer
 * that is gone (@lost) announced messages are dropped when that is full.
 */
void tdm_credit_end(struct tdm_conn *c, int lost);

/* @rx is freed. */
void tdm_credit_forget(struct tdm_rx *rx);

#endif /* TDM_TCP_WIRE_CREDIT_H */
