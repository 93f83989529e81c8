/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes the lock, finds the pair, and holds the only local-or-remote branch
 * of the data path. No operation is sent before the path of a pair is agreed
 * (pair.c); until then backlog.c queues them.
 */
#include "tcp/route.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "av/key.h"
#include "base/env.h"
#include "base/log.h"
#include "base/trace.h"
#include "peer/amo.h"
#include "peer/foreign.h"
#include "peer/patience.h"
#include "tcp/keys.h"
#include "tcp/root.h"
#include "tcp/tier_foreign.h"
#include "tdm_op.h"
#include "tdm_ranges.h"

/* The flags that a peer provider gets with an operation, fi_msg(3). */
#define LOCAL_FLAGS                                                            \
	(FI_COMPLETION | FI_INJECT | FI_REMOTE_CQ_DATA | FI_MORE | FI_FENCE |  \
	 TDM_LEVELS | TDM_DEFERRED)

static ssize_t rma_local(struct tdm_root *root, fi_addr_t to,
			 const struct tdm_xfer *x)
{
	struct fi_rma_iov where[TDM_RMA_IOV_LIMIT];
	struct fi_msg_rma msg = {
		.msg_iov = x->iov,
		.iov_count = x->count,
		.addr = to,
		.rma_iov = where,
		.rma_iov_count = tdm_xfer_list(x, where),
		.context = x->context,
		.data = x->data,
	};

	return x->flags & FI_READ ?
		       fi_readmsg(root->local, &msg, x->flags & LOCAL_FLAGS) :
		       fi_writemsg(root->local, &msg, x->flags & LOCAL_FLAGS);
}

/*
 * Describe the values of an operand or of the result of @c, which begin at byte
 * @from of iov[count], in @ioc.
 */
static size_t iocs(struct fi_ioc *ioc, const struct tdm_amo_call *c,
		   const struct iovec *iov, size_t count, size_t from)
{
	struct iovec part[TDM_AMO_IOV_LIMIT];
	size_t n = tdm_iov_slice(part, TDM_AMO_IOV_LIMIT, iov, count, from,
				 c->bytes),
	       i;

	for (i = 0; i < n; i++) {
		ioc[i].addr = part[i].iov_base;
		ioc[i].count = part[i].iov_len / tdm_amo_size(c->amo.type);
	}
	return n;
}

static ssize_t amo_local(struct tdm_root *root, fi_addr_t to,
			 const struct tdm_xfer *x)
{
	const struct tdm_amo_call *c = x->amo;
	int first = !!tdm_amo_operands(&c->amo);
	size_t n;
	struct fi_ioc buf[TDM_AMO_IOV_LIMIT], compare[TDM_AMO_IOV_LIMIT];
	struct fi_ioc back[TDM_AMO_IOV_LIMIT];
	struct fi_rma_ioc where[TDM_RMA_IOV_LIMIT];
	struct fi_msg_atomic msg = {
		.msg_iov = buf,
		.iov_count = first ? iocs(buf, c, x->iov, x->count, 0) : 0,
		.addr = to,
		.rma_iov = where,
		.rma_iov_count =
			tdm_xfer_values(x, tdm_amo_size(c->amo.type), where),
		.datatype = (enum fi_datatype)c->amo.type,
		.op = (enum fi_op)c->amo.op,
		.context = x->context,
	};
	uint64_t flags = x->flags & LOCAL_FLAGS;

	if (c->amo.kind == TDM_AMO_BASE)
		return fi_atomicmsg(root->local, &msg, flags);
	n = iocs(back, c, c->result, c->result_count, 0);
	if (c->amo.kind == TDM_AMO_FETCH)
		return fi_fetch_atomicmsg(root->local, &msg, back, NULL, n,
					  flags);
	return fi_compare_atomicmsg(root->local, &msg, compare, NULL,
				    iocs(compare, c, x->iov, x->count,
					 first ? c->bytes : 0),
				    back, NULL, n, flags);
}

/* fi_inject() of the peer provider, or one of its like. */
static inline ssize_t inject_local(struct fid_ep *local, uint64_t flags,
				   const void *buf, size_t len, uint64_t data,
				   fi_addr_t to, uint64_t tag)
{
	if (tdm_likely(flags & FI_TAGGED))
		return flags & FI_REMOTE_CQ_DATA ?
			       fi_tinjectdata(local, buf, len, data, to, tag) :
			       fi_tinject(local, buf, len, to, tag);
	return flags & FI_REMOTE_CQ_DATA ?
		       fi_injectdata(local, buf, len, data, to) :
		       fi_inject(local, buf, len, to);
}

