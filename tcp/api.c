/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of fi_msg(3), fi_tagged(3) and fi_rma(3). Each one checks what its
 * manual page tells it to check and fills a struct tdm_xfer. Those that send
 * are written once for owner and peer, in tdm_send.inc.h and tdm_rma.inc.h;
 * here is what the owner asks of them, its injects, and the receives.
 *
 * Locking: none is held. Spec: fi_msg(3), fi_tagged(3), fi_rma(3),
 * fi_endpoint(3) (op_flags), fi_cq(3) (selective completion).
 */
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "tcp/deferred.h"
#include "tcp/getinfo.h"
#include "tcp/check.h"
#include "tcp/post.h"
#include "tcp/route.h"
#include "tdm_ranges.h"

#define SEND_FLAGS                                                             \
	(FI_COMPLETION | FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE | TDM_LEVELS)
#define READ_FLAGS (FI_COMPLETION | FI_MORE | TDM_LEVELS)
/* Flags that change nothing in fi_inject(), whose buffer is free at return. */
#define INJECT_FLAGS                                                           \
	(FI_COMPLETION | FI_INJECT | FI_MORE | FI_INJECT_COMPLETE |            \
	 FI_TRANSMIT_COMPLETE)
#define RECV_FLAGS (FI_COMPLETION | FI_MULTI_RECV | FI_MORE | FI_AUTH_KEY)
#define TRECV_FLAGS                                                            \
	(FI_COMPLETION | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD |           \
	 FI_AUTH_KEY)

/* ---- sends and one-sided operations -------------------------------------- */

/* The checks of every send. They refuse FI_TRIGGER. */
static tdm_always_inline int
check_send(const struct tdm_ep *ep, const struct tdm_xfer *x, uint64_t flags)
{
	int ret = tdm_ep_admits(ep, x, flags);

	if (tdm_unlikely(ret))
		return ret;
	if ((x->flags & FI_INJECT) && x->len > ep->inject_bytes)
		return -FI_EMSGSIZE;
	return 0;
}

static tdm_always_inline ssize_t post_send(struct fid_ep *fid,
					   struct tdm_xfer *x)
{
	struct tdm_ep *ep = tdm_ep_from_fid(fid);
	int ret = check_send(ep, x, x->flags);

	return tdm_unlikely(ret) ? tdm_deferred_try(ep, x, ret, check_send) :
				   tdm_route_send(ep, x);
}

static ssize_t post_rma(struct fid_ep *fid, struct tdm_xfer *x)
{
	return post_send(fid, x);
}

static uint64_t default_flags(struct fid_ep *fid)
{
	return tdm_handle_from_fid(fid)->tx_op_flags;
}

static uint64_t inject_flags(struct fid_ep *fid)
{
	return (default_flags(fid) & ~(uint64_t)FI_COMPLETION) | FI_INJECT;
}

static tdm_always_inline int message_flags(struct fid_ep *fid, uint64_t op,
					   uint64_t given, uint64_t *flags)
{
	uint64_t allowed = op & FI_READ ? READ_FLAGS : SEND_FLAGS;
	int ret = tdm_ep_message_flags(tdm_ep_from_fid(fid), allowed, given,
				       flags);

	if (tdm_unlikely(ret))
		return ret;
	*flags |= op;
	return 0;
}

#include "tdm_rma.inc.h"
#include "tdm_send.inc.h"

int tdm_check_send(struct tdm_ep *ep, const struct fi_msg *m, uint64_t flags,
		   struct tdm_xfer *x)
{
	int ret = fill_sendmsg(&ep->own.fid, m, flags, x);

	return ret ? ret : check_send(ep, x, x->flags);
}

int tdm_check_tsend(struct tdm_ep *ep, const struct fi_msg_tagged *m,
		    uint64_t flags, struct tdm_xfer *x)
{
	int ret = fill_tsendmsg(&ep->own.fid, m, flags, x);

	return ret ? ret : check_send(ep, x, x->flags);
}

int tdm_check_rma(struct tdm_ep *ep, const struct fi_msg_rma *m, uint64_t op,
		  uint64_t flags, struct tdm_xfer *x)
{
	int ret = fill_rma(&ep->own.fid, m, op, flags, x);

	return ret ? ret : check_send(ep, x, x->flags);
}

/* ---- injects ------------------------------------------------------------- */

/*
 * The slow path of an inject: refuse or trigger it, or send it with more flags
 * than its call implies.
 */
static tdm_noinline ssize_t inject_other(struct fid_ep *fid, uint64_t op,
					 const void *buf, size_t len,
					 uint64_t data, fi_addr_t dest,
					 uint64_t tag)
{
	struct tdm_xfer x;

	tdm_xfer_init_send(&x, FI_SEND | op | inject_flags(fid), dest, NULL);
	x.tag = tag;
	x.data = data;
	return send_buf(fid, &x, buf, len);
}

