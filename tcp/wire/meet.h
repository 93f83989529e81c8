/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agreement of both sides of a connection to use a further transport, before
 * they send operations: each offers some bytes, and accepts those of the other
 * or does not. Lock: held.
 *
 * Spec: doc/PROTOCOL-tcp.md, "LOCAL".
 */
#ifndef TDM_TCP_WIRE_MEET_H
#define TDM_TCP_WIRE_MEET_H

#include "tcp/wire/offer.h"
#include "tcp/wire/record.h"
#include "tcp/wire/tcp.h"

/* The state of the agreement of one connection that has a session. */
struct tdm_meeting {
	uint8_t ours;	   /* enum tdm_wire_local: our answer, or 0 */
	uint8_t theirs;	   /* likewise: the peer's */
	uint32_t len, got; /* bytes of the peer's offer */
	uint8_t bytes[TDM_WIRE_OFFER_BYTES];
};

/*
 * Called when @c gets a session, before any record is written: sends our offer
 * if both sides have one.
 */
void tdm_meet_begin(struct tdm_conn *c);

/*
 * Handle the LOCAL record @rec. Returns 0, or an error of enum tdm_wire_error.
 */
int tdm_meet_heard(struct tdm_conn *c, const struct tdm_wire_rec *rec);

/*
 * Take @n bytes of payload that belong to no message: an offer, or bytes to
 * drop.
 */
void tdm_meet_put(struct tdm_conn *c, const uint8_t *p, size_t n);

/* Forget the agreement with the session. */
void tdm_meet_end(struct tdm_conn *c);

#endif /* TDM_TCP_WIRE_MEET_H */
