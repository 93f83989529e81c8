/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User ids of the addresses of a vector. Memory for them is allocated when the
 * first is set, so applications without ids pay nothing. A vector opened with
 * FI_AV_USER_ID has them from the start, FI_ADDR_NOTAVAIL each.
 *
 * Invariant: an index below user_ids.count without an id of its own has the vector's
 * default: FI_ADDR_NOTAVAIL in one opened with FI_AV_USER_ID, else the index
 * itself.
 *
 * Lock: the domain lock. Spec: fi_av(3), "USER IDENTIFIERS FOR ADDRESSES".
 */
#include "av/user_id.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "av/av_priv.h"
#include "av/key.h"
#include "base/log.h"

enum { FIRST_IDS = 64 };

const struct tdm_user_ids *tdm_av_user_ids(const struct tdm_av *av)
{
	return &av->user_ids;
}

static fi_addr_t default_id(const struct tdm_av *av, size_t index)
{
	return av->flags & FI_AV_USER_ID ? FI_ADDR_NOTAVAIL : index;
}

int tdm_av_user_id_reserve(struct tdm_av *av, uint32_t index)
{
	size_t max = tdm_max((size_t)FIRST_IDS, av->user_ids.count), i;
	int first = !av->user_ids.count;
	struct tdm_list *pos;
	fi_addr_t *id;

	if (index < av->user_ids.count)
		return 0;
	while (max <= index)
		max += max / 2;
	id = realloc(av->user_ids.id, max * sizeof(*id));
	if (!id)
		return -FI_ENOMEM;
	for (i = av->user_ids.count; i < max; i++)
		id[i] = default_id(av, i);
	av->user_ids.id = id;
	av->user_ids.count = max;
	if (!first)
		return 0;
	tdm_list_for_each(pos, &av->users) {
		struct tdm_av_user *u =
			tdm_list_entry(pos, struct tdm_av_user, node);

		if (u->user_ids)
			u->user_ids(u);
	}
	return 0;
}

void tdm_av_user_id_set(struct tdm_av *av, uint32_t index, fi_addr_t id)
{
	av->user_ids.id[index] = id;
}

void tdm_av_user_id_drop(struct tdm_av *av, uint32_t index)
{
	if (index < av->user_ids.count)
		av->user_ids.id[index] = default_id(av, index);
}

int tdm_av_set_user_id(struct fid_av *fid, fi_addr_t fi_addr, fi_addr_t user_id,
		       uint64_t flags)
{
	struct tdm_av *av = tdm_av_of(fid);
	int ret = -FI_EINVAL;

	if (flags & ~(uint64_t)FI_AUTH_KEY)
		return -FI_EBADFLAGS;
	tdm_lock_acquire(av->engine->lock);
	tdm_av_follow(av);
	if (flags) {
		if (av->user_ids.key_id)
			ret = tdm_keyring_set_id(av->keys, fi_addr, user_id);
	} else if (av->flags & FI_AV_USER_ID &&
		   tdm_table_has(&av->table, fi_addr)) {
		tdm_av_user_id_set(av, (uint32_t)fi_addr, user_id);
		ret = 0;
	}
	tdm_lock_release(av->engine->lock);
	return ret;
}
