/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs: their states, lookup, establishing a session, and ending one.
 *
 *   NONE --- we send HELLO --------------> ATTACHING ---+
 *    |------ a HELLO came ---------------> ACCEPTING ---+--> UP
 *    |------ an endpoint with itself -------------------+
 *    +------ refused for good -----------> FAILED
 *
 * Back to NONE: ATTACHING, ACCEPTING and UP when the session ends, FAILED when
 * the owner removes the address.
 *
 * Invariants:
 *  1. A session ends at one place, tdm_shm_pair_lose(), and never while a
 *     function works on the pair: one that breaks inside a progress step is
 *     marked and reaped after the step, see tdm_shm_pair_break().
 *  2. When it returns, no operation refers to the session any more: sends and
 *     pulls have ended with FI_ECONNRESET. Announced messages that wait in the
 *     owner's queue carry the old epoch and fail in the same way when started.
 *  3. Each change is reported to the owner by one event, and each reason is
 *     logged once.
 * Locking: domain lock held.
 */
#include "shm/pair.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/advice.h"
#include "base/log.h"
#include "fi_ext_tandem.h"
#include "shm/av.h"
#include "shm/bell.h"
#include "shm/ctl.h"
#include "shm/ctx.h"
#include "shm/ep.h"
#include "shm/left.h"
#include "shm/lifeline.h"
#include "shm/rma.h"
#include "shm/rx.h"
#include "shm/session.h"
#include "shm/unexp.h"

enum { PAIR_SILENT_MOST = 8, PAIR_GROW_AFTER = 128 };

/* ---- states -------------------------------------------------------------- */

#define BIT(state) (1u << TDM_SHM_PAIR_##state)

static const struct {
	const char *name;
	unsigned next; /* bits of the states that may follow */
} states[] tdm_unused = {
	[TDM_SHM_PAIR_NONE] = { "none", BIT(ATTACHING) | BIT(ACCEPTING) |
						BIT(UP) | BIT(FAILED) },
	[TDM_SHM_PAIR_ATTACHING] = { "attaching", BIT(NONE) | BIT(UP) },
	[TDM_SHM_PAIR_ACCEPTING] = { "accepting", BIT(NONE) | BIT(UP) },
	[TDM_SHM_PAIR_UP] = { "up", BIT(NONE) },
	[TDM_SHM_PAIR_FAILED] = { "failed", BIT(NONE) },
};

void tdm_shm_pair_set_state(struct tdm_shm_pair *pair,
			    enum tdm_shm_pair_state state)
{
	assert(states[pair->state].next & (1u << state));
	TDM_DBG(EP_CTRL, "pair %s -> %s", states[pair->state].name,
		states[state].name);
	pair->state = state;
}

/* ---- lookup -------------------------------------------------------------- */

static void hash_grow(struct tdm_shm_ep *ep)
{
	uint32_t size = ep->hash_size * 2;
	struct tdm_shm_pair **hash = calloc(size, sizeof(*hash));
	struct tdm_list *pos;

	if (!hash)
		return; /* no memory: longer chains, no other harm */
	tdm_list_for_each(pos, &ep->pairs) {
		struct tdm_shm_pair *p =
			tdm_list_entry(pos, struct tdm_shm_pair, all);
		struct tdm_shm_pair **head =
			&hash[tdm_shm_addr_hash(&p->addr) & (size - 1)];

		p->hash = *head;
		*head = p;
	}
	free(ep->hash);
	ep->hash = hash;
	ep->hash_size = size;
}

void tdm_shm_pair_source(struct tdm_shm_pair *pair, fi_addr_t owner_addr,
			 uint32_t group)
{
	pair->owner_addr = owner_addr;
	pair->rx_group = group;
	if (!pair->ep->domain->spaces)
		pair->from = owner_addr;
	else if (owner_addr == FI_ADDR_UNSPEC)
		pair->from = tdm_space_by_key(tdm_space_of(0, group),
					      pair->addr.key);
	else
		pair->from = tdm_space_of(owner_addr, group);
}

