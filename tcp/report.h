/* SPDX-License-Identifier: BSD-2-Clause */
/* The report of FI_TANDEM_REPORT and of fi_ext_tandem.h. */
#ifndef TDM_TCP_REPORT_H
#define TDM_TCP_REPORT_H

#include <rdma/fabric.h>

struct tdm_root;

/*
 * fi_open_ops(3) of an endpoint, which offers TDM_REPORT_OPS; other names go to
 * tdm_profile_open(). Lock: taken inside.
 */
int tdm_report_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context);

/*
 * Print the report of @root as FI_TANDEM_REPORT, which must be set, says. Lock:
 * held.
 */
void tdm_report_print(struct tdm_root *root);

/*
 * Called at the end of the process: prints the report of all endpoints that are
 * still open, except those of domains that a thread is using. Lock: not held.
 */
void tdm_report_exit(void);

#endif /* TDM_TCP_REPORT_H */
