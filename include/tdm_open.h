/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How to ask an owner or peer for an interface beyond fi_peer(3);
 * include/README.md lists them. Each is optional.
 */
#ifndef TDM_OPEN_H
#define TDM_OPEN_H

#include <rdma/fabric.h>

/*
 * Asks @fid for the interface @name, as fi_open_ops(3) does; the ops table of
 * @fid may lack any call. Returns the interface, or NULL: it is not offered.
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
