/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sends that an owner passes to the peer provider of the kit; see peer.h.
 *
 * Lock: none; see peer.h.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "kit/peer_priv.h"
#include "kit/rule.h"

/* ---- sending -------------------------------------------------------------- */

static void end_send(const struct kit_peer_ep *ep, void *context,
		     uint64_t flags)
{
	struct fid_peer_cq *cq = ep->tx->lent;
	struct fid_peer_cntr *cntr = ep->tx_cntr ? ep->tx_cntr->lent : NULL;
	struct fi_cq_err_entry err = { .op_context = context,
				       .flags = FI_SEND | flags,
				       .err = kit_peer_do.fail_send,
				       .prov_errno = kit_peer_do.fail_send };

	if (kit_peer_do.fail_send) {
		if (cntr)
			cntr->owner_ops->incerr(cntr);
		cq->owner_ops->writeerr(cq, &err);
		return;
	}
	if (cntr)
		cntr->owner_ops->inc(cntr);
	if (flags & FI_COMPLETION)
		cq->owner_ops->write(cq, context,
				     FI_SEND | (flags & (FI_MSG | FI_TAGGED)),
				     0, NULL, 0, 0, FI_ADDR_NOTAVAIL);
}

static struct kit_peer_msg *copy_of(const struct fi_msg_tagged *msg)
{
	struct kit_peer_msg *m;
	size_t i, len = 0;

	for (i = 0; i < msg->iov_count; i++)
		len += msg->msg_iov[i].iov_len;
	m = calloc(1, sizeof(*m) + len);
	if (!m)
		abort();
	for (i = 0; i < msg->iov_count; i++) {
		if (msg->msg_iov[i].iov_len)
			memcpy(m->bytes + m->len, msg->msg_iov[i].iov_base,
			       msg->msg_iov[i].iov_len);
		m->len += msg->msg_iov[i].iov_len;
	}
	m->tag = msg->tag;
	m->data = msg->data;
	return m;
}

static ssize_t post(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		    uint64_t flags)
{
	struct kit_peer_ep *ep = (struct kit_peer_ep *)fid, *to;
	struct kit_peer_msg *m;

	kit_step("a send by the owner");
	if (fid->fid.fclass != FI_CLASS_EP || !ep->enabled) {
		kit_peer_fault(KIT_ON_LAST, "a send at an endpoint that is "
					    "not open");
		return -FI_EOPBADSTATE;
	}
	if (msg->addr >= ep->av->count) {
		kit_peer_fault(KIT_ON_ADDR,
			       "a send to the address %#llx, which "
			       "fi_av_insert has not returned",
			       (unsigned long long)msg->addr);
		return -FI_EINVAL;
	}
	if (kit_peer_do.busy && kit_peer_do.busy--)
		return -FI_EAGAIN;
	for (to = kit_peer_eps; to; to = to->next) {
		if (to->name == ep->av->name[msg->addr])
			break;
	}
	if (!to)
		return -FI_EHOSTUNREACH;
	m = copy_of(msg);
	m->from = ep->name;
	m->flags = flags & (FI_REMOTE_CQ_DATA | FI_MSG | FI_TAGGED);
	kit_peer_seen.sends++;
	if (!kit_peer_do.fail_send)
		kit_peer_arrive(to, m);
	end_send(ep, msg->context, flags);
	return 0;
}

/* Flags of a call that has none: those of the endpoint. */
static uint64_t defaults(const struct fid_ep *fid)
{
	const struct kit_peer_ep *ep = (const struct kit_peer_ep *)fid;

	return ep->op_flags |
	       (ep->tx_flags & FI_SELECTIVE_COMPLETION ? 0 : FI_COMPLETION);
}

static ssize_t tag_sendv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t addr,
			 uint64_t tag, void *context)
{
	const struct fi_msg_tagged m = { .msg_iov = iov,
					 .iov_count = count,
					 .addr = addr,
					 .tag = tag,
					 .context = context };

	return post(fid, &m, defaults(fid) | FI_TAGGED);
}

static ssize_t tag_send(struct fid_ep *fid, const void *buf, size_t len,
			void *desc, fi_addr_t addr, uint64_t tag, void *context)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };

	return tag_sendv(fid, &iov, &desc, 1, addr, tag, context);
}

