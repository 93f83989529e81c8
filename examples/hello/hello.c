/* SPDX-License-Identifier: BSD-2-Clause */
/* See hello.h. */
#include "examples/hello/hello.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

void check(const char *what, ssize_t ret)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

void node_open(struct node *n, uint64_t caps)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_info *hints = fi_allocinfo();

	memset(n, 0, sizeof(*n));
	/*
	 * The hints: capabilities that this program needs, and the mode in which it
	 * can work: each operation has a struct fi_context2 that is its own until it ends.
	 */
	check("fi_allocinfo", hints ? 0 : -FI_ENOMEM);
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	/* An operation that has ended is complete at the other side, too. */
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	check("fi_getinfo",
	      fi_getinfo(FI_VERSION(2, 1), NULL, NULL, 0, hints, &n->info));
	fi_freeinfo(hints);

	check("fi_fabric", fi_fabric(n->info->fabric_attr, &n->fabric, NULL));
	check("fi_domain", fi_domain(n->fabric, n->info, &n->domain, NULL));
	check("fi_av_open", fi_av_open(n->domain, &av, &n->av, NULL));
	check("fi_cq_open", fi_cq_open(n->domain, &cq, &n->cq, NULL));
	check("fi_endpoint", fi_endpoint(n->domain, n->info, &n->ep, NULL));
	check("fi_ep_bind", fi_ep_bind(n->ep, &n->av->fid, 0));
	check("fi_ep_bind",
	      fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV));
	check("fi_enable", fi_enable(n->ep));
}

void node_close(struct node *n)
{
	/* Objects are closed in the reverse order of their opening. */
	check("fi_close", fi_close(&n->ep->fid));
	check("fi_close", fi_close(&n->cq->fid));
	check("fi_close", fi_close(&n->av->fid));
	check("fi_close", fi_close(&n->domain->fid));
	check("fi_close", fi_close(&n->fabric->fid));
	fi_freeinfo(n->info);
}

void node_address(const struct node *n, struct address *a)
{
	size_t bytes = sizeof(a->name);

	memset(a, 0, sizeof(*a));
	check("fi_getname", fi_getname(&n->ep->fid, a->name, &bytes));
	a->bytes = bytes;
}

fi_addr_t node_add(struct node *n, const struct address *a)
{
	fi_addr_t peer;

	if (fi_av_insert(n->av, a->name, 1, &peer, 0, NULL) != 1)
		check("fi_av_insert", -FI_EINVAL);
	return peer;
}

void node_progress(struct node *n)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_entry entry;
	ssize_t ret = fi_cq_read(n->cq, &entry, 1);

	if (ret == -FI_EAVAIL) {
		fi_cq_readerr(n->cq, &error, 0);
		check("an operation", -error.err);
	}
	if (ret == 1)
		n->ended++;
	else if (ret != -FI_EAGAIN)
		check("fi_cq_read", ret);
}

void node_wait(struct node *n, int operations)
{
	while (n->ended < operations)
		node_progress(n);
	n->ended -= operations;
}

void address_print(const struct address *a)
{
	uint64_t i;

	for (i = 0; i < a->bytes; i++)
		printf("%02x", a->name[i]);
	printf("\n");
	fflush(stdout);
}

void address_parse(struct address *a, const char *text)
{
	unsigned byte;

	memset(a, 0, sizeof(*a));
	while (a->bytes < ADDRESS_BYTES &&
	       sscanf(text + 2 * a->bytes, "%2x", &byte) == 1)
		a->name[a->bytes++] = (uint8_t)byte;
}
