/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric object, fi_fabric(3): opens domains and event queues, and
 * answers fi_trywait(3) for the queues of any of its domains.
 *
 * Invariant: users counts open domains and EQs; the fabric outlives them.
 *
 * Lock: none of its own: users is atomic, and a call for a queue takes the lock
 * of the queue's domain.
 */
#include "tcp/fabric.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "peer/cntr.h"
#include "peer/cq.h"
#include "peer/eq.h"
#include "peer/import_eq.h"
#include "peer/waitset.h"
#include "tcp/domain.h"
#include "tcp/opened.h"
#include "tcp/tier.h"
#include "tdm_nosys.h"

/* An EQ that another owner lends, and the fabric on which it was opened. */
struct lent_eq {
	struct tdm_fabric *fabric;
	struct tdm_import_eq *eq;
};

static struct tdm_fabric *fabric_from_fid(struct fid_fabric *fid)
{
	return tdm_container_of(fid, struct tdm_fabric, fid);
}

static int fabric_close(struct fid *fid)
{
	struct tdm_fabric *f =
		tdm_container_of(fid, struct tdm_fabric, fid.fid);

	if (__atomic_load_n(&f->users, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	tdm_closed_fabric(f);
	free(f->name);
	free(f);
	return 0;
}

static void child_closed(void *arg)
{
	struct tdm_fabric *f = arg;

	__atomic_fetch_sub(&f->users, 1, __ATOMIC_RELEASE);
}

static void import_closed(void *arg)
{
	struct lent_eq *lent = arg;
	struct tdm_fabric *f = lent->fabric;
	struct tdm_import_eq *eq = lent->eq;

	__atomic_compare_exchange_n(&f->lent_eq, &eq, NULL, 0, __ATOMIC_ACQ_REL,
				    __ATOMIC_ACQUIRE);
	free(lent);
	child_closed(f);
}

/* fi_eq_open(3) with FI_PEER: fi_peer(3), PEER EQ. */
static int fabric_import_eq(struct tdm_fabric *f, struct fid_eq **eq,
			    const void *context)
{
	struct lent_eq *lent = calloc(1, sizeof(*lent));
	int ret;

	if (!lent)
		return -FI_ENOMEM;
	lent->fabric = f;
	ret = tdm_import_eq_open(context, import_closed, lent, &lent->eq);
	if (ret) {
		free(lent);
		return ret;
	}
	__atomic_fetch_add(&f->users, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&f->lent_eq, lent->eq, __ATOMIC_RELEASE);
	*eq = tdm_import_eq_fid(lent->eq);
	return 0;
}

static int fabric_eq_open(struct fid_fabric *fid, struct fi_eq_attr *attr,
			  struct fid_eq **eq, void *context)
{
	struct tdm_fabric *f = fabric_from_fid(fid);
	struct tdm_eq *q;
	int ret;

	if (attr && attr->flags & FI_PEER)
		return fabric_import_eq(f, eq, context);
	ret = tdm_eq_open(attr, context, &q);
	if (ret)
		return ret;
	__atomic_fetch_add(&f->users, 1, __ATOMIC_RELAXED);
	tdm_eq_on_close(q, child_closed, f);
	*eq = tdm_eq_fid(q);
	return 0;
}

static int fabric_wait_open(struct fid_fabric *fid, struct fi_wait_attr *attr,
			    struct fid_wait **waitset)
{
	struct tdm_fabric *f = fabric_from_fid(fid);
	struct tdm_waitset *set = NULL;
	int ret = tdm_waitset_open(attr, &set);

	if (ret)
		return ret;
	__atomic_fetch_add(&f->users, 1, __ATOMIC_RELAXED);
	tdm_waitset_on_close(set, child_closed, f);
	*waitset = tdm_waitset_fid(set);
	return 0;
}

static int trywait_one(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return tdm_cq_trywait(tdm_cq_from_fid((struct fid_cq *)fid));
	case FI_CLASS_CNTR:
		return tdm_cntr_trywait(
			tdm_cntr_from_fid((struct fid_cntr *)fid));
	case FI_CLASS_EQ:
		if (tdm_import_eq_of(fid))
			return -FI_EINVAL;
		return tdm_eq_trywait(tdm_eq_from_fid((struct fid_eq *)fid));
	case FI_CLASS_WAIT:
		return tdm_waitset_trywait(
			tdm_waitset_from_fid((struct fid_wait *)fid));
	default:
		return -FI_EINVAL;
	}
}

static int fabric_trywait(struct fid_fabric *fid, struct fid **fids, int count)
{
	int i, ret;

	(void)fid;
	if (count < 0 || (count && !fids))
		return -FI_EINVAL;
	for (i = 0; i < count; i++) {
		ret = fids[i] ? trywait_one(fids[i]) : -FI_EINVAL;
		if (ret)
			return ret;
	}
	return 0;
}

static int fabric_domain(struct fid_fabric *fid, struct fi_info *info,
			 struct fid_domain **domain, void *context)
{
	return tdm_domain_open(fabric_from_fid(fid), info, domain, context);
}

/* With FI_PEER: fi_peer(3), PEER DOMAIN. */
static int fabric_domain2(struct fid_fabric *fid, struct fi_info *info,
			  struct fid_domain **domain, uint64_t flags,
			  void *context)
{
	struct tdm_fabric *f = fabric_from_fid(fid);

	if (flags == FI_PEER)
		return tdm_domain_import(f, info, domain, context);
	if (flags)
		return -FI_EINVAL;
	return tdm_domain_open(f, info, domain, context);
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(fabric_fid_ops),
	.close = fabric_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(fabric_ops),
	.domain = fabric_domain,
	.passive_ep = tdm_no_fabric_passive_ep,
	.eq_open = fabric_eq_open,
	.wait_open = fabric_wait_open,
	.trywait = fabric_trywait,
	.domain2 = fabric_domain2,
};

int tdm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context)
{
	const struct fi_provider *peer = tdm_tier_local_peer(attr->name);
	struct tdm_fabric *f;

	if (peer)
		return peer->fabric(attr, fabric, context);
	f = calloc(1, sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	f->name = attr->name ? strdup(attr->name) : NULL;
	if (attr->name && !f->name) {
		free(f);
		return -FI_ENOMEM;
	}
	f->fid.fid.fclass = FI_CLASS_FABRIC;
	f->fid.fid.context = context;
	f->fid.fid.ops = &fabric_fid_ops;
	f->fid.ops = &fabric_ops;
	/* The core sets it after we return; queues opened by us need it now. */
	f->fid.api_version = attr->api_version;
	tdm_opened_fabric(f);
	*fabric = &f->fid;
	return 0;
}
