/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues and counters of the owner of liar_owner.h. Lock: see there. */
#include "tests/contract/liar_owner.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

/* ---- completion queues ---------------------------------------------------- */

static struct lo_cq *of_cq(struct fid_peer_cq *lent)
{
	return lent->fid.context;
}

void lo_cq_add(struct lo_cq *cq, const struct fi_cq_err_entry *entry)
{
	struct lo_end *e = calloc(1, sizeof(*e)), **at = &cq->ends;

	if (!e)
		abort();
	e->entry = *entry;
	while (*at)
		at = &(*at)->next;
	*at = e;
}

static ssize_t cq_write(struct fid_peer_cq *lent, void *context, uint64_t flags,
			size_t len, void *buf, uint64_t data, uint64_t tag,
			fi_addr_t src)
{
	const struct fi_cq_err_entry e = {
		.op_context = context,
		.flags = flags,
		.len = len,
		.buf = buf,
		.data = lo_lies("no data") ? 0 : data,
		.tag = tag,
		.src_addr = lo_lies("sources are wrong") ? 5 : src,
	};

	lo_cq_add(of_cq(lent), &e);
	return 0;
}

static ssize_t cq_writeerr(struct fid_peer_cq *lent,
			   const struct fi_cq_err_entry *entry)
{
	struct fi_cq_err_entry e = *entry;

	if (lo_lies("no rest"))
		e.olen = 0;
	if (lo_lies("errors are completions"))
		e.err = 0;
	lo_cq_add(of_cq(lent), &e);
	return 0;
}

static struct fi_ops_cq_owner cq_owner = { .size = sizeof(cq_owner),
					   .write = cq_write,
					   .writeerr = cq_writeerr };

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count,
			   fi_addr_t *from)
{
	struct lo_cq *cq = (struct lo_cq *)fid;
	struct fi_cq_tagged_entry bait, *out = buf;
	struct lo_end *e;

	fi_cq_read(cq->peer, lo_lies("reads with a buffer") ? &bait : NULL, 0);
	e = cq->ends;
	if (!e)
		return -FI_EAGAIN;
	if (e->entry.err)
		return -FI_EAVAIL;
	*out = (struct fi_cq_tagged_entry){ e->entry.op_context, e->entry.flags,
					    e->entry.len,	 e->entry.buf,
					    e->entry.data,	 e->entry.tag };
	*from = e->entry.src_addr;
	cq->ends = e->next;
	free(e);
	return 1;
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf,
			  uint64_t flags)
{
	struct lo_cq *cq = (struct lo_cq *)fid;
	struct lo_end *e = cq->ends;

	if (!e || !e->entry.err)
		return -FI_EAGAIN;
	*buf = e->entry;
	cq->ends = e->next;
	free(e);
	return 1;
}

static struct fi_ops_cq cq_ops = { .size = sizeof(cq_ops),
				   .readfrom = cq_readfrom,
				   .readerr = cq_readerr };

static int cq_close(struct fid *fid)
{
	struct lo_cq *cq = (struct lo_cq *)fid;

	if (lo_lies("queue does not close"))
		return -FI_EBUSY;
	if (lo_lies("changes what it lends"))
		cq->lent.owner_ops = NULL;
	if (cq->peer)
		fi_close(&cq->peer->fid);
	free(cq);
	return 0;
}

static struct fi_ops cq_fi_ops = { .size = sizeof(cq_fi_ops),
				   .close = cq_close };

int lo_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
	       struct fid_cq **out, void *context)
{
	static struct fi_ops_cq_owner half;
	struct lo_cq *cq = calloc(1, sizeof(*cq));
	struct fi_peer_cq_context lent = { sizeof(lent), &cq->lent };
	struct fi_cq_attr peer = { .flags = FI_PEER,
				   .format = FI_CQ_FORMAT_TAGGED,
				   .wait_obj = FI_WAIT_NONE };
	int ret;

	half = cq_owner;
	half.writeerr = NULL;
	cq->lent.fid.fclass =
		lo_lies("queue without a class") ? 0 : FI_CLASS_PEER_CQ;
	cq->lent.fid.context = cq;
	cq->lent.owner_ops = lo_lies("queue without writeerr") ? &half :
								 &cq_owner;
	if (lo_lies("queue without a size"))
		lent.size = 0;
	if (lo_lies("queue without FI_PEER"))
		peer.flags = 0;
	ret = lo_refused(fi_cq_open(((struct lo_domain *)domain)->peer, &peer,
				    &cq->peer, &lent));
	if (ret) {
		free(cq);
		return ret;
	}
	cq->fid = (struct fid_cq){ { FI_CLASS_CQ, context, &cq_fi_ops },
				   &cq_ops };
	*out = &cq->fid;
	return 0;
}

/* ---- counters ------------------------------------------------------------- */

static void cntr_inc(struct fid_peer_cntr *lent)
{
	struct lo_cntr *c = lent->fid.context;

	c->value += lo_lies("counts twice") ? 2 : 1;
}

static void cntr_incerr(struct fid_peer_cntr *lent)
{
	struct lo_cntr *c = lent->fid.context;

	if (lo_lies("errors are counted as values"))
		c->value++;
	else
		c->errors++;
}

static struct fi_ops_cntr_owner cntr_owner = { .size = sizeof(cntr_owner),
					       .inc = cntr_inc,
					       .incerr = cntr_incerr };

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct lo_cntr *c = (struct lo_cntr *)fid;

	fi_cntr_read(c->peer);
	return c->value;
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	return ((struct lo_cntr *)fid)->errors;
}

static struct fi_ops_cntr cntr_ops = { .size = sizeof(cntr_ops),
				       .read = cntr_read,
				       .readerr = cntr_readerr };

static int cntr_close(struct fid *fid)
{
	struct lo_cntr *c = (struct lo_cntr *)fid;

	fi_close(&c->peer->fid);
	free(c);
	return 0;
}

static struct fi_ops cntr_fi_ops = { .size = sizeof(cntr_fi_ops),
				     .close = cntr_close };

int lo_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		 struct fid_cntr **out, void *context)
{
	static struct fi_ops_cntr_owner half = { .size = sizeof(half),
						 .inc = cntr_inc };
	struct lo_cntr *c = calloc(1, sizeof(*c));
	struct fi_peer_cntr_context lent = { sizeof(lent), &c->lent };
	struct fi_cntr_attr peer = { .events = FI_CNTR_EVENTS_COMP,
				     .wait_obj = FI_WAIT_NONE,
				     .flags = FI_PEER };
	int ret;

	c->lent.fid.fclass = FI_CLASS_PEER_CNTR;
	c->lent.fid.context = c;
	c->lent.owner_ops = lo_lies("counter without incerr") ? &half :
								&cntr_owner;
	ret = lo_refused(fi_cntr_open(((struct lo_domain *)domain)->peer, &peer,
				      &c->peer, &lent));
	if (ret) {
		free(c);
		return ret;
	}
	c->fid = (struct fid_cntr){ { FI_CLASS_CNTR, context, &cntr_fi_ops },
				    &cntr_ops };
	*out = &c->fid;
	return 0;
}