/* Not 0 when fi_inject() or one of its like can express @x. */
static int is_inject(const struct tdm_xfer *x)
{
	return (x->flags & (FI_INJECT | FI_COMPLETION | FI_TRANSMIT_COMPLETE |
			    TDM_ONE_SIDED | TDM_DELIVERED | FI_FENCE |
			    TDM_DEFERRED)) == FI_INJECT &&
	       x->count == 1;
}

/*
 * Send @x by the peer provider's endpoint. @to: the address in the peer's AV,
 * with a receive context or without.
 */
static ssize_t send_local(struct tdm_root *root, fi_addr_t to,
			  const struct tdm_xfer *x)
{
	struct fi_msg_tagged tagged;
	struct fi_msg msg;

	if (is_inject(x))
		return inject_local(root->local, x->flags, x->iov->iov_base,
				    x->len, x->data, to, x->tag);
	if (x->flags & FI_TAGGED) {
		tagged.msg_iov = x->iov;
		tagged.desc = NULL;
		tagged.iov_count = x->count;
		tagged.addr = to;
		tagged.tag = x->tag;
		tagged.ignore = 0;
		tagged.context = x->context;
		tagged.data = x->data;
		return fi_tsendmsg(root->local, &tagged,
				   x->flags & LOCAL_FLAGS);
	}
	if (tdm_unlikely(x->flags & TDM_ONE_SIDED))
		return x->flags & FI_RMA ? rma_local(root, to, x) :
					   amo_local(root, to, x);
	msg.msg_iov = x->iov;
	msg.desc = NULL;
	msg.iov_count = x->count;
	msg.addr = to;
	msg.context = x->context;
	msg.data = x->data;
	return fi_sendmsg(root->local, &msg, x->flags & LOCAL_FLAGS);
}

/*
 * Returns the address of @p in the peer provider's AV, with the receive context
 * and group of @x if it names them.
 */
static fi_addr_t local_addr(const struct tdm_root *root,
			    const struct tdm_pair *p, const struct tdm_xfer *x)
{
	int bits;

	if (!(x->flags & TDM_TO_CTX) || p->local == FI_ADDR_NOTAVAIL)
		return p->local;
	bits = tdm_av_space(root->ep.av)->ctx_bits;
	return fi_group_addr(x->rx_ctx ? fi_rx_addr(p->local, x->rx_ctx, bits) :
					 p->local,
			     x->group);
}

static fi_addr_t candidate(const struct tdm_root *root, fi_addr_t addr)
{
	return tdm_av_local(root->ep.av, addr);
}

static ssize_t send_candidate(struct tdm_root *root, struct tdm_pair *p,
			      const struct tdm_xfer *x)
{
	/* With a shared folder each address is a candidate: ask the folder. */
	if (tdm_env.shm_dir && !tdm_pair_in_folder(root, x->addr))
		return -FI_ECONNREFUSED;
	return send_local(root, local_addr(root, p, x), x);
}

static struct tdm_conn *conn_to(struct tdm_root *root, fi_addr_t addr)
{
	struct tdm_conn *c;
	struct tdm_addr a;

	if (tdm_av_addr(root->ep.av, addr, &a))
		return NULL;
	c = tdm_conn_get(root->tcp, &a, addr);
	if (c && addr < root->pairs && root->pair[addr] &&
	    root->pair[addr]->brief)
		tdm_conn_brief(c);
	return c;
}

const struct tdm_tiers tdm_route_tiers = {
	.local_addr = candidate,
	.send_local = send_candidate,
	.conn = conn_to,
	.probe = tdm_conn_probe,
	.send_remote = tdm_tx_send,
	.drop = tdm_conn_drop,
	.may_meet = tdm_tier_foreign_may_meet,
	.meet = tdm_tier_foreign_meet,
	.send_foreign = tdm_foreign_send,
};

static inline int is_local(const struct tdm_pair *p)
{
	return p->path == TDM_PATH_LOCAL;
}

/*
 * Not 0 when @x, which -FI_EAGAIN has met, is to wait: for the path, or for the
 * foreign peer, whose queue may be shorter than that of the endpoint.
 */
static int may_wait(const struct tdm_pair *p, const struct tdm_xfer *x)
{
	return p->path == TDM_PATH_UNKNOWN || p->path == TDM_PATH_QUEUED ||
	       (p->path == TDM_PATH_FOREIGN && !(x->flags & TDM_ONE_SIDED));
}

/* Queue @x until a path is agreed. */
static tdm_noinline ssize_t send_later(struct tdm_root *root,
				       struct tdm_pair *p,
				       const struct tdm_xfer *x)
{
	ssize_t ret = p->queue ? -FI_EAGAIN : tdm_pair_agree(root, p, x);

	if (ret != -FI_EAGAIN || !may_wait(p, x))
		return ret;
	return tdm_backlog_add(root, p, x);
}

