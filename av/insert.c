/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The insert calls of an address vector: checks of their arguments, the
 * application's arrays of addresses, and the insertion of one address into the
 * table. symmetric.c finds the addresses that fi_av_insertsym(3) names; event.c
 * handles FI_EVENT.
 *
 * A call with wrong arguments fails as a whole, with a negative fi_errno, and
 * inserts nothing. An address that cannot be used fails alone: it is not
 * counted, its fi_addr is FI_ADDR_NOTAVAIL, and the others are inserted.
 *
 * Lock: the domain lock, taken in the calls of struct fi_ops_av; never while a
 * name is resolved.
 * Spec: fi_av(3).
 */
#include "av/insert.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "av/av_priv.h"
#include "av/event.h"
#include "av/follow.h"
#include "av/key.h"
#include "av/local.h"
#include "av/locality.h"
#include "av/shared.h"
#include "av/symmetric.h"
#include "av/user_id.h"
#include "base/log.h"

#define INSERT_FLAGS                                                           \
	(FI_MORE | FI_SYNC_ERR | FI_SYMMETRIC | FI_AV_USER_ID | FI_AUTH_KEY)
/* FI_FIREWALL_ADDR of libfabric 2.3: a hint that means nothing here. */
#define INSERT_IGNORED (1ULL << 42)

/*
 * Addresses are decoded this many ahead of their insertion, so that the table's
 * memory has been fetched by then.
 */
enum { AHEAD = 16 };

/*
 * Decode address @i, a text. fi_av(3) passes an array of pointers to texts, but
 * fabtests and the shm provider pass the texts themselves, NUL-terminated
 * strings in a row. The first bytes of @array tell which: no pointer consists
 * of the bytes that tandem's addresses begin with.
 */
static int from_text(const void *array, size_t i, const char **at,
		     struct tdm_addr *a)
{
	static const char prefix[] = "fi_sock";
	const char *p = *at;

	if (strncmp(array, prefix, sizeof(prefix) - 1))
		p = ((char *const *)array)[i];
	else
		*at = p + strlen(p) + 1;
	return tdm_addr_from_str(a, p, p ? SIZE_MAX / 2 : 0);
}

int tdm_av_decode(const struct tdm_av *av, const void *array, size_t i,
		  const char **at, struct tdm_addr *a)
{
	const char *p = *at;
	sa_family_t family;
	size_t len;

	if (av->format == FI_ADDR_STR)
		return from_text(array, i, at, a);
	memcpy(&family, p, sizeof(family));
	len = av->format == FI_SOCKADDR_IN6 || (av->format != FI_SOCKADDR_IN &&
						family == AF_INET6) ?
		      sizeof(struct sockaddr_in6) :
		      sizeof(struct sockaddr_in);
	*at = p + len;
	if (av->format == FI_SOCKADDR_IN6 && family != AF_INET6)
		return -FI_EINVAL;
	return tdm_addr_from_sockaddr(a, p, len);
}

/*
 * Write the entry at @index to the file for the other processes; if that fails,
 * remove it from this process's table.
 */
static int publish(struct tdm_av *av, const struct tdm_addr *a, uint32_t index)
{
	int ret = tdm_shared_put(av->shared, index, a);

	if (ret) {
		tdm_table_remove(&av->table, index);
		tdm_av_user_id_drop(av, index);
	}
	return ret;
}

/* Undo the insertion of @a at @index, which no user has heard of. */
static void drop(struct tdm_av *av, const struct tdm_addr *a, uint32_t index)
{
	tdm_table_remove(&av->table, index);
	tdm_av_user_id_drop(av, index);
	if (av->keys)
		tdm_keyring_count(av->keys, a->key, -1);
}

