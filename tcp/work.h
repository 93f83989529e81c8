/* SPDX-License-Identifier: BSD-2-Clause */
/* Deferred work, fi_trigger(3). */
#ifndef TDM_TCP_WORK_H
#define TDM_TCP_WORK_H

#include <rdma/fi_domain.h>

/* work.c: fi_control(3) of a domain. Lock: taken inside. */
int tdm_work_control(struct fid *fid, int command, void *arg);

#endif /* TDM_TCP_WORK_H */
