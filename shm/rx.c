/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving: takes records from the ring, offers messages to the owner's SRX.
 *
 * Invariants:
 *  1. A record's head is copied and validated before it is used. Payload is
 *     copied straight to the receive buffer, by the validated length; a peer
 *     that changes it meanwhile spoils only its own message.
 *  2. The receiver steps over a record only when it has handled it completely;
 *     when memory is out, the record stays and is tried again.
 *  3. Messages are offered to the SRX in ring order; one whose bytes are being
 *     fetched does not delay those after it.
 *  4. For each entry the completion is written first, then free_entry() is
 *     called, each once (fi_peer(3)).
 *  5. Entries that the owner has queued belong to it: only start and discard
 *     use them, through entry->peer_context.
 * Locking: domain lock held. Spec: fi_peer(3) PEER SRX,
 * doc/PROTOCOL-shm.md "Records".
 */
#include "shm/rx.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "shm/bell.h"
#include "shm/bounce.h"
#include "shm/cma.h"
#include "shm/copy.h"
#include "shm/ctl.h"
#include "shm/ctx.h"
#include "shm/ep.h"
#include "shm/lifeline.h"
#include "shm/rma.h"
#include "shm/unexp.h"

/* ---- eager messages ------------------------------------------------------ */

static inline int srx_get(const struct tdm_shm_pair *pair, int tagged,
			  struct fi_peer_match_attr *attr,
			  struct fi_peer_rx_entry **entry)
{
	struct fid_peer_srx *srx = pair->srx;

	if (tdm_unlikely(!srx))
		return -FI_EAGAIN;
	return tagged ? srx->owner_ops->get_tag(srx, attr, entry) :
			srx->owner_ops->get_msg(srx, attr, entry);
}

/* Returns the offer for the record at @slot: a message of @len bytes. */
static inline struct tdm_offer offer_of(const struct tdm_shm_pair *pair,
					const uint8_t *slot, size_t len)
{
	struct tdm_offer offer;

	offer.attr.addr = pair->from;
	offer.attr.msg_size = len;
	memcpy(&offer.attr.tag, slot + 8, 8);
	offer.from = (const struct sockaddr *)(const void *)pair->addr.sa;
	return offer;
}

/* Place a message in several buffers, or in one too short for it, fi_cq(3). */
static tdm_noinline void eager_scatter(struct tdm_shm_pair *pair,
				       struct fi_peer_rx_entry *entry,
				       const void *payload, size_t len)
{
	size_t n = tdm_iov_copy_to(entry->iov, entry->count, 0, payload, len);
	struct tdm_result r = tdm_truncated(n, len - n);

	r = tdm_result_of(r, pair->addr.sa);
	if (n == len)
		tdm_done_recv(&pair->ep->done, entry, len);
	else
		tdm_done_recv_err(&pair->ep->done, entry, r);
}

/* Copy the payload to the receive and complete it. */
static tdm_always_inline void eager_place_now(struct tdm_shm_pair *pair,
					      struct fi_peer_rx_entry *entry,
					      const void *payload, size_t len)
{
	struct tdm_shm_ep *ep = pair->ep;

	pair->rx_msgs++;
	pair->rx_bytes += len;
	if (tdm_likely(entry->count == 1 && len <= entry->iov[0].iov_len)) {
		tdm_shm_copy(entry->iov[0].iov_base, payload, len);
		tdm_done_recv(&ep->done, entry, len);
	} else {
		eager_scatter(pair, entry, payload, len);
	}
	ep->srx->owner_ops->free_entry(entry);
}

static tdm_noinline void eager_place(struct tdm_shm_pair *pair,
				     struct fi_peer_rx_entry *entry,
				     const void *payload, size_t len)
{
	eager_place_now(pair, entry, payload, len);
}

static tdm_noinline int eager_queue(struct tdm_shm_pair *pair,
				    struct fi_peer_rx_entry *entry, int tagged,
				    const void *payload, size_t len)
{
	struct tdm_shm_ep *ep = pair->ep;
	struct tdm_shm_unexp *u = tdm_shm_unexp_alloc(pair, len);

	if (!u) {
		ep->srx->owner_ops->free_entry(entry);
		return -FI_EAGAIN;
	}
	memcpy(u->data, payload, len);
	entry->peer_context = u;
	entry->msg_size = len;
	if (tagged)
		ep->srx->owner_ops->queue_tag(entry);
	else
		ep->srx->owner_ops->queue_msg(entry);
	tdm_shm_unexp_kept(pair);
	return 0;
}

