/* SPDX-License-Identifier: BSD-2-Clause */
/* The domain of the peer provider. */
#ifndef TDM_SHM_DOMAIN_H
#define TDM_SHM_DOMAIN_H

#include <rdma/fi_domain.h>

#include "base/base.h"

/*
 * fi_domain2(3) with FI_PEER. Memory registration and queries on this domain go
 * to the domain that it imports. Errors: -FI_EINVAL without FI_PEER,
 * -FI_ENOMEM.
 */
int tdm_shm_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **domain, uint64_t flags,
			void *context) tdm_must_check;

#endif /* TDM_SHM_DOMAIN_H */
