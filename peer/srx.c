/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive side of the owner: posting, flushing, and matching a new receive
 * with unexpected messages. peer/srx_state.h has the states of an entry;
 * srx_export.c has the transports' calls, srx_multi.c multi-recv buffers,
 * srx_peek.c peeking and claiming, srx_cancel.c cancelling.
 *
 * Invariants, fi_peer(3) "PEER SRX":
 *  1. A transport gives each entry that it got back by free_entry() once, after
 *     it has written the completion. It does not give back an entry whose
 *     message was discarded.
 *  2. start_*() and discard_*() go to the transport that queued the message,
 *     entry->srx, with the domain lock held. start_*() may write the
 *     completion and free the entry before it returns; it reports failures
 *     through the CQ, so its result is ignored.
 *  3. No posted receive matches a waiting message, except inside
 *     tdm_srx_settle(): messages that arrive meanwhile go to the end of the
 *     queue, behind those that are about to be matched.
 *  4. A receive that moves from one entry to another, or is cancelled or
 *     released, is reported once. After tdm_srx_flush() nothing is reported.
 *
 * Lock: domain held.
 */
#include <stdlib.h>
#include <string.h>

#include "base/trace.h"
#include "peer/srx_cancel.h"
#include "peer/srx_space.h"

tdm_static_assert(TDM_SRX_DIRECTED_MSG == 1 << TDM_SRX_MSG &&
			  TDM_SRX_DIRECTED_TAG == 1 << TDM_SRX_TAG,
		  "sources count by kind");
tdm_static_assert(sizeof(struct tdm_srx_entry) == 2 * TDM_CACHE_LINE_BYTES,
		  "a posted receive takes two lines");
#define SAME_PLACE(a, b)                                                       \
	(offsetof(struct tdm_srx_entry, a) == offsetof(struct tdm_srx_entry, b))
tdm_static_assert(SAME_PLACE(item.head, iov) &&
			  SAME_PLACE(item.middle[0], rx.flags) &&
			  SAME_PLACE(item.middle[1], rx.context) &&
			  SAME_PLACE(item.middle[2], rx.count),
		  "the item leaves alone what a posted receive has");
tdm_static_assert(offsetof(struct fi_peer_rx_entry, srx) >=
			  sizeof(struct iovec),
		  "a transport leaves the buffer alone: it may not use next "
		  "and prev, which are the owner's");

static inline void entry_init(struct tdm_srx_entry *e, enum tdm_srx_kind kind)
{
#ifndef NDEBUG
	e->state = TDM_SRX_FREE; /* memory of the pool has no state */
#endif
	e->rx.flags = kind == TDM_SRX_TAG ? FI_TAGGED | FI_RECV :
					    FI_MSG | FI_RECV;
	e->kind = (uint8_t)kind;
	e->form = TDM_SRX_PLAIN;
	e->unexpected = 0;
}

struct tdm_srx_msg *tdm_srx_msg_alloc(struct tdm_srx *srx,
				      enum tdm_srx_kind kind)
{
	struct tdm_srx_msg *msg;

	msg = (struct tdm_srx_msg *)tdm_pool_alloc(&srx->msgs);
	if (!msg)
		return NULL;
	entry_init(&msg->e, kind);
	msg->e.unexpected = 1;
	msg->e.iov.iov_base = NULL;
	msg->e.iov.iov_len = 0;
	msg->e.desc = NULL;
	msg->e.rx.srx = NULL;
	msg->e.rx.context = NULL;
	msg->e.rx.count = 0;
	tdm_srx_entry_show(&msg->e);
	msg->parent = NULL;
	tdm_list_init(&msg->link);
	return msg;
}

void tdm_srx_entry_free(struct tdm_srx *srx, struct tdm_srx_entry *e)
{
	if (e->form != TDM_SRX_PLAIN)
		tdm_pool_free(&srx->sides, e->side);
	tdm_srx_step(&e->state, TDM_SRX_FREE);
	tdm_pool_free(e->unexpected ? &srx->msgs : &srx->pool, e);
}

