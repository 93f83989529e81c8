/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of the objects and entries that an owner lends; see
 * peer.h.
 *
 * Lock: none; see peer.h.
 */
#include <string.h>

#include "kit/peer_priv.h"
#include "kit/rule.h"

/* Bytes of two pointers, with which entries began before libfabric 2.3. */
enum { LEAD_BYTES = 2 * sizeof(void *) };

struct fi_peer_rx_entry *kit_peer_rx(void *entry)
{
	const size_t built = offsetof(struct fi_peer_rx_entry, srx);
	const size_t runs =
		FI_VERSION_LT(fi_version(), FI_VERSION(2, 3)) ? LEAD_BYTES : 0;

	return (struct fi_peer_rx_entry *)(void *)((char *)entry + runs -
						   built);
}

/* ---- objects -------------------------------------------------------------- */

/* Whether a context of @size bytes is there and has its member. */
static int has(enum kit_about subject, const char *what, const void *context,
	       size_t size, size_t least)
{
	if (!context)
		kit_peer_fault(subject, "no context for the %s", what);
	else if (size < least)
		kit_peer_fault(subject,
			       "the context for the %s has the size %zu, which "
			       "is less than %zu",
			       what, size, least);
	return context && size >= least;
}

/* Whether every call of a table is set that has @count of them. */
static void look_table(enum kit_about subject, const char *what,
		       const void *ops, size_t bytes)
{
	const size_t *size = ops;
	void *const *call = (void *const *)(const void *)(size + 1);
	size_t i;

	if (!ops) {
		kit_peer_fault(subject, "owner_ops of the %s is not set", what);
		return;
	}
	if (*size < bytes)
		kit_peer_fault(subject,
			       "owner_ops of the %s has the size %zu, which is "
			       "less than %zu",
			       what, *size, bytes);
	for (i = 0; i < bytes / sizeof(void *) - 1; i++) {
		if (!call[i])
			kit_peer_fault(subject,
				       "call %zu of owner_ops of the %s is "
				       "not set",
				       i + 1, what);
	}
}

void kit_look_cq(const struct fi_peer_cq_context *context)
{
	if (!has(KIT_ON_CQ, "queue", context, context ? context->size : 0,
		 sizeof(*context)))
		return;
	if (!context->cq) {
		kit_peer_fault(KIT_ON_CQ, "the context names no queue");
		return;
	}
	if (context->cq->fid.fclass != FI_CLASS_PEER_CQ)
		kit_peer_fault(KIT_ON_CQ, "fid.fclass of the queue is %zu",
			       context->cq->fid.fclass);
	look_table(KIT_ON_CQ, "queue", context->cq->owner_ops,
		   sizeof(struct fi_ops_cq_owner));
}

void kit_look_cntr(const struct fi_peer_cntr_context *context)
{
	if (!has(KIT_ON_CNTR, "counter", context, context ? context->size : 0,
		 sizeof(*context)))
		return;
	if (!context->cntr) {
		kit_peer_fault(KIT_ON_CNTR, "the context names no counter");
		return;
	}
	if (context->cntr->fid.fclass != FI_CLASS_PEER_CNTR)
		kit_peer_fault(KIT_ON_CNTR, "fid.fclass of the counter is %zu",
			       context->cntr->fid.fclass);
	look_table(KIT_ON_CNTR, "counter", context->cntr->owner_ops,
		   sizeof(struct fi_ops_cntr_owner));
}

void kit_look_srx(const struct fi_peer_srx_context *context)
{
	const struct fid_peer_srx *srx;

	if (!has(KIT_ON_SRX, "receive context", context,
		 context ? context->size : 0, sizeof(*context)))
		return;
	srx = context->srx;
	if (!srx) {
		kit_peer_fault(KIT_ON_SRX, "the context names no object");
		return;
	}
	if (srx->ep_fid.fid.fclass != FI_CLASS_PEER_SRX &&
	    srx->ep_fid.fid.fclass != FI_CLASS_SRX_CTX)
		kit_peer_fault(KIT_ON_SRX,
			       "fid.fclass of the receive context is %zu",
			       srx->ep_fid.fid.fclass);
	look_table(KIT_ON_SRX, "receive context", srx->owner_ops,
		   sizeof(struct fi_ops_srx_owner));
	if (!srx->ep_fid.ops || !srx->ep_fid.ops->cancel)
		kit_peer_fault(KIT_ON_SRX_EP, "ep_fid.ops of the receive "
					      "context is not set");
}

