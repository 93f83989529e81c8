/* SPDX-License-Identifier: BSD-2-Clause */
/* The domain of the peer provider. */
#ifndef TDM_SHM_DOMAIN_H
#define TDM_SHM_DOMAIN_H

#include <rdma/fi_domain.h>

#include "base/base.h"

struct tdm_rma_ops;
struct tdm_shm_domain;

/*
 * fi_domain2(3). With FI_PEER, memory registration and queries on this domain go
 * to the domain that it imports; without it there are none. Errors: -FI_EINVAL
 * for other flags and for a context that cannot be used, -FI_ENOMEM.
 */
int tdm_shm_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **domain, uint64_t flags,
			void *context) tdm_must_check;

/*
 * Returns the owner's interface for memory regions; NULL: all one-sided operations
 * are refused.
 */
struct tdm_rma_ops *tdm_shm_domain_rma(struct tdm_shm_domain *domain);

#endif /* TDM_SHM_DOMAIN_H */
