/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: short messages into the ring, long ones announced (RTS) and
 * fetched by the receiver, control records.
 *
 * Invariants:
 *  1. Per pair, messages enter the ring in the order they were sent: the
 *     receiver matches in that order however the bytes travel.
 *  2. A send that returns -FI_EAGAIN has changed nothing, except that it may
 *     have started an attach.
 *  3. Control records are never lost: they wait on pair->ctl, and messages
 *     leave TDM_SHM_TX_SPARE slots free for them. No message overtakes one that
 *     waits: the peer may need it, and once an application has sent its answer it
 *     may make no more progress. (An endpoint that sends to itself needs no such
 *     order.)
 * Locking: domain lock held. Spec: fi_msg(3), fi_cq(3) completion levels,
 * doc/PROTOCOL-shm.md "Records".
 */
#include "shm/tx.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/os.h"
#include "shm/av.h"
#include "shm/bell.h"
#include "shm/copy.h"
#include "shm/ctl.h"
#include "shm/ctx.h"
#include "shm/ep.h"
#include "shm/grow.h"
#include "shm/lifeline.h"
#include "shm/msg.h"
#include "shm/progress.h"
#include "shm/rma.h"
#include "shm/small.h"

enum {
	TX_LARGE_STALLS = 16,
	TX_LOOK_SLOTS = 63,   /* most between liveness checks of the peer */
	TX_GLANCE_SLOTS = 31, /* most between looks at the clock */
	/* most by which long records move the next check, and every second one */
	TX_STRETCH_SLOTS = 192,
	TX_STRETCH_LESS_SLOTS = 96,
};

/*
 * If more time than this passes between two checks, the next check comes after
 * the next record.
 */
static const int64_t tx_look_ns = 10 * 1000 * 1000;

/* ---- room ---------------------------------------------------------------- */

void tdm_shm_tx_credit(struct tdm_shm_pair *pair)
{
	uint64_t consumed = tdm_a64_load_acquire(&pair->peer->consumed);

	if (tdm_unlikely(tdm_shm_ring_credit(&pair->tx, consumed)))
		tdm_shm_pair_break(pair, FI_EPROTO);
}

/*
 * Check, for a sender, whether the peer is alive. Progress would read the
 * lifeline, but an application whose reads always find completions makes no
 * progress, and a peer that died while polling asks for no wake-up. So the ring
 * calls here after a number of slots, which grows with each call. A peer that
 * has consumed records since the last check is alive; otherwise, and if the
 * last check was long ago, the function asks the kernel. It leaves room for a
 * record of @n slots and @spare.
 */
static void tx_look(struct tdm_shm_pair *pair, uint32_t n, uint32_t spare)
{
	uint64_t now = tdm_os.now_ns(), need;
	int seldom = now - pair->looked_ns > (uint64_t)tx_look_ns;

	if ((seldom || pair->tx.credit == pair->looked_credit) &&
	    !tdm_shm_session_alive(pair->sess)) {
		tdm_shm_pair_break(pair, FI_ECONNRESET);
		return;
	}
	if (seldom)
		pair->look_slots = 0;
	else if (pair->look_slots < TX_LOOK_SLOTS)
		pair->look_slots = pair->look_slots * 2 + 1;
	pair->looked_ns = now;
	pair->looked_credit = pair->tx.credit;
	tdm_shm_grow_pace(pair, now, n);
	need = tdm_shm_ring_need(&pair->tx, n, spare);
	pair->look_end = pair->tx.head + pair->look_slots + need;
	tdm_shm_ring_look(&pair->tx,
			  pair->tx.head + need +
				  tdm_min(pair->look_slots, TX_GLANCE_SLOTS));
	/* At a fixed distance all would see the same place of a window. */
	pair->look_odd = !pair->look_odd;
	pair->look_stretch = pair->look_odd ? TX_STRETCH_LESS_SLOTS :
					      TX_STRETCH_SLOTS;
}

/*
 * Called at a place where no check of the peer is due yet: looks at the clock.
 * Returns not 0 when the next check need not come forward, because there was no
 * pause in which the peer may have died: the ring has room for another record of
 * @n slots then, if that does not end behind the check.
 */
