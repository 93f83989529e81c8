/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of the peer provider of the kit; see peer.h.
 *
 * Invariant: messages are never freed, so that an owner which starts one twice, or
 * one that is gone, is found.
 *
 * Lock: none; see peer.h.
 */
#include <string.h>

#include <rdma/fi_errno.h>

#include "kit/peer_priv.h"
#include "kit/rule.h"

/* Those that the owner has queued, at all endpoints. */
static struct kit_peer_msg *waiting;

static fi_addr_t source(const struct kit_peer_msg *m)
{
	const struct kit_peer_av *av = m->to->av;
	size_t i;

	for (i = 0; i < av->count; i++) {
		if (av->name[i] == m->from)
			return av->user_id[i];
	}
	return FI_ADDR_UNSPEC;
}

static void append(struct kit_peer_msg **list, struct kit_peer_msg *m)
{
	while (*list)
		list = &(*list)->next;
	m->next = NULL;
	*list = m;
}

static int take_out(struct kit_peer_msg **list, const struct kit_peer_msg *m)
{
	for (; *list; list = &(*list)->next) {
		if (*list != m)
			continue;
		*list = m->next;
		return 1;
	}
	return 0;
}

/* ---- receiving ------------------------------------------------------------ */

/* Returns the bytes that fit. */
static size_t scatter(const struct fi_peer_rx_entry *rx,
		      const struct kit_peer_msg *m)
{
	size_t i, n, done = 0;

	for (i = 0; i < rx->count && done < m->len; i++) {
		n = m->len - done;
		if (n > rx->iov[i].iov_len)
			n = rx->iov[i].iov_len;
		memcpy(rx->iov[i].iov_base, m->bytes + done, n);
		done += n;
	}
	return done;
}

static void report(const struct fi_peer_rx_entry *rx,
		   const struct kit_peer_msg *m, size_t placed)
{
	struct fid_peer_cq *cq = m->to->rx->lent;
	struct fid_peer_cntr *cntr = m->to->rx_cntr ? m->to->rx_cntr->lent :
						      NULL;
	struct fi_cq_err_entry err = {
		.op_context = rx->context,
		.flags = FI_RECV | m->flags,
		.len = placed,
		.olen = m->len - placed,
		.buf = rx->count ? rx->iov[0].iov_base : NULL,
		.data = m->data,
		.tag = m->tag,
		.src_addr = source(m),
		.err = kit_peer_do.fail ? kit_peer_do.fail : FI_ETRUNC,
		.prov_errno = kit_peer_do.fail ? kit_peer_do.fail : FI_ETRUNC,
	};

	if (kit_peer_do.fail || placed < m->len) {
		if (cntr)
			cntr->owner_ops->incerr(cntr);
		cq->owner_ops->writeerr(cq, &err);
		return;
	}
	if (cntr)
		cntr->owner_ops->inc(cntr);
	cq->owner_ops->write(cq, rx->context, FI_RECV | m->flags, placed,
			     err.buf, m->data, m->tag, err.src_addr);
}

/* The entry is a receive for @m: both end here. */
static void finish(void *entry, struct kit_peer_msg *m)
{
	const struct fi_peer_rx_entry *rx = kit_peer_rx(entry);

	m->state = KIT_GONE;
	kit_step("write and free_entry for the owner");
	report(rx, m, scatter(rx, m));
	m->to->srx->lent->owner_ops->free_entry(entry);
}

static void queue(struct kit_peer_msg *m, void *entry)
{
	const struct fi_ops_srx_owner *ops = m->to->srx->lent->owner_ops;
	struct fi_peer_rx_entry *rx = kit_peer_rx(entry);
	int ret;

	kit_look_entry(m, rx);
	rx->peer_context = m;
	rx->flags |= m->flags & FI_REMOTE_CQ_DATA;
	rx->cq_data = m->data;
	m->state = KIT_WAITS;
	m->entry = entry;
	append(&waiting, m);
	kit_peer_seen.misses++;
	kit_step("queue_* for the owner");
	ret = m->flags & FI_TAGGED ? ops->queue_tag(entry) :
				     ops->queue_msg(entry);
	if (ret)
		kit_peer_fault(KIT_ON_QUEUE, "queue_* returned %d", ret);
}

/* Offer @m, which has arrived. */
static void offer(struct kit_peer_msg *m)
{
	struct fid_peer_srx *srx = m->to->srx->lent;
	struct fi_peer_match_attr attr = { .addr = source(m),
					   .msg_size = m->len,
					   .tag = m->tag };
	struct fi_peer_rx_entry *entry = NULL;
	int ret;

	if (kit_peer_do.hide)
		attr.addr = FI_ADDR_UNSPEC;
	m->hidden = attr.addr == FI_ADDR_UNSPEC;
	kit_step("get_* for the owner");
	ret = m->flags & FI_TAGGED ?
		      srx->owner_ops->get_tag(srx, &attr, &entry) :
		      srx->owner_ops->get_msg(srx, &attr, &entry);
	kit_peer_seen.arrivals++;
	if ((ret && ret != -FI_ENOENT) || !entry) {
		kit_peer_fault(KIT_ON_GET, "get_* returned %d and %s entry",
			       ret, entry ? "an" : "no");
		m->state = KIT_GONE;
	} else if (ret) {
		queue(m, entry);
	} else {
		kit_peer_seen.matches++;
		kit_look_match("get_*", m, kit_peer_rx(entry));
		finish(entry, m);
	}
}

