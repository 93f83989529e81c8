/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions, fi_mr(3), and their use by the transports when this process
 * is the target of one-sided operations (include/tdm_rma.h).
 *
 * Host memory needs no registration to be sent from or received into: a
 * region is a key, its address ranges and its access rights, and the
 * descriptor is the region itself.
 *
 * Invariants:
 *  1. Keys of the live regions of a domain are distinct.
 *  2. After fi_close of a region no byte of it is touched: transports ask
 *     revoked() before each access, under the domain lock.
 *  3. Range checks never add before they compare.
 *  4. Atomic operations exclude each other in the whole process: domains with
 *     one name are one actor, fi_atomic(3), and each has a lock of its own.
 *  5. An entry in flight names the region's counter only while the region
 *     stands: it may be closed right after the region.
 *
 * Lock: the domain's, taken in the calls of struct fi_ops_mr; inside of it
 * that of atomic operations.
 */
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "peer/amo.h"
#include "tcp/domain.h"
#include "tdm_nosys.h"
#include "base/os.h"
#include "tdm_rma.h"
#include "tdm_xfer.h"

struct tdm_mr {
	struct fid_mr fid;
	struct tdm_domain *domain;
	struct tdm_cntr *cntr; /* counts remote writes, or NULL; G: domain */
	struct tdm_list uses;  /* struct rma_entry in flight; G: domain */
	uint64_t access;       /* FI_SEND, FI_RECV, FI_REMOTE_WRITE, ... */
	uint64_t base;	       /* address of the first byte, as initiators
				 name it: 0, or virtual with FI_MR_BASIC */
	size_t len;	       /* bytes, sum over iov */
	size_t count;
	struct iovec iov[TDM_IOV_LIMIT];
};

/* One operation of a remote initiator on a region. */
struct rma_entry {
	struct fi_peer_rx_entry peer;
	struct tdm_list node; /* mr->uses; unlinked once revoked */
	int revoked;
	struct iovec iov[TDM_IOV_LIMIT];
};

/* Host memory is not described to transports: peer.desc of all entries. */
static void *no_desc[TDM_IOV_LIMIT];

static int compare_key(const void *a, const void *b)
{
	uint64_t x = ((const struct tdm_mr *)a)->fid.key;
	uint64_t y = ((const struct tdm_mr *)b)->fid.key;

	return x < y ? -1 : x > y;
}

static struct tdm_mr *find_key(struct tdm_domain *d, uint64_t key)
{
	struct tdm_mr want = { .fid.key = key };
	void *node = tfind(&want, &d->mr_tree, compare_key);

	return node ? *(struct tdm_mr **)node : NULL;
}

static int mr_close(struct fid *fid)
{
	struct tdm_mr *mr = tdm_container_of(fid, struct tdm_mr, fid.fid);
	struct tdm_domain *d = mr->domain;
	struct rma_entry *e;
	struct tdm_list *pos;

	tdm_lock_acquire(&d->lock);
	tdelete(mr, &d->mr_tree, compare_key);
	while ((pos = tdm_list_pop(&mr->uses))) {
		e = tdm_list_entry(pos, struct rma_entry, node);
		e->revoked = 1;
		e->peer.owner_context = NULL;
	}
	if (mr->cntr)
		tdm_cntr_put(mr->cntr);
	tdm_domain_put(d);
	tdm_lock_release(&d->lock);
	free(mr);
	return 0;
}

/* Operations that are in flight already are not counted. */
static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct tdm_mr *mr = tdm_container_of(fid, struct tdm_mr, fid.fid);
	struct tdm_domain *d = mr->domain;
	int ret = 0;

	if (!bfid)
		return -FI_EINVAL;
	if (bfid->fclass != FI_CLASS_CNTR)
		return -FI_ENOSYS;
	if (flags != FI_REMOTE_WRITE)
		return -FI_EBADFLAGS;
	tdm_lock_acquire(&d->lock);
	if (mr->cntr) {
		ret = -FI_EINVAL;
	} else {
		mr->cntr = tdm_cntr_from_fid((struct fid_cntr *)bfid);
		tdm_cntr_get(mr->cntr);
	}
	tdm_lock_release(&d->lock);
	return ret;
}

