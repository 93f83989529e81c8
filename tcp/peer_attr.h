/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attributes of tandem below another owner, fi_getinfo(3) with FI_PEER: what
 * differs from attr.c. No lock.
 */
#ifndef TDM_TCP_PEER_ATTR_H
#define TDM_TCP_PEER_ATTR_H

#include <rdma/fabric.h>

#include "base/base.h"

/*
 * Set in @info, which has what tandem offers, what it has below another owner. An
 * owner passes its peer's attributes on, and may refuse what it does not have itself
 * (libfabric's lnx). Hints may ask for vectors as long as without an owner.
 */
void tdm_peer_base(struct fi_info *info);

/*
 * Check the granted attributes @a: the owner makes progress, and it matches, without
 * groups and keys. Errors: -FI_ENODATA.
 */
int tdm_peer_check(const struct fi_domain_attr *a) tdm_must_check;

#endif /* TDM_TCP_PEER_ATTR_H */
