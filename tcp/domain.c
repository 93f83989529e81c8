/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The domain object, fi_domain(3): opens the objects of the domain, and is the
 * engine that makes their progress. Both transports of its endpoints are
 * reached by the calls of tier.h, except in a pass of progress.
 *
 * A pass of progress runs, in this order, the event loop, the work that TCP
 * endpoints postponed to the end of a pass, the shared-memory peer, and the
 * work that waits for a pass: queued sends, and deferred operations that are
 * due. With FI_PROGRESS_AUTO a thread makes passes as well; it ends before the
 * domain closes other objects.
 *
 * Lock: the domain's; taken in the calls of struct fi_ops_domain.
 */
#include "tcp/domain.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "av/av.h"
#include "base/env.h"
#include "base/log.h"
#include "peer/auto.h"
#include "peer/eq.h"
#include "peer/foreign.h"
#include "peer/import.h"
#include "peer/import_eq.h"
#include "peer/pollset.h"
#include "tcp/amo.h"
#include "tcp/attr.h"
#include "tcp/coll.h"
#include "tcp/deferred.h"
#include "tcp/ep.h"
#include "tcp/ep_priv.h"
#include "tcp/fabric.h"
#include "tcp/getinfo.h"
#include "tcp/import.h"
#include "tcp/mr.h"
#include "tcp/opened.h"
#include "tcp/retry.h"
#include "tcp/sep.h"
#include "tcp/srx_ctx.h"
#include "tcp/stat.h"
#include "tcp/stx.h"
#include "tcp/tier.h"
#include "tcp/work.h"
#include "tdm_info.h"
#include "tdm_nosys.h"

enum { QUIET_PASSES = 16 };

struct tdm_domain *tdm_domain_from_fid(struct fid_domain *fid)
{
	return tdm_container_of(fid, struct tdm_domain, fid);
}

static struct tdm_domain *from_engine(struct tdm_engine *engine)
{
	return tdm_container_of(engine, struct tdm_domain, engine);
}

void tdm_domain_get(struct tdm_domain *domain)
{
	domain->users++;
}

void tdm_domain_put(void *domain)
{
	((struct tdm_domain *)domain)->users--;
}

/* Make a full pass of TCP, and note whether TCP has connections. */
static tdm_noinline void tcp_progress(struct tdm_domain *d)
{
	struct tdm_list *pos;
	int quiet = 1;

	tdm_loop_progress(d->loop, !d->local_pairs);
	tdm_list_for_each(pos, &d->roots) {
		struct tdm_tcp *tcp =
			tdm_list_entry(pos, struct tdm_root, node)->tcp;

		tdm_tcp_progress(tcp);
		if (tdm_tcp_busy(tcp))
			quiet = 0;
	}
	d->tcp_quiet = quiet;
}

/*
 * While shared memory is in use and TCP has no connection, only new connections
 * can wait at TCP: check for them every QUIET_PASSES-th pass. Both transports
 * are called directly and not through tier.h: every read of a queue makes a
 * pass, and a table would cost one that finds nothing two indirect calls more.
 */
static void domain_progress(struct tdm_engine *engine)
{
	struct tdm_domain *d = from_engine(engine);

	tdm_assert_held(&d->lock);
	engine->passes++;
	engine->owed = 0;
	if (!d->local_pairs || !d->tcp_quiet ||
	    !(engine->passes % QUIET_PASSES))
		tcp_progress(d);
	if (tdm_likely(d->link != NULL))
		tdm_link_progress(d->link);
	if (tdm_unlikely(!tdm_list_empty(&d->retry)))
		tdm_retry_pass(d);
}

/* A pass of a domain that has a foreign peer. */
static void foreign_progress(struct tdm_engine *engine)
{
	struct tdm_domain *d = from_engine(engine);

	domain_progress(engine);
	if (d->foreign)
		tdm_foreign_progress(d->foreign);
}

/*
 * A pass of a domain that has, or had, named address vectors, which other
 * processes change. Their views are brought up to date before the pass, so that
 * messages get their present sources, and after it, so that an index contained
 * in a message is known when the application reads it.
 */
static void named_progress(struct tdm_engine *engine)
{
	struct tdm_domain *d = from_engine(engine);

	tdm_av_follow_all(&d->named);
	foreign_progress(engine);
	tdm_av_follow_all(&d->named);
}

static int domain_arm(struct tdm_engine *engine)
{
	struct tdm_domain *d = from_engine(engine);
	int ret = 0, t;

	if (!tdm_list_empty(&d->imports.late))
		return -FI_EAGAIN;
	tdm_retry_arm(d);
	for (t = 0; !ret && t < TDM_TRANSPORTS; t++)
		ret = tdm_tier[t]->arm(d);
	/* Arming may have ended operations and changed counters. */
	return !ret && (d->fresh || d->urgent) ? -FI_EAGAIN : ret;
}

