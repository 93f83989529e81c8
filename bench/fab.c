/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A subject that is a provider of libfabric: FI_EP_RDM, one completion queue,
 * FI_THREAD_DOMAIN (BENCH_SAFE: FI_THREAD_SAFE), tagged messages, one region over both buffers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "bench/fab.h"

enum { FAB_READ_MOST = 1 };

struct fab {
	struct bench_set set;
	struct fid_cq *cq; /* those of the set, for the loops measured */
	struct fid_ep *ep;
	fi_addr_t peer;
	uint64_t recvs, sends; /* under way */
	uint64_t written;      /* writes that the peer has told of */
	uint64_t base;	       /* what names byte 0 of the peer's region */
	uint64_t key;
	void *desc;
	uint64_t result;
	struct fi_context2 rx_ctx[BENCH_SLOTS], tx_ctx[BENCH_SLOTS];
};

void bench_fab_check(const char *what, ssize_t ret)
{
	char text[128];

	if (ret >= 0)
		return;
	snprintf(text, sizeof(text), "%s: %s", what, fi_strerror((int)-ret));
	bench_die(text, (int)-ret);
}

static void queue_failed(struct fab *f, ssize_t ret)
{
	struct fi_cq_err_entry err = { 0 };

	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(f->cq, &err, 0);
		ret = -err.err;
	}
	bench_fab_check("completion", ret);
}

/* By its context: a receive of lnx completes without FI_RECV in its flags. */
static inline int is_receive(const struct fab *f, const void *context)
{
	return (uintptr_t)context - (uintptr_t)f->rx_ctx < sizeof(f->rx_ctx);
}

static inline void take(struct fab *f, const struct fi_cq_tagged_entry *e,
			ssize_t n)
{
	ssize_t i;

	for (i = 0; i < n; i++) {
		if (is_receive(f, e[i].op_context))
			f->recvs--;
		else if (e[i].flags & FI_REMOTE_CQ_DATA)
			f->written++;
		else
			f->sends--;
	}
}

static inline void look(struct fab *f)
{
	struct fi_cq_tagged_entry e[FAB_READ_MOST];
	ssize_t n = fi_cq_read(f->cq, e, FAB_READ_MOST);

	if (n > 0)
		take(f, e, n);
	else if (n != -FI_EAGAIN)
		queue_failed(f, n);
}

static void fab_recv(struct bench_subject *s, void *buf, size_t len,
		     uint64_t tag, unsigned slot)
{
	struct fab *f = s->priv;
	ssize_t ret;

	while ((ret = fi_trecv(f->ep, buf, len, f->desc, f->peer, tag, 0,
			       &f->rx_ctx[slot])) == -FI_EAGAIN)
		look(f);
	bench_fab_check("fi_trecv", ret);
	f->recvs++;
}

static void fab_send(struct bench_subject *s, const void *buf, size_t len,
		     uint64_t tag, unsigned slot)
{
	struct fab *f = s->priv;
	ssize_t ret;

	while ((ret = fi_tsend(f->ep, buf, len, f->desc, f->peer, tag,
			       &f->tx_ctx[slot])) == -FI_EAGAIN)
		look(f);
	bench_fab_check("fi_tsend", ret);
	f->sends++;
}

static void fab_inject(struct bench_subject *s, const void *buf, size_t len,
		       uint64_t tag)
{
	struct fab *f = s->priv;
	ssize_t ret;

	while ((ret = fi_tinject(f->ep, buf, len, f->peer, tag)) == -FI_EAGAIN)
		look(f);
	bench_fab_check("fi_tinject", ret);
}

static void fab_wait_recv(struct bench_subject *s, unsigned left)
{
	struct fab *f = s->priv;

	while (f->recvs > left)
		look(f);
}

static void fab_wait_send(struct bench_subject *s)
{
	struct fab *f = s->priv;

	while (f->sends)
		look(f);
}

static void fab_sleep_recv(struct bench_subject *s)
{
	struct fab *f = s->priv;
	struct fi_cq_tagged_entry e[FAB_READ_MOST];
	ssize_t n;

	while (f->recvs) {
		n = fi_cq_sread(f->cq, e, FAB_READ_MOST, NULL, 1000);
		if (n > 0)
			take(f, e, n);
		else if (n != -FI_EAGAIN && n != -FI_EINTR)
			queue_failed(f, n);
	}
}

