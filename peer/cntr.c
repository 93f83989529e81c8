/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters. A transport counts through its export, the application reads,
 * sets and waits. Reading makes one pass of progress, so that a loop around
 * fi_cntr_read advances the operations it waits for. Operations that wait for a
 * threshold (peer/trigger.h) are handed to the engine when the counter reaches
 * it.
 *
 * Locking: the domain lock guards both values; the application's calls take
 * it, the exported calls are made with it held.
 * Spec: fi_cntr(3); fi_peer(3), "PEER COUNTER".
 */
#include "peer/cntr.h"

#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "peer/import.h"
#include "peer/patience.h"
#include "peer/wait.h"
#include "tdm_nosys.h"

struct cntr_export {
	struct fid_peer_cntr peer;
	struct tdm_cntr *cntr;
};

struct tdm_cntr {
	struct fid_cntr fid;
	struct tdm_engine *engine;
	uint64_t value; /* operations that succeeded */
	uint64_t errs;	/* operations that failed */
	struct tdm_triggers triggers;
	uint64_t seen_value; /* values at the last read; for fi_trywait */
	uint64_t seen_errs;
	uint64_t changes; /* how often either value changed; for fi_poll */
	uint64_t settled; /* changes, at the last fi_cntr_set or _add */
	struct tdm_wait wait;
	struct cntr_export exports[TDM_TRANSPORTS];
	/* another owner's, which transports count; NULL: this counter */
	struct fid_peer_cntr *owner;
	struct fid_cntr *local;
	size_t users;
	void (*closed)(void *arg);
	void *closed_arg;
};

static struct fi_ops cntr_fid_ops;
static struct fi_ops export_fid_ops;
static struct fi_ops_cntr cntr_ops;
static struct fi_ops_cntr import_ops;
static struct fi_ops_cntr_owner owner_ops;

static const struct fi_cntr_attr default_attr = {
	.events = FI_CNTR_EVENTS_COMP,
	.wait_obj = FI_WAIT_NONE,
};

static void cntr_init(struct tdm_cntr *cntr, struct tdm_engine *engine,
		      void *context)
{
	int i;

	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &cntr_fid_ops;
	cntr->fid.ops = &cntr_ops;
	cntr->engine = engine;
	tdm_triggers_init(&cntr->triggers);
	for (i = 0; i < TDM_TRANSPORTS; i++) {
		cntr->exports[i].cntr = cntr;
		cntr->exports[i].peer.fid.fclass = FI_CLASS_PEER_CNTR;
		cntr->exports[i].peer.fid.context = cntr;
		cntr->exports[i].peer.fid.ops = &export_fid_ops;
		cntr->exports[i].peer.owner_ops = &owner_ops;
	}
}

static void cntr_free(struct tdm_cntr *cntr)
{
	tdm_wait_fini(&cntr->wait);
	free(cntr);
}

static int check_attr(const struct fi_cntr_attr *attr)
{
	if (attr->flags & ~FI_PEER)
		return -FI_EINVAL;
	if (attr->events == FI_CNTR_EVENTS_COMP)
		return 0;
	return attr->events == FI_CNTR_EVENTS_BYTES ? -FI_ENOSYS : -FI_EINVAL;
}

/* Not 0 when a value has changed since the application read one. Lock: held. */
static int unseen(const struct tdm_cntr *cntr)
{
	return cntr->value != cntr->seen_value || cntr->errs != cntr->seen_errs;
}

/* The look() of a struct tdm_waitset_member. */
static int cntr_look(void *arg, int progress)
{
	struct tdm_cntr *cntr = arg;
	int ret;

	tdm_lock_acquire(cntr->engine->lock);
	if (progress)
		cntr->engine->progress(cntr->engine);
	ret = unseen(cntr) ? 1 : tdm_wait_look(&cntr->wait);
	tdm_lock_release(cntr->engine->lock);
	return ret;
}

/*
 * Make @cntr, which is new, an import of the counter that @context names:
 * fi_peer(3), PEER COUNTER.
 */