static void answer(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl,
		   uint64_t id, enum tdm_shm_status status)
{
	ctl->op = TDM_SHM_REC_ACK;
	ctl->aux = (uint16_t)status;
	ctl->tag = id;
	tdm_list_init(&ctl->node);
	tdm_shm_ctl_send(pair, ctl);
}

static void deliver_ack(struct tdm_shm_pair *pair, struct tdm_shm_ctl *ctl,
			uint64_t id)
{
	answer(pair, ctl, id, TDM_SHM_STATUS_OK);
}

/* The sender wants an ACK after placement: allocate the ACK first. */
static int rx_eager_deliver(struct tdm_shm_pair *pair,
			    const struct tdm_shm_rec *rec,
			    struct fi_peer_match_attr *attr,
			    const uint8_t *body)
{
	const uint8_t *payload = body + rec->extra;
	int tagged = rec->op == TDM_SHM_REC_TAG, ret;
	struct tdm_shm_ctl *ctl = tdm_pool_alloc(&pair->ep->ctls);
	struct fi_peer_rx_entry *entry;
	uint64_t id;

	if (!ctl)
		return -FI_EAGAIN;
	ctl->kind = TDM_SHM_CTL_ALONE;
	memcpy(&id, body + (rec->flags & TDM_SHM_REC_DATA ? 8 : 0), 8);
	ret = srx_get(pair, tagged, attr, &entry);
	if (ret && ret != -FI_ENOENT) {
		tdm_pool_free(&pair->ep->ctls, ctl);
		return -FI_EAGAIN;
	}
	if (rec->flags & TDM_SHM_REC_DATA) {
		entry->flags |= FI_REMOTE_CQ_DATA;
		memcpy(&entry->cq_data, body, 8);
	}
	if (!ret) {
		eager_place(pair, entry, payload, rec->aux);
		deliver_ack(pair, ctl, id);
		return 0;
	}
	tdm_pool_free(&pair->ep->ctls, ctl);
	ret = eager_queue(pair, entry, tagged, payload, rec->aux);
	if (!ret) {
		struct tdm_shm_unexp *u = entry->peer_context;

		u->deliver = 1;
		u->ctl.kind = TDM_SHM_CTL_UNEXP;
		u->ctl.tag = id;
	}
	return ret;
}

/*
 * Handle the message in @slot, with @flags, 0 or TDM_SHM_REC_DATA: @len bytes at
 * @payload.
 */
static tdm_always_inline int rx_plain(struct tdm_shm_pair *pair, int tagged,
				      uint8_t flags, const uint8_t *slot,
				      const uint8_t *payload, size_t len)
{
	struct tdm_offer offer = offer_of(pair, slot, len);
	struct fi_peer_rx_entry *entry;
	int ret;

	ret = srx_get(pair, tagged, &offer.attr, &entry);
	if (tdm_unlikely(ret && ret != -FI_ENOENT))
		return -FI_EAGAIN;
	if (flags) {
		entry->flags |= FI_REMOTE_CQ_DATA;
		memcpy(&entry->cq_data, slot + TDM_SHM_HEAD_BYTES, 8);
	}
	if (tdm_likely(!ret)) {
		eager_place_now(pair, entry, payload, len);
		return 0;
	}
	return eager_queue(pair, entry, tagged, payload, len);
}

static int rx_eager(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		    const uint8_t *slot)
{
	const uint8_t *body = slot + TDM_SHM_HEAD_BYTES;
	const uint8_t *payload = body + rec->extra;
	struct tdm_offer offer;

	if (!(rec->flags & TDM_SHM_REC_DELIVER))
		return rx_plain(pair, rec->op == TDM_SHM_REC_TAG, rec->flags,
				slot, payload, rec->aux);
	offer = offer_of(pair, slot, rec->aux);
	return rx_eager_deliver(pair, rec, &offer.attr, body);
}

/* ---- announced messages -------------------------------------------------- */

static int rts_queue(struct tdm_shm_pair *pair, struct fi_peer_rx_entry *entry,
		     struct tdm_shm_pull *pull, int tagged)
{
	struct tdm_shm_ep *ep = pair->ep;
	struct tdm_shm_unexp *u = tdm_shm_unexp_announced(pull);

	if (!u) {
		ep->srx->owner_ops->free_entry(entry);
		return -FI_EAGAIN;
	}
	u->entry = entry;
	entry->peer_context = u;
	entry->msg_size = pull->rts.len;
	if (tagged)
		ep->srx->owner_ops->queue_tag(entry);
	else
		ep->srx->owner_ops->queue_msg(entry);
	return 0;
}

