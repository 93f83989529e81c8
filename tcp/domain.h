/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fabric and domain of the owner, fi_fabric(3) and fi_domain(3). A domain
 * has what its endpoints share: the one lock, the event loop, the link to the
 * shared-memory peer. It is the engine that drives its queues.
 */
#ifndef TDM_TCP_DOMAIN_H
#define TDM_TCP_DOMAIN_H

#include <rdma/fi_domain.h>

#include "base/list.h"
#include "peer/import_srx.h"
#include "peer/link.h"
#include "tcp/retry.h"
#include "tcp/wire/loop.h"
#include "tdm_engine.h"
#include "tdm_rma.h"

struct tdm_auto;
struct tdm_eq;
struct tdm_foreign;

struct tdm_fabric;
struct tdm_stat;

struct tdm_domain {
	struct fid_domain fid;
	struct tdm_lock lock;
	struct tdm_engine engine;
	struct tdm_fabric *fabric;
	struct fi_info *info;  /* the application's, owned */
	struct tdm_loop *loop; /* G: lock */
	struct tdm_link *link; /* NULL: no shared memory */
	struct tdm_list roots; /* struct tdm_root, enabled; G: lock */
	size_t users;	       /* objects opened on the domain; G: lock */
	size_t local_pairs;    /* pairs that use shared memory; G: lock */
	int watching;	       /* the transports' descriptors are in wait_fd */
	struct tdm_eq *eq;     /* fi_domain_bind(), or NULL */
	/* another owner's: receive contexts; G: lock */
	struct tdm_imports imports;
	/* its domain, if that has regions, or NULL; how to reach these */
	struct fid_domain *lent;
	const struct tdm_rma_ops *lent_ops;
	struct tdm_rma_ops lent_rma;
	struct tdm_auto *automatic; /* the progress thread, or NULL */
	/* 1: TCP had no connection at the last full pass */
	int tcp_quiet;
	void *mr_tree;	       /* struct tdm_mr by key, tsearch(3); G: lock */
	struct tdm_list retry; /* struct tdm_retry with work to do */
	int in_retry;	       /* 1: work to be retried is being called */
	struct tdm_loop_timer
		retry_timer;	  /* calls work to be retried during sleep */
	struct tdm_list deferred; /* struct tdm_deferred, all */
	struct tdm_list due;	  /* those that are due */
	/* 1: some of them have not been tried by a pass */
	int fresh;
	int urgent;	 /* collectives with work for a pass before sleep */
	uint32_t groups; /* numbers given to groups of collectives */
	struct tdm_retry deferring;  /* on `retry` while any is due */
	struct tdm_list opened;	     /* node in the list of opened.c */
	struct tdm_list named;	     /* address vectors with a name; G: lock */
	struct tdm_stat *stat;	     /* NULL: none */
	struct tdm_foreign *foreign; /* the provider of FI_TANDEM_LOCAL */
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

/*
 * Opens a domain, fi_domain(3). Out: *@domain. Errors: -FI_EINVAL for
 * attributes that were not offered, -FI_ENOMEM; with automatic progress those
 * of tdm_auto_start().
 */
int tdm_domain_open(struct tdm_fabric *fabric, struct fi_info *info,
		    struct fid_domain **domain, void *context);

/*
 * Opens a domain below that of another owner, which is in @context. Errors: as
 * above; -FI_EINVAL also for a context that cannot be used, and without FI_PEER in
 * info->caps. Spec: fi_peer(3), PEER DOMAIN.
 */
int tdm_domain_import(struct tdm_fabric *fabric, struct fi_info *info,
		      struct fid_domain **domain, void *context);

struct tdm_domain *tdm_domain_from_fid(struct fid_domain *fid);

/* Not 0 when endpoints of the domain may have keys: from API version 1.5 on. */
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
 * context (tdm_space.h): groups, that of collective operations too, or keys.
 */
static inline int tdm_domain_spaces(const struct tdm_domain *domain)
{
	return domain->info->domain_attr->max_group_id > 0 ||
	       (domain->info->caps & FI_COLLECTIVE) ||
	       tdm_domain_av_keys(domain);
}

/*
 * get: count an object that lives on the domain; put: end this. While there is
 * one, fi_close of the domain returns -FI_EBUSY. Lock: held.
 */
void tdm_domain_get(struct tdm_domain *domain);
void tdm_domain_put(void *domain);

#endif /* TDM_TCP_DOMAIN_H */
