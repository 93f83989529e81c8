/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive contexts, fi_srx_context(3): a receive side for several
 * endpoints.
 */
#ifndef TDM_TCP_SRX_CTX_H
#define TDM_TCP_SRX_CTX_H

#include <rdma/fi_domain.h>

struct tdm_ep;
struct tdm_single;
struct tdm_srx_ctx;

/* fi_srx_context(3). */
int tdm_srx_ctx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		     struct fid_ep **ctx, void *context);

/* Bind @s to the context @fid: it gets a seat there. Lock: held. */
int tdm_srx_ctx_bind(struct tdm_single *s, struct fid *fid);

/* The endpoint that receives are posted to. */
struct tdm_ep *tdm_srx_ctx_ep(struct tdm_srx_ctx *ctx);

#endif /* TDM_TCP_SRX_CTX_H */
