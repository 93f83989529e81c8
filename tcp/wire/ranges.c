/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on several ranges at the target: a RANGE for each but the first
 * precedes the record of the operation. The target keeps them until that
 * record.
 *
 * Invariant: no record comes between the RANGEs and their operation: all are
 * written to the transmit buffer together. A record that is handled again,
 * after a lack of memory, finds c->busy->more unchanged.
 *
 * Lock: domain held.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "tcp/wire/rma.h"
#include "tcp/wire/rx_msg.h"
#include "tcp/wire/out.h"
#include "tcp/wire/tx_priv.h"

int tdm_tx_take_ranges(struct tdm_tx *op, const struct tdm_xfer *x)
{
	size_t bytes = x->more_count * sizeof(*x->more);

	op->more = malloc(bytes);
	if (!op->more)
		return -FI_ENOMEM;
	memcpy(op->more, x->more, bytes);
	op->more_count = (uint32_t)x->more_count;
	return 0;
}

void tdm_tx_put_ranges(struct tdm_conn *c, const struct tdm_tx *op)
{
	struct tdm_out *out = c->out;
	struct tdm_wire_rec rec;
	uint32_t i;

	memset(&rec, 0, sizeof(rec));
	rec.op = TDM_WIRE_RANGE;
	for (i = 0; i < op->more_count; i++) {
		rec.key = op->more[i].key;
		rec.addr = op->more[i].addr;
		rec.total = op->more[i].len;
		out->tail +=
			(uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	}
}

int tdm_rx_range(struct tdm_conn *c, const struct tdm_wire_rec *rec)
{
	struct fi_rma_iov *range;

	if (c->busy->more_count == TDM_RMA_IOV_LIMIT - 1)
		return -TDM_WIRE_E_STATE;
	if (tdm_busy_need(c))
		return -TDM_RX_NO_MEMORY;
	if (!c->busy->more)
		c->busy->more =
			calloc(TDM_RMA_IOV_LIMIT - 1, sizeof(*c->busy->more));
	if (!c->busy->more)
		return -TDM_RX_NO_MEMORY;
	range = &c->busy->more[c->busy->more_count++];
	range->key = rec->key;
	range->addr = rec->addr;
	range->len = rec->total;
	return 0;
}
