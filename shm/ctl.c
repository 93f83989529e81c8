/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control records. None is lost: one that finds no slot waits on pair->ctl, in
 * order. Messages leave TDM_SHM_TX_SPARE slots free for them, and wait behind them
 * (tx.c).
 *
 * Locking: domain lock held. Spec: doc/PROTOCOL-shm.md "Records".
 */
#include "shm/ctl.h"

#include <rdma/fi_errno.h>

#include "shm/amo.h"
#include "shm/bell.h"
#include "shm/ep.h"
#include "shm/progress.h"
#include "shm/rma.h"
#include "shm/tx.h"
#include "shm/unexp.h"

void tdm_shm_ctl_drop(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl)
{
	switch (ctl->kind) {
	case TDM_SHM_CTL_ALONE:
		tdm_pool_free(&pair->ep->ctls, ctl);
		break;
	case TDM_SHM_CTL_PULL:
		tdm_pool_free(&pair->ep->pulls,
			      tdm_container_of(ctl, struct tdm_shm_pull, ctl));
		break;
	case TDM_SHM_CTL_UNEXP:
		tdm_shm_unexp_free(
			tdm_container_of(ctl, struct tdm_shm_unexp, ctl));
		break;
	case TDM_SHM_CTL_SERVE:
		tdm_pool_free(&pair->ep->serves,
			      tdm_container_of(ctl, struct tdm_shm_serve, ctl));
		break;
	case TDM_SHM_CTL_RESULT:
		tdm_shm_amo_drop(pair, ctl);
		break;
	default:
		break;
	}
}

uint64_t tdm_shm_ctl_encode(const struct tdm_shm_ctl *ctl, uint8_t *slot)
{
	memcpy(slot + 8, &ctl->tag, 8);
	if (ctl->op == TDM_SHM_REC_PULL)
		memcpy(slot + TDM_SHM_HEAD_BYTES, &ctl->body,
		       sizeof(ctl->body));
	else if (ctl->op == TDM_SHM_REC_RTS_READ)
		tdm_shm_serve_write(ctl, slot + TDM_SHM_HEAD_BYTES);
	else if (ctl->op == TDM_SHM_REC_READ_DATA)
		tdm_shm_amo_write(ctl, slot + TDM_SHM_HEAD_BYTES);
	return tdm_shm_word0(0, ctl->op, 0, ctl->aux);
}

/* Write @ctl to the ring. Errors: -FI_EAGAIN: there is no room. */
static int ctl_write(struct tdm_shm_pair *pair, const struct tdm_shm_ctl *ctl)
{
	uint32_t n = ctl->op == TDM_SHM_REC_READ_DATA ?
			     tdm_shm_rec_slots(ctl->aux) :
			     1;
	uint8_t *slot = tdm_shm_tx_room(pair, n, 0);

	if (!slot)
		return -FI_EAGAIN;
	tdm_shm_ring_publish(&pair->tx, n, tdm_shm_ctl_encode(ctl, slot));
	tdm_shm_bell(pair);
	return 0;
}

void tdm_shm_ctl_send(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl)
{
	if (pair->broken || pair->state != TDM_SHM_PAIR_UP) {
		tdm_shm_ctl_drop(pair, ctl);
		return;
	}
	if (tdm_list_empty(&pair->ctl) && !ctl_write(pair, ctl)) {
		tdm_shm_ctl_drop(pair, ctl);
		return;
	}
	tdm_list_append(&pair->ctl, &ctl->node);
	tdm_shm_tx_hold(pair);
	tdm_shm_busy(pair);
}

void tdm_shm_ctl_flush(struct tdm_shm_pair *pair)
{
	while (!tdm_list_empty(&pair->ctl)) {
		struct tdm_shm_ctl *ctl = tdm_list_entry(
			pair->ctl.next, struct tdm_shm_ctl, node);

		if (ctl_write(pair, ctl)) {
			tdm_shm_tx_hold(pair);
			return;
		}
		tdm_list_del(&ctl->node);
		tdm_shm_ctl_drop(pair, ctl);
	}
}

int tdm_shm_ctl_goodbye(struct tdm_shm_pair *pair)
{
	const struct tdm_shm_ctl ctl = { .op = TDM_SHM_REC_GOODBYE };

	return tdm_list_empty(&pair->ctl) ? ctl_write(pair, &ctl) : -FI_EAGAIN;
}
