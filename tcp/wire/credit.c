/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credit at the receiver: how much a peer may send before receives are posted
 * for it.
 *
 * An endpoint has one account for all peers and both transports, of
 * FI_TANDEM_UNEXP_MAX bytes. It contains the unexpected messages of all peers,
 * and the credit that peers have been given and have not used.
 *
 *   given to a peer:  |<- freed ->|<- held ->|<------ unused ------>|
 *                                 |<- in the account: c->reserved ->|
 *
 * A session begins with little. With each ACK the peer's unused credit is
 * raised to its first credit or to the size of its held messages, whichever is
 * more. So credit doubles with use while the account has room, and shrinks as
 * held messages are received and unused credit is used up.
 *
 * Invariants:
 *  1. held->bytes is the sum of c->reserved and c->kept of all connections, as
 *     of the last ACK, and of what shared memory takes. It exceeds
 *     FI_TANDEM_UNEXP_MAX only by the shares of peers (TDM_HELD_SHARE_BYTES)
 *     and by announced messages.
 *  2. If a peer has less than TDM_CREDIT_LOW_BYTES unused, it has been given
 *     more, or has been told FULL, or an ACK that does either is due. So the
 *     peer can hold back a message of at most TDM_CREDIT_WAIT_BYTES until then.
 *  3. A peer that connects while the account is full gets no credit: peers that
 *     come and go cannot fill memory.
 *
 * Spec: doc/PROTOCOL-tcp.md, "Credit"; doc/adr/0027-credit-follows-use.md.
 */
#include "tcp/wire/credit.h"

#include <rdma/fi_errno.h>

#include "tcp/wire/prompt.h"
#include "tcp/wire/rx_msg.h"
#include "tcp/wire/share.h"
#include "tdm_held.h"
#include "tdm_open.h"

enum {
	/* A new peer gets the free account divided by this. */
	FIRST_PART = 256,
	/* Greatest credit in a HELLO. */
	FIRST_MOST_BYTES = 1 << 20,
	/* One announced operation is allowed for so many free bytes. */
	ANNOUNCED_PART = 16,
	/*
	 * A stranger gets this part of the announced operations that other
	 * strangers leave.
	 */
	STRANGER_PART = 8,
};

tdm_static_assert((int)TDM_HELD_CHARGE_BYTES == (int)TDM_WIRE_CHARGE_BYTES &&
			  (int)TDM_HELD_SHARE_BYTES ==
				  (int)TDM_WIRE_CREDIT_LEAST,
		  "both transports count alike");

void tdm_credit_init(struct tdm_tcp *tcp)
{
	struct tdm_held *held =
		tdm_open_ops(&tcp->a.srx->ep_fid.fid, TDM_HELD_OPS);

	tcp->own_held.size = sizeof(tcp->own_held);
	tcp->held = held && held->size >= sizeof(*held) ? held : &tcp->own_held;
}

uint64_t tdm_credit_first(const struct tdm_tcp *tcp, const struct tdm_conn *c,
			  const struct tdm_wire_greeting *g)
{
	uint64_t room = tdm_held_room(tcp->held);
	uint64_t kept = c ? c->kept : 0, n; /* held over an idle close */

	if (!room && g && (g->features & TDM_WIRE_FEATURE_CREDIT))
		return 0;
	n = tdm_clamp((room + kept) / FIRST_PART, TDM_WIRE_CREDIT_LEAST,
		      FIRST_MOST_BYTES);
	return tdm_max(n - tdm_min(n, kept), TDM_WIRE_CREDIT_LEAST);
}

uint32_t tdm_credit_announced(const struct tdm_conn *c)
{
	uint64_t most = tdm_held_room(c->tcp->held) / ANNOUNCED_PART, given;

	if (!c->tcp->a.keys && c->fi_addr == FI_ADDR_UNSPEC && !c->mirrored) {
		given = tdm_min(tdm_share_announced(c->tcp),
				(uint64_t)TDM_WIRE_RTS_COUNT);
		most = tdm_min(most,
			       (TDM_WIRE_RTS_COUNT - given) / STRANGER_PART);
	}
	return (uint32_t)tdm_clamp(most, TDM_CREDIT_ANNOUNCED_LEAST,
				   TDM_WIRE_RTS_COUNT);
}

/* Update the account when the share of @c has changed. */
static void settle(struct tdm_conn *c)
{
	uint64_t now = c->given - c->rx_freed;

	c->tcp->held->bytes += now - c->reserved;
	c->reserved = now;
}

