/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a link, shared by link.c (open and close) and link_progress.c
 * (progress).
 *
 * Invariant: every open endpoint of the peer is driven through exactly one
 * queue, so that one pass of progress visits it once. fids[] has each such
 * queue once, with the number of endpoints in queues[] beside it. A queue of
 * the owner cannot be closed while an endpoint is bound to it, so a fid in
 * fids[] is always alive.
 *
 * Locking: domain lock.
 */
#ifndef TDM_PEER_LINK_PRIV_H
#define TDM_PEER_LINK_PRIV_H

#include "base/list.h"
#include "peer/link.h"

struct tdm_eq;

struct tdm_link_queue {
	unsigned int users; /* endpoints that reading it drives */
	int fd;		    /* to sleep on; -1: none, or not watched */
};

struct tdm_link_ep {
	struct tdm_list node;
	struct fid_ep *ep;
	struct fid_ep *srx;
	struct fid *queue; /* one of fids[] */
};

struct tdm_link {
	/* Read in each pass of progress. */
	struct fid **fids; /* peer's CQs and counters */
	size_t count;	   /* of fids[] and queues[] */
	struct tdm_eq *eq; /* imported by the peer */

	struct tdm_link_queue *queues;
	size_t room;		       /* of fids[] and queues[] */
	int (*add)(void *arg, int fd); /* NULL: nobody watches */
	void (*del)(void *arg, int fd);
	void *watch_arg;
	int epfd; /* of the owner, for queues that can join it; -1: none */
	void (*event)(void *arg, const struct tdm_peer_event *event);
	void *arg;

	struct fi_provider *prov;
	struct fi_info *info; /* of the peer; the link frees it */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *peer_eq; /* NULL: the peer imports none */
	struct tdm_list eps;	/* struct tdm_link_ep */
};

/*
 * get: read queue @fid of the peer in each pass from now on; put: undo one get.
 * Errors: -FI_ENOMEM.
 */
int tdm_link_get_queue(struct tdm_link *link, struct fid *fid) tdm_must_check;
void tdm_link_put_queue(struct tdm_link *link, struct fid *fid);

/* Free the list of queues at the end of the link. Accepts a zeroed @link. */
void tdm_link_free_queues(struct tdm_link *link);

#endif /* TDM_PEER_LINK_PRIV_H */
