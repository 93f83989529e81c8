/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libfabric side of the demo: one endpoint, one address vector, one
 * completion queue, opened with nothing but the public API; and the loop that
 * hands completions to the operations they belong to.
 */
#ifndef DEMO_FAB_H
#define DEMO_FAB_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_tagged.h>

#include "fi_ext_tandem.h"

struct demo_op;

/* The operation ended well: @e as the CQ gave it, @src of a receive. */
typedef void (*demo_done_fn)(struct demo_op *op,
			     const struct fi_cq_tagged_entry *e, fi_addr_t src);

/* The operation failed. Returns 0 when that was expected, else -1. */
typedef int (*demo_failed_fn)(struct demo_op *op,
			      const struct fi_cq_err_entry *e);

/* The context of each operation points to this; embedded in its user. */
struct demo_op {
	struct fi_context2 ctx; /* the provider's, when it asks for one; first */
	demo_done_fn done;
	demo_failed_fn failed; /* NULL: no failure is expected */
};

struct demo_fab {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t *addr;	       /* of each rank; [n] */
	struct tdm_report_ops *report; /* NULL: the provider has none */
	char error[256];	       /* why a call here said -1 */
};

enum { DEMO_NAME_BYTES = 64 };

/* The address of an endpoint, as it travels between the ranks. */
struct demo_name {
	uint32_t len;
	uint8_t bytes[DEMO_NAME_BYTES];
};

/*
 * Open all with provider @prov, bound to the local address @ip. Out:
 * @fab->error on -1. demo_fab_close() may follow in any case.
 */
int demo_fab_open(struct demo_fab *fab, const char *prov, const char *ip);
void demo_fab_close(struct demo_fab *fab);

/* Out: this endpoint's own address. 0 or -1. */
int demo_fab_name(struct demo_fab *fab, struct demo_name *name);

/* Insert the addresses of the @n ranks, ours included. 0 or -1. */
int demo_fab_insert(struct demo_fab *fab, const struct demo_name *names, int n);

/* Not 0 when the provider is tandem. */
int demo_fab_is_tandem(const struct demo_fab *fab);

/*
 * Make progress and hand out what has completed. Returns the number of
 * completions, or -1 when an operation or the queue failed.
 */
int demo_fab_progress(struct demo_fab *fab);

/* Write "WHAT: reason" for the negative fi_errno @ret to fab->error; -1. */
int demo_fab_error(struct demo_fab *fab, const char *what, long ret);

#endif /* DEMO_FAB_H */
