/* SPDX-License-Identifier: BSD-2-Clause */
/* Aliases of an endpoint, fi_ep_alias(3). */
#ifndef TDM_TCP_ALIAS_H
#define TDM_TCP_ALIAS_H

#include <rdma/fi_endpoint.h>

struct tdm_ep;

/* alias.c: fi_control(FI_ALIAS) on @ep. Lock: held. */
int tdm_alias_open(struct tdm_ep *ep, const struct fi_alias *alias);

/* Update the aliases of @ep after it was enabled. Lock: held. */
void tdm_alias_follow(struct tdm_ep *ep);

#endif /* TDM_TCP_ALIAS_H */