static int cntr_import(struct tdm_cntr *cntr, const struct fi_cntr_attr *attr,
		       const void *context)
{
	/* Only below another owner @context is what fi_peer(3) says. */
	struct fid_peer_cntr *owner =
		cntr->engine->imports ? tdm_import_cntr(context) : NULL;
	int ret = owner ? tdm_import_wait(attr->wait_obj) : -FI_EINVAL;

	cntr->owner = owner;
	cntr->fid.ops = &import_ops;
	cntr->fid.fid.context = NULL;
	return ret;
}

int tdm_cntr_open(struct tdm_engine *engine, struct fi_cntr_attr *attr,
		  void *context, struct tdm_cntr **cntr_out)
{
	const struct fi_cntr_attr *in = attr ? attr : &default_attr;
	struct tdm_cntr *cntr;
	int ret;

	ret = check_attr(in);
	if (ret)
		return ret;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	cntr_init(cntr, engine, context);
	if (in->flags & FI_PEER)
		ret = cntr_import(cntr, in, context);
	if (ret)
		goto err;
	tdm_lock_acquire(engine->lock);
	ret = tdm_wait_init(&cntr->wait, engine, in->wait_obj, in->wait_set);
	tdm_lock_release(engine->lock);
	if (!ret)
		ret = tdm_wait_join(&cntr->wait, cntr_look, cntr);
	if (ret)
		goto err;
	if (attr)
		attr->wait_obj = cntr->wait.obj;
	*cntr_out = cntr;
	return 0;
err:
	cntr_free(cntr);
	return ret;
}

struct tdm_cntr *tdm_cntr_from_fid(struct fid_cntr *fid)
{
	return tdm_container_of(fid, struct tdm_cntr, fid);
}

struct fid_cntr *tdm_cntr_fid(struct tdm_cntr *cntr)
{
	return &cntr->fid;
}

struct tdm_engine *tdm_cntr_engine(const struct tdm_cntr *cntr)
{
	return cntr->engine;
}

uint64_t tdm_cntr_news(const struct tdm_cntr *cntr, uint64_t seen)
{
	tdm_assert_held(cntr->engine->lock);
	return cntr->changes > tdm_max(seen, cntr->settled) ? cntr->changes : 0;
}

struct fid_peer_cntr *tdm_cntr_export(struct tdm_cntr *cntr,
				      enum tdm_transport t)
{
	return cntr->owner ? cntr->owner : &cntr->exports[t].peer;
}

struct fid_cntr *tdm_cntr_local(struct tdm_cntr *cntr)
{
	return cntr->local;
}

void tdm_cntr_set_local(struct tdm_cntr *cntr, struct fid_cntr *local)
{
	cntr->local = local;
}

void tdm_cntr_get(struct tdm_cntr *cntr)
{
	tdm_assert_held(cntr->engine->lock);
	cntr->users++;
}

void tdm_cntr_put(struct tdm_cntr *cntr)
{
	tdm_assert_held(cntr->engine->lock);
	cntr->users--;
}

void tdm_cntr_on_close(struct tdm_cntr *cntr, void (*closed)(void *arg),
		       void *arg)
{
	cntr->closed = closed;
	cntr->closed_arg = arg;
}

int tdm_cntr_trywait(struct tdm_cntr *cntr)
{
	int ret;

	tdm_lock_acquire(cntr->engine->lock);
	ret = unseen(cntr) ? -FI_EAGAIN : tdm_wait_try(&cntr->wait);
	tdm_lock_release(cntr->engine->lock);
	return ret;
}

static struct tdm_cntr *cntr_from_peer(struct fid_peer_cntr *peer)
{
	return tdm_container_of(peer, struct cntr_export, peer)->cntr;
}

/*
 * Give the triggers whose threshold is reached to engine->due(). Returns how
 * many.
 */
static tdm_noinline int reached(struct tdm_cntr *cntr)
{
	struct tdm_engine *engine = cntr->engine;
	struct tdm_trigger *t;
	int n = 0;

	for (;
	     (t = tdm_triggers_take(&cntr->triggers, cntr->value, cntr->errs));
	     n++)
		engine->due(engine, t);
	return n;
}