static struct tdm_shm_pair *pair_alloc(struct tdm_shm_ep *ep,
				       const struct tdm_shm_addr *addr)
{
	struct tdm_shm_pair *p = calloc(1, sizeof(*p)), **head;

	if (!p)
		return NULL;
	p->ep = ep;
	p->addr = *addr;
	p->self = tdm_shm_addr_same(addr, &ep->name);
	tdm_shm_pair_source(
		p, ep->av ? tdm_shm_av_source(ep->av, addr) : FI_ADDR_UNSPEC,
		0);
	tdm_list_init(&p->busy);
	tdm_list_init(&p->awake);
	tdm_list_init(&p->reap);
	tdm_list_init(&p->held);
	tdm_list_init(&p->ctl);
	tdm_list_init(&p->pending);
	tdm_list_init(&p->feeds);
	tdm_list_init(&p->pulls);
	tdm_list_init(&p->serves);
	if (++ep->npairs > ep->hash_size)
		hash_grow(ep);
	head = &ep->hash[tdm_shm_addr_hash(addr) & (ep->hash_size - 1)];
	p->hash = *head;
	*head = p;
	tdm_list_append(&ep->pairs, &p->all);
	return p;
}

struct tdm_shm_pair *tdm_shm_pair_find(struct tdm_shm_ep *ep,
				       const struct tdm_shm_addr *addr,
				       int make)
{
	struct tdm_shm_pair *p =
		ep->hash[tdm_shm_addr_hash(addr) & (ep->hash_size - 1)];

	for (; p; p = p->hash) {
		if (tdm_shm_addr_equal(&p->addr, addr))
			return p;
	}
	return make ? pair_alloc(ep, addr) : NULL;
}

static void pair_free(struct tdm_shm_pair *pair)
{
	struct tdm_shm_ep *ep = pair->ep;
	struct tdm_shm_pair **link =
		&ep->hash[tdm_shm_addr_hash(&pair->addr) & (ep->hash_size - 1)];

	while (*link != pair)
		link = &(*link)->hash;
	*link = pair->hash;
	tdm_list_del(&pair->all);
	ep->npairs--;
	free(pair->more);
	free(pair->ways);
	free(pair);
}

void tdm_shm_pair_release(struct tdm_shm_pair *pair)
{
	if (pair->state == TDM_SHM_PAIR_NONE && !pair->refs && !pair->broken)
		pair_free(pair);
}

/* ---- events -------------------------------------------------------------- */

uint32_t tdm_shm_pair_large_rx(const struct tdm_shm_pair *pair)
{
	if (pair->self)
		return TDM_REPORT_LARGE_COPY;
	return pair->cma ? TDM_REPORT_LARGE_CMA : TDM_REPORT_LARGE_BOUNCE;
}

static void tell(struct tdm_shm_pair *pair, enum tdm_peer_event_type type,
		 enum tdm_reason reason, int err)
{
	struct tdm_shm_ep *ep = pair->ep;
	struct tdm_peer_event e;

	if (!ep->eq)
		return;
	memset(&e, 0, sizeof(e));
	e.entry.fid = &ep->fid.fid;
	e.entry.context = ep->fid.fid.context;
	e.entry.data = pair->owner_addr;
	e.type = type;
	e.reason = reason;
	e.err = err;
	e.addrlen = pair->addr.len;
	memcpy(e.addr, pair->addr.sa, pair->addr.len);
	e.cma = type == TDM_PEER_UP && pair->cma;
	if (type == TDM_PEER_LOST) {
		/*
		 * The report may be read when the pair is gone, or has another
		 * session.
		 */
		e.tx_msgs = pair->tx_msgs;
		e.tx_bytes = pair->tx_bytes;
		e.rx_msgs = pair->rx_msgs;
		e.rx_bytes = pair->rx_bytes;
		e.large_rx = tdm_shm_pair_large_rx(pair);
		e.large_tx = pair->large_tx;
	}
	if (fi_eq_write(ep->eq->owner, FI_NOTIFY, &e, sizeof(e), 0) < 0)
		TDM_WARN(EQ, "event of a peer is lost, event queue is full");
}

