/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorization keys of addresses in a peer provider, for domains opened with
 * FI_AV_AUTH_KEY. fi_av(3) cannot insert an address with a key and with a user
 * id in one call, and the peer has to use the owner's numbers of keys.
 *
 * The owner opens the peer's domain with auth_key_size FI_AV_AUTH_KEY. Each
 * address and each session of the peer then has the number of a key. The
 * address in an offer to the owner is a match address (tdm_space.h); for a
 * source that is not in the address vector it has the number of the source's
 * key.
 */
#ifndef TDM_KEYS_H
#define TDM_KEYS_H

#include <stddef.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "base/auth.h"

/*
 * Name for fi_open_ops(3) on an address vector or endpoint of the peer
 * provider. A peer provider need not offer this; the owner then does not use it
 * for addresses and endpoints with keys.
 */
#define TDM_KEYS_OPS "tandem_keys_1"

struct tdm_keys_ops {
	size_t size;
	/*
	 * Inserts the one address @addr with key number @key, as
	 * fi_av_insert(3) with FI_AV_USER_ID does. In: *@fi_addr, the user id.
	 * Out: *@fi_addr, the peer's address. Errors: -FI_EINVAL, -FI_ENOMEM.
	 * Lock: held.
	 */
	int (*insert)(struct fid_av *av, const void *addr, uint32_t key,
		      fi_addr_t *fi_addr);
	/*
	 * Gives @ep, which is not enabled yet, a copy of @keys. Called at most
	 * once, instead of setting the key of fi_endpoint(3) auth_key. Errors:
	 * -FI_ENOMEM. Lock: held.
	 */
	int (*take)(struct fid_ep *ep, const struct tdm_auth_keys *keys);
};

#endif /* TDM_KEYS_H */
