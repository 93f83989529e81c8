/* SPDX-License-Identifier: BSD-2-Clause */
/* The address that an endpoint is bound to. */
#ifndef TDM_TCP_NAME_H
#define TDM_TCP_NAME_H

struct tdm_root;

/*
 * Set root->name, the address to bind @root to: the info's src_addr, or, if there
 * is none, the address of the first entry that fi_getinfo(3) would return.
 * Returns 0, or a negative fi_errno.
 */
int tdm_ep_own_name(struct tdm_root *root);

#endif /* TDM_TCP_NAME_H */
