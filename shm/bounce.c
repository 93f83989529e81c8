/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large messages by copy: where the sender's memory cannot be read, the sender
 * copies the bytes to its bounce area, chunk by chunk, and the receiver copies
 * them out. The area is a ring of chunks, small, since the first use of its pages
 * is dear (ADR 12). The messages of a pair use it one after another, so that each ends
 * early, and short ones pass long ones.
 *
 * Invariants:
 *  1. The sender publishes chunks by a release store of bounce_produced, the
 *     receiver gives them back by one of bounce_consumed, each in its own
 *     segment. Both counters run freely, and each side checks their distance.
 *  2. The receiver copies a chunk's head; it must continue a pull of the
 *     receiver at its next byte, else the pair breaks. Chunks that name no pull
 *     are dropped: a pull may end while its sender still sends chunks to help.
 *  3. Sending chunks never blocks: those that do not fit wait for the next
 *     call.
 * Locking: domain lock held. Spec: doc/PROTOCOL-shm.md "Large messages".
 */
#include "shm/bounce.h"

#include <errno.h>

#include <rdma/fi_errno.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "shm/bell.h"
#include "shm/cma.h"
#include "shm/copy.h"
#include "shm/ctl.h"
#include "shm/ep.h"
#include "shm/lifeline.h"
#include "shm/progress.h"
#include "shm/rma.h"

enum {
	BOUNCE_BUDGET = 8,    /* chunks per pair and progress call */
	BOUNCE_HELP_MOST = 4, /* largest pair->help */
	BOUNCE_SHORT_BYTES =
		8 * TDM_SHM_CHUNK_BYTES, /* left of a short message */
	BOUNCE_LOOK = 16, /* messages among which a short one is looked for */
};

/* From one attempt to make an area to the next. */
static const uint64_t area_pause_ns = 1000 * 1000;

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
 * For an @op that was reported as aborted (tdm_shm_op_forget()), whose buffer
 * may have changed: makes the matched receive fail. Returns 0, or -1: no memory
 * for the FAIL record.
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
			const struct tdm_shm_pull_body *body, int may)
{
	struct tdm_shm_op *op = tdm_shm_op_find(pair, id);

	if (!op || op->flags & FI_READ || pair->self ||
	    tdm_shm_pull_check(body, op->len))
		return -1;
	if (tdm_unlikely(op->told && !op->copy))
		return may ? 0 : feed_none(pair, op);
	if (op->end && (may || op->must))
		return -1;
	if (!op->end) {
		op->at = body->offset;
		op->end = body->offset + body->bytes;
	}
	op->must = !may;
	if (tdm_list_empty(&pair->feeds))
		pair->area_since_ns = 0;
	if (op->at < op->end && !tdm_list_linked(&op->feed))
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

/* Called when the area cannot be made: stops helping. */
static void helps_end(struct tdm_shm_pair *pair)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &pair->feeds) {
		if (!tdm_list_entry(pos, struct tdm_shm_op, feed)->must)
			tdm_list_del(pos);
	}
}

/* Fail the messages that need chunks: the wait for an area is over. */
static void feeds_fail(struct tdm_shm_pair *pair)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &pair->feeds) {
		struct tdm_shm_op *op =
			tdm_list_entry(pos, struct tdm_shm_op, feed);
		struct tdm_shm_ctl *ctl = tdm_pool_alloc(&pair->ep->ctls);

		if (!ctl)
			return; /* the next call tries again */
		ctl->op = TDM_SHM_REC_FAIL;
		ctl->kind = TDM_SHM_CTL_ALONE;
		ctl->aux = 0;
		ctl->tag = tdm_shm_op_id(op);
		tdm_list_init(&ctl->node);
		tdm_shm_op_end(op, FI_ENOMEM);
		tdm_shm_ctl_send(pair, ctl);
	}
}

/*
 * Called when making the area has failed with @err: messages that need it wait,
 * for FI_TANDEM_CONN_TIMEOUT at most.
 */
static void area_failed(struct tdm_shm_pair *pair, int err)
{
	uint64_t now = tdm_os.now_ns(), since;

	helps_end(pair);
	if (tdm_list_empty(&pair->feeds))
		return;
	pair->area_at_ns = now + area_pause_ns;
	if (!pair->area_since_ns) {
		pair->area_since_ns = now;
		TDM_WARN(EP_DATA,
			 "no memory for a bounce area, large messages wait: %s",
			 fi_strerror(-err));
	}
	since = pair->area_since_ns;
	if (tdm_env.conn_timeout_ms &&
	    now - since >= tdm_env.conn_timeout_ms * 1000000ull)
		feeds_fail(pair);
}

/*
 * Not 0 when an operation of @pair needs chunks, because its memory cannot be
 * read.
 */
static int must_feed(const struct tdm_shm_pair *pair)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &pair->feeds) {
		if (tdm_list_entry(pos, struct tdm_shm_op, feed)->must)
			return 1;
	}
	return 0;
}

