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
 *  2. After fi_close of a region no byte of it is read or written: transports
 *     ask revoked() before each access, under the domain lock.
 *  3. Range checks compare before they add, so that no sum overflows.
 *  4. Atomic operations exclude each other in the whole process: domains with
 *     the same name must be atomic with each other, fi_atomic(3), but each has
 *     its own lock.
 *  5. An entry in flight refers to the region's counter only while the region
 *     is open: the counter may be closed right after the region.
 *
 * Lock: the domain's, taken in the calls of struct fi_ops_mr; inside of it
 * that of atomic operations.
 */
#include "tcp/mr.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/os.h"
#include "peer/amo.h"
#include "tcp/domain.h"
#include "tcp/mr_auth.h"
#include "tdm_nosys.h"
#include "tdm_rma.h"
#include "tdm_xfer.h"

struct tdm_mr {
	struct fid_mr fid;
	struct tdm_domain *domain;
	struct tdm_cntr *cntr; /* counts remote writes, or NULL; G: domain */
	struct tdm_list uses;  /* struct use in flight; G: domain */
	uint64_t access;       /* FI_SEND, FI_RECV, FI_REMOTE_WRITE, ... */
	/* who may use the region; NULL: all peers of an endpoint */
	struct tdm_mr_auth *auth;
	/*
	 * address of the first byte for initiators: 0, or virtual with
	 * FI_MR_BASIC
	 */
	uint64_t base;
	size_t len; /* bytes, sum over iov */
	size_t count;
	struct iovec iov[TDM_IOV_LIMIT];
};

struct rma_entry;

/* The reference to a region that an operation in flight holds. */
struct use {
	struct tdm_list node; /* mr->uses; unlinked once revoked */
	struct rma_entry *entry;
	struct tdm_mr *mr; /* the region, while it is open */
};

/* One operation of a remote initiator on a region. */
struct rma_entry {
	struct fi_peer_rx_entry peer;
	struct use use;
	size_t others; /* with others: in struct rma_several */
	int revoked;
	void (*closing)(struct fi_peer_rx_entry *entry); /* or NULL */
	struct iovec iov[TDM_IOV_LIMIT];
};

/* An operation on several ranges. */
struct rma_several {
	struct rma_entry first;
	struct use other[TDM_RMA_IOV_LIMIT - 1];
	struct fid_peer_cntr all; /* increments the counters of all regions */
	struct iovec iov[TDM_RMA_IOV_LIMIT * TDM_IOV_LIMIT];
};

/* A range that was found in a region and may be accessed. */
struct place {
	struct tdm_mr *mr;
	uint64_t offset, len; /* bytes */
};

/* The peer.desc of all entries: host memory is not described to transports. */
static void *no_desc[TDM_RMA_IOV_LIMIT * TDM_IOV_LIMIT];

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

static void mr_free(struct tdm_mr *mr)
{
	tdm_mr_auth_free(mr->auth);
	free(mr);
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
		e = tdm_list_entry(pos, struct use, node)->entry;
		if (e->closing) {
			e->closing(&e->peer);
			continue;
		}
		e->revoked = 1;
		e->peer.owner_context = NULL;
	}
	if (mr->cntr)
		tdm_cntr_put(mr->cntr);
	tdm_domain_put(d);
	tdm_lock_release(&d->lock);
	mr_free(mr);
	return 0;
}

/* Bind a counter. It does not count operations that are already in flight. */
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

/*
 * Not 0 with FI_MR_BASIC of API 1.4: virtual addresses, and keys that the
 * provider chooses.
 */
static int is_basic(const struct tdm_domain *d)
{
	return d->info->domain_attr->mr_mode == 1;
}

