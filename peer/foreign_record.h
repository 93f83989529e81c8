/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of a foreign provider's sends and receives: foreign_priv.h.
 *
 * Lock: domain held.
 */
#ifndef TDM_PEER_FOREIGN_RECORD_H
#define TDM_PEER_FOREIGN_RECORD_H

#include <stddef.h>

#include <rdma/fabric.h>
#include <rdma/providers/fi_peer.h>

#include "base/list.h"
#include "peer/foreign_guard.h"
#include "tdm_layout.h"
#include "tdm_xfer.h"

/* A send that the provider has. */
struct tdm_foreign_tx {
	struct tdm_list node;
	struct tdm_foreign_mark mark;
	struct tdm_foreign_ep *ep;
	struct tdm_foreign_peer *peer;
	void *context;
	size_t len;	/* bytes of payload */
	uint64_t flags; /* of the tdm_xfer; 0: the operation has ended */
	fi_addr_t addr;
	void *copy; /* payload of an inject that the provider cannot take */
};

/*
 * The course of a message:
 *
 *   get_*: no receive --> ASKED -- queue_* --> WAITING -- start_* --> FILLING
 *   get_*: a receive ------------------------------------------------> FILLING
 *   FILLING -- reported, or the sender is gone --> ENDED
 *   WAITING -- freed, against the rules --> DROPPED
 */
enum tdm_foreign_state {
	TDM_FOREIGN_ASKED,
	TDM_FOREIGN_WAITING, /* the owner's list has own */
	TDM_FOREIGN_FILLING,
	TDM_FOREIGN_ENDED, /* own is NULL */
	TDM_FOREIGN_DROPPED,
};

/* A message that the provider offers or fills a receive with. */
struct tdm_foreign_rx {
	struct tdm_foreign_mark mark;
	struct fi_peer_rx_entry rx; /* see tdm_foreign_shown() */
	struct tdm_list node;	    /* peer->rxs, or ep->strays */
	struct tdm_foreign_ep *ep;
	struct tdm_foreign_peer *peer; /* NULL: unknown */
	/* the owner's entry; NULL: it has ended */
	struct fi_peer_rx_entry *own;
	size_t bytes; /* of the message */
	enum tdm_foreign_state state;
	int told; /* completions that the provider has written */
	/*
	 * The message, if the receive has more elements than the provider takes,
	 * or less room; NULL: in its buffers. err: how it ends all the same, or
	 * 0.
	 */
	void *bounce;
	int err;
	struct iovec iov[TDM_IOV_LIMIT];
	void *desc[TDM_IOV_LIMIT]; /* all NULL */
};

/*
 * The provider was compiled with the libfabric that runs, as far as anybody can
 * tell: it gets an entry before it shows one.
 */
static inline enum tdm_layout tdm_foreign_layout(void)
{
	return tdm_layout_of(fi_version());
}

/* Returns the record whose entry the provider knows as @entry. */
static inline struct tdm_foreign_rx *
tdm_foreign_rx_of(struct fi_peer_rx_entry *entry)
{
	return tdm_container_of(tdm_layout_own(tdm_foreign_layout(), entry),
				struct tdm_foreign_rx, rx);
}

/* Returns the entry of @r as the provider knows it. */
static inline struct fi_peer_rx_entry *
tdm_foreign_shown(struct tdm_foreign_rx *r)
{
	return tdm_layout_raw(tdm_foreign_layout(), &r->rx);
}

#endif /* TDM_PEER_FOREIGN_RECORD_H */
