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
struct tdm_report_counts;
struct tdm_root;
struct tdm_foreign_side;
struct tdm_pair;

/* may_meet() and meet() of struct tdm_tiers. */
int tdm_tier_foreign_may_meet(struct tdm_root *root, fi_addr_t addr);
int tdm_tier_foreign_meet(struct tdm_root *root, struct tdm_pair *p);

/*
 * Called when the session of @conn has ended: operations with its remote
 * endpoint fail with @err. Returns not 0 when the provider carried its messages.
 */
int tdm_tier_foreign_lost(struct tdm_root *root, const struct tdm_conn *conn,
			  int err);

/* Out: *@out, the messages by the provider with @addr, all lives included. */
void tdm_tier_foreign_count(const struct tdm_root *root, fi_addr_t addr,
			    struct tdm_report_counts *out);

/* Returns the bits of enum tdm_report_lack; 0: no foreign peer. */
uint64_t tdm_tier_foreign_lacks(const struct tdm_root *root);

#endif /* TDM_TCP_TIER_FOREIGN_H */
