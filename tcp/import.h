/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint below another owner, fi_peer(3): the receive context that it
 * imports. Its queues, counters and EQ are imported by the files of peer/.
 *
 *   fi_srx_context(FI_PEER) makes a fid, to which one endpoint is bound; with it
 *   the endpoint's own receive side is replaced: rx_side.h.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_TCP_IMPORT_H
#define TDM_TCP_IMPORT_H

#include <rdma/fi_endpoint.h>

#include "base/base.h"

struct tdm_domain;
struct tdm_ep;

/*
 * fi_srx_context(3) with FI_PEER in op_flags. Out: *@srx. Errors: -FI_EINVAL: the
 * context cannot be used, or the domain was opened without FI_PEER; -FI_ENOMEM.
 * Lock: taken inside.
 */
int tdm_import_srx_open(struct tdm_domain *domain, const void *context,
			struct fid_ep **srx) tdm_must_check;

/*
 * @domain, which is new, imports @owner: if that has regions for peers
 * (TDM_RMA_OPS), they are those of both transports. Lock: not needed.
 */
void tdm_import_regions(struct tdm_domain *domain, struct fid_domain *owner);

/* Not 0 when @fid is a receive context of tdm_import_srx_open(). */
int tdm_import_srx_is(const struct fid *fid);

/*
 * fi_ep_bind(3) of @ep, which is not enabled, to @fid. Errors: -FI_EINVAL: it has
 * one; -FI_EBUSY: another endpoint has it; -FI_EDOMAIN.
 */
int tdm_import_srx_bind(struct tdm_ep *ep, struct fid *fid) tdm_must_check;

#endif /* TDM_TCP_IMPORT_H */