/* fi_inject() and its like: @op has FI_MSG or FI_TAGGED, and what they add. */
static tdm_always_inline ssize_t inject(struct fid_ep *fid, uint64_t op,
					const void *buf, size_t len,
					uint64_t data, fi_addr_t dest,
					uint64_t tag)
{
	struct tdm_ep *ep = tdm_ep_from_fid(fid);

	if (tdm_unlikely(ep->enabled != TDM_EP_ON ||
			 !tdm_ep_plain(ep, FI_SEND | op) ||
			 len > ep->inject_bytes || (len && !buf) ||
			 default_flags(fid) & ~(uint64_t)INJECT_FLAGS))
		return inject_other(fid, op, buf, len, data, dest, tag);
	return tdm_route_inject(ep, FI_SEND | op | inject_flags(fid), buf, len,
				data, dest, tag);
}

static tdm_flatten ssize_t msg_inject(struct fid_ep *ep, const void *buf,
				      size_t len, fi_addr_t dest)
{
	return inject(ep, FI_MSG, buf, len, 0, dest, 0);
}

static tdm_flatten ssize_t msg_injectdata(struct fid_ep *ep, const void *buf,
					  size_t len, uint64_t data,
					  fi_addr_t dest)
{
	return inject(ep, FI_MSG | FI_REMOTE_CQ_DATA, buf, len, data, dest, 0);
}

static tdm_flatten ssize_t tagged_inject(struct fid_ep *ep, const void *buf,
					 size_t len, fi_addr_t dest,
					 uint64_t tag)
{
	return inject(ep, FI_TAGGED, buf, len, 0, dest, tag);
}

static tdm_flatten ssize_t tagged_injectdata(struct fid_ep *ep, const void *buf,
					     size_t len, uint64_t data,
					     fi_addr_t dest, uint64_t tag)
{
	return inject(ep, FI_TAGGED | FI_REMOTE_CQ_DATA, buf, len, data, dest,
		      tag);
}

/* ---- receives ------------------------------------------------------------ */

/*
 * Special flags: refused, or FI_EXACT_DIRECTED_RECV asks for more,
 * fi_getinfo(3): "FI_ADDR_UNSPEC is not allowed". A claim already has its
 * message.
 */
static tdm_noinline int check_exact(const struct tdm_ep *ep,
				    const struct tdm_xfer *x)
{
	if (!ep->exact || (x->flags & (FI_MSG | FI_TAGGED) & ~ep->info->caps))
		return -FI_EOPNOTSUPP;
	if ((x->flags & ep->exact) && x->addr == FI_ADDR_UNSPEC &&
	    !(x->flags & FI_CLAIM && !(x->flags & FI_PEEK)))
		return -FI_EINVAL;
	return 0;
}

static tdm_always_inline int
check_recv(const struct tdm_ep *ep, const struct tdm_xfer *x, uint64_t flags)
{
	if (tdm_unlikely(!ep->enabled))
		return -FI_EOPBADSTATE;
	if (tdm_unlikely(!tdm_ep_plain(ep, flags)))
		return check_exact(ep, x);
	return 0;
}

/*
 * A peek or claim cannot be triggered: it transfers no data, and a claim uses
 * the context itself.
 */
static tdm_noinline ssize_t post_triggered(struct tdm_ep *ep,
					   const struct tdm_xfer *x)
{
	int ret = check_recv(ep, x, x->flags & ~(uint64_t)FI_TRIGGER);

	if (ret)
		return ret;
	return x->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD) ?
		       -FI_EBADFLAGS :
		       tdm_deferred_post(ep, x);
}

static tdm_always_inline ssize_t post_xfer(struct tdm_ep *ep,
					   struct tdm_xfer *x)
{
	if (tdm_unlikely(!ep->enabled))
		return -FI_EOPBADSTATE;
	if (tdm_unlikely(!tdm_ep_plain(ep, x->flags))) {
		int ret = 0;

		if (x->flags & FI_TRIGGER)
			return post_triggered(ep, x);
		ret = check_exact(ep, x);
		if (ret)
			return ret;
	}
	return tdm_post_recv(ep, x);
}

/* Returns the default flags of receives of the kind of @x. */
static uint64_t rx_flags(struct fid_ep *fid, const struct tdm_xfer *x)
{
	const struct tdm_handle *h = tdm_handle_from_fid(fid);

	return x->flags & FI_TAGGED ? h->tagged_rx_op_flags : h->rx_op_flags;
}

static tdm_always_inline ssize_t recv_buf(struct fid_ep *fid,
					  struct tdm_xfer *x, void *buf,
					  size_t len)
{
	int ret = tdm_xfer_buffer(x, buf, len);

	if (tdm_unlikely(ret))
		return ret;
	x->flags |= rx_flags(fid, x);
	return post_xfer(tdm_ep_from_fid(fid), x);
}

