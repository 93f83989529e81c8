/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Injects whose endpoint closes. Their calls have returned success, so their
 * payload must be sent when the endpoint closes, even without credit and
 * without a posted receive: announced injects by LEFT, those that waited for
 * credit by EAGER and WRITE with the flag LEFT. The peer keeps the payload, or
 * its kernel does until the peer reads.
 *
 * Invariants:
 *  1. Announced injects are sent before the others; the order of the messages
 *     is that of their EAGER and RTS, as always.
 *  2. LEFT names announcements in the order in which they were made, so that the
 *     peer finds all of them in one pass over its list, busy->left_at.
 *  3. The peer's account bounds the payload that it keeps (tdm_held_keeps()). A
 *     message beyond that stays an announcement, or is dropped.
 *
 * Spec: fi_tandem(7), LOCALITY; doc/PROTOCOL-tcp.md, "The end".
 */
#include "tcp/wire/left.h"

#include <stdlib.h>

#include "tcp/wire/conn.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/keep.h"
#include "tcp/wire/out.h"
#include "tcp/wire/rx_msg.h"
#include "tcp/wire/rx_priv.h"
#include "tcp/wire/tx.h"
#include "tcp/wire/tx_priv.h"

tdm_static_assert((int)TDM_WIRE_LEFT_BYTES >= (int)TDM_INJECT_BYTES,
		  "an inject is left in one record");

/* ---- closing ------------------------------------------------------------- */

int tdm_left_in_flight(const struct tdm_conn *c)
{
	int bytes;

	return !tdm_os.outq(c->io.fd, &bytes) && bytes;
}

void tdm_left_begin(struct tdm_conn *c)
{
	struct tdm_list *n, *tmp;

	if (!tdm_conn_live(c) || !(c->features & TDM_WIRE_FEATURE_LEFT))
		return;
	if (!tdm_tx_injects_leaving(c) &&
	    (c->injected <= c->acked ||
	     !(tdm_keep_pending(c) || tdm_left_in_flight(c))))
		return;
	c->leaving = TDM_WIRE_F_LEFT;
	tdm_list_for_each_safe(n, tmp, &c->busy->waitq) {
		struct tdm_tx *op = tdm_list_entry(n, struct tdm_tx, node);

		if (op->state != TDM_TX_CTS || op->dead)
			continue;
		tdm_tx_set_state(op, TDM_TX_LEFT);
		tdm_list_del(&op->node);
		tdm_list_append(&c->busy->dataq, &op->node);
	}
}

int tdm_left_commit(struct tdm_conn *c, struct tdm_tx *op)
{
	struct tdm_wire_rec rec;
	struct tdm_out *out;

	out = tdm_out_room(c,
			   TDM_WIRE_ACK_BYTES + TDM_WIRE_HEAD_BYTES + op->len);
	if (!out)
		return 0;
	tdm_tx_put_ack(c);
	memset(&rec, 0, sizeof(rec));
	rec.op = TDM_WIRE_LEFT;
	rec.len = (uint32_t)op->len;
	rec.total = op->seq;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	memcpy(out->bytes + out->tail, op->copy, op->len);
	out->tail += (uint32_t)op->len;
	c->tx_seq++;
	/*
	 * The peer still answers a write, and its records may name the
	 * operation.
	 */
	tdm_tx_set_state(op, TDM_TX_DONE);
	tdm_list_del(&op->node);
	tdm_list_append(&c->busy->waitq, &op->node);
	return 1;
}

/* ---- the other side ------------------------------------------------------ */

/* Returns the tdm_rx of announcement number @turn, or NULL if it has ended. */
static struct tdm_rx *find(struct tdm_conn *c, uint64_t turn)
{
	struct tdm_list *pos = c->busy->left_at ? c->busy->left_at :
						  c->busy->rxs.next;
	struct tdm_rx *rx = NULL;

	for (; pos != &c->busy->rxs; pos = pos->next) {
		rx = tdm_list_entry(pos, struct tdm_rx, node);
		if (rx->turn >= turn)
			break;
	}
	c->busy->left_at = pos;
	return pos != &c->busy->rxs && rx->turn == turn ? rx : NULL;
}

/*
 * Called when the payload of @rx, which waits for a receive, comes: makes room
 * for it. Returns 0, 1: there is no room, or -TDM_RX_NO_MEMORY.
 */
static int keep(struct tdm_rx *rx)
{
	uint8_t *buf = malloc(tdm_max(rx->len, (uint64_t)1));

	if (!buf)
		return -TDM_RX_NO_MEMORY;
	if (tdm_credit_keep_left(rx)) {
		free(buf);
		return 1;
	}
	rx->buf = buf;
	rx->conn->busy->announced--;
	return 0;
}

/* Take the CTS of @rx back, if it has not been sent. */
static void take_back(struct tdm_rx *rx)
{
	if (!tdm_list_linked(&rx->ctl))
		return;
	tdm_list_del(&rx->ctl);
	rx->answer = 0;
	rx->conn->busy->announced--;
}

int tdm_rx_left(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct tdm_rx *rx;
	int ret;

	if (rec->total >= c->heard)
		return -TDM_WIRE_E_ID;
	rx = tdm_list_empty(&c->busy->rxs) ? NULL : find(c, rec->total + 1);
	/* The message was cancelled, discarded or refused. */
	if (!rx || (rx->state != TDM_RX_WAITING && rx->state != TDM_RX_PLACING))
		return 0;
	if (!rx->announced || rx->got)
		return -TDM_WIRE_E_STATE;
	if (rec->len != rx->len)
		return -TDM_WIRE_E_LENGTH;
	ret = 0;
	if (rx->state == TDM_RX_WAITING)
		ret = keep(rx);
	else
		take_back(rx);
	if (ret)
		return ret < 0 ? ret : 0;
	rx->announced = 0;
	rx->want = rx->len;
	c->cur = rx;
	if (!rx->len) {
		c->cur = NULL;
		tdm_rx_arrived(rx);
	}
	return 0;
}
