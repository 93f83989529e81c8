/* SPDX-License-Identifier: BSD-2-Clause */
/* Aliases of an endpoint, fi_ep_alias(3). */
#ifndef TDM_TCP_ALIAS_H
#define TDM_TCP_ALIAS_H

#include <rdma/fi_endpoint.h>

struct tdm_handle;

/*
 * fi_control(FI_ALIAS) on the endpoint or alias @from. Lock: held. Errors:
 * those of fi_ep_alias(3).
 */
int tdm_alias_open(const struct tdm_handle *from, const struct fi_alias *alias);

#endif /* TDM_TCP_ALIAS_H */
