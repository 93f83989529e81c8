/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of endpoints, fi_profile(3). */
#ifndef TDM_TCP_PROFILE_H
#define TDM_TCP_PROFILE_H

#include <rdma/fabric.h>

/* The name by which fi_profile_open(3) asks for a profile. */
#define TDM_PROFILE_OPS "fi_profile_ops"

/*
 * fi_open_ops(3) of an endpoint or context: opens a profile of it. The endpoint
 * cannot be closed before the profile. Lock: taken inside. Errors: -FI_ENOSYS:
 * another name; -FI_EOPBADSTATE: not enabled; -FI_EBADFLAGS, -FI_ENOMEM.
 */
int tdm_profile_open(struct fid *fid, const char *name, uint64_t flags,
		     void **ops, void *context);

#endif /* TDM_TCP_PROFILE_H */