static int rx_rts(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		  const uint8_t *slot)
{
	int tagged = rec->op == TDM_SHM_REC_RTS_TAG, ret;
	struct tdm_shm_ep *ep = pair->ep;
	struct tdm_offer offer;
	struct fi_peer_rx_entry *entry;
	struct tdm_shm_pull *pull;

	/* A sender stops at this number: the peer broke the protocol. */
	if (tdm_unlikely(pair->waiting >= ep->announced_most))
		return -FI_EPROTO;
	pull = tdm_pool_alloc(&ep->pulls);
	if (!pull)
		return -FI_EAGAIN;
	memset(pull, 0, sizeof(*pull));
	tdm_list_init(&pull->ctl.node);
	tdm_list_init(&pull->node);
	pull->pair = pair;
	pull->turn = ++pair->rts_heard;
	tdm_shm_rts_get(&pull->rts, slot + TDM_SHM_HEAD_BYTES);
	ret = -FI_EPROTO;
	if (tdm_shm_rts_check(&pull->rts))
		goto drop;
	offer = offer_of(pair, slot, pull->rts.len);
	ret = srx_get(pair, tagged, &offer.attr, &entry);
	if (ret && ret != -FI_ENOENT) {
		ret = -FI_EAGAIN;
		goto drop;
	}
	if (rec->flags & TDM_SHM_REC_DATA) {
		entry->flags |= FI_REMOTE_CQ_DATA;
		entry->cq_data = pull->rts.data;
	}
	if (ret) {
		ret = rts_queue(pair, entry, pull, tagged);
		if (ret)
			goto drop;
		return 0;
	}
	pull->entry = entry;
	tdm_shm_pull_start(pull);
	return 0;
drop:
	pair->rts_heard--; /* it will be handled again */
	tdm_pool_free(&ep->pulls, pull);
	return ret;
}

/* ---- control records ----------------------------------------------------- */

/*
 * Handle MOVED: continue in the next ring. The peer sent that ring's memory
 * before it wrote this record, so it can be read now.
 */
static int rx_moved(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		    uint64_t gen)
{
	struct tdm_shm_session *s = pair->sess;
	int ret = tdm_shm_lifeline_next(pair);

	if (ret)
		return ret;
	if (s->next_slots != rec->aux || gen != pair->rx.gen + 1)
		return -FI_EPROTO;
	tdm_shm_ring_step(&pair->rx, 1);
	tdm_shm_region_fini(&s->peer_ring);
	s->peer_ring = s->next_ring;
	memset(&s->next_ring, 0, sizeof(s->next_ring));
	tdm_shm_ring_rx_init(&pair->rx,
			     (const uint8_t *)s->peer_ring.base +
				     sizeof(struct tdm_shm_seg),
			     s->next_slots);
	s->next_slots = 0;
	pair->rx.gen++;
	return 0;
}

static int rx_fail(struct tdm_shm_pair *pair, uint64_t id)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &pair->pulls) {
		struct tdm_shm_pull *pull =
			tdm_list_entry(pos, struct tdm_shm_pull, node);

		if (pull->rts.id == id && pull->copy) {
			tdm_shm_pull_refused(pull);
			return 0;
		}
	}
	return -FI_EPROTO;
}

/*
 * The sender cancels the message @id (FAIL with aux 1): if no receive has
 * matched it, drop it and answer with STATUS_ACCESS; else do nothing.
 */
static void rx_cancel(struct tdm_shm_pair *pair, uint64_t id)
{
	struct tdm_shm_ep *ep = pair->ep;
	struct tdm_list_ends ends;
	struct tdm_list *pos;

	tdm_list_ends_init(&ends, &ep->unexps);
	while ((pos = tdm_list_ends_next(&ends))) {
		struct tdm_shm_unexp *u =
			tdm_list_entry(pos, struct tdm_shm_unexp, node);
		struct tdm_shm_pull *pull = u->pull;

		if (u->pair != pair || u->epoch != pair->epoch || !pull ||
		    pull->rts.id != id || !u->entry)
			continue;
		ep->srx->owner_ops->free_entry(u->entry);
		tdm_shm_unexp_free(u);
		pull->ctl.kind = TDM_SHM_CTL_PULL;
		answer(pair, &pull->ctl, id, TDM_SHM_STATUS_ACCESS);
		return;
	}
}

/*
 * Handle a control record. Returns 0: the caller steps over it; 1: it was
 * stepped over; -FI_EAGAIN: try again later; else the pair is broken.
 */
