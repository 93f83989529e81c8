/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive contexts, fi_srx_context(3): a receive side for several
 * endpoints.
 */
#ifndef TDM_TCP_SRX_CTX_H
#define TDM_TCP_SRX_CTX_H

#include <rdma/fi_domain.h>

struct tdm_ep;

/* fi_srx_context(3). */
int tdm_srx_ctx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		     struct fid_ep **ctx, void *context);

/* Bind @ep to the context @fid: it gets a seat there. Lock: held. */
int tdm_srx_ctx_bind(struct tdm_ep *ep, struct fid *fid);

/* @ep, bound to a shared context, has been enabled. Lock: held. */
void tdm_srx_ctx_join(struct tdm_ep *ep);

#endif /* TDM_TCP_SRX_CTX_H */
