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

/*
 * Add a fabric or domain to those that are open, to which fi_getinfo(3) may
 * refer; remove it.
 */
void tdm_opened_fabric(struct tdm_fabric *fabric);
void tdm_closed_fabric(struct tdm_fabric *fabric);
void tdm_opened_domain(struct tdm_domain *domain);
void tdm_closed_domain(struct tdm_domain *domain);

/*
 * freeze: keep all threads out of all domains, for fork(2); thaw: let them in
 * again. In the child, thaw calls @orphaned for each domain and then forgets
 * it; in the parent @orphaned is NULL. Locks: those of all domains are taken
 * and released.
 */
void tdm_opened_freeze(void);
void tdm_opened_thaw(void (*orphaned)(struct tdm_domain *domain));

/* Call @look for each domain that no thread is using, with its lock held. */
void tdm_opened_idle(void (*look)(struct tdm_domain *domain));

/*
 * Check that the fabric and the domain that @hints name are open. Sets the
 * names of @info to those of the objects, and its address format to that of the
 * domain. Errors: -FI_ENODATA: one is not open; -FI_ENOMEM.
 */
int tdm_opened_ask(const struct fi_info *hints, struct fi_info *info);

/*
 * Let @info refer to the first open fabric and domain with its names, if there
 * are any.
 */
void tdm_opened_fill(struct fi_info *info);

#endif /* TDM_TCP_OPENED_H */