static const char *reason_text(enum tdm_reason reason)
{
	static const char *const text[TDM_REASON_COUNT] = {
		[TDM_REASON_NONE] = "in use",
		[TDM_REASON_HOST] = "another network namespace",
		[TDM_REASON_NO_LISTENER] = "nobody listens",
		[TDM_REASON_UID] = "another user id",
		[TDM_REASON_VERSION] = "incompatible version",
		[TDM_REASON_REFUSED] = "refused by the other side",
		[TDM_REASON_RESOURCE] =
			"memory, descriptors or system calls refused",
		[TDM_REASON_SEGMENT] = "segment not as required",
		[TDM_REASON_DISABLED] = "disabled",
		[TDM_REASON_NAME] = "name in use",
	};

	return text[reason];
}

/* ---- up ------------------------------------------------------------------ */

static void pair_reset_rings(struct tdm_shm_pair *pair, uint32_t peer_slots)
{
	struct tdm_shm_ep *ep = pair->ep;

	memset(&pair->tx, 0, sizeof(pair->tx));
	memset(&pair->rx, 0, sizeof(pair->rx));
	pair->dirty_small = 0;
	tdm_shm_ring_tx_init(&pair->tx, tdm_shm_seg_slots(pair->own),
			     TDM_SHM_RING_SMALL_SLOTS, &pair->dirty_small);
	if (!pair->self)
		tdm_shm_ring_look(&pair->tx, 0);
	tdm_shm_ring_rx_init(&pair->rx,
			     (const uint8_t *)pair->peer +
				     sizeof(struct tdm_shm_seg),
			     peer_slots);
	pair->bounce_tx = 0;
	pair->area_at_ns = 0;
	pair->area_since_ns = 0;
	pair->bounce_rx = 0;
	pair->bounce_credit = 0;
	pair->help = 2;
	pair->help_turn = 0;
	pair->bell = 0;
	pair->rx_since = 0;
	pair->rx_window = 1;
	pair->rx_talk = 0;
	pair->warm_at = 0;
	pair->warm_end = 0;
	pair->talk_idx = 0;
	pair->stalls = 0;
	pair->look_slots = 0;
	pair->look_stretch = 0;
	pair->look_odd = 0;
	pair->looked_ns = 0;
	pair->look_end = 0;
	pair->looked_credit = 0;
	pair->alive_ns = 0;
	pair->paced_head = 0;
	pair->paced_msgs = 0;
	pair->paced_ns = 0;
	pair->paced_ahead = 0;
	pair->stream = 0;
	pair->tx_msgs = 0;
	pair->tx_bytes = 0;
	pair->rx_msgs = 0;
	pair->rx_bytes = 0;
	pair->large_tx = TDM_REPORT_LARGE_NONE;
	pair->ready = 0;
	pair->want_space = 0;
	pair->no_grow = 0;
	pair->grow_in = PAIR_GROW_AFTER;
	pair->eager_most =
		tdm_shm_eager_room(TDM_SHM_RING_SMALL_SLOTS, ep->eager_most);
}

void tdm_shm_pair_up(struct tdm_shm_pair *pair, uint32_t peer_slots)
{
	struct tdm_shm_session *s = pair->sess;
	char text[64] = "";

	if (s) {
		pair->own = s->own.base;
		pair->peer = s->peer.base;
		tdm_shm_session_set_state(s, TDM_SHM_SESSION_UP);
		s->deadline = 0;
		tdm_list_del(&s->node);
		s->lifeline.ready = tdm_shm_lifeline_ready;
		pair->fence = !(pair->ep->barrier &&
				s->features & TDM_SHM_FEATURE_BARRIER);
	}
	pair_reset_rings(pair, peer_slots);
	tdm_shm_ctx_reset(pair);
	tdm_shm_pair_set_state(pair, TDM_SHM_PAIR_UP);
	pair->broken = 0;
	pair->epoch++;
	pair->waiting = 0;
	pair->rts_sent = 0;
	pair->rts_heard = 0;
	tdm_shm_unexp_begin(pair);
	pair->refused_told = 0;
	pair->silent = 0;
	tdm_list_append(&pair->ep->awake, &pair->awake);
	pair->bell = TDM_SHM_BELL_COLD;
	tdm_a32_store_release(&pair->own->bell, pair->bell);
	tdm_shm_bell_promote(pair);
	TDM_INFO(EP_CTRL, "%s:%u: shared memory, large messages by %s%s",
		 tdm_shm_addr_ip(&pair->addr, text, sizeof(text)),
		 tdm_shm_addr_port(&pair->addr),
		 pair->self ? "copy" :
		 pair->cma  ? "cma" :
			      "bounce area: ",
		 pair->self || pair->cma ? "" : tdm_advice_cma());
	tell(pair, TDM_PEER_UP, TDM_REASON_NONE, 0);
}

