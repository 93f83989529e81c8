/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Idle close of connections, so that their descriptors serve others;
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
 * Called when @tcp has just got the descriptor @fd, or (-1) failed to get one.
 * If descriptors are scarce, a timer will ask peers of idle connections for an
 * idle close.
 */
void tdm_idle_close_crowd(struct tdm_tcp *tcp, int fd);

/*
 * Called when both sides have agreed to close the session of @c, which is
 * CLOSING: @c becomes IDLE, or CONNECTING if sends wait; DEAD if the peer broke
 * the agreement.
 */
void tdm_idle_close_now(struct tdm_conn *c);

/*
 * Not 0 when the HELLO @g comes from a restarted peer of @c, which has no
 * session. In that case the operations for the former peer, and @c, have
 * failed.
 */
int tdm_idle_close_reborn(struct tdm_conn *c,
			  const struct tdm_wire_greeting *g);

/*
 * Handle an IDLE_CLOSE from the peer of @c, which is live. Returns 0, or -enum
 * tdm_wire_error.
 */
int tdm_idle_close_heard(struct tdm_conn *c,
			 const struct tdm_wire_rec *rec) tdm_must_check;

#endif /* TDM_TCP_WIRE_IDLE_CLOSE_H */