typedef ssize_t (*send_fn)(struct tdm_root *root, struct tdm_pair *p,
			   const struct tdm_xfer *x);

/*
 * Send @x by the path of @p; call @other if none is agreed, or if the local
 * session turns out to have ended. @to: p->local, or that with the receive
 * context and the group of @x (local_addr()).
 */
static tdm_always_inline ssize_t send_by(struct tdm_root *root,
					 struct tdm_pair *p, fi_addr_t to,
					 const struct tdm_xfer *x,
					 send_fn other)
{
	ssize_t ret;

	if (tdm_likely(is_local(p)))
		ret = send_local(root, to, x);
	else if (p->path == TDM_PATH_REMOTE)
		return tdm_tx_send(p->conn, x);
	else
		return other(root, p, x);
	if (tdm_likely(ret != -FI_ECONNREFUSED && ret != -FI_EHOSTUNREACH))
		return ret;
	tdm_pair_detached(p, ret);
	return other(root, p, x);
}

static inline ssize_t send_to(struct tdm_root *root, struct tdm_pair *p,
			      fi_addr_t to, const struct tdm_xfer *x)
{
	return send_by(root, p, to, x, send_later);
}

ssize_t tdm_route_offer(struct tdm_root *root, struct tdm_pair *p,
			const struct tdm_xfer *x)
{
	return send_by(root, p, local_addr(root, p, x), x, tdm_pair_agree);
}

/*
 * Returns the pair for @x, made if need be; NULL: an error. Out: *@named, a
 * copy of @x with receive context and group taken from its address.
 */
static struct tdm_pair *find_pair(struct tdm_root *root,
				  const struct tdm_xfer *x,
				  struct tdm_xfer *named)
{
	const struct tdm_space *space = tdm_av_space(root->ep.av);
	struct tdm_place place;

	*named = *x;
	if (x->addr == FI_ADDR_UNSPEC ||
	    (!(root->ep.rx_space & TDM_IN_SPACE) &&
	     !(space->ctx_bits && x->addr >> (64 - space->ctx_bits))))
		return tdm_ep_pair(root, x->addr);
	if (tdm_space_split(space, x->addr, &place) ||
	    place.ctx >= TDM_CTX_MOST)
		return NULL;
	named->flags |= TDM_TO_CTX;
	named->rx_ctx = (uint16_t)place.ctx;
	/* fi_av(3): only messages have groups. */
	named->group = x->flags & TDM_ONE_SIDED ? 0 : place.group;
	named->addr = place.addr;
	return tdm_ep_pair(root, place.addr);
}

static ssize_t no_pair(const struct tdm_root *root, fi_addr_t addr)
{
	return tdm_av_has(root->ep.av, addr) && tdm_ep_key_ok(root, addr) ?
		       -FI_ENOMEM :
		       -FI_EINVAL;
}

/*
 * Send @x when there is no pair under its address: it is the first send, or one
 * to a receive context of the peer, or @ep has no pairs because it is a part of
 * another endpoint.
 */
static ssize_t send_first(struct tdm_ep *ep, const struct tdm_xfer *x)
{
	struct tdm_root *root = ep->root;
	struct tdm_xfer named;
	struct tdm_pair *p;

	if (ep->kind->send)
		return ep->kind->send(ep, x);
	/* A removal would end queued sends while their list is being walked. */
	if (!ep->domain->in_retry)
		tdm_av_follow(ep->av);
	p = find_pair(root, x, &named);
	return p ? send_to(root, p, local_addr(root, p, &named), &named) :
		   no_pair(root, named.addr);
}

/*
 * Returns the pair of @addr, and so @ep is a root; or NULL: call send_first().
 */
static inline struct tdm_pair *pair_at(struct tdm_ep *ep, fi_addr_t addr)
{
	return addr < ep->fast_pairs ? tdm_root_of(ep)->pair[addr] : NULL;
}

static inline ssize_t send_locked(struct tdm_ep *ep, const struct tdm_xfer *x)
{
	struct tdm_pair *p = pair_at(ep, x->addr);

	return tdm_likely(p != NULL) ?
		       send_to(tdm_root_of(ep), p, p->local, x) :
		       send_first(ep, x);
}

/*
 * Not 0 when @cq (NULL: none is bound) has no room for the entry of @x, or for its
 * error if it has no other entry.
 */
