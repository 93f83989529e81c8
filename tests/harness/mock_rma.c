/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory regions and one-sided counters of the mock owner: see mock_rma.h.
 */
#include "mock_rma.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "peer/amo.h"
#include "base/base.h"
#include "base/iov.h"
#include "tdm_rma.h"

struct tdt_region {
	struct tdt_region *next;
	struct iovec iov[2];
	size_t count;
	size_t len;
	uint64_t key;
	uint64_t access;
	int open;
};

struct rma_entry {
	struct fi_peer_rx_entry rx; /* first member */
	struct tdt_owner *owner;
	const struct tdt_region *region;
	struct iovec iov[2];
	void *desc[2];
};

static struct tdt_region *find(struct tdt_owner *o, uint64_t key)
{
	struct tdt_region *r;

	for (r = o->regions; r; r = r->next) {
		if (r->open && r->key == key)
			return r;
	}
	return NULL;
}

void tdt_region_add(struct tdt_owner *o, uint64_t key, void *buf, size_t len,
		    uint64_t access)
{
	struct tdt_region *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->iov[0].iov_base = buf;
	r->iov[0].iov_len = len;
	r->count = 1;
	r->len = len;
	r->key = key;
	r->access = access;
	r->open = 1;
	r->next = o->regions;
	o->regions = r;
}

void tdt_region_split(struct tdt_owner *o, uint64_t key, size_t at)
{
	struct tdt_region *r = find(o, key);

	r->iov[1].iov_base = (char *)r->iov[0].iov_base + at;
	r->iov[1].iov_len = r->len - at;
	r->iov[0].iov_len = at;
	r->count = 2;
}

void tdt_region_close(struct tdt_owner *o, uint64_t key)
{
	find(o, key)->open = 0;
}

static int rma_get(struct fid_domain *domain, struct fid_peer_srx *srx,
		   const struct tdm_rma_request *req,
		   struct fi_peer_rx_entry **out)
{
	struct tdt_owner *o =
		tdm_container_of(domain, struct tdt_owner, own_domain);
	struct tdt_region *r = find(o, req->key);
	struct rma_entry *e;

	if (o->refuse_entries > 0) {
		o->refuse_entries--;
		return -FI_ENOMEM;
	}
	if (!r || (r->access & req->access) != req->access ||
	    req->addr > r->len || req->len > r->len - req->addr)
		return -FI_EACCES;
	e = calloc(1, sizeof(*e));
	if (!e)
		abort();
	o->entries++;
	e->owner = o;
	e->region = r;
	e->rx.srx = srx;
	e->rx.addr = req->src;
	e->rx.msg_size = req->len;
	e->rx.cq_data = req->data;
	e->rx.flags = FI_RMA | req->access | req->flags;
	e->rx.iov = e->iov;
	e->rx.desc = e->desc;
	e->rx.count =
		tdm_iov_slice(e->iov, 2, r->iov, r->count, req->addr, req->len);
	*out = &e->rx;
	return 0;
}

static int rma_revoked(const struct fi_peer_rx_entry *rx)
{
	return !tdm_container_of(rx, struct rma_entry, rx)->region->open;
}

void tdt_rma_entry_free(struct fi_peer_rx_entry *rx)
{
	struct rma_entry *e = tdm_container_of(rx, struct rma_entry, rx);

	e->owner->entries--;
	memset(e, 0xdb, sizeof(*e));
	free(e);
}

static int rma_atomic(struct fid_domain *domain, struct fid_peer_srx *srx,
		      const struct tdm_rma_atomic *a,
		      struct fi_peer_rx_entry *out)
{
	struct tdm_rma_request req = a->rma;
	struct fi_peer_rx_entry *rx;
	int ret = tdm_amo_admit(&a->amo, req.len);

	req.access = tdm_amo_access(&a->amo);
	if (!ret)
		ret = rma_get(domain, srx, &req, &rx);
	if (ret)
		return ret;
	tdm_amo_run_on(&a->amo, rx->iov, rx->count, a->operands, a->result);
	memset(out, 0, sizeof(*out));
	out->srx = srx;
	out->addr = rx->addr;
	out->flags = rx->flags;
	tdt_rma_entry_free(rx);
	return 0;
}

int tdt_query_atomic(struct fid_domain *domain, enum fi_datatype type,
		     enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
{
	unsigned kind = flags & FI_FETCH_ATOMIC	  ? TDM_AMO_FETCH :
			flags & FI_COMPARE_ATOMIC ? TDM_AMO_COMPARE :
						    TDM_AMO_BASE;
	int ret = tdm_amo_check(kind, type, op);

	if (ret)
		return ret;
	attr->size = tdm_amo_size(type);
	attr->count = tdm_amo_most(kind, type, TDM_AMO_BYTES);
	return 0;
}

static struct tdm_rma_ops rma_ops = {
	.size = sizeof(rma_ops),
	.get = rma_get,
	.revoked = rma_revoked,
	.atomic = rma_atomic,
};

int tdt_rma_ops_open(struct fid *fid, const char *name, uint64_t flags,
		     void **ops, void *context)
{
	struct tdt_owner *o =
		tdm_container_of(fid, struct tdt_owner, own_domain.fid);

	if (strcmp(name, TDM_RMA_OPS) || flags)
		return -FI_ENOSYS;
	o->rma_opens++;
	*ops = &rma_ops;
	return 0;
}

/* ---- counters ------------------------------------------------------------ */

static void count(struct fid_peer_cntr *c, int err)
{
	struct tdt_rma_cntr *r = tdm_container_of(c, struct tdt_rma_cntr, fid);

	*(err ? &r->errs : &r->value) += 1;
}

static void rma_inc(struct fid_peer_cntr *c)
{
	count(c, 0);
}

static void rma_incerr(struct fid_peer_cntr *c)
{
	count(c, 1);
}

static struct fi_ops_cntr_owner rma_cntr_ops = {
	.size = sizeof(rma_cntr_ops),
	.inc = rma_inc,
	.incerr = rma_incerr,
};

void tdt_rma_init(struct tdt_owner *o)
{
	int i;

	for (i = 0; i < 4; i++) {
		o->rma[i].fid.fid.fclass = FI_CLASS_PEER_CNTR;
		o->rma[i].fid.owner_ops = &rma_cntr_ops;
	}
}

int tdt_rma_open(struct tdt_owner *o)
{
	struct fi_cntr_attr attr = { .flags = FI_PEER };
	int i, ret = 0;

	for (i = 0; i < 4 && !ret; i++) {
		struct fi_peer_cntr_context ctx = { sizeof(ctx),
						    &o->rma[i].fid };

		ret = fi_cntr_open(o->domain, &attr, &o->rma[i].local, &ctx);
	}
	return ret;
}

int tdt_rma_bind(struct tdt_owner *o)
{
	static const uint64_t flags[] = { FI_READ, FI_WRITE, FI_REMOTE_READ,
					  FI_REMOTE_WRITE };
	int i, ret = 0;

	for (i = 0; i < 4 && !ret; i++)
		ret = fi_ep_bind(o->ep, &o->rma[i].local->fid, flags[i]);
	return ret;
}

void tdt_rma_free(struct tdt_owner *o)
{
	while (o->regions) {
		struct tdt_region *r = o->regions;

		o->regions = r->next;
		free(r);
	}
}
