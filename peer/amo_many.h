/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of fi_atomic(3) on many values at once, for memory that nobody else
 * uses meanwhile: the reductions of collective operations.
 */
#ifndef TDM_PEER_AMO_MANY_H
#define TDM_PEER_AMO_MANY_H

#include <stddef.h>

struct tdm_amo;

/*
 * As tdm_amo_run() without a result, for @a of the kind TDM_AMO_BASE. Values of
 * @target may be written several times. Nothing needs to be aligned; the same
 * bits as tdm_amo_run() leaves.
 */
void tdm_amo_run_many(const struct tdm_amo *a, void *target, size_t bytes,
		      const void *operands);

#endif /* TDM_PEER_AMO_MANY_H */
