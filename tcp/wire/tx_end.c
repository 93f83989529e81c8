/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of sends, above all of those that do not succeed: cancelled, lost
 * with the connection, or given up because the address was removed or the
 * endpoint closes.
 *
 * Invariants:
 *  1. A record that was begun is finished, so that the peer can read the
 *     records after it; from a copy if the user's buffer may be gone.
 *  2. An operation that the peer may still answer keeps its id until then.
 *
 * Lock: domain held.
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "base/inject.h"
#include "tcp/wire/keep.h"
#include "tcp/wire/out.h"
#include "tcp/wire/rx_msg.h"
#include "tcp/wire/tx.h"
#include "tcp/wire/tx_priv.h"

void tdm_tx_free(struct tdm_conn *c, struct tdm_tx *op)
{
	if (tdm_unlikely(op->slow))
		tdm_tx_slow_ends(c, op);
	if (tdm_unlikely(op->lent))
		tdm_keep_own(c, op);
	if (op->has_id)
		tdm_ids_put(&c->busy->ids, op->id);
	tdm_list_del(&op->node);
	free(op->copy);
	if (tdm_unlikely(op->flags & TDM_RANGES))
		free(op->more);
	if (tdm_unlikely(op->rx != NULL))
		tdm_rx_free(op->rx);
	if (tdm_unlikely(op->entry != NULL))
		c->tcp->a.srx->owner_ops->free_entry(op->entry);
	if (tdm_unlikely(op->spared))
		tdm_inject_give(op->spared);
	c->tcp->tx_used -= op->counted;
	tdm_pool_free(&c->tcp->tx_pool, op);
}

void tdm_tx_report(struct tdm_conn *c, struct tdm_tx *op, int err, int prov)
{
	if (op->ended)
		return;
	if (tdm_unlikely(op->lent))
		tdm_keep_own(c, op);
	op->ended = 1;
	if (tdm_unlikely(err))
		tdm_done_send_err(&c->tcp->a.done, op->context, op->flags,
				  op->addr,
				  tdm_result_of(tdm_failed(err, prov, 0),
						&tdm_conn_addr(c)->u.sa));
	else
		tdm_done_send(&c->tcp->a.done, op->context, op->flags);
}

void tdm_tx_end(struct tdm_conn *c, struct tdm_tx *op, int err, int prov)
{
	tdm_tx_report(c, op, err, prov);
	tdm_tx_free(c, op);
}

/*
 * Ask the peer to drop the announced @op if no receive has matched it: a CTS
 * answers. Returns 0, or -FI_EAGAIN: there is no room for the record now.
 */
static int withdraw(struct tdm_conn *c, struct tdm_tx *op)
{
	struct tdm_out *out = c->borrow || c->state != TDM_CONN_READY ?
				      NULL :
				      tdm_out_room(c, TDM_WIRE_HEAD_BYTES);
	struct tdm_wire_rec rec;

	if (!out)
		return -FI_EAGAIN;
	memset(&rec, 0, sizeof(rec));
	rec.op = TDM_WIRE_CANCEL;
	rec.id = op->id;
	out->tail += (uint32_t)tdm_wire_encode(out->bytes + out->tail, &rec);
	op->cancelled = 1;
	tdm_out_later(c);
	return 0;
}

static int cancel_on(struct tdm_conn *c, void *context)
{
	struct tdm_list_ends ends;
	struct tdm_list *m;
	struct tdm_tx *op;

	tdm_list_ends_init(&ends, &c->sendq);
	while ((m = tdm_list_ends_next(&ends))) {
		op = tdm_list_entry(m, struct tdm_tx, node);
		if (op->context != context)
			continue;
		tdm_tx_end(c, op, FI_ECANCELED, 0);
		return 0;
	}
	tdm_list_ends_init(&ends, &c->busy->waitq);
	while ((m = tdm_list_ends_next(&ends))) {
		op = tdm_list_entry(m, struct tdm_tx, node);
		if (op->context == context && op->state == TDM_TX_CTS &&
		    !(op->flags & FI_RMA) && !op->cancelled && !op->ended)
			return withdraw(c, op);
	}
	return -FI_ENOENT;
}

int tdm_tx_cancel(struct tdm_tcp *tcp, void *context)
{
	struct tdm_list *n;
	int ret = -FI_ENOENT;

	tdm_list_for_each(n, &tcp->conns) {
		ret = cancel_on(tdm_list_entry(n, struct tdm_conn, all),
				context);
		if (ret != -FI_ENOENT)
			break;
	}
	return ret;
}

