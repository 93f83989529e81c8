/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The endpoint of tandem-perf, over any provider: FI_EP_RDM, one queue, one region
 * over both buffers, FI_THREAD_DOMAIN.
 *
 * Invariant: tx_pending and rx_pending count the operations that were posted and
 * have not ended.
 * No lock: one thread.
 */
#include "tools/perf_fab.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "fabtests/demo_util.h"
#include "fi_ext_tandem.h"

enum {
	TAG = 1,
	READ_MOST = 8,
	LINE_BYTES = 64,     /* slots begin at a multiple */
	PAGE_BYTES = 4096,   /* buffers */
	IDLE_READS = 1 << 10 /* without a look at the other side */
};

static int failed(struct perf *p, const char *what, ssize_t ret)
{
	return perf_control_fail(&p->c, "%s: %s", what, fi_strerror((int)-ret));
}

/* ---- opening ------------------------------------------------------------- */

static uint64_t caps_of(enum perf_pattern pattern)
{
	return pattern == PERF_TAGGED  ? FI_TAGGED :
	       pattern == PERF_MESSAGE ? FI_MSG :
	       pattern == PERF_ATOMIC  ? FI_MSG | FI_ATOMIC :
					 FI_MSG | FI_RMA;
}

static int is_one_sided(enum perf_pattern pattern)
{
	return pattern >= PERF_WRITE;
}

static struct fi_info *make_hints(const struct perf *p)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = caps_of(p->job.pattern);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
				      FI_MR_ALLOCATED | FI_MR_LOCAL;
	if (p->o->domain)
		hints->domain_attr->name = strdup(p->o->domain);
	if (p->job.check && !is_one_sided(p->job.pattern)) {
		/* The next message to come is the next one that was sent. */
		hints->tx_attr->msg_order = FI_ORDER_SAS;
		hints->rx_attr->msg_order = FI_ORDER_SAS;
	}
	/* A write has ended when it is in the memory of the other side. */
	if (p->job.pattern == PERF_WRITE)
		hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	hints->fabric_attr->prov_name = strdup(p->job.provider);
	return hints;
}

static int get_from(struct fi_info *hints, const char *node,
		    struct fi_info **info)
{
	return fi_getinfo(FI_VERSION(2, 1), node, NULL, node ? FI_SOURCE : 0,
			  hints, info);
}

/*
 * The address of the control connection is one that the other side reaches: with
 * it as the source, both ends of it measure the network that it uses.
 */
static int choose_source(const struct perf *p, struct fi_info *hints,
			 struct fi_info **info)
{
	char node[128];
	struct fi_info *there = NULL;
	int ret;

	if (p->o->address)
		return get_from(hints, p->o->address, info);
	ret = get_from(hints, NULL, info);
	if (ret || p->o->domain ||
	    ((*info)->addr_format != FI_SOCKADDR_IN &&
	     (*info)->addr_format != FI_SOCKADDR_IN6 &&
	     (*info)->addr_format != FI_SOCKADDR))
		return ret;
	perf_control_address(&p->c, node, sizeof(node));
	if (*node && !get_from(hints, node, &there)) {
		fi_freeinfo(*info);
		*info = there;
	}
	return 0;
}

/* Returns 0, 1 or -1 as perf_fab_open(). */
static int no_info(struct perf *p, int ret)
{
	struct fi_info *hints, *any = NULL;
	int is_there;

	if (ret != -FI_ENODATA)
		return failed(p, "fi_getinfo", ret);
	hints = fi_allocinfo();
	if (!hints)
		return failed(p, "fi_allocinfo", -FI_ENOMEM);
	hints->fabric_attr->prov_name = strdup(p->job.provider);
	is_there = !get_from(hints, NULL, &any);
	fi_freeinfo(hints);
	if (any)
		fi_freeinfo(any);
	if (!is_there)
		return perf_control_fail(&p->c,
					 "libfabric finds no provider %s here: "
					 "fi_info -l lists those that it finds",
					 p->job.provider);
	if (p->o->domain || p->o->address)
		return perf_control_fail(&p->c,
					 "%s offers nothing at %s: fi_info -p "
					 "%s lists its domains",
					 p->job.provider,
					 p->o->domain ? p->o->domain :
							p->o->address,
					 p->job.provider);
	perf_control_fail(&p->c, "%s does not offer this", p->job.provider);
	return 1;
}

