/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The imported objects of fi_peer(3): domain, CQ, counter, SRX, EQ.
 *
 * Invariants:
 *  1. The context given at open is not used afterwards: its contents were
 *     copied. Its size is checked.
 *  2. CQ and counter have one working call, read, which makes progress and
 *     returns no entry. FI_GETWAIT returns an epoll descriptor that becomes
 *     readable when the endpoints behind the object need progress, if
 *     tdm_shm_trywait() returned 0 before.
 *  3. The imported domain registers memory and answers queries for us.
 * Locking: domain lock held. Spec: fi_peer(3), fi_cq(3), fi_cntr(3).
 */
#include "shm/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/os.h"
#include "shm/adapter.h"
#include "shm/bell.h"
#include "shm/ep.h"
#include "shm/progress.h"
#include "shm/rx.h"
#include "tdm_nosys.h"
#include "tdm_sleep.h"

/* ---- what CQ and counter share ------------------------------------------- */

static struct tdm_shm_ep *queue_ep(struct tdm_list *node)
{
	return tdm_list_entry(node, struct tdm_shm_queue_link, node)->ep;
}

static tdm_noinline void queue_progress_all(struct tdm_shm_queue *q)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &q->links)
		tdm_shm_ep_progress(queue_ep(pos));
}

/* Make progress of the endpoints of @q; usually one: no loop for it. */
static inline void queue_progress(struct tdm_shm_queue *q)
{
	struct tdm_list *first = q->links.next;

	if (tdm_likely(first == q->links.prev && first != &q->links))
		tdm_shm_ep_progress(queue_ep(first));
	else
		queue_progress_all(q);
}

static void queue_init(struct tdm_shm_queue *q, struct tdm_shm_domain *domain)
{
	tdm_list_init(&q->links);
	q->domain = domain;
	q->wait_fd = -1;
	q->borrowed = 0;
	q->refs = 0;
	domain->refs++;
}

static void queue_fini(struct tdm_shm_queue *q)
{
	if (q->wait_fd >= 0 && !q->borrowed)
		tdm_os.close(q->wait_fd);
	q->domain->refs--;
}

/*
 * Add @fd to the queue's set, which has the descriptors, not the endpoint's
 * epoll set: tdm_sleep.h. Queues of an endpoint may share a set.
 */
static int watch_fd(const struct tdm_shm_queue *q, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP };

	if (q->wait_fd < 0 ||
	    !tdm_os.epoll_ctl(q->wait_fd, EPOLL_CTL_ADD, fd, &ev))
		return 0;
	return errno == EEXIST ? 0 : -errno;
}

static void unwatch_fd(const struct tdm_shm_queue *q, int fd)
{
	struct epoll_event ev = { 0 };

	if (q->wait_fd >= 0)
		(void)tdm_os.epoll_ctl(q->wait_fd, EPOLL_CTL_DEL, fd, &ev);
}

static int is_linked(const struct tdm_shm_queue_link *link)
{
	return link->node.next && tdm_list_linked(&link->node);
}

int tdm_shm_queues_watch(struct tdm_shm_ep *ep, int fd)
{
	int i, ret = 0;

	for (i = 0; i < TDM_SHM_Q_COUNT && !ret; i++) {
		if (is_linked(&ep->links[i]))
			ret = watch_fd(ep->queues[i], fd);
	}
	return ret;
}

void tdm_shm_queues_unwatch(struct tdm_shm_ep *ep, int fd)
{
	int i;

	for (i = 0; i < TDM_SHM_Q_COUNT; i++) {
		if (is_linked(&ep->links[i]))
			unwatch_fd(ep->queues[i], fd);
	}
}

static int watch_ep(const struct tdm_shm_queue *q, const struct tdm_shm_ep *ep)
{
	int ret = watch_fd(q, ep->bell_fd);
	struct tdm_list *pos;

	tdm_list_for_each(pos, &ep->watches) {
		if (ret)
			break;
		ret = watch_fd(
			q, tdm_list_entry(pos, struct tdm_shm_watch, node)->fd);
	}
	return ret;
}

