/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See endpoint.h.
 * No lock: one thread.
 */
#include "tools/endpoint.h"

#include <string.h>

static int open_objects(struct tool_endpoint *e, struct fi_cq_attr *queue,
			const char **step)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	int ret;

	*step = "fi_fabric";
	ret = fi_fabric(e->info->fabric_attr, &e->fabric, NULL);
	if (ret)
		return ret;
	*step = "fi_domain";
	ret = fi_domain(e->fabric, e->info, &e->domain, NULL);
	if (ret)
		return ret;
	*step = "fi_av_open";
	ret = fi_av_open(e->domain, &av, &e->av, NULL);
	if (ret)
		return ret;
	*step = "fi_cq_open";
	ret = fi_cq_open(e->domain, queue, &e->cq, NULL);
	if (ret)
		return ret;
	*step = "fi_endpoint";
	return fi_endpoint(e->domain, e->info, &e->ep, NULL);
}

int tool_endpoint_open(struct tool_endpoint *e, struct fi_cq_attr *queue,
		       const char **step)
{
	int ret = open_objects(e, queue, step);

	if (ret)
		return ret;
	*step = "fi_ep_bind";
	ret = fi_ep_bind(e->ep, &e->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV);
	if (ret)
		return ret;
	*step = "fi_enable";
	return fi_enable(e->ep);
}

void tool_endpoint_close(struct tool_endpoint *e)
{
	struct fid *objects[] = {
		e->ep ? &e->ep->fid : NULL,
		e->cq ? &e->cq->fid : NULL,
		e->av ? &e->av->fid : NULL,
		e->domain ? &e->domain->fid : NULL,
		e->fabric ? &e->fabric->fid : NULL,
	};
	size_t i;

	for (i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
		if (objects[i])
			fi_close(objects[i]);
	}
	if (e->info)
		fi_freeinfo(e->info);
	memset(e, 0, sizeof(*e));
}
