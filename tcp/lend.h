/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The embedded shared-memory peer, lent to owners other than ours: it is asked for
 * by fi_getinfo(3) with FI_PEER and the domain name "tandem-shm".
 *
 * Lock: none; these functions keep no state.
 * Spec: fi_peer(3); fi_tandem(7), AS A PEER.
 */
#ifndef TDM_TCP_LEND_H
#define TDM_TCP_LEND_H

#include <rdma/fabric.h>

/* Not 0 when @hints (may be NULL) ask for the peer. */
int tdm_lend_asked(const struct fi_info *hints);

/* As fi_getinfo(3), for hints that ask for the peer. */
int tdm_lend_getinfo(uint32_t version, const char *node, const char *service,
		     uint64_t flags, const struct fi_info *hints,
		     struct fi_info **info);

/* Not 0 when @attr is of a struct fi_info that tdm_lend_getinfo() returned. */
int tdm_lend_fabric_asked(const struct fi_fabric_attr *attr);

/* As fi_fabric(3): the fabric is the peer's. */
int tdm_lend_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);

#endif /* TDM_TCP_LEND_H */
