/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queue: a bounded list of events and errors in the order they were
 * written.
 *
 * Invariants:
 *  1. At most `size` events are queued. A write beyond that sets `overrun` for
 *     good: all later writes fail, and when the list has been read empty, every
 *     read returns -FI_EOVERRUN.
 *  2. The eventfd, when there is one, is readable exactly while a read would
 *     return something else than -FI_EAGAIN; `pending` is 1 exactly then. So
 *     sleepers need not arm anything, and none can miss an event.
 *  3. The error event that was read last is kept in `lent` until the next
 *     read: the application may look at its err_data there.
 *  4. A reader sleeps on a wait set, whose members are the EQ and the engines
 *     that it drives: eq_drive.h.
 *
 * Locking: a mutex of the EQ's own, innermost of all; that of `drive` is taken
 * by the application's calls before any other lock.
 * Spec: fi_eq(3).
 */
#include "peer/eq.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rdma/fi_errno.h>

#include "base/atomic.h"
#include "base/list.h"
#include "base/log.h"
#include "base/os.h"
#include "peer/eq_drive.h"
#include "peer/errstr.h"
#include "peer/wait.h"
#include "tdm_nosys.h"

enum { DEFAULT_EVENTS = 256 };

struct eq_event {
	struct tdm_list node;
	uint32_t event;
	int is_err; /* data holds a struct fi_eq_err_entry, then err_data */
	int keep;   /* 1: does not count against size: tdm_eq_keep() */
	size_t len; /* bytes the application gets */
	uint64_t data[];
};

struct tdm_eq {
	struct fid_eq fid;
	pthread_mutex_t mutex;
	struct tdm_list events; /* struct eq_event; G: mutex, as all below */
	size_t count;		/* events that count against size */
	size_t size;		/* greatest value of count */
	int overrun;
	int may_write;	 /* opened with FI_WRITE */
	tdm_a32 pending; /* written under the mutex, read without */
	enum fi_wait_obj wait_obj;
	int eventfd; /* -1 without; read without the mutex */
	struct tdm_waitset_member member;
	struct tdm_eq_drive drive; /* has a lock of its own */
	int readable;		   /* eventfd holds a count */
	struct eq_event *lent;
	struct tdm_errlast last; /* the error event that was read last */
	size_t users;
	void (*closed)(void *arg);
	void *closed_arg;
};

static struct fi_ops eq_fid_ops;
static struct fi_ops_eq eq_ops;

static const struct fi_eq_attr default_attr = {
	.wait_obj = FI_WAIT_NONE,
};

/*
 * Free @eq, also one whose wait object could not be opened: its eventfd is -1.
 */
static void eq_free(struct tdm_eq *eq)
{
	struct tdm_list *node;

	tdm_eq_drive_fini(&eq->drive, &eq->member);
	if (eq->eventfd >= 0)
		tdm_os.close(eq->eventfd);
	while ((node = tdm_list_pop(&eq->events)))
		free(tdm_list_entry(node, struct eq_event, node));
	free(eq->lent);
	pthread_mutex_destroy(&eq->mutex);
	free(eq);
}

static int open_eventfd(struct tdm_eq *eq)
{
	eq->eventfd = tdm_os.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return eq->eventfd < 0 ? -errno : 0;
}

/*
 * The look() of a struct tdm_waitset_member. There is nothing to arm: see
 * invariant 2.
 */
static int eq_look(void *arg, int progress)
{
	return tdm_eq_pending(arg);
}

static int join_set(struct tdm_eq *eq, struct fid_wait *fid)
{
	struct tdm_waitset *set;
	int ret;

	if (!fid || fid->fid.fclass != FI_CLASS_WAIT)
		return -FI_EINVAL;
	set = tdm_waitset_from_fid(fid);
	ret = tdm_waitset_polls(set) ? 0 : open_eventfd(eq);
	if (ret)
		return ret;
	eq->member.own_fd = eq->eventfd;
	eq->member.set = set;
	eq->drive.set = set;
	return tdm_waitset_join(&eq->member);
}

static int wait_open(struct tdm_eq *eq, const struct fi_eq_attr *attr)
{
	eq->wait_obj = attr->wait_obj;
	switch (attr->wait_obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_YIELD:
		return 0;
	case FI_WAIT_UNSPEC:
		eq->wait_obj = FI_WAIT_FD;
		return open_eventfd(eq);
	case FI_WAIT_FD:
	case FI_WAIT_POLLFD:
	case FI_WAIT_MUTEX_COND:
		return open_eventfd(eq);
	case FI_WAIT_SET:
		return join_set(eq, attr->wait_set);
	}
	return -FI_EINVAL;
}

