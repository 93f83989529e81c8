/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member that drives the collective operations of a provider of libfabric; see
 * coll.h. It gives its processor away each time that its queue is empty, since
 * there are fewer processors than members.
 */
#include "bench/coll.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>

struct fab {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t root;
	struct fi_context context;
};

static void ok(const struct coll_member *m, const char *what, ssize_t ret)
{
	if (ret)
		coll_die(m->seat, what, fi_strerror((int)-ret));
}

static void progress(struct coll_member *m)
{
	struct fi_cq_tagged_entry e;
	struct fab *f = m->priv;

	(void)!fi_cq_read(f->cq, &e, 1);
}

/* Wait for the completion of the one operation that is under way. */
static void finish(const struct coll_member *m)
{
	struct fi_cq_err_entry x = { 0 };
	struct fi_cq_tagged_entry e;
	struct fab *f = m->priv;
	ssize_t n;

	while ((n = fi_cq_read(f->cq, &e, 1)) == -FI_EAGAIN)
		sched_yield();
	if (n == -FI_EAVAIL && fi_cq_readerr(f->cq, &x, 0) == 1)
		n = -x.err;
	ok(m, "operation", n == 1 ? 0 : n);
}

static ssize_t begin(const struct coll_member *m)
{
	struct fab *f = m->priv;
	size_t n = m->seat->bytes / 8, block = n / COLL_MEMBERS;
	fi_addr_t all = fi_mc_addr(f->mc);

	switch (m->seat->kind) {
	case COLL_BARRIER:
		return fi_barrier(f->ep, all, &f->context);
	case COLL_BROADCAST:
		return fi_broadcast(f->ep, m->out, n, NULL, all, f->root,
				    FI_UINT64, 0, &f->context);
	case COLL_ALLREDUCE:
		return fi_allreduce(f->ep, m->in, n, NULL, m->out, NULL, all,
				    FI_UINT64, FI_SUM, 0, &f->context);
	case COLL_ALLGATHER:
		return fi_allgather(f->ep, m->in, block, NULL, m->out, NULL,
				    all, FI_UINT64, 0, &f->context);
	default:
		return fi_alltoall(f->ep, m->in, block, NULL, m->out, NULL, all,
				   FI_UINT64, 0, &f->context);
	}
}

static int run(struct coll_member *m)
{
	ssize_t ret;

	while ((ret = begin(m)) == -FI_EAGAIN)
		progress(m);
	if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP)
		return -1;
	ok(m, "call", ret);
	finish(m);
	return 0;
}

static struct fi_info *ask(const struct coll_member *m, const char *provider,
			   const char *node)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;

	hints->caps = FI_MSG | FI_TAGGED | FI_COLLECTIVE;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
				      FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(provider);
	ok(m, "fi_getinfo",
	   fi_getinfo(FI_VERSION(2, 1), node, NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	return info;
}

static void open_all(const struct coll_member *m, struct fi_info *info)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_eq_attr eq = { 0 };
	struct fab *f = m->priv;

	ok(m, "fi_fabric", fi_fabric(info->fabric_attr, &f->fabric, NULL));
	ok(m, "fi_domain", fi_domain(f->fabric, info, &f->domain, NULL));
	ok(m, "fi_eq_open", fi_eq_open(f->fabric, &eq, &f->eq, NULL));
	ok(m, "fi_cq_open", fi_cq_open(f->domain, &cq, &f->cq, NULL));
	ok(m, "fi_av_open", fi_av_open(f->domain, &av, &f->av, NULL));
	ok(m, "fi_endpoint", fi_endpoint(f->domain, info, &f->ep, NULL));
	ok(m, "fi_ep_bind", fi_ep_bind(f->ep, &f->eq->fid, 0));
	ok(m, "fi_ep_bind",
	   fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV));
	ok(m, "fi_ep_bind", fi_ep_bind(f->ep, &f->av->fid, 0));
	ok(m, "fi_enable", fi_enable(f->ep));
}

/* All members tell each other their addresses; index i is that of member i. */
static void meet(struct coll_member *m)
{
	struct coll_seat *s = m->seat;
	struct fab *f = m->priv;
	size_t n = COLL_NAME_BYTES;
	fi_addr_t addr;
	uint32_t i;

	ok(m, "fi_getname", fi_getname(&f->ep->fid, s->name[m->rank], &n));
	s->name_bytes[m->rank] = (uint32_t)n;
	__atomic_add_fetch(&s->known, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&s->known, __ATOMIC_ACQUIRE) < COLL_MEMBERS)
		sched_yield();
	for (i = 0; i < COLL_MEMBERS; i++) {
		if (fi_av_insert(f->av, s->name[i], 1, &addr, 0, NULL) != 1)
			coll_die(s, "fi_av_insert", "not inserted");
		if (!i)
			f->root = addr;
	}
}

static void join(struct coll_member *m)
{
	struct fi_av_set_attr attr = {
		.count = COLL_MEMBERS,
		.start_addr = 0,
		.end_addr = COLL_MEMBERS - 1,
		.stride = 1,
	};
	struct fab *f = m->priv;
	struct fi_eq_entry e;
	fi_addr_t world;
	uint32_t type;
	ssize_t n;

	ok(m, "fi_av_set", fi_av_set(f->av, &attr, &f->set, NULL));
	ok(m, "fi_av_set_addr", fi_av_set_addr(f->set, &world));
	ok(m, "fi_join_collective",
	   fi_join_collective(f->ep, world, f->set, 0, &f->mc, NULL));
	while ((n = fi_eq_read(f->eq, &type, &e, sizeof(e), 0)) == -FI_EAGAIN) {
		progress(m);
		sched_yield();
	}
	ok(m, "join", n < 0 ? n : 0);
}

void coll_fab(struct coll_seat *seat, uint32_t rank, const char *provider,
	      const char *node)
{
	struct fab f = { 0 };
	struct coll_member m = { .seat = seat,
				 .rank = rank,
				 .run = run,
				 .poll = progress,
				 .priv = &f };
	struct fi_info *info = ask(&m, provider, node);

	open_all(&m, info);
	meet(&m);
	join(&m);
	coll_serve(&m);
	fi_close(&f.mc->fid);
	fi_close(&f.set->fid);
	fi_close(&f.ep->fid);
	fi_close(&f.av->fid);
	fi_close(&f.cq->fid);
	fi_close(&f.eq->fid);
	fi_close(&f.domain->fid);
	fi_close(&f.fabric->fid);
	fi_freeinfo(info);
}
