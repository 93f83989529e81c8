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

/* Not 0 when much has to be copied before all sends of @c end. */
static int lends_much(const struct tdm_conn *c)
{
	struct tdm_list *pos;
	uint64_t bytes = 0;

	tdm_list_for_each(pos, &c->ackq) {
		const struct tdm_tx *op =
			tdm_list_entry(pos, struct tdm_tx, node);

		if (!op->lent || (op->flags & TDM_DELIVERED))
			continue;
		bytes += op->len;
		if (bytes > COPY_BYTES)
			return 1;
	}
	return 0;
}

/*
 * Not 0 while the sends of @c, all of whose bytes have arrived, wait for the ACK of the
 * peer endpoint: it has acknowledged some not long ago, or they have just been found to
 * have arrived.
 */
static int copy_waits(struct tdm_conn *c)
{
	struct tdm_keep *k = c->keep;
	uint64_t now;

	if (!k || !lends_much(c))
		return 0;
	now = tdm_os.now_ns();
	if (!k->arrived_ns || k->arrived_pos != c->kept_pos) {
		k->arrived_ns = now;
		k->arrived_pos = c->kept_pos;
	}
	return now - k->arrived_ns < COPY_WAIT_MS * 1000000ull;
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

/* Returns after how many milliseconds to look again. */
static unsigned look(struct tdm_tcp *tcp)
{
	struct tdm_list *pos, *tmp;
	unsigned ms = LOOK_MS;

	tdm_list_for_each_safe(pos, tmp, &tcp->unacked) {
		struct tdm_conn *c =
			tdm_list_entry(pos, struct tdm_conn, unacked_node);

		if (!tdm_list_empty(&c->ackq) && in_flight(c)) {
			if (c->keep)
				c->keep->arrived_ns = 0;
			continue;
		}
		if (copy_waits(c)) {
			ms = COPY_WAIT_MS;
			continue;
		}
		tdm_list_del(&c->unacked_node);
		end_sent(c);
	}
	return ms;
}

static void timer_fired(struct tdm_loop_timer *timer)
{
	struct tdm_tcp *tcp =
		tdm_container_of(timer, struct tdm_tcp, unacked_timer);

	unsigned ms = look(tcp);

	if (!tdm_list_empty(&tcp->unacked))
		(void)tdm_loop_timer_arm(tcp->a.loop, timer, ms);
}

void tdm_unacked_init(struct tdm_tcp *tcp)
{
	tdm_list_init(&tcp->unacked);
	tcp->unacked_timer.fired = timer_fired;
}

/* Arm the timer, if it is not armed, to look in @ms milliseconds. */
static void watch(struct tdm_tcp *tcp, unsigned ms)
{
	if (!tcp->unacked_timer.ev)
		(void)tdm_loop_timer_arm(tcp->a.loop, &tcp->unacked_timer, ms);
}

void tdm_unacked_watch(struct tdm_tcp *tcp)
{
	watch(tcp, LOOK_MS);
}

void tdm_unacked_pass(struct tdm_tcp *tcp)
{
	if (!(tcp->pass % LOOK_PASSES))
		(void)look(tcp);
}

void tdm_unacked_arm(struct tdm_tcp *tcp)
{
	unsigned ms = look(tcp);

	if (!tdm_list_empty(&tcp->unacked))
		watch(tcp, ms);
}
