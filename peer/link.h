/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link to a peer provider: opens it, exports the owner's objects to it,
 * inserts addresses, drives its progress. It uses only the public objects of
 * libfabric, so that any provider with FI_PEER could be the peer. Only link.c
 * on the owner's side uses struct fi_peer_*_context.
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
	/*
	 * Called for each event that the peer provider has written to the EQ it
	 * imports. Lock: held.
	 */
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

/*
 * Make the peer import @cq or @cntr; sets tdm_cq_local() or tdm_cntr_local().
 */
int tdm_link_import_cq(struct tdm_link *link, struct tdm_cq *cq) tdm_must_check;
int tdm_link_import_cntr(struct tdm_link *link,
			 struct tdm_cntr *cntr) tdm_must_check;

/*
 * Open an AV of the peer with the attributes of @owner. The owner has one for
 * each AV of its own.
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

/*
 * Have the peer call foreach_unspec_addr() for all endpoints of @av, by an
 * insert of no address. A peer that ignores such an insert calls it at
 * its next insert of an address, fi_peer(3).
 */
void tdm_link_av_resolve(struct fid_av *av);

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
 * Open, bind, name and enable an endpoint of the peer. Out: *@ep. From then on
 * the peer accepts attaches under @name. Keys with numbers are passed by
 * tdm_keys.h, which a peer without them does not offer (-FI_ENOSYS); a key
 * without a number by fi_endpoint(3) auth_key. Transmit CQs are bound with
 * FI_SELECTIVE_COMPLETION: the owner sets FI_COMPLETION per operation. Errors:
 * -FI_ENOCQ if the endpoint has no queue or counter whose reading would drive
 * it; those of the peer.
 */
int tdm_link_ep_open(struct tdm_link *link, const struct tdm_link_ep_attr *attr,
		     struct fid_ep **ep) tdm_must_check;

/*
 * Bind @cntr, a counter of the owner, to the peer's endpoint @ep, which may be
 * enabled. Succeeds without effect if the peer has no counters.
 */
int tdm_link_ep_bind_cntr(struct fid_ep *ep, struct tdm_cntr *cntr,
			  uint64_t flags) tdm_must_check;

/*
 * Close the peer's endpoint. The queues, SRX and AV that it used may be closed
 * after this.
 */
void tdm_link_ep_close(struct tdm_link *link, struct fid_ep *ep);

/* Make one pass of progress of the peer and deliver its events. */
void tdm_link_progress(struct tdm_link *link);

/*
 * Prepare to sleep: calls fi_trywait(3) of the peer's fabric on the peer's
 * queues. Returns 0: the owner may sleep; -FI_EAGAIN: the peer has work.
 */
int tdm_link_arm(struct tdm_link *link);

/*
 * Called before tdm_link_watch(): from now on, queues of the peer that offer
 * tdm_sleep.h join the owner's epoll set @epfd, which must outlive the link;
 * tdm_link_watch() does not call @add for them.
 */
void tdm_link_sleep_in(struct tdm_link *link, int epfd);

/*
 * Keep the owner's epoll set informed of the peer's wait descriptors: calls
 * @add(@arg, fd) for each, also for those opened later, until the link closes,
 * and @del(@arg, fd) before one closes. Makes the peer's queues waitable.
 */
int tdm_link_watch(struct tdm_link *link, int (*add)(void *arg, int fd),
		   void (*del)(void *arg, int fd), void *arg);

/*
 * Deliver the events that the peer wrote to the EQ, except those of endpoint
 * @skip (NULL: of none), which are dropped.
 */
void tdm_link_deliver(struct tdm_link *link, const struct fid *skip);

#endif /* TDM_PEER_LINK_H */
