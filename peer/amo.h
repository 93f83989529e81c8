/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of fi_atomic(3) on memory: which there are, and what they do.
 * Both transports carry requests here (tdm_rma_ops.atomic).
 */
#ifndef TDM_PEER_AMO_H
#define TDM_PEER_AMO_H

#include "tdm_amo.h"
#include "base/base.h"

/* Bytes of one value of @type (enum fi_datatype), or 0: not offered. */
size_t tdm_amo_size(unsigned type);

/*
 * Is there operation @op (enum fi_op) of @kind on @type? Any numbers may be
 * asked about. Returns 0 or -FI_EOPNOTSUPP.
 */
int tdm_amo_check(unsigned kind, unsigned type, unsigned op);

/*
 * The same for @a about @bytes, as it came from another process and as
 * tdm_amo_fits() lets pass: are they whole values, and do they mean the same
 * here?
 */
int tdm_amo_admit(const struct tdm_amo *a, uint64_t bytes);

/* Most values of @type, which is offered, in one call with @bytes operands. */
size_t tdm_amo_most(unsigned kind, unsigned type, size_t bytes);

/*
 * Carry out @a, which tdm_amo_check() lets pass, on the @bytes at @target, a
 * multiple of the size of the type. @operands: as a record has them, those of
 * buf, then those of compare. @result: @bytes for the former values, or NULL.
 * Nothing needs to be aligned; @target overlaps neither of the others.
 * Each value is written once at most.
 */
void tdm_amo_run(const struct tdm_amo *a, void *target, size_t bytes,
		 const void *operands, void *result);

/* The same on memory in pieces, whose ends may be inside of a value. */
void tdm_amo_run_on(const struct tdm_amo *a, const struct iovec *iov,
		    size_t count, const void *operands, void *result);

#endif /* TDM_PEER_AMO_H */
