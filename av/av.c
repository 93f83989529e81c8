/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vector of the owner. See av.h.
 *
 * The table holds every address; local.c inserts those that may be local into
 * the peer's AV too. The table of a named vector is this process's view of a
 * table that other processes change too: follow.c.
 *
 * Lock: the domain lock, taken in the calls of struct fi_ops_av.
 * Spec: fi_av(3); where its versions differ, 2.1.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "av/av_priv.h"
#include "av/event.h"
#include "av/follow.h"
#include "av/insert.h"
#include "av/key.h"
#include "av/local.h"
#include "av/set.h"
#include "av/shared.h"
#include "av/user_id.h"
#include "base/log.h"
#include "peer/import_eq.h"
#include "peer/eq.h"
#include "tdm_nosys.h"

struct tdm_av *tdm_av_from_fid(struct fid_av *fid)
{
	return tdm_av_of(fid);
}

struct fid_av *tdm_av_fid(struct tdm_av *av)
{
	return &av->fid;
}

int tdm_av_addr(const struct tdm_av *av, fi_addr_t fi_addr,
		struct tdm_addr *addr)
{
	if (!tdm_table_has(&av->table, fi_addr))
		return -FI_EINVAL;
	tdm_table_get(&av->table, (uint32_t)fi_addr, addr);
	return 0;
}

const struct tdm_space *tdm_av_space(const struct tdm_av *av)
{
	return &av->space;
}

struct tdm_lock *tdm_av_lock(const struct tdm_av *av)
{
	return av->engine->lock;
}

struct tdm_keyring *tdm_av_keys(const struct tdm_av *av)
{
	return av->keys;
}

uint32_t tdm_av_key(const struct tdm_av *av, fi_addr_t fi_addr)
{
	return tdm_table_has(&av->table, fi_addr) ?
		       av->table.entry[fi_addr].key :
		       0;
}

int tdm_av_has(const struct tdm_av *av, fi_addr_t fi_addr)
{
	return tdm_table_has(&av->table, fi_addr);
}

fi_addr_t tdm_av_find(const struct tdm_av *av, const struct tdm_addr *addr)
{
	uint32_t i = tdm_table_find(&av->table, addr);

	return i == TDM_TABLE_NONE ? FI_ADDR_UNSPEC : i;
}

fi_addr_t tdm_av_end(const struct tdm_av *av)
{
	return av->table.entries_end;
}

int tdm_av_may_know(const struct tdm_av *av, const struct tdm_addr *addr)
{
	return tdm_table_may_have_ip(&av->table, addr);
}

fi_addr_t tdm_av_lowest(const struct tdm_av *av, fi_addr_t fi_addr)
{
	struct tdm_addr a;

	if (tdm_likely(av->table.live == av->table.slots_used))
		return fi_addr; /* no duplicates */
	tdm_table_get(&av->table, (uint32_t)fi_addr, &a);
	return tdm_table_find(&av->table, &a);
}

fi_addr_t tdm_av_next_same(const struct tdm_av *av, fi_addr_t fi_addr)
{
	uint32_t next = av->table.entry[fi_addr].next_same;

	return next == TDM_TABLE_NONE ? FI_ADDR_UNSPEC : next;
}

void tdm_av_attach(struct tdm_av *av, struct tdm_av_user *user)
{
	tdm_list_append(&av->users, &user->node);
}

void tdm_av_detach(struct tdm_av *av, struct tdm_av_user *user)
{
	(void)av;
	tdm_list_del(&user->node);
}

void tdm_av_on_close(struct tdm_av *av, void (*closed)(void *arg), void *arg)
{
	av->closed = closed;
	av->closed_arg = arg;
}

static void tell_removed(struct tdm_av *av, fi_addr_t fi_addr)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &av->users) {
		struct tdm_av_user *u =
			tdm_list_entry(pos, struct tdm_av_user, node);

		u->removed(u, fi_addr);
	}
}

void tdm_av_drop(struct tdm_av *av, uint32_t index)
{
	struct tdm_addr a;
	uint32_t low;

	tell_removed(av, index);
	tdm_av_set_forget(av, index);
	tdm_table_get(&av->table, index, &a);
	tdm_av_local_remove(av, index);
	tdm_table_remove(&av->table, index);
	tdm_av_user_id_drop(av, index);
	if (av->keys)
		tdm_keyring_count(av->keys, a.key, -1);
	low = tdm_table_find(&av->table, &a);
	if (low != TDM_TABLE_NONE)
		(void)tdm_av_local_lowest(av, low, &a);
	av->moved = 1;
}

