/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The endpoint of the shared-memory peer, and its address vector.
 *
 * The owner's domain lock guards everything in this folder and is held whenever
 * one of its functions runs; nothing here takes a lock.
 */
#ifndef TDM_SHM_EP_H
#define TDM_SHM_EP_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include "base/auth.h"
#include "base/pool.h"
#include "shm/attach.h"
#include "shm/import.h"
#include "shm/pair.h"
#include "tdm_done.h"
#include "tdm_held.h"
#include "tdm_rma.h"
#include "tdm_space.h"

enum {
	TDM_SHM_HOT_MOST = 8, /* rings polled in each progress call */
	/* up to so many rings are polled even when they are silent */
	TDM_SHM_HOT_KEEP = 4,
	/* greatest number of areas made only to help */
	TDM_SHM_BOUNCES_MOST = 32,
	TDM_SHM_OP_SLAB = 64, /* operations; a power of 2 */
};

/* Slots for the CQs and counters bound to an endpoint. */
enum {
	TDM_SHM_Q_TX,
	TDM_SHM_Q_RX,
	TDM_SHM_Q_SEND,
	TDM_SHM_Q_RECV,
	TDM_SHM_Q_READ,
	TDM_SHM_Q_WRITE,
	TDM_SHM_Q_REMOTE_READ,
	TDM_SHM_Q_REMOTE_WRITE,
	TDM_SHM_Q_COUNT
};

struct tdm_shm_ep {
	struct fid_ep fid;

	/* hot: send and progress */
	struct tdm_shm_pair **by_addr; /* pair by fi_addr of the AV */
	uint32_t by_addr_count;
	int enabled;
	struct tdm_done done;
	struct fid_peer_srx *srx; /* the owner's */
	uint32_t contexts;	  /* receive contexts behind srx */
	uint64_t tx_flags;	  /* default operation flags */
	uint64_t tx_comp;	  /* FI_COMPLETION unless selective */
	int in_progress;
	uint32_t ticks; /* progress calls */
	uint32_t nhot;
	uint32_t nsummary; /* words of hints->summary in use */
	int met; /* 1: a record came since now_and_then() made a control call */
	struct tdm_shm_pair *hot[TDM_SHM_HOT_MOST];
	struct tdm_shm_hints *hints;
	struct tdm_list busy;	   /* pairs */
	struct tdm_list reap;	   /* pairs */
	struct tdm_list attaching; /* sessions that are not up, oldest first */

	int has_file;	       /* 1: the attach socket is a file of ours */
	int armed;	       /* 1: a thread may sleep on our descriptors */
	struct tdm_list awake; /* pairs */
	struct tdm_list held;  /* pairs */
	size_t eager_most;     /* bytes; the parameter, clamped */

	struct tdm_order order;
	struct tdm_shm_op **op_slab; /* [op_slabs], TDM_SHM_OP_SLAB of each */
	size_t op_slabs;
	size_t tx_size;	  /* greatest number of one-sided operations */
	size_t tx_used;	  /* one-sided operations under way */
	uint32_t op_used; /* entries of op_slab used at least once */
	struct tdm_list op_free;
	struct tdm_pool pulls;
	struct tdm_pool ctls;
	struct tdm_pool serves;
	struct tdm_rma_ops *rma; /* of the owner's domain; NULL: none */
	/* limit of pair->announced and pair->waiting */
	uint32_t announced_most;
	struct tdm_list unexps;
	size_t unexp_bytes; /* charged for unexpected messages */
	struct tdm_held *account, held_own; /* unexp.c */

	struct tdm_list pairs;
	struct tdm_shm_pair **hash;
	uint32_t hash_size; /* power of 2 */
	uint32_t npairs;

	struct tdm_shm_session **bells; /* by bit number */
	uint32_t bells_size;
	uint32_t bell_cursor; /* the bit to sweep next */
	struct tdm_shm_region hints_region;
	size_t grown_bytes;	 /* bytes of all rings larger than the first */
	uint32_t nbounces;	 /* own bounce areas */
	int bell_fd;		 /* eventfd */
	int ctl_fd;		 /* epoll: listener, lifelines, pidfds */
	struct tdm_list watches; /* members of ctl_fd */
	/*
	 * closed to accept and refuse a caller when no other descriptor is left
	 */
	int spare_fd;
	struct tdm_shm_watch listener;
	uint32_t unauth;     /* attach sockets before HELLO */
	int barrier;	     /* 1: membarrier registered and working */
	uint64_t control_at; /* ns: when control work is next due */
	/* the pair whose peer's memory was read last, lately; or NULL; and when */
	struct tdm_shm_pair *read_from;
	uint64_t read_ns;
	uint64_t hot_at;    /* ns: when to review the hot set */
	uint64_t listen_at; /* ns: when to accept again; 0: accepting */
	uint8_t incarnation[16];
	uint64_t nonce;		    /* read by peers, to test CMA */
	struct tdm_auth_keys *keys; /* NULL: none */
	struct tdm_shm_addr name;
	/* tdm_live.h; or NULL */
	int (*owner_waits)(void *arg, const void *addr, size_t len,
			   uint32_t key);
	void *owner_arg;

	struct tdm_shm_domain *domain;
	struct tdm_shm_av *av;
	struct tdm_list av_node; /* av->eps */
	struct tdm_shm_srx *srx_obj;
	struct tdm_shm_eq *eq;
	struct tdm_shm_queue *queues[TDM_SHM_Q_COUNT];
	struct tdm_shm_queue_link links[TDM_SHM_Q_COUNT];
};

static inline struct tdm_shm_ep *tdm_shm_ep_from_fid(struct fid_ep *fid)
{
	return tdm_container_of(fid, struct tdm_shm_ep, fid);
}

/* fi_endpoint(3) on the peer's domain. Errors: -FI_EINVAL, -FI_ENOMEM. */
int tdm_shm_ep_open(struct fid_domain *domain, struct fi_info *info,
		    struct fid_ep **ep, void *context) tdm_must_check;

/* api.c */
extern struct fi_ops_msg tdm_shm_msg_ops;
extern struct fi_ops_tagged tdm_shm_tagged_ops;
extern struct fi_ops_rma tdm_shm_rma_ops;
extern struct tdm_amo_table tdm_shm_amo_calls; /* amo.c */

struct tdm_shm_av;

/*
 * Returns the pair of @addr in the bound AV if anything was sent there; else
 * NULL.
 */
static inline struct tdm_shm_pair *tdm_shm_pair_at(const struct tdm_shm_ep *ep,
						   fi_addr_t addr)
{
	return tdm_likely(addr < ep->by_addr_count) ? ep->by_addr[addr] : NULL;
}

#endif /* TDM_SHM_EP_H */
