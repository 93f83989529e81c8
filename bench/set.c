/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of objects. See fab.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "bench/fab.h"

/* Each endpoint may take several descriptors. */
static void allow_descriptors(void)
{
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

static struct fid_ep *open_endpoint(struct bench_set *set)
{
	struct fid_ep *ep = NULL;

	bench_fab_check("fi_endpoint",
			fi_endpoint(set->domain, set->info, &ep, NULL));
	bench_fab_check("fi_ep_bind",
			fi_ep_bind(ep, &set->cq->fid, FI_TRANSMIT | FI_RECV));
	bench_fab_check("fi_ep_bind", fi_ep_bind(ep, &set->av->fid, 0));
	bench_fab_check("fi_enable", fi_enable(ep));
	return ep;
}

static void open_queue(struct bench_set *set, enum fi_wait_obj wait)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED,
				   .size = BENCH_SLOTS,
				   .wait_obj = wait };

	if (wait != FI_WAIT_NONE &&
	    !fi_cq_open(set->domain, &attr, &set->cq, NULL))
		return;
	attr.wait_obj = FI_WAIT_NONE;
	bench_fab_check("fi_cq_open",
			fi_cq_open(set->domain, &attr, &set->cq, NULL));
}

void bench_set_open(struct bench_set *set, struct fi_info *info,
		    enum fi_wait_obj wait, size_t count)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE, .count = 1 };

	if (!info)
		bench_die("fi_getinfo: not offered", ENODATA);
	memset(set, 0, sizeof(*set));
	allow_descriptors();
	set->info = info;
	bench_fab_check("fi_fabric",
			fi_fabric(info->fabric_attr, &set->fabric, NULL));
	bench_fab_check("fi_domain",
			fi_domain(set->fabric, info, &set->domain, NULL));
	open_queue(set, wait);
	bench_fab_check("fi_av_open",
			fi_av_open(set->domain, &av, &set->av, NULL));
	set->ep = calloc(count, sizeof(struct fid_ep *));
	if (!set->ep)
		bench_die("calloc", ENOMEM);
	for (set->count = 0; set->count < count; set->count++)
		set->ep[set->count] = open_endpoint(set);
}

void bench_set_meet(struct bench_subject *s, struct bench_set *set,
		    size_t peers)
{
	struct bench_ctl *c = s->ctl;
	unsigned char *mine = c->area[s->side], *theirs = c->area[!s->side];
	size_t k, len;

	set->peer = calloc(peers + 1, sizeof(*set->peer));
	set->peers = peers;
	if (!set->peer ||
	    (set->count + peers) * BENCH_NAME_BYTES > BENCH_AREA_BYTES)
		bench_die("addresses", ENOMEM);
	for (k = 0; k < set->count; k++) {
		len = BENCH_NAME_BYTES;
		bench_fab_check("fi_getname",
				fi_getname(&set->ep[k]->fid,
					   mine + k * BENCH_NAME_BYTES, &len));
	}
	bench_ctl_meet(c, s->side);
	for (k = 0; k < peers; k++) {
		if (fi_av_insert(set->av, theirs + k * BENCH_NAME_BYTES, 1,
				 &set->peer[k], 0, NULL) != 1)
			bench_die("fi_av_insert: this many peers", ENOSPC);
	}
	bench_ctl_meet(c, s->side);
}

void bench_set_close(struct bench_set *set)
{
	while (set->count)
		fi_close(&set->ep[--set->count]->fid);
	if (set->mr)
		fi_close(&set->mr->fid);
	if (set->av)
		fi_close(&set->av->fid);
	if (set->cq)
		fi_close(&set->cq->fid);
	if (set->domain)
		fi_close(&set->domain->fid);
	if (set->fabric)
		fi_close(&set->fabric->fid);
	if (set->info)
		fi_freeinfo(set->info);
	free(set->ep);
	free(set->peer);
	memset(set, 0, sizeof(*set));
}