static size_t domain_source_addr(const struct tdm_engine *engine,
				 const struct sockaddr *sa, void *buf,
				 size_t room)
{
	const struct tdm_domain *d =
		tdm_container_of(engine, const struct tdm_domain, engine);
	struct tdm_addr a;

	if (tdm_addr_from_bind(&a, sa, tdm_source_bytes(sa)))
		return 0;
	return tdm_min(room,
		       tdm_addr_encode(&a, d->info->addr_format, buf, room));
}

static int domain_wait_fd(struct tdm_engine *engine)
{
	struct tdm_domain *d = from_engine(engine);
	int fd = tdm_loop_wait_fd(d->loop), ret = 0, t;

	if (fd < 0 || d->watching)
		return fd;
	for (t = 0; !ret && t < TDM_TRANSPORTS; t++)
		ret = tdm_tier[t]->watch(d, fd);
	if (ret)
		return ret;
	d->watching = 1;
	return fd;
}

static void domain_free(struct tdm_domain *d)
{
	int t;

	tdm_stat_end(d);
	if (d->retry_timer.ev)
		tdm_loop_timer_disarm(&d->retry_timer);
	for (t = TDM_TRANSPORTS; t-- > 0;)
		tdm_tier[t]->stop(d);
	tdm_imports_fini(&d->imports);
	tdm_info_free(d->info);
	tdm_lock_fini(&d->lock);
	free(d);
}

static int domain_close(struct fid *fid)
{
	struct tdm_domain *d =
		tdm_container_of(fid, struct tdm_domain, fid.fid);

	tdm_lock_acquire(&d->lock);
	if (d->users || d->engine.orphan) {
		tdm_lock_release(&d->lock);
		return d->engine.orphan ? -FI_EOPBADSTATE : -FI_EBUSY;
	}
	tdm_lock_release(&d->lock);
	tdm_closed_domain(d);
	tdm_auto_stop(d->automatic);
	d->automatic = NULL;
	__atomic_fetch_sub(&d->fabric->users, 1, __ATOMIC_RELEASE);
	if (d->eq)
		tdm_eq_undrive(d->eq, &d->engine);
	domain_free(d);
	return 0;
}

int tdm_domain_drive(struct tdm_domain *d, struct tdm_eq *eq)
{
	if (d->info->domain_attr->control_progress !=
	    FI_PROGRESS_CONTROL_UNIFIED)
		tdm_lock_enable(&d->lock);
	if (!d->automatic)
		return tdm_eq_drive(eq, &d->engine);
	tdm_eq_get(eq);
	return 0;
}

static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct tdm_domain *d =
		tdm_container_of(fid, struct tdm_domain, fid.fid);
	struct tdm_eq *eq;
	int ret;

	if (!bfid || bfid->fclass != FI_CLASS_EQ || tdm_import_eq_of(bfid))
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	eq = tdm_eq_from_fid((struct fid_eq *)bfid);
	ret = tdm_domain_drive(d, eq);
	if (ret)
		return ret;
	tdm_lock_acquire(&d->lock);
	if (d->eq)
		ret = -FI_EINVAL;
	else
		d->eq = eq;
	tdm_lock_release(&d->lock);
	if (ret)
		tdm_eq_undrive(eq, &d->engine);
	return ret;
}

static int domain_av_open(struct fid_domain *fid, struct fi_av_attr *attr,
			  struct fid_av **av, void *context)
{
	struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct tdm_av_attr owner = {
		.engine = &d->engine,
		.link = d->link,
		.addr_format = d->info->addr_format,
		.max_group = d->info->domain_attr->max_group_id,
		.collective = !!(d->info->caps & FI_COLLECTIVE),
		.keys = tdm_domain_av_keys(d),
		.domain = d->info->domain_attr->name,
		.named = &d->named
	};
	struct fi_av_attr none = { .type = FI_AV_UNSPEC };
	struct tdm_av *a;
	int ret = tdm_av_open(&owner, attr ? attr : &none, context, &a);

	if (ret)
		return ret;
	tdm_lock_acquire(&d->lock);
	tdm_domain_get(d);
	tdm_av_on_close(a, tdm_domain_put, d);
	if (tdm_av_is_named(a) && !d->engine.orphan)
		d->engine.progress = named_progress;
	tdm_lock_release(&d->lock);
	*av = tdm_av_fid(a);
	return 0;
}

static int domain_cq_open(struct fid_domain *fid, struct fi_cq_attr *attr,
			  struct fid_cq **cq, void *context)
{
	struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct tdm_cq *q;
	int ret, t;

	ret = tdm_cq_open(&d->engine, attr, !!(d->info->caps & FI_SOURCE),
			  context, &q);
	if (ret)
		return ret;
	tdm_lock_acquire(&d->lock);
	tdm_domain_get(d);
	tdm_cq_on_close(q, tdm_domain_put, d);
	for (t = 0; !ret && t < TDM_TRANSPORTS; t++)
		ret = tdm_tier[t]->import_cq(d, q);
	tdm_lock_release(&d->lock);
	if (ret) {
		fi_close(&tdm_cq_fid(q)->fid);
		return ret;
	}
	*cq = tdm_cq_fid(q);
	return 0;
}

