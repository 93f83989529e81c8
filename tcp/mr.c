/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions, fi_mr(3). Host memory needs no registration to be sent from
 * or received into, so a region is a key, its address ranges and its access
 * rights; the descriptor is the region itself.
 *
 * Invariant: keys of the live regions of a domain are distinct.
 * Lock: the domain's, taken here.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "tcp/domain.h"
#include "tdm_nosys.h"
#include "tdm_xfer.h"

struct tdm_mr {
	struct fid_mr fid;
	struct tdm_domain *domain;
	struct tdm_list node; /* domain->mrs; G: domain */
	uint64_t access;      /* FI_SEND, FI_RECV, FI_REMOTE_WRITE, ... */
	size_t count;
	struct iovec iov[TDM_IOV_LIMIT];
};

static int mr_close(struct fid *fid)
{
	struct tdm_mr *mr = tdm_container_of(fid, struct tdm_mr, fid.fid);

	tdm_lock_acquire(&mr->domain->lock);
	tdm_list_del(&mr->node);
	tdm_lock_release(&mr->domain->lock);
	free(mr);
	return 0;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(mr_fid_ops),
	.close = mr_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct tdm_mr *find_key(struct tdm_domain *d, uint64_t key)
{
	struct tdm_list *pos;

	tdm_list_for_each (pos, &d->mrs) {
		struct tdm_mr *mr = tdm_list_entry(pos, struct tdm_mr, node);

		if (mr->fid.key == key)
			return mr;
	}
	return NULL;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
		      uint64_t flags, struct fid_mr **out)
{
	struct tdm_domain *d =
		tdm_container_of(fid, struct tdm_domain, fid.fid);
	struct tdm_mr *mr;

	if (flags)
		return -FI_EBADFLAGS;
	if (!attr || !attr->iov_count || attr->iov_count > TDM_IOV_LIMIT ||
	    !attr->mr_iov || attr->iface != FI_HMEM_SYSTEM)
		return -FI_EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &mr_fid_ops;
	mr->fid.mem_desc = mr;
	mr->fid.key = attr->requested_key;
	mr->domain = d;
	mr->access = attr->access;
	mr->count = attr->iov_count;
	memcpy(mr->iov, attr->mr_iov, attr->iov_count * sizeof(mr->iov[0]));
	tdm_lock_acquire(&d->lock);
	if (find_key(d, mr->fid.key)) {
		tdm_lock_release(&d->lock);
		free(mr);
		return -FI_ENOKEY;
	}
	tdm_list_append(&d->mrs, &mr->node);
	tdm_lock_release(&d->lock);
	*out = &mr->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
		   uint64_t access, uint64_t offset, uint64_t requested_key,
		   uint64_t flags, struct fid_mr **mr, void *context)
{
	struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};

	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len,
		  uint64_t access, uint64_t offset, uint64_t requested_key,
		  uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr,
		       context);
}

struct fi_ops_mr tdm_mr_ops = {
	.size = sizeof(tdm_mr_ops),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
