/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the endpoints: the functions of ep.c for all kinds of endpoint, and
 * the kinds that have a file of their own.
 *
 *   ep.c       fi_endpoint()
 *   root.c     enable and close with transports
 *   bind.c     queues, counters and other bound objects
 *   alias.c    fi_ep_alias()
 *   rx_side.c  its receive side, and that of receive contexts
 *   srx_ctx.c  fi_srx_context(): a receive side that endpoints share
 *   stx.c      fi_stx_context()
 *   sep.c      fi_scalable_ep()
 *   context.c  fi_tx_context() and fi_rx_context() of it
 */
#ifndef TDM_TCP_EP_PRIV_H
#define TDM_TCP_EP_PRIV_H

#include "tcp/root.h"

struct tdm_import;
struct tdm_srx_ctx;

/* An endpoint of fi_endpoint(3), and the shared contexts it is bound to. */
struct tdm_single {
	struct tdm_root root;
	struct tdm_srx_ctx *srx_ctx; /* or NULL */
	struct tdm_srx_seat *seat;   /* in it */
	struct tdm_import *import;   /* another owner's, or NULL: import.h */
	struct tdm_stx *stx;	     /* or NULL */
};

static inline struct tdm_single *tdm_single_of(struct tdm_ep *ep)
{
	return tdm_container_of(ep, struct tdm_single, root.ep);
}

/*
 * Allocates an endpoint of @kind, disabled, with a copy of @info and no receive
 * side. @domain does not count it yet. NULL: out of memory. Lock: not needed.
 */
struct tdm_ep *tdm_ep_alloc(struct tdm_domain *domain,
			    const struct fi_info *info,
			    const struct tdm_ep_kind *kind, void *context);

/*
 * Free @ep, and unbind it from queues and counters; a root by tdm_root_free()
 * instead. Lock: held.
 */
void tdm_ep_free(struct tdm_ep *ep);

/*
 * Make @h a handle on @ep that has the calls and the default flags of @from,
 * one of its handles. Lock: held, unless @ep is new.
 */
void tdm_handle_init(struct tdm_handle *h, struct tdm_ep *ep,
		     const struct tdm_handle *from);

/*
 * Compute the flags of the operations that are posted by @h, or by all handles
 * of @ep, from the default ones and the bindings.
 */
void tdm_handle_resolve_flags(struct tdm_handle *h);
void tdm_ep_resolve_flags(struct tdm_ep *ep);

/*
 * Calls that several kinds of endpoint share; each takes the lock. The kinds
 * enable themselves: FI_ENABLE is no command of tdm_ep_control().
 */
int tdm_ep_control(struct fid *fid, int command, void *arg);

/*
 * Cancel the operation of @ep that has @context, fi_cancel(3): call @cancel()
 * with the lock held; if it finds none, search the deferred operations.
 */
ssize_t tdm_ep_cancel_by(struct tdm_ep *ep, void *context,
			 ssize_t (*cancel)(struct tdm_ep *ep, void *context));
ssize_t tdm_ep_rx_size_left(struct fid_ep *fid);
extern struct fi_ops_cm tdm_ep_cm_ops;
extern struct fi_ops_cm tdm_ep_no_cm_ops; /* for objects without a name */

#endif /* TDM_TCP_EP_PRIV_H */
