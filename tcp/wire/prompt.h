/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the acknowledgement of a message leaves: with the reply, if the
 * application lately replied promptly, else at the end of the pass that
 * received the message.
 *
 * A sender at FI_TRANSMIT_COMPLETE waits for it. An application that replies
 * saves a system call when the reply carries it. One that turns to other things
 * instead makes no pass that could send it later, and the TCP of this host
 * would delay its own acknowledgement by 40 ms. Decision 34. Lock: domain held.
 */
#ifndef TDM_TCP_WIRE_PROMPT_H
#define TDM_TCP_WIRE_PROMPT_H

#include "tcp/wire/tcp.h"

/* Called when a message of @c arrived whose sender waits. */
void tdm_prompt_arrived(struct tdm_conn *c);

/* Called when a pass had to send an acknowledgement that no reply carried. */
static inline void tdm_prompt_missed(struct tdm_conn *c)
{
	c->prompt.hits = 0;
}

/* tdm_prompt_sent() while a reply is watched for. */
void tdm_prompt_replied(struct tdm_conn *c);

/* Called when a message to @c is written to its output. */
static inline void tdm_prompt_sent(struct tdm_conn *c)
{
	if (tdm_unlikely(c->prompt.watch))
		tdm_prompt_replied(c);
}

#endif /* TDM_TCP_WIRE_PROMPT_H */
