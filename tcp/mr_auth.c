/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of memory regions. See mr_auth.h.
 *
 * A region is for the sessions that proved one of its keys. Keys are compared
 * by their bytes: numbers of keys belong to one address vector, and the
 * endpoints of a domain may have several.
 *
 * Lock: the domain's, taken by tdm_mr_auth_open() to read a vector, held for
 * tdm_mr_auth_ok(). The keys of a region do not change.
 * Spec: fi_mr(3) auth_key, addr, FI_AUTH_KEY; fi_av(3) fi_av_insert_auth_key.
 */
#include "tcp/mr_auth.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "av/av.h"
#include "av/key.h"
#include "tcp/domain.h"
#include "tdm_rma.h"
#include "tdm_source.h"

struct tdm_mr_auth {
	struct tdm_auth_keys *keys;
	struct tdm_addr only; /* the one peer; AF_UNSPEC: any with a key */
};

void tdm_mr_auth_free(struct tdm_mr_auth *auth)
{
	if (!auth)
		return;
	tdm_auth_free(auth->keys);
	free(auth);
}

/*
 * Set *@id to the number of the key that @who and @flags name in @av; 0: all
 * keys. Out: auth->only when they name a peer.
 */
static int find_key(const struct tdm_av *av, const struct fi_mr_auth_key *who,
		    uint64_t flags, uint32_t *id, struct tdm_mr_auth *auth)
{
	fi_addr_t handle = who->src_addr;

	*id = 0;
	if (!(flags & FI_AUTH_KEY)) {
		if (handle == FI_ADDR_UNSPEC)
			return 0;
		if (tdm_av_addr(av, handle, &auth->only))
			return -FI_EINVAL;
		handle = TDM_SPACE_WILD | auth->only.key;
	}
	*id = tdm_keyring_id(tdm_av_keys(av), handle);
	return *id ? 0 : -FI_EINVAL;
}

static int of_vector(struct tdm_domain *d, const struct fi_mr_attr *attr,
		     uint64_t flags, struct tdm_mr_auth *auth)
{
	struct fi_mr_auth_key who;
	struct tdm_av *av;
	uint32_t id;
	int ret;

	if (attr->auth_key_size != sizeof(who))
		return -FI_EINVAL;
	memcpy(&who, attr->auth_key, sizeof(who));
	if (!who.av || who.av->fid.fclass != FI_CLASS_AV)
		return -FI_EINVAL;
	av = tdm_av_from_fid(who.av);
	if (tdm_av_lock(av) != &d->lock)
		return -FI_EINVAL;
	tdm_lock_acquire(&d->lock);
	ret = find_key(av, &who, flags, &id, auth);
	if (!ret) {
		auth->keys = tdm_keyring_copy(tdm_av_keys(av), id);
		ret = auth->keys ? 0 : -FI_ENOMEM;
	}
	tdm_lock_release(&d->lock);
	return ret;
}

static int of_bytes(const struct fi_mr_attr *attr, struct tdm_mr_auth *auth)
{
	if (!tdm_auth_size_ok(attr->auth_key_size))
		return -FI_EINVAL;
	auth->keys = tdm_auth_one(attr->auth_key, attr->auth_key_size);
	return auth->keys ? 0 : -FI_ENOMEM;
}

int tdm_mr_auth_open(struct tdm_domain *d, const struct fi_mr_attr *attr,
		     uint64_t flags, struct tdm_mr_auth **auth)
{
	struct tdm_mr_auth *a;
	int ret;

	if (!attr->auth_key_size || !tdm_domain_has_keys(d))
		return flags & FI_AUTH_KEY ? -FI_EINVAL : 0;
	if (!attr->auth_key)
		return -FI_EINVAL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -FI_ENOMEM;
	ret = tdm_domain_av_keys(d) ? of_vector(d, attr, flags, a) :
				      of_bytes(attr, a);
	if (ret)
		tdm_mr_auth_free(a);
	else
		*auth = a;
	return ret;
}

static int has_key(const struct tdm_auth_keys *keys,
		   const struct tdm_auth_key *key)
{
	size_t i;

	for (i = 0; i < keys->count; i++) {
		if (tdm_auth_is(&keys->key[i], key->bytes, key->size))
			return 1;
	}
	return 0;
}

static int is_only(const struct tdm_addr *only,
		   const struct tdm_rma_request *req)
{
	struct tdm_addr from;

	if (!req->from || tdm_addr_from_sockaddr(&from, req->from,
						 tdm_source_bytes(req->from)))
		return 0;
	from.key = only->key;
	return tdm_addr_equal(only, &from);
}

int tdm_mr_auth_ok(const struct tdm_mr_auth *auth,
		   const struct tdm_rma_request *req)
{
	if (!req->auth || !has_key(auth->keys, req->auth))
		return 0;
	return auth->only.u.sa.sa_family == AF_UNSPEC ||
	       is_only(&auth->only, req);
}
