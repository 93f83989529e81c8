/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The offer of a further transport that an endpoint makes on each connection,
 * as the owner sees it; meet.c sends it. Lock: held.
 */
#ifndef TDM_TCP_WIRE_OFFER_H
#define TDM_TCP_WIRE_OFFER_H

#include <stddef.h>

struct tdm_conn;
struct tdm_tcp;

/* Longest payload of a LOCAL. */
enum { TDM_WIRE_OFFER_BYTES = 512 };

/* The steps of the agreement on a further transport, in a LOCAL. */
enum tdm_wire_local {
	TDM_WIRE_OFFER = 1, /* the payload says where this side is there */
	TDM_WIRE_TAKEN,	    /* this side takes messages from there */
	TDM_WIRE_DECLINED,  /* it does not */
	TDM_WIRE_LOCALS
};

/*
 * A further transport of the endpoint, about which both sides of a session talk
 * first. @offered: called with the offer of the peer of @conn, which is not to
 * be trusted; returns 0: the endpoint takes the peer's messages there from now
 * on.
 */
struct tdm_tcp_offer {
	const void *bytes; /* [len]; valid as long as the transport */
	size_t len;
	int (*offered)(void *arg, struct tdm_conn *conn, const void *bytes,
		       size_t len);
};

/*
 * Offer @offer, which is copied, to the peers of later sessions; at most
 * TDM_WIRE_OFFER_BYTES.
 */
void tdm_tcp_set_offer(struct tdm_tcp *tcp, const struct tdm_tcp_offer *offer);

/*
 * Find out whether the peer and this endpoint have accepted each other's offer;
 * makes a session if there is none. Returns 0: both have; -FI_EOPNOTSUPP: one of
 * them has not; -FI_EAGAIN: not known yet, call again. attr.lost is called when
 * the peer cannot be reached.
 */
int tdm_conn_meet(struct tdm_conn *conn);

/* Not 0 when @conn has a session whose sides both have offers. */
int tdm_conn_may_meet(const struct tdm_conn *conn);

#endif /* TDM_TCP_WIRE_OFFER_H */
