/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named address vectors: a table in a file that processes share. Each process
 * has a view of the file, which is the ordinary table of the vector. All
 * lookups use the view; the functions here bring it up to date.
 *
 * Invariants:
 *  1. An index means the same in each view. A view copies its entries from the
 *     file. An insert locks out other writers, brings its view up to date, and
 *     takes the lowest index that is free in the file.
 *  2. A view is brought up to date when the application passes an index to a
 *     call, and before and after each pass of progress. A peer that sends an
 *     index in a message has written it to the file before, so this process has
 *     read the index from the file by the end of the pass that received the
 *     message.
 *  3. A writer waits for another writer's call to end, but not for a dead
 *     writer. Writers do not wait for readers, except for one that opens the
 *     vector or checks apparent damage.
 *  4. Damaged data are never used: the view stays as it is, and the vector
 *     cannot be changed any more.
 *
 * Lock: the domain lock, then the file's.
 * Spec: fi_av(3) name, map_addr, FI_READ.
 */
#include "av/follow.h"

#include <fcntl.h>

#include <rdma/fi_errno.h>

#include "av/insert.h"
#include "av/local.h"
#include "av/locality.h"
#include "av/shared.h"
#include "av/user_id.h"
#include "base/log.h"

int tdm_av_is_named(const struct tdm_av *av)
{
	return av->shared != NULL;
}

static int fail(struct tdm_av *av)
{
	if (!av->shared->failed)
		TDM_WARN(AV, "%s is damaged", av->shared->pathname);
	av->shared->failed = 1;
	return -FI_EIO;
}

/* Enter @a at @index, which must be free, in this process's view. */
static int place(struct tdm_av *av, uint32_t index, const struct tdm_addr *a)
{
	uint64_t hash = tdm_addr_hash(a);
	uint32_t low;
	int ret = 0;

	if (av->flags & FI_AV_USER_ID)
		ret = tdm_av_user_id_reserve(av, index);
	if (!ret)
		ret = tdm_table_add_at(&av->table, a, hash, index, &low);
	if (!ret)
		(void)tdm_av_placed(av, a, index, low, tdm_locality_filter());
	return ret;
}

/*
 * Make @index of the view equal to the entry of the file: @a, or free if that
 * is NULL. Returns 1 if the view changed, else 0; -FI_ENOMEM.
 */
static int take_entry(struct tdm_av *av, uint32_t index,
		      const struct tdm_addr *a)
{
	struct tdm_addr old;
	int had = tdm_table_has(&av->table, index), ret;

	if (!had && !a)
		return 0;
	if (had) {
		tdm_table_get(&av->table, index, &old);
		if (a && tdm_addr_equal(&old, a))
			return 0;
		tdm_av_drop(av, index);
	}
	ret = a ? place(av, index, a) : 0;
	return ret ? ret : 1;
}

/*
 * Not 0 when @av can hold @a: a vector of IPv4 addresses has no room for
 * others.
 */
static int fits(const struct tdm_av *av, const struct tdm_addr *a)
{
	return av->format != FI_SOCKADDR_IN || a->u.sa.sa_family == AF_INET;
}

/*
 * Copy all entries of @block from the file to the view. Out: *@news becomes 1
 * if an entry changed.
 */
static int take_block(struct tdm_av *av, uint32_t block, int *news)
{
	struct tdm_shared *s = av->shared;
	int ret = tdm_shared_read(s, block);
	struct tdm_addr a;
	uint32_t i;

	for (i = 0; ret >= 0 && i < TDM_SHARED_BLOCK; i++) {
		ret = tdm_shared_decode(&s->copy[i], &a);
		if (ret > 0 && !fits(av, &a))
			ret = -FI_EIO;
		if (ret >= 0)
			ret = take_entry(av, block * TDM_SHARED_BLOCK + i,
					 ret ? &a : NULL);
		if (ret > 0)
			*news = 1;
	}
	return ret < 0 ? ret : 0;
}

/*
 * Copy all blocks that have changed from the file to the view. Errors:
 * -FI_ENOMEM; -FI_EIO: an entry is invalid or being written. After an error the
 * next call copies the remaining blocks.
 */