static int tx_glance(struct tdm_shm_pair *pair, uint32_t n)
{
	uint64_t next = pair->tx.look + TX_GLANCE_SLOTS + n;

	if (pair->tx.look >= pair->look_end ||
	    (int64_t)(tdm_os.tick_ns() - pair->looked_ns) > tx_look_ns)
		return 0;
	tdm_shm_ring_look(&pair->tx, tdm_min(next, pair->look_end));
	return 1;
}

/*
 * As tdm_shm_ring_reserve(), which has just found no room, but after reading the
 * peer's progress if need be. Control records that wait precede messages, which
 * have @spare: tdm_shm_tx_hold().
 */
static tdm_noinline uint8_t *tx_more(struct tdm_shm_pair *pair, uint32_t n,
				     uint32_t spare)
{
	uint8_t *slot = NULL;
	int full;

	if (tdm_unlikely(!tdm_list_empty(&pair->ctl)) && spare) {
		tdm_shm_ctl_flush(pair);
		if (pair->broken || !tdm_list_empty(&pair->ctl))
			return NULL;
		if (!pair->tx.gen)
			pair->grow_in = 1;
	}
	if (pair->tx.limit == pair->tx.look && tx_glance(pair, n)) {
		slot = tdm_shm_ring_reserve(&pair->tx, n, spare);
		if (tdm_likely(slot != NULL))
			return slot;
	}
	full = pair->tx.limit != pair->tx.look;
	tdm_shm_tx_credit(pair);
	if (pair->broken)
		return NULL;
	if (full)
		slot = tdm_shm_ring_reserve(&pair->tx, n, spare);
	if (slot || pair->tx.limit != pair->tx.look)
		return slot;
	tx_look(pair, n, spare);
	return pair->broken ? NULL : tdm_shm_ring_reserve(&pair->tx, n, spare);
}

void tdm_shm_tx_hold(struct tdm_shm_pair *pair)
{
	/* An endpoint that sends to itself has no check of the peer. */
	if (pair->sess)
		tdm_shm_ring_look(&pair->tx, pair->tx.head);
}

/* Move the next check and the next look at the clock by @slots, back if negative. */
static void tx_move_checks(struct tdm_shm_pair *pair, int64_t slots)
{
	pair->look_stretch -= (int32_t)slots;
	pair->look_end += (uint64_t)slots;
	tdm_shm_ring_look(&pair->tx, pair->tx.look + (uint64_t)slots);
}

/*
 * A record of several slots counts as one of those after which the peer is checked, up
 * to a bound: a check takes as long as the copy of some kilobytes.
 */
uint8_t *tdm_shm_tx_room(struct tdm_shm_pair *pair, uint32_t n, uint32_t spare)
{
	uint32_t more = tdm_min(n - 1, (uint32_t)pair->look_stretch);
	uint8_t *slot;

	if (more)
		tx_move_checks(pair, more);
	slot = tdm_shm_ring_reserve(&pair->tx, n, spare);
	if (tdm_likely(slot != NULL))
		return slot;
	if (more)
		tx_move_checks(pair, -(int64_t)more);
	return tx_more(pair, n, spare);
}

static tdm_noinline ssize_t tx_dead(struct tdm_shm_pair *pair,
				    const struct tdm_xfer *x)
{
	struct tdm_shm_ep *ep = pair->ep;
	fi_addr_t peer = tdm_shm_op_peer(pair);

	/* Earlier operations must end before @x: this pass ends them. */
	if (!tdm_shm_ep_pass(ep) || !x)
		return -FI_EAGAIN;
	tdm_done_send_err(
		&ep->done, x->context, x->flags, peer,
		tdm_result_of(tdm_failed(FI_ECONNRESET, FI_ECONNRESET, 0),
			      pair->addr.sa));
	return 0;
}

ssize_t tdm_shm_tx_full(struct tdm_shm_pair *pair, const struct tdm_xfer *x)
{
	if (pair->broken)
		return tx_dead(pair, x);
	/* Make progress, so that callers which only retry advance. */
	pair->want_space = 1;
	tdm_shm_bell_again(pair);
	if (++pair->stalls == 2 && pair->grow_in)
		pair->grow_in = 1;
	else if (pair->stalls == TX_LARGE_STALLS)
		pair->grow_in = 1;
	(void)tdm_shm_ep_pass(pair->ep);
	return -FI_EAGAIN;
}