static int remove_one(struct tdm_av *av, fi_addr_t fi_addr)
{
	int ret;

	if (!tdm_table_has(&av->table, fi_addr))
		return -FI_EINVAL;
	if (av->shared) {
		ret = av->unwritable ? av->unwritable :
				       tdm_shared_put(av->shared,
						      (uint32_t)fi_addr, NULL);
		if (ret)
			return ret;
	}
	tdm_av_drop(av, (uint32_t)fi_addr);
	return 0;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count,
		     uint64_t flags)
{
	struct tdm_av *av = tdm_av_of(fid);
	int ret = 0, one;
	size_t i;

	if (flags & ~(uint64_t)FI_AUTH_KEY)
		return -FI_EBADFLAGS;
	if (count && !fi_addr)
		return -FI_EINVAL;
	if (av->flags & FI_READ)
		return -FI_EACCES;
	if (av->engine->orphan)
		return -FI_EOPBADSTATE;
	if (flags)
		return tdm_av_remove_keys(fid, fi_addr, count);
	tdm_lock_acquire(av->engine->lock);
	tdm_av_change_begin(av);
	for (i = 0; i < count; i++) {
		one = remove_one(av, fi_addr[i]);
		ret = one ? one : ret;
	}
	tdm_av_change_end(av);
	tdm_av_tell_changed(av);
	tdm_lock_release(av->engine->lock);
	return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr,
		     size_t *addrlen)
{
	struct tdm_av *av = tdm_av_of(fid);
	struct tdm_place place;
	struct tdm_addr a;
	int ret;

	/*
	 * Only the index of @fi_addr selects an address: drop context and
	 * group.
	 */
	if (!addrlen || (*addrlen && !addr) ||
	    tdm_space_split(&av->space, fi_addr, &place))
		return -FI_EINVAL;
	tdm_lock_acquire(av->engine->lock);
	tdm_av_follow(av);
	ret = tdm_av_addr(av, place.addr, &a);
	tdm_lock_release(av->engine->lock);
	if (!ret)
		*addrlen = tdm_addr_encode(&a, av->format, addr, *addrlen);
	return ret;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf,
			      size_t *len)
{
	struct tdm_av *av = tdm_av_of(fid);
	const char *at = addr;
	struct tdm_addr a;
	char *const one[] = { (char *)(uintptr_t)addr };

	if (!addr || !len || (*len && !buf))
		return NULL;
	if (tdm_av_decode(av,
			  av->format == FI_ADDR_STR ? (const void *)one : addr,
			  0, &at, &a))
		memset(&a, 0, sizeof(a));
	*len = tdm_addr_format(&a, buf, *len);
	return buf;
}

/* Free all but the peer's AV. Accepts a zeroed @av. */
static void av_free(struct tdm_av *av)
{
	tdm_table_fini(&av->table);
	tdm_keyring_free(av->keys);
	tdm_shared_close(av->shared);
	free(av->user_ids.id);
	free(av);
}

static int av_close(struct fid *fid)
{
	struct tdm_av *av = tdm_container_of(fid, struct tdm_av, fid.fid);
	int ret;

	/*
	 * A thread that does not exist in this child may hold the queue's lock.
	 */
	if (av->engine->orphan)
		return -FI_EOPBADSTATE;
	tdm_av_queue_hold(av);
	tdm_lock_acquire(av->engine->lock);
	ret = tdm_list_empty(&av->users) && !tdm_av_has_sets(av) ? 0 :
								   -FI_EBUSY;
	if (ret) {
		tdm_lock_release(av->engine->lock);
		tdm_av_queue_release(av);
		return ret;
	}
	tdm_av_queue_cancel(av);
	tdm_list_del(&av->named_node);
	if (av->local)
		fi_close(&av->local->fid);
	if (av->eq)
		tdm_eq_put(av->eq);
	if (av->closed)
		av->closed(av->closed_arg);
	tdm_lock_release(av->engine->lock);
	av_free(av);
	return 0;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct tdm_av *av = tdm_container_of(fid, struct tdm_av, fid.fid);
	int ret = -FI_EINVAL;

	/* fi_eq_write(3) cannot write the errors of an insert to a lent one. */
	if (!bfid || bfid->fclass != FI_CLASS_EQ || tdm_import_eq_of(bfid))
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	tdm_lock_acquire(av->engine->lock);
	if (!av->eq) {
		av->eq = tdm_eq_from_fid((struct fid_eq *)bfid);
		tdm_eq_get(av->eq);
		ret = 0;
	}
	tdm_lock_release(av->engine->lock);
	return ret;
}