static inline int full(const struct tdm_cq *cq, const struct tdm_xfer *x)
{
	return cq && (x->flags & FI_COMPLETION ? tdm_cq_full(cq) :
						 tdm_cq_full_of_errors(cq));
}

ssize_t tdm_route_keep(struct tdm_ep *ep, const struct tdm_xfer *x)
{
	ssize_t ret = send_locked(ep, x);
	struct tdm_xfer named;
	struct tdm_pair *p;

	/*
	 * A send of a context has been here already, as a send of its endpoint.
	 */
	if (tdm_likely(ret != -FI_EAGAIN || ep->kind->send))
		return ret;
	p = find_pair(ep->root, x, &named);
	return p ? tdm_backlog_add(ep->root, p, &named) :
		   no_pair(ep->root, named.addr);
}

ssize_t tdm_route_due(struct tdm_ep *ep, const struct tdm_xfer *x)
{
	return full(ep->tx_cq, x) ? -FI_EAGAIN : tdm_route_keep(ep, x);
}

ssize_t tdm_route_in_group(struct tdm_root *root, struct tdm_xfer *x,
			   uint32_t group)
{
	struct tdm_pair *p = tdm_ep_pair(root, x->addr);
	ssize_t ret;

	if (!p)
		return no_pair(root, x->addr);
	x->flags |= TDM_TO_CTX;
	x->rx_ctx = 0;
	x->group = group;
	ret = send_to(root, p, local_addr(root, p, x), x);
	return ret == -FI_EAGAIN ? tdm_backlog_add(root, p, x) : ret;
}

static ssize_t retry_later(struct tdm_domain *d)
	TDM_TSA(release_capability(d->lock));

/*
 * Make progress, so that an application which only retries advances. Releases
 * the lock. Returns -FI_EAGAIN.
 */
static tdm_noinline ssize_t retry_later(struct tdm_domain *d)
{
	int vain;

	d->engine.progress(&d->engine);
	vain = tdm_engine_vain(&d->engine);
	tdm_lock_release(&d->lock);
	if (tdm_unlikely(vain))
		tdm_engine_yield(&d->engine);
	return -FI_EAGAIN;
}

ssize_t tdm_route_send(struct tdm_ep *ep, const struct tdm_xfer *x)
{
	struct tdm_domain *d = ep->domain;
	ssize_t ret;

	tdm_lock_acquire(&d->lock);
	ret = full(ep->tx_cq, x) ? -FI_EAGAIN : send_locked(ep, x);
	if (tdm_unlikely(ret == -FI_EAGAIN))
		return retry_later(d);
	TDM_TRACE6(post_send, x->addr, x->len, x->flags, x->tag, x->context,
		   ret);
	tdm_lock_release(&d->lock);
	return ret;
}

static ssize_t inject_again(struct tdm_ep *ep, uint64_t flags, const void *buf,
			    size_t len, uint64_t data, fi_addr_t to,
			    uint64_t tag)
	TDM_TSA(release_capability(ep->domain->lock));

/*
 * Send an inject like any message: the path is not local, or the peer provider
 * cannot take it.
 */
static tdm_noinline ssize_t inject_again(struct tdm_ep *ep, uint64_t flags,
					 const void *buf, size_t len,
					 uint64_t data, fi_addr_t to,
					 uint64_t tag)
{
	struct tdm_xfer x;
	ssize_t ret;

	tdm_xfer_init(&x, flags, to, NULL);
	tdm_xfer_buf(&x, buf, len);
	x.tag = tag;
	x.data = data;
	ret = full(ep->tx_cq, &x) ? -FI_EAGAIN : send_locked(ep, &x);
	if (ret == -FI_EAGAIN)
		return retry_later(ep->domain);
	TDM_TRACE6(post_send, to, len, flags, tag, NULL, ret);
	tdm_lock_release(&ep->domain->lock);
	return ret;
}

ssize_t tdm_route_inject(struct tdm_ep *ep, uint64_t flags, const void *buf,
			 size_t len, uint64_t data, fi_addr_t to, uint64_t tag)
{
	ssize_t ret = -FI_EHOSTUNREACH;
	const struct tdm_pair *p;

	tdm_lock_acquire(&ep->domain->lock);
	p = pair_at(ep, to);
	if (tdm_likely(p && is_local(p)))
		ret = inject_local(tdm_root_of(ep)->local, flags, buf, len,
				   data, p->local, tag);
	if (tdm_unlikely(ret))
		return ret == -FI_EAGAIN ?
			       retry_later(ep->domain) :
			       inject_again(ep, flags, buf, len, data, to, tag);
	TDM_TRACE6(post_send, to, len, flags, tag, NULL, ret);
	tdm_lock_release(&ep->domain->lock);
	return 0;
}
