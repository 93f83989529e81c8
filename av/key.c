/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authorization keys of an address vector. See key.h.
 *
 * A number of a removed key is not reused while an address or an endpoint still
 * refers to it: it would get a key that it was not inserted for.
 *
 * Lock: domain held. Spec: fi_av(3), fi_av_insert_auth_key.
 */
#include "av/key.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "av/av.h"
#include "base/lock.h"
#include "tdm_space.h"

/* A number has 8 bits in an entry of the table; number 0 means no key. */
enum { NUMBERS = 255 };

struct slot {
	struct tdm_auth_key key;
	uint32_t inserts; /* minus removals; 0: the key was removed */
	uint32_t users;	  /* endpoints enabled with it */
	size_t addrs;	  /* addresses inserted for it */
};

struct tdm_keyring {
	size_t live;		   /* keys in use */
	struct slot slot[NUMBERS]; /* slot[number - 1] */
	fi_addr_t id[NUMBERS];	   /* id[number - 1]; FI_ADDR_NOTAVAIL: none */
};

struct tdm_keyring *tdm_keyring_alloc(void)
{
	return calloc(1, sizeof(struct tdm_keyring));
}

void tdm_keyring_free(struct tdm_keyring *ring)
{
	if (!ring)
		return;
	tdm_auth_wipe(ring, sizeof(*ring));
	free(ring);
}

/*
 * Insert a key of @size bytes. Out: *@handle. Errors: -FI_EINVAL for an invalid
 * size, -FI_ENOSPC beyond TDM_AUTH_KEYS_MOST.
 */
static int insert(struct tdm_keyring *ring, const void *key, size_t size,
		  fi_addr_t *handle)
{
	struct slot *room = NULL, *s;

	if (!key || !tdm_auth_size_ok(size))
		return -FI_EINVAL;
	for (s = ring->slot; s < ring->slot + NUMBERS; s++) {
		if (s->inserts && tdm_auth_is(&s->key, key, size))
			break;
		if (!room && !s->inserts && !s->users && !s->addrs)
			room = s;
	}
	if (s == ring->slot + NUMBERS) {
		if (!room || ring->live == TDM_AUTH_KEYS_MOST)
			return -FI_ENOSPC;
		s = room;
		s->key.id = (uint32_t)(s - ring->slot) + 1;
		s->key.size = (uint32_t)size;
		memcpy(s->key.bytes, key, size);
		ring->id[s - ring->slot] = FI_ADDR_NOTAVAIL;
		ring->live++;
	}
	s->inserts++;
	*handle = TDM_SPACE_WILD | s->key.id;
	return 0;
}

/* Returns the key with number @id, or NULL. */
static const struct tdm_auth_key *key_at(const struct tdm_keyring *ring,
					 uint32_t id)
{
	if (!id || id > NUMBERS || !ring->slot[id - 1].inserts)
		return NULL;
	return &ring->slot[id - 1].key;
}

uint32_t tdm_keyring_id(const struct tdm_keyring *ring, fi_addr_t handle)
{
	uint32_t id = handle <= TDM_SPACE_ANY ? tdm_space_key(handle) : 0;

	return key_at(ring, id) ? id : 0;
}

/*
 * Undo one insert of the key of @handle. Errors: -FI_EINVAL when there is none;
 * -FI_EBUSY while an endpoint is enabled with the key.
 */
static int undo_insert(struct tdm_keyring *ring, fi_addr_t handle)
{
	uint32_t id = tdm_keyring_id(ring, handle);
	struct slot *s;

	if (!id)
		return -FI_EINVAL;
	s = &ring->slot[id - 1];
	if (s->users)
		return -FI_EBUSY;
	if (!--s->inserts) {
		tdm_auth_wipe(&s->key, sizeof(s->key));
		ring->live--;
	}
	return 0;
}

const fi_addr_t *tdm_keyring_user_ids(const struct tdm_keyring *ring)
{
	return ring->id;
}

int tdm_keyring_set_id(struct tdm_keyring *ring, fi_addr_t handle, fi_addr_t id)
{
	uint32_t number = tdm_keyring_id(ring, handle);

	if (!number)
		return -FI_EINVAL;
	ring->id[number - 1] = id;
	return 0;
}

