/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exports of a receive context that another owner lends, and how it opens and
 * closes: import_srx.h.
 *
 * Lock: domain held, but for tdm_imports_init() and tdm_imports_fini().
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "peer/import_priv.h"
#include "tdm_nosys.h"

/* ---- the exports --------------------------------------------------------- */

static fi_addr_t user_id(struct fid_peer_srx *fid, fi_addr_t addr)
{
	return tdm_import_reported(tdm_import_port_of(fid)->import, addr);
}

static struct tdm_user_id_ops user_id_ops = {
	.size = sizeof(user_id_ops),
	.id = user_id,
};

static int export_ops_open(struct fid *fid, const char *name, uint64_t flags,
			   void **ops, void *context)
{
	struct tdm_import_port *port =
		tdm_container_of(fid, struct tdm_import_port, fid.ep_fid.fid);

	(void)context;
	if (!name || !ops || flags)
		return -FI_EINVAL;
	if (!strcmp(name, TDM_USER_ID_OPS))
		*ops = &user_id_ops;
	else if (!strcmp(name, TDM_HELD_OPS))
		*ops = &port->import->held;
	else
		return -FI_ENOSYS;
	return 0;
}

static struct fi_ops export_fid_ops = {
	.size = sizeof(export_fid_ops),
	.close = tdm_no_fi_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = export_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

struct fid_peer_srx *tdm_import_export(struct tdm_import *import,
				       enum tdm_transport t)
{
	return &import->port[t].fid;
}

const struct tdm_done *tdm_import_done(const struct fid_peer_srx *fid)
{
	if (fid->ep_fid.fid.ops != &export_fid_ops)
		return NULL;
	return &tdm_container_of(fid, const struct tdm_import_port, fid)
			->import->done;
}

void tdm_import_set_done(struct tdm_import *import, const struct tdm_done *done)
{
	import->done = *done;
}

/* ---- open and close ------------------------------------------------------ */

void tdm_imports_init(struct tdm_imports *imports, struct tdm_engine *engine)
{
	imports->engine = engine;
	tdm_list_init(&imports->late);
	tdm_pool_init(&imports->entries, sizeof(struct tdm_import_entry), 0);
}

void tdm_imports_fini(struct tdm_imports *imports)
{
	tdm_pool_fini(&imports->entries);
}

int tdm_import_open(struct tdm_imports *imports, struct fid_peer_srx *owner,
		    struct tdm_import **out)
{
	struct tdm_import *import = calloc(1, sizeof(*import));
	int t;

	if (!import)
		return -FI_ENOMEM;
	import->owner = owner;
	import->home = imports;
	import->open = 1;
	import->held.size = sizeof(import->held);
	import->held.entry_bytes = sizeof(struct tdm_import_entry);
	tdm_list_init(&import->entries);
	tdm_list_init(&import->late);
	tdm_list_init(&import->node);
	for (t = 0; t < TDM_TRANSPORTS; t++) {
		import->port[t].import = import;
		import->port[t].fid.ep_fid.fid.fclass = FI_CLASS_PEER_SRX;
		import->port[t].fid.ep_fid.fid.ops = &export_fid_ops;
		import->port[t].fid.owner_ops = &tdm_import_owner_ops;
	}
	import->layout = tdm_layout_of(fi_version());
	owner->peer_ops = &tdm_import_peer_ops[import->layout];
	*out = import;
	return 0;
}

int tdm_import_join(struct tdm_import *import,
		    void (*free_rma)(struct fi_peer_rx_entry *entry))
{
	if (import->joined || import->closing)
		return -FI_EBUSY;
	import->joined = 1;
	import->free_rma = free_rma;
	return 0;
}

static void import_free(struct tdm_import *import)
{
	if (!import->open && !import->joined)
		free(import);
}

void tdm_import_shut(struct tdm_import *import)
{
	import->owner = NULL;
	import->open = 0;
	import_free(import);
}

void tdm_import_flush(struct tdm_import *import)
{
	struct tdm_list *pos, *tmp;

	import->closing = 1;
	tdm_list_for_each_safe(pos, tmp, &import->late) {
		struct tdm_import_entry *e =
			tdm_list_entry(pos, struct tdm_import_entry, node);

		if (e->state == TDM_IMPORT_LATE) {
			tdm_import_drop(e);
			tdm_import_entry_free(e);
		} else {
			tdm_import_give_back(import, e);
		}
	}
	tdm_list_del(&import->node);
	tdm_list_for_each_safe(pos, tmp, &import->entries) {
		struct tdm_import_entry *e =
			tdm_list_entry(pos, struct tdm_import_entry, node);

		if (e->state != TDM_IMPORT_WAITING &&
		    e->state != TDM_IMPORT_GONE)
			continue;
		if (e->state == TDM_IMPORT_WAITING)
			tdm_import_drop(e);
		e->state = TDM_IMPORT_ORPHAN;
		e->port = NULL;
		tdm_list_del(&e->node);
	}
}

void tdm_import_leave(struct tdm_import *import)
{
	import->joined = 0;
	import->closing = 1;
	import_free(import);
}
