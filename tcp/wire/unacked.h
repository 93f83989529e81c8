/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends that wait for the peer's acknowledgement; unacked.c explains why that
 * of the kernel of the peer's host serves as well. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_UNACKED_H
#define TDM_TCP_WIRE_UNACKED_H

#include "tcp/wire/tcp.h"

/* Prepare tcp->unacked and its timer. */
void tdm_unacked_init(struct tdm_tcp *tcp);

/* Arm the timer that looks at them while nobody polls, if it is not armed. */
void tdm_unacked_watch(struct tdm_tcp *tcp);

/* Called when @c has a send in ackq. */
static inline void tdm_unacked_add(struct tdm_conn *c)
{
	if (tdm_likely(tdm_list_linked(&c->unacked_node)))
		return;
	tdm_list_append(&c->tcp->unacked, &c->unacked_node);
	if (tdm_engine_watched(c->tcp->a.engine))
		tdm_unacked_watch(c->tcp);
}

/*
 * Called once per pass and before a sleep, while tcp->unacked is not empty:
 * completes the sends that the kernel of the peer's host has.
 */
void tdm_unacked_pass(struct tdm_tcp *tcp);
void tdm_unacked_arm(struct tdm_tcp *tcp);

#endif /* TDM_TCP_WIRE_UNACKED_H */
