/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of fi_msg(3) and fi_tagged(3) that send, except fi_inject() and its
 * like. The owner and the peer each include this in the file that has
 * their ops tables. That file defines these functions in front of the #include,
 * so that they are called directly:
 *
 *   default_flags(ep)    flags of a call that takes none, fi_endpoint(3)
 *                        op_flags; FI_COMPLETION if the call is to write an
 *                        entry
 *   message_flags(ep, op, given, &flags)
 *                        out: the flags of @op for a call that is given @given;
 *                        else an error
 *   post_send(ep, x)     check @x and start it
 *
 * Locking: none here; post_send() says which.
 */
#ifndef TDM_SEND_INC_H
#define TDM_SEND_INC_H

#include "tdm_xfer.h"

static tdm_always_inline ssize_t send_buf(struct fid_ep *ep, struct tdm_xfer *x,
					  const void *buf, size_t len)
{
	int ret = tdm_xfer_buffer(x, buf, len);

	return tdm_unlikely(ret) ? ret : post_send(ep, x);
}

static ssize_t send_vector(struct fid_ep *ep, struct tdm_xfer *x,
			   const struct iovec *iov, size_t count)
{
	int ret = tdm_xfer_vector(x, iov, count);

	return ret ? ret : post_send(ep, x);
}

/* ---- fi_msg(3) ----------------------------------------------------------- */

static ssize_t msg_send(struct fid_ep *ep, const void *buf, size_t len,
			void *desc, fi_addr_t dest, void *context)
{
	struct tdm_xfer x;

	tdm_xfer_init_send(&x, FI_MSG | FI_SEND | default_flags(ep), dest,
			   context);
	return send_buf(ep, &x, buf, len);
}

static ssize_t msg_sendv(struct fid_ep *ep, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t dest,
			 void *context)
{
	struct tdm_xfer x;

	tdm_xfer_init_send(&x, FI_MSG | FI_SEND | default_flags(ep), dest,
			   context);
	return send_vector(ep, &x, iov, count);
}

/*
 * Fill @x with the request of fi_sendmsg(3). @x then points to the vector of
 * @m.
 */
static tdm_always_inline int fill_sendmsg(struct fid_ep *ep,
					  const struct fi_msg *m,
					  uint64_t given, struct tdm_xfer *x)
{
	uint64_t flags;
	int ret = message_flags(ep, FI_MSG | FI_SEND, given, &flags);

	if (tdm_unlikely(ret))
		return ret;
	tdm_xfer_init_send(x, flags, m->addr, m->context);
	x->data = m->data;
	return tdm_xfer_vector(x, m->msg_iov, m->iov_count);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *m,
			   uint64_t flags)
{
	struct tdm_xfer x;
	int ret = fill_sendmsg(ep, m, flags, &x);

	return tdm_unlikely(ret) ? ret : post_send(ep, &x);
}

static ssize_t msg_senddata(struct fid_ep *ep, const void *buf, size_t len,
			    void *desc, uint64_t data, fi_addr_t dest,
			    void *context)
{
	const uint64_t op = FI_MSG | FI_SEND | FI_REMOTE_CQ_DATA;
	struct tdm_xfer x;

	tdm_xfer_init_send(&x, op | default_flags(ep), dest, context);
	x.data = data;
	return send_buf(ep, &x, buf, len);
}

/* ---- fi_tagged(3) -------------------------------------------------------- */

static ssize_t tagged_send(struct fid_ep *ep, const void *buf, size_t len,
			   void *desc, fi_addr_t dest, uint64_t tag,
			   void *context)
{
	struct tdm_xfer x;

	tdm_xfer_init_send(&x, FI_TAGGED | FI_SEND | default_flags(ep), dest,
			   context);
	x.tag = tag;
	return send_buf(ep, &x, buf, len);
}

static ssize_t tagged_sendv(struct fid_ep *ep, const struct iovec *iov,
			    void **desc, size_t count, fi_addr_t dest,
			    uint64_t tag, void *context)
{
	struct tdm_xfer x;

	tdm_xfer_init_send(&x, FI_TAGGED | FI_SEND | default_flags(ep), dest,
			   context);
	x.tag = tag;
	return send_vector(ep, &x, iov, count);
}

/*
 * Fill @x with the request of fi_tsendmsg(3). @x then points to the vector of
 * @m.
 */
static tdm_always_inline int fill_tsendmsg(struct fid_ep *ep,
					   const struct fi_msg_tagged *m,
					   uint64_t given, struct tdm_xfer *x)
{
	uint64_t flags;
	int ret = message_flags(ep, FI_TAGGED | FI_SEND, given, &flags);

	if (tdm_unlikely(ret))
		return ret;
	tdm_xfer_init_send(x, flags, m->addr, m->context);
	x->tag = m->tag;
	x->data = m->data;
	return tdm_xfer_vector(x, m->msg_iov, m->iov_count);
}

static ssize_t tagged_sendmsg(struct fid_ep *ep, const struct fi_msg_tagged *m,
			      uint64_t flags)
{
	struct tdm_xfer x;
	int ret = fill_tsendmsg(ep, m, flags, &x);

	return tdm_unlikely(ret) ? ret : post_send(ep, &x);
}

static ssize_t tagged_senddata(struct fid_ep *ep, const void *buf, size_t len,
			       void *desc, uint64_t data, fi_addr_t dest,
			       uint64_t tag, void *context)
{
	const uint64_t op = FI_TAGGED | FI_SEND | FI_REMOTE_CQ_DATA;
	struct tdm_xfer x;

	tdm_xfer_init_send(&x, op | default_flags(ep), dest, context);
	x.tag = tag;
	x.data = data;
	return send_buf(ep, &x, buf, len);
}

#endif /* TDM_SEND_INC_H */