static void fab_poll(struct bench_subject *s)
{
	look(s->priv);
}

static ssize_t write_once(struct fab *f, const void *buf, size_t len, size_t at,
			  void *context, enum bench_write how, int inject)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct fi_rma_iov to = { .addr = f->base + at,
				 .len = len,
				 .key = f->key };
	struct fi_msg_rma msg = { .msg_iov = &iov,
				  .desc = &f->desc,
				  .iov_count = 1,
				  .addr = f->peer,
				  .rma_iov = &to,
				  .rma_iov_count = 1,
				  .context = context };

	switch (how) {
	case BENCH_WRITE_TO_PLACE:
		return fi_writemsg(f->ep, &msg, FI_DELIVERY_COMPLETE);
	case BENCH_WRITE_TELL:
		if (inject)
			return fi_inject_writedata(f->ep, buf, len, 0, f->peer,
						   to.addr, f->key);
		return fi_writedata(f->ep, buf, len, f->desc, 0, f->peer,
				    to.addr, f->key, context);
	default:
		return fi_write(f->ep, buf, len, f->desc, f->peer, to.addr,
				f->key, context);
	}
}

static void fab_write(struct bench_subject *s, const void *buf, size_t len,
		      size_t at, unsigned slot, enum bench_write how)
{
	struct fab *f = s->priv;
	int inject = how == BENCH_WRITE_TELL && bench_short(s, len);
	ssize_t ret;

	while ((ret = write_once(f, buf, len, at, &f->tx_ctx[slot], how,
				 inject)) == -FI_EAGAIN)
		look(f);
	bench_fab_check("fi_write", ret);
	f->sends += !inject;
}

static void fab_wait_written(struct bench_subject *s)
{
	struct fab *f = s->priv;

	while (!f->written)
		look(f);
	f->written--;
}

static void fab_read(struct bench_subject *s, void *buf, size_t len, size_t at,
		     unsigned slot)
{
	struct fab *f = s->priv;
	ssize_t ret;

	while ((ret = fi_read(f->ep, buf, len, f->desc, f->peer, f->base + at,
			      f->key, &f->tx_ctx[slot])) == -FI_EAGAIN)
		look(f);
	bench_fab_check("fi_read", ret);
	f->sends++;
}

static void fab_fetch_add(struct bench_subject *s, size_t at, unsigned slot)
{
	struct fab *f = s->priv;
	uint64_t one = 1;
	ssize_t ret;

	while ((ret = fi_fetch_atomic(f->ep, &one, 1, f->desc, &f->result,
				      f->desc, f->peer, f->base + at, f->key,
				      FI_UINT64, FI_SUM, &f->tx_ctx[slot])) ==
	       -FI_EAGAIN)
		look(f);
	bench_fab_check("fi_fetch_atomic", ret);
	f->sends++;
}

static void fab_close(struct bench_subject *s)
{
	struct fab *f = s->priv;

	bench_set_close(&f->set);
	free(f);
}

static const struct bench_ops fab_ops = {
	.recv = fab_recv,
	.send = fab_send,
	.inject = fab_inject,
	.wait_recv = fab_wait_recv,
	.wait_send = fab_wait_send,
	.sleep_recv = fab_sleep_recv,
	.poll = fab_poll,
	.write = fab_write,
	.read = fab_read,
	.fetch_add = fab_fetch_add,
	.wait_written = fab_wait_written,
	.begin = bench_extra_begin,
	.prepare = bench_extra_prepare,
	.work = bench_extra_work,
	.close = fab_close,
};

/* One provider of shared memory has names of its own, and no node. */
static int names_itself(const char *provider)
{
	return !strcmp(provider, "shm") || !strcmp(provider, "sm2") ||
	       !strncmp(provider, "lnx", 3);
}

/* fab_ops without what a provider of tagged messages only cannot do. */
static struct bench_ops tagged_ops;

static void use_tagged_ops(struct bench_subject *s)
{
	tagged_ops = fab_ops;
	tagged_ops.write = NULL;
	tagged_ops.read = NULL;
	tagged_ops.fetch_add = NULL;
	s->ops = &tagged_ops;
}

