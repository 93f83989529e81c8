/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of addresses. See set.h.
 *
 * Invariants:
 *  1. member[] has no index twice, and each is in use in the vector.
 *  2. A bit of has[] is set if, and only if, its index is in member[].
 *
 * Lock: the domain lock, taken in the calls of struct fi_ops_av_set and in
 * tdm_av_set_open().
 * Spec: fi_av_set(3) 2.1.
 */
#include "av/set.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "av/av_priv.h"
#include "tdm_nosys.h"

struct tdm_av_set {
	struct fid_av_set fid;
	struct tdm_av *av;
	struct tdm_list node; /* av->sets */
	uint64_t addr;	      /* fi_av_set_addr(3) */
	uint64_t flags;	      /* of fi_av_set(3), FI_BARRIER_SET and the like */
	size_t count, max;    /* max: allocated */
	fi_addr_t *member;    /* member[count], in the order of the set */
	uint64_t *has;	      /* has[words], a bit for each index */
	size_t words;
};

enum { FIRST_MEMBERS = 16, WORD_BITS = 64 };

#define SET_FLAGS                                                              \
	(FI_BARRIER_SET | FI_BROADCAST_SET | FI_ALLTOALL_SET |                 \
	 FI_ALLREDUCE_SET | FI_ALLGATHER_SET | FI_REDUCE_SCATTER_SET |         \
	 FI_REDUCE_SET | FI_SCATTER_SET | FI_GATHER_SET)

static struct tdm_av_set *of(struct fid_av_set *fid)
{
	return tdm_container_of(fid, struct tdm_av_set, fid);
}

static const struct tdm_av_set *of_const(const struct fid_av_set *fid)
{
	return tdm_container_of(fid, const struct tdm_av_set, fid);
}

static int has(const struct tdm_av_set *set, fi_addr_t index)
{
	return index / WORD_BITS < set->words &&
	       set->has[index / WORD_BITS] >> index % WORD_BITS & 1;
}

static void flip(struct tdm_av_set *set, fi_addr_t index)
{
	set->has[index / WORD_BITS] ^= 1ull << index % WORD_BITS;
}

/*
 * Make room for @more members with indices below @end. Errors: -FI_ENOMEM, with
 * the members unchanged.
 */
static int reserve(struct tdm_av_set *set, size_t more, fi_addr_t end)
{
	size_t max = tdm_max(set->max, (size_t)FIRST_MEMBERS);
	size_t words = (size_t)(end + WORD_BITS - 1) / WORD_BITS;
	fi_addr_t *member;
	uint64_t *bits;

	while (max < set->count + more)
		max *= 2;
	if (max > set->max) {
		member = realloc(set->member, max * sizeof(*member));
		if (!member)
			return -FI_ENOMEM;
		set->member = member;
		set->max = max;
	}
	if (words <= set->words)
		return 0;
	words = tdm_roundup_pow2(words);
	bits = realloc(set->has, words * sizeof(*bits));
	if (!bits)
		return -FI_ENOMEM;
	memset(bits + set->words, 0, (words - set->words) * sizeof(*bits));
	set->has = bits;
	set->words = words;
	return 0;
}

/* Append @index, for which there is room, unless it is there already. */
static void append(struct tdm_av_set *set, fi_addr_t index)
{
	if (has(set, index))
		return;
	flip(set, index);
	set->member[set->count++] = index;
}

/*
 * Keep the members of which @src has (@kept 1) or lacks (@kept 0) the index, in
 * their order.
 */
static void keep(struct tdm_av_set *set, const struct tdm_av_set *src, int kept)
{
	size_t i, n = 0;

	for (i = 0; i < set->count; i++) {
		fi_addr_t index = set->member[i];

		if (has(src, index) == kept)
			set->member[n++] = index;
	}
	set->count = n;
	memset(set->has, 0, set->words * sizeof(*set->has));
	for (i = 0; i < n; i++)
		flip(set, set->member[i]);
}

