/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive side where there are groups or keys: srx_space.c, for the files
 * of the receive side. All functions: domain lock held.
 */
#ifndef TDM_PEER_SRX_SPACE_H
#define TDM_PEER_SRX_SPACE_H

#include "peer/srx_priv.h"
#include "tdm_space.h"

/*
 * tdm_srx_recv() of a receive without FI_PEEK, FI_CLAIM and the like, with
 * spaces or without.
 */
ssize_t tdm_srx_recv_space(struct tdm_srx *srx, const struct tdm_xfer *x,
			   enum tdm_srx_kind kind);

/* Returns the number of the key of the sender @addr; 0: none. */
uint32_t tdm_srx_key(const struct tdm_srx *srx, fi_addr_t addr);

/*
 * tdm_match_find_posted() and tdm_match_find_arrived(), for engines with spaces
 * and without.
 */
struct tdm_match_item *tdm_srx_find_posted(struct tdm_srx *srx,
					   const struct tdm_srx_msg *msg);
struct tdm_match_item *tdm_srx_find_arrived(struct tdm_srx *srx,
					    enum tdm_srx_kind kind,
					    const struct tdm_match_item *want);

/*
 * Returns the match address of the source of @msg, which its transport now
 * knows as @addr.
 */
static inline fi_addr_t tdm_srx_match_addr(const struct tdm_srx *srx,
					   const struct tdm_match_item *msg,
					   fi_addr_t addr)
{
	return srx->spaces ? tdm_space_in_group(msg->addr, (uint32_t)addr) :
			     addr;
}

#endif /* TDM_PEER_SRX_SPACE_H */