static struct fi_ops tdm_av_fid_ops = {
	.size = sizeof(tdm_av_fid_ops),
	.close = av_close,
	.bind = av_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_av tdm_av_ops = {
	.size = sizeof(tdm_av_ops),
	.insert = tdm_av_insert,
	.insertsvc = tdm_av_insertsvc,
	.insertsym = tdm_av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = tdm_av_set_open,
	.insert_auth_key = tdm_av_insert_key,
	.lookup_auth_key = tdm_av_lookup_key,
	.set_user_id = tdm_av_set_user_id,
};

/* An index has 32 bits; groups and contexts share the others. */
enum { RX_CTX_BITS_MOST = 32 };

static int check_attr(const struct tdm_av_attr *owner,
		      const struct fi_av_attr *attr)
{
	if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_TABLE &&
	    attr->type != FI_AV_MAP)
		return -FI_EINVAL;
	if (attr->rx_ctx_bits < 0 ||
	    attr->rx_ctx_bits + tdm_space_group_bits(owner->collective ?
							     TDM_COLL_GROUP :
							     owner->max_group) >
		    RX_CTX_BITS_MOST)
		return -FI_EINVAL;
	if (attr->flags & FI_READ && !attr->name)
		return -FI_EINVAL;
	if (attr->flags & ~(FI_SYMMETRIC | FI_EVENT | FI_AV_USER_ID | FI_READ))
		return -FI_EBADFLAGS;
	/* Each process numbers its keys itself, and keys are its secrets. */
	if (attr->name && owner->keys)
		return -FI_ENOSYS;
	return 0;
}

/* Do the steps of opening that can fail without leaving traces. */
static int av_init(struct tdm_av *av, const struct tdm_av_attr *owner,
		   struct fi_av_attr *attr)
{
	int ret = tdm_table_init(&av->table, attr->count);

	if (!ret && owner->keys) {
		av->keys = tdm_keyring_alloc();
		ret = av->keys ? 0 : -FI_ENOMEM;
		if (!ret && av->flags & FI_AV_USER_ID)
			av->user_ids.key_id = tdm_keyring_user_ids(av->keys);
	}
	if (!ret && av->flags & FI_AV_USER_ID)
		ret = tdm_av_user_id_reserve(av, 0);
	if (!ret && attr->name)
		ret = tdm_av_share(av, owner, attr);
	if (!ret && av->flags & FI_EVENT)
		ret = tdm_av_queue_open(av);
	return ret;
}

int tdm_av_open(const struct tdm_av_attr *owner, struct fi_av_attr *attr,
		void *context, struct tdm_av **out)
{
	struct tdm_av *av;
	int ret;

	ret = check_attr(owner, attr);
	if (ret)
		return ret;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &tdm_av_fid_ops;
	av->fid.ops = &tdm_av_ops;
	av->engine = owner->engine;
	av->format = owner->addr_format;
	av->flags = attr->flags;
	av->space.ctx_bits = attr->rx_ctx_bits;
	av->space.max_group = owner->max_group;
	tdm_list_init(&av->users);
	tdm_list_init(&av->sets);
	av->type = attr->type;
	tdm_list_init(&av->named_node);
	ret = av_init(av, owner, attr);
	if (ret) {
		av_free(av);
		return ret;
	}
	tdm_av_local_open(av, owner->link, attr);
	ret = attr->name ? tdm_av_first_follow(av, owner->named, attr->count) :
			   0;
	if (ret) {
		(void)!av_close(&av->fid.fid);
		return ret;
	}
	if (attr->name)
		attr->map_addr = av->shared->array;
	attr->type = FI_AV_TABLE;
	*out = av;
	return 0;
}
