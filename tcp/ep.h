/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoint of the owner, fi_endpoint(3): what all kinds have, to which operations
 * are posted. root.h has the rest of those that have transports.
 */
#ifndef TDM_TCP_EP_H
#define TDM_TCP_EP_H

#include <rdma/fi_endpoint.h>

#include "av/av.h"
#include "peer/srx.h"
#include "tcp/domain.h"
#include "tcp/rx_side.h"
#include "tdm_done.h"

struct tdm_ctx_ops;
struct tdm_ep;
struct tdm_root;
struct tdm_xfer;

/*
 * The parts of an endpoint that differ by its kind, except its receive side
 * (rx_side.h). Each kind has one table, in the file named here, and a struct that
 * begins with struct tdm_ep, directly or inside its first member.
 *
 *   struct      begins with  file       made by
 *   tdm_single  tdm_root     ep.c       fi_endpoint(): transports and queues
 *   tdm_sep     tdm_root     sep.c      fi_scalable_ep(): the transports
 *   tdm_ctx     tdm_ep       context.c  fi_rx_context(): queues of receives
 *   tdm_tx_ctx  tdm_ctx      context.c  fi_tx_context(): queues of sends
 *   tdm_srx_ctx tdm_ep       srx_ctx.c  fi_srx_context(): posts receives only
 *
 * An alias (alias.c) is no endpoint, but one more handle on one.
 */
struct tdm_ep_kind {
	size_t bytes; /* of its struct */
	size_t fclass;
	struct fi_ops *fid_ops;
	struct fi_ops_ep *ep_ops;
	struct fi_ops_cm *cm_ops;

	/* FI_TRANSMIT, FI_RECV: queues and counters that may be bound to it. */
	uint64_t queues;

	/*
	 * 1: its struct begins with a struct tdm_root. It has pairs, and may be
	 * bound to an AV and an event queue.
	 */
	int has_transports;

	/* Its contexts report the operations that end in them; or NULL. */
	const struct tdm_ctx_ops *ctx_ops;

	/*
	 * Call @call, with @arg, for @root and all endpoints of the application
	 * that post operations to it. Lock: held.
	 */
	void (*for_each)(struct tdm_root *root,
			 void (*call)(struct tdm_ep *ep, void *arg), void *arg);

	/*
	 * Are the queues, counters and shared contexts bound that fi_enable(3)
	 * needs? Errors: those of fi_enable. Lock: held.
	 */
	int (*check_bound)(const struct tdm_ep *ep);

	/*
	 * Send @x through the root of @ep; NULL: @ep is a root itself, or never
	 * sends. Lock: held.
	 */
	ssize_t (*send)(struct tdm_ep *ep, const struct tdm_xfer *x);
};

/*
 * The flags of an operation that depend on what its endpoint was granted:
 * capabilities and operations have the same bits, fi_getinfo(3).
 */
#define TDM_LOOK_FLAGS                                                         \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV |         \
	 FI_READ | FI_WRITE | FI_AUTH_KEY | FI_TRIGGER)

/* Values of tdm_ep.enabled. */
enum { TDM_EP_OFF, TDM_EP_ON, TDM_EP_LIMITED /* by options: tdm_ep_check() */ };

/* FI_OPT_MAX_*_SIZE and FI_OPT_INJECT_*_SIZE, bytes. */
struct tdm_limits {
	size_t msg, tagged, rma, atomic;
	size_t inject_msg, inject_tagged, inject_rma, inject_atomic;
};

/*
 * A fid of an endpoint, with the default flags of the operations that are
 * posted by it. An endpoint has one of its own; an alias is one more.
 */
struct tdm_handle {
	struct fid_ep fid;
	struct tdm_ep *ep;
	uint64_t tx_op_flags; /* of fi_send and the like, resolved */
	uint64_t rx_op_flags; /* with rx_space */
	uint64_t tagged_rx_op_flags;
	uint64_t tx_default, rx_default; /* FI_SETOPSFLAG */
	struct tdm_list node;		 /* ep->handles */
};

/* All kinds have these. */
struct tdm_ep {
	/* Read by every transfer. */
	struct tdm_handle own;
	struct tdm_domain *domain;
	/*
	 * Of a root: how many of root->pair[] addresses are an index of; 0: they
	 * need a look-up first. 0 for other kinds.
	 */
	size_t fast_pairs;
	struct tdm_srx *srx; /* that receives are posted to, or NULL */
	uint64_t rx_space; /* flags about sources: TDM_IN_SPACE, TDM_NAMED_AV */
	uint64_t directed; /* FI_MSG, FI_TAGGED: receives whose source counts */
	uint64_t exact;	   /* kinds whose source may not be FI_ADDR_UNSPEC */
	size_t inject_bytes;
	/*
	 * Of TDM_LOOK_FLAGS those that make an operation need a second look.
	 * It is refused if the capability was not granted (info->caps), or
	 * checked further: a receive if its source counts (exact), and each
	 * that is triggered.
	 */
	uint64_t special;
	int tx_selective; /* FI_SELECTIVE_COMPLETION at bind */
	int rx_selective;
	int enabled; /* TDM_EP_OFF, ON, LIMITED */

	/* Set up once. */
	struct fi_info *info; /* owned */
	/* the one bound to it; an enabled context has that of its root */
	struct tdm_av *av;
	struct tdm_cq *tx_cq, *rx_cq;
	struct tdm_cntr *send_cntr, *recv_cntr;
	struct tdm_cntr *rma_cntr[4]; /* READ, WRITE, REMOTE_READ, _WRITE */
	size_t tx_size;		      /* FI_OPT_TX_SIZE */
	size_t min_multi_recv;	      /* bytes */
	struct tdm_limits limits;
	const struct tdm_rx_side_ops *rx_side; /* by kind: rx_side.h */

	const struct tdm_ep_kind *kind;
	/*
	 * Has the transports: itself, its scalable endpoint, or NULL (a shared
	 * receive context).
	 */
	struct tdm_root *root;
	size_t users;		 /* aliases, contexts, endpoints bound to it */
	struct tdm_list handles; /* struct tdm_handle: own, and aliases */
};

static inline struct tdm_handle *tdm_handle_from_fid(struct fid_ep *fid)
{
	return tdm_container_of(fid, struct tdm_handle, fid);
}

static inline struct tdm_handle *tdm_handle_of(struct fid *fid)
{
	return tdm_container_of(fid, struct tdm_handle, fid.fid);
}

static inline struct tdm_ep *tdm_ep_from_fid(struct fid_ep *fid)
{
	return tdm_handle_from_fid(fid)->ep;
}

static inline struct tdm_ep *tdm_ep_of(struct fid *fid)
{
	return tdm_handle_of(fid)->ep;
}

/* May @ep post an operation with @flags without a second look? */
static inline int tdm_ep_plain(const struct tdm_ep *ep, uint64_t flags)
{
	return !(flags & ep->special);
}

/* Data transfer tables; api.c and amo.c. */
extern struct fi_ops_msg tdm_msg_ops;
extern struct fi_ops_tagged tdm_tagged_ops;
extern struct fi_ops_rma tdm_rma_ops;
extern struct tdm_amo_table tdm_amo_calls;
extern struct fi_ops_collective tdm_no_collective_ops; /* nosys.c: all fail */

/* fi_endpoint(3). */
int tdm_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context);

#endif /* TDM_TCP_EP_H */