int tdm_shm_tx_fenced(struct tdm_shm_pair *pair)
{
	if (tdm_list_empty(&pair->pending))
		return 0;
	(void)tdm_shm_ep_pass(pair->ep);
	return 1;
}

/* ---- messages ------------------------------------------------------------ */

/*
 * Write the body of an eager record, its first line, which the peer polls and may
 * take away at any moment, last. @id is used with TDM_SHM_REC_DELIVER; string moves
 * copy the payload from @least bytes on.
 */
static inline void eager_write(uint8_t *slot, const struct tdm_xfer *x,
			       uint8_t flags, uint64_t id, size_t least)
{
	uint8_t *body = slot + TDM_SHM_HEAD_BYTES;
	uint8_t *payload = body + tdm_shm_msg_extra(flags, x->len);

	tdm_shm_put_iov(payload, x->iov, x->count, 0, x->len, least);
	memcpy(slot + 8, &x->tag, 8);
	if (flags & TDM_SHM_REC_DATA) {
		memcpy(body, &x->data, 8);
		body += 8;
	}
	if (flags & TDM_SHM_REC_DELIVER)
		memcpy(body, &id, 8);
}

/* Send @x, which tdm_shm_small_is() describes with the same @data. */
static tdm_always_inline ssize_t send_small(struct tdm_shm_pair *pair,
					    const struct tdm_xfer *x,
					    uint64_t data)
{
	if (tdm_unlikely(tdm_shm_small_put(pair, (x->flags & FI_TAGGED) | data,
					   x->tag, x->data, x->iov[0].iov_base,
					   x->len)))
		return tdm_shm_tx_full(pair, x);
	tdm_done_send(&pair->ep->done, x->context, x->flags);
	return 0;
}

static tdm_noinline ssize_t send_small_data(struct tdm_shm_pair *pair,
					    const struct tdm_xfer *x)
{
	return send_small(pair, x, FI_REMOTE_CQ_DATA);
}

static tdm_noinline ssize_t send_eager(struct tdm_shm_pair *pair,
				       const struct tdm_xfer *x)
{
	struct tdm_shm_ep *ep = pair->ep;
	struct tdm_shm_op *op = NULL;
	uint8_t flags = 0, *slot;
	uint32_t n;

	if (tdm_unlikely((x->flags & FI_FENCE) && tdm_shm_tx_fenced(pair)))
		return -FI_EAGAIN;
	if (x->flags & FI_REMOTE_CQ_DATA)
		flags |= TDM_SHM_REC_DATA;
	if (x->flags & TDM_DELIVERED)
		flags |= TDM_SHM_REC_DELIVER;
	n = tdm_shm_rec_slots(tdm_shm_msg_extra(flags, x->len) + x->len);
	slot = tdm_shm_tx_room(pair, n, TDM_SHM_TX_SPARE);
	if (tdm_unlikely(!slot))
		return tdm_shm_tx_full(pair, x);
	if (tdm_unlikely(flags & TDM_SHM_REC_DELIVER)) {
		op = tdm_shm_op_new(pair, x);
		if (!op)
			return -FI_EAGAIN;
	}
	/* In a conversation warm() may have fetched lines of this record. */
	eager_write(slot, x, flags, op ? tdm_shm_op_id(op) : 0,
		    pair->warm_at > TDM_SHM_SLOT_BYTES ?
			    TDM_SHM_STRING_WARM_BYTES :
			    TDM_SHM_STRING_BYTES);
	tdm_shm_ring_publish(&pair->tx, n,
			     tdm_shm_word0(0,
					   x->flags & FI_TAGGED ?
						   TDM_SHM_REC_TAG :
						   TDM_SHM_REC_MSG,
					   flags, (uint16_t)x->len));
	tdm_shm_bell(pair);
	if (tdm_unlikely(op != NULL))
		return 0;
	pair->tx_msgs++;
	pair->tx_bytes += x->len;
	pair->warm_at = 0;
	pair->warm_end = n * TDM_SHM_SLOT_BYTES;
	tdm_done_send(&ep->done, x->context, x->flags);
	return 0;
}

