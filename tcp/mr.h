/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions of the owner, fi_mr(3). */
#ifndef TDM_TCP_MR_H
#define TDM_TCP_MR_H

#include <rdma/fi_domain.h>
#include <rdma/providers/fi_peer.h>

/* The calls of struct fi_ops_mr. */
extern struct fi_ops_mr tdm_mr_ops;

/* fi_open_ops(3) of the domain, which offers TDM_RMA_OPS. */
int tdm_mr_ops_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context);

/*
 * freeze: keep atomic operations out during a fork; thaw: end that. Lock: those
 * of all domains are held.
 */
void tdm_mr_freeze(void);
void tdm_mr_thaw(void);

/*
 * Free an entry of tdm_rma_ops.get(), which a transport gives back. Lock: held.
 */
void tdm_mr_entry_free(struct fi_peer_rx_entry *entry);

#endif /* TDM_TCP_MR_H */