static int get_info(struct perf *p)
{
	struct fi_info *hints = make_hints(p);
	int ret;

	if (!hints)
		return failed(p, "fi_allocinfo", -FI_ENOMEM);
	ret = choose_source(p, hints, &p->at.info);
	if (ret && hints->tx_attr->op_flags) {
		hints->tx_attr->op_flags = 0;
		ret = choose_source(p, hints, &p->at.info);
	}
	fi_freeinfo(hints);
	if (ret)
		return no_info(p, ret);
	if (p->job.largest > p->at.info->ep_attr->max_msg_size)
		return perf_control_fail(&p->c,
					 "%s sends at most %zu bytes at once",
					 p->job.provider,
					 p->at.info->ep_attr->max_msg_size);
	if (!is_one_sided(p->job.pattern) &&
	    p->job.window > p->at.info->rx_attr->size)
		return perf_control_fail(&p->c,
					 "%s takes %zu receives at once: "
					 "--window=%zu",
					 p->job.provider,
					 p->at.info->rx_attr->size,
					 p->at.info->rx_attr->size);
	return 0;
}

static size_t stride_of(uint64_t bytes)
{
	return (bytes / LINE_BYTES + 1) * LINE_BYTES;
}

int perf_fab_divide(struct perf *p, uint64_t bytes, unsigned window)
{
	p->stride = stride_of(bytes);
	p->slots = p->job.check ? window : 1;
	if (window <= p->job.window && bytes <= p->job.largest &&
	    p->slots * p->stride <= p->area_bytes)
		return 0;
	return perf_control_fail(&p->c, "no room for %u of %llu bytes", window,
				 (unsigned long long)bytes);
}

static int make_buffers(struct perf *p)
{
	const size_t stride = stride_of(p->job.largest);
	const size_t n = p->job.window;
	size_t room = n * PERF_ATOMIC_BYTES;

	if (p->job.check)
		room = n * stride < PERF_CHECKED_BYTES ? n * stride :
							 PERF_CHECKED_BYTES;
	if (room < stride)
		room = stride;
	p->area_bytes = (room + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	p->tx = aligned_alloc(PAGE_BYTES, 2 * p->area_bytes);
	p->sends = calloc(n, sizeof(*p->sends));
	p->receives = calloc(n, sizeof(*p->receives));
	if (!p->tx || !p->sends || !p->receives)
		return perf_control_fail(&p->c,
					 "no memory for two buffers of %zu "
					 "bytes",
					 p->area_bytes);
	memset(p->tx, 0, 2 * p->area_bytes);
	p->rx = p->tx + p->area_bytes;
	return perf_fab_divide(p, 0, 1);
}

static int open_region(struct perf *p)
{
	const uint64_t mode = p->at.info->domain_attr->mr_mode;
	uint64_t access = FI_SEND | FI_RECV;
	int ret;

	if (is_one_sided(p->job.pattern))
		access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	else if (!(mode & FI_MR_LOCAL))
		return 0;
	ret = fi_mr_reg(p->at.domain, p->tx, 2 * p->area_bytes, access, 0,
			p->o->host ? 1 : 2, 0, &p->mr, NULL);
	if (ret)
		return failed(p, "fi_mr_reg", ret);
	if (mode & FI_MR_LOCAL)
		p->desc = fi_mr_desc(p->mr);
	return 0;
}

static int has_fetch_add(struct perf *p)
{
	size_t count = 0;

	return p->job.pattern != PERF_ATOMIC ||
	       (!fi_fetch_atomicvalid(p->at.ep, FI_UINT64, FI_SUM, &count) &&
		count);
}

int perf_fab_open(struct perf *p)
{
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_TAGGED,
				    .size = 2 * (size_t)p->job.window + 64,
				    .wait_obj = FI_WAIT_NONE };
	const char *step;
	int ret = get_info(p);

	if (ret)
		return ret;
	ret = tool_endpoint_open(&p->at, &queue, &step);
	if (ret)
		return failed(p, step, ret);
	if (!has_fetch_add(p)) {
		perf_control_fail(&p->c, "%s does not offer this",
				  p->job.provider);
		return 1;
	}
	if (make_buffers(p))
		return -1;
	return open_region(p);
}

void perf_fab_close(struct perf *p)
{
	/* The endpoint first: until then the provider may use the buffers. */
	if (p->at.ep)
		fi_close(&p->at.ep->fid);
	p->at.ep = NULL;
	if (p->mr)
		fi_close(&p->mr->fid);
	p->mr = NULL;
	tool_endpoint_close(&p->at);
	free(p->tx);
	free(p->sends);
	free(p->receives);
	p->tx = p->rx = NULL;
	p->sends = p->receives = NULL;
	p->desc = NULL;
	p->tx_pending = p->rx_pending = 0;
	p->idle = p->added = 0;
}

