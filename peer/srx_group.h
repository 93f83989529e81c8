/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive contexts of a scalable endpoint, fi_rx_context(3): one export
 * (tdm_ctx.h) serves several receive sides, each with its own matching and its
 * own completion queue.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_PEER_SRX_GROUP_H
#define TDM_PEER_SRX_GROUP_H

#include "peer/srx.h"

struct tdm_srx_group;

/*
 * Open a group of @count receive sides, each with the attributes @attr; @count
 * must be in [1, TDM_CTX_MOST]. Out: *@group. Errors: -FI_ENOMEM. Lock: not
 * needed.
 */
int tdm_srx_group_open(const struct tdm_srx_attr *attr, unsigned int count,
		       struct tdm_srx_group **group) tdm_must_check;

/* Returns the receive side of context @index. */
struct tdm_srx *tdm_srx_group_srx(struct tdm_srx_group *group,
				  unsigned int index);

/* As tdm_srx_export(), for the group; valid as long as @group. */
struct fid_peer_srx *tdm_srx_group_export(struct tdm_srx_group *group,
					  enum tdm_transport t);

/* The value of tdm_done.ctx for endpoints with a group. */
extern struct tdm_ctx_ops tdm_srx_group_ops;

/* tdm_srx_forget() and tdm_srx_flush() of all contexts. */
void tdm_srx_group_forget(struct tdm_srx_group *group, fi_addr_t addr);
void tdm_srx_group_flush(struct tdm_srx_group *group);

/* Free @group; NULL is fine. Call it after the transports have closed. */
void tdm_srx_group_close(struct tdm_srx_group *group);

#endif /* TDM_PEER_SRX_GROUP_H */
