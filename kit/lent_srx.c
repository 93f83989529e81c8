/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue of receives that is lent.
 *
 * Invariants:
 *  1. Entries come from one array and are never used twice, so that a pointer to
 *     an entry that was given back is recognized.
 *  2. An entry is in the list of its state (POSTED, QUEUED) or in none.
 *
 *    post:    POSTED --get--> MATCHED --free--> FREED
 *    message: ASKED --queue--> QUEUED --post--> STARTED --free--> FREED
 *             ASKED --free--> FREED    QUEUED --discard--> DISCARDED -> FREED
 *
 * No lock: one thread (lent.h).
 */
#include "kit/lent.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "kit/rule.h"

#define container(ptr, type, member)                                           \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

enum { ENTRIES_MOST = 8192, SRX_MOST = 16 };

static struct kit_entry entries[ENTRIES_MOST];
static size_t used;
static struct kit_srx *all[SRX_MOST];

/* ---- entries -------------------------------------------------------------- */

/*
 * Entries began with two pointers of the owner before libfabric 2.3. The kit may
 * run with another libfabric than it was built with, so the provider gets the
 * address that its own layout has.
 */
static ptrdiff_t layout(void)
{
	int built =
		FI_VERSION_LT(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
			      FI_VERSION(2, 3));
	int runs = FI_VERSION_LT(fi_version(), FI_VERSION(2, 3));

	return (built - runs) * (ptrdiff_t)(2 * sizeof(void *));
}

struct fi_peer_rx_entry *kit_rx(struct kit_entry *e)
{
	return (struct fi_peer_rx_entry *)(void *)((char *)&e->rx + layout());
}

/* The entry that the provider means, or NULL. */
static struct kit_entry *entry_of(const struct fi_peer_rx_entry *rx)
{
	const char *at =
		(const char *)rx - layout() - offsetof(struct kit_entry, rx);
	const char *first = (const char *)entries;

	if (at < first || at >= (const char *)&entries[used] ||
	    (size_t)(at - first) % sizeof(*entries))
		return NULL;
	return &entries[(size_t)(at - first) / sizeof(*entries)];
}

struct kit_entry *kit_entry_of(const struct kit_op *op)
{
	size_t i;

	for (i = used; i--;) {
		if (entries[i].op == op && (entries[i].state == KIT_MATCHED ||
					    entries[i].state == KIT_STARTED))
			return &entries[i];
	}
	return NULL;
}

size_t kit_entries_out(void)
{
	size_t i, n = 0;

	for (i = 0; i < used; i++)
		n += entries[i].state == KIT_MATCHED ||
		     entries[i].state == KIT_ASKED ||
		     entries[i].state == KIT_STARTED;
	return n;
}

static struct kit_entry *entry_new(struct kit_srx *srx, enum kit_kind kind)
{
	struct kit_entry *e;

	if (used == ENTRIES_MOST)
		abort();
	e = &entries[used++];
	e->srx = srx;
	e->kind = kind;
	e->rx.srx = &srx->fid;
	e->rx.iov = e->iov;
	e->rx.desc = e->desc;
	e->rx.owner_context = e;
	return e;
}

static void append(struct kit_entry **list, struct kit_entry *e)
{
	while (*list)
		list = &(*list)->next;
	e->next = NULL;
	*list = e;
}

static void unlink_entry(struct kit_entry **list, const struct kit_entry *e)
{
	while (*list && *list != e)
		list = &(*list)->next;
	if (*list)
		*list = e->next;
}

static uint64_t flags_of(enum kit_kind kind)
{
	return (kind == KIT_TAG ? FI_TAGGED : FI_MSG) | FI_RECV | FI_COMPLETION;
}

/* ---- calls of the peer ---------------------------------------------------- */

static struct kit_srx *known(struct fid_peer_srx *fid, const char *call)
{
	int i;

	for (i = 0; i < SRX_MOST && all[i]; i++) {
		if (&all[i]->fid != fid)
			continue;
		kit_check_call(call, all[i]->closed);
		return all[i];
	}
	kit_breach("%s was called with an SRX that was not lent", call);
	return NULL;
}

static struct kit_entry *known_entry(const struct fi_peer_rx_entry *rx,
				     const char *call)
{
	struct kit_entry *e = entry_of(rx);

	if (!e) {
		kit_breach("%s was called with an unknown entry", call);
		return NULL;
	}
	kit_check_call(call, e->srx->closed);
	if (e->rx.owner_context != e)
		kit_breach("the peer changed owner_context of an entry");
	return e;
}

/* A message of unknown source matches receives from any source only. */
static int matches(const struct kit_entry *recv, enum kit_kind kind,
		   fi_addr_t source, uint64_t tag)
{
	return recv->kind == kind && (kind == KIT_MSG || recv->rx.tag == tag) &&
	       (recv->rx.addr == FI_ADDR_UNSPEC || recv->rx.addr == source);
}