int tdm_shm_pair_self(struct tdm_shm_pair *pair)
{
	size_t bytes = tdm_shm_seg_bytes(TDM_SHM_RING_SMALL_SLOTS);
	void *mem = aligned_alloc(TDM_SHM_PAGE_BYTES, bytes);

	if (!mem)
		return -FI_ENOMEM;
	memset(mem, 0, bytes);
	pair->own = mem;
	pair->peer = mem;
	pair->fence = 0;
	pair->cma = 0;
	tdm_shm_pair_up(pair, TDM_SHM_RING_SMALL_SLOTS);
	return 0;
}

/* ---- down ---------------------------------------------------------------- */

/* Free the control records that wait for slots: there is no ring any more. */
static void drop_ctls(struct tdm_shm_pair *pair)
{
	struct tdm_list *node;

	while ((node = tdm_list_pop(&pair->ctl)))
		tdm_shm_ctl_drop(pair, tdm_list_entry(node, struct tdm_shm_ctl,
						      node));
}

/*
 * End the receives whose bytes are being fetched, and report them unless
 * @silent (fi_close).
 */
static void end_pulls(struct tdm_shm_pair *pair, int silent)
{
	struct tdm_shm_ep *ep = pair->ep;
	struct tdm_list *node;

	while ((node = tdm_list_pop(&pair->pulls))) {
		struct tdm_shm_pull *pull =
			tdm_list_entry(node, struct tdm_shm_pull, node);

		/* A read of this process ends with the operations. */
		if (ep->srx && pull->entry && !silent)
			tdm_done_recv_err(
				&ep->done, pull->entry,
				tdm_result_of(tdm_failed(FI_ECONNRESET, 0,
							 pull->placed),
					      pair->addr.sa));
		if (ep->srx && pull->entry)
			ep->srx->owner_ops->free_entry(pull->entry);
		tdm_list_del(&pull->ctl.node);
		tdm_pool_free(&ep->pulls, pull);
	}
}

static void end_ops(struct tdm_shm_pair *pair, int silent)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &pair->pending) {
		struct tdm_shm_op *op =
			tdm_list_entry(pos, struct tdm_shm_op, node);

		if (silent)
			tdm_shm_op_free(pair->ep, op);
		else
			tdm_shm_op_end(op, FI_ECONNRESET);
	}
	tdm_list_for_each_safe(pos, tmp, &pair->serves)
		tdm_shm_serve_drop(
			tdm_list_entry(pos, struct tdm_shm_op, node));
}

/* Take @pair off all lists and free its session. */
static void pair_down(struct tdm_shm_pair *pair)
{
	struct tdm_shm_session *s = pair->sess;

	tdm_shm_bell_forget(pair);
	tdm_list_del(&pair->busy);
	tdm_list_del(&pair->reap);
	tdm_list_del(&pair->held);
	drop_ctls(pair);
	if (pair->self && pair->own)
		free(pair->own);
	pair->own = NULL;
	pair->peer = NULL;
	pair->sess = NULL;
	if (pair->ep->read_from == pair)
		pair->ep->read_from = NULL;
	pair->broken = 0;
	pair->ending = 0;
	pair->more_count = 0;
	if (pair->state != TDM_SHM_PAIR_NONE)
		tdm_shm_pair_set_state(pair, TDM_SHM_PAIR_NONE);
	if (s)
		tdm_shm_session_free(s);
}

void tdm_shm_pair_reset(struct tdm_shm_pair *pair)
{
	pair_down(pair);
	tdm_shm_pair_release(pair);
}

void tdm_shm_pair_break(struct tdm_shm_pair *pair, int err)
{
	if (pair->broken || pair->state != TDM_SHM_PAIR_UP)
		return;
	/*
	 * The loss is known, and the peer's last records are still being read.
	 */
	if (pair->ending && err == FI_ECONNRESET)
		return;
	pair->broken = err;
	tdm_list_append(&pair->ep->reap, &pair->reap);
}