static void unwatch_ep(const struct tdm_shm_queue *q,
		       const struct tdm_shm_ep *ep)
{
	struct tdm_list *pos;

	unwatch_fd(q, ep->bell_fd);
	tdm_list_for_each(pos, &ep->watches)
		unwatch_fd(q,
			   tdm_list_entry(pos, struct tdm_shm_watch, node)->fd);
}

int tdm_shm_queue_add(struct tdm_shm_queue *q, struct tdm_shm_queue_link *link)
{
	int ret = watch_ep(q, link->ep);

	if (ret)
		return ret;
	tdm_list_append(&q->links, &link->node);
	return 0;
}

void tdm_shm_queue_del(struct tdm_shm_queue *q, struct tdm_shm_queue_link *link)
{
	if (!is_linked(link))
		return;
	unwatch_ep(q, link->ep);
	tdm_list_del(&link->node);
}

/* Make @epfd the epoll set of the queue. */
static int queue_set(struct tdm_shm_queue *q, int epfd)
{
	struct tdm_list *pos;
	int ret = 0;

	q->wait_fd = epfd;
	tdm_list_for_each(pos, &q->links) {
		ret = watch_ep(q, queue_ep(pos));
		if (ret)
			break;
	}
	return ret;
}

static int queue_getwait(struct tdm_shm_queue *q, void *arg)
{
	int fd, ret;

	if (q->wait_fd < 0) {
		fd = tdm_os.epoll_create1(EPOLL_CLOEXEC);
		if (fd < 0)
			return -errno;
		ret = queue_set(q, fd);
		if (ret) {
			tdm_os.close(fd);
			q->wait_fd = -1;
			return ret;
		}
	}
	*(int *)arg = q->wait_fd;
	return 0;
}

static int queue_join(struct tdm_shm_queue *q, int epfd)
{
	struct tdm_list *pos;
	int ret;

	if (q->wait_fd >= 0)
		return q->wait_fd == epfd ? 0 : -FI_EBUSY;
	q->borrowed = 1;
	ret = queue_set(q, epfd);
	if (!ret)
		return 0;
	tdm_list_for_each(pos, &q->links)
		unwatch_ep(q, queue_ep(pos));
	q->borrowed = 0;
	q->wait_fd = -1;
	return ret;
}

static int sleep_join(struct fid *fid, int epfd)
{
	return queue_join(
		fid->fclass == FI_CLASS_CQ ?
			&tdm_container_of(fid, struct tdm_shm_cq, fid.fid)
				 ->queue :
			&tdm_container_of(fid, struct tdm_shm_cntr, fid.fid)
				 ->queue,
		epfd);
}

static struct tdm_sleep_ops sleep_ops = {
	.size = sizeof(sleep_ops),
	.join = sleep_join,
};

static int queue_ops_open(struct fid *fid, const char *name, uint64_t flags,
			  void **ops, void *context)
{
	if (!name || !ops || flags)
		return -FI_EINVAL;
	if (strcmp(name, TDM_SLEEP_OPS))
		return -FI_ENOSYS;
	*ops = &sleep_ops;
	return 0;
}

static int queue_control(struct tdm_shm_queue *q, int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		return queue_getwait(q, arg);
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = FI_WAIT_FD;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static int wait_ok(enum fi_wait_obj obj)
{
	return obj == FI_WAIT_NONE || obj == FI_WAIT_UNSPEC ||
	       obj == FI_WAIT_FD;
}

static int queue_arm(struct tdm_shm_queue *q)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &q->links) {
		int ret = tdm_shm_bell_arm(
			tdm_list_entry(pos, struct tdm_shm_queue_link, node)
				->ep);
		if (ret)
			return ret;
	}
	return 0;
}

int tdm_shm_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int i, ret = 0;

	for (i = 0; i < count && !ret; i++) {
		if (fids[i]->fclass == FI_CLASS_CQ)
			ret = queue_arm(&tdm_container_of(fids[i],
							  struct tdm_shm_cq,
							  fid.fid)
						 ->queue);
		else if (fids[i]->fclass == FI_CLASS_CNTR)
			ret = queue_arm(&tdm_container_of(fids[i],
							  struct tdm_shm_cntr,
							  fid.fid)
						 ->queue);
		else
			ret = -FI_EINVAL;
	}
	return ret;
}

