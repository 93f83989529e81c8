/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of an imported receive context: import_srx.c has the calls of
 * transports and owner and the states of an entry, import_fid.c its exports, and how
 * it opens and closes.
 *
 * Lock: domain held.
 */
#ifndef TDM_PEER_IMPORT_PRIV_H
#define TDM_PEER_IMPORT_PRIV_H

#include "peer/import_srx.h"
#include "tdm_held.h"
#include "tdm_layout.h"
#include "tdm_user_id.h"

enum tdm_import_state {
	TDM_IMPORT_EARLY,
	TDM_IMPORT_LATE,
	TDM_IMPORT_ASKED,
	TDM_IMPORT_WAITING,
	TDM_IMPORT_FILLING,
	TDM_IMPORT_ENDED,
	TDM_IMPORT_GONE,
	TDM_IMPORT_ORPHAN
};

struct tdm_import_port {
	struct fid_peer_srx fid;
	struct tdm_import *import;
	/* while the owner asks for sources: that of the transport */
	fi_addr_t (*get_addr)(struct fi_peer_rx_entry *entry);
};

struct tdm_import {
	struct fid_peer_srx *owner; /* NULL: its fid was closed */
	struct tdm_imports *home;
	struct tdm_import_port port[TDM_TRANSPORTS];
	struct tdm_done done;
	void (*free_rma)(struct fi_peer_rx_entry *entry);
	struct tdm_held held;
	struct tdm_list
		entries;      /* struct tdm_import_entry, but those of `late` */
	struct tdm_list late; /* LATE, ENDED: oldest first */
	struct tdm_list node; /* home->late */
	enum tdm_layout layout; /* of the owner's entries */
	int learned;		/* 1: one of them was seen */
	int open, joined, closing;
};

struct tdm_import_entry {
	struct fi_peer_rx_entry rx; /* the transport's */
	struct tdm_list node;
	struct tdm_imports *home;
	struct tdm_import_port *port; /* NULL: the endpoint has closed */
	struct fi_peer_rx_entry *own; /* the owner's, or NULL: tdm_layout.h */
	enum tdm_import_state state;
	uint64_t kind; /* FI_MSG or FI_TAGGED */
	struct iovec none;
	void *no_desc;
};

static inline struct tdm_import_port *
tdm_import_port_of(struct fid_peer_srx *fid)
{
	return tdm_container_of(fid, struct tdm_import_port, fid);
}

static inline fi_addr_t tdm_import_reported(const struct tdm_import *import,
					    fi_addr_t addr)
{
	const struct tdm_user_ids *ids = import->done.user_ids;

	return ids ? tdm_user_id(ids, addr) : addr;
}

static inline void tdm_import_entry_free(struct tdm_import_entry *e)
{
	tdm_list_del(&e->node);
	tdm_pool_free(&e->home->entries, e);
}

/* Give the owner's entry of @e back, and free ours. */
void tdm_import_give_back(struct tdm_import *import,
			  struct tdm_import_entry *e);

/* Have the transport drop the message of @e. */
void tdm_import_drop(struct tdm_import_entry *e);

/* The calls of the transports, and those of the owner, by enum tdm_layout. */
extern struct fi_ops_srx_owner tdm_import_owner_ops;
extern struct fi_ops_srx_peer tdm_import_peer_ops[TDM_LAYOUTS];

#endif /* TDM_PEER_IMPORT_PRIV_H */