static void end_list(struct tdm_conn *c, struct tdm_list *list, int err,
		     int prov)
{
	while (!tdm_list_empty(list))
		tdm_tx_end(c, tdm_list_entry(list->next, struct tdm_tx, node),
			   err, prov);
}

void tdm_tx_fail(struct tdm_conn *c, int err, int prov)
{
	struct tdm_tx *op = c->borrow;

	c->borrow = NULL;
	if (op && op->state == TDM_TX_LEAVING)
		tdm_tx_end(c, op, err, prov);
	end_list(c, &c->ackq, err, prov);
	end_list(c, &c->busy->waitq, err, prov);
	end_list(c, &c->busy->dataq, err, prov);
	end_list(c, &c->sendq, err, prov);
}

/* Copy the rest of the borrowed range from the user's buffer. */
static int own_borrowed(struct tdm_conn *c)
{
	size_t from = c->busy->borrow_kept, n = c->busy->borrow_end - from;
	struct tdm_tx *op = c->borrow;
	void *copy;

	if (op->copy)
		return 0;
	copy = malloc(n);
	if (!copy)
		return -FI_ENOMEM;
	tdm_iov_copy_from(copy, tdm_tx_iov(op), op->count, from, n);
	if (op->lent)
		tdm_keep_own(c, op);
	op->copy = copy;
	op->iov[0].iov_base = copy;
	op->iov[0].iov_len = n;
	op->count = 1;
	c->busy->borrow_kept = 0;
	c->busy->borrow_off -= from;
	c->busy->borrow_end = n;
	return 0;
}

/*
 * Give up @op with @err; or (0) end it without an entry because the endpoint
 * closes: then injects are still sent.
 */
static void give_up(struct tdm_conn *c, struct tdm_tx *op, int err)
{
	if (err && op->reply)
		return; /* a reply to the peer, which reads our regions only */
	if (err)
		tdm_tx_report(c, op, err, 0);
	if (op->rx)
		(void)tdm_rx_stop(op->rx);
	op->ended = 1;
	op->dead = err || !(op->flags & FI_INJECT);
}

static void give_up_list(struct tdm_conn *c, struct tdm_list *list, int err)
{
	struct tdm_list *n;

	tdm_list_for_each(n, list)
		give_up(c, tdm_list_entry(n, struct tdm_tx, node), err);
}

int tdm_tx_abandon(struct tdm_conn *c, int err)
{
	struct tdm_tx *op = c->borrow;
	struct tdm_list *n, *tmp;

	if (op && !(err && op->reply)) {
		if (err && own_borrowed(c))
			return -FI_ENOMEM;
		give_up(c, op, err);
		/* A close whose time runs out abandons it a second time. */
		if (op->state != TDM_TX_LEAVING &&
		    (op->state == TDM_TX_ACK || op->reply)) {
			tdm_list_del(&op->node);
			tdm_tx_set_state(op, TDM_TX_LEAVING);
		}
	}
	while ((n = tdm_list_pop(&c->ackq))) {
		op = tdm_list_entry(n, struct tdm_tx, node);
		give_up(c, op, err);
		tdm_tx_free(c, op);
	}
	give_up_list(c, &c->busy->waitq, err);
	give_up_list(c, &c->busy->dataq, err);
	give_up_list(c, &c->sendq, err);
	tdm_list_for_each_safe(n, tmp, &c->busy->dataq) {
		op = tdm_list_entry(n, struct tdm_tx, node);
		if (op->reply && op->dead)
			tdm_tx_free(c, op);
	}
	tdm_list_for_each_safe(n, tmp, &c->sendq) {
		op = tdm_list_entry(n, struct tdm_tx, node);
		if (op->dead)
			tdm_tx_free(c, op);
	}
	return 0;
}

/* Not 0 while @list has an operation that is still to be sent. */
static int leaving(const struct tdm_list *list)
{
	struct tdm_list *n;

	tdm_list_for_each(n, list) {
		struct tdm_tx *op = tdm_list_entry(n, struct tdm_tx, node);

		if (!op->dead && op->state != TDM_TX_DONE)
			return 1;
	}
	return 0;
}

int tdm_tx_injects_leaving(const struct tdm_conn *c)
{
	return (c->borrow && !c->borrow->dead) || leaving(&c->sendq) ||
	       leaving(&c->busy->waitq) || leaving(&c->busy->dataq);
}

int tdm_tx_leaving(const struct tdm_conn *c)
{
	return c->borrow || tdm_tx_injects_leaving(c);
}
