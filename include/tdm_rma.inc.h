/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of fi_rma(3). The owner and the peer each include this in the file
 * that has their ops tables. That file defines, in front of the #include,
 * default_flags() and message_flags() (see tdm_send.inc.h), and
 *
 *   inject_flags(ep)   as default_flags(), for fi_inject_write(3) and its like
 *   post_rma(ep, x)    check @x and start it
 *
 * Locking: none here; post_rma() says which.
 */
#ifndef TDM_RMA_INC_H
#define TDM_RMA_INC_H

#include "tdm_ranges.h"

/* A place at the target. */
struct place {
	fi_addr_t peer;
	uint64_t addr;
	uint64_t key;
};

static void rma_init(struct tdm_xfer *x, uint64_t flags, struct place at,
		     void *context)
{
	tdm_xfer_init_send(x, FI_RMA | flags, at.peer, context);
	x->rma_addr = at.addr;
	x->rma_key = at.key;
}

static ssize_t rma_buf(struct fid_ep *ep, struct tdm_xfer *x, const void *buf,
		       size_t len)
{
	int ret = tdm_xfer_buffer(x, buf, len);

	return ret ? ret : post_rma(ep, x);
}

static ssize_t rma_vector(struct fid_ep *ep, struct tdm_xfer *x,
			  const struct iovec *iov, size_t count)
{
	int ret = tdm_xfer_vector(x, iov, count);

	return ret ? ret : post_rma(ep, x);
}

/*
 * Fill @x with the request of fi_readmsg(3) or fi_writemsg(3); @op is FI_READ
 * or FI_WRITE. @x then points to the vectors of @m.
 */
static int fill_rma(struct fid_ep *ep, const struct fi_msg_rma *m, uint64_t op,
		    uint64_t given, struct tdm_xfer *x)
{
	uint64_t flags;
	int ret = message_flags(ep, op, given, &flags);

	if (ret)
		return ret;
	rma_init(x, flags, (struct place){ .peer = m->addr }, m->context);
	x->data = m->data;
	ret = tdm_xfer_vector(x, m->msg_iov, m->iov_count);
	return ret ? ret : tdm_xfer_ranges(x, m->rma_iov, m->rma_iov_count);
}

static ssize_t rma_message(struct fid_ep *ep, const struct fi_msg_rma *m,
			   uint64_t op, uint64_t given)
{
	struct tdm_xfer x;
	int ret = fill_rma(ep, m, op, given, &x);

	return ret ? ret : post_rma(ep, &x);
}

/*
 * Returns the flags of a read that takes none. The default flag FI_INJECT is
 * for writes only: a read has no payload.
 */
static uint64_t read_flags(struct fid_ep *ep)
{
	return FI_READ | (default_flags(ep) & ~(uint64_t)FI_INJECT);
}

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src, uint64_t addr, uint64_t key,
			void *context)
{
	struct tdm_xfer x;

	rma_init(&x, read_flags(ep), (struct place){ src, addr, key }, context);
	return rma_buf(ep, &x, buf, len);
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 uint64_t addr, uint64_t key, void *context)
{
	struct tdm_xfer x;

	rma_init(&x, read_flags(ep), (struct place){ src, addr, key }, context);
	return rma_vector(ep, &x, iov, count);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *m,
			   uint64_t flags)
{
	return rma_message(ep, m, FI_READ, flags);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest, uint64_t addr,
			 uint64_t key, void *context)
{
	struct tdm_xfer x;

	rma_init(&x, FI_WRITE | default_flags(ep),
		 (struct place){ dest, addr, key }, context);
	return rma_buf(ep, &x, buf, len);
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  uint64_t addr, uint64_t key, void *context)
{
	struct tdm_xfer x;

	rma_init(&x, FI_WRITE | default_flags(ep),
		 (struct place){ dest, addr, key }, context);
	return rma_vector(ep, &x, iov, count);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *m,
			    uint64_t flags)
{
	return rma_message(ep, m, FI_WRITE, flags);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t dest, uint64_t addr, uint64_t key)
{
	struct tdm_xfer x;

	rma_init(&x, FI_WRITE | inject_flags(ep),
		 (struct place){ dest, addr, key }, NULL);
	return rma_buf(ep, &x, buf, len);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest,
			     uint64_t addr, uint64_t key, void *context)
{
	struct tdm_xfer x;

	rma_init(&x, FI_WRITE | FI_REMOTE_CQ_DATA | default_flags(ep),
		 (struct place){ dest, addr, key }, context);
	x.data = data;
	return rma_buf(ep, &x, buf, len);
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t addr,
			      uint64_t key)
{
	struct tdm_xfer x;

	rma_init(&x, FI_WRITE | FI_REMOTE_CQ_DATA | inject_flags(ep),
		 (struct place){ dest, addr, key }, NULL);
	x.data = data;
	return rma_buf(ep, &x, buf, len);
}

/* The table of the calls, for the owner and for the peer. */
#define TDM_RMA_CALLS                                                          \
	{                                                                      \
		.size = sizeof(struct fi_ops_rma),                             \
		.read = rma_read,                                              \
		.readv = rma_readv,                                            \
		.readmsg = rma_readmsg,                                        \
		.write = rma_write,                                            \
		.writev = rma_writev,                                          \
		.writemsg = rma_writemsg,                                      \
		.inject = rma_inject,                                          \
		.writedata = rma_writedata,                                    \
		.injectdata = rma_injectdata,                                  \
	}

#endif /* TDM_RMA_INC_H */
