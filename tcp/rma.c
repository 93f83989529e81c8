/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of fi_rma(3): each fills a struct tdm_xfer, which is sent like a
 * message.
 *
 * No lock is held here.
 */
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "tcp/deferred.h"
#include "tcp/getinfo.h"
#include "tcp/check.h"
#include "tcp/route.h"
#include "tdm_ranges.h"

#define WRITE_FLAGS                                                            \
	(FI_COMPLETION | FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE | TDM_LEVELS)
#define READ_FLAGS (FI_COMPLETION | FI_MORE | TDM_LEVELS)

struct where {
	fi_addr_t peer;
	uint64_t addr; /* at the target */
	uint64_t key;
};

static struct tdm_xfer request(uint64_t flags, struct where w, void *context)
{
	struct tdm_xfer x;

	tdm_xfer_init(&x, FI_RMA | flags, w.peer, context);
	x.rma_addr = w.addr;
	x.rma_key = w.key;
	return x;
}

static int check(const struct tdm_ep *ep, const struct tdm_xfer *x,
		 uint64_t flags)
{
	int ret = tdm_ep_admits(ep, x, flags);

	if (tdm_unlikely(ret))
		return ret;
	if (x->len > TDM_MAX_MSG_BYTES ||
	    ((x->flags & FI_INJECT) && x->len > ep->inject_bytes))
		return -FI_EMSGSIZE;
	return 0;
}

static ssize_t start(struct fid_ep *fid, struct tdm_xfer *x)
{
	struct tdm_ep *ep = tdm_ep_from_fid(fid);
	int ret = check(ep, x, x->flags);

	return tdm_unlikely(ret) ? tdm_deferred_try(ep, x, ret, check) :
				   tdm_route_send(ep, x);
}

static ssize_t start_buf(struct fid_ep *fid, struct tdm_xfer *x,
			 const void *buf, size_t len)
{
	if (len && !buf)
		return -FI_EINVAL;
	tdm_xfer_buf(x, buf, len);
	return start(fid, x);
}

static ssize_t start_vector(struct fid_ep *fid, struct tdm_xfer *x,
			    const struct iovec *iov, size_t count)
{
	int ret = tdm_xfer_vector(x, iov, count);

	return ret ? ret : start(fid, x);
}

/* fi_writemsg and fi_readmsg, @op: @flags replace the default ones. */
static int fill_message(const struct tdm_ep *ep, const struct fi_msg_rma *m,
			uint64_t op, uint64_t flags, struct tdm_xfer *x)
{
	const uint64_t allowed = op == FI_READ ? READ_FLAGS : WRITE_FLAGS;
	int ret;

	if ((flags & ~allowed) &&
	    !tdm_ep_has_flag(ep, flags & ~allowed, FI_FENCE, FI_FENCE))
		return -FI_EBADFLAGS;
	*x = request(op | flags | (ep->tx_selective ? 0 : FI_COMPLETION),
		     (struct where){ .peer = m->addr }, m->context);
	x->data = m->data;
	ret = tdm_xfer_vector(x, m->msg_iov, m->iov_count);
	return ret ? ret : tdm_xfer_ranges(x, m->rma_iov, m->rma_iov_count);
}

static ssize_t start_message(struct fid_ep *fid, const struct fi_msg_rma *m,
			     uint64_t op, uint64_t flags)
{
	struct tdm_xfer x;
	int ret = fill_message(tdm_ep_from_fid(fid), m, op, flags, &x);

	return ret ? ret : start(fid, &x);
}

int tdm_check_rma(struct tdm_ep *ep, const struct fi_msg_rma *m, uint64_t op,
		  uint64_t flags, struct tdm_xfer *x)
{
	int ret = fill_message(ep, m, op, flags, x);

	return ret ? ret : check(ep, x, x->flags);
}

static uint64_t op_flags(struct fid_ep *fid)
{
	return tdm_ep_from_fid(fid)->tx_op_flags;
}

static uint64_t inject_flags(struct fid_ep *fid)
{
	return (op_flags(fid) & ~(uint64_t)FI_COMPLETION) | FI_INJECT;
}

/* The default flag FI_INJECT is for writes only: a read has no payload. */
static uint64_t read_flags(struct fid_ep *fid)
{
	return op_flags(fid) & ~(uint64_t)FI_INJECT;
}

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src, uint64_t addr, uint64_t key,
			void *context)
{
	struct tdm_xfer x = request(FI_READ | read_flags(ep),
				    (struct where){ src, addr, key }, context);

	return start_buf(ep, &x, buf, len);
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 uint64_t addr, uint64_t key, void *context)
{
	struct tdm_xfer x = request(FI_READ | read_flags(ep),
				    (struct where){ src, addr, key }, context);

	return start_vector(ep, &x, iov, count);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *m,
			   uint64_t flags)
{
	return start_message(ep, m, FI_READ, flags);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest, uint64_t addr,
			 uint64_t key, void *context)
{
	struct tdm_xfer x = request(FI_WRITE | op_flags(ep),
				    (struct where){ dest, addr, key }, context);

	return start_buf(ep, &x, buf, len);
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  uint64_t addr, uint64_t key, void *context)
{
	struct tdm_xfer x = request(FI_WRITE | op_flags(ep),
				    (struct where){ dest, addr, key }, context);

	return start_vector(ep, &x, iov, count);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *m,
			    uint64_t flags)
{
	return start_message(ep, m, FI_WRITE, flags);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t dest, uint64_t addr, uint64_t key)
{
	struct tdm_xfer x = request(FI_WRITE | inject_flags(ep),
				    (struct where){ dest, addr, key }, NULL);

	return start_buf(ep, &x, buf, len);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest,
			     uint64_t addr, uint64_t key, void *context)
{
	struct tdm_xfer x = request(FI_WRITE | FI_REMOTE_CQ_DATA | op_flags(ep),
				    (struct where){ dest, addr, key }, context);

	x.data = data;
	return start_buf(ep, &x, buf, len);
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t addr,
			      uint64_t key)
{
	struct tdm_xfer x =
		request(FI_WRITE | FI_REMOTE_CQ_DATA | inject_flags(ep),
			(struct where){ dest, addr, key }, NULL);

	x.data = data;
	return start_buf(ep, &x, buf, len);
}

struct fi_ops_rma tdm_rma_ops = {
	.size = sizeof(tdm_rma_ops),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
