/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions of the mock owner, as include/tdm_rma.h asks for them, and
 * its counters for one-sided operations. A region's first byte has address 0.
 */
#ifndef TDT_MOCK_RMA_H
#define TDT_MOCK_RMA_H

#include <rdma/fi_atomic.h>

#include "mock_owner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices of tdt_owner.rma. */
enum { TDT_READ, TDT_WRITE, TDT_REMOTE_READ, TDT_REMOTE_WRITE };

/* @buf under @key. */
void tdt_region_add(struct tdt_owner *o, uint64_t key, void *buf, size_t len,
		    uint64_t access);

/* Its bytes from @at on are a second vector. */
void tdt_region_split(struct tdt_owner *o, uint64_t key, size_t at);

/* As fi_close of a memory region: operations under way are revoked. */
void tdt_region_close(struct tdt_owner *o, uint64_t key);

/* ---- for mock_owner.c ---------------------------------------------------- */

void tdt_rma_init(struct tdt_owner *o);
void tdt_rma_free(struct tdt_owner *o);
int tdt_rma_open(struct tdt_owner *o);
int tdt_rma_bind(struct tdt_owner *o);
void tdt_rma_entry_free(struct fi_peer_rx_entry *rx);
int tdt_query_atomic(struct fid_domain *domain, enum fi_datatype type,
		     enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);
int tdt_rma_ops_open(struct fid *fid, const char *name, uint64_t flags,
		     void **ops, void *context);

#ifdef __cplusplus
}
#endif

#endif /* TDT_MOCK_RMA_H */
