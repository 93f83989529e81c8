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
 * The kernel is asked every LOOK_PASSES-th pass, and by timer during sleep. If sends that
 * end by its word have lent much to what is kept for a new connection (keep.h), that is
 * copied; so they wait a moment for the ACK of a peer that is reading.
 * Spec: fi_cq(3), doc/adr/0007-transmit-complete.md.
 */
#include "tcp/wire/unacked.h"

#include "tcp/wire/keep.h"
#include "tcp/wire/tx_priv.h"

enum {
	LOOK_PASSES = 64,
	LOOK_MS = 10,
	COPY_BYTES = 32 << 10, /* so much is copied without a wait */
	COPY_WAIT_MS = 2,
};

/* Not 0 while some bytes of @c are not in the kernel of the peer's host. */
static int in_flight(const struct tdm_conn *c)
{
	int bytes;

	return tdm_keep_pending(c) || c->state == TDM_CONN_RESUMING ||
	       tdm_os.outq(c->io.fd, &bytes) || bytes;
}

/* Not 0 when much would have to be copied to end the sends of @c now. */
static int lends_much(const struct tdm_conn *c)
{
	const struct tdm_piece *p = c->keep ? c->keep->first : NULL;
	size_t bytes = 0;

	for (; p && bytes <= COPY_BYTES; p = p->next) {
		if (p->op && p->op->state == TDM_TX_ACK &&
		    !(p->op->flags & TDM_DELIVERED))
			bytes += p->to - p->from;
	}
	return bytes > COPY_BYTES;
}

/*
 * Complete those sends of @c before the record number @seq, of which the kernel of the
 * peer's host has all bytes, that do not wait for delivery.
 */
static void end_sent(struct tdm_conn *c, uint64_t seq)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &c->ackq) {
		struct tdm_tx *op = tdm_list_entry(pos, struct tdm_tx, node);

		if (op->seq >= seq)
			break;
		if (!(op->flags & TDM_DELIVERED))
			tdm_tx_end(c, op, 0, 0);
	}
}

/*
 * Let the sends of @c wait for the ACK of the peer endpoint, from the look that finds
 * that all bytes have arrived (@flying is 0), until the endpoint has acknowledged nothing
 * for a moment; then complete those that had been sent at that look. Newer ones do not
 * prolong it. Returns after how many milliseconds to look again.
 */
static unsigned let_wait(struct tdm_conn *c, int flying)
{
	struct tdm_keep *k = c->keep;
	uint64_t now;

	if (!k)
		return LOOK_MS;
	if (c->state == TDM_CONN_RESUMING || tdm_keep_repeats(c) ||
	    k->arrived_pos != c->kept_pos)
		k->arrived_ns = 0;
	if (!k->arrived_ns && flying)
		return LOOK_MS;
	now = tdm_os.now_ns();
	if (!k->arrived_ns) {
		k->arrived_ns = now;
		k->arrived_pos = c->kept_pos;
		k->arrived_seq = c->tx_seq;
	}
	if (now - k->arrived_ns < COPY_WAIT_MS * 1000000ull)
		return COPY_WAIT_MS;
	k->arrived_ns = 0;
	end_sent(c, k->arrived_seq);
	return LOOK_MS;
}

/* Returns after how many milliseconds to look again. */
static unsigned look(struct tdm_tcp *tcp)
{
	struct tdm_list *pos, *tmp;
	unsigned ms = LOOK_MS;

	tdm_list_for_each_safe(pos, tmp, &tcp->unacked) {
		struct tdm_conn *c =
			tdm_list_entry(pos, struct tdm_conn, unacked_node);
		const int flying = !tdm_list_empty(&c->ackq) && in_flight(c);

		if (flying || lends_much(c)) {
			ms = tdm_min(ms, let_wait(c, flying));
			continue;
		}
		tdm_list_del(&c->unacked_node);
		end_sent(c, c->tx_seq);
	}
	return ms;
}

/* Arm the timer to look in @ms milliseconds, if it is not armed to look earlier. */
static void watch(struct tdm_tcp *tcp, unsigned ms)
{
	struct tdm_loop_timer *timer = &tcp->unacked_timer;

	if (!timer->ev ||
	    timer->deadline_ns > tdm_os.now_ns() + ms * 1000000ull)
		(void)tdm_loop_timer_arm(tcp->a.loop, timer, ms);
}

static void timer_fired(struct tdm_loop_timer *timer)
{
	tdm_unacked_arm(tdm_container_of(timer, struct tdm_tcp, unacked_timer));
}

void tdm_unacked_init(struct tdm_tcp *tcp)
{
	tdm_list_init(&tcp->unacked);
	tcp->unacked_timer.fired = timer_fired;
}

void tdm_unacked_watch(struct tdm_tcp *tcp)
{
	if (!tcp->unacked_timer.ev)
		watch(tcp, LOOK_MS);
}

void tdm_unacked_pass(struct tdm_tcp *tcp)
{
	unsigned ms;

	if (tcp->pass % LOOK_PASSES)
		return;
	ms = look(tcp);
	/* The application may make few passes. */
	if (ms < LOOK_MS)
		watch(tcp, ms);
}

void tdm_unacked_arm(struct tdm_tcp *tcp)
{
	unsigned ms = look(tcp);

	if (!tdm_list_empty(&tcp->unacked))
		watch(tcp, ms);
}
