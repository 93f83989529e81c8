/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unexpected messages: their memory, and when a peer is *held*, that is, told
 * to announce messages instead of sending their payload.
 *
 * Invariants:
 *  1. ep->unexp_bytes is the sum of pair->unexp_bytes, and that the sum of what
 *     the unexpected messages of the pair are charged: the memory they take,
 *     whether or not the session has ended. It is part of the endpoint's
 *     account (tdm_held.h), which stays below FI_TANDEM_UNEXP_MAX plus, for
 *     each pair, its share, the messages in its ring and its announced
 *     messages.
 *  2. A pair is held only while it uses its own share, so that a flood from one
 *     pair does not stop others; or from the start of its session, if the
 *     account was full then, so that peers which come and go cannot fill
 *     memory.
 *  3. An announced message has no payload here, and no pair has more of them
 *     than ep->announced_most: the sender counts those without an answer and
 *     stops there. pair->waiting counts those of the present session. If the
 *     account is full when a session ends, its announced messages are dropped.
 * Locking: domain lock held.
 */
#include "shm/unexp.h"

#include <stdlib.h>

#include "base/env.h"
#include "tdm_open.h"

enum {
	UNEXP_ALONE = 255,
};

void tdm_shm_unexp_init(struct tdm_shm_ep *ep)
{
	struct tdm_held *held =
		tdm_open_ops(&ep->srx->ep_fid.fid, TDM_HELD_OPS);

	ep->held_own.size = sizeof(ep->held_own);
	ep->held_own.entry_bytes = sizeof(struct fi_peer_rx_entry);
	ep->account = held && held->size >= sizeof(*held) ? held :
							    &ep->held_own;
}

/*
 * Returns the number of the pool in domain->unexp for @len bytes; UNEXP_POOLS:
 * none is large enough.
 */
static unsigned pool_for(const struct tdm_shm_domain *domain, size_t len)
{
	unsigned pool = 0;

	while (pool < TDM_SHM_UNEXP_POOLS && len > domain->unexp_bytes[pool])
		pool++;
	return pool;
}

size_t tdm_shm_unexp_bytes(const struct tdm_shm_pair *pair, size_t len)
{
	const struct tdm_shm_domain *domain = pair->ep->domain;
	unsigned pool = pool_for(domain, len);

	return pair->ep->account->entry_bytes +
	       (pool < TDM_SHM_UNEXP_POOLS ?
			domain->unexp[pool].object_bytes :
			sizeof(struct tdm_shm_unexp) + len);
}

static void charge(struct tdm_shm_unexp *u, size_t bytes)
{
	u->charge += (uint32_t)bytes;
	u->pair->unexp_bytes += bytes;
	u->ep->unexp_bytes += bytes;
	u->ep->account->bytes += bytes;
}

struct tdm_shm_unexp *tdm_shm_unexp_alloc(struct tdm_shm_pair *pair, size_t len)
{
	struct tdm_shm_domain *domain = pair->ep->domain;
	unsigned pool = pool_for(domain, len);
	struct tdm_shm_unexp *u;

	if (pool < TDM_SHM_UNEXP_POOLS)
		u = tdm_pool_alloc(&domain->unexp[pool]);
	else
		u = malloc(sizeof(*u) + len);
	if (!u)
		return NULL;
	u->ep = pair->ep;
	u->domain = domain;
	u->pair = pair;
	u->pull = NULL;
	u->epoch = pair->epoch;
	u->pool = pool < TDM_SHM_UNEXP_POOLS ? (uint8_t)pool : UNEXP_ALONE;
	u->deliver = 0;
	u->len = len;
	u->charge = 0;
	tdm_list_init(&u->node);
	tdm_list_append(&pair->ep->unexps, &u->node);
	pair->refs++;
	charge(u, tdm_shm_unexp_bytes(pair, len));
	return u;
}

struct tdm_shm_unexp *tdm_shm_unexp_announced(struct tdm_shm_pull *pull)
{
	struct tdm_shm_pair *pair = pull->pair;
	struct tdm_shm_unexp *u = tdm_shm_unexp_alloc(pair, 0);

