/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive context of another owner: see import_srx.h.
 *
 *   get_*: a receive ----------------------------------------> FILLING
 *   get_*: no receive --> ASKED -- queue_* --> WAITING -- start --> FILLING
 *   get_* not allowed --> EARLY -- queue_* --> LATE -- next pass: FILLING, WAITING
 *   FILLING -- given back outside of a pass --> ENDED -- next pass --> freed
 *   WAITING -- given back by the transport --> GONE -- start, discard --> freed
 *   WAITING, GONE -- the endpoint closes --> ORPHAN -- discard --> freed
 *
 * Invariants:
 *  1. While the owner's list has an entry (WAITING, GONE, ORPHAN), its
 *     peer_context leads to ours. It is not given back: free_entry() of owners need
 *     not unlink it.
 *  2. While a message is LATE, no later one is offered: sources keep their order.
 *  3. The owner is called only in its pass, in its start and discard, when
 *     addresses are inserted, and when the endpoint closes.
 *
 * Lock: domain held, but taken in the calls of struct fi_ops_srx_peer, unless they
 * come from a call that we make to the owner.
 */
#include "peer/import_srx.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "base/iov.h"
#include "base/log.h"
#include "peer/import_priv.h"
#include "tdm_xfer.h"

/* The domain whose call to an owner is under way in this thread, or NULL. */
static __thread struct tdm_imports *calling;

/* The import whose owner asks for sources in this thread. */
static __thread struct tdm_import *resolving;

static struct tdm_import_entry *entry_of(struct fi_peer_rx_entry *rx)
{
	return tdm_container_of(rx, struct tdm_import_entry, rx);
}

/* The owner's entry of @e, as the owner has it. */
static struct fi_peer_rx_entry *raw_of(const struct tdm_import *import,
				       const struct tdm_import_entry *e)
{
	return tdm_layout_raw(import->layout, e->own);
}

/* The first entry of an owner is here: it may tell the layout of all of them. */
static void learn(struct tdm_import *import, const struct fi_peer_rx_entry *raw)
{
	import->layout = tdm_layout_seen(import->layout, raw, import->owner);
	import->owner->peer_ops = &tdm_import_peer_ops[import->layout];
	import->learned = 1;
}

static struct tdm_imports *call_begin(struct tdm_import *import)
{
	struct tdm_imports *was = calling;

	calling = import->home;
	return was;
}

static void call_end(struct tdm_imports *was)
{
	calling = was;
}

/* May the owner's receive context be called now? */
static int may_call(const struct tdm_import *import)
{
	return import->owner && (import->home->engine->lent || import->closing);
}

void tdm_import_give_back(struct tdm_import *import, struct tdm_import_entry *e)
{
	struct tdm_imports *was;

	if (import->owner) {
		was = call_begin(import);
		import->owner->owner_ops->free_entry(raw_of(import, e));
		call_end(was);
	}
	tdm_import_entry_free(e);
}

static void wait_for_pass(struct tdm_import *import, struct tdm_import_entry *e)
{
	tdm_list_del(&e->node);
	tdm_list_append(&import->late, &e->node);
	if (!tdm_list_linked(&import->node))
		tdm_list_append(&import->home->late, &import->node);
	if (tdm_engine_watched(import->home->engine))
		import->home->wake(import->home->engine);
}

/* ---- the transports' calls ----------------------------------------------- */

/* Let @e describe the receive that the owner's entry has got. */
static void show_match(struct tdm_import_entry *e)
{
	const struct fi_peer_rx_entry *own = e->own;

	e->state = TDM_IMPORT_FILLING;
	e->rx.addr = own->addr;
	e->rx.context = own->context;
	e->rx.flags = e->kind | FI_RECV | (own->flags & FI_COMPLETION) |
		      (e->rx.flags & FI_REMOTE_CQ_DATA);
	e->rx.count = own->iov ? tdm_min(own->count, (size_t)TDM_IOV_LIMIT) : 0;
	e->rx.iov = e->rx.count ? own->iov : &e->none;
	e->rx.desc = own->desc ? own->desc : &e->no_desc;
	e->rx.msg_size =
		tdm_min(e->rx.msg_size, tdm_iov_len(e->rx.iov, e->rx.count));
}

