/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engines of an event queue; see eq_drive.h.
 *
 * Invariants:
 *  1. As soon as drive->set exists, each engine is a member of it: an object
 *     with nothing to read, whose look() makes progress and arms, like that of
 *     a CQ.
 *  2. An engine is used only while drive->mutex or the lock of the set is held.
 *     tdm_eq_drive_del() takes both, so the domain may be freed afterwards.
 *
 * Locking: drive->mutex, then a wait set's, then a domain's, then an EQ's.
 * Spec: fi_domain(3), FI_PROGRESS_MANUAL; fi_eq(3).
 */
#include "peer/eq_drive.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "peer/patience.h"
#include "peer/wait.h"

struct driven {
	struct tdm_list node;
	struct tdm_engine *engine;
	size_t users; /* calls of tdm_eq_drive_add(); G: mutex */
	/* engine->passes after the last pass made here; G: domain */
	uint64_t seen;
	struct tdm_wait wait;
};

void tdm_eq_drive_init(struct tdm_eq_drive *drive)
{
	pthread_mutex_init(&drive->mutex, NULL);
	tdm_list_init(&drive->engines);
	tdm_a32_store_relaxed(&drive->count, 0);
	drive->set = NULL;
	drive->own_set = 0;
}

void tdm_eq_drive_fini(struct tdm_eq_drive *drive,
		       struct tdm_waitset_member *member)
{
	tdm_waitset_leave(member);
	if (drive->own_set)
		fi_close(&tdm_waitset_fid(drive->set)->fid);
	pthread_mutex_destroy(&drive->mutex);
}

/*
 * The look() of a struct tdm_waitset_member. The queue reports the events that
 * the pass wrote.
 */
static int engine_look(void *arg, int progress)
{
	struct driven *d = arg;
	int ret;

	tdm_lock_acquire(d->engine->lock);
	if (progress)
		d->engine->progress(d->engine);
	ret = tdm_wait_look(&d->wait);
	tdm_lock_release(d->engine->lock);
	return ret;
}

/* Lock: mutex. */
static int engine_join(struct tdm_eq_drive *drive, struct driven *d)
{
	struct fid_wait *fid = tdm_waitset_fid(drive->set);
	int ret;

	tdm_lock_acquire(d->engine->lock);
	ret = tdm_wait_init(&d->wait, d->engine, FI_WAIT_SET, fid);
	tdm_lock_release(d->engine->lock);
	if (!ret)
		ret = tdm_wait_join(&d->wait, engine_look, d);
	if (ret)
		tdm_wait_fini(&d->wait);
	return ret;
}

static struct driven *engine_find(struct tdm_eq_drive *drive,
				  const struct tdm_engine *engine)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &drive->engines) {
		struct driven *d = tdm_list_entry(pos, struct driven, node);

		if (d->engine == engine)
			return d;
	}
	return NULL;
}

