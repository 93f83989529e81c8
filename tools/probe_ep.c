/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The endpoint of the probe.
 *
 * Invariant: at most one send and one receive are under way, p->tx and p->rx.
 * No lock: one thread.
 */
#include "tools/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rdma/fi_errno.h>

enum {
	KEY_LEAST_BYTES = 16,
	KEY_MOST_BYTES = 64,
	SPIN_NS = 5 * 1000 * 1000, /* polls so long before it sleeps */
	NAP_MS = 200,
};

uint64_t probe_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int failed(struct probe *p, const char *what, int ret)
{
	snprintf(p->error, sizeof(p->error), "%s: %s", what, fi_strerror(-ret));
	return ret;
}

static int read_key(struct probe *p, const char *path, struct fi_info *hints)
{
	uint8_t bytes[KEY_MOST_BYTES + 1];
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f)
		return failed(p, path, -FI_EACCES);
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	if (n < KEY_LEAST_BYTES || n > KEY_MOST_BYTES)
		return failed(p, "a key has 16 to 64 bytes", -FI_EINVAL);
	hints->ep_attr->auth_key = malloc(n);
	if (!hints->ep_attr->auth_key)
		return failed(p, "key", -FI_ENOMEM);
	memcpy(hints->ep_attr->auth_key, bytes, n);
	hints->ep_attr->auth_key_size = n;
	return 0;
}

static int get_info(struct probe *p, const struct probe_options *o)
{
	struct fi_info *hints = fi_allocinfo();
	int ret = 0;

	if (!hints)
		return failed(p, "fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_TAGGED | FI_SOURCE;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("tandem");
	if (o->key_file)
		ret = read_key(p, o->key_file, hints);
	if (!ret) {
		ret = fi_getinfo(FI_VERSION(2, 1), o->host, o->service, 0,
				 hints, &p->at.info);
		if (ret)
			failed(p, "fi_getinfo", ret);
	}
	fi_freeinfo(hints);
	return ret;
}

static int open_objects(struct probe *p)
{
	struct fi_cq_attr queue = { .format = FI_CQ_FORMAT_TAGGED,
				    .wait_obj = FI_WAIT_UNSPEC };
	const char *step;
	int ret = tool_endpoint_open(&p->at, &queue, &step);

	return ret ? failed(p, step, ret) : 0;
}

static int open_name(struct probe *p)
{
	uint8_t raw[PROBE_ADDR_BYTES];
	size_t len = sizeof(raw);
	void *ops = NULL;
	int ret = fi_getname(&p->at.ep->fid, raw, &len);

	if (ret)
		return failed(p, "fi_getname", ret);
	len = sizeof(p->name);
	fi_av_straddr(p->at.av, raw, p->name, &len);
	if (!fi_open_ops(&p->at.ep->fid, TDM_REPORT_OPS, 0, &ops, NULL))
		p->report = ops;
	printf("endpoint\t%s\t%s\n", p->name, p->at.info->domain_attr->name);
	return 0;
}

int probe_open(struct probe *p, const struct probe_options *o)
{
	int ret;

	memset(p, 0, sizeof(*p));
	p->in = calloc(1, PROBE_LARGE_BYTES);
	p->out = calloc(1, PROBE_LARGE_BYTES);
	if (!p->in || !p->out)
		return failed(p, "memory", -FI_ENOMEM);
	ret = get_info(p, o);
	if (!ret)
		ret = open_objects(p);
	return ret ? ret : open_name(p);
}

void probe_close(struct probe *p)
{
	tool_endpoint_close(&p->at);
	free(p->in);
	free(p->out);
}

int probe_receive(struct probe *p, uint64_t tag)
{
	int ret;

	memset(&p->rx, 0, sizeof(p->rx));
	ret = (int)fi_trecv(p->at.ep, p->in, PROBE_LARGE_BYTES, NULL,
			    FI_ADDR_UNSPEC, tag, tag ? 0 : ~0ull, &p->rx);
	return ret ? failed(p, "fi_trecv", ret) : 0;
}

/* An operation has failed. Returns 1, or a negative fi_errno: the queue has. */
static int read_error(struct probe *p)
{
	struct fi_cq_err_entry e = { 0 };
	struct probe_op *op;
	ssize_t ret = fi_cq_readerr(p->at.cq, &e, 0);

	if (ret < 0)
		return failed(p, "fi_cq_readerr", (int)ret);
	fi_cq_strerror(p->at.cq, e.prov_errno, e.err_data, p->error,
		       sizeof(p->error));
	op = e.op_context;
	op->err = e.err;
	op->done = 1;
	return 1;
}

/* Returns 0: nothing has ended; 1: something has; or a negative fi_errno. */
static int progress(struct probe *p)
{
	struct fi_cq_tagged_entry e;
	struct probe_op *op;
	fi_addr_t src = FI_ADDR_NOTAVAIL;
	ssize_t n;

	if (probe_now_ns() - p->heard_ns < SPIN_NS)
		n = fi_cq_readfrom(p->at.cq, &e, 1, &src);
	else
		n = fi_cq_sreadfrom(p->at.cq, &e, 1, &src, NULL, NAP_MS);
	if (n == -FI_EAGAIN || n == -FI_ETIMEDOUT || n == -FI_EINTR)
		return 0;
	p->heard_ns = probe_now_ns();
	if (n == -FI_EAVAIL)
		return read_error(p);
	if (n < 0)
		return failed(p, "fi_cq_read", (int)n);
	op = e.op_context;
	op->len = e.len;
	op->tag = e.tag;
	op->src = src;
	op->done = 1;
	return 1;
}

static int is_late(uint64_t deadline_ns)
{
	return deadline_ns && probe_now_ns() > deadline_ns;
}

int probe_wait(struct probe *p, const struct probe_op *op, uint64_t deadline_ns)
{
	int ret;

	while (!op->done) {
		ret = progress(p);
		if (ret < 0)
			return ret;
		if (p->tx.err)
			return -p->tx.err;
		if (!op->done && is_late(deadline_ns))
			return failed(p, "no answer", -FI_ETIMEDOUT);
	}
	return -op->err;
}

int probe_send(struct probe *p, size_t len, fi_addr_t to, uint64_t tag,
	       uint64_t deadline_ns)
{
	ssize_t ret;

	memset(&p->tx, 0, sizeof(p->tx));
	while ((ret = fi_tsend(p->at.ep, p->out, len, NULL, to, tag, &p->tx)) ==
	       -FI_EAGAIN) {
		if (is_late(deadline_ns))
			break;
		ret = progress(p);
		if (ret < 0)
			return (int)ret;
	}
	return ret ? failed(p, "fi_tsend", (int)ret) : 0;
}

void probe_view(const struct probe *p, fi_addr_t addr, char *text, size_t bytes)
{
	struct tdm_report_path path = { .size = sizeof(path),
					.reason_text = "" };

	if (p->report)
		p->report->path(p->at.ep, addr, &path);
	snprintf(text, bytes, "%u\t%u\t%u\t%u\t%s", path.path, path.reason,
		 path.large_rx, path.large_tx, path.reason_text);
}
