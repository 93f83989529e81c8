/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends that wait for the peer's acknowledgement; unacked.c explains why its
 * kernel's acknowledgement serves as well. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_UNACKED_H
#define TDM_TCP_WIRE_UNACKED_H

#include "tcp/wire/tcp.h"

/* Prepare tcp->unacked and its timer. */
void tdm_unacked_init(struct tdm_tcp *tcp);

/* Put @c, which is not in it, in tcp->unacked. */
void tdm_unacked_join(struct tdm_conn *c);

/* Call when @c has a send in ackq. */
static inline void tdm_unacked_add(struct tdm_conn *c)
{
	if (tdm_unlikely(!tdm_list_linked(&c->unacked_node)))
		tdm_unacked_join(c);
}

/* Once per pass, and before a sleep; while tcp->unacked is not empty. */
void tdm_unacked_pass(struct tdm_tcp *tcp);
void tdm_unacked_arm(struct tdm_tcp *tcp);

#endif /* TDM_TCP_WIRE_UNACKED_H */
