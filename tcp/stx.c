/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared transmit contexts, fi_stx_context(3). No transmit queue is shared:
 * each endpoint has its own, with the attributes of the context. The object
 * only counts the endpoints bound to it. So an endpoint that was opened with
 * its own queue may be bound as well, even when it is enabled. Since no
 * operation uses the object, it may be closed before its endpoints: its memory
 * stays until the last of them closes.
 *
 * Lock: the domain's, taken in stx_close() and tdm_stx_open(), else held.
 */
#include "tcp/stx.h"

#include <stdbool.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "tcp/attr.h"
#include "tcp/ep_priv.h"
#include "tcp/getinfo.h"
#include "tcp/refuse.h"
#include "tdm_nosys.h"

/* The operations that attributes can grant one by one. */
#define KINDS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)

struct tdm_stx {
	struct fid_stx fid;
	struct tdm_domain *domain;
	struct fi_tx_attr attr; /* endpoints use a subset */
	size_t users;		/* endpoints bound */
	bool closed;		/* the last user frees it */
};

static void free_unused(struct tdm_stx *stx)
{
	if (stx->closed && !stx->users)
		free(stx);
}

static int stx_close(struct fid *fid)
{
	struct tdm_stx *stx = tdm_container_of(fid, struct tdm_stx, fid.fid);
	struct tdm_domain *d = stx->domain;

	tdm_lock_acquire(&d->lock);
	tdm_domain_put(d);
	stx->closed = true;
	free_unused(stx);
	tdm_lock_release(&d->lock);
	return 0;
}

void tdm_stx_put(struct tdm_stx *stx)
{
	stx->users--;
	free_unused(stx);
}

static struct fi_ops stx_fid_ops = {
	.size = sizeof(stx_fid_ops),
	.close = stx_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_ep stx_ep_ops = {
	.size = sizeof(stx_ep_ops),
	.cancel = tdm_no_ep_cancel,
	.getopt = tdm_no_ep_getopt,
	.setopt = tdm_no_ep_setopt,
	.tx_ctx = tdm_no_ep_tx_ctx,
	.rx_ctx = tdm_no_ep_rx_ctx,
	.rx_size_left = tdm_no_ep_size_left,
	.tx_size_left = tdm_no_ep_size_left,
};

int tdm_stx_open(struct fid_domain *fid, struct fi_tx_attr *attr,
		 struct fid_stx **out, void *context)
{
	struct tdm_domain *d = tdm_domain_from_fid(fid);
	struct tdm_stx *stx;
	int ret = tdm_tx_attr_check(attr);

	if (ret)
		return ret;
	stx = calloc(1, sizeof(*stx));
	if (!stx)
		return -FI_ENOMEM;
	stx->fid.fid.fclass = FI_CLASS_STX_CTX;
	stx->fid.fid.context = context;
	stx->fid.fid.ops = &stx_fid_ops;
	stx->fid.ops = &stx_ep_ops;
	stx->domain = d;
	stx->attr = attr ? *attr : *d->info->tx_attr;
	tdm_lock_acquire(&d->lock);
	tdm_domain_get(d);
	tdm_lock_release(&d->lock);
	*out = &stx->fid;
	return 0;
}

/*
 * Not 0 when @asked is above @given. 0 in an attribute of the context leaves it
 * open.
 */
static int above(size_t asked, size_t given)
{
	return given && asked > given;
}

/*
 * Not 0 when @a exceeds @s: fi_stx_context demands that endpoints use a subset
 * of the attributes.
 */
static int exceeds(const struct fi_tx_attr *a, const struct fi_tx_attr *s)
{
	return ((s->caps & KINDS) && (a->caps & ~s->caps & KINDS)) ||
	       above(a->inject_size, s->inject_size) ||
	       above(a->size, s->size) || above(a->iov_limit, s->iov_limit) ||
	       above(a->rma_iov_limit, s->rma_iov_limit);
}

int tdm_stx_bind(struct tdm_single *s, struct fid *fid)
{
	const struct tdm_ep *ep = &s->root.ep;
	struct tdm_stx *stx = tdm_container_of(fid, struct tdm_stx, fid.fid);

	if (fid->ops != &stx_fid_ops || s->stx)
		return tdm_refuse_call(-FI_EINVAL, "fi_ep_bind",
				       "a second shared transmit context");
	if (stx->domain != ep->domain)
		return tdm_refuse_call(-FI_EDOMAIN, "fi_ep_bind",
				       "a context of another domain");
	/* Any other endpoint has a queue of its own, of its own size. */
	if (ep->info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT &&
	    exceeds(ep->info->tx_attr, &stx->attr))
		return tdm_refuse_call(-FI_EINVAL, "fi_ep_bind",
				       "attributes above those of the shared "
				       "transmit context");
	s->stx = stx;
	stx->users++;
	return 0;
}