/*
 * Offer the message of @e to the owner. Returns 0, -FI_ENOENT, or -FI_ENOMEM
 * without an entry of the owner.
 */
static int ask(struct tdm_import *import, struct tdm_import_entry *e)
{
	struct fi_peer_match_attr attr = {
		.addr = tdm_import_reported(import, e->rx.addr),
		.msg_size = e->rx.msg_size,
		.tag = e->rx.tag,
	};
	struct fi_ops_srx_owner *ops = import->owner->owner_ops;
	struct tdm_imports *was = call_begin(import);
	struct fi_peer_rx_entry *raw = NULL;
	int ret;

	ret = e->kind & FI_TAGGED ? ops->get_tag(import->owner, &attr, &raw) :
				    ops->get_msg(import->owner, &attr, &raw);
	call_end(was);
	if ((ret && ret != -FI_ENOENT) || !raw)
		return -FI_ENOMEM;
	if (tdm_unlikely(!import->learned))
		learn(import, raw);
	e->own = tdm_layout_own(import->layout, raw);
	if (!ret)
		show_match(e);
	return ret;
}

static int get(struct fid_peer_srx *fid, uint64_t kind,
	       const struct fi_peer_match_attr *attr,
	       struct fi_peer_rx_entry **entry)
{
	struct tdm_import *import = tdm_import_port_of(fid)->import;
	struct tdm_import_entry *e = tdm_pool_alloc(&import->home->entries);
	int ret = -FI_ENOENT;

	tdm_assert_held(import->home->engine->lock);
	if (!e)
		return -FI_ENOMEM;
	memset(e, 0, sizeof(*e));
	tdm_list_init(&e->node);
	e->home = import->home;
	e->port = tdm_import_port_of(fid);
	e->kind = kind;
	e->state = TDM_IMPORT_EARLY;
	e->rx.srx = fid;
	e->rx.addr = attr->addr;
	e->rx.msg_size = attr->msg_size;
	e->rx.tag = kind & FI_TAGGED ? attr->tag : 0;
	e->rx.flags = kind | FI_RECV;
	e->rx.iov = &e->none;
	e->rx.desc = &e->no_desc;
	if (may_call(import) && tdm_list_empty(&import->late)) {
		ret = ask(import, e);
		if (ret == -FI_ENOMEM) {
			tdm_import_entry_free(e);
			return ret;
		}
		if (ret)
			e->state = TDM_IMPORT_ASKED;
	}
	tdm_list_append(&import->entries, &e->node);
	*entry = &e->rx;
	return ret;
}

static int get_msg(struct fid_peer_srx *fid, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **entry)
{
	return get(fid, FI_MSG, attr, entry);
}

static int get_tag(struct fid_peer_srx *fid, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **entry)
{
	return get(fid, FI_TAGGED, attr, entry);
}

/* Put the message of @e, which is ASKED, in the owner's list. */
static int queue_owner(struct tdm_import *import, struct tdm_import_entry *e)
{
	struct fi_ops_srx_owner *ops = import->owner->owner_ops;
	struct tdm_imports *was = call_begin(import);
	int ret;

	e->own->peer_context = e;
	e->own->msg_size = e->rx.msg_size;
	e->own->flags |= e->rx.flags & FI_REMOTE_CQ_DATA;
	e->own->cq_data = e->rx.cq_data;
	e->state = TDM_IMPORT_WAITING;
	ret = e->kind & FI_TAGGED ? ops->queue_tag(raw_of(import, e)) :
				    ops->queue_msg(raw_of(import, e));
	call_end(was);
	if (ret)
		e->state = TDM_IMPORT_ASKED;
	return ret;
}

static int queue(struct fi_peer_rx_entry *rx)
{
	struct tdm_import_entry *e = entry_of(rx);
	struct tdm_import *import = e->port->import;

	tdm_assert_held(import->home->engine->lock);
	if (e->state == TDM_IMPORT_ASKED)
		return queue_owner(import, e);
	assert(e->state == TDM_IMPORT_EARLY);
	e->state = TDM_IMPORT_LATE;
	wait_for_pass(import, e);
	return 0;
}

