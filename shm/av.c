/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer's address vector: socket addresses and, for each, its address in the
 * owner's space (FI_AV_USER_ID). It has no sessions: an endpoint makes a pair
 * when it first sends to an address, or when another process attaches.
 *
 * Invariants:
 *  1. Indices are dense, lowest free first. An address may be inserted more
 *     than once; messages from it carry its lowest user id.
 *  2. The pairs of an address know their source before foreach_unspec_addr()
 *     asks for it, which it does only if an insert or removal gave one of them
 *     a source, or after an insert of no address.
 * Locking: domain lock held. Spec: fi_av(3), fi_peer(3) foreach_unspec_addr.
 */
#include "shm/av.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

#include "shm/ep.h"
#include "shm/keys.h"
#include "shm/unexp.h"
#include "tdm_nosys.h"

enum { AV_NONE = UINT32_MAX, AV_FIRST_ENTRIES = 16 };

struct av_entry {
	struct tdm_shm_addr addr; /* len 0: free */
	/* next in the hash chain, or in the free list */
	uint32_t next;
	fi_addr_t user_id;
};

struct tdm_shm_av {
	struct fid_av fid;
	struct tdm_shm_domain *domain;
	struct av_entry *entry;
	uint32_t size;	 /* entries allocated; power of 2, as hash[] */
	uint32_t top;	 /* all entries from here on are free */
	uint32_t lowest; /* no entry below is free */
	uint32_t *hash;
	struct tdm_space space;
	struct tdm_list eps;
};

static struct tdm_shm_av *av_from_fid(struct fid_av *fid)
{
	return tdm_container_of(fid, struct tdm_shm_av, fid);
}

struct tdm_shm_av *tdm_shm_av_from_fid(struct fid *fid)
{
	return tdm_container_of(fid, struct tdm_shm_av, fid.fid);
}

static uint32_t *av_bucket(const struct tdm_shm_av *av,
			   const struct tdm_shm_addr *addr)
{
	return &av->hash[tdm_shm_addr_hash(addr) & (av->size - 1)];
}

static int av_grow(struct tdm_shm_av *av)
{
	uint32_t size = av->size ? 2 * av->size : AV_FIRST_ENTRIES, i;
	struct av_entry *entry;
	uint32_t *hash;

	hash = malloc(size * sizeof(*hash));
	if (!hash)
		return -FI_ENOMEM;
	entry = realloc(av->entry, size * sizeof(*entry));
	if (!entry) {
		free(hash);
		return -FI_ENOMEM;
	}
	memset(entry + av->size, 0, (size - av->size) * sizeof(*entry));
	memset(hash, 0xff, size * sizeof(*hash));
	free(av->hash);
	av->hash = hash;
	av->entry = entry;
	av->size = size;
	for (i = 0; i < av->top; i++) {
		uint32_t *head;

		if (!entry[i].addr.len)
			continue;
		head = av_bucket(av, &entry[i].addr);
		entry[i].next = *head;
		*head = i;
	}
	return 0;
}

const struct tdm_space *tdm_shm_av_space(const struct tdm_shm_av *av)
{
	return &av->space;
}

fi_addr_t tdm_shm_av_source(const struct tdm_shm_av *av,
			    const struct tdm_shm_addr *addr)
{
	fi_addr_t low = FI_ADDR_UNSPEC;
	uint32_t i;

	if (!av->size)
		return low;
	for (i = *av_bucket(av, addr); i != AV_NONE; i = av->entry[i].next) {
		if (tdm_shm_addr_equal(&av->entry[i].addr, addr) &&
		    av->entry[i].user_id < low)
			low = av->entry[i].user_id;
	}
	return low;
}

int tdm_shm_av_addr(const struct tdm_shm_av *av, fi_addr_t fi_addr,
		    struct tdm_shm_addr *addr)
{
	if (fi_addr >= av->top || !av->entry[fi_addr].addr.len)
		return -FI_EINVAL;
	*addr = av->entry[fi_addr].addr;
	return 0;
}