static int rx_control(struct tdm_shm_pair *pair, const struct tdm_shm_rec *rec,
		      const uint8_t *slot)
{
	struct tdm_shm_pull_body body;
	uint64_t tag;
	int ret;

	memcpy(&tag, slot + 8, 8);
	switch (rec->op) {
	case TDM_SHM_REC_PAD:
		return 0;
	case TDM_SHM_REC_ACK:
		return tdm_shm_op_ack(pair, tag, rec->aux) ? -FI_EPROTO : 0;
	case TDM_SHM_REC_PULL:
		memcpy(&body, slot + TDM_SHM_HEAD_BYTES, sizeof(body));
		return tdm_shm_bounce_feed(pair, tag, &body, rec->aux) ?
			       -FI_EPROTO :
			       0;
	case TDM_SHM_REC_FAIL:
		if (rec->aux) {
			rx_cancel(pair, tag);
			return 0;
		}
		return rx_fail(pair, tag);
	case TDM_SHM_REC_MOVED:
		ret = rx_moved(pair, rec, tag);
		return ret ? ret : 1;
	case TDM_SHM_REC_SELECT:
		return tdm_shm_ctx_select(pair, rec->aux, tag) ? -FI_EPROTO : 0;
	case TDM_SHM_REC_GOODBYE:
		return -FI_ESHUTDOWN;
	case TDM_SHM_REC_RANGES:
		return tdm_shm_ranges_rx(pair, rec, slot);
	default: /* the decoder passes no others */
		ret = tdm_shm_rma_rx(pair, rec, slot);
		if (!ret)
			pair->more_count = 0;
		return ret;
	}
}

/* ---- the ring ------------------------------------------------------------ */

static tdm_noinline int rx_other(struct tdm_shm_pair *pair, uint64_t word0)
{
	const uint8_t *slot = tdm_shm_ring_slot(&pair->rx);
	struct tdm_shm_rec rec;
	int ret;

	if (tdm_shm_rec_decode(&rec, word0, pair->rx.count - pair->rx.idx))
		return -FI_EPROTO;
	if (tdm_likely(rec.op <= TDM_SHM_REC_TAG))
		ret = rx_eager(pair, &rec, slot);
	else if (rec.op <= TDM_SHM_REC_RTS_TAG)
		ret = rx_rts(pair, &rec, slot);
	else
		ret = rx_control(pair, &rec, slot);
	if (!ret)
		tdm_shm_ring_step(&pair->rx, rec.slots);
	return ret < 0 ? ret : 0;
}

int tdm_shm_rx_left(struct tdm_shm_pair *pair, const uint8_t *record,
		    size_t len)
{
	struct tdm_shm_rec rec;
	uint64_t word0;

	memcpy(&word0, record, sizeof(word0));
	if (tdm_shm_left_decode(&rec, word0, len))
		return -FI_EPROTO;
	return rx_control(pair, &rec, record);
}

/* Handle a record that tdm_shm_word_small() accepts. Returns as rx_record(). */
static tdm_always_inline int rx_small(struct tdm_shm_pair *pair, uint64_t word0,
				      uint8_t flags)
{
	const uint8_t *slot = tdm_shm_ring_slot(&pair->rx);
	size_t head = TDM_SHM_HEAD_BYTES + tdm_shm_rec_extra(flags);
	size_t len = tdm_shm_word_aux(word0);
	int ret;

	/* The second line comes from the producer's cache during the match. */
	if (head + len > TDM_CACHE_LINE_BYTES)
		tdm_prefetch(slot + TDM_CACHE_LINE_BYTES);
	ret = rx_plain(pair, tdm_shm_word_op(word0) == TDM_SHM_REC_TAG, flags,
		       slot, slot + head, len);
	if (tdm_likely(!ret))
		tdm_shm_ring_step(&pair->rx, 1);
	return ret;
}

static tdm_noinline int rx_small_data(struct tdm_shm_pair *pair, uint64_t word0)
{
	return rx_small(pair, word0, TDM_SHM_REC_DATA);
}

/* Handle a record. Returns 0: it was stepped over; else why it was not. */
static inline int rx_record(struct tdm_shm_pair *pair, uint64_t word0)
{
	if (tdm_likely(tdm_shm_word_small(word0, 0)))
		return rx_small(pair, word0, 0);
	if (tdm_shm_word_small(word0, TDM_SHM_REC_DATA))
		return rx_small_data(pair, word0);
	tdm_shm_ring_fetch(&pair->rx, tdm_shm_word_aux(word0));
	return rx_other(pair, word0);
}

