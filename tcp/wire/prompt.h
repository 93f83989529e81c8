/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When acknowledgements leave: that of a message with the reply, or after some passes
 * without one, if the application lately replied promptly, else at the end of the pass
 * that received the message; others when there is much to acknowledge.
 *
 * A sender at FI_TRANSMIT_COMPLETE waits for it. An application that replies
 * saves a system call when the reply carries it. One that turns to other things
 * instead makes no pass that could send it later, and the TCP of this host
 * would delay its own acknowledgement by 40 ms. Decision 34. Lock: domain held.
 */
#ifndef TDM_TCP_WIRE_PROMPT_H
#define TDM_TCP_WIRE_PROMPT_H

#include "tcp/wire/operation.h"
#include "tcp/wire/tcp.h"

/*
 * An application that polls several queues, or looks at its memory between calls, makes
 * some passes before it replies.
 */
enum { TDM_PROMPT_PASSES = 4 };

/*
 * Acknowledge in the pass after this one, or in the TDM_PROMPT_PASSES-th after it if a
 * message waits for that, unless output carries the acknowledgement before.
 */
void tdm_prompt_due(struct tdm_conn *c);

/*
 * Called when an EAGER, WRITE, DATA or ATOMIC record with @flags, TDM_WIRE_F_*, and @len
 * bytes of payload is complete. @reply: it is data of a read; no call of the peer waits
 * for their ACK, which leaves with the next request, in the first pass in which no
 * read has ended, or after 4 MiB.
 */
void tdm_prompt_received(struct tdm_conn *c, uint8_t flags, uint32_t len,
			 int reply);

/*
 * Called when @rx, a message or a write, is complete. If its sender waits for DONE, and
 * the application has replied promptly lately, the DONE lingers: it is given to the kernel at
 * once, which keeps it for a reply that leaves in the same segment, but for some 200 ms at most,
 * should the application make no further call. That of a message that waited for its receive
 * does not: the call that posts the receive may be the last one.
 */
void tdm_prompt_told(struct tdm_rx *rx);

/*
 * Called when the kernel keeps DONEs: without a reply, the TDM_PROMPT_PASSES-th pass from
 * now sends them.
 */
void tdm_prompt_corked(struct tdm_conn *c);

/* Not 0 when @c is in acks for DONEs that the kernel keeps, and for nothing else; */
static inline int tdm_prompt_keeps(const struct tdm_conn *c)
{
	return c->prompt.uncorks && c->prompt.corked;
}

/* the same for DONEs that have left with a reply. */
static inline int tdm_prompt_uncorked(const struct tdm_conn *c)
{
	return c->prompt.uncorks && !c->prompt.corked;
}

/* Not 0 when a reply may still carry what @c, which is in acks, has to send. */
static inline int tdm_prompt_waits(const struct tdm_conn *c)
{
	const uint32_t passes = (uint32_t)c->tcp->pass - c->ack_pass;
	const int some = c->prompt.uncorks | c->prompt.waits;

	return !c->ack_now && passes < (some ? TDM_PROMPT_PASSES : 1);
}

/*
 * Called before the bytes just read are counted. If much was received of which the peer
 * was not told, tells it: records without payload are not counted in rx_seq, so that it may
 * wait for no ACK. A record of more than 64 KiB is not in the peer's transmit buffer,
 * and its end is acknowledged.
 */
void tdm_prompt_say(struct tdm_conn *c);

/*
 * Called when a read of this side has ended: the application may post the next one, whose
 * request carries the ACK of the data, before the next pass.
 */
void tdm_prompt_read_ended(struct tdm_conn *c);

/* Called when a pass has to send an acknowledgement or DONEs that no reply carried. */
void tdm_prompt_missed(struct tdm_conn *c);

/* tdm_prompt_sent() while a reply is watched for. */
void tdm_prompt_replied(struct tdm_conn *c);

/* Called when a message to @c is written to its output. */
static inline void tdm_prompt_sent(struct tdm_conn *c)
{
	if (tdm_unlikely(c->prompt.watch))
		tdm_prompt_replied(c);
}

#endif /* TDM_TCP_WIRE_PROMPT_H */
