/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scalable endpoints, fi_endpoint(3) "SCALABLE ENDPOINTS": one endpoint with
 * one address and one session per peer, many transmit and receive contexts.
 *
 * The scalable endpoint has the transports. A transmit context has none: it
 * sends through the scalable endpoint. The completion of such a send finds the
 * transmit context by a struct tdm_sep_op. A receive context is one receive side
 * of a group (peer/srx_group.h); each message names its receive context.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_TCP_SEP_H
#define TDM_TCP_SEP_H

#include "base/pool.h"
#include "peer/srx_group.h"
#include "tcp/root.h"

/* The members common to both kinds of context; a receive context has no others. */
struct tdm_ctx {
	struct tdm_ep ep;
	unsigned int index; /* among those of its direction */
};

struct tdm_tx_ctx {
	struct tdm_ctx ctx;
	struct tdm_list sends; /* struct tdm_sep_op: sends under way */
	size_t used;	       /* their number */
};

/* A send of a transmit context, from the call to its end: context.c. */
struct tdm_sep_op {
	struct tdm_list node; /* tdm_tx_ctx.sends */
	struct tdm_sep *sep;
	struct tdm_tx_ctx *ctx; /* NULL: closed, the send is not reported */
	void *context;		/* the application's */
	uint64_t flags;		/* flags of its request */
};

struct tdm_sep {
	struct tdm_root root;
	struct tdm_srx_group *group;
	struct fid_cq *cq;     /* its entries go to the contexts' queues */
	struct tdm_pool sends; /* struct tdm_sep_op */
	unsigned int ntx, nrx; /* contexts */
	struct tdm_ctx **tx;   /* tx[ntx]; NULL: not open */
	struct tdm_ctx **rx;   /* rx[nrx]; NULL: not open */
};

/* Returns @root as the scalable endpoint that it is. */
static inline struct tdm_sep *tdm_sep_of(struct tdm_root *root)
{
	return tdm_container_of(root, struct tdm_sep, root);
}

/* The CQ operations that end the sends of all contexts. */
extern struct fi_ops_cq_owner tdm_sep_cq_ops;

/* fi_scalable_ep(3): sep.c. */
int tdm_sep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **sep, void *context);

/* sep.c: enable @root of contexts, unless one has done it. Lock: held. */
int tdm_sep_enable(struct tdm_root *root);

#endif /* TDM_TCP_SEP_H */