/* Insert one address. Out: *@index. */
static int insert_one(const struct tdm_av_call *call, const struct tdm_addr *a,
		      uint64_t hash, fi_addr_t id, fi_addr_t *index)
{
	struct tdm_av *av = call->av;
	uint32_t i, low;
	int ret;

	/* A vector of IPv4 addresses got an IPv6 address in a text. */
	if (av->format == FI_SOCKADDR_IN && a->u.sa.sa_family != AF_INET)
		return -FI_EINVAL;
	if (tdm_unlikely(av->unwritable))
		return av->unwritable;
	ret = tdm_table_add(&av->table, a, hash, &i, &low);
	if (ret)
		return ret;
	if (call->flags & FI_AV_USER_ID || av->flags & FI_AV_USER_ID) {
		ret = tdm_av_user_id_reserve(av, i);
		if (ret) {
			tdm_table_remove(&av->table, i);
			return ret;
		}
		if (call->flags & FI_AV_USER_ID)
			tdm_av_user_id_set(av, i, id);
	}
	if (tdm_unlikely(av->shared != NULL)) {
		ret = publish(av, a, i);
		if (ret)
			return ret;
	}
	ret = tdm_av_placed(av, a, i, low, call->here);
	/* Other processes have the entry of a shared table by now. */
	if (tdm_unlikely(ret && !av->shared)) {
		drop(av, a, i);
		return ret;
	}
	*index = i;
	return 0;
}

void tdm_av_put(struct tdm_av_call *call, const struct tdm_addr *a,
		uint64_t hash, int err)
{
	fi_addr_t index = FI_ADDR_NOTAVAIL, id = FI_ADDR_NOTAVAIL;
	size_t i = call->at++;
	struct tdm_addr keyed;

	if (call->flags & FI_AV_USER_ID)
		id = call->fi_addr[i];
	if (tdm_unlikely(!err && call->keyed)) {
		keyed = *a;
		err = tdm_av_take_key(call->av,
				      call->fi_addr ? &call->fi_addr[i] : NULL,
				      call->flags, &keyed);
		a = &keyed;
		hash = tdm_addr_hash(a);
	}
	if (!err)
		err = insert_one(call, a, hash, id, &index);
	if (tdm_likely(!err))
		call->inserted++;
	else
		TDM_INFO(AV, "address %zu of %zu not inserted: %s", i,
			 call->count, fi_strerror(-err));
	if (call->fi_addr)
		call->fi_addr[i] = index;
	if (call->errs)
		call->errs[i] = -err;
	if (tdm_unlikely(err && call->av->flags & FI_EVENT))
		tdm_av_event_err(call, i, err);
}

void tdm_av_tell_changed(struct tdm_av *av)
{
	const int moved = av->moved;
	struct tdm_list *pos, *tmp;

	av->moved = 0;
	if (tdm_unlikely(moved))
		tdm_av_local_moved(av);
	tdm_list_for_each_safe(pos, tmp, &av->users) {
		struct tdm_av_user *u =
			tdm_list_entry(pos, struct tdm_av_user, node);

		u->changed(u, moved);
	}
}

void tdm_av_put_end(struct tdm_av_call *call)
{
	if (call->inserted)
		tdm_av_tell_changed(call->av);
	if (call->av->flags & FI_EVENT)
		tdm_av_event_end(call);
}

void tdm_av_put_array(struct tdm_av_call *call, const void *array)
{
	const char *at = array;
	struct tdm_addr a[AHEAD];
	uint64_t hash[AHEAD];
	int ret[AHEAD];
	size_t i, n;

	/*
	 * The filter saves look-ups of many addresses; it does not pay for one.
	 */
	call->here = call->count > 1 ? tdm_locality_filter() : UINT64_MAX;
	if (call->count > AHEAD)
		tdm_table_reserve(&call->av->table, call->count);
	tdm_av_change_begin(call->av);
	while (call->at < call->count) {
		n = tdm_min(call->count - call->at, (size_t)AHEAD);
		for (i = 0; i < n; i++) {
			ret[i] = tdm_av_decode(call->av, array, call->at + i,
					       &at, &a[i]);
			if (ret[i])
				continue;
			hash[i] = tdm_addr_hash(&a[i]);
			tdm_table_prefetch(&call->av->table, hash[i]);
		}
		for (i = 0; i < n; i++)
			tdm_av_put(call, &a[i], hash[i], ret[i]);
	}
	tdm_av_change_end(call->av);
	tdm_av_put_end(call);
}

