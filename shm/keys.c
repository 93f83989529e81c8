/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of an endpoint: one of its own, or those of the owner's address
 * vector, each with its number there (include/tdm_keys.h). prove.c proves them.
 *
 * Locking: domain lock held. Spec: fi_endpoint(3) auth_key.
 */
#include "shm/keys.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "shm/av.h"
#include "shm/ep.h"
#include "tdm_keys.h"

int tdm_shm_keys_one(struct tdm_shm_ep *ep, const struct fi_ep_attr *attr)
{
	if (!attr || !attr->auth_key_size)
		return 0;
	if (!attr->auth_key || !tdm_auth_size_ok(attr->auth_key_size))
		return -FI_ENOMEM;
	ep->keys = tdm_auth_one(attr->auth_key, attr->auth_key_size);
	return ep->keys ? 0 : -FI_ENOMEM;
}

static int take(struct fid_ep *fid, const struct tdm_auth_keys *keys)
{
	struct tdm_shm_ep *ep = tdm_shm_ep_from_fid(fid);

	ep->keys = tdm_auth_alloc(keys->count);
	if (!ep->keys)
		return -FI_ENOMEM;
	memcpy(ep->keys->key, keys->key, keys->count * sizeof(keys->key[0]));
	return 0;
}

static struct tdm_keys_ops keys_ops = {
	.size = sizeof(keys_ops),
	.insert = tdm_shm_av_insert_key,
	.take = take,
};

int tdm_shm_keys_ops_open(struct fid *fid, const char *name, uint64_t flags,
			  void **ops, void *context)
{
	(void)fid;
	(void)context;
	if (!name || !ops || flags)
		return -FI_EINVAL;
	if (strcmp(name, TDM_KEYS_OPS))
		return -FI_ENOSYS;
	*ops = &keys_ops;
	return 0;
}