int perf_fab_describe(struct perf *p, char *text, size_t bytes)
{
	unsigned char name[PERF_NAME_BYTES];
	uint64_t base = p->area_bytes; /* of the region */
	size_t len = sizeof(name), i, n = 0;
	int ret = fi_getname(&p->at.ep->fid, name, &len);

	if (ret)
		return failed(p, "fi_getname", ret);
	if (p->at.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		base = (uintptr_t)p->rx;
	for (i = 0; i < len && n + 2 < bytes; i++, n += 2)
		snprintf(text + n, bytes - n, "%02x", name[i]);
	snprintf(text + n, bytes - n, " %llx %llx",
		 (unsigned long long)(p->mr ? fi_mr_key(p->mr) : 0),
		 (unsigned long long)base);
	return 0;
}

int perf_fab_meet(struct perf *p, const char *text)
{
	unsigned char name[PERF_NAME_BYTES] = { 0 };
	char hex[2 * PERF_NAME_BYTES + 1];
	unsigned long long key, base;
	size_t i, n;
	unsigned byte;

	if (sscanf(text, "%1024s %llx %llx", hex, &key, &base) != 3)
		return perf_control_fail(&p->c, "%s says no address",
					 p->c.peer);
	n = strlen(hex) / 2;
	for (i = 0; i < n; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return perf_control_fail(&p->c, "%s says no address",
						 p->c.peer);
		name[i] = (unsigned char)byte;
	}
	p->key = key;
	p->base = base;
	if (fi_av_insert(p->at.av, name, 1, &p->peer, 0, NULL) != 1)
		return perf_control_fail(&p->c, "fi_av_insert: refused");
	return 0;
}

/* ---- the queue ----------------------------------------------------------- */

static int queue_failed(struct perf *p, ssize_t ret)
{
	struct fi_cq_err_entry e = { 0 };
	char why[128] = "";

	if (ret != -FI_EAVAIL || fi_cq_readerr(p->at.cq, &e, 0) < 0)
		return failed(p, "fi_cq_read", ret);
	fi_cq_strerror(p->at.cq, e.prov_errno, e.err_data, why, sizeof(why));
	return perf_control_fail(&p->c, "an operation failed: %s (%s)",
				 fi_strerror(e.err), why);
}

int perf_is_right(struct perf *p, unsigned slot, uint64_t len, uint64_t seed)
{
	return demo_pattern_check(p->rx + slot * p->stride, len, seed) == len;
}

static int check_op(struct perf *p, const struct perf_op *op, uint64_t len)
{
	size_t at = demo_pattern_check(op->buf, op->len, op->seed);

	if (at == op->len && len == op->len)
		return 0;
	return perf_control_fail(&p->c,
				 "wrong data: %llu of %llu bytes came, the "
				 "first wrong one is byte %zu",
				 (unsigned long long)len,
				 (unsigned long long)op->len, at);
}

/* Returns 0 or -1. */
static inline int take(struct perf *p, const struct fi_cq_tagged_entry *e)
{
	const struct perf_op *op = e->op_context;
	int is_receive = op >= p->receives && op < p->receives + p->job.window;

	if (is_receive)
		p->rx_pending--;
	else
		p->tx_pending--;
	if (op->seed)
		return check_op(p, op, is_receive ? e->len : op->len);
	return 0;
}

/* Returns how many operations have ended, or -1. */
static inline int look(struct perf *p)
{
	struct fi_cq_tagged_entry e[READ_MOST];
	ssize_t n = fi_cq_read(p->at.cq, e, READ_MOST), i;

	if (n == -FI_EAGAIN)
		return 0;
	if (n < 0)
		return queue_failed(p, n);
	for (i = 0; i < n; i++) {
		if (take(p, &e[i]))
			return -1;
	}
	p->idle = 0;
	return (int)n;
}

/* Nothing has ended: now and then, see to the other side. Returns 0 or -1. */
static int wait_more(struct perf *p)
{
	uint64_t now;

	if (++p->idle % IDLE_READS)
		return 0;
	sched_yield();
	now = demo_now_ns();
	if (p->idle == IDLE_READS)
		p->idle_since_ns = now;
	if (now - p->idle_since_ns > p->o->timeout_s * UINT64_C(1000000000))
		return perf_control_fail(&p->c,
					 "no operation has ended for %u s",
					 p->o->timeout_s);
	return perf_control_check(&p->c);
}

static inline int wait_until(struct perf *p, const unsigned *pending,
			     unsigned left)
{
	int n;

	while (*pending > left) {
		n = look(p);
		if (n < 0 || (!n && wait_more(p)))
			return -1;
	}
	return 0;
}

int perf_wait_sent(struct perf *p, unsigned left)
{
	return wait_until(p, &p->tx_pending, left);
}

int perf_wait_received(struct perf *p, unsigned left)
{
	return wait_until(p, &p->rx_pending, left);
}

int perf_progress(struct perf *p)
{
	return look(p) < 0 ? -1 : 0;
}

int perf_idle_progress(void *arg)
{
	struct perf *p = arg;

	return p->at.ep ? perf_progress(p) : 0;
}

/* ---- operations ---------------------------------------------------------- */

int perf_post_receive(struct perf *p, unsigned slot, uint64_t len,
		      uint64_t seed)
{
	struct perf_op *op = &p->receives[slot];
	ssize_t ret;

	op->buf = p->rx + slot % p->slots * p->stride;
	op->len = len;
	op->seed = seed;
	for (;;) {
		if (p->job.pattern == PERF_TAGGED)
			ret = fi_trecv(p->at.ep, op->buf, len, p->desc,
				       FI_ADDR_UNSPEC, TAG, 0, op);
		else
			ret = fi_recv(p->at.ep, op->buf, len, p->desc,
				      FI_ADDR_UNSPEC, op);
		if (ret != -FI_EAGAIN)
			break;
		if (look(p) < 0 || wait_more(p))
			return -1;
	}
	if (ret)
		return failed(p, "a receive was refused", ret);
	p->rx_pending++;
	return 0;
}

static ssize_t post_once(struct perf *p, struct perf_op *op, unsigned slot)
{
	const size_t at = slot % p->slots * p->stride;
	const size_t word = (size_t)slot * PERF_ATOMIC_BYTES;

	switch (p->job.pattern) {
	case PERF_MESSAGE:
		return fi_send(p->at.ep, p->tx + at, op->len, p->desc, p->peer,
			       op);
	case PERF_TAGGED:
		return fi_tsend(p->at.ep, p->tx + at, op->len, p->desc, p->peer,
				TAG, op);
	case PERF_WRITE:
		return fi_write(p->at.ep, p->tx + at, op->len, p->desc, p->peer,
				p->base + at, p->key, op);
	case PERF_READ:
		return fi_read(p->at.ep, p->rx + at, op->len, p->desc, p->peer,
			       p->base + at, p->key, op);
	default:
		return fi_fetch_atomic(p->at.ep, p->tx, 1, p->desc,
				       p->rx + word, p->desc, p->peer, p->base,
				       p->key, FI_UINT64, FI_SUM, op);
	}
}

/* Write the payload of @seed, or make sure that it comes from elsewhere. */
static void prepare(struct perf *p, struct perf_op *op, unsigned slot,
		    uint64_t seed)
{
	const size_t at = slot % p->slots * p->stride;

	op->seed = 0;
	if (!seed)
		return;
	if (p->job.pattern == PERF_READ) {
		op->buf = p->rx + at;
		op->seed = seed;
		memset(op->buf, 0, op->len);
	} else if (p->job.pattern != PERF_ATOMIC) {
		demo_pattern_fill(p->tx + at, op->len, seed);
	}
}

int perf_post(struct perf *p, unsigned slot, uint64_t len, uint64_t seed)
{
	struct perf_op *op = &p->sends[slot];
	ssize_t ret;

	op->len = len;
	prepare(p, op, slot, seed);
	while ((ret = post_once(p, op, slot)) == -FI_EAGAIN) {
		if (look(p) < 0 || wait_more(p))
			return -1;
	}
	if (ret)
		return failed(p, "an operation was refused", ret);
	p->tx_pending++;
	return 0;
}

/* ---- the path ------------------------------------------------------------ */

void perf_fab_path(const struct perf *p, char *text, size_t bytes)
{
	static const char *const paths[] = { "no path", "shared memory", "TCP",
					     "FI_TANDEM_LOCAL" };
	struct tdm_report_path path = { .size = sizeof(path),
					.reason_text = "" };
	struct tdm_report_ops *ops;
	void *found = NULL;

	*text = 0;
	if (fi_open_ops(&p->at.ep->fid, TDM_REPORT_OPS, 0, &found, NULL))
		return;
	ops = found;
	if (ops->path(p->at.ep, p->peer, &path) ||
	    path.path >= sizeof(paths) / sizeof(paths[0]))
		return;
	snprintf(text, bytes, "%s%s%s", paths[path.path],
		 *path.reason_text ? ": " : "", path.reason_text);
}
