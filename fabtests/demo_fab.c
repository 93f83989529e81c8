/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libfabric side of the demo. One thread calls libfabric (the domain is
 * FI_THREAD_DOMAIN) and progress is manual: it is made by reading the CQ.
 */
#include "fabtests/demo_fab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <rdma/fi_errno.h>

#include "fabtests/demo_util.h"

enum { CQ_BATCH = 32, CQ_SIZE = 4096 };

int demo_fab_error(struct demo_fab *fab, const char *what, long ret)
{
	snprintf(fab->error, sizeof(fab->error), "%s: %s (%ld)", what,
		 fi_strerror((int)-ret), ret);
	return -1;
}

static struct fi_info *make_hints(const char *prov)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->cq_data_size = 8;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(prov);
	return hints;
}

/* Others cannot be bound to an IP address, nor copied as plain bytes. */
static int has_socket_addresses(const struct fi_info *info)
{
	enum { SOCKADDR_IP = 17 }; /* since libfabric 2.3 */

	return info->addr_format == FI_SOCKADDR ||
	       info->addr_format == FI_SOCKADDR_IN ||
	       info->addr_format == FI_SOCKADDR_IN6 ||
	       info->addr_format == SOCKADDR_IP;
}

static int get_info(struct demo_fab *fab, const char *prov, const char *ip)
{
	struct fi_info *hints = make_hints(prov);
	int ret;

	if (!hints)
		return demo_fab_error(fab, "fi_allocinfo", -FI_ENOMEM);
	ret = fi_getinfo(FI_VERSION(2, 1), ip, NULL, FI_SOURCE, hints,
			 &fab->info);
	fi_freeinfo(hints);
	if (ret)
		return demo_fab_error(fab, "fi_getinfo", ret);
	if (!has_socket_addresses(fab->info))
		return demo_fab_error(fab, "addresses are not socket addresses",
				      -FI_EADDRNOTAVAIL);
	return 0;
}

static int open_queues(struct demo_fab *fab)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .size = CQ_SIZE,
				      .format = FI_CQ_FORMAT_TAGGED,
				      .wait_obj = FI_WAIT_NONE };
	int ret;

	ret = fi_fabric(fab->info->fabric_attr, &fab->fabric, NULL);
	if (ret)
		return demo_fab_error(fab, "fi_fabric", ret);
	ret = fi_domain(fab->fabric, fab->info, &fab->domain, NULL);
	if (ret)
		return demo_fab_error(fab, "fi_domain", ret);
	ret = fi_av_open(fab->domain, &av_attr, &fab->av, NULL);
	if (ret)
		return demo_fab_error(fab, "fi_av_open", ret);
	ret = fi_cq_open(fab->domain, &cq_attr, &fab->cq, NULL);
	return ret ? demo_fab_error(fab, "fi_cq_open", ret) : 0;
}

static int open_endpoint(struct demo_fab *fab)
{
	int ret;

	ret = fi_endpoint(fab->domain, fab->info, &fab->ep, NULL);
	if (ret)
		return demo_fab_error(fab, "fi_endpoint", ret);
	ret = fi_ep_bind(fab->ep, &fab->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(fab->ep, &fab->cq->fid, FI_TRANSMIT | FI_RECV);
	if (ret)
		return demo_fab_error(fab, "fi_ep_bind", ret);
	ret = fi_enable(fab->ep);
	return ret ? demo_fab_error(fab, "fi_enable", ret) : 0;
}

int demo_fab_is_tandem(const struct demo_fab *fab)
{
	return !strcasecmp(fab->info->fabric_attr->prov_name, "tandem");
}

static int open_report(struct demo_fab *fab)
{
	void *ops = NULL;
	int ret;

	if (!demo_fab_is_tandem(fab))
		return 0;
	ret = fi_open_ops(&fab->ep->fid, TDM_REPORT_OPS, 0, &ops, NULL);
	if (ret)
		return demo_fab_error(fab, "fi_open_ops " TDM_REPORT_OPS, ret);
	fab->report = ops;
	return 0;
}

int demo_fab_open(struct demo_fab *fab, const char *prov, const char *ip)
{
	if (get_info(fab, prov, ip) || open_queues(fab) || open_endpoint(fab))
		return -1;
	return open_report(fab);
}

static void close_fid(void *object, const char *what)
{
	int ret = object ? fi_close((struct fid *)object) : 0;

	if (ret)
		fprintf(stderr, "tandem_demo: closing the %s: %s\n", what,
			fi_strerror(-ret));
}

void demo_fab_close(struct demo_fab *fab)
{
	close_fid(fab->ep, "endpoint");
	close_fid(fab->cq, "completion queue");
	close_fid(fab->av, "address vector");
	close_fid(fab->domain, "domain");
	close_fid(fab->fabric, "fabric");
	if (fab->info)
		fi_freeinfo(fab->info);
	free(fab->addr);
	memset(fab, 0, sizeof(*fab));
}

int demo_fab_name(struct demo_fab *fab, struct demo_name *name)
{
	size_t len = sizeof(name->bytes);
	int ret;

	memset(name, 0, sizeof(*name));
	ret = fi_getname(&fab->ep->fid, name->bytes, &len);
	if (ret)
		return demo_fab_error(fab, "fi_getname", ret);
	name->len = (uint32_t)len;
	return 0;
}

int demo_fab_insert(struct demo_fab *fab, const struct demo_name *names, int n)
{
	size_t len = names[0].len;
	uint8_t *all = demo_alloc((size_t)n * len);
	int i, ret;

	fab->addr = demo_alloc((size_t)n * sizeof(*fab->addr));
	for (i = 0; i < n; i++) {
		if (names[i].len != len) {
			free(all);
			return demo_fab_error(fab, "addresses of two formats",
					      -FI_EINVAL);
		}
		memcpy(all + (size_t)i * len, names[i].bytes, len);
	}
	ret = fi_av_insert(fab->av, all, (size_t)n, fab->addr, 0, NULL);
	free(all);
	if (ret == n)
		return 0;
	return demo_fab_error(fab, "fi_av_insert",
			      ret < 0 ? ret : -FI_EADDRNOTAVAIL);
}

static int read_error(struct demo_fab *fab)
{
	struct fi_cq_err_entry e;
	struct demo_op *op;
	char text[128];
	long ret;

	memset(&e, 0, sizeof(e));
	ret = fi_cq_readerr(fab->cq, &e, 0);
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret < 0)
		return demo_fab_error(fab, "fi_cq_readerr", ret);
	op = e.op_context;
	if (op && op->failed && !op->failed(op, &e))
		return 1;
	snprintf(fab->error, sizeof(fab->error),
		 "a %s failed: %s (%s), tag %llx", /* e.err is positive */
		 e.flags & FI_RECV ? "receive" : "send", fi_strerror(e.err),
		 fi_cq_strerror(fab->cq, e.prov_errno, e.err_data, text,
				sizeof(text)),
		 (unsigned long long)e.tag);
	return -1;
}

int demo_fab_progress(struct demo_fab *fab)
{
	struct fi_cq_tagged_entry e[CQ_BATCH];
	fi_addr_t src[CQ_BATCH];
	struct demo_op *op;
	long i, n;

	n = fi_cq_readfrom(fab->cq, e, CQ_BATCH, src);
	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL)
		return read_error(fab);
	if (n < 0)
		return demo_fab_error(fab, "fi_cq_readfrom", n);
	for (i = 0; i < n; i++) {
		op = e[i].op_context;
		op->done(op, &e[i], src[i]);
	}
	return (int)n;
}
