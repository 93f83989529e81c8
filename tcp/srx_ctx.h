/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive contexts, fi_srx_context(3): a receive side for several
 * endpoints.
 */
#ifndef TDM_TCP_SRX_CTX_H
#define TDM_TCP_SRX_CTX_H

#include <rdma/fi_domain.h>

struct tdm_done;
struct tdm_ep;

/* fi_srx_context(3). */
int tdm_srx_ctx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		     struct fid_ep **ctx, void *context);

/*
 * srx_ctx.c: bind; at enabling, share the AV and set where operations are
 * reported.
 */
int tdm_srx_ctx_bind(struct tdm_ep *ep, struct fid *fid);
int tdm_srx_ctx_enable(struct tdm_ep *ep, const struct tdm_done *done);

/* @ep, bound to a shared context, is enabled; is unbound. Lock: held. */
void tdm_srx_ctx_join(struct tdm_ep *ep);
void tdm_srx_ctx_leave(struct tdm_ep *ep);

#endif /* TDM_TCP_SRX_CTX_H */