/* Publish our progress after many slots, and when the ring is empty. */
static void rx_show(struct tdm_shm_pair *pair)
{
	pair->rx.shown = pair->rx.tail;
	tdm_a64_store_release(&pair->own->consumed, pair->rx.tail);
	tdm_shm_bell_space(pair);
}

tdm_noinline void tdm_shm_rx_idle(struct tdm_shm_pair *pair, uint64_t word0)
{
	if (pair->broken)
		return;
	if (!tdm_shm_ring_sane(&pair->rx, word0))
		tdm_shm_pair_break(pair, FI_EPROTO);
	else if (pair->rx.tail != pair->rx.shown)
		rx_show(pair);
}

int tdm_shm_rx_take(struct tdm_shm_pair *pair, uint64_t word0, int budget)
{
	int n = 0, ret;

	if (tdm_unlikely(pair->broken))
		return 0;
	for (;;) {
		ret = rx_record(pair, word0);
		if (tdm_unlikely(ret))
			break;
		n++;
		if (tdm_unlikely(tdm_shm_ring_show_now(&pair->rx)))
			rx_show(pair);
		if (n == budget || pair->broken)
			break;
		word0 = tdm_shm_ring_peek(&pair->rx);
		if (!tdm_shm_ring_there(&pair->rx, word0)) {
			tdm_shm_rx_idle(pair, word0);
			break;
		}
	}
	pair->rx_since += (uint32_t)n;
	if (tdm_unlikely(ret && ret != -FI_EAGAIN))
		tdm_shm_pair_break(pair, -ret);
	return n;
}

int tdm_shm_rx_poll(struct tdm_shm_pair *pair, int budget)
{
	uint64_t word0 = tdm_shm_ring_peek(&pair->rx);

	if (tdm_shm_ring_there(&pair->rx, word0))
		return tdm_shm_rx_take(pair, word0, budget);
	tdm_shm_rx_idle(pair, word0);
	return 0;
}

/* ---- the owner starts or discards unexpected messages -------------------- */

static void start_lost(struct tdm_shm_ep *ep, struct fi_peer_rx_entry *entry,
		       struct tdm_shm_unexp *u)
{
	if (u->pull)
		tdm_pool_free(&ep->pulls, u->pull);
	tdm_done_recv_err(&ep->done, entry, tdm_failed(FI_ECONNRESET, 0, 0));
	ep->srx->owner_ops->free_entry(entry);
	tdm_shm_unexp_free(u);
}

static int srx_start(struct fi_peer_rx_entry *entry)
{
	struct tdm_shm_unexp *u = entry->peer_context;
	struct tdm_shm_ep *ep = u->ep;

	if (!ep || !ep->srx)
		return -FI_EOPBADSTATE;
	if (u->pull && !tdm_shm_unexp_here(u)) {
		start_lost(ep, entry, u);
		return 0;
	}
	if (u->pull) {
		struct tdm_shm_pull *pull = u->pull;

		tdm_shm_unexp_free(u);
		pull->entry = entry;
		tdm_shm_pull_start(pull);
		return 0;
	}
	eager_place(u->pair, entry, u->data, u->len);
	if (u->deliver && tdm_shm_unexp_live(u))
		deliver_ack(u->pair, &u->ctl, u->ctl.tag);
	else
		tdm_shm_unexp_free(u);
	return 0;
}

/* Discard an unexpected message. The owner frees the entry. */
static int srx_discard(struct fi_peer_rx_entry *entry)
{
	struct tdm_shm_unexp *u = entry->peer_context;
	int tell = u->ep && !u->ep->account->closing && tdm_shm_unexp_live(u);

	if (tell && u->pull) {
		u->pull->ctl.kind = TDM_SHM_CTL_PULL;
		deliver_ack(u->pair, &u->pull->ctl, u->pull->rts.id);
	} else if (u->ep && u->pull) {
		tdm_pool_free(&u->ep->pulls, u->pull);
	} else if (tell && u->deliver) {
		deliver_ack(u->pair, &u->ctl, u->ctl.tag);
		return 0;
	}
	tdm_shm_unexp_free(u);
	return 0;
}

struct fi_ops_srx_peer tdm_shm_srx_peer_ops = {
	.size = sizeof(tdm_shm_srx_peer_ops),
	.start_msg = srx_start,
	.start_tag = srx_start,
	.discard_msg = srx_discard,
	.discard_tag = srx_discard,
};
