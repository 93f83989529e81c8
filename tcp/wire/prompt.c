/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When acknowledgements leave; see prompt.h. A connection counts prompt replies to
 * messages in a row:
 *
 *   fewer than TRUSTED   each acknowledgement leaves in its pass, and the reply
 *                        that follows is timed
 *   TRUSTED              the acknowledgement waits for the reply; every
 *                        TIMED-th reply is timed
 *
 * A reply is prompt if fewer than TDM_PROMPT_PASSES passes were made between the message
 * and it, and not more than PROMPT_NS went by. One that is not sets the number to 0, and
 * so does a pass that finds that an acknowledgement has waited for so many. Replies to
 * what is answered by DONE are counted apart: TRUSTED lets the DONE linger in the kernel
 * (MSG_MORE, tcp(7)). An ACK that waited in vain, and a DONE that lingered for long, make
 * that more than TRUSTED. Spec: doc/adr/0034-prompt-replies.md.
 */
#include "tcp/wire/prompt.h"

#include "base/os.h"
#include "tcp/wire/conn.h"

enum {
	TRUSTED = 4,
	TIMED = 16,
	PROMPT_NS = 100 * 1000,
	/* An application that lets DONEs linger so long has turned to other things: */
	LONG_NS = 1000 * 1000,
	DOUBT_SHIFT = 4, /* 16 times as many replies are needed then, */
	DOUBT_MOST = 3,	 /* and so often again. */
	/* After an ACK that waited in vain twice as many are, and so often again. */
	DOUBT_ACK_MOST = 4,
	/* At this amount, received records are acknowledged at once. */
	ACK_RECORDS = 64,
	ACK_BYTES = 64 << 10,
	/* The same of the stream, whatever its records are; within a longer one. */
	SAY_BYTES = 64 << 10,
	SAY_LONG_BYTES = 4 << 20,
};

void tdm_prompt_due(struct tdm_conn *c)
{
	struct tdm_tcp *tcp = c->tcp;

	c->prompt.uncorks = 0;
	if (tdm_list_linked(&c->ack_node))
		return;
	c->ack_pass = (uint32_t)tcp->pass;
	tdm_list_append(&tcp->acks, &c->ack_node);
	tdm_tcp_nudge(tcp);
}

/*
 * Let an ACK for which no message waits, that of a read, fall due in this pass. It leaves
 * with DONEs that the kernel keeps.
 */
static void renew(struct tdm_conn *c)
{
	if (!c->prompt.waits && !c->prompt.corked)
		c->ack_pass = (uint32_t)c->tcp->pass;
}

/* Returns after how many prompt replies in a row the next one is trusted to be. */
static unsigned needed(const struct tdm_prompt *p, unsigned kind)
{
	return (unsigned)TRUSTED
	       << (kind == TDM_PROMPT_DONE ? DOUBT_SHIFT * p->doubt :
					     p->doubt_ack);
}

/*
 * Something has come to which the application may reply. Returns not 0 when its replies
 * are prompt.
 */
static int watch(struct tdm_conn *c, enum tdm_prompt_kind kind)
{
	struct tdm_prompt *p = &c->prompt;
	const uint32_t pass = (uint32_t)c->tcp->pass;
	const int trusted = p->hits[kind] >= needed(p, kind);

	if (p->pass == pass)
		return trusted;
	p->pass = pass;
	p->watch = 0;
	if (!trusted || !(++p->turn % TIMED)) {
		p->watch = (uint8_t)(1 + kind);
		p->since_ns = tdm_os.now_ns();
	}
	return trusted;
}

/* A message has come whose sender waits. */
static void arrived(struct tdm_conn *c)
{
	tdm_prompt_due(c);
	renew(c);
	c->prompt.waits = 1;
	if (!watch(c, TDM_PROMPT_ACK))
		c->ack_now = 1;
}

void tdm_prompt_told(struct tdm_rx *rx)
{
	if (rx->wants_done && rx->state == TDM_RX_PLACING && !rx->waited)
		rx->lingers = (uint8_t)watch(rx->conn, TDM_PROMPT_DONE);
}

void tdm_prompt_corked(struct tdm_conn *c)
{
	const int alone = !tdm_list_linked(&c->ack_node);
	struct tdm_prompt *p = &c->prompt;

	if (!p->corked) {
		p->cork_pass = (uint32_t)c->tcp->pass;
		p->cork_ns = tdm_os.now_ns();
	}
	tdm_prompt_due(c);
	c->ack_pass = p->cork_pass;
	p->corked = 1;
	p->uncorks = (uint8_t)alone;
}

void tdm_prompt_missed(struct tdm_conn *c)
{
	struct tdm_prompt *p = &c->prompt;

	if (!tdm_prompt_keeps(c)) {
		p->hits[TDM_PROMPT_ACK] = 0;
		p->doubt_ack += p->doubt_ack < DOUBT_ACK_MOST;
		return;
	}
	p->hits[TDM_PROMPT_DONE] = 0;
	if (p->doubt < DOUBT_MOST && tdm_os.now_ns() - p->cork_ns > LONG_NS)
		p->doubt++;
}

void tdm_prompt_received(struct tdm_conn *c, uint8_t flags, uint32_t len,
			 int reply)
{
	/* A prompt reply can carry the ACK of a long message, too. */
	const uint32_t before = c->ack_bytes;
	uint32_t bytes;

	if (c->tcp->closing)
		return; /* dropped, so it must not be acknowledged */
	c->rx_seq++;
	c->replied = (uint8_t)reply;
	c->ack_bytes += len;
	bytes = (flags & TDM_WIRE_F_ACK) ? before : c->ack_bytes;
	if (c->rx_seq - c->ack_seq >= ACK_RECORDS || bytes >= ACK_BYTES ||
	    (flags & TDM_WIRE_F_NOW)) {
		c->ack_now |= !reply;
		tdm_prompt_due(c);
	} else if (flags & TDM_WIRE_F_ACK) {
		arrived(c);
	}
}

void tdm_prompt_say(struct tdm_conn *c)
{
	const int within = c->left && c->cur_len > SAY_BYTES;
	const uint64_t most = within ? SAY_LONG_BYTES : SAY_BYTES;
	const uint64_t unsaid = c->rx_pos - c->rx_said;

	if (tdm_likely(unsaid < most))
		return;
	/* Reads that were asked for at once may end in each pass. */
	if (c->replied && unsaid < SAY_LONG_BYTES) {
		tdm_prompt_due(c);
		return;
	}
	if (!tdm_conn_resumes(c)) {
		c->rx_said = c->rx_pos;
		if (!c->replied)
			return;
	}
	c->ack_now = 1;
	tdm_prompt_due(c);
}

void tdm_prompt_read_ended(struct tdm_conn *c)
{
	renew(c);
}

void tdm_prompt_replied(struct tdm_conn *c)
{
	struct tdm_prompt *p = &c->prompt;
	const unsigned kind = p->watch - 1u;

	p->watch = 0;
	if ((uint32_t)c->tcp->pass - p->pass > TDM_PROMPT_PASSES ||
	    tdm_os.now_ns() - p->since_ns > PROMPT_NS)
		p->hits[kind] = 0;
	else if (p->hits[kind] < needed(p, kind))
		p->hits[kind]++;
	else if (kind == TDM_PROMPT_ACK && p->doubt_ack)
		p->doubt_ack--;
}
