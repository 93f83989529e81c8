/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vector of the owner. See av.h.
 *
 * The table holds every address; an address whose IP is this namespace's own
 * is also inserted into the peer's AV, with its index as user id. What the
 * peer cannot take is reached by TCP and never fails the insert.
 *
 * Lock: the domain lock, taken in the calls of struct fi_ops_av.
 * Spec: fi_av(3); where its versions differ, 2.1.
 */
#include "av/av.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "av/locality.h"
#include "av/table.h"
#include "peer/link.h"
#include "tdm_log.h"
#include "tdm_nosys.h"

struct tdm_av {
	struct fid_av fid;
	struct tdm_engine *engine;
	struct tdm_table table; /* G: domain */
	struct fid_av *local;	/* the peer's AV, or NULL */
	uint32_t format;	/* FI_SOCKADDR_IN, _IN6, FI_SOCKADDR, STR */
	int rx_ctx_bits;
	struct tdm_list users; /* struct tdm_av_user; G: domain */
	void (*closed)(void *arg);
	void *closed_arg;
};

struct tdm_av *tdm_av_from_fid(struct fid_av *fid)
{
	return tdm_container_of(fid, struct tdm_av, fid);
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

int tdm_av_rx_ctx_bits(const struct tdm_av *av)
{
	return av->rx_ctx_bits;
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

fi_addr_t tdm_av_lowest(const struct tdm_av *av, fi_addr_t fi_addr)
{
	struct tdm_addr a;

	if (tdm_likely(av->table.live == av->table.slots_used))
		return fi_addr; /* no aliases */
	tdm_table_get(&av->table, (uint32_t)fi_addr, &a);
	return tdm_table_find(&av->table, &a);
}

fi_addr_t tdm_av_next_alias(const struct tdm_av *av, fi_addr_t fi_addr)
{
	uint32_t next = av->table.entry[fi_addr].alias;

	return next == TDM_TABLE_NONE ? FI_ADDR_UNSPEC : next;
}

/*
 * Tell the peer of @index if it is a candidate for local. Aliases are not
 * told: the peer reports one user id for one endpoint, the lowest.
 */
static void local_insert(struct tdm_av *av, uint32_t index)
{
	struct tdm_table_entry *e = &av->table.entry[index];
	fi_addr_t peer_addr;
	struct tdm_addr a;

	tdm_table_get(&av->table, index, &a);
	if (!av->local || e->local != TDM_TABLE_NONE ||
	    tdm_table_find(&av->table, &a) != index ||
	    !tdm_locality_is_here(&a))
		return;
	if (tdm_link_av_insert(av->local, &a, index, &peer_addr) ||
	    peer_addr >= TDM_TABLE_NONE)
		return;
	e->local = (uint32_t)peer_addr;
}

static void local_remove(struct tdm_av *av, uint32_t index)
{
	struct tdm_table_entry *e = &av->table.entry[index];

	if (e->local == TDM_TABLE_NONE)
		return;
	tdm_link_av_remove(av->local, e->local);
	e->local = TDM_TABLE_NONE;
}

fi_addr_t tdm_av_local(struct tdm_av *av, fi_addr_t fi_addr)
{
	uint32_t low = (uint32_t)tdm_av_lowest(av, fi_addr);

	/* A relation that could not be made at insert is tried once more. */
	local_insert(av, low);
	return av->table.entry[low].local == TDM_TABLE_NONE ?
		       FI_ADDR_NOTAVAIL :
		       av->table.entry[low].local;
}

void tdm_av_local_renew(struct tdm_av *av, fi_addr_t fi_addr)
{
	uint32_t low = (uint32_t)tdm_av_lowest(av, fi_addr);

	local_remove(av, low);
	local_insert(av, low);
}

struct fid_av *tdm_av_local_fid(struct tdm_av *av)
{
	return av->local;
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

static void tell_inserted(struct tdm_av *av)
{
	struct tdm_list *pos, *tmp;

	tdm_list_for_each_safe(pos, tmp, &av->users) {
		struct tdm_av_user *u =
			tdm_list_entry(pos, struct tdm_av_user, node);

		u->inserted(u);
	}
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

/*
 * Decode element @i of the application's address array. Out: *@a. For
 * formats of mixed size *@at moves on; it starts at the array.
 */
static int decode(const struct tdm_av *av, const void *array, size_t i,
		  const char **at, struct tdm_addr *a)
{
	const char *p = *at;
	sa_family_t family;
	size_t len;

	switch (av->format) {
	case FI_ADDR_STR:
		p = ((char *const *)array)[i];
		return tdm_addr_from_str(a, p, p ? SIZE_MAX / 2 : 0);
	case FI_SOCKADDR_IN:
		len = sizeof(struct sockaddr_in);
		break;
	case FI_SOCKADDR_IN6:
		len = sizeof(struct sockaddr_in6);
		break;
	default:
		memcpy(&family, p, sizeof(family));
		len = family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					   sizeof(struct sockaddr_in);
	}
	*at = p + len;
	return tdm_addr_from_sockaddr(a, p, len);
}

/* Insert one decoded address. Out: *@index. Lock: held. */
static int insert_one(struct tdm_av *av, const struct tdm_addr *a,
		      fi_addr_t *index)
{
	uint32_t i, old_low;
	int ret;

	old_low = tdm_table_find(&av->table, a);
	ret = tdm_table_add(&av->table, a, &i);
	if (ret)
		return ret;
	*index = i;
	/* A lower alias takes over: sources are reported as the lowest. */
	if (old_low != TDM_TABLE_NONE && i < old_low)
		local_remove(av, old_low);
	local_insert(av, i);
	return 0;
}

#define INSERT_FLAGS (FI_MORE | FI_SYNC_ERR | FI_SYMMETRIC)
/* FI_FIREWALL_ADDR of libfabric 2.3: a hint that means nothing here. */
#define INSERT_IGNORED (1ULL << 42)

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct tdm_av *av = tdm_av_from_fid(fid);
	int *errs = (flags & FI_SYNC_ERR) ? context : NULL;
	const char *at = addr;
	struct tdm_addr a;
	fi_addr_t index;
	int ret, done = 0;
	size_t i;

	if (flags & ~(INSERT_FLAGS | INSERT_IGNORED))
		return -FI_EBADFLAGS;
	if ((count && !addr) || count > INT32_MAX ||
	    ((flags & FI_SYNC_ERR) && !context))
		return -FI_EINVAL;
	tdm_lock_acquire(av->engine->lock);
	for (i = 0; i < count; i++) {
		index = FI_ADDR_NOTAVAIL;
		ret = decode(av, addr, i, &at, &a);
		if (!ret)
			ret = insert_one(av, &a, &index);
		if (!ret)
			done++;
		else
			TDM_INFO(AV, "address %zu of %zu not inserted: %s", i,
				 count, fi_strerror(-ret));
		if (fi_addr)
			fi_addr[i] = index;
		if (errs)
			errs[i] = -ret;
	}
	if (done)
		tell_inserted(av);
	tdm_lock_release(av->engine->lock);
	return done;
}

/* Resolve node and service; the first address of a usable family. */
static int resolve(const char *node, const char *service, uint32_t format,
		   struct tdm_addr *a)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *i;
	int ret = -FI_EINVAL;

	hints.ai_family = format == FI_SOCKADDR_IN  ? AF_INET :
			  format == FI_SOCKADDR_IN6 ? AF_INET6 :
						      AF_UNSPEC;
	if (hints.ai_family == AF_INET6)
		hints.ai_flags = AI_V4MAPPED;
	if (getaddrinfo(node, service, &hints, &list))
		return -FI_ENODATA;
	for (i = list; i && ret; i = i->ai_next)
		ret = tdm_addr_from_sockaddr(a, i->ai_addr, i->ai_addrlen);
	freeaddrinfo(list);
	return ret;
}

static int av_insertsvc(struct fid_av *fid, const char *node,
			const char *service, fi_addr_t *fi_addr, uint64_t flags,
			void *context)
{
	struct tdm_av *av = tdm_av_from_fid(fid);
	fi_addr_t index = FI_ADDR_NOTAVAIL;
	struct tdm_addr a;
	int ret;

	if (flags & ~(INSERT_FLAGS | INSERT_IGNORED))
		return -FI_EBADFLAGS;
	if (!node || ((flags & FI_SYNC_ERR) && !context))
		return -FI_EINVAL;
	/* Names are resolved without the lock: that may take seconds. */
	ret = service ? resolve(node, service, av->format, &a) :
			tdm_addr_from_str(&a, node, SIZE_MAX / 2);
	if (!ret) {
		tdm_lock_acquire(av->engine->lock);
		ret = insert_one(av, &a, &index);
		if (!ret)
			tell_inserted(av);
		tdm_lock_release(av->engine->lock);
	}
	if (fi_addr)
		*fi_addr = index;
	if (flags & FI_SYNC_ERR)
		*(int *)context = -ret;
	return ret ? ret : 1;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count,
		     uint64_t flags)
{
	struct tdm_av *av = tdm_av_from_fid(fid);
	size_t i;
	int ret = 0;

	if (flags)
		return -FI_EBADFLAGS;
	if (count && !fi_addr)
		return -FI_EINVAL;
	tdm_lock_acquire(av->engine->lock);
	for (i = 0; i < count; i++) {
		struct tdm_addr a;
		uint32_t index, low;

		if (!tdm_table_has(&av->table, fi_addr[i])) {
			ret = -FI_EINVAL;
			continue;
		}
		index = (uint32_t)fi_addr[i];
		tell_removed(av, index);
		tdm_table_get(&av->table, index, &a);
		local_remove(av, index);
		tdm_table_remove(&av->table, index);
		low = tdm_table_find(&av->table, &a);
		if (low != TDM_TABLE_NONE)
			local_insert(av, low);
	}
	tell_inserted(av); /* an alias may have become the lowest */
	tdm_lock_release(av->engine->lock);
	return ret;
}

/*
 * Write @a in the AV's format, cut to @size bytes. Returns the bytes the whole
 * address needs.
 */
static size_t encode(const struct tdm_av *av, const struct tdm_addr *a,
		     void *buf, size_t size)
{
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 };
	char text[TDM_ADDR_STR_BYTES];
	const void *from = a;
	size_t len = tdm_addr_len(a);

	if (av->format == FI_ADDR_STR) {
		len = tdm_addr_format(a, text, sizeof(text));
		from = text;
	} else if (av->format == FI_SOCKADDR_IN6 &&
		   a->u.sa.sa_family == AF_INET) {
		mapped.sin6_port = a->u.in.sin_port;
		mapped.sin6_addr.s6_addr[10] = 0xff;
		mapped.sin6_addr.s6_addr[11] = 0xff;
		memcpy(&mapped.sin6_addr.s6_addr[12], &a->u.in.sin_addr, 4);
		from = &mapped;
		len = sizeof(mapped);
	}
	if (size)
		memcpy(buf, from, tdm_min(len, size));
	return len;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr,
		     size_t *addrlen)
{
	struct tdm_av *av = tdm_av_from_fid(fid);
	struct tdm_addr a;
	int ret;

	if (!addrlen || (*addrlen && !addr))
		return -FI_EINVAL;
	tdm_lock_acquire(av->engine->lock);
	ret = tdm_av_addr(av, fi_addr, &a);
	tdm_lock_release(av->engine->lock);
	if (!ret)
		*addrlen = encode(av, &a, addr, *addrlen);
	return ret;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf,
			      size_t *len)
{
	struct tdm_av *av = tdm_av_from_fid(fid);
	const char *at = addr;
	struct tdm_addr a;
	char *const one[] = { (char *)(uintptr_t)addr };

	if (!addr || !len || (*len && !buf))
		return NULL;
	if (decode(av, av->format == FI_ADDR_STR ? (const void *)one : addr, 0,
		   &at, &a))
		memset(&a, 0, sizeof(a));
	*len = tdm_addr_format(&a, buf, *len);
	return buf;
}

static int av_close(struct fid *fid)
{
	struct tdm_av *av = tdm_container_of(fid, struct tdm_av, fid.fid);

	tdm_lock_acquire(av->engine->lock);
	if (!tdm_list_empty(&av->users)) {
		tdm_lock_release(av->engine->lock);
		return -FI_EBUSY;
	}
	if (av->local)
		fi_close(&av->local->fid);
	if (av->closed)
		av->closed(av->closed_arg);
	tdm_lock_release(av->engine->lock);
	tdm_table_fini(&av->table);
	free(av);
	return 0;
}

static struct fi_ops tdm_av_fid_ops = {
	.size = sizeof(tdm_av_fid_ops),
	.close = av_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_av tdm_av_ops = {
	.size = sizeof(tdm_av_ops),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = tdm_no_av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = tdm_no_av_av_set,
	.insert_auth_key = tdm_no_av_insert_auth_key,
	.lookup_auth_key = tdm_no_av_lookup_auth_key,
	.set_user_id = tdm_no_av_set_user_id,
};

/* An index keeps 32 bits; contexts are numbered with 16. */
enum { RX_CTX_BITS_MOST = 32 };

static int check_attr(const struct fi_av_attr *attr)
{
	if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_TABLE &&
	    attr->type != FI_AV_MAP)
		return -FI_EINVAL;
	if (attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > RX_CTX_BITS_MOST)
		return -FI_EINVAL;
	/* Named and read-only AVs, events and user ids are not offered. */
	if (attr->name)
		return -FI_ENOSYS;
	if (attr->flags & ~(FI_SYMMETRIC))
		return attr->flags & FI_READ ? -FI_EINVAL : -FI_ENOSYS;
	return 0;
}

int tdm_av_open(const struct tdm_av_attr *owner, struct fi_av_attr *attr,
		void *context, struct tdm_av **out)
{
	struct tdm_av *av;
	int ret;

	ret = check_attr(attr);
	if (ret)
		return ret;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	ret = tdm_table_init(&av->table, attr->count);
	if (ret) {
		free(av);
		return ret;
	}
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &tdm_av_fid_ops;
	av->fid.ops = &tdm_av_ops;
	av->engine = owner->engine;
	av->format = owner->addr_format;
	av->rx_ctx_bits = attr->rx_ctx_bits;
	tdm_list_init(&av->users);
	tdm_lock_acquire(av->engine->lock);
	if (owner->link && tdm_link_av_open(owner->link, attr, &av->local)) {
		TDM_WARN(AV, "peer has no address vector: all pairs use tcp");
		av->local = NULL;
	}
	tdm_lock_release(av->engine->lock);
	attr->type = FI_AV_TABLE;
	*out = av;
	return 0;
}