/* Make rx point to the buffers and descriptors of @e. */
static void show_buffers(struct tdm_srx_entry *e)
{
	if (e->form == TDM_SRX_WIDE) {
		e->rx.iov = e->side->iov;
		e->rx.desc = e->side->desc;
		return;
	}
	e->rx.iov = &e->iov;
	e->rx.desc = e->form == TDM_SRX_MULTI ? e->side->desc : &e->desc;
}

void tdm_srx_entry_unpost(struct tdm_srx *srx, struct tdm_srx_entry *e)
{
	uint64_t tag = e->item.tag;
	fi_addr_t addr = srx->spaces ? tdm_space_source(e->item.addr) :
				       e->item.addr;

	tdm_srx_entry_show(e);
	show_buffers(e);
	e->rx.srx = NULL;
	e->rx.addr = addr;
	e->rx.msg_size = 0;
	e->rx.tag = tag;
}

/*
 * Copies a single-buffer vector word by word, as the call has just written it:
 * a load of both words at once could not be forwarded from the store buffer and
 * would wait for all earlier stores, those to lines that another core owns
 * included.
 */
static tdm_always_inline void fill_plain(struct tdm_srx_entry *e,
					 const struct tdm_xfer *x)
{
	e->iov.iov_base = x->iov[0].iov_base;
	e->iov.iov_len = x->iov[0].iov_len;
	e->desc = x->desc ? x->desc[0] : NULL;
}

static void fill_wide(struct tdm_srx_entry *e, const struct tdm_xfer *x)
{
	size_t i;

	for (i = 0; i < x->count; i++) {
		e->side->iov[i] = x->iov[i];
		e->side->desc[i] = x->desc ? x->desc[i] : NULL;
	}
	e->iov.iov_base = NULL;
	e->iov.iov_len = x->len;
}

/* Set all members of a receive except its buffers. */
static tdm_always_inline void fill_rest(struct tdm_srx_entry *e,
					const struct tdm_xfer *x, size_t count)
{
	e->rx.count = count;
	e->rx.context = x->context;
	e->rx.flags |= x->flags & (FI_COMPLETION | TDM_DEFERRED);
}

/*
 * Give @e, which is PLAIN, the buffers, context and flags of @x. Errors:
 * -FI_ENOMEM, @e is as it was.
 */
static int fill(struct tdm_srx *srx, struct tdm_srx_entry *e,
		const struct tdm_xfer *x)
{
	struct tdm_srx_side *side = NULL;

	if (x->count > 1 || (x->flags & FI_MULTI_RECV)) {
		side = (struct tdm_srx_side *)tdm_pool_alloc(&srx->sides);
		if (!side)
			return -FI_ENOMEM;
	}
	fill_rest(e, x, x->count);
	if (x->count > 1) {
		e->form = TDM_SRX_WIDE;
		e->side = side;
		fill_wide(e, x);
		return 0;
	}
	if (x->count) {
		fill_plain(e, x);
	} else {
		e->iov.iov_base = NULL;
		e->iov.iov_len = 0;
		e->desc = NULL;
	}
	if (side) {
		side->desc[0] = e->desc;
		e->form = TDM_SRX_MULTI;
		e->side = side;
	}
	return 0;
}

int tdm_srx_msg_fill(struct tdm_srx *srx, struct tdm_srx_msg *msg,
		     const struct tdm_xfer *x)
{
	int ret = fill(srx, &msg->e, x);

	if (!ret)
		show_buffers(&msg->e);
	return ret;
}

void tdm_srx_take(struct tdm_srx *srx, struct tdm_srx_msg *msg)
{
	tdm_match_remove(srx->match[msg->e.kind], &msg->match.item);
	tdm_list_del(&msg->link);
}