void tdm_shm_reap(struct tdm_shm_ep *ep)
{
	struct tdm_list *node;

	while ((node = tdm_list_pop(&ep->reap))) {
		struct tdm_shm_pair *pair =
			tdm_list_entry(node, struct tdm_shm_pair, reap);

		tdm_shm_pair_lose(pair, pair->broken);
	}
}

/*
 * Deliver the records that the lost peer had published, but at most as many as
 * the rings can hold, in case the peer is alive and goes on writing. Returns
 * FI_ESHUTDOWN when GOODBYE was among them, else FI_ECONNRESET.
 */
static int drain(struct tdm_shm_pair *pair)
{
	uint32_t most = TDM_SHM_SLOTS_MOST;

	pair->broken = 0;
	while (most && !pair->broken) {
		int n = tdm_shm_rx_poll(pair, 64);

		if (n <= 0)
			break;
		most -= tdm_min(most, (uint32_t)n);
	}
	return pair->broken == FI_ESHUTDOWN ? FI_ESHUTDOWN : FI_ECONNRESET;
}

void tdm_shm_pair_lose(struct tdm_shm_pair *pair, int err)
{
	char text[64] = "";

	tdm_list_del(&pair->reap);
	pair->ending = 1;
	if (err == FI_ECONNRESET)
		err = drain(pair);
	pair->broken = err;
	if (pair->sess && err != FI_EPROTO && tdm_shm_left_place(pair))
		err = FI_ESHUTDOWN;
	end_pulls(pair, 0);
	end_ops(pair, 0);
	tdm_shm_unexp_lost(pair);
	TDM_INFO(EP_CTRL, "%s:%u: shared memory ends: %s",
		 tdm_shm_addr_ip(&pair->addr, text, sizeof(text)),
		 tdm_shm_addr_port(&pair->addr), fi_strerror(err));
	pair_down(pair);
	tell(pair, TDM_PEER_LOST, TDM_REASON_NONE,
	     err == FI_EPROTO ? FI_ECONNRESET : err);
	tdm_shm_pair_release(pair);
}

void tdm_shm_pair_fail(struct tdm_shm_pair *pair, enum tdm_reason reason)
{
	char text[64] = "";

	pair_down(pair);
	tdm_shm_pair_set_state(pair, TDM_SHM_PAIR_FAILED);
	TDM_INFO(EP_CTRL, "%s:%u: no shared memory: %s",
		 tdm_shm_addr_ip(&pair->addr, text, sizeof(text)),
		 tdm_shm_addr_port(&pair->addr), reason_text(reason));
	tell(pair, TDM_PEER_REFUSED, reason, FI_EHOSTUNREACH);
}

void tdm_shm_pair_refused(struct tdm_shm_pair *pair, int silent)
{
	if (silent && ++pair->silent >= PAIR_SILENT_MOST) {
		tdm_shm_pair_fail(pair, TDM_REASON_REFUSED);
		return;
	}
	pair_down(pair);
	if (!pair->refused_told) {
		pair->refused_told = 1;
		tell(pair, TDM_PEER_REFUSED, TDM_REASON_NO_LISTENER,
		     FI_ECONNREFUSED);
	}
}

void tdm_shm_pairs_close(struct tdm_shm_ep *ep)
{
	while (!tdm_list_empty(&ep->attaching)) {
		struct tdm_shm_session *s = tdm_list_entry(
			ep->attaching.next, struct tdm_shm_session, node);

		if (s->pair)
			pair_down(s->pair);
		else
			tdm_shm_session_free(s);
	}
	while (!tdm_list_empty(&ep->pairs)) {
		struct tdm_shm_pair *pair = tdm_list_entry(
			ep->pairs.next, struct tdm_shm_pair, all);

		int up = pair->state == TDM_SHM_PAIR_UP;

		if (up && !pair->broken && !pair->self)
			tdm_shm_left_give(pair);
		/*
		 * Before the rest, so that the peer sees GONE before memory is
		 * freed that it may read.
		 */
		pair_down(pair);
		if (up) {
			end_pulls(pair, 1);
			end_ops(pair, 1);
		}
		pair_free(pair);
	}
}
