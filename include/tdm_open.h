/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces beyond fi_peer(3) that the owner of an object may have: those of
 * tdm_ctx.h, tdm_ids.h and tdm_source.h. Another owner need not have them.
 */
#ifndef TDM_OPEN_H
#define TDM_OPEN_H

#include <rdma/fabric.h>

/*
 * fi_open_ops(3) of @fid, of which any call may be missing. Returns the
 * interface @name, or NULL: the owner does not have it.
 */
static inline void *tdm_open_ops(struct fid *fid, const char *name)
{
	const struct fi_ops *ops = fid->ops;
	void *found = NULL;

	if (!ops || ops->size < sizeof(*ops) || !ops->ops_open ||
	    ops->ops_open(fid, name, 0, &found, NULL))
		return NULL;
	return found;
}

#endif /* TDM_OPEN_H */