void tdm_srx_start(struct tdm_srx_msg *msg)
{
	struct tdm_srx_entry *e = &msg->e;
	const struct fi_ops_srx_peer *ops = e->rx.srx->peer_ops;
	const struct tdm_done *done = tdm_srx_port_done(e->rx.srx);
	struct tdm_srx *srx = tdm_srx_of(e->rx.srx);

	if (tdm_unlikely(!tdm_list_empty(&srx->watches)))
		tdm_srx_tell(srx, msg, 1);
	tdm_srx_step(&e->state, TDM_SRX_FILLING);
	TDM_TRACE4(match, e->rx.addr, e->rx.tag, e->rx.msg_size, e->rx.context);
	if (tdm_unlikely(done->strangers) && e->rx.addr == FI_ADDR_UNSPEC)
		tdm_srx_miss_source(e);
	else
		e->rx.addr = tdm_srx_reported(done, e->rx.addr);
	e->rx.msg_size = tdm_min(e->rx.msg_size, e->iov.iov_len);
	if (e->kind == TDM_SRX_TAG)
		ops->start_tag(&e->rx);
	else
		ops->start_msg(&e->rx);
}

void tdm_srx_discard(struct tdm_srx *srx, struct tdm_srx_msg *msg)
{
	struct fi_peer_rx_entry *rx = &msg->e.rx;
	const struct fi_ops_srx_peer *ops = rx->srx->peer_ops;

	if (msg->e.kind == TDM_SRX_TAG)
		ops->discard_tag(rx);
	else
		ops->discard_msg(rx);
	tdm_srx_entry_free(srx, &msg->e);
}

/* Move the buffers, context and flags of the receive @rx to @msg; frees @rx. */
static void move_receive(struct tdm_srx *srx, struct tdm_srx_entry *msg,
			 struct tdm_srx_entry *rx)
{
	msg->iov = rx->iov;
	msg->form = rx->form;
	if (rx->form == TDM_SRX_PLAIN)
		msg->desc = rx->desc;
	else
		msg->side = rx->side;
	msg->rx.count = rx->rx.count;
	msg->rx.context = rx->rx.context;
	msg->rx.flags |= rx->rx.flags;
	show_buffers(msg);
	tdm_srx_entry_put(srx, rx);
}

void tdm_srx_join(struct tdm_srx *srx, struct tdm_srx_entry *rx,
		  struct tdm_srx_msg *msg)
{
	tdm_srx_take(srx, msg);
	if (rx->form == TDM_SRX_MULTI) {
		tdm_srx_multi_take(srx, rx, msg, msg->e.rx.msg_size);
	} else {
		tdm_match_remove(srx->match[rx->kind], &rx->item);
		move_receive(srx, &msg->e, rx);
	}
	tdm_srx_start(msg);
}

void tdm_srx_settle_pending(struct tdm_srx *srx)
{
	struct tdm_match_item *rx;
	struct tdm_srx_msg *msg;
	struct tdm_list *node;

	srx->settling++;
	while ((node = tdm_list_pop(&srx->pending))) {
		msg = tdm_srx_msg_of_link(node);
		rx = tdm_srx_find_posted(srx, msg);
		if (rx)
			tdm_srx_join(srx, tdm_srx_entry_of_item(rx), msg);
	}
	srx->settling--;
}

static tdm_always_inline void post(struct tdm_srx *srx, struct tdm_srx_entry *e,
				   const struct tdm_xfer *x,
				   enum tdm_srx_kind kind)
{
	e->item.addr = tdm_srx_source(srx, kind, x);
	e->item.tag = kind == TDM_SRX_TAG ? x->tag : 0;
	e->item.ignore = kind == TDM_SRX_TAG ? x->ignore : 0;
	tdm_srx_step(&e->state, TDM_SRX_POSTED);
	tdm_match_post(srx->match[kind], &e->item);
}

int tdm_srx_post(struct tdm_srx *srx, const struct tdm_xfer *x,
		 enum tdm_srx_kind kind, struct tdm_srx_entry **out)
{
	struct tdm_srx_entry *e;