void tdm_shm_rts_of(struct tdm_shm_rts *rts, const struct tdm_shm_op *op)
{
	uint32_t i;

	memset(rts, 0, sizeof(*rts));
	rts->id = tdm_shm_op_id(op);
	rts->len = op->len;
	if (op->count > TDM_SHM_IOV_MOST)
		return;
	rts->count = op->count;
	for (i = 0; i < op->count; i++) {
		rts->iov[i].addr = (uintptr_t)op->iov[i].iov_base;
		rts->iov[i].len = op->iov[i].iov_len;
	}
}

void tdm_shm_rts_fill(struct tdm_shm_rts *rts, struct tdm_shm_op *op,
		      const struct tdm_xfer *x)
{
	op->len = x->len;
	op->count = (uint32_t)x->count;
	memcpy(op->iov, x->iov, x->count * sizeof(*x->iov));
	tdm_shm_rts_of(rts, op);
	rts->data = x->flags & FI_REMOTE_CQ_DATA ? x->data : 0;
}

/*
 * Called when the peer accepts no payload of the inject @x now: copies the
 * payload to @op, and reports the completion unless a higher level was
 * requested.
 */
static int own_payload(struct tdm_shm_op *op, struct tdm_xfer *x)
{
	if (tdm_shm_op_own(op, x))
		return -FI_EAGAIN;
	if (x->flags & (FI_TRANSMIT_COMPLETE | TDM_DELIVERED))
		return 0;
	op->told = 1;
	op->pair->tx_msgs++;
	op->pair->tx_bytes += x->len;
	tdm_done_send(&op->pair->ep->done, x->context, x->flags);
	return 0;
}

static tdm_noinline ssize_t send_rts(struct tdm_shm_pair *pair,
				     struct tdm_xfer *x)
{
	struct tdm_shm_ep *ep = pair->ep;
	struct tdm_shm_rts rts;
	struct tdm_shm_op *op;
	uint8_t *slot;

	if (tdm_unlikely(x->len > SIZE_MAX / 2 ||
			 (x->flags & FI_INJECT && x->len > TDM_INJECT_BYTES)))
		return -FI_EMSGSIZE;
	if (tdm_unlikely((x->flags & FI_FENCE) && tdm_shm_tx_fenced(pair)))
		return -FI_EAGAIN;
	slot = tdm_shm_tx_room(pair, 1, TDM_SHM_TX_SPARE);
	if (tdm_unlikely(!slot))
		return tdm_shm_tx_full(pair, x);
	op = pair->announced < ep->announced_most ? tdm_shm_op_new(pair, x) :
						    NULL;
	if (tdm_unlikely(!op)) {
		(void)tdm_shm_ep_pass(ep);
		return -FI_EAGAIN;
	}
	if (tdm_unlikely(x->flags & FI_INJECT) && own_payload(op, x)) {
		tdm_shm_op_free(ep, op);
		(void)tdm_shm_ep_pass(ep);
		return -FI_EAGAIN;
	}
	tdm_shm_rts_fill(&rts, op, x);
	memcpy(slot + 8, &x->tag, 8);
	tdm_shm_rts_put(slot + TDM_SHM_HEAD_BYTES, &rts);
	tdm_shm_ring_publish(
		&pair->tx, 1,
		tdm_shm_word0(0,
			      x->flags & FI_TAGGED ? TDM_SHM_REC_RTS_TAG :
						     TDM_SHM_REC_RTS_MSG,
			      x->flags & FI_REMOTE_CQ_DATA ? TDM_SHM_REC_DATA :
							     0,
			      0));
	tdm_shm_bell(pair);
	op->announced = 1;
	pair->announced++;
	pair->rts_sent++;
	return 0;
}

/* ---- the pair is not up -------------------------------------------------- */

