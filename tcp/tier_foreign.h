/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint with a foreign peer, peer/foreign.h: who may be reached by it, and
 * the agreement about that over TCP. All functions: domain lock held; those with
 * an endpoint that has none do nothing.
 */
#ifndef TDM_TCP_TIER_FOREIGN_H
#define TDM_TCP_TIER_FOREIGN_H

#include <rdma/fabric.h>

struct tdm_conn;
struct tdm_root;
struct tdm_foreign_side;
struct tdm_pair;

/* may_meet() and meet() of struct tdm_tiers. */
int tdm_tier_foreign_may_meet(struct tdm_root *root, fi_addr_t addr);
int tdm_tier_foreign_meet(struct tdm_root *root, struct tdm_pair *p);

/*
 * Called when the session of @conn has ended: operations with its remote
 * endpoint fail with @err.
 */
void tdm_tier_foreign_lost(struct tdm_root *root, const struct tdm_conn *conn,
			   int err);

#endif /* TDM_TCP_TIER_FOREIGN_H */