	e = (struct tdm_srx_entry *)tdm_pool_alloc(&srx->pool);
	if (!e)
		return -FI_ENOMEM;
	entry_init(e, kind);
	if (fill(srx, e, x)) {
		tdm_srx_entry_put(srx, e);
		return -FI_ENOMEM;
	}
	post(srx, e, x, kind);
	*out = e;
	return 0;
}

ssize_t tdm_srx_meet(struct tdm_srx *srx, const struct tdm_xfer *x,
		     enum tdm_srx_kind kind, struct tdm_match_item *item)
{
	struct tdm_srx_entry *e;
	struct tdm_srx_msg *msg;

	if (!item)
		return tdm_srx_post(srx, x, kind, &e);
	msg = tdm_srx_msg_of_item(item);
	if (tdm_srx_msg_fill(srx, msg, x))
		return -FI_ENOMEM;
	tdm_srx_take(srx, msg);
	tdm_srx_start(msg);
	return 0;
}

static tdm_noinline ssize_t recv_other(struct tdm_srx *srx,
				       const struct tdm_xfer *x,
				       enum tdm_srx_kind kind)
{
	if (x->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))
		return tdm_srx_peek(srx, x, kind);
	if (x->count > TDM_IOV_LIMIT)
		return -FI_EINVAL;
	if (x->flags & FI_MULTI_RECV)
		return tdm_srx_multi_recv(srx, x, kind);
	return tdm_srx_recv_space(srx, x, kind);
}

/* tdm_srx_recv() for one buffer and one kind, while messages wait. */
static tdm_noinline ssize_t recv_waiting(struct tdm_srx *srx,
					 const struct tdm_xfer *x,
					 enum tdm_srx_kind kind)
{
	int tagged = kind == TDM_SRX_TAG;
	struct tdm_match_item *item;
	struct tdm_srx_msg *msg;

	if (tdm_unlikely(srx->spaces))
		return recv_other(srx, x, kind);
	item = tdm_match_find_arrived(srx->match[kind],
				      tdm_srx_source(srx, kind, x),
				      tagged ? x->tag : 0,
				      tagged ? x->ignore : 0);
	if (tdm_unlikely(!item))
		return tdm_srx_meet(srx, x, kind, NULL);
	msg = tdm_srx_msg_of_item(item);
	fill_plain(&msg->e, x);
	fill_rest(&msg->e, x, 1);
	tdm_srx_take(srx, msg);
	tdm_srx_start(msg);
	return 0;
}

/*
 * tdm_srx_recv() for one buffer and one kind; the fast path if no message waits
 * and the pool has a free entry.
 */
static tdm_always_inline ssize_t recv_kind(struct tdm_srx *srx,
					   const struct tdm_xfer *x,
					   enum tdm_srx_kind kind)
{
	struct tdm_srx_entry *e;

	if (tdm_match_arrived_count(srx->match[kind]))
		return recv_waiting(srx, x, kind);
	e = (struct tdm_srx_entry *)tdm_pool_take(&srx->pool);
	if (tdm_unlikely(!e))
		return recv_other(srx, x, kind);
	entry_init(e, kind);
	fill_plain(e, x);
	fill_rest(e, x, 1);
	post(srx, e, x, kind);
	return 0;
}

ssize_t tdm_srx_recv(struct tdm_srx *srx, const struct tdm_xfer *x)
{
	enum tdm_srx_kind kind = x->flags & FI_TAGGED ? TDM_SRX_TAG :
							TDM_SRX_MSG;

	tdm_assert_held(srx->engine->lock);
	if (tdm_unlikely(x->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD |
				     FI_MULTI_RECV | TDM_IN_SPACE) ||
			 x->count != 1))
		return recv_other(srx, x, kind);
	return kind == TDM_SRX_TAG ? recv_kind(srx, x, TDM_SRX_TAG) :
				     recv_kind(srx, x, TDM_SRX_MSG);
}

