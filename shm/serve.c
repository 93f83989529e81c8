/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads at their target: READ_DATA with the bytes, or RTS_READ, after which the
 * initiator pulls them and asks by an ACK whether the region is still open.
 * rma.c has the other side and the records.
 *
 * Invariants:
 *  1. A serve holds the region's entry until the last answer.
 *  2. Bytes that find no room in the ring are copied when the READ is handled:
 *     a later operation must not change them.
 * Locking: domain lock held. Spec: doc/PROTOCOL-shm.md "One-sided operations".
 */
#include "shm/serve.h"

#include <rdma/fi_errno.h>

#include "shm/amo.h"
#include "shm/bell.h"
#include "shm/copy.h"
#include "shm/ctl.h"
#include "shm/grow.h"
#include "shm/rma.h"
#include "shm/tx.h"

struct tdm_shm_op *tdm_shm_serve_find(struct tdm_shm_pair *pair, uint64_t id)
{
	struct tdm_list *pos;

	/* Serves end about in order: usually it is the first. */
	tdm_list_for_each(pos, &pair->serves) {
		struct tdm_shm_op *op =
			tdm_list_entry(pos, struct tdm_shm_op, node);

		if (op->gen == id >> 32 && (uint32_t)id == TDM_SHM_ID_SERVED)
			return op;
	}
	return NULL;
}

/* Remove @s from its pair and give the region's entry back. */
static void serve_settle(struct tdm_shm_serve *s)
{
	struct tdm_shm_pair *pair = s->op.pair;

	tdm_list_del(&s->op.node);
	tdm_list_del(&s->op.feed);
	tdm_list_del(&s->ctl.node);
	pair->nserves--;
	if (s->entry && pair->ep->srx)
		pair->ep->srx->owner_ops->free_entry(s->entry);
}

void tdm_shm_serve_drop(struct tdm_shm_op *op)
{
	struct tdm_shm_serve *s = tdm_shm_serve_of(op);

	serve_settle(s);
	tdm_pool_free(&op->pair->ep->serves, s);
}

/* Send the final ACK of @s. */
static void serve_end(struct tdm_shm_serve *s, unsigned status)
{
	struct tdm_shm_pair *pair = s->op.pair;

	if (status == TDM_SHM_STATUS_OK) {
		pair->tx_msgs++;
		pair->tx_bytes += s->op.len;
		tdm_done_recv(&pair->ep->done, s->entry, s->op.len);
	}
	serve_settle(s);
	s->ctl.kind = TDM_SHM_CTL_SERVE;
	tdm_shm_rma_answer(pair, &s->ctl, s->peer_id, status);
}

void tdm_shm_serve_confirm(struct tdm_shm_op *op, unsigned status)
{
	struct tdm_shm_serve *s = tdm_shm_serve_of(op);

	serve_end(s, tdm_shm_revoked(op->pair->ep, s->entry) ?
			     TDM_SHM_STATUS_ACCESS :
			     status);
}

void tdm_shm_serve_write(const struct tdm_shm_ctl *ctl, uint8_t *body)
{
	const struct tdm_shm_serve *s =
		tdm_container_of(ctl, struct tdm_shm_serve, ctl);
	struct tdm_shm_rts rts;

	tdm_shm_rts_of(&rts, &s->op);
	tdm_shm_rts_put(body, &rts);
}

static struct tdm_shm_serve *serve_alloc(struct tdm_shm_pair *pair)
{
	struct tdm_shm_serve *s = tdm_pool_alloc(&pair->ep->serves);

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	tdm_list_init(&s->ctl.node);
	tdm_list_init(&s->op.feed);
	tdm_list_init(&s->op.node);
	tdm_list_append(&pair->serves, &s->op.node);
	pair->nserves++;
	s->op.pair = pair;
	s->op.flags = FI_RMA | FI_REMOTE_READ;
	s->op.gen = pair->next_serve++;
	return s;
}

