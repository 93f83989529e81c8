/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends that wait for the peer's acknowledgement while the peer makes no
 * progress. With manual progress an application may turn to other things
 * after its last receive; its peer, which waits for the completion of the
 * matching send, must not wait for ever.
 *
 * A send at FI_TRANSMIT_COMPLETE ends by whichever comes first: the ACK record
 * of the peer endpoint, or the word of the peer host's TCP that all bytes up
 * to it have arrived (SIOCOUTQ says 0). Both mean that nothing depends on
 * this host or the network any more. FI_DELIVERY_COMPLETE waits for the
 * peer's word: DONE, or after announced data the ACK of its last record.
 *
 * The kernel is asked every SENT_PASSES-th pass, and by timer during sleep.
 * Spec: fi_cq(3), doc/adr/0007-transmit-complete.md.
 */
#include "tcp/wire/sent.h"
#include "tcp/wire/tx_priv.h"

enum { SENT_PASSES = 64, SENT_MS = 10 };

/* Not 0 when bytes of @c have still to reach the kernel or the peer. */
static int in_flight(const struct tdm_conn *c)
{
	int bytes;

	return c->out || c->gather || tdm_os.outq(c->io.fd, &bytes) || bytes;
}

/* All bytes have arrived, says the kernel: end well all but the deliveries. */
static void end_sent(struct tdm_conn *c)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &c->ackq) {
		struct tdm_tx *op = tdm_list_entry(pos, struct tdm_tx, node);

		if (!(op->flags & TDM_DELIVERED))
			tdm_tx_end(c, op, 0, 0);
	}
}

static void look(struct tdm_tcp *tcp)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &tcp->sent) {
		struct tdm_conn *c =
			tdm_list_entry(pos, struct tdm_conn, sent_node);

		if (!tdm_list_empty(&c->ackq) && in_flight(c))
			continue;
		tdm_list_del(&c->sent_node);
		end_sent(c);
	}
}

static void timer_fired(struct tdm_loop_timer *timer)
{
	struct tdm_tcp *tcp =
		tdm_container_of(timer, struct tdm_tcp, sent_timer);

	look(tcp);
	if (!tdm_list_empty(&tcp->sent))
		(void)tdm_loop_timer_arm(tcp->a.loop, timer, SENT_MS);
}

void tdm_sent_init(struct tdm_tcp *tcp)
{
	tdm_list_init(&tcp->sent);
	tcp->sent_timer.fired = timer_fired;
}

void tdm_sent_join(struct tdm_conn *c)
{
	struct tdm_tcp *tcp = c->tcp;

	tdm_list_append(&tcp->sent, &c->sent_node);
	if (tdm_engine_watched(tcp->a.engine) && !tcp->sent_timer.ev)
		(void)tdm_loop_timer_arm(tcp->a.loop, &tcp->sent_timer,
					 SENT_MS);
}

void tdm_sent_pass(struct tdm_tcp *tcp)
{
	if (!(tcp->pass % SENT_PASSES))
		look(tcp);
}

void tdm_sent_arm(struct tdm_tcp *tcp)
{
	look(tcp);
	if (!tdm_list_empty(&tcp->sent) && !tcp->sent_timer.ev)
		(void)tdm_loop_timer_arm(tcp->a.loop, &tcp->sent_timer,
					 SENT_MS);
}