	if (!u)
		return NULL;
	u->pull = pull;
	pair->waiting++;
	charge(u, pair->ep->pulls.object_bytes);
	return u;
}

static void unhold(struct tdm_shm_pair *pair)
{
	tdm_list_del(&pair->held);
	tdm_a32_store_release(&pair->own->hold, 0);
}

/*
 * Let all pairs send payload again when half of the allowance is free; let
 * @pair do so in any case if it uses little of its share.
 */
static void unhold_some(struct tdm_shm_pair *pair)
{
	struct tdm_shm_ep *ep = pair->ep;

	if (tdm_list_linked(&pair->held) &&
	    pair->unexp_bytes <= TDM_HELD_SHARE_BYTES / 2)
		unhold(pair);
	if (ep->account->bytes > tdm_env.unexp_max_bytes / 2)
		return;
	while (!tdm_list_empty(&ep->held))
		unhold(tdm_list_entry(ep->held.next, struct tdm_shm_pair,
				      held));
}

static void hold(struct tdm_shm_pair *pair)
{
	if (tdm_list_linked(&pair->held))
		return;
	tdm_list_append(&pair->ep->held, &pair->held);
	tdm_a32_store_release(&pair->own->hold, TDM_SHM_HOLD_ANNOUNCE);
}

void tdm_shm_unexp_kept(struct tdm_shm_pair *pair)
{
	if (tdm_unlikely(!tdm_held_room(pair->ep->account)) &&
	    pair->unexp_bytes >= TDM_HELD_SHARE_BYTES)
		hold(pair);
}

int tdm_shm_unexp_full(const struct tdm_shm_ep *ep)
{
	return !tdm_held_room(ep->account);
}

void tdm_shm_unexp_begin(struct tdm_shm_pair *pair)
{
	if (tdm_shm_unexp_full(pair->ep))
		hold(pair);
	else if (tdm_a32_load_relaxed(&pair->own->hold))
		tdm_a32_store_release(&pair->own->hold, 0);
}

void tdm_shm_unexp_lost(struct tdm_shm_pair *pair)
{
	struct tdm_shm_ep *ep = pair->ep;
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &ep->unexps) {
		struct tdm_shm_unexp *u =
			tdm_list_entry(pos, struct tdm_shm_unexp, node);

		if (tdm_held_room(ep->account))
			return;
		if (u->pair != pair || !u->pull || !u->entry)
			continue;
		ep->srx->owner_ops->free_entry(u->entry);
		tdm_pool_free(&ep->pulls, u->pull);
		tdm_shm_unexp_free(u);
	}
}

/* Remove @u from the endpoint's account; its memory stays. */
static void unexp_settle(struct tdm_shm_unexp *u)
{
	struct tdm_shm_ep *ep = u->ep;

	if (!ep)
		return;
	tdm_list_del(&u->node);
	if (u->pull && u->epoch == u->pair->epoch)
		u->pair->waiting--;
	ep->unexp_bytes -= u->charge;
	ep->account->bytes -= u->charge;
	u->pair->unexp_bytes -= u->charge;
	if (tdm_unlikely(!tdm_list_empty(&ep->held)))
		unhold_some(u->pair);
	u->pair->refs--;
	tdm_shm_pair_release(u->pair);
	u->ep = NULL;
}

void tdm_shm_unexp_free(struct tdm_shm_unexp *u)
{
	unexp_settle(u);
	if (u->pool == UNEXP_ALONE)
		free(u);
	else
		tdm_pool_free(&u->domain->unexp[u->pool], u);
}

void tdm_shm_rx_orphan(struct tdm_shm_ep *ep)
{
	struct tdm_list *node;

	while ((node = tdm_list_pop(&ep->unexps))) {
		struct tdm_shm_unexp *u =
			tdm_list_entry(node, struct tdm_shm_unexp, node);

		if (ep->account)
			ep->account->bytes -= u->charge;
		u->ep = NULL;
		u->pair = NULL;
		u->pull = NULL;
	}
}

fi_addr_t tdm_shm_rx_source(struct fi_peer_rx_entry *entry)
{
	const struct tdm_shm_unexp *u = entry->peer_context;

	return u->pair ? u->pair->owner_addr : FI_ADDR_UNSPEC;
}