/*
 * Draw a key that is new to @d and cannot be guessed: any peer that reaches an
 * endpoint of @d and knows the key may use the region.
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
 * Check that the sum of the lengths does not overflow, and that each of several
 * segments has memory. The address of a single segment is not checked: a region
 * of all memory has address 0 and length SIZE_MAX. Out: *@len.
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

	/*
	 * FI_RMA_EVENT announces that a counter will be bound; the region is
	 * the same.
	 */
	if (flags & ~(FI_RMA_EVENT | (tdm_domain_av_keys(d) ? FI_AUTH_KEY : 0)))
		return -FI_EBADFLAGS;
	if (!attr || !attr->iov_count || attr->iov_count > TDM_IOV_LIMIT ||
	    !attr->mr_iov || attr->iface != FI_HMEM_SYSTEM || attr->offset)
		return -FI_EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	ret = check_segments(attr->mr_iov, attr->iov_count, &mr->len);
	if (!ret)
		ret = tdm_mr_auth_open(d, attr, flags, &mr->auth);
	if (ret) {
		mr_free(mr);
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
		mr_free(mr);
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
 * Check that @req, which arrived through @srx, may access @len bytes at @addr
 * of the region @key: region and endpoint must grant the right, and the region
 * must be for the initiator. Out: *@p. Errors: -FI_EACCES.
 */
static int find_place(struct tdm_domain *d, const struct fid_peer_srx *srx,
		      const struct tdm_rma_request *req,
		      const struct fi_rma_iov *range, struct place *p)
{
	struct tdm_mr *mr = find_key(d, range->key);

	if (!mr || (mr->access & req->access) != req->access ||
	    (req->access & tdm_srx_refused(srx)) || range->addr < mr->base ||
	    (mr->auth && !tdm_mr_auth_ok(mr->auth, req)))
		return -FI_EACCES;
	p->mr = mr;
	p->offset = range->addr - mr->base;
	p->len = range->len;
	if (p->offset > mr->len || p->len > mr->len - p->offset)
		return -FI_EACCES;
	return 0;
}

/*
 * As find_place(), for all ranges of @req; out[TDM_RMA_IOV_LIMIT]. Returns how
 * many there are, or -FI_EACCES.
 */
static int find_places(struct tdm_domain *d, const struct fid_peer_srx *srx,
		       const struct tdm_rma_request *req, struct place *out)
{
	struct fi_rma_iov first = { req->addr, req->len, req->key };
	size_t i;

	for (i = 0; i < req->more_count; i++) {
		if (req->more[i].len > first.len ||
		    find_place(d, srx, req, &req->more[i], &out[i + 1]))
			return -FI_EACCES;
		first.len -= req->more[i].len;
	}
	if (find_place(d, srx, req, &first, out))
		return -FI_EACCES;
	return (int)req->more_count + 1;
}

/*
 * Append the memory of @p to the @count elements of iov[@most]. Returns the new
 * count.
 */
static size_t add_memory(struct iovec *iov, size_t count, size_t most,
			 const struct place *p)
{
	return count + tdm_iov_slice(iov + count, most - count, p->mr->iov,
				     p->mr->count, p->offset, (size_t)p->len);
}

/* Not 0 when @p is the first of place[] in its region. */
static int is_new(const struct place *place, const struct place *p)
{
	while (place < p && place->mr != p->mr)
		place++;
	return place == p;
}

/* Count a write at each region. */
static void count_all(const struct place *place, int n)
{
	struct fid_peer_cntr *cntr;
	int i;

	for (i = 0; i < n; i++) {
		if (!place[i].mr->cntr || !is_new(place, &place[i]))
			continue;
		cntr = tdm_cntr_export(place[i].mr->cntr, TDM_TRANSPORT_TCP);
		cntr->owner_ops->inc(cntr);
	}
}

static void several_inc(struct fid_peer_cntr *cntr)
{
	struct rma_several *s = tdm_container_of(cntr, struct rma_several, all);
	struct place place[TDM_RMA_IOV_LIMIT] = { { s->first.use.mr, 0, 0 } };
	size_t i;

	for (i = 0; i < s->first.others; i++)
		place[i + 1].mr = s->other[i].mr;
	count_all(place, (int)s->first.others + 1);
}

/* A write that fails is not counted at the target. */
static void several_incerr(struct fid_peer_cntr *cntr)
{
	(void)cntr;
}

static struct fi_ops_cntr_owner several_ops = {
	.size = sizeof(several_ops),
	.inc = several_inc,
	.incerr = several_incerr,
};

static void begin_use(struct use *use, struct rma_entry *e, struct tdm_mr *mr)
{
	use->entry = e;
	use->mr = mr;
	tdm_list_append(&mr->uses, &use->node);
}

/* Fill in the members that all entries have; memory and counter come later. */
static void fill_entry(struct fi_peer_rx_entry *entry, struct fid_peer_srx *srx,
		       const struct tdm_rma_request *req)
{
	entry->srx = srx;
	entry->addr = tdm_srx_id(srx, req->src);
	entry->msg_size = req->len;
	entry->cq_data = req->data;
	entry->flags = FI_RMA | req->access | req->flags;
}

static tdm_noinline int get_several(struct tdm_domain *d,
				    struct fid_peer_srx *srx,
				    const struct tdm_rma_request *req,
				    struct fi_peer_rx_entry **entry)
{
	struct place place[TDM_RMA_IOV_LIMIT];
	int n = find_places(d, srx, req, place), i;
	struct rma_several *s;
	struct rma_entry *e;

	if (n < 0)
		return n;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -FI_ENOMEM;
	e = &s->first;
	fill_entry(&e->peer, srx, req);
	e->others = (size_t)n - 1;
	e->peer.desc = no_desc;
	e->peer.iov = s->iov;
	for (i = 0; i < n; i++) {
		begin_use(i ? &s->other[i - 1] : &e->use, e, place[i].mr);
		e->peer.count = add_memory(s->iov, e->peer.count,
					   TDM_ARRAY_LEN(s->iov), &place[i]);
	}
	s->all.owner_ops = &several_ops;
	if (req->access & FI_REMOTE_WRITE)
		e->peer.owner_context = &s->all;
	*entry = &e->peer;
	return 0;
}

static int rma_get(struct fid_domain *fid, struct fid_peer_srx *srx,
		   const struct tdm_rma_request *req,
		   struct fi_peer_rx_entry **entry)
{
	struct fi_rma_iov range = { req->addr, req->len, req->key };
	struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct rma_entry *e;
	struct place p;

	if (tdm_unlikely(req->more_count))
		return get_several(d, srx, req, entry);
	if (find_place(d, srx, req, &range, &p))
		return -FI_EACCES;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -FI_ENOMEM;
	fill_entry(&e->peer, srx, req);
	if (p.mr->cntr && (req->access & FI_REMOTE_WRITE))
		e->peer.owner_context =
			tdm_cntr_export(p.mr->cntr, TDM_TRANSPORT_TCP);
	e->peer.desc = no_desc;
	e->peer.iov = e->iov;
	e->peer.count = add_memory(e->iov, 0, TDM_IOV_LIMIT, &p);
	begin_use(&e->use, e, p.mr);
	*entry = &e->peer;
	return 0;
}

static int rma_revoked(const struct fi_peer_rx_entry *entry)
{
	return tdm_container_of(entry, struct rma_entry, peer)->revoked;
}

static void rma_watch(struct fi_peer_rx_entry *entry,
		      void (*closing)(struct fi_peer_rx_entry *entry))
{
	tdm_container_of(entry, struct rma_entry, peer)->closing = closing;
}

void tdm_mr_entry_free(struct fi_peer_rx_entry *entry)
{
	struct rma_entry *e = tdm_container_of(entry, struct rma_entry, peer);
	size_t i;

	tdm_list_del(&e->use.node);
	for (i = 0; i < e->others; i++)
		tdm_list_del(&tdm_container_of(e, struct rma_several, first)
				      ->other[i]
				      .node);
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
	struct iovec iov[TDM_RMA_IOV_LIMIT * TDM_IOV_LIMIT];
	struct place place[TDM_RMA_IOV_LIMIT];
	struct tdm_rma_request req = a->rma;
	int ret = tdm_amo_admit(&a->amo, req.len), n, i;
	size_t count = 0;

	if (ret)
		return ret;
	req.access = tdm_amo_access(&a->amo);
	n = find_places(tdm_domain_from_fid(fid), srx, &req, place);
	if (n < 0)
		return n;
	for (i = 0; i < n; i++)
		count = add_memory(iov, count, TDM_ARRAY_LEN(iov), &place[i]);
	pthread_mutex_lock(&actor);
	tdm_amo_run_on(&a->amo, iov, count, a->operands, a->result);
	pthread_mutex_unlock(&actor);
	memset(entry, 0, sizeof(*entry));
	fill_entry(entry, srx, &req);
	if (req.access & FI_REMOTE_WRITE)
		count_all(place, n);
	return 0;
}

static struct tdm_rma_ops rma_ops = {
	.size = sizeof(rma_ops),
	.get = rma_get,
	.revoked = rma_revoked,
	.atomic = rma_atomic,
	.watch = rma_watch,
};

int tdm_mr_ops_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context)
{
	struct tdm_domain *d =
		tdm_container_of(fid, struct tdm_domain, fid.fid);

	(void)context;
	if (!name || !ops || flags)
		return -FI_EINVAL;
	if (strcmp(name, TDM_RMA_OPS))
		return -FI_ENOSYS;
	*ops = d->lent ? &d->lent_rma : &rma_ops;
	return 0;
}

struct fi_ops_mr tdm_mr_ops = {
	.size = sizeof(tdm_mr_ops),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