static int domain_cntr_open(struct fid_domain *fid, struct fi_cntr_attr *attr,
			    struct fid_cntr **cntr, void *context)
{
	struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct tdm_cntr *c;
	int ret = tdm_cntr_open(&d->engine, attr, context, &c), t;

	if (ret)
		return ret;
	tdm_lock_acquire(&d->lock);
	tdm_domain_get(d);
	tdm_cntr_on_close(c, tdm_domain_put, d);
	for (t = 0; !ret && t < TDM_TRANSPORTS; t++)
		ret = tdm_tier[t]->import_cntr(d, c);
	tdm_lock_release(&d->lock);
	if (ret) {
		fi_close(&tdm_cntr_fid(c)->fid);
		return ret;
	}
	*cntr = tdm_cntr_fid(c);
	return 0;
}

static int domain_poll_open(struct fid_domain *fid, struct fi_poll_attr *attr,
			    struct fid_poll **poll)
{
	struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct tdm_pollset *set;
	int ret = tdm_pollset_open(&d->engine, attr, &set);

	if (ret)
		return ret;
	tdm_lock_acquire(&d->lock);
	tdm_domain_get(d);
	tdm_pollset_on_close(set, tdm_domain_put, d);
	tdm_lock_release(&d->lock);
	*poll = tdm_pollset_fid(set);
	return 0;
}

static int domain_endpoint2(struct fid_domain *fid, struct fi_info *info,
			    struct fid_ep **ep, uint64_t flags, void *context)
{
	return flags ? -FI_EBADFLAGS : tdm_ep_open(fid, info, ep, context);
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(domain_fid_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = tdm_work_control,
	.ops_open = tdm_mr_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(domain_ops),
	.av_open = domain_av_open,
	.cq_open = domain_cq_open,
	.endpoint = tdm_ep_open,
	.scalable_ep = tdm_sep_open,
	.cntr_open = domain_cntr_open,
	.poll_open = domain_poll_open,
	.stx_ctx = tdm_stx_open,
	.srx_ctx = tdm_srx_ctx_open,
	.query_atomic = tdm_amo_query,
	.query_collective = tdm_coll_query,
	.endpoint2 = domain_endpoint2,
};

/*
 * Only FI_THREAD_DOMAIN promises that one thread at a time is in a domain; the
 * provider's own thread may run at any time.
 */
static int needs_lock(const struct fi_info *info)
{
	return info->domain_attr->threading != FI_THREAD_DOMAIN ||
	       tdm_auto_asked(info);
}

/* The wake() of struct tdm_imports. */
static void import_wake(struct tdm_engine *engine)
{
	tdm_loop_wake(from_engine(engine)->loop);
}

int tdm_domain_open(struct tdm_fabric *fabric, struct fi_info *info,
		    struct fid_domain **domain, void *context)
{
	struct tdm_domain *d;
	int ret, t;

	if (!info || !info->domain_attr)
		return -FI_EINVAL;
	ret = tdm_info_check(info);
	if (ret)
		return ret;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -FI_ENOMEM;
	tdm_lock_init(&d->lock, needs_lock(info));
	d->fid.fid.fclass = FI_CLASS_DOMAIN;
	d->fid.fid.context = context;
	d->fid.fid.ops = &domain_fid_ops;
	d->fid.ops = &domain_ops;
	d->fid.mr = &tdm_mr_ops;
	d->engine.lock = &d->lock;
	d->engine.progress = domain_progress;
	d->engine.arm = domain_arm;
	d->engine.wait_fd = domain_wait_fd;
	d->engine.due = tdm_domain_due;
	d->engine.source_addr = domain_source_addr;
	d->engine.api_version = fabric->fid.api_version;
	d->fabric = fabric;
	tdm_imports_init(&d->imports, &d->engine);
	d->imports.wake = import_wake;
	if (info->caps & FI_PEER)
		d->engine.imports = &d->imports;
	tdm_list_init(&d->roots);
	tdm_list_init(&d->named);
	tdm_retry_init(d);
	tdm_deferred_init(d);
	d->info = fi_dupinfo(info);
	ret = d->info ? 0 : -FI_ENOMEM;
	for (t = 0; !ret && t < TDM_TRANSPORTS; t++)
		ret = tdm_tier[t]->start(d);
	if (d->foreign)
		d->engine.progress = foreign_progress;
	if (!ret && tdm_auto_asked(info))
		ret = tdm_auto_start(&d->engine, &d->automatic);
	if (ret) {
		domain_free(d);
		return ret;
	}
	__atomic_fetch_add(&fabric->users, 1, __ATOMIC_RELAXED);
	tdm_opened_domain(d);
	*domain = &d->fid;
	return 0;
}

int tdm_domain_import(struct tdm_fabric *fabric, struct fi_info *info,
		      struct fid_domain **domain, void *context)
{
	struct fid_domain *owner = info && info->caps & FI_PEER ?
					   tdm_import_domain(context) :
					   NULL;
	int ret;

	if (!owner)
		return -FI_EINVAL;
	ret = tdm_domain_open(fabric, info, domain, NULL);
	if (!ret)
		tdm_import_regions(tdm_domain_from_fid(*domain), owner);
	return ret;
}
