/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The right to a memory region for peers with a key, or for one of them. Such a
 * region keeps copies of the keys, so that it does not matter what becomes of the
 * address vector they were in.
 */
#ifndef TDM_TCP_MR_AUTH_H
#define TDM_TCP_MR_AUTH_H

#include <stdint.h>

#include "base/base.h"

struct fi_mr_attr;
struct tdm_domain;
struct tdm_mr_auth;
struct tdm_rma_request;

/*
 * Find out which peers may use a region of @d that is registered with @attr and
 * @flags: fi_mr(3) auth_key, struct fi_mr_auth_key and FI_AUTH_KEY, which is
 * set only where tdm_domain_av_keys(). Out: *@auth; NULL: @attr has no key, all
 * may. Errors: -FI_EINVAL, -FI_ENOMEM. Lock: taken inside.
 */
int tdm_mr_auth_open(struct tdm_domain *d, const struct fi_mr_attr *attr,
		     uint64_t flags, struct tdm_mr_auth **auth) tdm_must_check;

/* Free @auth, which may be NULL. Lock: none. */
void tdm_mr_auth_free(struct tdm_mr_auth *auth);

/* Not 0 when the initiator of @req may use the region. Lock: held. */
int tdm_mr_auth_ok(const struct tdm_mr_auth *auth,
		   const struct tdm_rma_request *req);

#endif /* TDM_TCP_MR_AUTH_H */
