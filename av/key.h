/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The authorization keys of an address vector, fi_av_insert_auth_key(3). A key
 * has a number from 1 on, its handle is TDM_SPACE_WILD + number. Inserting a
 * key again gives the same handle; the last removal removes the key.
 *
 * All functions: domain lock held, unless they say otherwise.
 */
#ifndef TDM_AV_KEY_H
#define TDM_AV_KEY_H

#include <rdma/fabric.h>

#include "base/auth.h"

struct fid_av;
struct tdm_addr;
struct tdm_av;
struct tdm_keyring;

/*
 * Allocate an empty keyring; NULL: out of memory. Free a keyring and overwrite
 * its keys; @ring may be NULL.
 */
struct tdm_keyring *tdm_keyring_alloc(void);
void tdm_keyring_free(struct tdm_keyring *ring);

/* Returns the number of the key of @handle, or 0: there is none. */
uint32_t tdm_keyring_id(const struct tdm_keyring *ring, fi_addr_t handle);

/*
 * Returns the user ids of the keys: that of key n is element n - 1. They live
 * as long as @ring.
 */
const fi_addr_t *tdm_keyring_user_ids(const struct tdm_keyring *ring);

/* Set the user id of the key of @handle. Errors: -FI_EINVAL: there is none. */
int tdm_keyring_set_id(struct tdm_keyring *ring, fi_addr_t handle,
		       fi_addr_t id) tdm_must_check;

/*
 * Count an address with key number @id that was inserted (@change 1) or removed
 * (-1). While any is counted, the number is not given to another key.
 */
void tdm_keyring_count(struct tdm_keyring *ring, uint32_t id, int change);

/*
 * Returns a copy of all keys of @ring, or of key @id alone unless that is 0.
 * NULL: out of memory. The caller frees it with tdm_auth_free().
 */
struct tdm_auth_keys *tdm_keyring_copy(const struct tdm_keyring *ring,
				       uint32_t id);

/*
 * Take a copy of all keys for an endpoint that is being enabled; NULL: out of
 * memory. Given back when it closes.
 */
struct tdm_auth_keys *tdm_keyring_take(struct tdm_keyring *ring);
void tdm_keyring_give(struct tdm_keyring *ring, struct tdm_auth_keys *keys);

/*
 * Set a->key for an insert into @av; *@fi_addr is the key's handle when the
 * application calls. In a vector with keys each address must have one. Errors:
 * -FI_EINVAL.
 */
int tdm_av_take_key(const struct tdm_av *av, const fi_addr_t *fi_addr,
		    uint64_t flags, struct tdm_addr *a) tdm_must_check;

/*
 * These are fi_av_insert_auth_key(3); fi_av_lookup_auth_key(3), where @addr is a
 * handle or an address; and fi_av_remove(3) with FI_AUTH_KEY, which tries every
 * handle and returns the first error. Lock: taken inside. Errors: -FI_EINVAL: the
 * vector has no keys, or an argument is invalid; -FI_ENOSPC: no room for a key;
 * -FI_EBUSY: an endpoint is enabled with the key; -FI_EBADFLAGS.
 */
int tdm_av_insert_key(struct fid_av *fid, const void *key, size_t size,
		      fi_addr_t *fi_addr, uint64_t flags);
int tdm_av_lookup_key(struct fid_av *fid, fi_addr_t addr, void *buf,
		      size_t *size);
int tdm_av_remove_keys(struct fid_av *fid, const fi_addr_t *fi_addr,
		       size_t count);

#endif /* TDM_AV_KEY_H */