void tdm_keyring_count(struct tdm_keyring *ring, uint32_t id, int change)
{
	if (id && id <= NUMBERS)
		ring->slot[id - 1].addrs += (size_t)change;
}

struct tdm_auth_keys *tdm_keyring_copy(const struct tdm_keyring *ring,
				       uint32_t id)
{
	struct tdm_auth_keys *keys = tdm_auth_alloc(id ? 1 : ring->live);
	const struct slot *s;
	size_t n = 0;

	for (s = ring->slot; keys && s < ring->slot + NUMBERS; s++) {
		if (s->inserts && (!id || s->key.id == id))
			keys->key[n++] = s->key;
	}
	return keys;
}

struct tdm_auth_keys *tdm_keyring_take(struct tdm_keyring *ring)
{
	struct tdm_auth_keys *keys = tdm_keyring_copy(ring, 0);
	size_t i;

	for (i = 0; keys && i < keys->count; i++)
		ring->slot[keys->key[i].id - 1].users++;
	return keys;
}

void tdm_keyring_give(struct tdm_keyring *ring, struct tdm_auth_keys *keys)
{
	size_t i;

	for (i = 0; keys && i < keys->count; i++)
		ring->slot[keys->key[i].id - 1].users--;
	tdm_auth_free(keys);
}

int tdm_av_take_key(const struct tdm_av *av, const fi_addr_t *fi_addr,
		    uint64_t flags, struct tdm_addr *a)
{
	const struct tdm_keyring *keys = tdm_av_keys(av);

	if (!keys)
		return flags & FI_AUTH_KEY ? -FI_EINVAL : 0;
	if (!(flags & FI_AUTH_KEY) || !fi_addr)
		return -FI_EINVAL;
	a->key = tdm_keyring_id(keys, *fi_addr);
	return a->key ? 0 : -FI_EINVAL;
}

int tdm_av_remove_keys(struct fid_av *fid, const fi_addr_t *fi_addr,
		       size_t count)
{
	struct tdm_av *av = tdm_av_from_fid(fid);
	struct tdm_keyring *keys = tdm_av_keys(av);
	int ret = 0, one;
	size_t i;

	if (!keys)
		return -FI_EINVAL;
	tdm_lock_acquire(tdm_av_lock(av));
	for (i = 0; i < count; i++) {
		one = undo_insert(keys, fi_addr[i]);
		ret = ret ? ret : one;
	}
	tdm_lock_release(tdm_av_lock(av));
	return ret;
}

int tdm_av_insert_key(struct fid_av *fid, const void *key, size_t size,
		      fi_addr_t *fi_addr, uint64_t flags)
{
	struct tdm_av *av = tdm_av_from_fid(fid);
	struct tdm_keyring *keys = tdm_av_keys(av);
	int ret;

	if (flags)
		return -FI_EBADFLAGS;
	if (!keys || !fi_addr)
		return -FI_EINVAL;
	tdm_lock_acquire(tdm_av_lock(av));
	ret = insert(keys, key, size, fi_addr);
	tdm_lock_release(tdm_av_lock(av));
	return ret;
}

int tdm_av_lookup_key(struct fid_av *fid, fi_addr_t addr, void *buf,
		      size_t *size)
{
	struct tdm_av *av = tdm_av_from_fid(fid);
	struct tdm_keyring *keys = tdm_av_keys(av);
	const struct tdm_auth_key *key;
	uint32_t id;

	if (!keys || !size || (*size && !buf))
		return -FI_EINVAL;
	tdm_lock_acquire(tdm_av_lock(av));
	id = tdm_keyring_id(keys, addr);
	key = key_at(keys, id ? id : tdm_av_key(av, addr));
	if (key) {
		if (*size)
			memcpy(buf, key->bytes,
			       tdm_min(*size, (size_t)key->size));
		*size = key->size;
	}
	tdm_lock_release(tdm_av_lock(av));
	return key ? 0 : -FI_EINVAL;
}
