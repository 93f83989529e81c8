/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer's domain: opens the importing objects. Memory registration and
 * queries about atomics are passed to the imported domain of the owner, if there
 * is one.
 *
 * Locking: domain lock held. Spec: fi_peer(3) PEER DOMAIN, fi_domain(3).
 */
#include "shm/domain.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include "shm/adapter.h"
#include "shm/av.h"
#include "shm/ep.h"
#include "tdm_nosys.h"
#include "tdm_open.h"
#include "tdm_rma.h"

static struct tdm_shm_domain *from_fid(struct fid *fid)
{
	return tdm_container_of(fid, struct tdm_shm_domain, fid.fid);
}

struct tdm_rma_ops *tdm_shm_domain_rma(struct tdm_shm_domain *domain)
{
	struct tdm_rma_ops *ops;

	if (domain->owner && !domain->rma) {
		ops = tdm_open_ops(&domain->owner->fid, TDM_RMA_OPS);
		if (ops && ops->size >= sizeof(*ops))
			domain->rma = ops;
	}
	return domain->rma;
}

static int domain_close(struct fid *fid)
{
	struct tdm_shm_domain *domain = from_fid(fid);
	int i;

	if (domain->refs)
		return -FI_EBUSY;
	for (i = 0; i < TDM_SHM_UNEXP_POOLS; i++)
		tdm_pool_fini(&domain->unexp[i]);
	tdm_pool_fini(&domain->adapted);
	domain->fabric->refs--;
	free(domain);
	return 0;
}

static int domain_mr_reg(struct fid *fid, const void *buf, size_t len,
			 uint64_t access, uint64_t offset,
			 uint64_t requested_key, uint64_t flags,
			 struct fid_mr **mr, void *context)
{
	struct fid_domain *owner = from_fid(fid)->owner;

	if (!owner)
		return -FI_ENOSYS;
	return owner->mr->reg(&owner->fid, buf, len, access, offset,
			      requested_key, flags, mr, context);
}

static int domain_mr_regv(struct fid *fid, const struct iovec *iov,
			  size_t count, uint64_t access, uint64_t offset,
			  uint64_t requested_key, uint64_t flags,
			  struct fid_mr **mr, void *context)
{
	struct fid_domain *owner = from_fid(fid)->owner;

	if (!owner)
		return -FI_ENOSYS;
	return owner->mr->regv(&owner->fid, iov, count, access, offset,
			       requested_key, flags, mr, context);
}

static int domain_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			     uint64_t flags, struct fid_mr **mr)
{
	struct fid_domain *owner = from_fid(fid)->owner;

	if (!owner)
		return -FI_ENOSYS;
	return owner->mr->regattr(&owner->fid, attr, flags, mr);
}

static int domain_query_atomic(struct fid_domain *fid,
			       enum fi_datatype datatype, enum fi_op op,
			       struct fi_atomic_attr *attr, uint64_t flags)
{
	struct fid_domain *owner = from_fid(&fid->fid)->owner;

	return owner ? fi_query_atomic(owner, datatype, op, attr, flags) :
		       -FI_ENOSYS;
}

static int domain_query_collective(struct fid_domain *fid,
				   enum fi_collective_op coll,
				   struct fi_collective_attr *attr,
				   uint64_t flags)
{
	struct fid_domain *owner = from_fid(&fid->fid)->owner;

	return owner ? owner->ops->query_collective(owner, coll, attr, flags) :
		       -FI_ENOSYS;
}

static int domain_endpoint2(struct fid_domain *fid, struct fi_info *info,
			    struct fid_ep **ep, uint64_t flags, void *context)
{
	return tdm_shm_ep_open(fid, info, ep, context);
}

static struct fi_ops domain_fi_ops = {
	.size = sizeof(domain_fi_ops),
	.close = domain_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(domain_ops),
	.av_open = tdm_shm_av_open,
	.cq_open = tdm_shm_cq_open,
	.endpoint = tdm_shm_ep_open,
	.scalable_ep = tdm_no_domain_scalable_ep,
	.cntr_open = tdm_shm_cntr_open,
	.poll_open = tdm_no_domain_poll_open,
	.stx_ctx = tdm_no_domain_stx_ctx,
	.srx_ctx = tdm_shm_srx_open,
	.query_atomic = domain_query_atomic,
	.query_collective = domain_query_collective,
	.endpoint2 = domain_endpoint2,
};

static struct fi_ops_mr domain_mr_ops = {
	.size = sizeof(domain_mr_ops),
	.reg = domain_mr_reg,
	.regv = domain_mr_regv,
	.regattr = domain_mr_regattr,
};

int tdm_shm_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			struct fid_domain **out, uint64_t flags, void *context)
{
	struct fid_domain *owner =
		flags & FI_PEER ? tdm_shm_import_domain(context) : NULL;
	static const uint16_t payload[TDM_SHM_UNEXP_POOLS] = {
		TDM_SHM_BODY_BYTES, 1024, 4096
	};
	struct tdm_shm_domain *domain;
	int i;

	if (flags & ~(uint64_t)FI_PEER || (flags & FI_PEER && !owner))
		return -FI_EINVAL;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->owner = owner;
	if (info && info->domain_attr) {
		domain->max_group = info->domain_attr->max_group_id;
		domain->spaces = domain->max_group ||
				 info->domain_attr->auth_key_size ==
					 FI_AV_AUTH_KEY;
	}
	domain->fabric = tdm_container_of(fabric, struct tdm_shm_fabric, fid);
	domain->fabric->refs++;
	for (i = 0; i < TDM_SHM_UNEXP_POOLS; i++) {
		domain->unexp_bytes[i] = payload[i];
		tdm_pool_init(&domain->unexp[i],
			      sizeof(struct tdm_shm_unexp) + payload[i], 0);
	}
	tdm_pool_init(&domain->adapted, tdm_shm_adapter_entry_bytes(), 0);
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	if (!owner)
		domain->fid.fid.context = context;
	domain->fid.fid.ops = &domain_fi_ops;
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &domain_mr_ops;
	*out = &domain->fid;
	return 0;
}
