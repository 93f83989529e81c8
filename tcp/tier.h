/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two transports as the owner's control path sees them: a table of calls
 * for each, tier_tcp.c and tier_local.c. The owner makes each call to both in
 * turn, in the order of enum tdm_transport; to close, in the reverse order.
 *
 * The data path has no such call: route.c holds its one branch between them.
 * Nor has a pass of progress, which every read of a queue makes: domain.c calls
 * both directly.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_TCP_TIER_H
#define TDM_TCP_TIER_H

#include <sys/types.h>

#include <rdma/fabric.h>

#include "peer/cq.h"

struct tdm_cntr;
struct tdm_domain;
struct tdm_ep;
struct tdm_report_path;

struct tdm_tier_ops {
	/*
	 * @d opens: prepare for its endpoints. A domain without shared memory
	 * is no error. stop() may also follow a start() that failed or was not
	 * called. Lock: not needed. Errors: those of fi_domain(3).
	 */
	int (*start)(struct tdm_domain *d);
	void (*stop)(struct tdm_domain *d);

	/* 0: safe to sleep; -FI_EAGAIN: there is work to do first. */
	int (*arm)(struct tdm_domain *d);

	/*
	 * Called once, before the first sleep: from now on the epoll descriptor
	 * @fd, which is that of d->loop, becomes readable when there is work
	 * after arm() gave 0.
	 */
	int (*watch)(struct tdm_domain *d, int fd);

	/* @cq / @cntr is new: make what its endpoints need to report there. */
	int (*import_cq)(struct tdm_domain *d, struct tdm_cq *cq);
	int (*import_cntr)(struct tdm_domain *d, struct tdm_cntr *cntr);

	/* Tell the owner all that has happened to its pairs. */
	void (*deliver)(struct tdm_domain *d);

	/*
	 * fi_enable(3) of @ep: reserve its address, ep->name, and make what its
	 * pairs need. Peers are refused until listen(), which is called when
	 * all transports are open; route agreement depends on that order. An
	 * endpoint without shared memory is no error, unless FI_TANDEM_SHM=only
	 * asks for it. Errors: those of fi_enable.
	 */
	int (*open)(struct tdm_ep *ep);
	int (*listen)(struct tdm_ep *ep);

	/*
	 * End all traffic of @ep and free what open() made; nothing to do when
	 * open() failed or was not called. Outstanding operations end without
	 * an entry.
	 */
	void (*close)(struct tdm_ep *ep);

	/*
	 * fi_cancel(3) of the send with @context. 0, or -FI_ENOENT: the
	 * transport has no such send, or it has begun to leave; -FI_EAGAIN.
	 */
	ssize_t (*cancel)(struct tdm_ep *ep, void *context);

	/* Operations that there is room for; SIZE_MAX: there is no limit. */
	size_t (*tx_left)(const struct tdm_ep *ep);

	/*
	 * @cntr is about to be bound to @ep, with the @flags of fi_ep_bind(3).
	 * Errors: those of fi_ep_bind.
	 */
	int (*bind_cntr)(struct tdm_ep *ep, struct tdm_cntr *cntr,
			 uint64_t flags);

	/*
	 * The objects that @ep is bound to have changed, or the user ids of its
	 * AV: report operations that end from now on accordingly.
	 */
	void (*rebound)(struct tdm_ep *ep);

	/*
	 * The session with @addr, an address of the AV, that is in use or will
	 * be by the next send. Out: path, reason, large_rx, large_tx of *@out,
	 * which is 0 otherwise, and the counts of this path, shm or tcp. 0, or
	 * -FI_ENODATA: there is none.
	 */
	int (*session)(struct tdm_ep *ep, fi_addr_t addr,
		       struct tdm_report_path *out);
};

/* tier_tcp.c and tier_local.c. */
extern const struct tdm_tier_ops tdm_tier_tcp, tdm_tier_local;

/* Both, by enum tdm_transport. */
extern const struct tdm_tier_ops *const tdm_tier[TDM_TRANSPORTS];

#endif /* TDM_TCP_TIER_H */
