/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receive context that another owner lends, in the place of peer/srx.h. Both
 * transports get an export as they get one of ours, and their calls are passed
 * on to the owner; its calls are passed on to the transport that has the message.
 *
 * Each message has an entry of ours beside the owner's: the owner's may have the
 * layout of another libfabric, flags of its own, no srx and no user ids; it knows
 * one transport where we have two.
 *
 * fi_peer(3) lets a peer call the receive context only while the owner drives it,
 * since the owner has a lock for that. Our transports find messages in sends, too.
 * Such a message is *late*: it is kept as unexpected, and offered to the owner in
 * its next pass, as are all that come after it until then.
 *
 * The interface of import_srx.c and import_fid.c. All functions: domain lock held,
 * unless they say otherwise.
 */
#ifndef TDM_PEER_IMPORT_SRX_H
#define TDM_PEER_IMPORT_SRX_H

#include <rdma/providers/fi_peer.h>

#include "base/list.h"
#include "base/pool.h"
#include "peer/cq.h"
#include "tdm_done.h"
#include "tdm_engine.h"

struct tdm_import;

/* Those of a domain. */
struct tdm_imports {
	struct tdm_engine *engine;
	/* struct tdm_import_entry; the owner may have them until the domain closes */
	struct tdm_pool entries;
	struct tdm_list late; /* struct tdm_import with calls that wait */
	/* Wakes a sleeper on the engine's descriptor. */
	void (*wake)(struct tdm_engine *engine);
};

/* Lock: not needed. */
void tdm_imports_init(struct tdm_imports *imports, struct tdm_engine *engine);
void tdm_imports_fini(struct tdm_imports *imports);

/* Make the calls that wait for the owner to drive us. */
void tdm_imports_late(struct tdm_imports *imports);

/*
 * Import @owner, and set its peer_ops. Out: *@import, with one user, the fid that
 * the owner gets. Errors: -FI_ENOMEM. Spec: fi_peer(3), PEER SRX.
 */
int tdm_import_open(struct tdm_imports *imports, struct fid_peer_srx *owner,
		    struct tdm_import **import) tdm_must_check;

/* The fid is closed: the owner is not called any more. */
void tdm_import_shut(struct tdm_import *import);

/*
 * An endpoint uses @import. @free_rma: as in struct tdm_srx_attr; NULL: the regions
 * are the owner's, and so are their entries. Errors:
 * -FI_EBUSY: another one does, or did.
 */
int tdm_import_join(struct tdm_import *import,
		    void (*free_rma)(struct fi_peer_rx_entry *entry))
	tdm_must_check;

/* Returns the export of @import for transport @t. */
struct fid_peer_srx *tdm_import_export(struct tdm_import *import,
				       enum tdm_transport t);

/* Set where receives are reported, and the user ids; @done is copied. */
void tdm_import_set_done(struct tdm_import *import,
			 const struct tdm_done *done);

/*
 * The endpoint closes. flush: before its transports, which are asked to discard
 * the messages that wait; the owner keeps their entries, and may discard them
 * later. leave: after them.
 */
void tdm_import_flush(struct tdm_import *import);
void tdm_import_leave(struct tdm_import *import);

/*
 * Returns where the endpoint behind @fid reports, or NULL: @fid is no export of
 * this file.
 */
const struct tdm_done *tdm_import_done(const struct fid_peer_srx *fid);

#endif /* TDM_PEER_IMPORT_SRX_H */
