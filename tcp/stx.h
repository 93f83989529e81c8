/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared transmit contexts, fi_stx_context(3). */
#ifndef TDM_TCP_STX_H
#define TDM_TCP_STX_H

#include <rdma/fi_domain.h>

struct tdm_single;
struct tdm_stx;

/* fi_stx_context(3). */
int tdm_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr,
		 struct fid_stx **stx, void *context);

/* stx.c */
int tdm_stx_bind(struct tdm_single *s, struct fid *fid);
void tdm_stx_put(struct tdm_stx *stx);

#endif /* TDM_TCP_STX_H */
