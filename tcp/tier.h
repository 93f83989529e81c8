/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two transports as the owner's control path sees them: a table of calls
 * for each, tier_tcp.c and tier_local.c. The owner makes each call to both in
 * turn, in the order of enum tdm_transport; stop(), close() and session() in the
 * reverse order. cancel() and session() are asked until one transport has the
 * send or the session; calls that open end at the first error.
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

struct fi_provider;
struct tdm_cntr;
struct tdm_domain;
struct tdm_look;
struct tdm_pair;
struct tdm_root;
struct tdm_report_path;

struct tdm_tier_ops {
	/*
	 * start: called when @d opens: prepares for its endpoints. A domain
	 * without shared memory is no error. stop() may also follow a start()
	 * that failed or was not called. Lock: not needed. Errors: those of
	 * fi_domain(3).
	 */
	int (*start)(struct tdm_domain *d);
	void (*stop)(struct tdm_domain *d);

	/*
	 * Prepare to sleep. Returns 0: it is safe to sleep; -FI_EAGAIN: there
	 * is work to do first.
	 */
	int (*arm)(struct tdm_domain *d);

	/*
	 * Called once, before the first sleep: from now on the transport makes
	 * the epoll descriptor @fd, which is that of d->loop, readable when
	 * there is work after arm() has returned 0.
	 */
	int (*watch)(struct tdm_domain *d, int fd);

	/*
	 * Called when @cq or @cntr was opened: makes what its endpoints need to
	 * report there.
	 */
	int (*import_cq)(struct tdm_domain *d, struct tdm_cq *cq);
	int (*import_cntr)(struct tdm_domain *d, struct tdm_cntr *cntr);

	/* Call the owner for everything that has happened to its pairs. */
	void (*deliver)(struct tdm_domain *d);

	/*
	 * fi_enable(3) of @root: reserve its address, root->name, and make what its
	 * pairs need. Peers are refused until listen(), which is called when
	 * all transports are open; route agreement depends on that order. An
	 * endpoint without shared memory is no error, unless FI_TANDEM_SHM=only
	 * asks for it. Errors: those of fi_enable.
	 */
	int (*open)(struct tdm_root *root);
	int (*listen)(struct tdm_root *root);

	/*
	 * End all traffic of @root and free what open() made; nothing to do when
	 * open() failed or was not called. Injects are left to their peers
	 * first; TCP waits for that, and releases the lock meanwhile. Other
	 * outstanding operations end without an entry.
	 */
	void (*close)(struct tdm_root *root);

	/*
	 * fi_cancel(3) of the send with @context. Returns 0; -FI_ENOENT: the
	 * transport has no such send, or some of its bytes have been sent;
	 * -FI_EAGAIN.
	 */
	ssize_t (*cancel)(struct tdm_root *root, void *context);

	/*
	 * Returns for how many operations there is room; SIZE_MAX: there is no
	 * limit.
	 */
	size_t (*tx_left)(const struct tdm_root *root);

	/*
	 * Called before @cntr is bound to @root, with the @flags of
	 * fi_ep_bind(3). Errors: those of fi_ep_bind.
	 */
	int (*bind_cntr)(struct tdm_root *root, struct tdm_cntr *cntr,
			 uint64_t flags);

	/*
	 * Called when the objects to which @root is bound, or the user ids of its
	 * AV, have changed: operations that end from now on are reported
	 * accordingly.
	 */
	void (*rebound)(struct tdm_root *root);

	/*
	 * Called after the AV of @root has changed, with @moved of struct
	 * tdm_av_user: looks up the sources of sessions that have none or, if
	 * @moved, of all. Messages of unknown source get the one that became
	 * known. @root may not be enabled.
	 */
	void (*resolve)(struct tdm_root *root, int moved);

	/*
	 * Called before @addr leaves the AV of @root, where no other index names
	 * its peer: the operations to the peer, by its pair @p, end with
	 * FI_ECONNABORTED. A session that is open stays for incoming messages.
	 */
	void (*forget)(struct tdm_root *root, const struct tdm_pair *p,
		       fi_addr_t addr);

	/*
	 * Describe the open session with @addr (an AV address), or over TCP the
	 * connection that is being made for the first one. The caller passes *@out zeroed; this
	 * sets path, reason, large_rx and large_tx as far as the transport has
	 * them, and shm or tcp, the counts. Returns 0, or -FI_ENODATA:
	 * neither.
	 */
	int (*session)(struct tdm_root *root, fi_addr_t addr,
		       struct tdm_report_path *out);

	/*
	 * Describe the queues and the credit of @addr for statistics. Out: *@out,
	 * which the caller has zeroed; unchanged: the transport does not have
	 * the peer.
	 */
	void (*look)(struct tdm_root *root, fi_addr_t addr,
		     struct tdm_look *out);
};

/*
 * The calls above for a transport that has nothing to do there: watch(),
 * import_cq(), import_cntr(), deliver(), listen(), bind_cntr() and look().
 */
int tdm_tier_no_watch(struct tdm_domain *d, int fd);
int tdm_tier_no_cq(struct tdm_domain *d, struct tdm_cq *cq);
int tdm_tier_no_cntr(struct tdm_domain *d, struct tdm_cntr *cntr);
void tdm_tier_no_deliver(struct tdm_domain *d);
int tdm_tier_no_listen(struct tdm_root *root);
void tdm_tier_no_look(struct tdm_root *root, fi_addr_t addr,
		      struct tdm_look *out);
int tdm_tier_no_bind(struct tdm_root *root, struct tdm_cntr *cntr,
		     uint64_t flags);

/*
 * Returns 0 when an endpoint may do without the local transport, or the error of
 * fi_enable(3), which is logged: FI_TANDEM_SHM=only asks for it.
 */
int tdm_tier_without_local(void) tdm_must_check;

/* tier_tcp.c, tier_local.c and tier_foreign.c. */
extern const struct tdm_tier_ops tdm_tier_tcp, tdm_tier_local, tdm_tier_foreign;

/*
 * Returns the embedded peer, which owners other than ours may ask for too, if
 * @name (may be NULL) is its name, "tandem-shm"; otherwise NULL. Lock: not needed.
 * Spec: fi_peer(3); fi_tandem(7), AS A PEER.
 */
const struct fi_provider *tdm_tier_local_peer(const char *name);

/* Those in use, by enum tdm_transport. */
extern const struct tdm_tier_ops *tdm_tier[TDM_TRANSPORTS];

/*
 * Let the provider of FI_TANDEM_LOCAL take the place of the embedded peer, if
 * the parameter names one. Called once, when tandem loads. Lock: not needed.
 */
void tdm_tier_choose(void);

#endif /* TDM_TCP_TIER_H */
