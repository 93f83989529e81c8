/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The root of an endpoint: what an endpoint has that is at an address, be it
 * one of fi_endpoint(3) or a scalable one. Both transports, the pairs, the name,
 * the bindings to the AV and the event queue. It is there once: the contexts of
 * a scalable endpoint and the aliases of either have none of this, and lead to
 * it by tdm_ep.root.
 *
 * INIT -> ENABLED -> (closed). INIT: objects are bound, options set. ENABLED:
 * the address is taken, both transports run.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_TCP_ROOT_H
#define TDM_TCP_ROOT_H

#include "tcp/backlog.h"
#include "tcp/ep.h"
#include "tcp/history.h"
#include "tcp/pairs.h"
#include "tcp/wire/wire.h"

struct tdm_coll;

struct tdm_root {
	struct tdm_ep ep;

	/* Read by every transfer; with ep.fast_pairs. */
	struct tdm_pair **pair; /* pair[pairs], by fi_addr; NULL: none yet */
	struct fid_ep *local;	/* the peer's endpoint, or NULL */

	size_t pairs;
	struct tdm_tcp *tcp;
	struct tdm_backlog backlog;
	struct tdm_coll *coll; /* NULL: no collective operations yet */
	struct tdm_foreign_side *foreign; /* NULL: no foreign peer */
	const struct tdm_tiers *tiers; /* how pairs agree on a path: pair.h */
	struct tdm_addr name; /* once enabled; before, address to bind to */
	struct tdm_auth_keys *keys; /* once enabled; NULL: no keys are needed */
	struct tdm_av_user av_user; /* the binding to ep.av */
	struct tdm_eq *eq;	    /* or NULL */
	struct tdm_import_eq *lent_eq; /* bound in its place, or NULL */
	struct tdm_list node;	       /* domain->roots; enabled only */
	int shm_permitted;	       /* FI_OPT_SHARED_MEMORY_PERMITTED */
	uint8_t local_why;  /* enum tdm_reason, if enabled without `local` */
	size_t local_pairs; /* part of domain->local_pairs */
	struct tdm_list removed; /* struct tdm_history, for FI_TANDEM_REPORT */
	size_t lives_lost;	 /* without memory for their counts */
};

/* Returns @ep as the root that it is: its kind has transports. */
static inline struct tdm_root *tdm_root_of(struct tdm_ep *ep)
{
	return tdm_container_of(ep, struct tdm_root, ep);
}

/*
 * Allocates an endpoint of @kind, which has transports, as tdm_ep_alloc() does.
 * Lock: not needed.
 */
struct tdm_root *tdm_root_alloc(struct tdm_domain *domain,
				const struct fi_info *info,
				const struct tdm_ep_kind *kind, void *context);

/*
 * Free @root, whose transports must have closed, and unbind it from all
 * objects.
 */
void tdm_root_free(struct tdm_root *root);

/* fi_enable(3). Errors: those of fi_enable, and of binding the address. */
int tdm_root_enable(struct tdm_root *root);

/*
 * fi_close(3): send the injects that wait, print the report, and disable @root,
 * if it is enabled. The lock is released while injects wait, which
 * tdm_tcp_close() bounds.
 */
void tdm_root_quit(struct tdm_root *root);

/*
 * fi_cancel(3) of the send with @context, if a transport of @root, which must
 * be enabled, has it. Errors: -FI_ENOENT, -FI_EAGAIN.
 */
ssize_t tdm_root_cancel_send(struct tdm_root *root, void *context);

/* Returns for how many operations the fuller transport has room. */
ssize_t tdm_root_tx_left(const struct tdm_root *root);

#endif /* TDM_TCP_ROOT_H */
