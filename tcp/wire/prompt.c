/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the acknowledgement of a message leaves; see prompt.h. A connection
 * counts prompt replies in a row:
 *
 *   fewer than TRUSTED   each acknowledgement leaves in its pass, and the reply
 *                        that follows is timed
 *   TRUSTED              the acknowledgement waits for the reply; every
 *                        TIMED-th reply is timed
 *
 * A reply is prompt if no pass was made between the message and it, and not
 * more than PROMPT_NS went by. One that is not sets the number to 0, and so
 * does a pass that finds an acknowledgement still waiting. Spec:
 * doc/adr/0034-prompt-replies.md.
 */
#include "tcp/wire/prompt.h"

#include "base/os.h"
#include "tcp/wire/rx.h"

enum { TRUSTED = 4, TIMED = 16, PROMPT_NS = 100 * 1000 };

void tdm_prompt_arrived(struct tdm_conn *c)
{
	struct tdm_prompt *p = &c->prompt;
	const uint32_t pass = (uint32_t)c->tcp->pass;
	const int trusted = p->hits == TRUSTED;

	tdm_rx_ack_due(c);
	if (!trusted)
		c->ack_now = 1;
	if (p->pass == pass)
		return;
	p->pass = pass;
	p->watch = !trusted || !(c->rx_seq % TIMED);
	if (p->watch)
		p->since_ns = tdm_os.now_ns();
}

void tdm_prompt_replied(struct tdm_conn *c)
{
	struct tdm_prompt *p = &c->prompt;

	p->watch = 0;
	if ((uint32_t)c->tcp->pass - p->pass > 1 ||
	    tdm_os.now_ns() - p->since_ns > PROMPT_NS)
		p->hits = 0;
	else if (p->hits < TRUSTED)
		p->hits++;
}