/* ---- completion queue ---------------------------------------------------- */

static int cq_close(struct fid *fid)
{
	struct tdm_shm_cq *cq =
		tdm_container_of(fid, struct tdm_shm_cq, fid.fid);

	if (cq->queue.refs)
		return -FI_EBUSY;
	queue_fini(&cq->queue);
	free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	return queue_control(
		&tdm_container_of(fid, struct tdm_shm_cq, fid.fid)->queue,
		command, arg);
}

/* Makes progress; fi_peer(3): entries go to the owner's CQ. */
static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	queue_progress(&tdm_container_of(fid, struct tdm_shm_cq, fid)->queue);
	return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	return fi_strerror(prov_errno < 0 ? -prov_errno : prov_errno);
}

static struct fi_ops cq_fi_ops = {
	.size = sizeof(cq_fi_ops),
	.close = cq_close,
	.bind = tdm_no_fi_bind,
	.control = cq_control,
	.ops_open = queue_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_cq cq_ops = {
	.size = sizeof(cq_ops),
	.read = cq_read,
	.readfrom = tdm_no_cq_readfrom,
	.readerr = tdm_no_cq_readerr,
	.sread = tdm_no_cq_sread,
	.sreadfrom = tdm_no_cq_sreadfrom,
	.signal = tdm_no_cq_signal,
	.strerror = cq_strerror,
};

int tdm_shm_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		    struct fid_cq **out, void *context)
{
	struct fi_peer_cq_context *ctx = context;
	struct tdm_shm_cq *cq;

	if (!attr || !(attr->flags & FI_PEER) || !ctx ||
	    ctx->size < sizeof(*ctx) || !ctx->cq)
		return -FI_EINVAL;
	if (!wait_ok(attr->wait_obj))
		return -FI_ENOSYS;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq->owner = ctx->cq;
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.ops = &cq_fi_ops;
	cq->fid.ops = &cq_ops;
	queue_init(&cq->queue,
		   tdm_container_of(domain, struct tdm_shm_domain, fid));
	*out = &cq->fid;
	return 0;
}

/* ---- counter ------------------------------------------------------------- */

static int cntr_close(struct fid *fid)
{
	struct tdm_shm_cntr *cntr =
		tdm_container_of(fid, struct tdm_shm_cntr, fid.fid);

	if (cntr->queue.refs)
		return -FI_EBUSY;
	queue_fini(&cntr->queue);
	free(cntr);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	return queue_control(
		&tdm_container_of(fid, struct tdm_shm_cntr, fid.fid)->queue,
		command, arg);
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	queue_progress(&tdm_container_of(fid, struct tdm_shm_cntr, fid)->queue);
	return 0;
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	return (uint64_t)-FI_ENOSYS;
}

static struct fi_ops cntr_fi_ops = {
	.size = sizeof(cntr_fi_ops),
	.close = cntr_close,
	.bind = tdm_no_fi_bind,
	.control = cntr_control,
	.ops_open = queue_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(cntr_ops),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = tdm_no_cntr_add,
	.set = tdm_no_cntr_add,
	.wait = tdm_no_cntr_wait,
	.adderr = tdm_no_cntr_add,
	.seterr = tdm_no_cntr_add,
};

int tdm_shm_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		      struct fid_cntr **out, void *context)
{
	struct fi_peer_cntr_context *ctx = context;
	struct tdm_shm_cntr *cntr;

	if (!attr || !(attr->flags & FI_PEER) || !ctx ||
	    ctx->size < sizeof(*ctx) || !ctx->cntr)
		return -FI_EINVAL;
	if (!wait_ok(attr->wait_obj))
		return -FI_ENOSYS;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	cntr->owner = ctx->cntr;
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.ops = &cntr_fi_ops;
	cntr->fid.ops = &cntr_ops;
	queue_init(&cntr->queue,
		   tdm_container_of(domain, struct tdm_shm_domain, fid));
	*out = &cntr->fid;
	return 0;
}

/* ---- shared receive context ---------------------------------------------- */