void kit_look_eq(const struct fi_peer_eq_context *context)
{
	if (!has(KIT_ON_EQ, "event queue", context, context ? context->size : 0,
		 sizeof(*context)))
		return;
	if (!context->eq || context->eq->fid.fclass != FI_CLASS_EQ)
		kit_peer_fault(KIT_ON_EQ, "the context names no event queue");
	else if (!context->eq->ops || !context->eq->ops->write)
		kit_peer_fault(KIT_ON_EQ, "the event queue has no write call");
}

void kit_look_domain(const struct fi_peer_domain_context *context)
{
	if (!has(KIT_ON_DOMAIN, "domain", context, context ? context->size : 0,
		 sizeof(*context)))
		return;
	if (!context->domain || context->domain->fid.fclass != FI_CLASS_DOMAIN)
		kit_peer_fault(KIT_ON_DOMAIN, "the context names no domain");
	else if (!context->domain->ops || !context->domain->mr)
		kit_peer_fault(KIT_ON_DOMAIN, "the domain has no calls");
}

/* ---- entries -------------------------------------------------------------- */

static const uint64_t kinds = FI_MSG | FI_TAGGED;

static void look_flags(const char *call, const struct kit_peer_msg *m,
		       const struct fi_peer_rx_entry *rx)
{
	const uint64_t kind = m->flags & kinds;

	if (!(rx->flags & FI_RECV) || (rx->flags & kinds) != kind)
		kit_peer_fault(KIT_ON_MATCH,
			       "%s: flags %#llx, which have not FI_RECV and "
			       "%s",
			       call, (unsigned long long)rx->flags,
			       kind & FI_TAGGED ? "FI_TAGGED" : "FI_MSG");
	if (!(rx->flags & FI_COMPLETION))
		kit_peer_fault(KIT_ON_WANT,
			       "%s: a receive with a completion has no "
			       "FI_COMPLETION in its flags",
			       call);
}

/* An operation of the application above, whose buffer the entry has to have. */
static void look_buffer(const char *call, const struct kit_peer_msg *m,
			const struct fi_peer_rx_entry *rx)
{
	size_t i, room = 0;

	if (!rx->iov || (!rx->count && m->len)) {
		kit_peer_fault(KIT_ON_BUFFER, "%s: no buffer", call);
		return;
	}
	if (rx->count > 4) {
		kit_peer_fault(KIT_ON_BUFFER, "%s: %zu elements", call,
			       rx->count);
		return;
	}
	for (i = 0; i < rx->count; i++) {
		room += rx->iov[i].iov_len;
		if (!rx->iov[i].iov_base && rx->iov[i].iov_len)
			kit_peer_fault(KIT_ON_BUFFER, "%s: an element at NULL",
				       call);
	}
	if (kit_peer_want.room && room != kit_peer_want.room)
		kit_peer_fault(KIT_ON_BUFFER,
			       "%s: a buffer of %zu bytes for a receive of %zu",
			       call, room, kit_peer_want.room);
}

static void look_known(enum kit_about subject, const char *call,
		       const struct kit_peer_msg *m,
		       const struct fi_peer_rx_entry *rx)
{
	if (m->flags & FI_TAGGED && rx->tag != m->tag)
		kit_peer_fault(subject, "%s: tag %#llx for a message of %#llx",
			       call, (unsigned long long)rx->tag,
			       (unsigned long long)m->tag);
	if (rx->msg_size != m->len && rx->msg_size != kit_peer_want.room)
		kit_peer_fault(subject,
			       "%s: msg_size %zu for a message of %zu bytes",
			       call, rx->msg_size, m->len);
}

/* Not all owners set it: guide. */
static void look_srx(const char *call, const struct kit_peer_msg *m,
		     const struct fi_peer_rx_entry *rx)
{
	if (rx->srx != m->to->srx->lent)
		kit_peer_fault(KIT_ON_ENTRY_SRX, "%s: srx of the entry is %s",
			       call, rx->srx ? "of another peer" : "not set");
}

void kit_look_match(const char *call, const struct kit_peer_msg *m,
		    const struct fi_peer_rx_entry *rx)
{
	look_flags(call, m, rx);
	look_buffer(call, m, rx);
	look_known(KIT_ON_MATCH, call, m, rx);
	look_srx(call, m, rx);
	if (!rx->desc)
		kit_peer_fault(KIT_ON_DESC, "%s: desc is no array", call);
}

void kit_look_entry(const struct kit_peer_msg *m,
		    const struct fi_peer_rx_entry *rx)
{
	look_known(KIT_ON_ENTRY, "get_*", m, rx);
	look_srx("get_*", m, rx);
}
