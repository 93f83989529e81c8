/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input of one-sided operations: writes and the operands of atomic operations
 * at their target, results at their initiator. Otherwise they are handled as
 * messages (rx_msg.c), and have the same states.
 *
 * Lock: domain held.
 */
#include <stdlib.h>

#include "tcp/wire/credit.h"
#include "tcp/wire/rma.h"
#include "tcp/wire/rx_msg.h"
#include "tcp/wire/rx_priv.h"

/* The contents of tdm_rx.buf in state OPERANDS. */
struct staged {
	struct tdm_wire_rec rec;
	uint8_t bytes[];
};

/*
 * Ask the owner for the region of a write: @rx becomes PLACING, or DROPPING
 * with an error status.
 */
static void admit(struct tdm_rx *rx, const struct tdm_wire_rec *rec)
{
	struct fi_peer_rx_entry *entry;

	rx->conn->stats.rx_msgs++;
	rx->conn->stats.rx_bytes += rec->total;
	rx->len = rec->total;
	rx->wants_done = 1;
	rx->status =
		(uint8_t)tdm_rma_get(rx->conn, rec, FI_REMOTE_WRITE, &entry);
	if (rx->status)
		(void)tdm_rx_stop(rx);
	else
		tdm_rx_place(rx, entry);
}

int tdm_rx_write(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct tdm_rx *rx;

	if (tdm_unlikely(c->tcp->closing))
		return 0;
	rx = tdm_rx_new(c, rec);
	if (!rx)
		return -TDM_RX_NO_MEMORY;
	admit(rx, rec);
	rx->want = rec->len;
	rx->charge = tdm_credit_takes(c->features, rec->op, rec->len);
	if (rec->len)
		c->cur = rx;
	else
		tdm_rx_arrived(rx);
	return 0;
}

int tdm_rx_awrite(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct tdm_rx *rx;

	if (c->busy->announced >= c->announced_most)
		return -TDM_WIRE_E_CREDIT;
	c->heard += c->tcp->closing;
	if (c->tcp->closing)
		return 0;
	rx = tdm_rx_new(c, rec);
	if (!rx)
		return -TDM_RX_NO_MEMORY;
	c->busy->announced++;
	rx->announced = 1;
	rx->turn = ++c->heard;
	admit(rx, rec);
	if (rx->state != TDM_RX_PLACING || !rx->len) {
		tdm_rx_arrived(rx);
	} else if (tdm_rx_rid_ready(c) ||
		   tdm_ids_get(&c->busy->rids, rx, UINT32_MAX, &rx->rid)) {
		tdm_rx_revoke(rx);
		rx->status = TDM_WIRE_S_MEMORY;
		tdm_rx_arrived(rx);
	} else {
		rx->has_rid = 1;
		rx->want = rx->len;
		tdm_rx_answer(rx, TDM_WIRE_CTS);
	}
	return 0;
}

struct tdm_rx *tdm_rx_reading(struct tdm_conn *c, struct tdm_tx *op)
{
	struct tdm_wire_rec rec = { .op = TDM_WIRE_READ };
	struct tdm_rx *rx = tdm_rx_new(c, &rec);

	if (!rx)
		return NULL;
	if (tdm_rx_rid_ready(c) ||
	    tdm_ids_get(&c->busy->rids, rx, UINT32_MAX, &rx->rid)) {
		tdm_rx_free(rx);
		return NULL;
	}
	rx->has_rid = 1;
	tdm_rx_step(&rx->state, TDM_RX_READING);
	rx->len = op->len;
	rx->want = op->len;
	rx->room = op->len;
	rx->op = op;
	return rx;
}

/* No memory: the operation @rec will be handled again. */
static int again(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	c->busy->announced--;
	c->stats.rx_msgs--;
	c->stats.rx_bytes -= rec->len;
	return -TDM_RX_NO_MEMORY;
}

int tdm_rx_atomic(struct tdm_conn *c, const struct tdm_wire_rec *rec,
		  const uint8_t *p, size_t n)
{
	struct staged *staged;
	struct tdm_rx *rx;
	int ret;

	if (c->busy->announced >= c->announced_most)
		return -TDM_WIRE_E_CREDIT;
	if (c->tcp->closing)
		return 0;
	if (tdm_busy_need(c))
		return -TDM_RX_NO_MEMORY;
	c->busy->announced++;
	c->stats.rx_msgs++;
	c->stats.rx_bytes += rec->len;
	if (n >= rec->len) {
		ret = tdm_tx_atomic(c, rec, p);
		return ret ? again(c, rec) : (int)rec->len;
	}
	rx = tdm_rx_new(c, rec);
	staged = rx ? malloc(sizeof(*staged) + rec->len) : NULL;
	if (!staged) {
		if (rx)
			tdm_rx_free(rx);
		return again(c, rec);
	}
	staged->rec = *rec;
	rx->buf = (uint8_t *)staged;
	tdm_rx_step(&rx->state, TDM_RX_OPERANDS);
	rx->announced = 1;
	rx->len = rec->len;
	rx->want = rec->len;
	c->cur = rx;
	return 0;
}

void tdm_rx_keep_operands(struct tdm_rx *rx, const uint8_t *p, size_t n)
{
	struct staged *staged = (struct staged *)(void *)rx->buf;

	memcpy(staged->bytes + rx->got, p, n);
}

void tdm_rx_operands(struct tdm_rx *rx)
{
	const struct staged *staged = (struct staged *)(void *)rx->buf;

	(void)tdm_rx_stop(rx);
	if (!tdm_tx_atomic(rx->conn, &staged->rec, staged->bytes))
		return;
	rx->conn->busy->more_count = 0;
	rx->wants_done = 1;
	rx->status = TDM_WIRE_S_MEMORY;
}
