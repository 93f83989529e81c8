/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's domain. */
#ifndef TDM_SHM_DOMAIN_H
#define TDM_SHM_DOMAIN_H

#include <rdma/fi_domain.h>

#include "base/base.h"

/*
 * domain.c: fi_domain2(3) with FI_PEER; without: -FI_EINVAL. Memory registration and
 * queries on the peer's domain go to the imported one. Errors: -FI_ENOMEM.
 */
int tdm_shm_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **domain, uint64_t flags,
			void *context) tdm_must_check;

#endif /* TDM_SHM_DOMAIN_H */