/* fi_mr_enable(): regions are enabled from the start. */
static int mr_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(mr_fid_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

/* FI_MR_BASIC of API 1.4: virtual addresses, keys chosen here. */
static int is_basic(const struct tdm_domain *d)
{
	return d->info->domain_attr->mr_mode == 1;
}

/*
 * A key that is new to @d and that nobody can guess: whoever reaches an endpoint
 * of @d and knows the key may use the region.
 */
static int draw_key(struct tdm_domain *d, struct tdm_mr *mr)
{
	int ret;

	do
		ret = tdm_os_random(&mr->fid.key, sizeof(mr->fid.key));
	while (!ret &&
	       (mr->fid.key == FI_KEY_NOTAVAIL || find_key(d, mr->fid.key)));
	return ret;
}

/* Give @mr its key and put it into the domain's tree. Lock: held. */
static int insert_key(struct tdm_domain *d, struct tdm_mr *mr)
{
	if (is_basic(d)) {
		int ret = draw_key(d, mr);

		if (ret)
			return ret;
		mr->base = (uintptr_t)mr->iov[0].iov_base;
	} else if (find_key(d, mr->fid.key)) {
		return -FI_ENOKEY;
	}
	if (!tsearch(mr, &d->mr_tree, compare_key))
		return -FI_ENOMEM;
	tdm_domain_get(d);
	return 0;
}

/*
 * All the lengths together are a length, and what is made of several segments
 * has memory for each. Of a single one the address is not judged: whoever wants
 * all memory to be a region says 0 and SIZE_MAX. Out: *@len.
 */
static int check_segments(const struct iovec *iov, size_t count, size_t *len)
{
	size_t i;

	for (i = 0; count > 1 && i < count; i++) {
		if (iov[i].iov_len && !iov[i].iov_base)
			return -FI_EINVAL;
	}
	return tdm_iov_total(iov, count, len) ? -FI_EINVAL : 0;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
		      uint64_t flags, struct fid_mr **out)
{
	struct tdm_domain *d =
		tdm_container_of(fid, struct tdm_domain, fid.fid);
	struct tdm_mr *mr;
	int ret;

	/* That a counter will be bound changes nothing for the region. */
	if (flags & ~(uint64_t)FI_RMA_EVENT)
		return -FI_EBADFLAGS;
	if (!attr || !attr->iov_count || attr->iov_count > TDM_IOV_LIMIT ||
	    !attr->mr_iov || attr->iface != FI_HMEM_SYSTEM || attr->offset)
		return -FI_EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	ret = check_segments(attr->mr_iov, attr->iov_count, &mr->len);
	if (ret) {
		free(mr);
		return ret;
	}
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &mr_fid_ops;
	mr->fid.mem_desc = mr;
	mr->fid.key = attr->requested_key;
	mr->domain = d;
	mr->access = attr->access;
	mr->count = attr->iov_count;
	tdm_list_init(&mr->uses);
	memcpy(mr->iov, attr->mr_iov, attr->iov_count * sizeof(mr->iov[0]));
	tdm_lock_acquire(&d->lock);
	ret = insert_key(d, mr);
	tdm_lock_release(&d->lock);
	if (ret)
		free(mr);
	else
		*out = &mr->fid;
	return ret;
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

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		  uint64_t offset, uint64_t requested_key, uint64_t flags,
		  struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr,
		       context);
}

/*
 * May @req, which came by @srx, touch @mr? The region and the endpoint must
 * have the right. Out: *@offset of its first byte in the region.
 */
static int check_request(const struct fid_peer_srx *srx,
			 const struct tdm_mr *mr,
			 const struct tdm_rma_request *req, uint64_t *offset)
{
	if (!mr || (mr->access & req->access) != req->access ||
	    (req->access & tdm_srx_refused(srx)) || req->addr < mr->base)
		return -FI_EACCES;
	*offset = req->addr - mr->base;
	if (*offset > mr->len || req->len > mr->len - *offset)
		return -FI_EACCES;
	return 0;
}

