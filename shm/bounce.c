/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large messages by copy: where the sender's memory cannot be read, it puts
 * the bytes into its bounce area, chunk by chunk, and the receiver takes them
 * out. The area is a ring of chunks, larger than a core's L2 cache on
 * purpose; the transfers of a pair take turns in it.
 *
 * Invariants:
 *  1. Chunks are published by a release store of bounce_produced and given
 *     back by one of bounce_consumed, each in its writer's own segment; both
 *     run freely and are distance-checked.
 *  2. A chunk's head is copied and must continue a fetch of ours exactly
 *     where it stands; everything else breaks the pair.
 *  3. Feeding never blocks: what does not fit waits for the next call.
 * Locking: domain lock held. Spec: doc/PROTOCOL-shm.md "Large messages".
 */
#include <rdma/fi_errno.h>

#include "shm/path.h"
#include "shm/rma.h"
#include "tdm_log.h"

enum { BOUNCE_BUDGET = 8 }; /* chunks per pair and progress call */

static uint8_t *chunk_data(const struct tdm_shm_region *area, uint32_t k)
{
	return (uint8_t *)area->base + ((size_t)k + 1) * TDM_SHM_CHUNK_BYTES;
}

static struct tdm_shm_chunk *chunk_head(const struct tdm_shm_region *area,
					uint32_t k)
{
	return (struct tdm_shm_chunk *)area->base + k;
}

/* ---- sender -------------------------------------------------------------- */

/*
 * The buffer of @op is the application's again (tdm_shm_tx_forget()): the
 * receive that matched it fails. Returns 0, or -1: no memory to say so.
 */
static int feed_none(struct tdm_shm_pair *pair, struct tdm_shm_op *op)
{
	struct tdm_shm_ctl *ctl = tdm_pool_alloc(&pair->ep->ctls);

	if (!ctl)
		return -1;
	ctl->op = TDM_SHM_REC_FAIL;
	ctl->kind = TDM_SHM_CTL_ALONE;
	ctl->aux = 0;
	ctl->tag = tdm_shm_op_id(op);
	tdm_list_init(&ctl->node);
	tdm_shm_op_end(op, FI_ECONNABORTED);
	tdm_shm_ctl_send(pair, ctl);
	return 0;
}

int tdm_shm_bounce_feed(struct tdm_shm_pair *pair, uint64_t id,
			const struct tdm_shm_pull_body *body)
{
	struct tdm_shm_op *op = tdm_shm_op_find(pair, id);

	if (!op || op->flags & FI_READ || op->end || pair->self ||
	    tdm_shm_pull_check(body, op->len))
		return -1;
	if (tdm_unlikely(op->told && !op->copy))
		return feed_none(pair, op);
	op->at = body->offset;
	op->end = body->offset + body->bytes;
	tdm_list_append(&pair->feeds, &op->feed);
	tdm_shm_busy(pair);
	return 0;
}

int tdm_shm_bounce_room(struct tdm_shm_pair *pair)
{
	uint64_t got = tdm_a64_load_acquire(&pair->peer->bounce_consumed);

	if (got - pair->bounce_credit > pair->bounce_tx - pair->bounce_credit) {
		tdm_shm_pair_break(pair, FI_EPROTO);
		return 0;
	}
	pair->bounce_credit = got;
	return TDM_SHM_BOUNCE_CHUNKS -
	       (int)(pair->bounce_tx - pair->bounce_credit);
}

/* No memory for the area: the messages fail, on both sides. */
static void feeds_fail(struct tdm_shm_pair *pair)
{
	struct tdm_list *node;

	TDM_WARN(EP_DATA, "no memory for a bounce area, messages fail");
	while (!tdm_list_empty(&pair->feeds)) {
		struct tdm_shm_ctl *ctl = tdm_pool_alloc(&pair->ep->ctls);
		struct tdm_shm_op *op;

		if (!ctl)
			return; /* tried again at the next call */
		node = tdm_list_pop(&pair->feeds);
		op = tdm_list_entry(node, struct tdm_shm_op, feed);
		ctl->op = TDM_SHM_REC_FAIL;
		ctl->kind = TDM_SHM_CTL_ALONE;
		ctl->aux = 0;
		ctl->tag = tdm_shm_op_id(op);
		tdm_list_init(&ctl->node);
		tdm_shm_op_end(op, FI_ENOMEM);
		tdm_shm_ctl_send(pair, ctl);
	}
}

