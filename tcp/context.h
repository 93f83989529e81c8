/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transmit and receive contexts of a scalable endpoint, fi_tx_context(3) and
 * fi_rx_context(3).
 */
#ifndef TDM_TCP_CONTEXT_H
#define TDM_TCP_CONTEXT_H

#include <rdma/fi_endpoint.h>

/*
 * Copy the members that @attr sets to @a; those that @attr leaves open stay as
 * they are.
 */
void tdm_rx_attr_merge(struct fi_rx_attr *a, const struct fi_rx_attr *attr);

/* fi_tx_context(3), fi_rx_context(3) of @fid: context.c. Lock: taken inside. */
int tdm_tx_ctx_open(struct fid_ep *fid, int index, struct fi_tx_attr *attr,
		    struct fid_ep **out, void *context);
int tdm_rx_ctx_open(struct fid_ep *fid, int index, struct fi_rx_attr *attr,
		    struct fid_ep **out, void *context);

#endif /* TDM_TCP_CONTEXT_H */