int tdm_eq_open(const struct fi_eq_attr *attr, void *context,
		struct tdm_eq **eq_out)
{
	struct tdm_eq *eq;
	int ret;

	if (!attr)
		attr = &default_attr;
	if (attr->flags & FI_PEER)
		return -FI_EINVAL;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &eq_fid_ops;
	eq->fid.ops = &eq_ops;
	pthread_mutex_init(&eq->mutex, NULL);
	tdm_list_init(&eq->events);
	eq->size = attr->size ? attr->size : DEFAULT_EVENTS;
	eq->may_write = !!(attr->flags & FI_WRITE);
	eq->eventfd = -1;
	eq->member.engine_fd = -1;
	eq->member.look = eq_look;
	eq->member.arg = eq;
	tdm_eq_drive_init(&eq->drive);
	ret = wait_open(eq, attr);
	if (ret)
		goto err;
	eq->member.own_fd = eq->eventfd;
	*eq_out = eq;
	return 0;
err:
	eq_free(eq);
	return ret;
}

struct tdm_eq *tdm_eq_from_fid(struct fid_eq *fid)
{
	return tdm_container_of(fid, struct tdm_eq, fid);
}

struct fid_eq *tdm_eq_fid(struct tdm_eq *eq)
{
	return &eq->fid;
}

int tdm_eq_pending(const struct tdm_eq *eq)
{
	return (int)tdm_a32_load_relaxed(&eq->pending);
}

