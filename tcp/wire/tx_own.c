/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends that have to wait: which of them wait for credit, and injects, whose
 * payload is copied.
 *
 * Invariant: a send that is complete once it is copied does not count against
 * tx_attr.size; instead FI_TANDEM_INJECT_MAX bounds the memory of such copies
 * in the process. So it does not depend on the receives of the peer whether an
 * inject succeeds.
 *
 * Lock: domain held.
 * Spec: fi_tandem(7), LIMITS.
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/inject.h"
#include "tcp/wire/credit.h"
#include "tcp/wire/tx_priv.h"

int tdm_tx_own(struct tdm_conn *c, struct tdm_tx *op)
{
	uint32_t bytes = (uint32_t)(sizeof(*op) + op->len);
	int spare = tdm_tx_ends_copied(op->flags);

	if (op->copy || (op->flags & FI_ATOMIC))
		return 0;
	if (spare && tdm_inject_take(bytes))
		return -FI_EAGAIN;
	op->copy = malloc(tdm_max(op->len, (size_t)1));
	if (!op->copy) {
		if (spare)
			tdm_inject_give(bytes);
		return -FI_ENOMEM;
	}
	if (spare) {
		op->spared = bytes;
		c->tcp->tx_used -= op->counted;
		op->counted = 0;
	}
	tdm_iov_copy_from(op->copy, op->iov, op->count, 0, op->len);
	op->iov[0].iov_base = op->copy;
	op->iov[0].iov_len = op->len;
	op->count = 1;
	return 0;
}

int tdm_tx_awaits_credit(struct tdm_conn *c, const struct tdm_tx *op)
{
	if (c->full || op->len > TDM_CREDIT_WAIT_BYTES || op->len > c->eager ||
	    !(c->features & TDM_WIRE_FEATURE_CREDIT))
		return 0;
	c->thirsty = 1;
	return 1;
}