/* The part of a receive of many for a message of @bytes. */
static struct kit_entry *part_of(struct kit_entry *many, size_t bytes)
{
	struct kit_entry *e = entry_new(many->srx, many->kind);

	e->op = many->op;
	e->rx.context = many->rx.context;
	e->rx.count = 1;
	e->iov[0].iov_base = many->op->bytes + many->taken;
	e->iov[0].iov_len = many->op->room - many->taken;
	many->taken += bytes;
	return e;
}

static size_t room_of(const struct kit_entry *e)
{
	return e->iov[0].iov_len + (e->rx.count > 1 ? e->iov[1].iov_len : 0);
}

static struct kit_entry *take(struct kit_srx *srx, enum kit_kind kind,
			      const struct fi_peer_match_attr *attr)
{
	struct kit_entry *e = srx->posted;

	while (e &&
	       (!matches(e, kind, attr->addr, attr->tag) ||
		(e->op->is_multi && attr->msg_size > e->op->room - e->taken)))
		e = e->next;
	if (!e)
		return NULL;
	if (e->op->is_multi)
		return part_of(e, attr->msg_size);
	unlink_entry(&srx->posted, e);
	return e;
}

static int get(struct fid_peer_srx *fid, struct fi_peer_match_attr *attr,
	       struct fi_peer_rx_entry **out, enum kit_kind kind)
{
	struct kit_srx *srx =
		known(fid, kind == KIT_TAG ? "get_tag" : "get_msg");
	struct kit_entry *e;
	size_t room;

	if (!srx)
		return -FI_EINVAL;
	if (srx->asked)
		kit_breach("a second get_* came before the entry of the first "
			   "was queued");
	srx->asks++;
	srx->ask = *attr;
	e = take(srx, kind, attr);
	if (e) {
		e->state = KIT_MATCHED;
		room = room_of(e);
	} else {
		e = entry_new(srx, kind);
		e->state = KIT_ASKED;
		srx->asked = e;
		room = SIZE_MAX;
	}
	e->rx.addr = attr->addr;
	e->rx.tag = attr->tag;
	e->rx.msg_size = attr->msg_size < room ? attr->msg_size : room;
	e->rx.flags = flags_of(kind);
	*out = kit_rx(e);
	return e->state == KIT_MATCHED ? 0 : -FI_ENOENT;
}

static int get_msg(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **out)
{
	return get(srx, attr, out, KIT_MSG);
}

static int get_tag(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr,
		   struct fi_peer_rx_entry **out)
{
	return get(srx, attr, out, KIT_TAG);
}

static int queue(struct fi_peer_rx_entry *rx, enum kit_kind kind)
{
	struct kit_entry *e = known_entry(rx, "queue_*");

	if (!e)
		return -FI_EINVAL;
	if (e->state != KIT_ASKED || e->kind != kind) {
		kit_breach("queue_* was called with an entry that get_* did "
			   "not give for it, or a second time");
		return -FI_EINVAL;
	}
	if (e->srx->asked == e)
		e->srx->asked = NULL;
	e->state = KIT_QUEUED;
	append(&e->srx->queued, e);
	return 0;
}

static int queue_msg(struct fi_peer_rx_entry *rx)
{
	return queue(rx, KIT_MSG);
}

static int queue_tag(struct fi_peer_rx_entry *rx)
{
	return queue(rx, KIT_TAG);
}

static void foreach_unspec_addr(struct fid_peer_srx *fid,
				fi_addr_t (*source)(struct fi_peer_rx_entry *))
{
	struct kit_srx *srx = known(fid, "foreach_unspec_addr");
	struct kit_entry *e;

	if (!srx)
		return;
	srx->resolves++;
	for (e = srx->queued; e; e = e->next) {
		if (e->rx.addr == FI_ADDR_UNSPEC)
			e->rx.addr = source(kit_rx(e));
	}
}

static void free_entry(struct fi_peer_rx_entry *rx)
{
	struct kit_entry *e = known_entry(rx, "free_entry");

	if (!e)
		return;
	e->srx->frees++;
	switch (e->state) {
	case KIT_MATCHED:
	case KIT_STARTED:
		if (!e->ends && !e->srx->closing)
			kit_breach("an entry was given back before the "
				   "completion of its receive");
		break;
	case KIT_ASKED:
		if (e->srx->asked == e)
			e->srx->asked = NULL;
		break;
	case KIT_QUEUED:
		if (!e->srx->closing)
			kit_breach("an entry that is queued was given back");
		unlink_entry(&e->srx->queued, e);
		break;
	case KIT_DISCARDED:
		kit_breach("the peer gave back an entry that the owner "
			   "discards, which the owner frees");
		break;
	default:
		kit_breach("an entry was given back a second time");
	}
	e->state = KIT_FREED;
}

