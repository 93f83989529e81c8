/* SPDX-License-Identifier: BSD-2-Clause */
/* User ids of addresses, fi_av_set_user_id(3). For the files of av/ only. */
#ifndef TDM_AV_USER_ID_H
#define TDM_AV_USER_ID_H

#include "av/av_priv.h"

/* Make room for the id of @index. Errors: -FI_ENOMEM. Lock: held. */
int tdm_av_user_id_reserve(struct tdm_av *av, uint32_t index) tdm_must_check;

/*
 * Set the id of @index; tdm_av_user_id_reserve() must have succeeded. Lock: held.
 */
void tdm_av_user_id_set(struct tdm_av *av, uint32_t index, fi_addr_t id);

/* Forget the id of @index, which is being removed. Lock: held. */
void tdm_av_user_id_drop(struct tdm_av *av, uint32_t index);

int tdm_av_set_user_id(struct fid_av *fid, fi_addr_t fi_addr, fi_addr_t user_id,
		       uint64_t flags);

#endif /* TDM_AV_USER_ID_H */
