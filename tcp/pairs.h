/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pairs of an endpoint, by index of its address vector. All indices of one
 * address (duplicates) share one pair, so that a connection or session belongs
 * to one pair.
 *
 * All functions: domain lock held.
 */
#ifndef TDM_TCP_PAIRS_H
#define TDM_TCP_PAIRS_H

#include "av/av.h"
#include "peer/link.h"
#include "tcp/pair.h"

struct tdm_addr;
struct tdm_idle;

/*
 * Returns the pair of @root and @addr, made when there is none. NULL: @addr is
 * not in the AV, or has a key that @root does not have, or out of memory.
 */
struct tdm_pair *tdm_ep_pair(struct tdm_root *root, fi_addr_t addr);

/* Returns the pair of @root and @addr, or NULL when there is none yet. */
struct tdm_pair *tdm_ep_pair_of(const struct tdm_root *root, fi_addr_t addr);

/*
 * Not 0 when p->conn has only asked whether the remote endpoint is there: no
 * operation has gone by it.
 */
int tdm_ep_probes(const struct tdm_root *root, const struct tdm_pair *p);

/* Free all pairs of @root, whose transports must have closed. */
void tdm_ep_free_pairs(struct tdm_root *root);

/* Callbacks of struct tdm_av_user. */
void tdm_ep_av_changed(struct tdm_av_user *user, int moved);
void tdm_ep_av_removed(struct tdm_av_user *user, fi_addr_t addr);

/*
 * Handles an event of the peer provider. @domain points to a struct tdm_domain.
 */
void tdm_ep_peer_event(void *domain, const struct tdm_peer_event *event);

/*
 * Called when opening the peer provider's endpoint for @root has returned @ret:
 * logs and keeps the reason.
 */
void tdm_ep_no_local(struct tdm_root *root, int ret);

/*
 * Callbacks of struct tdm_tcp_attr (tcp/wire/wire.h); @root is a struct tdm_root.
 */
void tdm_ep_accepted(void *ep, struct tdm_conn *conn, fi_addr_t addr);
void tdm_ep_lost(void *ep, struct tdm_conn *conn, fi_addr_t addr, int err);
int tdm_ep_taken(void *ep, const struct tdm_addr *addr);

/* Have the peer provider's endpoint of @root ask about TCP: tdm_live.h. */
void tdm_ep_be_asked(struct tdm_root *root);
void tdm_ep_crowded(void *ep, struct tdm_idle *idle);

#endif /* TDM_TCP_PAIRS_H */
