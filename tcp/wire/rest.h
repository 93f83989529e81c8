/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that rest, so that their descriptors serve others; rest.c says
 * how. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_REST_H
#define TDM_TCP_WIRE_REST_H

#include <stdint.h>

#include "base/base.h"

struct tdm_conn;
struct tdm_tcp;
struct tdm_wire_greeting;
struct tdm_wire_rec;

/* Prepare tcp->crowd_timer. */
void tdm_rest_init(struct tdm_tcp *tcp);

/*
 * @tcp has just been given the descriptor @fd, or (-1) none, for there is none.
 * When they are scarce, idle connections are asked to rest, later.
 */
void tdm_rest_crowd(struct tdm_tcp *tcp, int fd);

/*
 * The session of @c, RESTING, is over for both sides: back to IDLE, or to
 * CONNECTING when sends wait. DEAD, if the peer did not keep to it.
 */
void tdm_rest_now(struct tdm_conn *c);

/*
 * Is it another life of the peer of @c, which has no session, that says @g?
 * Then what waits for the former one has failed, and @c with it.
 */
int tdm_rest_reborn(struct tdm_conn *c, const struct tdm_wire_greeting *g);

/* The peer of @c, which is live, said REST. 0, or -enum tdm_wire_error. */
int tdm_rest_heard(struct tdm_conn *c,
		   const struct tdm_wire_rec *rec) tdm_must_check;

#endif /* TDM_TCP_WIRE_REST_H */
