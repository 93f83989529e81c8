/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scalable endpoints, fi_endpoint(3) "SCALABLE ENDPOINTS": one endpoint with
 * one address and one session per peer, many transmit and receive contexts.
 *
 * The scalable endpoint is a struct tdm_ep that has the transports. A transmit
 * context is one without: it sends through the whole, with a struct tdm_sep_op
 * as context, which leads the completion back to it. A receive context is one
 * receive side of a group (peer/srx_group.h); each message names its receive
 * context.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_TCP_SEP_H
#define TDM_TCP_SEP_H

#include "base/pool.h"
#include "peer/srx_group.h"
#include "tcp/ep.h"

/* A send of a transmit context, from the call to its end: context.c. */
struct tdm_sep_op {
	struct tdm_list node; /* tdm_sep_tx.ops */
	struct tdm_sep *sep;
	struct tdm_ep *ctx; /* NULL: closed, the send is not reported */
	void *context;	    /* the application's */
	uint64_t flags;	    /* of its request */
};

/* A transmit context's operations under way. */
struct tdm_sep_tx {
	struct tdm_ep *ep;   /* NULL: not open */
	struct tdm_list ops; /* struct tdm_sep_op */
	size_t used;	     /* of them */
};

struct tdm_sep {
	struct tdm_srx_group *group;
	struct fid_cq *cq;     /* its entries go to the contexts' queues */
	struct tdm_pool ops;   /* struct tdm_sep_op */
	unsigned int ntx, nrx; /* contexts */
	size_t tx_size;	       /* of a transmit context, by default */
	struct tdm_sep_tx *tx; /* tx[ntx] */
	struct tdm_ep **rx;    /* rx[nrx]; NULL: not open */
};

/* The CQ operations that end the sends of all contexts. */
extern struct fi_ops_cq_owner tdm_sep_cq_ops;

/* fi_scalable_ep(3): sep.c. */
int tdm_sep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **sep, void *context);

/* sep.c: enable @ep, unless a context has done it. Lock: held. */
int tdm_sep_enable(struct tdm_ep *ep);

#endif /* TDM_TCP_SEP_H */