/* Give back the entry of a region, which has no entry of ours. */
static void free_region(struct tdm_import *import, struct fi_peer_rx_entry *rx)
{
	struct tdm_imports *was;

	if (import->free_rma) {
		import->free_rma(rx);
	} else if (import->owner) {
		was = call_begin(import);
		import->owner->owner_ops->free_entry(rx);
		call_end(was);
	}
}

static void free_entry(struct fi_peer_rx_entry *rx)
{
	struct tdm_import *import = tdm_import_port_of(rx->srx)->import;
	struct tdm_import_entry *e = entry_of(rx);

	tdm_assert_held(import->home->engine->lock);
	if (tdm_unlikely(rx->flags & FI_RMA)) {
		free_region(import, rx);
		return;
	}
	switch (e->state) {
	case TDM_IMPORT_WAITING:
		e->state = TDM_IMPORT_GONE;
		break;
	case TDM_IMPORT_ASKED:
	case TDM_IMPORT_FILLING:
		e->state = TDM_IMPORT_ENDED;
		if (may_call(import) || !import->owner)
			tdm_import_give_back(import, e);
		else
			wait_for_pass(import, e);
		break;
	default:
		tdm_import_entry_free(e);
	}
}

/* ---- sources that become known ------------------------------------------- */

/*
 * Called by the owner with an entry whose source it does not know: perhaps one of
 * another peer, so that nothing but the pointer may be looked at.
 */
static fi_addr_t source(struct fi_peer_rx_entry *raw)
{
	const struct fi_peer_rx_entry *own =
		tdm_layout_own(resolving->layout, raw);
	struct tdm_list *pos;

	tdm_list_for_each(pos, &resolving->entries) {
		struct tdm_import_entry *e =
			tdm_list_entry(pos, struct tdm_import_entry, node);

		if (e->own != own || e->state != TDM_IMPORT_WAITING ||
		    !e->port->get_addr)
			continue;
		e->rx.addr = e->port->get_addr(&e->rx);
		return tdm_import_reported(resolving, e->rx.addr);
	}
	return FI_ADDR_UNSPEC;
}

static void
foreach_unspec_addr(struct fid_peer_srx *fid,
		    fi_addr_t (*get_addr)(struct fi_peer_rx_entry *))
{
	struct tdm_import_port *port = tdm_import_port_of(fid);
	struct tdm_import *import = port->import, *outer = resolving;
	struct tdm_imports *was;
	struct tdm_list *pos;

	tdm_assert_held(import->home->engine->lock);
	tdm_list_for_each(pos, &import->late) {
		struct tdm_import_entry *e =
			tdm_list_entry(pos, struct tdm_import_entry, node);

		if (e->state == TDM_IMPORT_LATE && e->port == port &&
		    e->rx.addr == FI_ADDR_UNSPEC)
			e->rx.addr = get_addr(&e->rx);
	}
	if (!import->owner)
		return;
	port->get_addr = get_addr;
	resolving = import;
	was = call_begin(import);
	import->owner->owner_ops->foreach_unspec_addr(import->owner, source);
	call_end(was);
	resolving = outer;
	port->get_addr = NULL;
}

/* ---- the owner's calls --------------------------------------------------- */

/* Returns 1 if this took the lock, which the caller then releases: leave(). */
TDM_TSA(no_thread_safety_analysis)
static int enter(struct tdm_imports *home)
{
	if (calling == home)
		return 0;
	tdm_lock_acquire(home->engine->lock);
	home->engine->lent = 1;
	return 1;
}

TDM_TSA(no_thread_safety_analysis)
static void leave(struct tdm_imports *home, int taken)
{
	if (!taken)
		return;
	home->engine->lent = 0;
	tdm_lock_release(home->engine->lock);
}

