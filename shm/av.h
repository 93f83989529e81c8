/* SPDX-License-Identifier: BSD-2-Clause */
/* The address vector of the peer provider, fi_av(3). */
#ifndef TDM_SHM_AV_H
#define TDM_SHM_AV_H

#include <rdma/fi_domain.h>

#include "base/base.h"

struct tdm_shm_addr;
struct tdm_shm_av;
struct tdm_shm_ep;
struct tdm_space;

/* fi_av_open(3) on the peer's domain. Errors: -FI_EINVAL, -FI_ENOMEM. */
int tdm_shm_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		    struct fid_av **av, void *context) tdm_must_check;
struct tdm_shm_av *tdm_shm_av_from_fid(struct fid *fid);

/* The insert() of struct tdm_keys_ops. */
int tdm_shm_av_insert_key(struct fid_av *av, const void *addr, uint32_t key,
			  fi_addr_t *fi_addr);

/* Set *@addr to the address at @fi_addr. Errors: -FI_EINVAL: there is none. */
int tdm_shm_av_addr(const struct tdm_shm_av *av, fi_addr_t fi_addr,
		    struct tdm_shm_addr *addr) tdm_must_check;

/* Returns the layout of the addresses of @av, tdm_space.h. */
const struct tdm_space *tdm_shm_av_space(const struct tdm_shm_av *av);

/*
 * Returns the lowest user id of @addr, or FI_ADDR_UNSPEC when it is not
 * inserted.
 */
fi_addr_t tdm_shm_av_source(const struct tdm_shm_av *av,
			    const struct tdm_shm_addr *addr);

/*
 * bind: tell @ep of inserts and removals from now on, and keep the AV open
 * until unbind.
 */
void tdm_shm_av_bind(struct tdm_shm_av *av, struct tdm_shm_ep *ep);
void tdm_shm_av_unbind(struct tdm_shm_av *av, struct tdm_shm_ep *ep);

#endif /* TDM_SHM_AV_H */
