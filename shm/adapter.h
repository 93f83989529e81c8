/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive context of an owner that is not tandem. The endpoint gets an adapter
 * in its place, which has an entry of ours beside the owner's for each message: the
 * owner's may have the layout of another libfabric (tdm_layout.h), no srx, the tag
 * of the receive, and flags of its own; and an owner may not be able to get an entry
 * back that is in its list.
 *
 * An owner offers an interface of include/ if it is tandem, or was made with its
 * headers; then its entries are used as they are, and no adapter exists.
 *
 * All functions: as all of this folder, the owner's lock held.
 */
#ifndef TDM_SHM_ADAPTER_H
#define TDM_SHM_ADAPTER_H

#include <rdma/providers/fi_peer.h>

#include "base/base.h"

struct tdm_shm_adapter;
struct tdm_shm_domain;
struct tdm_shm_srx;

/* Returns how many bytes an entry of an adapter has. */
size_t tdm_shm_adapter_entry_bytes(void);

/*
 * Set the receive context that endpoints of @srx use, srx->used, and the owner's
 * peer_ops. Errors: -FI_ENOMEM.
 */
int tdm_shm_adapter_open(struct tdm_shm_srx *srx) tdm_must_check;

/*
 * The receive context of @srx closes, and its endpoint offers no more messages: the
 * owner, which may free its own, is not called any more. It may discard what it has
 * queued until the domain closes.
 */
void tdm_shm_adapter_close(struct tdm_shm_srx *srx);

#endif /* TDM_SHM_ADAPTER_H */