void tdm_credit_begin(struct tdm_conn *c)
{
	c->given = c->credit;
	c->said_full = !c->credit;
	settle(c);
}

/* Returns the unused credit that the peer of @c should have. */
static uint64_t wanted(const struct tdm_conn *c)
{
	uint64_t first = tdm_max(c->credit, (uint64_t)TDM_WIRE_CREDIT_LEAST);

	return tdm_max(first, c->rx_charged - c->rx_freed);
}

/* Returns how much of the credit @want the account can give to @c. */
static uint64_t available(const struct tdm_conn *c, uint64_t want)
{
	uint64_t share = c->credit ? TDM_WIRE_CREDIT_LEAST : 0;
	uint64_t has = c->given - c->rx_freed;
	uint64_t room = tdm_held_room(c->tcp->held);

	return tdm_min(want, tdm_max(room, share - tdm_min(share, has)));
}

uint64_t tdm_credit_give(struct tdm_conn *c, int *full)
{
	uint64_t unused, want;

	*full = 0;
	if (tdm_unlikely(!(c->features & TDM_WIRE_FEATURE_CREDIT))) {
		c->given = c->credit + c->rx_freed;
		settle(c);
		return c->rx_freed;
	}
	settle(c);
	unused = c->given - c->rx_charged;
	want = wanted(c);
	if (unused < want) {
		uint64_t n = available(c, want - unused);

		c->given += n;
		unused += n;
		settle(c);
	}
	c->said_full = unused < TDM_CREDIT_LOW_BYTES;
	*full = c->said_full;
	return c->given - c->credit;
}

void tdm_credit_low(struct tdm_conn *c)
{
	if (!(c->features & TDM_WIRE_FEATURE_CREDIT) ||
	    (c->said_full && !available(c, 1)))
		return;
	c->ack_now = 1;
	tdm_prompt_due(c);
}

void tdm_credit_unsaid(struct tdm_conn *c)
{
	c->said_full = 0;
	c->ack_now = 1;
	tdm_prompt_due(c);
}

int tdm_credit_left(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	uint64_t charge = tdm_credit_takes(c->features, rec->op, rec->len);

	/* A write needs no memory here. */
	if (rec->op == TDM_WIRE_EAGER && !tdm_held_keeps(c->tcp->held, charge))
		return -FI_ENOSPC;
	c->given += charge;
	settle(c);
	return 0;
}

/* Charge @n bytes of @rx outside of the session's credit from now on. */
static void keep(struct tdm_rx *rx, uint64_t n)
{
	rx->kept += n;
	rx->conn->kept += n;
	rx->conn->tcp->held->bytes += n;
}

void tdm_credit_announce(struct tdm_rx *rx)
{
	keep(rx, TDM_WIRE_CHARGE_BYTES);
}

int tdm_credit_keep_left(struct tdm_rx *rx)
{
	if (!tdm_held_keeps(rx->conn->tcp->held,
			    rx->len + TDM_HELD_CHARGE_BYTES))
		return -FI_ENOSPC;
	keep(rx, rx->len);
	return 0;
}

void tdm_credit_forget(struct tdm_rx *rx)
{
	rx->conn->kept -= rx->kept;
	rx->conn->tcp->held->bytes -= rx->kept;
	rx->kept = 0;
}

void tdm_credit_drop(struct tdm_conn *c, int all)
{
	struct tdm_list *n, *tmp;

	tdm_list_for_each_safe(n, tmp, &c->busy->rxs) {
		struct tdm_rx *rx = tdm_list_entry(n, struct tdm_rx, node);

		if (rx->announced && rx->state == TDM_RX_WAITING &&
		    (all || !tdm_held_room(c->tcp->held)))
			tdm_rx_drop(rx);
	}
}

void tdm_credit_end(struct tdm_conn *c, int lost)
{
	struct tdm_list *n;

	c->tcp->held->bytes -= c->reserved;
	c->reserved = 0;
	c->given = 0;
	tdm_list_for_each(n, &c->busy->rxs) {
		struct tdm_rx *rx = tdm_list_entry(n, struct tdm_rx, node);

		keep(rx, rx->charge);
		rx->charge = 0;
	}
	if (lost)
		tdm_credit_drop(c, 0);
}

void tdm_credit_release(struct tdm_conn *c, uint64_t charge)
{
	c->rx_freed += charge;
	if (c->rx_freed - c->ack_freed >
		    tdm_max(c->credit, (uint64_t)TDM_WIRE_CREDIT_LEAST) / 4 &&
	    c->state == TDM_CONN_READY)
		tdm_prompt_due(c);
}
