/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of completions, counters, events and the domain that are lent; the queue
 * of receives is in lent_srx.c.
 *
 * No lock: a call from another thread than the one that calls the provider is a
 * breach.
 */
#include "kit/lent.h"

#include <pthread.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "kit/rule.h"

#define container(ptr, type, member)                                           \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

static pthread_t self;
static size_t events;

void kit_check_call(const char *call, const char *closed)
{
	if (!pthread_equal(self, pthread_self()))
		kit_breach("%s was called from another thread", call);
	if (closed)
		kit_breach("%s was called behind fi_close of the %s", call,
			   closed);
}

/* ---- completions ---------------------------------------------------------- */

/* A receive ends while the peer has its entry. */
static void check_recv(const struct fi_cq_err_entry *end)
{
	struct kit_op *op = kit_op_of(end->op_context);
	struct kit_entry *e;

	if (!op || !op->is_recv)
		return;
	e = kit_entry_of(op);
	if (!e && !op->ended)
		kit_breach("the completion of a receive came when the peer did "
			   "not have its entry");
	else if (e)
		e->ends++;
}

static ssize_t end(struct fid_peer_cq *fid, const struct fi_cq_err_entry *e,
		   const char *call)
{
	const struct kit_queue *q = container(fid, struct kit_queue, fid);

	kit_check_call(call, q->closed);
	check_recv(e);
	kit_op_end(q, e);
	return 0;
}

static ssize_t cq_write(struct fid_peer_cq *cq, void *context, uint64_t flags,
			size_t len, void *buf, uint64_t data, uint64_t tag,
			fi_addr_t source)
{
	const struct fi_cq_err_entry e = {
		.op_context = context,
		.flags = flags,
		.len = len,
		.buf = buf,
		.data = data,
		.tag = tag,
		.src_addr = source,
	};

	return end(cq, &e, "write");
}

static ssize_t cq_writeerr(struct fid_peer_cq *cq,
			   const struct fi_cq_err_entry *e)
{
	if (e->err <= 0)
		kit_breach("writeerr has the error number %d", e->err);
	return end(cq, e, "writeerr");
}

static const struct fi_ops_cq_owner cq_original = { .size = sizeof(cq_original),
						    .write = cq_write,
						    .writeerr = cq_writeerr };
static struct fi_ops_cq_owner cq_ops;

void kit_queue_init(struct kit_queue *q)
{
	self = pthread_self();
	memset(q, 0, sizeof(*q));
	cq_ops = cq_original;
	q->fid.fid.fclass = FI_CLASS_PEER_CQ;
	q->fid.owner_ops = &cq_ops;
}

int kit_lent_changed(const struct kit_queue *q, const struct kit_srx *srx)
{
	return memcmp(&cq_ops, &cq_original, sizeof(cq_ops)) ||
	       q->fid.owner_ops != &cq_ops ||
	       q->fid.fid.fclass != FI_CLASS_PEER_CQ || kit_srx_changed(srx);
}

/* ---- counters ------------------------------------------------------------- */

static void cntr_inc(struct fid_peer_cntr *fid)
{
	struct kit_count *c = container(fid, struct kit_count, fid);

	kit_check_call("inc", c->closed);
	c->value++;
}

static void cntr_incerr(struct fid_peer_cntr *fid)
{
	struct kit_count *c = container(fid, struct kit_count, fid);

	kit_check_call("incerr", c->closed);
	c->errors++;
}

static struct fi_ops_cntr_owner cntr_ops = { .size = sizeof(cntr_ops),
					     .inc = cntr_inc,
					     .incerr = cntr_incerr };

void kit_count_init(struct kit_count *c)
{
	memset(c, 0, sizeof(*c));
	c->fid.fid.fclass = FI_CLASS_PEER_CNTR;
	c->fid.owner_ops = &cntr_ops;
}

/* ---- events and the domain ------------------------------------------------ */

static ssize_t eq_write(struct fid_eq *eq, uint32_t event, const void *buf,
			size_t len, uint64_t flags)
{
	kit_check_call("fi_eq_write", NULL);
	events++;
	return (ssize_t)len;
}

size_t kit_lent_events(void)
{
	return events;
}

static int closes(struct fid *fid)
{
	return 0;
}

static struct fi_ops fi_ops = { .size = sizeof(fi_ops), .close = closes };

struct fid_eq *kit_lent_eq(void)
{
	static struct fi_ops_eq ops = { .size = sizeof(ops),
					.write = eq_write };
	static struct fid_eq eq = {
		.fid = { .fclass = FI_CLASS_EQ, .ops = &fi_ops }, .ops = &ops
	};

	return &eq;
}

/* Operations on memory, which the peers that this kit knows do not need. */
static int no_query(struct fid_domain *domain, enum fi_datatype datatype,
		    enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
{
	return -FI_EOPNOTSUPP;
}

struct fid_domain *kit_lent_domain(void)
{
	static struct fi_ops_domain ops = { .size = sizeof(ops),
					    .query_atomic = no_query };
	static struct fi_ops_mr mr = { .size = sizeof(mr) };
	static struct fid_domain domain = { .fid = { .fclass = FI_CLASS_DOMAIN,
						     .ops = &fi_ops },
					    .ops = &ops,
					    .mr = &mr };

	return &domain;
}