static int srx_close(struct fid *fid)
{
	struct tdm_shm_srx *srx =
		tdm_container_of(fid, struct tdm_shm_srx, fid.fid);

	tdm_shm_adapter_close(srx);
	srx->domain->refs--;
	free(srx);
	return 0;
}

static struct fi_ops srx_fi_ops = {
	.size = sizeof(srx_fi_ops),
	.close = srx_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

/* fi_peer(3): the receive calls of an imported context return -FI_ENOSYS. */
static struct fi_ops_msg srx_msg_ops = {
	.size = offsetof(struct fi_ops_msg, send),
	.recv = tdm_no_msg_recv,
	.recvv = tdm_no_msg_recvv,
	.recvmsg = tdm_no_msg_recvmsg,
};

static struct fi_ops_tagged srx_tagged_ops = {
	.size = offsetof(struct fi_ops_tagged, send),
	.recv = tdm_no_tagged_recv,
	.recvv = tdm_no_tagged_recvv,
	.recvmsg = tdm_no_tagged_recvmsg,
};

int tdm_shm_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr,
		     struct fid_ep **out, void *context)
{
	struct fi_peer_srx_context *ctx = context;
	struct tdm_shm_srx *srx;
	int ret;

	if (!attr || !(attr->op_flags & FI_PEER) || !ctx ||
	    ctx->size < sizeof(*ctx) || !ctx->srx)
		return -FI_EINVAL;
	srx = calloc(1, sizeof(*srx));
	if (!srx)
		return -FI_ENOMEM;
	srx->owner = ctx->srx;
	srx->domain = tdm_container_of(domain, struct tdm_shm_domain, fid);
	ret = tdm_shm_adapter_open(srx);
	if (ret) {
		free(srx);
		return ret;
	}
	srx->domain->refs++;
	srx->fid.fid.fclass = FI_CLASS_SRX_CTX;
	srx->fid.fid.ops = &srx_fi_ops;
	srx->fid.msg = &srx_msg_ops;
	srx->fid.tagged = &srx_tagged_ops;
	*out = &srx->fid;
	return 0;
}

/* ---- domain -------------------------------------------------------------- */

struct fid_domain *tdm_shm_import_domain(const void *context)
{
	const struct fi_peer_domain_context *ctx = context;

	if (!ctx || ctx->size < sizeof(*ctx) || !ctx->domain ||
	    !ctx->domain->ops || !ctx->domain->mr)
		return NULL;
	return ctx->domain;
}

/* ---- event queue --------------------------------------------------------- */

static int eq_close(struct fid *fid)
{
	struct tdm_shm_eq *eq =
		tdm_container_of(fid, struct tdm_shm_eq, fid.fid);

	if (eq->refs)
		return -FI_EBUSY;
	if (eq->fabric->eq == eq)
		eq->fabric->eq = NULL;
	eq->fabric->refs--;
	free(eq);
	return 0;
}

static struct fi_ops eq_fi_ops = {
	.size = sizeof(eq_fi_ops),
	.close = eq_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static const char *eq_strerror(struct fid_eq *fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	return fi_strerror(prov_errno < 0 ? -prov_errno : prov_errno);
}

static struct fi_ops_eq eq_ops = {
	.size = sizeof(eq_ops),
	.read = tdm_no_eq_read,
	.readerr = tdm_no_eq_readerr,
	.write = tdm_no_eq_write,
	.sread = tdm_no_eq_sread,
	.strerror = eq_strerror,
};

int tdm_shm_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		    struct fid_eq **out, void *context)
{
	struct fi_peer_eq_context *ctx = context;
	struct tdm_shm_eq *eq;

	if (!attr || !(attr->flags & FI_PEER) || !ctx ||
	    ctx->size < sizeof(*ctx) || !ctx->eq)
		return -FI_EINVAL;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->owner = ctx->eq;
	eq->fabric = tdm_container_of(fabric, struct tdm_shm_fabric, fid);
	eq->fabric->refs++;
	eq->fabric->eq = eq;
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.ops = &eq_fi_ops;
	eq->fid.ops = &eq_ops;
	*out = &eq->fid;
	return 0;
}
