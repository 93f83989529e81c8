/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Idle close ("rest") of connections, so that their descriptors serve others;
 * idle_close.c explains it. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_IDLE_CLOSE_H
#define TDM_TCP_WIRE_IDLE_CLOSE_H

#include <stdint.h>

#include "base/base.h"

struct tdm_conn;
struct tdm_tcp;
struct tdm_wire_greeting;
struct tdm_wire_rec;

/* Prepare tcp->crowd_timer. */
void tdm_idle_close_init(struct tdm_tcp *tcp);

/*
 * @tcp has just been given the descriptor @fd, or (-1) failed to get one. When
 * they are scarce, peers of idle connections will be asked for an idle close.
 */
void tdm_idle_close_crowd(struct tdm_tcp *tcp, int fd);

/*
 * Both sides have agreed to close the session of @c, which is CLOSING: back to
 * IDLE, or to CONNECTING if sends wait. DEAD, if the peer broke the agreement.
 */
void tdm_idle_close_now(struct tdm_conn *c);

/*
 * Does the HELLO @g come from a restarted peer of @c, which has no session?
 * Then fails the operations for the former one, and @c.
 */
int tdm_idle_close_reborn(struct tdm_conn *c,
			  const struct tdm_wire_greeting *g);

/* The peer of @c, which is live, sent IDLE_CLOSE. 0, or -enum tdm_wire_error. */
int tdm_idle_close_heard(struct tdm_conn *c,
			 const struct tdm_wire_rec *rec) tdm_must_check;

#endif /* TDM_TCP_WIRE_IDLE_CLOSE_H */