static ssize_t recv_vector(struct fid_ep *fid, struct tdm_xfer *x,
			   const struct iovec *iov, size_t count)
{
	int ret = tdm_xfer_vector(x, iov, count);

	if (ret)
		return ret;
	x->flags |= rx_flags(fid, x);
	return post_xfer(tdm_ep_from_fid(fid), x);
}

static int fill_recv(struct tdm_ep *ep, struct tdm_xfer *x,
		     const struct iovec *iov, size_t count, uint64_t flags)
{
	int ret = tdm_xfer_vector(x, iov, count);

	x->flags |= flags | ep->rx_space;
	if (!ep->rx_selective)
		x->flags |= FI_COMPLETION;
	return ret;
}

static ssize_t msg_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src, void *context)
{
	struct tdm_xfer x;

	tdm_xfer_init(&x, FI_RECV | FI_MSG, src, context);
	return recv_buf(ep, &x, buf, len);
}

static ssize_t msg_recvv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 void *context)
{
	struct tdm_xfer x;

	tdm_xfer_init(&x, FI_RECV | FI_MSG, src, context);
	return recv_vector(ep, &x, iov, count);
}

static tdm_always_inline int fill_recvmsg(struct tdm_ep *ep,
					  const struct fi_msg *m,
					  uint64_t flags, struct tdm_xfer *x)
{
	uint64_t more = flags & ~(uint64_t)RECV_FLAGS;

	tdm_xfer_init(x, FI_RECV | FI_MSG, m->addr, m->context);
	if (tdm_unlikely(more) && !tdm_ep_has_flag(ep, more, 0, 0))
		return -FI_EBADFLAGS;
	return fill_recv(ep, x, m->msg_iov, m->iov_count, flags);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *m,
			   uint64_t flags)
{
	struct tdm_ep *ep = tdm_ep_from_fid(fid);
	struct tdm_xfer x;
	int ret = fill_recvmsg(ep, m, flags, &x);

	return ret ? ret : post_xfer(ep, &x);
}

int tdm_check_recv(struct tdm_ep *ep, const struct fi_msg *m, uint64_t flags,
		   struct tdm_xfer *x)
{
	int ret = fill_recvmsg(ep, m, flags, x);

	return ret ? ret : check_recv(ep, x, x->flags);
}

static ssize_t tagged_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
			   fi_addr_t src, uint64_t tag, uint64_t ignore,
			   void *context)
{
	struct tdm_xfer x;

	tdm_xfer_init(&x, FI_RECV | FI_TAGGED, src, context);
	x.tag = tag;
	x.ignore = ignore;
	return recv_buf(ep, &x, buf, len);
}

static ssize_t tagged_recvv(struct fid_ep *ep, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t src,
			    uint64_t tag, uint64_t ignore, void *context)
{
	struct tdm_xfer x;

	tdm_xfer_init(&x, FI_RECV | FI_TAGGED, src, context);
	x.tag = tag;
	x.ignore = ignore;
	return recv_vector(ep, &x, iov, count);
}

static tdm_always_inline int fill_trecvmsg(struct tdm_ep *ep,
					   const struct fi_msg_tagged *m,
					   uint64_t flags, struct tdm_xfer *x)
{
	uint64_t more = flags & ~(uint64_t)TRECV_FLAGS;

	tdm_xfer_init(x, FI_RECV | FI_TAGGED, m->addr, m->context);
	if (tdm_unlikely(more) &&
	    !tdm_ep_has_flag(ep, more, FI_MULTI_RECV, FI_TAGGED_MULTI_RECV))
		return -FI_EBADFLAGS;
	x->tag = m->tag;
	x->ignore = m->ignore;
	return fill_recv(ep, x, m->msg_iov, m->iov_count, flags);
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *m,
			      uint64_t flags)
{
	struct tdm_ep *ep = tdm_ep_from_fid(fid);
	struct tdm_xfer x;
	int ret = fill_trecvmsg(ep, m, flags, &x);

	return ret ? ret : post_xfer(ep, &x);
}

int tdm_check_trecv(struct tdm_ep *ep, const struct fi_msg_tagged *m,
		    uint64_t flags, struct tdm_xfer *x)
{
	int ret = fill_trecvmsg(ep, m, flags, x);

	return ret ? ret : check_recv(ep, x, x->flags);
}

/* ---- tables -------------------------------------------------------------- */

struct fi_ops_msg tdm_msg_ops = {
	.size = sizeof(tdm_msg_ops),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

struct fi_ops_tagged tdm_tagged_ops = {
	.size = sizeof(tdm_tagged_ops),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};

struct fi_ops_rma tdm_rma_ops = TDM_RMA_CALLS;
