/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One endpoint of any provider, with the objects that it needs, for the tools.
 * One thread.
 */
#ifndef TANDEM_TOOLS_ENDPOINT_H
#define TANDEM_TOOLS_ENDPOINT_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

struct tool_endpoint {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

/*
 * Open all that @e->info describes, with a table of addresses and a queue of
 * @queue for both directions. Returns 0, or a negative fi_errno and in *@step the
 * call that failed. tool_endpoint_close() may follow in any case.
 */
int tool_endpoint_open(struct tool_endpoint *e, struct fi_cq_attr *queue,
		       const char **step);

/* Close what is open of @e, and free its info. */
void tool_endpoint_close(struct tool_endpoint *e);

#endif /* TANDEM_TOOLS_ENDPOINT_H */