static const struct fi_ops_srx_owner original = {
	.size = sizeof(original),
	.get_msg = get_msg,
	.get_tag = get_tag,
	.queue_msg = queue_msg,
	.queue_tag = queue_tag,
	.foreach_unspec_addr = foreach_unspec_addr,
	.free_entry = free_entry,
};
static struct fi_ops_srx_owner owner_ops;

/* ---- calls of the rules --------------------------------------------------- */

static int no_close(struct fid *fid)
{
	return 0;
}

static ssize_t no_cancel(fid_t fid, void *context)
{
	return -FI_ENOENT;
}

static struct fi_ops fi_ops = { .size = sizeof(fi_ops), .close = no_close };
static struct fi_ops_ep ep_ops = { .size = sizeof(ep_ops),
				   .cancel = no_cancel };

void kit_srx_init(struct kit_srx *srx)
{
	int i;

	memset(srx, 0, sizeof(*srx));
	owner_ops = original;
	srx->fid.ep_fid.fid.fclass = FI_CLASS_PEER_SRX;
	srx->fid.ep_fid.fid.ops = &fi_ops;
	srx->fid.ep_fid.ops = &ep_ops;
	srx->fid.owner_ops = &owner_ops;
	for (i = 0; all[i] && all[i] != srx; i++) {
		if (i == SRX_MOST - 1)
			abort();
	}
	all[i] = srx;
}

int kit_srx_changed(const struct kit_srx *srx)
{
	return memcmp(&owner_ops, &original, sizeof(original)) ||
	       srx->fid.owner_ops != &owner_ops ||
	       srx->fid.ep_fid.fid.ops != &fi_ops ||
	       srx->fid.ep_fid.ops != &ep_ops;
}

static void describe(struct kit_entry *e, struct kit_op *op, size_t split)
{
	if (!split)
		split = op->room;
	e->op = op;
	e->iov[0] = (struct iovec){ op->bytes, split };
	e->iov[1] = (struct iovec){ op->bytes + split, op->room - split };
	e->rx.count = split < op->room ? 2 : 1;
	e->rx.context = op;
}

/* The entry of the message becomes that of the receive. */
static void start(struct kit_srx *srx, struct kit_entry *e)
{
	const struct fi_ops_srx_peer *ops = srx->fid.peer_ops;
	int ret;

	unlink_entry(&srx->queued, e);
	e->state = KIT_STARTED;
	e->rx.flags |= flags_of(e->kind);
	if (e->rx.msg_size > room_of(e))
		e->rx.msg_size = room_of(e);
	kit_step("start_%s", e->kind == KIT_TAG ? "tag" : "msg");
	ret = e->kind == KIT_TAG ? ops->start_tag(kit_rx(e)) :
				   ops->start_msg(kit_rx(e));
	if (ret)
		kit_breach("start_* returned %d instead of a completion", ret);
}

void kit_srx_post(struct kit_srx *srx, struct kit_op *op, fi_addr_t source,
		  uint64_t tag, size_t split)
{
	struct kit_entry *mine = entry_new(srx, op->kind), *e;

	mine->state = KIT_POSTED;
	mine->rx.addr = source;
	mine->rx.tag = tag;
	describe(mine, op, split);
	for (e = srx->queued; e; e = e->next) {
		if (matches(mine, e->kind, e->rx.addr, e->rx.tag))
			break;
	}
	if (!e) {
		append(&srx->posted, mine);
		return;
	}
	mine->state = KIT_FREED;
	mine->op = NULL;
	describe(e, op, split);
	start(srx, e);
}

void kit_srx_discard(struct kit_srx *srx)
{
	struct kit_entry *e = srx->queued;
	const struct fi_ops_srx_peer *ops = srx->fid.peer_ops;
	int ret;

	srx->queued = e->next;
	e->state = KIT_DISCARDED;
	kit_step("discard_%s", e->kind == KIT_TAG ? "tag" : "msg");
	ret = e->kind == KIT_TAG ? ops->discard_tag(kit_rx(e)) :
				   ops->discard_msg(kit_rx(e));
	if (ret)
		kit_breach("discard_* returned %d", ret);
	e->state = KIT_FREED;
}

void kit_srx_cancel(struct kit_srx *srx)
{
	srx->posted->state = KIT_FREED;
	srx->posted = srx->posted->next;
}

size_t kit_srx_waiting(const struct kit_srx *srx)
{
	const struct kit_entry *e;
	size_t n = 0;

	for (e = srx->queued; e; e = e->next)
		n++;
	return n;
}