/* Have the owner ask for the sources of the messages that have none. */
static void ask(struct tdm_shm_ep *ep)
{
	if (ep->enabled && ep->srx)
		ep->srx->owner_ops->foreach_unspec_addr(ep->srx,
							tdm_shm_rx_source);
}

/*
 * Called after the table changed: sets the sources of the pairs with @addr. The
 * owner asks for those of an endpoint's messages only if one has become known.
 */
static void av_resolve(struct tdm_shm_av *av, const struct tdm_shm_addr *addr)
{
	fi_addr_t source = tdm_shm_av_source(av, addr);
	struct tdm_list *pos;

	tdm_list_for_each(pos, &av->eps) {
		struct tdm_shm_ep *ep =
			tdm_list_entry(pos, struct tdm_shm_ep, av_node);
		struct tdm_shm_pair *pair = tdm_shm_pair_find(ep, addr, 0);

		if (!pair || pair->owner_addr == source)
			continue;
		tdm_shm_pair_source(pair, source, pair->rx_group);
		if (source != FI_ADDR_UNSPEC)
			ask(ep);
	}
}

static int av_insert_one(struct tdm_shm_av *av, const struct tdm_shm_addr *addr,
			 fi_addr_t *fi_addr)
{
	uint32_t i = av->lowest, *head;

	while (i < av->top && av->entry[i].addr.len)
		i++;
	if (i == av->size && av_grow(av))
		return -FI_ENOMEM;
	av->entry[i].addr = *addr;
	av->entry[i].user_id = *fi_addr;
	head = av_bucket(av, addr);
	av->entry[i].next = *head;
	*head = i;
	av->lowest = i + 1;
	if (av->top <= i)
		av->top = i + 1;
	*fi_addr = i;
	av_resolve(av, addr);
	return 0;
}

static size_t sockaddr_bytes(const void *sa)
{
	sa_family_t family;

	memcpy(&family, sa, sizeof(family));
	return family == AF_INET6 ? sizeof(struct sockaddr_in6) :
				    sizeof(struct sockaddr_in);
}

int tdm_shm_av_insert_key(struct fid_av *fid, const void *addr, uint32_t key,
			  fi_addr_t *fi_addr)
{
	struct tdm_shm_addr a;
	int ret = tdm_shm_addr_set(&a, addr, sockaddr_bytes(addr));

	if (ret)
		return ret;
	a.key = key;
	return av_insert_one(av_from_fid(fid), &a, fi_addr);
}

/* For an owner that has forgotten the sources of messages. */
static void ask_all(const struct tdm_shm_av *av)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &av->eps)
		ask(tdm_list_entry(pos, struct tdm_shm_ep, av_node));
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	const char *sa = addr;
	size_t i;
	int done = 0;

	if (!(flags & FI_AV_USER_ID) || (count && !fi_addr))
		return -FI_EINVAL;
	if (!count)
		ask_all(av_from_fid(fid));
	if (flags & FI_SYNC_ERR && context)
		memset(context, 0, count * sizeof(int));
	for (i = 0; i < count; i++) {
		const char *at = sa;
		int ret;

		sa += sockaddr_bytes(at);
		ret = tdm_shm_av_insert_key(fid, at, 0, &fi_addr[i]);
		if (ret) {
			fi_addr[i] = FI_ADDR_NOTAVAIL;
			if (count == 1 && ret == -FI_ENOMEM)
				return ret;
			if (flags & FI_SYNC_ERR && context)
				((int *)context)[i] = -ret;
		} else {
			done++;
		}
	}
	return done;
}

/*
 * Remove @index from @ep's table of pairs. If no other index has the address,
 * the pending sends to it fail, and a pair that was refused becomes NONE: it can
 * attach when the address is inserted once more.
 */
static void pair_forget(struct tdm_shm_ep *ep, const struct tdm_shm_addr *addr,
			uint32_t index)
{
	struct tdm_shm_pair *pair = tdm_shm_pair_find(ep, addr, 0);

	if (!pair)
		return;
	if (index < ep->by_addr_count && ep->by_addr[index] == pair) {
		ep->by_addr[index] = NULL;
		pair->refs--;
	}
	if (pair->state == TDM_SHM_PAIR_FAILED)
		tdm_shm_pair_set_state(pair, TDM_SHM_PAIR_NONE);
	pair->refused_told = 0;
	pair->silent = 0;
	if (tdm_shm_av_source(ep->av, addr) == FI_ADDR_UNSPEC)
		tdm_shm_op_forget(pair);
	tdm_shm_pair_release(pair);
}