/* Bring eventfd and `pending` in line with the list. Lock: mutex. */
static void eq_update(struct tdm_eq *eq)
{
	const int pending = !tdm_list_empty(&eq->events) || eq->overrun;
	uint64_t one = 1;
	ssize_t n;

	tdm_a32_store_relaxed(&eq->pending, (uint32_t)pending);
	if (eq->eventfd < 0 || eq->readable == pending)
		return;
	do {
		n = pending ? tdm_os.write(eq->eventfd, &one, sizeof(one)) :
			      tdm_os.read(eq->eventfd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		TDM_WARN(EQ, "eventfd: %s", strerror(errno));
	else
		eq->readable = pending;
}

/*
 * Append @ev to the list, or free it when the queue is full. Lock: mutex taken
 * inside.
 */
static int eq_add(struct tdm_eq *eq, struct eq_event *ev)
{
	int ret = 0;

	pthread_mutex_lock(&eq->mutex);
	if (eq->overrun || (!ev->keep && eq->count >= eq->size)) {
		if (!eq->overrun)
			TDM_WARN(EQ, "overrun: %zu events unread", eq->count);
		eq->overrun = 1;
		free(ev);
		ret = -FI_EOVERRUN;
	} else {
		tdm_list_append(&eq->events, &ev->node);
		eq->count += !ev->keep;
	}
	eq_update(eq);
	pthread_mutex_unlock(&eq->mutex);
	return ret;
}

static ssize_t add_event(struct tdm_eq *eq, uint32_t event, const void *buf,
			 size_t len, int keep)
{
	struct eq_event *ev;
	int ret;

	if (len > SSIZE_MAX - sizeof(*ev))
		return -FI_EINVAL;
	ev = malloc(sizeof(*ev) + len);
	if (!ev)
		return -FI_ENOMEM;
	ev->event = event;
	ev->is_err = 0;
	ev->keep = keep;
	ev->len = len;
	if (len)
		memcpy(ev->data, buf, len);
	ret = eq_add(eq, ev);
	return ret ? ret : (ssize_t)len;
}

ssize_t tdm_eq_write(struct tdm_eq *eq, uint32_t event, const void *buf,
		     size_t len)
{
	return add_event(eq, event, buf, len, 0);
}

ssize_t tdm_eq_keep(struct tdm_eq *eq, uint32_t event, const void *buf,
		    size_t len)
{
	return add_event(eq, event, buf, len, 1);
}

static int add_err(struct tdm_eq *eq, const struct fi_eq_err_entry *entry,
		   int keep)
{
	const size_t extra = entry->err_data ? entry->err_data_size : 0;
	struct fi_eq_err_entry *copy;
	struct eq_event *ev;

	ev = malloc(sizeof(*ev) + sizeof(*copy) + extra);
	if (!ev)
		return -FI_ENOMEM;
	ev->event = 0;
	ev->is_err = 1;
	ev->keep = keep;
	ev->len = sizeof(*copy);
	copy = (struct fi_eq_err_entry *)(void *)ev->data;
	*copy = *entry;
	if (!copy->prov_errno)
		copy->prov_errno = entry->err;
	copy->err_data = extra ? copy + 1 : NULL;
	copy->err_data_size = extra;
	if (extra)
		memcpy(copy->err_data, entry->err_data, extra);
	return eq_add(eq, ev);
}

int tdm_eq_write_err(struct tdm_eq *eq, const struct fi_eq_err_entry *entry)
{
	return add_err(eq, entry, 0);
}

int tdm_eq_keep_err(struct tdm_eq *eq, const struct fi_eq_err_entry *entry)
{
	return add_err(eq, entry, 1);
}

/* Returns the oldest event, or NULL, and frees the lent one. Lock: mutex. */
static struct eq_event *eq_first(struct tdm_eq *eq)
{
	free(eq->lent);
	eq->lent = NULL;
	if (tdm_list_empty(&eq->events))
		return NULL;
	return tdm_list_entry(eq->events.next, struct eq_event, node);
}

/* Take @ev off the list. The caller owns it afterwards. Lock: mutex. */
static void eq_take(struct tdm_eq *eq, struct eq_event *ev)
{
	tdm_list_del(&ev->node);
	eq->count -= !ev->keep;
	eq_update(eq);
}

static void make_progress(struct tdm_eq *eq)
{
	if (!tdm_eq_pending(eq))
		tdm_eq_drive_pass(&eq->drive);
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf,
		       size_t len, uint64_t flags)
{
	struct tdm_eq *eq = tdm_eq_from_fid(fid);
	struct eq_event *ev;
	ssize_t ret;

	make_progress(eq);
	pthread_mutex_lock(&eq->mutex);
	ev = eq_first(eq);
	if (!ev) {
		ret = eq->overrun ? -FI_EOVERRUN : -FI_EAGAIN;
	} else if (ev->is_err) {
		ret = -FI_EAVAIL;
	} else if (len < ev->len) {
		ret = -FI_ETOOSMALL;
	} else {
		*event = ev->event;
		if (ev->len)
			memcpy(buf, ev->data, ev->len);
		ret = (ssize_t)ev->len;
		if (!(flags & FI_PEEK)) {
			eq_take(eq, ev);
			free(ev);
		}
	}
	pthread_mutex_unlock(&eq->mutex);
	return ret;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf,
			  uint64_t flags)
{
	struct tdm_eq *eq = tdm_eq_from_fid(fid);
	struct eq_event *ev;
	ssize_t ret;

	if (!buf)
		return -FI_EINVAL;
	make_progress(eq);
	pthread_mutex_lock(&eq->mutex);
	ev = eq_first(eq);
	if (!ev) {
		ret = eq->overrun ? -FI_EOVERRUN : -FI_EAGAIN;
	} else if (!ev->is_err) {
		ret = -FI_EAGAIN;
	} else {
		tdm_errlast_eq(&eq->last, buf, (const void *)ev->data);
		ret = (ssize_t)ev->len;
		if (!(flags & FI_PEEK)) {
			eq_take(eq, ev);
			eq->lent = ev;
		}
	}
	pthread_mutex_unlock(&eq->mutex);
	return ret;
}

void tdm_eq_drop(struct tdm_eq *eq)
{
	struct eq_event *ev;

	pthread_mutex_lock(&eq->mutex);
	ev = eq_first(eq);
	if (ev) {
		eq_take(eq, ev);
		free(ev);
	}
	pthread_mutex_unlock(&eq->mutex);
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf,
			size_t len, uint64_t flags)
{
	struct tdm_eq *eq = tdm_eq_from_fid(fid);

	if (!eq->may_write)
		return -FI_EINVAL;
	return tdm_eq_write(eq, event, buf, len);
}

/*
 * Sleep until there may be something to read. Returns 0, or the error that the
 * blocking read returns.
 */
static int eq_sleep(struct tdm_eq *eq, int timeout_ms)
{
	struct tdm_waitset *set;
	int ret;

	if (eq->wait_obj == FI_WAIT_YIELD) {
		sched_yield();
		return 0;
	}
	ret = tdm_eq_drive_set(&eq->drive, eq->wait_obj, &eq->member, &set);
	if (!ret)
		ret = tdm_waitset_sleep(set, timeout_ms);
	if (ret == -FI_ETIMEDOUT)
		return 0;
	return ret == -FI_EINTR ? -FI_EAGAIN : ret;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf,
			size_t len, int timeout, uint64_t flags)
{
	struct tdm_eq *eq = tdm_eq_from_fid(fid);
	const uint64_t deadline = tdm_wait_deadline(timeout);
	ssize_t ret;
	int left;

	if (eq->wait_obj == FI_WAIT_NONE || eq->wait_obj == FI_WAIT_SET)
		return -FI_ENOSYS;
	for (;;) {
		ret = eq_read(fid, event, buf, len, flags);
		if (ret != -FI_EAGAIN)
			return ret;
		left = tdm_wait_left(deadline);
		ret = left ? eq_sleep(eq, left) : -FI_EAGAIN;
		if (ret)
			return ret;
	}
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno,
			       const void *err_data, char *buf, size_t len)
{
	struct tdm_eq *eq = tdm_eq_from_fid(fid);
	struct tdm_errlast last;

	pthread_mutex_lock(&eq->mutex);
	last = eq->last;
	pthread_mutex_unlock(&eq->mutex);
	return tdm_errstr(&last, prov_errno, err_data, buf, len);
}

void tdm_eq_get(struct tdm_eq *eq)
{
	pthread_mutex_lock(&eq->mutex);
	eq->users++;
	pthread_mutex_unlock(&eq->mutex);
}

void tdm_eq_put(struct tdm_eq *eq)
{
	pthread_mutex_lock(&eq->mutex);
	eq->users--;
	pthread_mutex_unlock(&eq->mutex);
}

int tdm_eq_trywait(struct tdm_eq *eq)
{
	struct tdm_waitset *set;
	int ret;

	if (eq->eventfd < 0)
		return -FI_EINVAL;
	if (tdm_eq_pending(eq))
		return -FI_EAGAIN;
	if (eq->wait_obj == FI_WAIT_SET)
		return tdm_eq_drive_look(&eq->drive);
	ret = tdm_eq_drive_set(&eq->drive, eq->wait_obj, &eq->member, &set);
	return ret ? ret : tdm_waitset_trywait(set);
}

int tdm_eq_drive(struct tdm_eq *eq, struct tdm_engine *engine)
{
	int ret = tdm_eq_drive_add(&eq->drive, engine);

	if (!ret)
		tdm_eq_get(eq);
	return ret;
}

void tdm_eq_undrive(struct tdm_eq *eq, struct tdm_engine *engine)
{
	tdm_eq_drive_del(&eq->drive, engine);
	tdm_eq_put(eq);
}

void tdm_eq_on_close(struct tdm_eq *eq, void (*closed)(void *arg), void *arg)
{
	eq->closed = closed;
	eq->closed_arg = arg;
}

static int eq_getwait(struct tdm_eq *eq, void *arg)
{
	struct tdm_waitset *set;
	int ret;

	if (eq->wait_obj == FI_WAIT_NONE || eq->wait_obj == FI_WAIT_YIELD)
		return -FI_ENODATA;
	ret = tdm_eq_drive_set(&eq->drive, eq->wait_obj, &eq->member, &set);
	return ret ? ret :
		     fi_control(&tdm_waitset_fid(set)->fid, FI_GETWAIT, arg);
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct tdm_eq *eq = tdm_container_of(fid, struct tdm_eq, fid.fid);

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAIT)
		return eq_getwait(eq, arg);
	*(enum fi_wait_obj *)arg = eq->wait_obj;
	return 0;
}

static int eq_close(struct fid *fid)
{
	struct tdm_eq *eq = tdm_container_of(fid, struct tdm_eq, fid.fid);
	size_t users;

	pthread_mutex_lock(&eq->mutex);
	users = eq->users;
	pthread_mutex_unlock(&eq->mutex);
	if (users)
		return -FI_EBUSY;
	tdm_waitset_leave(&eq->member);
	if (eq->closed)
		eq->closed(eq->closed_arg);
	eq_free(eq);
	return 0;
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(eq_fid_ops),
	.close = eq_close,
	.bind = tdm_no_fi_bind,
	.control = eq_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_eq eq_ops = {
	.size = sizeof(eq_ops),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};
