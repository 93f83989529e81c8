/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tandem imports when it is the peer of another owner, fi_peer(3). CQ and
 * counter stay objects of cq.c and cntr.c, whose exports are then the owner's
 * objects, so that transports report to these directly. import_eq.h has the EQ,
 * import_srx.h the receive context.
 */
#ifndef TDM_PEER_IMPORT_H
#define TDM_PEER_IMPORT_H

#include <rdma/fi_domain.h>
#include <rdma/providers/fi_peer.h>

#include "tdm_engine.h"

/*
 * Each returns the owner's object in @context, the struct fi_peer_*_context that
 * an open call with FI_PEER got; NULL when it cannot be used: there is no context,
 * it is shorter than that of libfabric 2.1, or it has no object or one without
 * calls. Lock: not needed.
 */
struct fid_domain *tdm_import_domain(const void *context);
struct fid_peer_cq *tdm_import_cq(const void *context);
struct fid_peer_cntr *tdm_import_cntr(const void *context);
struct fid_peer_srx *tdm_import_srx(const void *context);
struct fid_eq *tdm_import_eq(const void *context);

/*
 * Check the wait object of a queue that is to be imported: -FI_ENOSYS for others
 * than FI_WAIT_NONE, FI_WAIT_UNSPEC and FI_WAIT_FD. Lock: not needed.
 */
int tdm_import_wait(enum fi_wait_obj obj) tdm_must_check;

/*
 * The owner drives a queue, by fi_cq_read(3) or fi_cntr_read(3): make one pass of
 * progress of @engine, in which receive contexts that it lends may be called.
 * Lock: taken inside.
 */
void tdm_import_progress(struct tdm_engine *engine);

#endif /* TDM_PEER_IMPORT_H */