void tdm_cntr_await(struct tdm_cntr *cntr, struct tdm_trigger *trigger)
{
	tdm_assert_held(cntr->engine->lock);
	if (tdm_triggers_add(&cntr->triggers, trigger, cntr->value, cntr->errs))
		reached(cntr);
}

void tdm_cntr_unawait(struct tdm_cntr *cntr, struct tdm_trigger *trigger)
{
	tdm_assert_held(cntr->engine->lock);
	tdm_triggers_remove(&cntr->triggers, trigger, cntr->errs);
}

static void export_inc(struct fid_peer_cntr *peer)
{
	struct tdm_cntr *cntr = cntr_from_peer(peer);

	tdm_assert_held(cntr->engine->lock);
	cntr->value++;
	cntr->changes++;
	if (tdm_unlikely(cntr->value >= cntr->triggers.trip))
		reached(cntr);
	tdm_wait_signal(&cntr->wait);
}

static void export_incerr(struct fid_peer_cntr *peer)
{
	struct tdm_cntr *cntr = cntr_from_peer(peer);

	tdm_assert_held(cntr->engine->lock);
	cntr->errs++;
	cntr->changes++;
	reached(cntr);
	tdm_wait_signal(&cntr->wait);
}

void tdm_cntr_change(struct tdm_cntr *cntr, int keep, uint64_t value)
{
	tdm_assert_held(cntr->engine->lock);
	cntr->value = (keep ? cntr->value : 0) + value;
	cntr->changes++;
	reached(cntr);
	tdm_wait_signal(&cntr->wait);
}

/* A reader of one value may go on to read the other: both count as seen. */
static uint64_t read_one(struct tdm_cntr *cntr, const uint64_t *which)
{
	struct tdm_engine *engine = cntr->engine;
	int vain = 0;
	uint64_t ret;

	tdm_lock_acquire(engine->lock);
	engine->progress(engine);
	if (cntr->seen_value == cntr->value && cntr->seen_errs == cntr->errs)
		vain = tdm_engine_vain(engine);
	else
		engine->vain = 0;
	cntr->seen_value = cntr->value;
	cntr->seen_errs = cntr->errs;
	ret = *which;
	tdm_lock_release(engine->lock);
	if (tdm_unlikely(vain))
		tdm_engine_yield(engine);
	return ret;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct tdm_cntr *cntr = tdm_cntr_from_fid(fid);

	return read_one(cntr, &cntr->value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct tdm_cntr *cntr = tdm_cntr_from_fid(fid);

	return read_one(cntr, &cntr->errs);
}

/*
 * Add @value (@keep 1) or set it (@keep 0). The pass of progress at the end
 * starts the operations that this made due.
 */
static int update(struct tdm_cntr *cntr, uint64_t *which, int keep,
		  uint64_t value)
{
	tdm_lock_acquire(cntr->engine->lock);
	if (tdm_unlikely(cntr->engine->orphan)) {
		tdm_lock_release(cntr->engine->lock);
		return -FI_EOPBADSTATE;
	}
	*which = (keep ? *which : 0) + value;
	if (which == &cntr->value)
		cntr->settled = cntr->changes;
	else
		cntr->changes++;
	tdm_wait_signal(&cntr->wait);
	if (tdm_unlikely(reached(cntr)))
		cntr->engine->progress(cntr->engine);
	tdm_lock_release(cntr->engine->lock);
	return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	struct tdm_cntr *cntr = tdm_cntr_from_fid(fid);

	return update(cntr, &cntr->value, 1, value);
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	struct tdm_cntr *cntr = tdm_cntr_from_fid(fid);

	return update(cntr, &cntr->value, 0, value);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	struct tdm_cntr *cntr = tdm_cntr_from_fid(fid);

	return update(cntr, &cntr->errs, 1, value);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	struct tdm_cntr *cntr = tdm_cntr_from_fid(fid);

	return update(cntr, &cntr->errs, 0, value);
}

struct cntr_wait {
	const struct tdm_cntr *cntr;
	uint64_t threshold;
	uint64_t errs; /* when the wait began */
	int begun;
};

static int wait_ready(void *arg)
{
	struct cntr_wait *w = arg;

	if (!w->begun) {
		w->begun = 1;
		w->errs = w->cntr->errs;
	}
	return w->cntr->value >= w->threshold || w->cntr->errs != w->errs;
}

/*
 * A signal handler that runs in the waiting thread does not end the wait:
 * fi_cntr(3) has no code for it, and the timer of a profiler must not make long
 * waits fail.
 */
TDM_TSA(no_thread_safety_analysis)
static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct tdm_cntr *cntr = tdm_cntr_from_fid(fid);
	struct cntr_wait w = { cntr, threshold, 0, 0 };
	const uint64_t deadline = tdm_wait_deadline(timeout);
	int ret, left;

	if (cntr->wait.obj == FI_WAIT_SET)
		return -FI_ENOSYS;
	if (tdm_unlikely(cntr->engine->orphan))
		return -FI_EOPBADSTATE;
	do {
		left = tdm_wait_left(deadline);
		ret = tdm_wait_until(&cntr->wait, wait_ready, &w, left, NULL);
	} while (ret == -FI_EAGAIN && tdm_wait_left(deadline));
	if (ret)
		return ret == -FI_EAGAIN ? -FI_ETIMEDOUT : ret;
	ret = cntr->value >= threshold ? 0 : -FI_EAVAIL;
	tdm_lock_release(cntr->engine->lock);
	return ret;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct tdm_cntr *cntr = tdm_container_of(fid, struct tdm_cntr, fid.fid);

	return tdm_wait_control(&cntr->wait, command, arg);
}