void kit_peer_pass(const struct kit_peer_cq *cq,
		   const struct kit_peer_cntr *cntr)
{
	struct kit_peer_ep *ep;
	struct kit_peer_msg *m;

	if (kit_peer_do.hold)
		return;
	for (ep = kit_peer_eps; ep; ep = ep->next) {
		if (cq ? ep->rx != cq : ep->rx_cntr != cntr)
			continue;
		while ((m = ep->arrived)) {
			ep->arrived = m->next;
			if (m->state == KIT_STARTING)
				finish(m->entry, m);
			else
				offer(m);
		}
	}
}

/*
 * The message that the owner means by @entry of @call, which waits no longer, or
 * NULL.
 */
static struct kit_peer_msg *taken(const char *call, void *entry, uint64_t kind)
{
	struct kit_peer_msg *m = kit_peer_rx(entry)->peer_context, *w = waiting;

	kit_step("%s by the owner", call);
	while (w && w->entry != entry)
		w = w->next;
	if (!w) {
		kit_peer_fault(KIT_ON_START,
			       "%s of an entry that is not queued", call);
		return NULL;
	}
	if (w != m)
		kit_peer_fault(KIT_ON_CONTEXT,
			       "%s: peer_context is not what the peer had set",
			       call);
	if (!(w->flags & kind))
		kit_peer_fault(KIT_ON_START,
			       "%s of a message of the other kind", call);
	take_out(&waiting, w);
	return w;
}

static int start(const char *call, void *entry, uint64_t kind)
{
	struct kit_peer_msg *m = taken(call, entry, kind);

	if (!m)
		return 0;
	kit_peer_seen.starts++;
	kit_look_match(call, m, kit_peer_rx(entry));
	if (!kit_peer_do.later) {
		finish(entry, m);
		return 0;
	}
	m->state = KIT_STARTING;
	append(&m->to->arrived, m);
	return 0;
}

static int start_msg(struct fi_peer_rx_entry *entry)
{
	return start("start_msg", entry, FI_MSG);
}

static int start_tag(struct fi_peer_rx_entry *entry)
{
	return start("start_tag", entry, FI_TAGGED);
}

/* The owner frees the entry. */
static int discard(const char *call, void *entry, uint64_t kind)
{
	struct kit_peer_msg *m = taken(call, entry, kind);

	if (m)
		m->state = KIT_GONE;
	kit_peer_seen.discards++;
	return 0;
}

static int discard_msg(struct fi_peer_rx_entry *entry)
{
	return discard("discard_msg", entry, FI_MSG);
}

static int discard_tag(struct fi_peer_rx_entry *entry)
{
	return discard("discard_tag", entry, FI_TAGGED);
}

struct fi_ops_srx_peer kit_peer_srx_ops = {
	.size = sizeof(kit_peer_srx_ops),
	.start_msg = start_msg,
	.start_tag = start_tag,
	.discard_msg = discard_msg,
	.discard_tag = discard_tag,
};

static fi_addr_t get_addr(struct fi_peer_rx_entry *entry)
{
	struct kit_peer_msg *w = waiting;

	while (w && w->entry != entry)
		w = w->next;
	if (!w) {
		kit_peer_fault(KIT_ON_UNSPEC,
			       "get_addr() of an entry that is not queued");
		return FI_ADDR_UNSPEC;
	}
	if (!w->hidden)
		kit_peer_fault(KIT_ON_UNSPEC, "get_addr() of an entry whose "
					      "source is known");
	kit_peer_seen.asked++;
	if (kit_peer_do.hide)
		return FI_ADDR_UNSPEC;
	w->hidden = source(w) == FI_ADDR_UNSPEC;
	return source(w);
}

void kit_peer_resolve(const struct kit_peer_av *av)
{
	struct kit_peer_ep *ep;

	for (ep = kit_peer_eps; ep; ep = ep->next) {
		if (ep->av == av)
			ep->srx->lent->owner_ops->foreach_unspec_addr(
				ep->srx->lent, get_addr);
	}
}

void kit_peer_drop(struct kit_peer_ep *ep)
{
	struct kit_peer_msg *m, *next;

	ep->arrived = NULL;
	for (m = waiting; m; m = next) {
		next = m->next;
		if (m->to != ep)
			continue;
		kit_peer_fault(KIT_ON_LEFT,
			       "a message that the owner has queued was "
			       "neither started nor discarded");
		take_out(&waiting, m);
	}
}

void kit_peer_arrive(struct kit_peer_ep *to, struct kit_peer_msg *m)
{
	m->to = to;
	append(&to->arrived, m);
}
