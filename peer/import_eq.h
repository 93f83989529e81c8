/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event queue that another owner lends, fi_peer(3) PEER EQ: tandem writes to it
 * and never reads it. Lock: none; the
 * count of users is atomic.
 */
#ifndef TDM_PEER_IMPORT_EQ_H
#define TDM_PEER_IMPORT_EQ_H

#include <rdma/fi_eq.h>

#include "base/base.h"

struct tdm_import_eq;

/*
 * Import the EQ of the struct fi_peer_eq_context @context; @closed(@arg) is called
 * when the import is closed. Out: *@eq. Errors: -FI_EINVAL: the context cannot be
 * used; -FI_ENOMEM.
 */
int tdm_import_eq_open(const void *context, void (*closed)(void *arg),
		       void *arg, struct tdm_import_eq **eq) tdm_must_check;

struct fid_eq *tdm_import_eq_fid(struct tdm_import_eq *eq);

/* Returns the import that @fid is, or NULL: it is an event queue of ours. */
struct tdm_import_eq *tdm_import_eq_of(struct fid *fid);

/*
 * get: an object reports to @eq from now on; put: it does not any more. In between
 * fi_close of @eq returns -FI_EBUSY.
 */
void tdm_import_eq_get(struct tdm_import_eq *eq);
void tdm_import_eq_put(struct tdm_import_eq *eq);

/*
 * Tell the owner what @e says, the loss of a remote endpoint as tandem's own EQ
 * reports it, by the event TDM_PEER_LOST of include/tdm_provider.h: fi_eq_write(3)
 * writes no error entries.
 */
void tdm_import_eq_lost(struct tdm_import_eq *eq,
			const struct fi_eq_err_entry *e);

#endif /* TDM_PEER_IMPORT_EQ_H */
