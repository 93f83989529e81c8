/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keys of an address vector in a peer provider, for domains opened with
 * FI_AV_AUTH_KEY: fi_av(3) cannot insert an address with a key and with a user
 * id in one call, and the peer is to use the owner's numbers of keys.
 *
 * The owner passes auth_key_size FI_AV_AUTH_KEY to the peer's domain. Its
 * addresses then have a number of a key each, and so have sessions: offers to
 * the owner are names of tdm_space.h, and that of a source which is not in the
 * address vector tells its key.
 */
#ifndef TDM_KEYS_H
#define TDM_KEYS_H

#include <stddef.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "base/auth.h"

/*
 * Name for fi_open_ops(3) on an address vector or endpoint of the peer. A peer
 * need not offer this; the owner then does not use it for such addresses and
 * endpoints.
 */
#define TDM_KEYS_OPS "tandem_keys_1"

struct tdm_keys_ops {
	size_t size;
	/*
	 * fi_av_insert(3) of the one address @addr for key number @key, with
	 * FI_AV_USER_ID. In: *@fi_addr, the user id. Out: *@fi_addr.
	 * Errors: -FI_EINVAL, -FI_ENOMEM. Lock: held.
	 */
	int (*insert)(struct fid_av *av, const void *addr, uint32_t key,
		      fi_addr_t *fi_addr);
	/*
	 * @ep, which is not enabled yet, has a copy of @keys. Once, instead of
	 * fi_endpoint(3) auth_key. Errors: -FI_ENOMEM. Lock: held.
	 */
	int (*take)(struct fid_ep *ep, const struct tdm_auth_keys *keys);
};

#endif /* TDM_KEYS_H */