/* Check the arguments of an insert call. Out: *@call, except its count. */
static int call_init(struct tdm_av_call *call, struct tdm_av *av,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	memset(call, 0, sizeof(*call));
	if (flags & ~(INSERT_FLAGS | INSERT_IGNORED))
		return -FI_EBADFLAGS;
	if (av->flags & FI_READ)
		return -FI_EACCES;
	if (flags & FI_SYNC_ERR && (!context || av->flags & FI_EVENT))
		return -FI_EINVAL;
	if (flags & FI_AV_USER_ID &&
	    (!fi_addr || av->flags & FI_AV_USER_ID || av->keys))
		return -FI_EINVAL;
	if (av->flags & FI_EVENT && !av->eq)
		return -FI_ENOEQ;
	if (av->engine->orphan)
		return -FI_EOPBADSTATE;
	call->av = av;
	call->fi_addr = fi_addr;
	call->errs = flags & FI_SYNC_ERR ? context : NULL;
	call->context = context;
	call->flags = flags;
	call->keyed = av->keys || flags & FI_AUTH_KEY;
	return 0;
}

int tdm_av_insert(struct fid_av *fid, const void *addr, size_t count,
		  fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct tdm_av *av = tdm_av_of(fid);
	struct tdm_av_call call;
	int ret = call_init(&call, av, fi_addr, flags, context);

	if (ret)
		return ret;
	if ((count && !addr) || count > INT32_MAX)
		return -FI_EINVAL;
	call.count = count;
	if (av->flags & FI_EVENT)
		return tdm_av_queue_insert(&call, addr);
	tdm_lock_acquire(av->engine->lock);
	tdm_av_put_array(&call, addr);
	tdm_lock_release(av->engine->lock);
	return (int)call.inserted;
}

/* Insert the addresses of @r in the caller's thread. */
static int insert_range(struct tdm_av_call *call, const struct tdm_av_range *r)
{
	struct tdm_av *av = call->av;
	struct tdm_addr a;
	size_t n;
	int ret;

	call->here = tdm_locality_filter();
	for (n = 0; n < r->nodecnt; n++) {
		/* Without the lock: resolving a name may take seconds. */
		ret = tdm_av_range_node(r, n, &a);
		tdm_lock_acquire(av->engine->lock);
		tdm_av_range_put(r, call, &a, ret);
		tdm_lock_release(av->engine->lock);
	}
	tdm_lock_acquire(av->engine->lock);
	tdm_av_put_end(call);
	tdm_lock_release(av->engine->lock);
	return (int)call->inserted;
}

int tdm_av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt,
		     const char *service, size_t svccnt, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	struct tdm_av *av = tdm_av_of(fid);
	struct tdm_av_range r = { .nodecnt = nodecnt, .svccnt = svccnt };
	struct tdm_av_call call;
	int ret = call_init(&call, av, fi_addr, flags, context);

	if (!ret)
		ret = tdm_av_range_init(&r, av->format, node, service);
	if (ret)
		return ret;
	call.count = nodecnt * svccnt;
	if (!call.count)
		r.nodecnt = 0;
	if (av->flags & FI_EVENT)
		return tdm_av_queue_range(&call, &r);
	return insert_range(&call, &r);
}

int tdm_av_insertsvc(struct fid_av *fid, const char *node, const char *service,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	/* As in fi_getinfo(3), no node is this host. */
	if (!node && service)
		node = tdm_av_of(fid)->format == FI_SOCKADDR_IN6 ? "::1" :
								   "127.0.0.1";
	return tdm_av_insertsym(fid, node, 1, service, 1, fi_addr, flags,
				context);
}
