/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects that the peer imports: CQ, counter, SRX, EQ and domain. Only
 * import.c touches struct fi_peer_*_context in this folder. Each of these
 * objects has a fid of its own, whose calls only make progress; results go to
 * the imported object.
 */
#ifndef TDM_SHM_IMPORT_H
#define TDM_SHM_IMPORT_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/providers/fi_peer.h>

#include "base/list.h"
#include "base/pool.h"

struct tdm_rma_ops;
struct tdm_shm_adapter;
struct tdm_shm_ep;

/* Classes of buffers for unexpected messages, bytes of payload each. */
enum { TDM_SHM_UNEXP_POOLS = 3 };

struct tdm_shm_fabric {
	struct fid_fabric fid;
	/*
	 * the EQ that was imported last, for endpoints to which none is bound;
	 * NULL once it is closed
	 */
	struct tdm_shm_eq *eq;
	uint32_t refs;
};

struct tdm_shm_domain {
	struct fid_domain fid;
	struct tdm_shm_fabric *fabric;
	struct fid_domain *owner; /* imported; NULL: none */
	struct tdm_rma_ops *rma;  /* the owner's; NULL: not known */
	uint32_t max_group;	  /* 0: no groups */
	int spaces; /* offers have match addresses (tdm_space.h) */
	uint32_t refs;
	/*
	 * Buffers of unexpected messages outlive endpoints: the owner may
	 * discard a message after fi_close.
	 */
	struct tdm_pool unexp[TDM_SHM_UNEXP_POOLS];
	struct tdm_pool adapted; /* entries of adapters: adapter.h */
	size_t unexp_bytes[TDM_SHM_UNEXP_POOLS]; /* payload of each class */
};

/* An endpoint that makes progress when a queue is read; one link per bind. */
struct tdm_shm_queue_link {
	struct tdm_list node; /* queue->links */
	struct tdm_shm_ep *ep;
};

/* The common part of an imported CQ and an imported counter. */
struct tdm_shm_queue {
	struct tdm_list links; /* the bound endpoints that are enabled */
	struct tdm_shm_domain *domain;
	/* Epoll set with the descriptors of the endpoints; -1: none yet. */
	int wait_fd;
	int borrowed;  /* 1: the owner's set: tdm_sleep.h */
	uint32_t refs; /* endpoints bound, enabled or not */
};

struct tdm_shm_cq {
	struct fid_cq fid;
	struct tdm_shm_queue queue;
	struct fid_peer_cq *owner;
};

struct tdm_shm_cntr {
	struct fid_cntr fid;
	struct tdm_shm_queue queue;
	struct fid_peer_cntr *owner;
};

struct tdm_shm_srx {
	struct fid_ep fid;
	struct tdm_shm_domain *domain;
	struct fid_peer_srx *owner;
	struct fid_peer_srx *used;	 /* by the endpoint: the owner's, or */
	struct tdm_shm_adapter *adapter; /* that of this; NULL: none */
	struct tdm_shm_ep *ep;		 /* bound to it, or NULL */
};

struct tdm_shm_eq {
	struct fid_eq fid;
	struct tdm_shm_fabric *fabric;
	struct fid_eq *owner;
	uint32_t refs;
};

/*
 * Returns the owner's domain in @context, a struct fi_peer_domain_context; NULL
 * when the context or its domain cannot be used.
 */
struct fid_domain *tdm_shm_import_domain(const void *context);

/*
 * fi_cq_open(3), fi_cntr_open(3), fi_srx_context(3), fi_eq_open(3) with
 * FI_PEER. Errors: -FI_EINVAL without FI_PEER or with a context that is too
 * small, -FI_ENOSYS for a wait object other than NONE, UNSPEC and FD,
 * -FI_ENOMEM.
 */
int tdm_shm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		    struct fid_cq **cq, void *context) tdm_must_check;
int tdm_shm_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		      struct fid_cntr **cntr, void *context) tdm_must_check;
int tdm_shm_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		     struct fid_ep **srx, void *context) tdm_must_check;
int tdm_shm_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		    struct fid_eq **eq, void *context) tdm_must_check;

/*
 * add: called when the endpoint of @link is enabled: reading @queue makes
 * progress of it from now on, and the queue's wait descriptor includes it.
 * Errors: those of epoll_ctl(2). del: undoes this.
 */
int tdm_shm_queue_add(struct tdm_shm_queue *queue,
		      struct tdm_shm_queue_link *link) tdm_must_check;
void tdm_shm_queue_del(struct tdm_shm_queue *queue,
		       struct tdm_shm_queue_link *link);

/*
 * Add @fd, which @ep polls, to the wait descriptors of all queues of @ep;
 * remove it. Errors: those of epoll_ctl(2).
 */
int tdm_shm_queues_watch(struct tdm_shm_ep *ep, int fd) tdm_must_check;
void tdm_shm_queues_unwatch(struct tdm_shm_ep *ep, int fd);

/*
 * fi_trywait(3): returns 0 when the caller may sleep on the wait descriptors of
 * @fids, else -FI_EAGAIN.
 */
int tdm_shm_trywait(struct fid_fabric *fabric, struct fid **fids, int count);

#endif /* TDM_SHM_IMPORT_H */
