/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabrics and domains that are open: what fi_getinfo(3) can be asked for and
 * refers to, and what has to stand still during fork(2).
 */
#ifndef TDM_TCP_OPENED_H
#define TDM_TCP_OPENED_H

#include <rdma/fabric.h>

struct tdm_domain;
struct tdm_fabric;

/* opened.c: the open fabrics and domains, which fi_getinfo(3) may refer to. */
void tdm_opened_fabric(struct tdm_fabric *fabric);
void tdm_closed_fabric(struct tdm_fabric *fabric);
void tdm_opened_domain(struct tdm_domain *domain);
void tdm_closed_domain(struct tdm_domain *domain);

/*
 * Keep all threads out of all domains, for fork(2), and let them in again. In
 * the child @orphaned is called for each domain, which is then forgotten;
 * NULL in the parent. Locks: all domains' are taken and released.
 */
void tdm_opened_freeze(void);
void tdm_opened_thaw(void (*orphaned)(struct tdm_domain *domain));

/* Call @look with the lock of each domain that no thread is using. */
void tdm_opened_idle(void (*look)(struct tdm_domain *domain));

/*
 * opened.c: are the fabric and the domain that @hints name open? Sets the
 * names of @info to those of the objects, and its address format to that of the
 * domain. Errors: -FI_ENODATA, -FI_ENOMEM.
 */
int tdm_opened_ask(const struct fi_info *hints, struct fi_info *info);

/* Refer to the first open fabric and domain of the names of @info, if any. */
void tdm_opened_fill(struct fi_info *info);

#endif /* TDM_TCP_OPENED_H */
