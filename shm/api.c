/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_msg(3), fi_tagged(3) and fi_rma(3) of the peer's endpoint: each call
 * becomes one struct tdm_xfer. Receives are posted to the owner's SRX, never here.
 *
 * Locking: domain lock held.
 */
#include <rdma/fi_errno.h>

#include "shm/rma.h"
#include "tdm_nosys.h"
#include "tdm_ranges.h"

/* fi_endpoint(3): op_flags hold for calls without flags of their own. */
static uint64_t default_flags(struct fid_ep *fid)
{
	const struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(fid);

	return ep->tx_flags | ep->tx_comp;
}

static ssize_t send_buf(struct fid_ep *fid, struct tdm_xfer *x, const void *buf,
			size_t len)
{
	if (len && !buf)
		return -FI_EINVAL;
	tdm_xfer_buf(x, buf, len);
	return tdm_shm_tx_send(tdm_shm_ep_from_fid(fid), x);
}

/* Most vectors have one element, which the owner has already checked. */
static ssize_t send_iov(struct fid_ep *fid, struct tdm_xfer *x,
			const struct iovec *iov, size_t count)
{
	int ret;

	if (tdm_likely(count == 1 && iov && iov->iov_base)) {
		x->len = iov->iov_len;
		x->iov = iov;
		x->count = count;
	} else {
		ret = tdm_xfer_vector(x, iov, count);
		if (ret)
			return ret;
	}
	return tdm_shm_tx_send(tdm_shm_ep_from_fid(fid), x);
}

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len,
			void *desc, fi_addr_t addr, void *context)
{
	struct tdm_xfer x;

	x.flags = FI_MSG | FI_SEND | default_flags(ep);
	x.addr = addr;
	x.tag = 0;
	x.context = context;
	return send_buf(ep, &x, buf, len);
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t addr,
			 void *context)
{
	struct tdm_xfer x;

	x.flags = FI_MSG | FI_SEND | default_flags(ep);
	x.addr = addr;
	x.tag = 0;
	x.context = context;
	return send_iov(ep, &x, iov, count);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			   uint64_t flags)
{
	struct tdm_xfer x;

	x.flags = FI_MSG | FI_SEND | flags | tdm_shm_ep_from_fid(ep)->tx_comp;
	x.addr = msg->addr;
	x.tag = 0;
	x.data = msg->data;
	x.context = msg->context;
	return send_iov(ep, &x, msg->msg_iov, msg->iov_count);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len,
			    void *desc, uint64_t data, fi_addr_t addr,
			    void *context)
{
	struct tdm_xfer x;

	x.flags = FI_MSG | FI_SEND | FI_REMOTE_CQ_DATA | default_flags(ep);
	x.addr = addr;
	x.tag = 0;
	x.data = data;
	x.context = context;
	return send_buf(ep, &x, buf, len);
}

static ssize_t msg_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			      uint64_t data, fi_addr_t addr)
{
	struct tdm_xfer x;

	x.flags = FI_MSG | FI_SEND | FI_INJECT | FI_REMOTE_CQ_DATA;
	x.addr = addr;
	x.tag = 0;
	x.data = data;
	x.context = NULL;
	return send_buf(ep, &x, buf, len);
}

static ssize_t tagged_send(struct fid_ep *ep, const void *buf, size_t len,
			   void *desc, fi_addr_t addr, uint64_t tag,
			   void *context)
{
	struct tdm_xfer x;

	x.flags = FI_TAGGED | FI_SEND | default_flags(ep);
	x.addr = addr;
	x.tag = tag;
	x.context = context;
	return send_buf(ep, &x, buf, len);
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t addr,
			    uint64_t tag, void *context)
{
	struct tdm_xfer x;

	x.flags = FI_TAGGED | FI_SEND | default_flags(ep);
	x.addr = addr;
	x.tag = tag;
	x.context = context;
	return send_iov(ep, &x, iov, count);
}

static ssize_t tagged_sendmsg(struct fid_ep *ep,
			      const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct tdm_xfer x;

	x.flags = FI_TAGGED | FI_SEND | flags |
		  tdm_shm_ep_from_fid(ep)->tx_comp;
	x.addr = msg->addr;
	x.tag = msg->tag;
	x.data = msg->data;
	x.context = msg->context;
	return send_iov(ep, &x, msg->msg_iov, msg->iov_count);
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buf, size_t len,
			       void *desc, uint64_t data, fi_addr_t addr,
			       uint64_t tag, void *context)
{
	struct tdm_xfer x;

	x.flags = FI_TAGGED | FI_SEND | FI_REMOTE_CQ_DATA | default_flags(ep);
	x.addr = addr;
	x.tag = tag;
	x.data = data;
	x.context = context;
	return send_buf(ep, &x, buf, len);
}

static ssize_t tagged_injectdata(struct fid_ep *ep, const void *buf, size_t len,
				 uint64_t data, fi_addr_t addr, uint64_t tag)
{
	struct tdm_xfer x;

	x.flags = FI_TAGGED | FI_SEND | FI_INJECT | FI_REMOTE_CQ_DATA;
	x.addr = addr;
	x.tag = tag;
	x.data = data;
	x.context = NULL;
	return send_buf(ep, &x, buf, len);
}

/* ---- one-sided ------------------------------------------------------------ */

