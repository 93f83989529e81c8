/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends that wait for the peer's acknowledgement; sent.c explains why its
 * kernel's acknowledgement serves as well. Everything: G: domain lock.
 */
#ifndef TDM_TCP_WIRE_SENT_H
#define TDM_TCP_WIRE_SENT_H

#include "tcp/wire/tcp.h"

/* Prepare tcp->sent and its timer. */
void tdm_sent_init(struct tdm_tcp *tcp);

/* Put @c, which is not in it, in tcp->sent. */
void tdm_sent_join(struct tdm_conn *c);

/* Call when @c has a send in ackq. */
static inline void tdm_sent_add(struct tdm_conn *c)
{
	if (tdm_unlikely(!tdm_list_linked(&c->sent_node)))
		tdm_sent_join(c);
}

/* Once per pass, and before a sleep; while tcp->sent is not empty. */
void tdm_sent_pass(struct tdm_tcp *tcp);
void tdm_sent_arm(struct tdm_tcp *tcp);

#endif /* TDM_TCP_WIRE_SENT_H */