static ssize_t tag_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg,
			   uint64_t flags)
{
	const struct kit_peer_ep *ep = (const struct kit_peer_ep *)fid;

	if (!(ep->tx_flags & FI_SELECTIVE_COMPLETION))
		flags |= FI_COMPLETION;
	return post(fid, msg, flags | FI_TAGGED);
}

static ssize_t tag_one(struct fid_ep *fid, const struct fi_msg_tagged *msg,
		       const void *buf, size_t len, uint64_t flags)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	struct fi_msg_tagged m = *msg;

	m.msg_iov = &iov;
	m.iov_count = 1;
	return post(fid, &m, flags | FI_TAGGED);
}

static ssize_t tag_inject(struct fid_ep *fid, const void *buf, size_t len,
			  fi_addr_t addr, uint64_t tag)
{
	const struct fi_msg_tagged m = { .addr = addr, .tag = tag };

	return tag_one(fid, &m, buf, len, 0);
}

static ssize_t tag_senddata(struct fid_ep *fid, const void *buf, size_t len,
			    void *desc, uint64_t data, fi_addr_t addr,
			    uint64_t tag, void *context)
{
	const struct fi_msg_tagged m = {
		.addr = addr, .tag = tag, .data = data, .context = context
	};

	return tag_one(fid, &m, buf, len, defaults(fid) | FI_REMOTE_CQ_DATA);
}

static ssize_t tag_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t addr, uint64_t tag)
{
	const struct fi_msg_tagged m = { .addr = addr,
					 .tag = tag,
					 .data = data };

	return tag_one(fid, &m, buf, len, FI_REMOTE_CQ_DATA);
}

struct fi_ops_tagged kit_peer_tagged_ops = {
	.size = sizeof(kit_peer_tagged_ops),
	.send = tag_send,
	.sendv = tag_sendv,
	.sendmsg = tag_sendmsg,
	.inject = tag_inject,
	.senddata = tag_senddata,
	.injectdata = tag_injectdata,
};

/* As the tagged calls, by which owners are tried most. */
static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg,
			   uint64_t flags)
{
	const struct kit_peer_ep *ep = (const struct kit_peer_ep *)fid;
	const struct fi_msg_tagged m = {
		.msg_iov = msg->msg_iov,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.context = msg->context,
		.data = msg->data,
	};

	if (!(ep->tx_flags & FI_SELECTIVE_COMPLETION))
		flags |= FI_COMPLETION;
	return post(fid, &m, flags | FI_MSG);
}

static ssize_t msg_one(struct fid_ep *fid, const struct fi_msg *msg,
		       const void *buf, size_t len, uint64_t flags)
{
	const struct iovec iov = { (void *)(uintptr_t)buf, len };
	const struct fi_msg_tagged m = { .msg_iov = &iov,
					 .iov_count = 1,
					 .addr = msg->addr,
					 .data = msg->data,
					 .context = msg->context };

	return post(fid, &m, flags | FI_MSG);
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t addr,
			 void *context)
{
	const struct fi_msg_tagged m = { .msg_iov = iov,
					 .iov_count = count,
					 .addr = addr,
					 .context = context };

	return post(fid, &m, defaults(fid) | FI_MSG);
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len,
			void *desc, fi_addr_t addr, void *context)
{
	const struct fi_msg m = { .addr = addr, .context = context };

	return msg_one(fid, &m, buf, len, defaults(fid));
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len,
			  fi_addr_t addr)
{
	const struct fi_msg m = { .addr = addr };

	return msg_one(fid, &m, buf, len, 0);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len,
			    void *desc, uint64_t data, fi_addr_t addr,
			    void *context)
{
	const struct fi_msg m = { .addr = addr,
				  .data = data,
				  .context = context };

	return msg_one(fid, &m, buf, len, defaults(fid) | FI_REMOTE_CQ_DATA);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len,
			      uint64_t data, fi_addr_t addr)
{
	const struct fi_msg m = { .addr = addr, .data = data };

	return msg_one(fid, &m, buf, len, FI_REMOTE_CQ_DATA);
}

struct fi_ops_msg kit_peer_msg_ops = {
	.size = sizeof(kit_peer_msg_ops),
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};
