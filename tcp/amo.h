/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations of the owner, fi_atomic(3). */
#ifndef TDM_TCP_AMO_H
#define TDM_TCP_AMO_H

#include <rdma/fi_atomic.h>

/* fi_query_atomic(3): amo.c. Lock: not needed. */
int tdm_amo_query(struct fid_domain *domain, enum fi_datatype type,
		  enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags);

#endif /* TDM_TCP_AMO_H */