void tdm_srx_refuse(struct tdm_srx *srx, const struct tdm_xfer *x, int err)
{
	struct fi_peer_rx_entry rx;
	struct iovec iov[TDM_IOV_LIMIT];
	size_t i;

	tdm_assert_held(srx->engine->lock);
	memset(&rx, 0, sizeof(rx));
	for (i = 0; i < x->count; i++)
		iov[i] = x->iov[i];
	rx.iov = iov;
	rx.count = x->count;
	rx.context = x->context;
	rx.tag = x->flags & FI_TAGGED ? x->tag : 0;
	rx.addr = FI_ADDR_UNSPEC;
	rx.flags = FI_RECV | (x->flags & (FI_MSG | FI_TAGGED | FI_MULTI_RECV |
					  FI_COMPLETION | TDM_DEFERRED));
	tdm_done_recv_err(&srx->done, &rx, tdm_failed(err, 0, 0));
}

size_t tdm_srx_left(const struct tdm_srx *srx)
{
	size_t posted = tdm_match_posted_count(srx->match[TDM_SRX_MSG]) +
			tdm_match_posted_count(srx->match[TDM_SRX_TAG]);

	return posted < srx->size ? srx->size - posted : 0;
}

void tdm_srx_depth(const struct tdm_srx *srx, size_t *posted, size_t *waiting)
{
	int kind;

	*posted = 0;
	*waiting = 0;
	for (kind = 0; kind < TDM_SRX_KINDS; kind++) {
		*posted += tdm_match_posted_count(srx->match[kind]);
		*waiting += tdm_match_arrived_count(srx->match[kind]);
	}
}

struct fid_peer_srx *tdm_srx_export(struct tdm_srx *srx, enum tdm_transport t)
{
	return &srx->port[t].fid;
}

void tdm_srx_set_done(struct tdm_srx *srx, const struct tdm_done *done)
{
	int i;

	srx->done = *done;
	for (i = 0; i < TDM_TRANSPORTS; i++)
		tdm_srx_port_renew(&srx->port[i]);
}

void tdm_srx_set_min_multi_recv(struct tdm_srx *srx, size_t bytes)
{
	srx->min_multi_recv = bytes;
}

void tdm_srx_forget(struct tdm_srx *srx, fi_addr_t addr)
{
	struct tdm_match_item *item;
	struct tdm_srx_msg *msg;
	struct tdm_list *pos;
	int kind;

	tdm_assert_held(srx->engine->lock);
	for (kind = 0; kind < TDM_SRX_KINDS; kind++) {
		tdm_list_for_each(pos, tdm_match_arrived(srx->match[kind])) {
			msg = tdm_srx_msg_of_all(pos);
			item = &msg->match.item;
			if (tdm_srx_match_addr(srx, item, addr) != item->addr)
				continue;
			tdm_match_clear_source(srx->match[kind], item);
			msg->e.from = (uint32_t)item->addr;
			msg->e.rx.addr = FI_ADDR_UNSPEC;
		}
	}
	tdm_list_for_each(pos, &srx->claimed) {
		msg = tdm_srx_msg_of_link(pos);
		if (msg->e.rx.addr == addr)
			msg->e.rx.addr = FI_ADDR_UNSPEC;
	}
}

static void unpost_queue(struct tdm_srx *srx, struct tdm_match *match)
{
	struct tdm_list *pos, *tmp;
	struct tdm_srx_entry *e;

	tdm_list_for_each_safe(pos, tmp, tdm_match_posted(match)) {
		e = tdm_srx_entry_of_item(
			tdm_list_entry(pos, struct tdm_match_item, all));
		tdm_match_remove(match, &e->item);
		if (e->form == TDM_SRX_MULTI && e->side->refs) {
			tdm_srx_entry_unpost(srx, e);
			tdm_srx_step(&e->state, TDM_SRX_SPENT);
		} else {
			tdm_srx_entry_free(srx, e);
		}
	}
}

