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

/* Add @c, which must not be in it, to tcp->unacked. */
void tdm_unacked_join(struct tdm_conn *c);

/* Called when @c has a send in ackq. */
static inline void tdm_unacked_add(struct tdm_conn *c)
{
	if (tdm_unlikely(!tdm_list_linked(&c->unacked_node)))
		tdm_unacked_join(c);
}

/*
 * Called once per pass and before a sleep, while tcp->unacked is not empty:
 * completes the sends that the kernel of the peer's host has.
 */
void tdm_unacked_pass(struct tdm_tcp *tcp);
void tdm_unacked_arm(struct tdm_tcp *tcp);

#endif /* TDM_TCP_WIRE_UNACKED_H */
