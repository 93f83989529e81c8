/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credit: how much a peer may send before receives take it, and the account
 * that it comes from; credit.c explains both. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_CREDIT_H
#define TDM_TCP_WIRE_CREDIT_H

#include <stdint.h>

#include "base/base.h"
#include "tcp/wire/record.h"

enum {
	/* A peer with less unused credit gets more, or FULL. */
	TDM_CREDIT_LOW_BYTES = 32 << 10,
	/*
	 * Longest message that is held back for credit rather than announced.
	 */
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
 * The credit for a HELLO to the peer of @c (NULL: a new peer). @g: the peer's
 * HELLO, or NULL if there is none yet: then the credit is at least a peer's
 * share.
 */
uint64_t tdm_credit_first(const struct tdm_tcp *tcp, const struct tdm_conn *c,
			  const struct tdm_wire_greeting *g);

/*
 * Announced operations that the peer may have without an answer, for the same
 * HELLO.
 */
uint32_t tdm_credit_announced(const struct tdm_tcp *tcp);

/* A session has begun; @c->credit is the credit in our HELLO. */
void tdm_credit_begin(struct tdm_conn *c);

/*
 * Give @c the credit it may have now: called for each ACK. Returns the sum of
 * all credit given after the HELLO. Out: *@full: no more will come before
 * receives are posted, so the peer must announce messages that find no credit.
 */
uint64_t tdm_credit_give(struct tdm_conn *c, int *full);

/* @c has little credit left: let an ACK tell it more. */
void tdm_credit_low(struct tdm_conn *c);

/* Count the announced @rx, which waits for a receive, until it is freed. */
void tdm_credit_announce(struct tdm_rx *rx);

/*
 * A closing peer sent a message or write without credit: give it now. Errors:
 * -FI_ENOSPC, there is no room for the message.
 */
int tdm_credit_left(struct tdm_conn *c,
		    const struct tdm_wire_rec *rec) tdm_must_check;

/* The same for the payload of @rx, which was announced. Errors: -FI_ENOSPC. */
int tdm_credit_keep_left(struct tdm_rx *rx) tdm_must_check;

/*
 * The session of @c is over. Its waiting messages stay in the account; if the
 * peer is gone (@lost) and the account is full, announced ones are dropped.
 */
void tdm_credit_end(struct tdm_conn *c, int lost);

/* @rx is freed: update the account. */
void tdm_credit_forget(struct tdm_rx *rx);

#endif /* TDM_TCP_WIRE_CREDIT_H */