struct where {
	fi_addr_t peer;
	uint64_t addr; /* at the target */
	uint64_t key;
};

static struct tdm_xfer one_sided(uint64_t flags, struct where w, void *context)
{
	struct tdm_xfer x = {
		.flags = FI_RMA | flags,
		.addr = w.peer,
		.rma_addr = w.addr,
		.rma_key = w.key,
		.context = context,
	};

	return x;
}

static ssize_t rma_buf(struct fid_ep *fid, struct tdm_xfer *x, const void *buf,
		       size_t len)
{
	if (len && !buf)
		return -FI_EINVAL;
	tdm_xfer_buf(x, buf, len);
	return tdm_shm_rma_send(tdm_shm_ep_from_fid(fid), x);
}

static ssize_t rma_iov(struct fid_ep *fid, struct tdm_xfer *x,
		       const struct iovec *iov, size_t count)
{
	int ret = tdm_xfer_vector(x, iov, count);

	return ret ? ret : tdm_shm_rma_send(tdm_shm_ep_from_fid(fid), x);
}

static ssize_t rma_msg(struct fid_ep *fid, const struct fi_msg_rma *m,
		       uint64_t flags)
{
	struct tdm_xfer x;
	int ret;

	x = one_sided(flags | tdm_shm_ep_from_fid(fid)->tx_comp,
		      (struct where){ .peer = m->addr }, m->context);
	x.data = m->data;
	ret = tdm_xfer_vector(&x, m->msg_iov, m->iov_count);
	if (!ret)
		ret = tdm_xfer_ranges(&x, m->rma_iov, m->rma_iov_count);
	return ret ? ret : tdm_shm_rma_send(tdm_shm_ep_from_fid(fid), &x);
}

/* The default flag FI_INJECT is for writes only: a read has no payload. */
static uint64_t read_flags(struct fid_ep *fid)
{
	return FI_READ | (default_flags(fid) & ~(uint64_t)FI_INJECT);
}

static ssize_t rma_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
			fi_addr_t src, uint64_t addr, uint64_t key,
			void *context)
{
	struct tdm_xfer x = one_sided(
		read_flags(ep), (struct where){ src, addr, key }, context);

	return rma_buf(ep, &x, buf, len);
}

static ssize_t rma_readv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 uint64_t addr, uint64_t key, void *context)
{
	struct tdm_xfer x = one_sided(
		read_flags(ep), (struct where){ src, addr, key }, context);

	return rma_iov(ep, &x, iov, count);
}

static ssize_t rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *m,
			   uint64_t flags)
{
	return rma_msg(ep, m, FI_READ | flags);
}

static ssize_t rma_write(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, fi_addr_t dest, uint64_t addr,
			 uint64_t key, void *context)
{
	struct tdm_xfer x = one_sided(FI_WRITE | default_flags(ep),
				      (struct where){ dest, addr, key },
				      context);

	return rma_buf(ep, &x, buf, len);
}

static ssize_t rma_writev(struct fid_ep *ep, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  uint64_t addr, uint64_t key, void *context)
{
	struct tdm_xfer x = one_sided(FI_WRITE | default_flags(ep),
				      (struct where){ dest, addr, key },
				      context);

	return rma_iov(ep, &x, iov, count);
}

static ssize_t rma_writemsg(struct fid_ep *ep, const struct fi_msg_rma *m,
			    uint64_t flags)
{
	return rma_msg(ep, m, FI_WRITE | flags);
}

static ssize_t rma_inject(struct fid_ep *ep, const void *buf, size_t len,
			  fi_addr_t dest, uint64_t addr, uint64_t key)
{
	struct tdm_xfer x = one_sided(FI_WRITE | FI_INJECT,
				      (struct where){ dest, addr, key }, NULL);

	return rma_buf(ep, &x, buf, len);
}

static ssize_t rma_writedata(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest,
			     uint64_t addr, uint64_t key, void *context)
{
	struct tdm_xfer x =
		one_sided(FI_WRITE | FI_REMOTE_CQ_DATA | default_flags(ep),
			  (struct where){ dest, addr, key }, context);

	x.data = data;
	return rma_buf(ep, &x, buf, len);
}

static ssize_t rma_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			      uint64_t data, fi_addr_t dest, uint64_t addr,
			      uint64_t key)
{
	struct tdm_xfer x = one_sided(FI_WRITE | FI_INJECT | FI_REMOTE_CQ_DATA,
				      (struct where){ dest, addr, key }, NULL);

	x.data = data;
	return rma_buf(ep, &x, buf, len);
}

struct fi_ops_msg tdm_shm_msg_ops = {
	.size = sizeof(tdm_shm_msg_ops),
	.recv = tdm_no_msg_recv,
	.recvv = tdm_no_msg_recvv,
	.recvmsg = tdm_no_msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = tdm_shm_tx_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

struct fi_ops_tagged tdm_shm_tagged_ops = {
	.size = sizeof(tdm_shm_tagged_ops),
	.recv = tdm_no_tagged_recv,
	.recvv = tdm_no_tagged_recvv,
	.recvmsg = tdm_no_tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tdm_shm_tx_tinject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};

struct fi_ops_rma tdm_shm_rma_ops = {
	.size = sizeof(tdm_shm_rma_ops),
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