static int av_remove_one(struct tdm_shm_av *av, fi_addr_t fi_addr)
{
	struct tdm_shm_addr addr;
	uint32_t index, *link;
	struct tdm_list *pos;

	if (tdm_shm_av_addr(av, fi_addr, &addr))
		return -FI_EINVAL;
	index = (uint32_t)fi_addr;
	for (link = av_bucket(av, &addr); *link != index;
	     link = &av->entry[*link].next)
		;
	*link = av->entry[index].next;
	memset(&av->entry[index], 0, sizeof(av->entry[index]));
	if (index < av->lowest)
		av->lowest = index;
	while (av->top && !av->entry[av->top - 1].addr.len)
		av->top--;
	av_resolve(av, &addr);
	tdm_list_for_each(pos, &av->eps)
		pair_forget(tdm_list_entry(pos, struct tdm_shm_ep, av_node),
			    &addr, index);
	return 0;
}

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count,
		     uint64_t flags)
{
	int ret = 0;
	size_t i;

	for (i = 0; i < count && !ret; i++)
		ret = av_remove_one(av_from_fid(fid), fi_addr[i]);
	return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr,
		     size_t *addrlen)
{
	struct tdm_shm_addr a;
	int ret;

	ret = tdm_shm_av_addr(av_from_fid(fid), fi_addr, &a);
	if (ret)
		return ret;
	memcpy(addr, a.sa, tdm_min(*addrlen, a.len));
	*addrlen = a.len;
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf,
			      size_t *len)
{
	if (*len)
		buf[0] = 0;
	*len = 1;
	return buf;
}

void tdm_shm_av_bind(struct tdm_shm_av *av, struct tdm_shm_ep *ep)
{
	tdm_list_append(&av->eps, &ep->av_node);
}

void tdm_shm_av_unbind(struct tdm_shm_av *av, struct tdm_shm_ep *ep)
{
	tdm_list_del(&ep->av_node);
}

static int av_close(struct fid *fid)
{
	struct tdm_shm_av *av = tdm_shm_av_from_fid(fid);

	if (!tdm_list_empty(&av->eps))
		return -FI_EBUSY;
	av->domain->refs--;
	free(av->entry);
	free(av->hash);
	free(av);
	return 0;
}

static struct fi_ops av_fi_ops = {
	.size = sizeof(av_fi_ops),
	.close = av_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_shm_keys_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_av av_ops = {
	.size = sizeof(av_ops),
	.insert = av_insert,
	.insertsvc = tdm_no_av_insertsvc,
	.insertsym = tdm_no_av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = tdm_no_av_av_set,
	.insert_auth_key = tdm_no_av_insert_auth_key,
	.lookup_auth_key = tdm_no_av_lookup_auth_key,
	.set_user_id = tdm_no_av_set_user_id,
};

int tdm_shm_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		    struct fid_av **out, void *context)
{
	struct tdm_shm_av *av;

	/* fi_peer(3), PEER AV: no vector of an owner is imported here. */
	if (!attr || attr->flags & FI_PEER || attr->rx_ctx_bits < 0 ||
	    attr->rx_ctx_bits > 63 ||
	    (attr->type != FI_AV_TABLE && attr->type != FI_AV_UNSPEC))
		return -FI_EINVAL;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av->domain = tdm_container_of(domain, struct tdm_shm_domain, fid);
	av->domain->refs++;
	tdm_list_init(&av->eps);
	av->space.ctx_bits = attr->rx_ctx_bits;
	av->space.max_group = av->domain->max_group;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &av_fi_ops;
	av->fid.ops = &av_ops;
	attr->type = FI_AV_TABLE;
	*out = &av->fid;
	return 0;
}