struct tdm_shm_pair *tdm_shm_tx_pair(struct tdm_shm_ep *ep, fi_addr_t addr,
				     ssize_t *ret)
{
	uint32_t size = ep->by_addr_count ? ep->by_addr_count : 16;
	struct tdm_shm_addr name;
	struct tdm_shm_pair *pair = tdm_shm_pair_at(ep, addr), **table;

	if (pair)
		return pair;
	*ret = -FI_EINVAL;
	if (!ep->enabled || tdm_shm_av_addr(ep->av, addr, &name))
		return NULL;
	*ret = -FI_ENOMEM;
	while (size <= addr)
		size *= 2;
	if (size != ep->by_addr_count) {
		table = realloc(ep->by_addr, size * sizeof(*table));
		if (!table)
			return NULL;
		memset(table + ep->by_addr_count, 0,
		       (size - ep->by_addr_count) * sizeof(*table));
		ep->by_addr = table;
		ep->by_addr_count = size;
	}
	pair = tdm_shm_pair_find(ep, &name, 1);
	if (!pair)
		return NULL;
	ep->by_addr[addr] = pair;
	pair->refs++;
	return pair;
}

ssize_t tdm_shm_tx_approach(struct tdm_shm_pair *pair)
{
	ssize_t ret = -FI_EAGAIN;

	if (pair->state == TDM_SHM_PAIR_UP && !pair->broken)
		return 0;
	if (pair->ep->in_progress)
		return -FI_EAGAIN;
	if (pair->broken) {
		(void)tdm_shm_ep_pass(pair->ep);
		return -FI_EAGAIN;
	}
	switch (pair->state) {
	case TDM_SHM_PAIR_NONE:
		ret = pair->self ? tdm_shm_pair_self(pair) :
				   tdm_shm_attach(pair);
		if (ret == -FI_ENOMEM)
			ret = -FI_EAGAIN;
		break;
	case TDM_SHM_PAIR_ATTACHING:
	case TDM_SHM_PAIR_ACCEPTING:
		tdm_shm_control(pair->ep, 4);
		break;
	default:
		break;
	}
	if (ret && ret != -FI_EAGAIN)
		return ret;
	if (pair->state == TDM_SHM_PAIR_FAILED)
		return -FI_EHOSTUNREACH;
	return pair->state == TDM_SHM_PAIR_UP && !pair->broken ? 0 : -FI_EAGAIN;
}

ssize_t tdm_shm_tx_slow(struct tdm_shm_ep *ep, struct tdm_shm_pair *pair,
			struct tdm_xfer *x)
{
	const struct tdm_space *space = ep->av ? tdm_shm_av_space(ep->av) :
						 NULL;
	ssize_t ret;

	if (!pair && space && (space->ctx_bits || space->max_group))
		return tdm_shm_ctx_send(ep, x, space);
	if (!pair)
		pair = tdm_shm_tx_pair(ep, x->addr, &ret);
	if (!pair)
		return ret;
	ret = tdm_shm_tx_approach(pair);
	if (ret)
		return ret;
	if (pair->send_waits && tdm_shm_op_held(pair, x->flags))
		return -FI_EAGAIN;
	return x->flags & TDM_ONE_SIDED ? tdm_shm_rma_send(ep, x) :
					  tdm_shm_tx_send(ep, x);
}

/* Send @x while the peer accepts no payload: by an announcement. */
static tdm_noinline ssize_t send_held(struct tdm_shm_pair *pair,
				      struct tdm_xfer *x)
{
	if (tdm_a32_load_relaxed(&pair->peer->hold) & TDM_SHM_HOLD_GONE) {
		tdm_shm_pair_break(pair, FI_ECONNRESET);
		return tdm_shm_tx_full(pair, x);
	}
	return send_rts(pair, x);
}

ssize_t tdm_shm_tx_send(struct tdm_shm_ep *ep, struct tdm_xfer *x)
{
	struct tdm_shm_pair *pair = tdm_shm_pair_at(ep, x->addr);

	if (tdm_unlikely(!pair || pair->state != TDM_SHM_PAIR_UP ||
			 (pair->broken | pair->send_waits)))
		return tdm_shm_tx_slow(ep, pair, x);
	tdm_shm_grow(pair, x->len);
	if (tdm_unlikely(x->len > pair->eager_most))
		return send_rts(pair, x);
	if (tdm_unlikely(tdm_a32_load_relaxed(&pair->peer->hold)))
		return send_held(pair, x);
	if (tdm_likely(tdm_shm_small_is(x, 0)))
		return send_small(pair, x, 0);
	return tdm_shm_small_is(x, FI_REMOTE_CQ_DATA) ?
		       send_small_data(pair, x) :
		       send_eager(pair, x);
}
