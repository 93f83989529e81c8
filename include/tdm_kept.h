/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request that outlives its call: a copy of a struct tdm_xfer, which points
 * to the memory of the call.
 *
 * Locking: that of the caller.
 */
#ifndef TDM_KEPT_H
#define TDM_KEPT_H

#include "tdm_xfer.h"

/* A request, and copies of all that it points to except the buffers. */
struct tdm_xfer_kept {
	struct tdm_xfer x;
	struct tdm_amo_call amo;
	struct iovec iov[TDM_AMO_VECTOR];
	struct fi_rma_iov more[TDM_RMA_IOV_LIMIT - 1];
};

/*
 * Copy @x to @kept, which must not move. With @copy, also copy the payload of
 * x->len bytes there; with NULL the request goes on to use the buffers of @x.
 */
static inline void tdm_xfer_keep(struct tdm_xfer_kept *kept,
				 const struct tdm_xfer *x, void *copy)
{
	size_t i;

	kept->x = *x;
	kept->x.desc = NULL;
	if (x->flags & FI_ATOMIC) {
		kept->amo = *x->amo;
		kept->x.amo = &kept->amo;
	}
	if (x->flags & TDM_RANGES) {
		for (i = 0; i < x->more_count; i++)
			kept->more[i] = x->more[i];
		kept->x.more = kept->more;
	}
	if (copy) {
		tdm_iov_copy_from(copy, x->iov, x->count, 0, x->len);
		tdm_xfer_buf(&kept->x, copy, x->len);
		return;
	}
	for (i = 0; i < x->count; i++)
		kept->iov[i] = x->iov[i];
	kept->x.iov = kept->iov;
}

#endif /* TDM_KEPT_H */