struct fi_info *bench_fab_info(const char *provider, uint64_t caps)
{
	const char *node = names_itself(provider) ? NULL : "127.0.0.1";
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = getenv("BENCH_SAFE") ? FI_THREAD_SAFE :
							       FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
				      FI_MR_ALLOCATED | FI_MR_LOCAL;
	hints->fabric_attr->prov_name = strdup(provider);
	fi_getinfo(FI_VERSION(2, 0), node, NULL, node ? FI_SOURCE : 0, hints,
		   &info);
	fi_freeinfo(hints);
	return info;
}

static void exchange(struct bench_subject *s, struct fab *f)
{
	struct bench_ctl *c = s->ctl;
	size_t len = BENCH_NAME_BYTES;

	bench_fab_check("fi_getname",
			fi_getname(&f->ep->fid, c->name[s->side], &len));
	c->name_bytes[s->side] = (uint32_t)len;
	if (f->set.mr)
		c->key[s->side] = fi_mr_key(f->set.mr);
	bench_ctl_meet(c, s->side);
	if (fi_av_insert(f->set.av, c->name[!s->side], 1, &f->peer, 0, NULL) !=
	    1)
		bench_die("fi_av_insert", EINVAL);
	f->key = c->key[!s->side];
	if (f->set.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		f->base = c->addr[!s->side];
}

static void open_region(struct bench_subject *s, struct fab *f)
{
	struct iovec iov = { .iov_base = s->tx,
			     .iov_len = 2 * (size_t)BENCH_BUFFER_BYTES };
	struct fi_mr_attr attr = { .mr_iov = &iov,
				   .iov_count = 1,
				   .access = FI_SEND | FI_RECV | FI_READ |
					     FI_WRITE | FI_REMOTE_READ |
					     FI_REMOTE_WRITE,
				   .requested_key = (uint64_t)s->side + 1 };

	/* lnx has no fi_mr_reg(). */
	bench_fab_check("fi_mr_regattr",
			fi_mr_regattr(f->set.domain, &attr, 0, &f->set.mr));
	if (f->set.info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		bench_fab_check("fi_mr_bind",
				fi_mr_bind(f->set.mr, &f->ep->fid, 0));
		bench_fab_check("fi_mr_enable", fi_mr_enable(f->set.mr));
	}
	if (f->set.info->domain_attr->mr_mode & FI_MR_LOCAL)
		f->desc = fi_mr_desc(f->set.mr);
}

/* The wait object that BENCH_SLEEPS names; FI_WAIT_NONE without it. */
static enum fi_wait_obj wait_object(void)
{
	const char *name = getenv("BENCH_SLEEPS");

	if (!name)
		return FI_WAIT_NONE;
	return !strcmp(name, "fd")    ? FI_WAIT_FD :
	       !strcmp(name, "cond")  ? FI_WAIT_MUTEX_COND :
	       !strcmp(name, "yield") ? FI_WAIT_YIELD :
					FI_WAIT_UNSPEC;
}

/*
 * Get the info of @provider for all that the works need, else for tagged messages
 * alone, for which *@rma becomes 0.
 */
static struct fi_info *choose(const char *provider, int *rma)
{
	const uint64_t tagged = FI_TAGGED | FI_DIRECTED_RECV;
	struct fi_info *info = NULL;

	*rma = 1;
	if (!getenv("BENCH_TAGGED"))
		info = bench_fab_info(provider, tagged | FI_RMA | FI_ATOMIC);
	if (info)
		return info;
	*rma = 0;
	info = bench_fab_info(provider, tagged);
	return info ? info : bench_fab_info(provider, FI_TAGGED);
}

void bench_fab_open(struct bench_subject *s, const char *provider)
{
	struct fab *f = calloc(1, sizeof(*f));
	int rma;

	s->priv = f;
	s->ops = &fab_ops;
	s->provider = provider;
	bench_set_open(&f->set, choose(provider, &rma), wait_object(), 1);
	f->cq = f->set.cq;
	f->ep = f->set.ep[0];
	s->inject_most = f->set.info->tx_attr->inject_size;
	if (rma)
		open_region(s, f);
	else
		use_tagged_ops(s);
	exchange(s, f);
}
