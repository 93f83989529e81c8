/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys of an endpoint. */
#ifndef TDM_SHM_KEYS_H
#define TDM_SHM_KEYS_H

#include <rdma/fi_endpoint.h>

#include "base/base.h"

struct tdm_shm_ep;

/*
 * Give @ep the key of @attr, fi_endpoint(3) auth_key, if there is one. Errors:
 * -FI_ENOMEM, also for an invalid size.
 */
int tdm_shm_keys_one(struct tdm_shm_ep *ep,
		     const struct fi_ep_attr *attr) tdm_must_check;

/*
 * The ops_open() of an address vector, which offers TDM_KEYS_OPS; that of an
 * endpoint calls it too.
 */
int tdm_shm_keys_ops_open(struct fid *fid, const char *name, uint64_t flags,
			  void **ops, void *context);

#endif /* TDM_SHM_KEYS_H */
