/* SPDX-License-Identifier: BSD-2-Clause */
/* See peer_attr.h. No state: no lock. */
#include "tcp/peer_attr.h"

#include <rdma/fi_errno.h>

#include "tcp/refuse.h"

/* As many as those that libfabric's own peers list. */
enum { PEER_IOV_LIMIT = 4, PEER_QUEUES = 1024 };

void tdm_peer_base(struct fi_info *i)
{
	struct fi_domain_attr *d = i->domain_attr;

	i->tx_attr->iov_limit = PEER_IOV_LIMIT;
	i->tx_attr->rma_iov_limit = PEER_IOV_LIMIT;
	i->rx_attr->iov_limit = PEER_IOV_LIMIT;
	d->caps |= FI_PEER;
	d->max_ep_tx_ctx = 1;
	d->max_ep_rx_ctx = 1;
	d->max_ep_stx_ctx = 0;
	d->max_ep_srx_ctx = 0;
	d->max_ep_auth_key = 0;
	d->cq_cnt = PEER_QUEUES;
}

int tdm_peer_check(const struct fi_domain_attr *a)
{
	if (a->control_progress == FI_PROGRESS_AUTO ||
	    a->data_progress == FI_PROGRESS_AUTO)
		return tdm_refuse_hint("domain_attr.progress",
				       "FI_PROGRESS_AUTO, and FI_PEER");
	if (a->max_group_id || a->auth_key_size == FI_AV_AUTH_KEY)
		return tdm_refuse_hint("domain_attr",
				       "groups or keys of addresses, and "
				       "FI_PEER");
	return 0;
}
