/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fabric and domain of the owner, fi_fabric(3) and fi_domain(3). A domain
 * has what its endpoints share: the one lock, the event loop, the link to the
 * shared-memory peer. It is the engine that drives its queues.
 */
#ifndef TDM_TCP_DOMAIN_H
#define TDM_TCP_DOMAIN_H

#include <rdma/fi_domain.h>

#include "peer/link.h"
#include "tcp/wire/loop.h"
#include "tdm_engine.h"
#include "base/list.h"

struct tdm_auto;
struct tdm_eq;

struct tdm_fabric {
	struct fid_fabric fid;
	char *name;		/* of the network; NULL: of all */
	size_t users;		/* domains, EQs and wait sets; atomic */
	struct tdm_list opened; /* in the list of opened.c */
};

/* Work that waits for a progress pass: late.c. */
struct tdm_late {
	struct tdm_list node;		     /* domain->late */
	void (*pass)(struct tdm_late *late); /* try again */
};

struct tdm_domain {
	struct fid_domain fid;
	struct tdm_lock lock;
	struct tdm_engine engine;
	struct tdm_fabric *fabric;
	struct fi_info *info;	    /* as the application opened it, owned */
	struct tdm_loop *loop;	    /* G: lock */
	struct tdm_link *link;	    /* NULL: no shared memory */
	struct tdm_list eps;	    /* struct tdm_ep, enabled ones; G: lock */
	size_t users;		    /* objects opened on the domain; G: lock */
	size_t local_pairs;	    /* pairs that use shared memory; G: lock */
	int watching;		    /* the link's descriptors are in wait_fd */
	struct tdm_eq *eq;	    /* fi_domain_bind(), or NULL */
	struct tdm_auto *automatic; /* the progress thread, or NULL */
	int tcp_quiet;		    /* no connection at the last full pass */
	void *mr_tree;	      /* struct tdm_mr by key, tsearch(3); G: lock */
	struct tdm_list late; /* struct tdm_late with work to do */
	int in_late;	      /* 1: late work is being called */
	struct tdm_loop_timer late_timer; /* calls late work during sleep */
	struct tdm_list deferred;	  /* struct tdm_deferred, all */
	struct tdm_list due;		  /* those to be started */
	/* 1: no pass has tried some of them */
	int fresh;
	struct tdm_late deferring; /* while any is due */
	struct tdm_list opened;	   /* in the list of opened.c */
	struct tdm_list named;	   /* address vectors with a name; G: lock */
};

/*
 * Reading @eq, which is about to be bound, makes progress for the domain from
 * now on. Takes a reference on @eq; tdm_eq_undrive() drops it. Event queues do
 * not belong to a domain: even with FI_THREAD_DOMAIN another thread may read
 * them, unless the application serialises control progress
 * (FI_PROGRESS_CONTROL_UNIFIED). Errors: those of tdm_eq_drive(). Lock: not
 * held.
 */
int tdm_domain_drive(struct tdm_domain *domain,
		     struct tdm_eq *eq) tdm_must_check;

/* fi_fabric(3) for this provider; the core's struct fi_provider.fabric. */
int tdm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);

/*
 * fi_domain(3). Out: *@domain. Errors: -FI_EINVAL for attributes that were
 * not offered, -FI_ENOMEM; with automatic progress those of tdm_auto_start().
 */
int tdm_domain_open(struct tdm_fabric *fabric, struct fi_info *info,
		    struct fid_domain **domain, void *context);

struct tdm_domain *tdm_domain_from_fid(struct fid_domain *fid);

/* Keys exist from API version 1.5 on. */
static inline int tdm_domain_has_keys(const struct tdm_domain *domain)
{
	return FI_VERSION_GE(domain->engine.api_version, FI_VERSION(1, 5));
}

/* Not 0 when the keys of endpoints are those of their AV, FI_AV_AUTH_KEY. */
static inline int tdm_domain_av_keys(const struct tdm_domain *domain)
{
	return tdm_domain_has_keys(domain) &&
	       domain->info->domain_attr->auth_key_size == FI_AV_AUTH_KEY;
}

/*
 * Not 0 when addresses of the domain have more than an index and a receive
 * context (tdm_space.h): groups or keys.
 */
static inline int tdm_domain_spaces(const struct tdm_domain *domain)
{
	return domain->info->domain_attr->max_group_id > 0 ||
	       tdm_domain_av_keys(domain);
}

/*
 * Count an object that lives on the domain; while there is one, fi_close of
 * the domain gives -FI_EBUSY. Lock: held.
 */
void tdm_domain_get(struct tdm_domain *domain);
void tdm_domain_put(void *domain);

/* opened.c: the open fabrics and domains, which fi_getinfo(3) may refer to. */
void tdm_opened_fabric(struct tdm_fabric *fabric);
void tdm_closed_fabric(struct tdm_fabric *fabric);
void tdm_opened_domain(struct tdm_domain *domain);
void tdm_closed_domain(struct tdm_domain *domain);

/*
 * Keep all threads out of all domains, for fork(2), and let them in again. In
 * the child @orphaned is called for each domain, which is then forgotten;
 * NULL in the parent. Locks: all domains' are taken and released.
 */
void tdm_opened_freeze(void);
void tdm_opened_thaw(void (*orphaned)(struct tdm_domain *domain));

/* Call @look with the lock of each domain that no thread is using. */
void tdm_opened_idle(void (*look)(struct tdm_domain *domain));

/*
 * fork.c: make children of fork(2) leave the parent's objects alone. Once per
 * process.
 */
void tdm_fork_init(void);

/* fi_endpoint(3). */
int tdm_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context);

/*
 * Call the work that waits for a pass; prepare for sleep: late.c. Lock: held.
 */
void tdm_late_init(struct tdm_domain *domain);
void tdm_late_pass(struct tdm_domain *domain);
void tdm_late_arm(struct tdm_domain *domain);

/* struct tdm_engine.due(): deferred.c. */
void tdm_domain_due(struct tdm_engine *engine, struct tdm_trigger *trigger);

/* fi_scalable_ep(3): sep.c. */
int tdm_sep_open(struct fid_domain *domain, struct fi_info *info,
		 struct fid_ep **sep, void *context);

/* fi_srx_context(3) and fi_stx_context(3): srx_ctx.c, stx.c. */
int tdm_srx_ctx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		     struct fid_ep **ctx, void *context);
int tdm_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr,
		 struct fid_stx **stx, void *context);

/* fi_query_atomic(3): amo.c. Lock: not needed. */
int tdm_amo_query(struct fid_domain *domain, enum fi_datatype type,
		  enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags);

/* The calls of struct fi_ops_mr. */
extern struct fi_ops_mr tdm_mr_ops;

/* fi_open_ops(3) of the domain: TDM_RMA_OPS. */
int tdm_mr_ops_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context);

/* Keep atomic operations out during a fork. Lock: those of all domains. */
void tdm_mr_freeze(void);
void tdm_mr_thaw(void);

/* Give back an entry of tdm_rma_ops.get(). Lock: held. */
void tdm_mr_entry_free(struct fi_peer_rx_entry *entry);

#endif /* TDM_TCP_DOMAIN_H */