static int cntr_close(struct fid *fid)
{
	struct tdm_cntr *cntr = tdm_container_of(fid, struct tdm_cntr, fid.fid);
	struct tdm_lock *lock = cntr->engine->lock;
	int ret;

	tdm_lock_acquire(lock);
	ret = cntr->engine->orphan ? -FI_EOPBADSTATE :
	      cntr->users	   ? -FI_EBUSY :
				     0;
	tdm_lock_release(lock);
	if (ret)
		return ret;
	tdm_wait_leave(&cntr->wait);
	tdm_lock_acquire(lock);
	if (cntr->local)
		ret = fi_close(&cntr->local->fid);
	if (!ret && cntr->closed)
		cntr->closed(cntr->closed_arg);
	tdm_lock_release(lock);
	if (ret)
		return ret;
	cntr_free(cntr);
	return 0;
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(cntr_fid_ops),
	.close = cntr_close,
	.bind = tdm_no_fi_bind,
	.control = cntr_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

/* An export lives with its counter; the peer has nothing to close. */
static struct fi_ops export_fid_ops = {
	.size = sizeof(export_fid_ops),
	.close = tdm_no_fi_close,
	.bind = tdm_no_fi_bind,
	.control = tdm_no_fi_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

/* fi_peer(3), PEER COUNTER: reading makes progress. */
static uint64_t import_read(struct fid_cntr *fid)
{
	tdm_import_progress(tdm_cntr_from_fid(fid)->engine);
	return 0;
}

static uint64_t import_readerr(struct fid_cntr *fid)
{
	(void)fid;
	return (uint64_t)-FI_ENOSYS;
}

static struct fi_ops_cntr import_ops = {
	.size = sizeof(import_ops),
	.read = import_read,
	.readerr = import_readerr,
	.add = tdm_no_cntr_add,
	.set = tdm_no_cntr_add,
	.wait = tdm_no_cntr_wait,
	.adderr = tdm_no_cntr_add,
	.seterr = tdm_no_cntr_add,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(cntr_ops),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

static struct fi_ops_cntr_owner owner_ops = {
	.size = sizeof(owner_ops),
	.inc = export_inc,
	.incerr = export_incerr,
};
