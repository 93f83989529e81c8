/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive side of an endpoint (peer/srx.h), which differs by kind: a table
 * of calls for each.
 *
 *   tdm_rx_own     rx_side.c: receives are posted to the endpoint itself
 *   rx_seat        srx_ctx.c: it has a seat in a shared receive context, to
 *                  which receives are posted
 *   rx_import      import.c: another owner's, to which receives are posted
 *   rx_group       sep.c: those of the contexts of a scalable endpoint
 *   tdm_rx_part    rx_side.c: one of the group, of a receive context
 *   tdm_rx_none    rx_side.c: a transmit context, or no shared context is
 *                  bound yet; the endpoint cannot be enabled with it
 *
 * All functions: domain lock held.
 */
#ifndef TDM_TCP_RX_SIDE_H
#define TDM_TCP_RX_SIDE_H

#include <sys/types.h>

#include <rdma/providers/fi_peer.h>

#include "peer/srx.h"

struct tdm_ep;

struct tdm_rx_side_ops {
	/* Returns the export that transport @t of @ep imports. */
	struct fid_peer_srx *(*export_to)(struct tdm_ep *ep,
					  enum tdm_transport t);

	/*
	 * Called by fi_enable(3) of @ep, before its transports open; returns
	 * its error.
	 */
	int (*enable)(struct tdm_ep *ep);

	/* @ep is enabled, and its transports are open. */
	void (*joined)(struct tdm_ep *ep);

	/* As rebound() of struct tdm_tier_ops. */
	void (*rebound)(struct tdm_ep *ep);

	/*
	 * Called before the transports of @ep close: discards the messages that
	 * they hold.
	 */
	void (*flush)(struct tdm_ep *ep);

	/* fi_cancel(3) of a receive posted to @ep. Returns 0, or -FI_ENOENT. */
	ssize_t (*cancel)(struct tdm_ep *ep, void *context);

	/* fi_rx_size_left(3), or -FI_EOPNOTSUPP: nothing is posted to @ep. */
	ssize_t (*left)(const struct tdm_ep *ep);

	/* Called when @addr leaves the AV: tdm_srx_forget(). */
	void (*forget)(struct tdm_ep *ep, fi_addr_t addr);

	/* FI_OPT_MIN_MULTI_RECV, bytes. */
	void (*set_min_multi_recv)(struct tdm_ep *ep, size_t bytes);

	/*
	 * Frees the receive side, after the transports of @ep have closed; may
	 * find none.
	 */
	void (*close)(struct tdm_ep *ep);
};

extern const struct tdm_rx_side_ops tdm_rx_own, tdm_rx_part, tdm_rx_none;

/* Give @ep a receive side of its own. Errors: -FI_ENOMEM. */
int tdm_rx_side_open(struct tdm_ep *ep) tdm_must_check;

/* The calls of receive sides where nothing is posted to the endpoint itself. */
ssize_t tdm_rx_side_no_cancel(struct tdm_ep *ep, void *context);
ssize_t tdm_rx_side_no_left(const struct tdm_ep *ep);
void tdm_rx_side_no_min_multi_recv(struct tdm_ep *ep, size_t bytes);

/* enable() and joined() where there is nothing to do. */
int tdm_rx_side_no_enable(struct tdm_ep *ep);
void tdm_rx_side_no_joined(struct tdm_ep *ep);

/* The forget() of endpoints that use one struct tdm_srx. */
void tdm_rx_side_forget(struct tdm_ep *ep, fi_addr_t addr);

/* Returns the attributes for a receive side of @ep. */
struct tdm_srx_attr tdm_rx_side_attr(struct tdm_ep *ep);

#endif /* TDM_TCP_RX_SIDE_H */