static void drop(struct tdm_av_set *set, fi_addr_t index)
{
	size_t i = 0;

	while (set->member[i] != index)
		i++;
	flip(set, index);
	set->count--;
	memmove(&set->member[i], &set->member[i + 1],
		(set->count - i) * sizeof(*set->member));
}

enum change { UNION, INTERSECT, DIFF };

static int combine(struct fid_av_set *fid, const struct fid_av_set *from,
		   enum change change)
{
	const struct tdm_av_set *src;
	struct tdm_av_set *dst = of(fid);
	size_t i;
	int ret = 0;

	if (!from)
		return -FI_EINVAL;
	src = of_const(from);
	if (src->av != dst->av)
		return -FI_EINVAL;
	tdm_lock_acquire(dst->av->engine->lock);
	if (change != UNION) {
		if (src != dst)
			keep(dst, src, change == INTERSECT);
		else if (change == DIFF)
			while (dst->count)
				flip(dst, dst->member[--dst->count]);
	} else if (src != dst) {
		ret = reserve(dst, src->count, tdm_av_end(dst->av));
		for (i = 0; !ret && i < src->count; i++)
			append(dst, src->member[i]);
	}
	tdm_lock_release(dst->av->engine->lock);
	return ret;
}

static int set_union(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return combine(dst, src, UNION);
}

static int set_intersect(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return combine(dst, src, INTERSECT);
}

static int set_diff(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return combine(dst, src, DIFF);
}

static int set_insert(struct fid_av_set *fid, fi_addr_t addr)
{
	struct tdm_av_set *set = of(fid);
	int ret = -FI_EINVAL;

	tdm_lock_acquire(set->av->engine->lock);
	if (tdm_av_has(set->av, addr) && !has(set, addr)) {
		ret = reserve(set, 1, addr + 1);
		if (!ret)
			append(set, addr);
	}
	tdm_lock_release(set->av->engine->lock);
	return ret;
}

static int set_remove(struct fid_av_set *fid, fi_addr_t addr)
{
	struct tdm_av_set *set = of(fid);
	int ret = -FI_EINVAL;

	tdm_lock_acquire(set->av->engine->lock);
	if (has(set, addr)) {
		drop(set, addr);
		ret = 0;
	}
	tdm_lock_release(set->av->engine->lock);
	return ret;
}

static int set_addr(struct fid_av_set *fid, fi_addr_t *addr)
{
	if (!addr)
		return -FI_EINVAL;
	*addr = of(fid)->addr;
	return 0;
}

static void set_free(struct tdm_av_set *set)
{
	free(set->member);
	free(set->has);
	free(set);
}

static int set_close(struct fid *fid)
{
	struct tdm_av_set *set =
		tdm_container_of(fid, struct tdm_av_set, fid.fid);
	struct tdm_lock *lock = set->av->engine->lock;

	if (set->av->engine->orphan)
		return -FI_EOPBADSTATE;
	tdm_lock_acquire(lock);
	tdm_list_del(&set->node);
	tdm_lock_release(lock);
	set_free(set);
	return 0;
}

