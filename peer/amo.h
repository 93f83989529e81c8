/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operations of fi_atomic(3) on memory: which are offered, and their
 * execution. Requests of both transports come here (tdm_rma_ops.atomic).
 */
#ifndef TDM_PEER_AMO_H
#define TDM_PEER_AMO_H

#include "base/base.h"
#include "tdm_amo.h"

/*
 * Returns the size of one value of @type (enum fi_datatype) in bytes, or 0: not
 * offered.
 */
size_t tdm_amo_size(unsigned type);

/*
 * Checks whether operation @op (enum fi_op) of @kind is offered for @type. Any
 * numbers may be passed. Returns 0 or -FI_EOPNOTSUPP.
 */
int tdm_amo_check(unsigned kind, unsigned type, unsigned op);

/*
 * As tdm_amo_check(), for an operation @a on @bytes bytes that another process
 * sent and tdm_amo_fits() accepted. Also checks that @bytes are whole values
 * and that both processes represent values alike.
 */
int tdm_amo_admit(const struct tdm_amo *a, uint64_t bytes);

/*
 * Returns how many values of @type, which must be offered, fit a call with
 * @bytes operand bytes.
 */
size_t tdm_amo_most(unsigned kind, unsigned type, size_t bytes);

/*
 * Carry out @a, which tdm_amo_check() accepts, on the @bytes at @target, a
 * multiple of the size of the type. @operands: those of buf, then those of
 * compare, as in a record. @result gets the former values, @bytes; or is NULL.
 * Nothing needs to be aligned; @target must not overlap @operands or @result.
 * Each value is written at most once.
 */
void tdm_amo_run(const struct tdm_amo *a, void *target, size_t bytes,
		 const void *operands, void *result);

/*
 * As tdm_amo_run(), on scattered memory; a value may be split between two
 * elements.
 */
void tdm_amo_run_on(const struct tdm_amo *a, const struct iovec *iov,
		    size_t count, const void *operands, void *result);

#endif /* TDM_PEER_AMO_H */