/* Lock: mutex. */
static int engine_add(struct tdm_eq_drive *drive, struct tdm_engine *engine)
{
	struct driven *d = engine_find(drive, engine);
	int ret;

	if (d) {
		d->users++;
		return 0;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -FI_ENOMEM;
	d->engine = engine;
	d->users = 1;
	ret = drive->set ? engine_join(drive, d) : 0;
	if (ret) {
		free(d);
		return ret;
	}
	tdm_list_append(&drive->engines, &d->node);
	tdm_a32_store_relaxed(&drive->count,
			      tdm_a32_load_relaxed(&drive->count) + 1);
	return 0;
}

int tdm_eq_drive_add(struct tdm_eq_drive *drive, struct tdm_engine *engine)
{
	int ret;

	pthread_mutex_lock(&drive->mutex);
	ret = engine_add(drive, engine);
	pthread_mutex_unlock(&drive->mutex);
	return ret;
}

void tdm_eq_drive_del(struct tdm_eq_drive *drive, struct tdm_engine *engine)
{
	struct driven *d;

	pthread_mutex_lock(&drive->mutex);
	d = engine_find(drive, engine);
	if (d && !--d->users) {
		tdm_list_del(&d->node);
		tdm_a32_store_relaxed(&drive->count,
				      tdm_a32_load_relaxed(&drive->count) - 1);
		tdm_wait_fini(&d->wait);
		free(d);
	}
	pthread_mutex_unlock(&drive->mutex);
}

/*
 * Make a pass of progress, unless another thread has made one since the last
 * call. Returns 1 when the caller should yield its core.
 */
static int engine_pass(struct driven *d)
{
	struct tdm_engine *engine = d->engine;
	int vain = 0;

	tdm_lock_acquire(engine->lock);
	if (engine->passes == d->seen) {
		engine->progress(engine);
		vain = tdm_engine_vain(engine);
	}
	d->seen = engine->passes;
	tdm_lock_release(engine->lock);
	return vain;
}

/*
 * Yield the core, and tell each engine how long that took. Engines may be added
 * and removed during the yield.
 */
static void yield_all(struct tdm_eq_drive *drive)
{
	const uint64_t away_ns = tdm_yield();
	struct tdm_list *pos;

	pthread_mutex_lock(&drive->mutex);
	tdm_list_for_each(pos, &drive->engines)
		tdm_engine_yielded(
			tdm_list_entry(pos, struct driven, node)->engine,
			away_ns);
	pthread_mutex_unlock(&drive->mutex);
}

void tdm_eq_drive_all(struct tdm_eq_drive *drive)
{
	struct tdm_list *pos;
	int vain = 0;

	pthread_mutex_lock(&drive->mutex);
	tdm_list_for_each(pos, &drive->engines)
		vain |= engine_pass(tdm_list_entry(pos, struct driven, node));
	pthread_mutex_unlock(&drive->mutex);
	if (vain)
		yield_all(drive);
}

/* Lock: mutex. */
static void set_drop(struct tdm_eq_drive *drive,
		     struct tdm_waitset_member *member)
{
	struct tdm_list *pos;

	tdm_list_for_each(pos, &drive->engines)
		tdm_wait_fini(&tdm_list_entry(pos, struct driven, node)->wait);
	tdm_waitset_leave(member);
	fi_close(&tdm_waitset_fid(drive->set)->fid);
	drive->set = NULL;
}

/* Lock: mutex. */
static int set_open(struct tdm_eq_drive *drive, enum fi_wait_obj obj,
		    struct tdm_waitset_member *member)
{
	struct fi_wait_attr attr = { .wait_obj = obj };
	struct tdm_list *pos;
	int ret = tdm_waitset_open(&attr, &drive->set);

	if (ret)
		return ret;
	member->set = drive->set;
	ret = tdm_waitset_join(member);
	tdm_list_for_each(pos, &drive->engines) {
		if (!ret)
			ret = engine_join(drive,
					  tdm_list_entry(pos, struct driven,
							 node));
	}
	if (ret)
		set_drop(drive, member);
	else
		drive->own_set = 1;
	return ret;
}

int tdm_eq_drive_set(struct tdm_eq_drive *drive, enum fi_wait_obj obj,
		     struct tdm_waitset_member *member,
		     struct tdm_waitset **set)
{
	int ret = 0;

	pthread_mutex_lock(&drive->mutex);
	if (!drive->set)
		ret = set_open(drive, obj, member);
	if (!ret)
		*set = drive->set;
	pthread_mutex_unlock(&drive->mutex);
	return ret;
}

int tdm_eq_drive_look(struct tdm_eq_drive *drive)
{
	struct tdm_list *pos;
	int ret = 0;

	pthread_mutex_lock(&drive->mutex);
	tdm_list_for_each(pos, &drive->engines) {
		if (!ret)
			ret = engine_look(
				tdm_list_entry(pos, struct driven, node), 0);
	}
	pthread_mutex_unlock(&drive->mutex);
	return ret;
}
