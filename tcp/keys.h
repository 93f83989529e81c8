/* SPDX-License-Identifier: BSD-2-Clause */
/* Authorization keys of an endpoint. */
#ifndef TDM_TCP_KEYS_H
#define TDM_TCP_KEYS_H

#include <rdma/fabric.h>

#include "base/base.h"

struct tdm_root;

/*
 * take: get the keys of @root, from its AV, attributes or the environment, when
 * it is being enabled; give: give them back, if it has any. Errors: -FI_ENOMEM,
 * -FI_ENOKEY. Lock: held.
 */
int tdm_ep_take_keys(struct tdm_root *root) tdm_must_check;
void tdm_ep_give_keys(struct tdm_root *root);

/*
 * Log the address of @root, which has been enabled, and whether it has no key and
 * can be reached from other hosts.
 */
void tdm_ep_tell_open(const struct tdm_root *root);

/*
 * Returns the number of the key of @addr in the AV of @ep, a struct tdm_ep, for
 * struct tdm_srx_attr.
 */
uint32_t tdm_ep_key_of(void *ep, fi_addr_t addr);

/* Not 0 when @root may have a pair with @addr, which must be in its AV. */
int tdm_ep_key_ok(const struct tdm_root *root, fi_addr_t addr);

#endif /* TDM_TCP_KEYS_H */