static int rma_get(struct fid_domain *fid, struct fid_peer_srx *srx,
		   const struct tdm_rma_request *req,
		   struct fi_peer_rx_entry **entry)
{
	struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct tdm_mr *mr = find_key(d, req->key);
	struct rma_entry *e;
	uint64_t offset;
	int ret = check_request(srx, mr, req, &offset);

	if (ret)
		return ret;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -FI_ENOMEM;
	e->peer.srx = srx;
	e->peer.addr = tdm_srx_id(srx, req->src);
	e->peer.msg_size = req->len;
	e->peer.cq_data = req->data;
	e->peer.flags = FI_RMA | req->access | req->flags;
	if (mr->cntr && (req->access & FI_REMOTE_WRITE))
		e->peer.owner_context =
			tdm_cntr_export(mr->cntr, TDM_TRANSPORT_TCP);
	e->peer.desc = no_desc;
	e->peer.iov = e->iov;
	e->peer.count = tdm_iov_slice(e->iov, TDM_IOV_LIMIT, mr->iov, mr->count,
				      offset, req->len);
	tdm_list_append(&mr->uses, &e->node);
	*entry = &e->peer;
	return 0;
}

static int rma_revoked(const struct fi_peer_rx_entry *entry)
{
	return tdm_container_of(entry, struct rma_entry, peer)->revoked;
}

void tdm_mr_entry_free(struct fi_peer_rx_entry *entry)
{
	struct rma_entry *e = tdm_container_of(entry, struct rma_entry, peer);

	tdm_list_del(&e->node);
	free(e);
}

static pthread_mutex_t actor = PTHREAD_MUTEX_INITIALIZER;

void tdm_mr_freeze(void)
{
	pthread_mutex_lock(&actor);
}

void tdm_mr_thaw(void)
{
	pthread_mutex_unlock(&actor);
}

static int rma_atomic(struct fid_domain *fid, struct fid_peer_srx *srx,
		      const struct tdm_rma_atomic *a,
		      struct fi_peer_rx_entry *entry)
{
	struct tdm_rma_request req = a->rma;
	struct tdm_mr *mr = find_key(tdm_domain_from_fid(fid), req.key);
	struct iovec iov[TDM_IOV_LIMIT];
	uint64_t offset;
	size_t count;
	int ret = tdm_amo_admit(&a->amo, req.len);

	req.access = tdm_amo_access(&a->amo);
	if (!ret)
		ret = check_request(srx, mr, &req, &offset);
	if (ret)
		return ret;
	count = tdm_iov_slice(iov, TDM_IOV_LIMIT, mr->iov, mr->count, offset,
			      req.len);
	pthread_mutex_lock(&actor);
	tdm_amo_run_on(&a->amo, iov, count, a->operands, a->result);
	pthread_mutex_unlock(&actor);
	memset(entry, 0, sizeof(*entry));
	entry->srx = srx;
	entry->addr = tdm_srx_id(srx, req.src);
	entry->msg_size = req.len;
	entry->flags = FI_RMA | req.access;
	if (mr->cntr && (req.access & FI_REMOTE_WRITE))
		entry->owner_context =
			tdm_cntr_export(mr->cntr, TDM_TRANSPORT_TCP);
	return 0;
}

static struct tdm_rma_ops rma_ops = {
	.size = sizeof(rma_ops),
	.get = rma_get,
	.revoked = rma_revoked,
	.atomic = rma_atomic,
};

int tdm_mr_ops_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context)
{
	(void)fid;
	(void)context;
	if (!name || !ops || flags)
		return -FI_EINVAL;
	if (strcmp(name, TDM_RMA_OPS))
		return -FI_ENOSYS;
	*ops = &rma_ops;
	return 0;
}

struct fi_ops_mr tdm_mr_ops = {
	.size = sizeof(tdm_mr_ops),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