/* Let the transport take the message of @e, which has a receive. */
static void fill(struct tdm_import_entry *e)
{
	struct fi_ops_srx_peer *ops = e->port->fid.peer_ops;

	show_match(e);
	if (e->kind & FI_TAGGED)
		(void)ops->start_tag(&e->rx);
	else
		(void)ops->start_msg(&e->rx);
}

/* The message of @e is gone, but the owner has found a receive for it. */
static void end_gone(struct tdm_import_entry *e)
{
	struct tdm_import *import = e->port->import;

	show_match(e);
	tdm_done_recv_err(&import->done, &e->rx,
			  tdm_failed(FI_ECONNRESET, 0, 0));
	tdm_import_give_back(import, e);
}

static int start(enum tdm_layout layout, struct fi_peer_rx_entry *raw)
{
	struct tdm_import_entry *e = tdm_layout_own(layout, raw)->peer_context;
	struct tdm_imports *home = e->home;
	int taken = enter(home), ret = 0;

	if (e->state == TDM_IMPORT_WAITING)
		fill(e);
	else if (e->state == TDM_IMPORT_GONE)
		end_gone(e);
	else
		ret = -FI_EOPBADSTATE;
	leave(home, taken);
	return ret;
}

void tdm_import_drop(struct tdm_import_entry *e)
{
	struct fi_ops_srx_peer *ops = e->port->fid.peer_ops;

	if (e->kind & FI_TAGGED)
		(void)ops->discard_tag(&e->rx);
	else
		(void)ops->discard_msg(&e->rx);
}

/* The owner frees its entry. */
static int discard(enum tdm_layout layout, struct fi_peer_rx_entry *raw)
{
	struct tdm_import_entry *e = tdm_layout_own(layout, raw)->peer_context;
	struct tdm_imports *home = e->home;
	int taken = enter(home);

	if (e->state == TDM_IMPORT_WAITING)
		tdm_import_drop(e);
	tdm_import_entry_free(e);
	leave(home, taken);
	return 0;
}

TDM_LAYOUT_CALLS(start, discard)

struct fi_ops_srx_peer tdm_import_peer_ops[TDM_LAYOUTS] = {
	[TDM_LAYOUT_OLDER] = TDM_LAYOUT_OPS(older),
	[TDM_LAYOUT_NEWER] = TDM_LAYOUT_OPS(newer),
};

/* ---- late calls ---------------------------------------------------------- */

/* Returns 0; else the call could not be made, and waits on. */
static int late_call(struct tdm_import *import, struct tdm_import_entry *e)
{
	int ret;

	if (e->state == TDM_IMPORT_ENDED) {
		tdm_import_give_back(import, e);
		return 0;
	}
	ret = ask(import, e);
	if (ret == -FI_ENOMEM)
		return ret;
	tdm_list_del(&e->node);
	tdm_list_append(&import->entries, &e->node);
	if (!ret) {
		fill(e);
		return 0;
	}
	e->state = TDM_IMPORT_ASKED;
	ret = queue_owner(import, e);
	if (ret) {
		/* The owner has no list for it: the message is lost. */
		TDM_WARN(EP_DATA, "the owner does not queue a message: %s",
			 fi_strerror(-ret));
		tdm_import_drop(e);
		tdm_import_give_back(import, e);
	}
	return 0;
}

void tdm_imports_late(struct tdm_imports *imports)
{
	struct tdm_list *pos, *tmp;

	tdm_assert_held(imports->engine->lock);
	tdm_list_for_each_safe(pos, tmp, &imports->late) {
		struct tdm_import *import =
			tdm_list_entry(pos, struct tdm_import, node);

		while (!tdm_list_empty(&import->late)) {
			if (late_call(import,
				      tdm_list_entry(import->late.next,
						     struct tdm_import_entry,
						     node)))
				return;
		}
		tdm_list_del(&import->node);
	}
}

struct fi_ops_srx_owner tdm_import_owner_ops = {
	.size = sizeof(tdm_import_owner_ops),
	.get_msg = get_msg,
	.get_tag = get_tag,
	.queue_msg = queue,
	.queue_tag = queue,
	.foreach_unspec_addr = foreach_unspec_addr,
	.free_entry = free_entry,
};