/*
 * Make the bounce area of @pair. Returns 0, or not 0: no chunk can be sent now.
 */
static int make_area(struct tdm_shm_pair *pair)
{
	int ret = -FI_ENOSPC;

	if (pair->area_at_ns && pair->area_at_ns > tdm_os.now_ns())
		return -FI_EAGAIN;
	if (pair->ep->nbounces < TDM_SHM_BOUNCES_MOST || must_feed(pair))
		ret = tdm_shm_lifeline_bounce(pair);
	/* The peer has closed the socket; the operations end with the pair. */
	if (ret == -EPIPE || ret == -ECONNRESET)
		tdm_shm_pair_break(pair, FI_ECONNRESET);
	else if (ret && ret != -FI_EAGAIN)
		area_failed(pair, ret);
	return ret;
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
		tdm_shm_put_iov(chunk_data(area, k), tdm_shm_op_iov(op),
				op->count, op->at, len, TDM_SHM_STRING_BYTES);
	}
	memcpy(chunk_head(area, k), &head, sizeof(head));
	op->at += len;
	pair->bounce_tx++;
	tdm_a64_store_release(&pair->own->bounce_produced, pair->bounce_tx);
	tdm_shm_bell(pair);
}

/*
 * Returns the operation that sends the next chunk: the first of pair->feeds, which is
 * not empty, and for every second chunk the first short one.
 */
static struct tdm_shm_op *next_feed(const struct tdm_shm_pair *pair)
{
	struct tdm_list *pos;
	int look = BOUNCE_LOOK;

	tdm_list_for_each(pos, &pair->feeds) {
		struct tdm_shm_op *op =
			tdm_list_entry(pos, struct tdm_shm_op, feed);

		if (!look-- || pair->bounce_tx % 2 == 0)
			break;
		if (op->end - op->at <= BOUNCE_SHORT_BYTES)
			return op;
	}
	return tdm_list_entry(pair->feeds.next, struct tdm_shm_op, feed);
}

void tdm_shm_bounce_push(struct tdm_shm_pair *pair)
{
	int room, budget = BOUNCE_BUDGET;

	if (!pair->sess->own_bounce.base && make_area(pair))
		return;
	room = tdm_shm_bounce_room(pair);
	while (room-- > 0 && budget-- > 0 && !tdm_list_empty(&pair->feeds)) {
		struct tdm_shm_op *op = next_feed(pair);

		put_chunk(pair, op);
		if (op->at == op->end)
			tdm_list_del(&op->feed);
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

		if (pull->rts.id == head->id && (pull->copy || pull->help))
			return pull;
	}
	return NULL;
}

static void give_back(struct tdm_shm_pair *pair)
{
	pair->bounce_rx++;
	tdm_a64_store_release(&pair->own->bounce_consumed, pair->bounce_rx);
	tdm_shm_bell_space(pair);
}

/*
 * Called when a chunk for @pull came: the peer helps, so it will be asked
 * again.
 */
static void helped(struct tdm_shm_pair *pair, struct tdm_shm_pull *pull)
{
	pair->chunk_ns = tdm_os.now_ns();
	if (!pair->help)
		pair->help = 1;
	if (!pull || pull->help != TDM_SHM_HELP_ASKED)
		return;
	pull->help = TDM_SHM_HELP_KNOWN;
	if (pair->help < BOUNCE_HELP_MOST)
		pair->help++;
}

/* Handle the oldest chunk. Returns 0, or -1: it is invalid. */
static int take_chunk(struct tdm_shm_pair *pair)
{
	struct tdm_shm_session *s = pair->sess;
	uint32_t k = (uint32_t)(pair->bounce_rx % s->peer_chunks);
	struct tdm_shm_chunk head;
	struct tdm_shm_pull *pull;
	size_t len;

	memcpy(&head, chunk_head(&s->peer_bounce, k), sizeof(head));
	pull = pull_of(pair, &head);
	helped(pair, pull);
	if (!pull) {
		/* Its message is complete already: drop the chunk. */
		give_back(pair);
		return 0;
	}
	if (tdm_shm_chunk_check(&head, pull->placed, pull->want - pull->placed))
		return -1;
	/* Only the region of a read can be closed at the sender. */
	if (head.status && !pull->op)
		return -1;
	if (tdm_shm_revoked(pair->ep, pull->entry))
		pull->refused = 1;
	len = tdm_min(head.len, pull->tail - pull->placed);
	if (!pull->refused)
		tdm_shm_pull_put(pull, chunk_data(&s->peer_bounce, k), len);
	pull->placed += head.len;
	give_back(pair);
	if (head.status)
		tdm_shm_pull_end(pull, FI_EACCES, (int)head.status);
	else if (pull->placed >= pull->tail)
		tdm_shm_pull_finish(pull);
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
	/*
	 * The peer sends the area before it publishes a chunk, so the area is
	 * in the lifeline by now; if not, the peer broke the protocol, or
	 * memory was out (-FI_EAGAIN).
	 */
	ret = tdm_shm_lifeline_area(pair);
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