static int take_changes(struct tdm_av *av)
{
	struct tdm_shared *s = av->shared;
	uint64_t gen = tdm_a64_load_acquire(&s->head->gen);
	uint64_t end = tdm_a64_load_relaxed(&s->head->end), change;
	int ret = 0, news = 0;
	uint32_t b;

	if (gen == s->seen)
		return 0;
	if (end > TDM_SHARED_MOST)
		return fail(av);
	for (b = 0; !ret && (uint64_t)b * TDM_SHARED_BLOCK < end; b++) {
		change = tdm_a64_load_acquire(&s->head->block[b]);
		if (change == s->block[b])
			continue;
		ret = take_block(av, b, &news);
		if (!ret)
			s->block[b] = change;
	}
	if (!ret)
		s->seen = gen;
	if (news)
		tdm_av_tell_changed(av);
	return ret;
}

/*
 * Called after an entry was invalid: read again while no process can write. If
 * an entry is still invalid, the file is damaged, unless a writer died in the
 * middle of a change: then the next writer will repair it.
 */
static int look_closer(struct tdm_av *av)
{
	int ret = tdm_shared_hold(av->shared, F_RDLCK, 0);

	if (ret)
		return ret;
	ret = take_changes(av);
	if (ret == -FI_EIO && !tdm_shared_torn(av->shared))
		ret = fail(av);
	tdm_shared_release(av->shared);
	return ret;
}

void tdm_av_follow(struct tdm_av *av)
{
	struct tdm_shared *s = av->shared;

	if (tdm_likely(!s) || tdm_likely(!tdm_shared_changed(s)) || s->failed ||
	    av->engine->orphan)
		return;
	if (take_changes(av) == -FI_EIO)
		(void)!look_closer(av);
}

void tdm_av_follow_all(struct tdm_list *named)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, named)
		tdm_av_follow(tdm_list_entry(pos, struct tdm_av, named_node));
}

static int begin(struct tdm_av *av)
{
	struct tdm_shared *s = av->shared;
	int ret;

	if (s->failed)
		return -FI_EIO;
	ret = tdm_shared_hold(s, F_WRLCK, 1);
	if (ret)
		return ret;
	if (tdm_unlikely(tdm_shared_torn(s)))
		ret = tdm_shared_repair(s);
	if (!ret)
		ret = take_changes(av);
	if (ret == -FI_EIO)
		ret = fail(av);
	if (ret)
		tdm_shared_release(s);
	return ret;
}

void tdm_av_shared_begin(struct tdm_av *av)
{
	av->unwritable = begin(av);
}

void tdm_av_shared_end(struct tdm_av *av)
{
	if (!av->unwritable)
		tdm_shared_release(av->shared);
	av->unwritable = 0;
}

int tdm_av_share(struct tdm_av *av, const struct tdm_av_attr *owner,
		 const struct fi_av_attr *attr)
{
	const struct tdm_shared_attr a = {
		.domain = owner->domain ? owner->domain : "",
		.name = attr->name,
		.format = av->format,
		.reader = !!(attr->flags & FI_READ),
		.map_addr = attr->map_addr,
	};

	return tdm_shared_open(&a, &av->shared);
}

/*
 * Copy the whole file to the view while no process can write. Errors: those of
 * take_changes(), and of the lock.
 */
static int take_all(struct tdm_av *av, size_t count)
{
	int ret;

	if (!av->shared->reader) {
		ret = begin(av);
		if (ret)
			return ret;
		/* A failure is reported by the insert that needs the room. */
		(void)!tdm_shared_reserve(av->shared, tdm_max(count, 1));
		tdm_shared_release(av->shared);
		return 0;
	}
	ret = tdm_shared_hold(av->shared, F_RDLCK, 1);
	if (ret)
		return ret;
	ret = take_changes(av);
	tdm_shared_release(av->shared);
	return ret;
}

int tdm_av_first_follow(struct tdm_av *av, struct tdm_list *named, size_t count)
{
	int ret;

	tdm_lock_acquire(av->engine->lock);
	ret = take_all(av, count);
	if (!ret && named)
		tdm_list_append(named, &av->named_node);
	tdm_lock_release(av->engine->lock);
	return ret;
}
