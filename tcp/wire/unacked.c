/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unacknowledged sends: those that have been sent and wait for the peer's ACK.
 * With manual progress an application may stop making progress after its last
 * receive; its peer, which waits for the completion of the matching send, must
 * not wait for ever.
 *
 * A send at FI_TRANSMIT_COMPLETE ends by whichever comes first: the ACK record
 * of the peer endpoint, or the acknowledgement by the peer host's TCP of all
 * bytes up to it (SIOCOUTQ gives 0). Both mean that this host and the network
 * are not needed any more. FI_DELIVERY_COMPLETE waits for the peer endpoint:
 * for DONE, or after announced data for the ACK of its last record.
 *
 * The kernel is asked every LOOK_PASSES-th pass, and by timer during sleep.
 * Spec: fi_cq(3), doc/adr/0007-transmit-complete.md.
 */
#include "tcp/wire/unacked.h"

#include "tcp/wire/keep.h"
#include "tcp/wire/tx_priv.h"

enum { LOOK_PASSES = 64, LOOK_MS = 10 };

/* Not 0 while some bytes of @c are not in the kernel of the peer's host. */
static int in_flight(const struct tdm_conn *c)
{
	int bytes;

	return tdm_keep_pending(c) || c->state == TDM_CONN_RESUMING ||
	       tdm_os.outq(c->io.fd, &bytes) || bytes;
}

/*
 * Called when the kernel of the peer's host has all bytes: completes all sends
 * except those that wait for delivery.
 */
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

	tdm_list_for_each_safe(pos, tmp, &tcp->unacked) {
		struct tdm_conn *c =
			tdm_list_entry(pos, struct tdm_conn, unacked_node);

		if (!tdm_list_empty(&c->ackq) && in_flight(c))
			continue;
		tdm_list_del(&c->unacked_node);
		end_sent(c);
	}
}

static void timer_fired(struct tdm_loop_timer *timer)
{
	struct tdm_tcp *tcp =
		tdm_container_of(timer, struct tdm_tcp, unacked_timer);

	look(tcp);
	if (!tdm_list_empty(&tcp->unacked))
		(void)tdm_loop_timer_arm(tcp->a.loop, timer, LOOK_MS);
}

void tdm_unacked_init(struct tdm_tcp *tcp)
{
	tdm_list_init(&tcp->unacked);
	tcp->unacked_timer.fired = timer_fired;
}

void tdm_unacked_watch(struct tdm_tcp *tcp)
{
	if (!tcp->unacked_timer.ev)
		(void)tdm_loop_timer_arm(tcp->a.loop, &tcp->unacked_timer,
					 LOOK_MS);
}

void tdm_unacked_pass(struct tdm_tcp *tcp)
{
	if (!(tcp->pass % LOOK_PASSES))
		look(tcp);
}

void tdm_unacked_arm(struct tdm_tcp *tcp)
{
	look(tcp);
	if (!tdm_list_empty(&tcp->unacked))
		tdm_unacked_watch(tcp);
}
