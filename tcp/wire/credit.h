/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credit: how much a peer may send before receives are posted for it, and the
 * account from which it is given; credit.c explains both. Everything: G: domain
 * lock.
 */
#ifndef TDM_TCP_WIRE_CREDIT_H
#define TDM_TCP_WIRE_CREDIT_H

#include <stdint.h>

#include "base/base.h"
#include "tcp/wire/greeting.h"

enum {
	/* A peer with less unused credit gets more, or FULL. */
	TDM_CREDIT_LOW_BYTES = 32 << 10,
	/* Least number of announced operations that a peer may have. */
	TDM_CREDIT_ANNOUNCED_LEAST = 256,
	/*
	 * Longest message that is held back for credit rather than announced.
	 */
	TDM_CREDIT_WAIT_BYTES = TDM_CREDIT_LOW_BYTES - TDM_WIRE_CHARGE_BYTES,
};

/* Greatest credit that a peer may have unused, bytes. */
#define TDM_CREDIT_UNUSED_MOST (1ull << 41)

struct tdm_conn;
struct tdm_rx;
struct tdm_tcp;
struct tdm_wire_greeting;
struct tdm_wire_rec;

/*
 * Returns how much credit a message of @len payload bytes takes: payload and
 * book-keeping.
 */
static inline uint64_t tdm_credit_charge(uint32_t len)
{
	return (uint64_t)len + TDM_WIRE_CHARGE_BYTES;
}

/*
 * Returns the credit that the record @op, EAGER or WRITE, of @len payload bytes
 * takes of a peer with @features. The payload of a WRITE goes straight to its
 * place, or is dropped: it takes no memory at the target.
 */
static inline uint64_t tdm_credit_takes(uint32_t features, uint8_t op,
					uint32_t len)
{
	return tdm_credit_charge(
		op == TDM_WIRE_WRITE && (features & TDM_WIRE_FEATURE_WRITES) ?
			0 :
			len);
}

/* Find the endpoint's account. */
void tdm_credit_init(struct tdm_tcp *tcp);

/*
 * Returns the credit for a HELLO to the peer of @c (NULL: a new peer). @g: the
 * peer's HELLO, or NULL if it has not arrived: then the credit is at least a
 * peer's share.
 */
uint64_t tdm_credit_first(const struct tdm_tcp *tcp, const struct tdm_conn *c,
			  const struct tdm_wire_greeting *g);

/*
 * Returns how many announced operations the peer of @c may have without an answer, for
 * the same HELLO. All strangers (share.h) have some 65536 together, and
 * TDM_CREDIT_ANNOUNCED_LEAST each.
 */
uint32_t tdm_credit_announced(const struct tdm_conn *c);

/* Called when a session has begun; @c->credit is the credit in our HELLO. */
void tdm_credit_begin(struct tdm_conn *c);

/*
 * Called for each ACK: gives the peer of @c the credit that it may have now.
 * Returns the sum of all credit given after the HELLO. Out: *@full: the peer
 * gets no more before receives are posted, so it must announce messages for
 * which it has no credit.
 */
uint64_t tdm_credit_give(struct tdm_conn *c, int *full);

/*
 * Called when the peer of @c may send little more: makes an ACK due soon, which
 * gives it more credit or tells it FULL.
 */
void tdm_credit_low(struct tdm_conn *c);

/*
 * Called when the record that gave @c its credit could not say FULL: makes an
 * ACK due that says it.
 */
void tdm_credit_unsaid(struct tdm_conn *c);

/*
 * Count the announced @rx, which waits for a receive; tdm_credit_forget() ends
 * this.
 */
void tdm_credit_announce(struct tdm_rx *rx);

/*
 * Called for a message or write that a closing peer sent without credit: gives
 * the credit now. Errors: -FI_ENOSPC: no room for the message.
 */
int tdm_credit_left(struct tdm_conn *c,
		    const struct tdm_wire_rec *rec) tdm_must_check;

/*
 * As tdm_credit_left(), for the payload of @rx, which was announced. Errors:
 * -FI_ENOSPC.
 */
int tdm_credit_keep_left(struct tdm_rx *rx) tdm_must_check;

/*
 * Called when the session of @c is over. Its waiting messages stay in the
 * account; but if the peer is gone (@lost) and the account is full, its
 * announced ones are dropped.
 */
void tdm_credit_end(struct tdm_conn *c, int lost);

/*
 * Drop the announced messages of @c, whose session has ended, that wait for a receive:
 * all of them, or while the account is full.
 */
void tdm_credit_drop(struct tdm_conn *c, int all);

/* Called when @rx is freed: updates the account. */
void tdm_credit_forget(struct tdm_rx *rx);

/* Give back the credit @charge of an EAGER that takes no memory any more. */
void tdm_credit_release(struct tdm_conn *c, uint64_t charge);

#endif /* TDM_TCP_WIRE_CREDIT_H */