static void put_chunk(struct tdm_shm_pair *pair, struct tdm_shm_op *op)
{
	const struct tdm_shm_region *area = &pair->sess->own_bounce;
	uint32_t k = (uint32_t)(pair->bounce_tx % TDM_SHM_BOUNCE_CHUNKS);
	size_t len = tdm_min(op->end - op->at, TDM_SHM_CHUNK_BYTES);
	struct tdm_shm_chunk head = {
		.id = tdm_shm_op_id(op),
		.offset = op->at,
		.len = (uint32_t)len,
	};

	if (op->flags & FI_REMOTE_READ &&
	    tdm_shm_revoked(pair->ep, tdm_shm_serve_of(op)->entry)) {
		head.status = TDM_SHM_STATUS_ACCESS;
		head.len = 0;
		len = op->end - op->at;
	} else {
		tdm_iov_copy_from(chunk_data(area, k), op->iov, op->count,
				  op->at, len);
	}
	memcpy(chunk_head(area, k), &head, sizeof(head));
	op->at += len;
	pair->bounce_tx++;
	tdm_a64_store_release(&pair->own->bounce_produced, pair->bounce_tx);
	tdm_shm_bell(pair);
}

void tdm_shm_bounce_push(struct tdm_shm_pair *pair)
{
	int room, budget = BOUNCE_BUDGET;

	if (!pair->sess->own_bounce.base) {
		int ret = tdm_shm_life_bounce(pair);

		if (ret && ret != -FI_EAGAIN)
			feeds_fail(pair);
		if (ret)
			return;
	}
	room = tdm_shm_bounce_room(pair);
	while (room-- > 0 && budget-- > 0 && !tdm_list_empty(&pair->feeds)) {
		struct tdm_list *node = tdm_list_pop(&pair->feeds);
		struct tdm_shm_op *op =
			tdm_list_entry(node, struct tdm_shm_op, feed);

		put_chunk(pair, op);
		if (op->at < op->end)
			tdm_list_append(&pair->feeds, &op->feed);
	}
}

/* ---- receiver ------------------------------------------------------------ */

int tdm_shm_bounce_there(const struct tdm_shm_pair *pair)
{
	return tdm_a64_load_acquire(&pair->peer->bounce_produced) !=
	       pair->bounce_rx;
}

static struct tdm_shm_pull *pull_of(struct tdm_shm_pair *pair,
				    const struct tdm_shm_chunk *head)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &pair->pulls) {
		struct tdm_shm_pull *pull =
			tdm_list_entry(pos, struct tdm_shm_pull, node);

		if (pull->rts.id == head->id && pull->copy)
			return pull;
	}
	return NULL;
}

/* Returns 0, or -1: not a chunk of ours. */
static int take_chunk(struct tdm_shm_pair *pair)
{
	struct tdm_shm_session *s = pair->sess;
	uint32_t k = (uint32_t)(pair->bounce_rx % s->peer_chunks);
	struct tdm_shm_chunk head;
	struct tdm_shm_pull *pull;

	memcpy(&head, chunk_head(&s->peer_bounce, k), sizeof(head));
	pull = pull_of(pair, &head);
	if (!pull ||
	    tdm_shm_chunk_check(&head, pull->done, pull->want - pull->done))
		return -1;
	/* Only a region a read comes from can be closed at the sender. */
	if (head.status && !pull->op)
		return -1;
	if (tdm_shm_revoked(pair->ep, pull->entry))
		pull->refused = 1;
	if (!pull->refused)
		tdm_iov_copy_to(pull->iov, pull->count, pull->done,
				chunk_data(&s->peer_bounce, k), head.len);
	pull->done += head.len;
	pair->bounce_rx++;
	tdm_a64_store_release(&pair->own->bounce_consumed, pair->bounce_rx);
	tdm_shm_bell_space(pair);
	if (head.status)
		tdm_shm_pull_end(pull, FI_EACCES, (int)head.status);
	else if (pull->done == pull->want)
		tdm_shm_pull_end(pull, 0, TDM_SHM_STATUS_OK);
	return 0;
}

void tdm_shm_bounce_pop(struct tdm_shm_pair *pair)
{
	struct tdm_shm_session *s = pair->sess;
	int budget = BOUNCE_BUDGET, ret;
	uint64_t produced;

	if (!s)
		return;
	produced = tdm_a64_load_acquire(&pair->peer->bounce_produced);
	if (produced == pair->bounce_rx)
		return;
	/* The area was handed over before the first chunk was published. */
	ret = tdm_shm_life_area(pair);
	if (ret == -FI_EAGAIN)
		return;
	if (ret || produced - pair->bounce_rx > s->peer_chunks) {
		tdm_shm_pair_break(pair, FI_EPROTO);
		return;
	}
	while (pair->bounce_rx != produced && budget-- > 0) {
		if (take_chunk(pair)) {
			tdm_shm_pair_break(pair, FI_EPROTO);
			return;
		}
	}
}
