/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link to a peer provider: opens it, exports the owner's objects to it,
 * inserts addresses, drives its progress. It uses public fids only, so that any
 * provider with FI_PEER could be the peer. The only file on the owner's side
 * that touches struct fi_peer_*_context.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_PEER_LINK_H
#define TDM_PEER_LINK_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_peer.h>
#include <rdma/providers/fi_prov.h>

#include "peer/cntr.h"
#include "peer/cq.h"
#include "peer/srx.h"
#include "tdm_provider.h"

struct tdm_auth_keys;
struct tdm_link;

struct tdm_link_attr {
	struct fi_provider *prov; /* the peer */
	struct fid_domain *owner; /* exported to the peer */
	struct tdm_engine *engine;
	const struct fi_info *info; /* the application's domain info */
	int keys;		    /* addresses have keys: FI_AV_AUTH_KEY */
	/* A peer event arrived in the imported EQ. Lock: held. */
	void (*event)(void *arg, const struct tdm_peer_event *event);
	void *arg;
};

/*
 * Open the peer's fabric, domain and EQ. Out: *@link. Errors: those of the
 * peer's open calls; the owner then works without a peer. Lock: not needed.
 */
int tdm_link_open(const struct tdm_link_attr *attr,
		  struct tdm_link **link) tdm_must_check;

/* Close the peer's EQ, domain and fabric; NULL is fine. */
void tdm_link_close(struct tdm_link *link);

/* Have the peer import @cq / @cntr; sets tdm_cq_local() / tdm_cntr_local(). */
int tdm_link_import_cq(struct tdm_link *link, struct tdm_cq *cq) tdm_must_check;
int tdm_link_import_cntr(struct tdm_link *link,
			 struct tdm_cntr *cntr) tdm_must_check;

/*
 * Open an AV of the peer with the attributes of @owner, one for each AV of the
 * owner.
 */
int tdm_link_av_open(struct tdm_link *link, const struct fi_av_attr *owner,
		     struct fid_av **av) tdm_must_check;

/*
 * Tell the peer that @addr (sockaddr_in or _in6), by key number @key (0: none),
 * is @owner_addr in the owner's space (FI_AV_USER_ID). Out: *@peer_addr in the
 * peer's space. Errors: -FI_ENOSYS: it does not offer keys; the peer's.
 */
int tdm_link_av_insert(struct fid_av *av, const void *addr, uint32_t key,
		       fi_addr_t owner_addr,
		       fi_addr_t *peer_addr) tdm_must_check;
void tdm_link_av_remove(struct fid_av *av, fi_addr_t peer_addr);

struct tdm_link_ep_attr {
	const struct fi_info *info; /* of the owner's endpoint */
	struct fid_peer_srx *srx;   /* the export for the peer */
	struct fid_av *av;	    /* from tdm_link_av_open() */
	struct tdm_cq *tx_cq;	    /* NULL: not bound */
	struct tdm_cq *rx_cq;
	struct tdm_cntr *send_cntr;
	struct tdm_cntr *recv_cntr;
	struct tdm_cntr *rma_cntr[4]; /* FI_READ, FI_WRITE, FI_REMOTE_READ,
					 FI_REMOTE_WRITE */
	const void *name;	      /* sockaddr of the owner's endpoint */
	size_t namelen;		      /* bytes */
	void *context;		      /* fid context of the peer's endpoint */
	const struct tdm_auth_keys *keys; /* NULL: none are needed */
};

/*
 * Open, bind, name and enable an endpoint of the peer. Out: *@ep. The peer
 * accepts attaches under @name from then on. Keys with numbers are passed by
 * tdm_keys.h, which a peer without them does not offer (-FI_ENOSYS), another
 * one by fi_endpoint(3) auth_key. Transmit completions are bound
 * with FI_SELECTIVE_COMPLETION: the owner sets FI_COMPLETION per operation.
 * Errors: -FI_ENOCQ if it has no queue or counter to be driven by; those of the
 * peer.
 */
int tdm_link_ep_open(struct tdm_link *link, const struct tdm_link_ep_attr *attr,
		     struct fid_ep **ep) tdm_must_check;

/*
 * Bind @cntr, a counter of the owner, to the peer's endpoint @ep, which may be
 * enabled. Succeeds without effect if the peer has no counters.
 */
int tdm_link_ep_bind_cntr(struct fid_ep *ep, struct tdm_cntr *cntr,
			  uint64_t flags) tdm_must_check;

/* Close the peer's endpoint; its objects may be closed after it. */
void tdm_link_ep_close(struct tdm_link *link, struct fid_ep *ep);

/* Drive the peer once and deliver its events. */
void tdm_link_progress(struct tdm_link *link);

/*
 * 0: the peer may be slept on. -FI_EAGAIN: it has work. Uses fi_trywait(3) of
 * the peer's fabric on the peer's CQs.
 */
int tdm_link_arm(struct tdm_link *link);

/*
 * Called before tdm_link_watch(): queues of the peer that are able to
 * (tdm_sleep.h) join the owner's epoll set @epfd, which outlives the link; @add
 * is not called for them.
 */
void tdm_link_sleep_in(struct tdm_link *link, int epfd);

/*
 * The peer's wait descriptors, for the owner's epoll set: calls
 * @add(@arg, fd) for each, those opened later included, until the link closes,
 * and @del(@arg, fd) before one closes. Makes the peer's queues waitable.
 */
int tdm_link_watch(struct tdm_link *link, int (*add)(void *arg, int fd),
		   void (*del)(void *arg, int fd), void *arg);

/*
 * Deliver what the peer wrote to the EQ, but for the events of endpoint @skip
 * (NULL: of none), which are dropped.
 */
void tdm_link_deliver(struct tdm_link *link, const struct fid *skip);

#endif /* TDM_PEER_LINK_H */