static struct fi_ops set_fid_ops = {
	.size = sizeof(set_fid_ops),
	.close = set_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_av_set set_ops = {
	.size = sizeof(set_ops),
	.set_union = set_union,
	.intersect = set_intersect,
	.diff = set_diff,
	.insert = set_insert,
	.remove = set_remove,
	.addr = set_addr,
};

/* Not 0 when @attr names a range of indices. */
static int is_range(const struct fi_av_set_attr *attr)
{
	return !(attr->flags & FI_UNIVERSE) &&
	       attr->start_addr != FI_ADDR_NOTAVAIL;
}

static int check_range(const struct tdm_av *av,
		       const struct fi_av_set_attr *attr)
{
	fi_addr_t span;

	if (!is_range(attr))
		return attr->flags & FI_UNIVERSE ||
				       attr->end_addr == FI_ADDR_NOTAVAIL ?
			       0 :
			       -FI_EINVAL;
	if (av->type == FI_AV_MAP || attr->end_addr == FI_ADDR_NOTAVAIL ||
	    attr->start_addr > attr->end_addr)
		return -FI_EINVAL;
	span = attr->end_addr - attr->start_addr;
	if (span && !attr->stride)
		return -FI_EINVAL;
	/* count 0: as many as there are */
	return attr->count && span / tdm_max(attr->stride, 1) >= attr->count ?
		       -FI_EINVAL :
		       0;
}

static int check(const struct tdm_av *av, const struct fi_av_set_attr *attr)
{
	if (attr->flags & ~(FI_UNIVERSE | SET_FLAGS))
		return -FI_EBADFLAGS;
	/* There is no agent that knows keys of groups. */
	if (attr->comm_key_size)
		return attr->comm_key ? -FI_EOPNOTSUPP : -FI_EINVAL;
	return check_range(av, attr);
}

/* Give @set its first members. Errors: -FI_ENOMEM. */
static int fill(struct tdm_av_set *set, const struct fi_av_set_attr *attr)
{
	fi_addr_t end = tdm_av_end(set->av), first = 0, step = 1, i;
	int ret;

	if (is_range(attr)) {
		first = attr->start_addr;
		step = tdm_max(attr->stride, 1);
		end = attr->end_addr < end ? attr->end_addr + 1 : end;
	} else if (!(attr->flags & FI_UNIVERSE)) {
		return 0;
	}
	if (first >= end)
		return 0;
	ret = reserve(set, (size_t)((end - first - 1) / step) + 1, end);
	if (ret)
		return ret;
	for (i = first; i < end; i += tdm_min(step, end - i)) {
		if (tdm_av_has(set->av, i))
			append(set, i);
	}
	return 0;
}

int tdm_av_set_open(struct fid_av *fid, struct fi_av_set_attr *attr,
		    struct fid_av_set **out, void *context)
{
	struct tdm_av *av = tdm_av_of(fid);
	struct tdm_av_set *set;
	int ret;

	if (!attr || !out)
		return -FI_EINVAL;
	ret = check(av, attr);
	if (ret)
		return ret;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->fid.fid.fclass = FI_CLASS_AV_SET;
	set->fid.fid.context = context;
	set->fid.fid.ops = &set_fid_ops;
	set->fid.ops = &set_ops;
	set->av = av;
	set->flags = attr->flags & SET_FLAGS;
	tdm_lock_acquire(av->engine->lock);
	ret = fill(set, attr);
	if (!ret) {
		set->addr = TDM_AV_SET_ADDR |
			    (av->set_count++ & (TDM_SPACE_WILD - 1));
		tdm_list_append(&av->sets, &set->node);
	}
	tdm_lock_release(av->engine->lock);
	if (ret) {
		set_free(set);
		return ret;
	}
	*out = &set->fid;
	return 0;
}

void tdm_av_set_forget(struct tdm_av *av, fi_addr_t index)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &av->sets) {
		struct tdm_av_set *set =
			tdm_list_entry(pos, struct tdm_av_set, node);

		if (has(set, index))
			drop(set, index);
	}
}

size_t tdm_av_set_members(const struct fid_av_set *fid,
			  const fi_addr_t **member)
{
	*member = of_const(fid)->member;
	return of_const(fid)->count;
}

uint64_t tdm_av_set_flags(const struct fid_av_set *fid)
{
	return of_const(fid)->flags;
}

int tdm_av_set_is_of(const struct tdm_av *av, const struct fid_av_set *fid)
{
	return fid->fid.fclass == FI_CLASS_AV_SET && of_const(fid)->av == av;
}

int tdm_av_is_set_addr(const struct tdm_av *av, fi_addr_t addr)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &av->sets) {
		if (tdm_list_entry(pos, struct tdm_av_set, node)->addr == addr)
			return 1;
	}
	return 0;
}

int tdm_av_has_sets(const struct tdm_av *av)
{
	return !tdm_list_empty(&av->sets);
}