/* Answer with the bytes in a READ_DATA. Returns 1, or 0: not possible now. */
static int serve_eager(struct tdm_shm_serve *s)
{
	struct tdm_shm_pair *pair = s->op.pair;
	size_t len = s->op.len;
	uint32_t n;
	uint8_t *slot;

	tdm_shm_grow(pair, len);
	if (len > pair->eager_most || !tdm_list_empty(&pair->ctl))
		return 0;
	n = tdm_shm_rec_slots(len);
	slot = tdm_shm_tx_room(pair, n, TDM_SHM_TX_SPARE);
	if (!slot)
		return 0;
	memcpy(slot + 8, &s->peer_id, 8);
	tdm_shm_put_iov(slot + TDM_SHM_HEAD_BYTES, tdm_shm_op_iov(&s->op),
			s->op.count, 0, len, TDM_SHM_STRING_BYTES);
	tdm_shm_ring_publish(&pair->tx, n,
			     tdm_shm_word0(0, TDM_SHM_REC_READ_DATA, 0,
					   (uint16_t)len));
	tdm_shm_bell(pair);
	pair->tx_msgs++;
	pair->tx_bytes += len;
	tdm_done_recv(&pair->ep->done, s->entry, len);
	tdm_shm_serve_drop(&s->op);
	return 1;
}

/*
 * Called when a short answer finds no room: copies the bytes, since later
 * operations must not change them. Returns 0, or -FI_EAGAIN: the READ stays in
 * the ring.
 */
static int serve_sample(struct tdm_shm_serve *s)
{
	struct tdm_shm_pair *pair = s->op.pair;
	struct tdm_shm_ctl *ctl;
	size_t len = s->op.len;
	uint8_t *bytes;

	ctl = tdm_shm_result_new(pair, len, &bytes);
	if (!ctl) {
		tdm_shm_serve_drop(&s->op);
		return -FI_EAGAIN;
	}
	tdm_iov_copy_from(bytes, tdm_shm_op_iov(&s->op), s->op.count, 0, len);
	ctl->op = TDM_SHM_REC_READ_DATA;
	ctl->aux = (uint16_t)len;
	ctl->tag = s->peer_id;
	pair->tx_msgs++;
	pair->tx_bytes += len;
	tdm_done_recv(&pair->ep->done, s->entry, len);
	tdm_shm_serve_drop(&s->op);
	tdm_shm_ctl_send(pair, ctl);
	return 0;
}

int tdm_shm_serve_rx(struct tdm_shm_pair *pair, const uint8_t *slot)
{
	struct fi_peer_rx_entry *entry;
	struct tdm_rma_request req;
	struct tdm_shm_read body;
	struct tdm_shm_serve *s;
	int ret;

	memcpy(&body, slot + TDM_SHM_HEAD_BYTES, sizeof(body));
	if (tdm_shm_read_check(&body) || pair->nserves >= TDM_SHM_SERVES_MOST)
		return -FI_EPROTO;
	s = serve_alloc(pair);
	if (!s)
		return -FI_EAGAIN;
	memcpy(&s->peer_id, slot + 8, 8);
	tdm_shm_rma_request(&req, pair, &body.where, FI_REMOTE_READ);
	req.len = body.len;
	ret = tdm_shm_rma_region(pair, &req, &entry);
	if (ret == -FI_EAGAIN) {
		tdm_shm_serve_drop(&s->op);
		return ret;
	}
	if (ret) {
		serve_end(s, TDM_SHM_STATUS_ACCESS);
		return 0;
	}
	s->entry = entry;
	s->op.len = body.len;
	s->op.count = (uint32_t)entry->count;
	if (entry->count <= TDM_IOV_LIMIT)
		memcpy(s->op.iov, entry->iov,
		       entry->count * sizeof(*entry->iov));
	if (serve_eager(s))
		return 0;
	if (body.len <= TDM_SAMPLE_BYTES)
		return serve_sample(s);
	s->ctl.op = TDM_SHM_REC_RTS_READ;
	s->ctl.kind = TDM_SHM_CTL_KEEP;
	s->ctl.tag = s->peer_id;
	tdm_shm_ctl_send(pair, &s->ctl);
	return 0;
}