static void flush_queue(struct tdm_srx *srx, struct tdm_match *match)
{
	struct tdm_list *head = tdm_match_arrived(match);
	struct tdm_srx_msg *msg;

	while (!tdm_list_empty(head)) {
		msg = tdm_srx_msg_of_all(head->next);
		tdm_srx_take(srx, msg);
		tdm_srx_discard(srx, msg);
	}
	unpost_queue(srx, match);
}

void tdm_srx_unpost(struct tdm_srx *srx)
{
	tdm_assert_held(srx->engine->lock);
	unpost_queue(srx, srx->match[TDM_SRX_MSG]);
	unpost_queue(srx, srx->match[TDM_SRX_TAG]);
}

void tdm_srx_flush(struct tdm_srx *srx)
{
	struct tdm_srx_msg *msg;
	struct tdm_list *node;

	tdm_assert_held(srx->engine->lock);
	srx->flushed = 1;
	srx->held.closing = 1;
	flush_queue(srx, srx->match[TDM_SRX_MSG]);
	flush_queue(srx, srx->match[TDM_SRX_TAG]);
	while ((node = tdm_list_pop(&srx->claimed))) {
		msg = tdm_srx_msg_of_link(node);
		if (msg->e.state == TDM_SRX_LOST)
			tdm_srx_entry_free(srx, &msg->e);
		else
			tdm_srx_discard(srx, msg);
	}
}

int tdm_srx_open(const struct tdm_srx_attr *attr, struct tdm_srx **out)
{
	struct tdm_srx *srx = (struct tdm_srx *)calloc(1, sizeof(*srx));
	int i;

	if (!srx)
		return -FI_ENOMEM;
	srx->engine = attr->engine;
	srx->held.size = sizeof(srx->held);
	srx->held.entry_bytes = sizeof(struct tdm_srx_msg);
	srx->size = attr->size;
	srx->min_multi_recv = attr->min_multi_recv;
	srx->free_rma = attr->free_rma;
	for (i = 0; i < TDM_SRX_KINDS; i++)
		srx->any[i] = attr->spaces || attr->directed & 1 << i ?
				      0 :
				      FI_ADDR_UNSPEC;
	srx->spaces = attr->spaces;
	srx->key_of = attr->key_of;
	srx->key_arg = attr->key_arg;
	tdm_list_init(&srx->seats);
	tdm_list_init(&srx->claimed);
	tdm_list_init(&srx->pending);
	tdm_list_init(&srx->watches);
	tdm_pool_init(&srx->pool, sizeof(struct tdm_srx_entry), 0);
	tdm_pool_init(&srx->msgs, sizeof(struct tdm_srx_msg), 0);
	tdm_pool_init(&srx->sides, sizeof(struct tdm_srx_side), 0);
	for (i = 0; i < TDM_TRANSPORTS; i++)
		tdm_srx_port_init(srx, &srx->port[i], &srx->done);
	for (i = 0; i < TDM_SRX_KINDS; i++) {
		srx->match[i] = srx->spaces ? tdm_match_alloc_spaces() :
					      tdm_match_alloc();
		if (!srx->match[i])
			goto err;
	}
	tdm_match_number_with(srx->match[TDM_SRX_TAG], srx->match[TDM_SRX_MSG]);
	*out = srx;
	return 0;
err:
	tdm_srx_close(srx);
	return -FI_ENOMEM;
}

void tdm_srx_close(struct tdm_srx *srx)
{
	int i;

	if (!srx)
		return;
	for (i = 0; i < TDM_SRX_KINDS; i++)
		tdm_match_free(srx->match[i]);
	tdm_srx_index_free(srx);
	tdm_pool_fini(&srx->pool);
	tdm_pool_fini(&srx->msgs);
	tdm_pool_fini(&srx->sides);
	free(srx);
}
