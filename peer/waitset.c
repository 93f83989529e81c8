/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wait sets. The members wake a sleeper as they do without a set: the set
 * watches their descriptors in its own epoll instance, and calls look() of each
 * member before it sleeps.
 *
 * Invariants:
 *  1. own_fd of each member is in the epoll set; engine_fd is there once,
 *     however many members share it.
 *  2. A member that joins is not armed, and its own_fd is readable: a thread
 *     that sleeps on the set wakes up and arms it.
 *  3. change_index grows whenever the list of descriptors changes.
 *
 * Locking: a mutex of the set's own, outermost: looking at a member takes the
 * lock of its domain or event queue inside.
 * Spec: fi_poll(3), fi_wait_open and fi_wait.
 */
#include "peer/waitset.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/os.h"
#include "peer/condwait.h"
#include "peer/wait.h"
#include "tdm_nosys.h"

struct tdm_waitset {
	struct fid_wait fid;
	enum fi_wait_obj obj; /* FI_WAIT_FD, _POLLFD, _MUTEX_COND or _YIELD */
	int epfd;	      /* -1: YIELD */
	pthread_mutex_t mutex;
	struct tdm_list members;   /* struct tdm_waitset_member; G: mutex */
	uint64_t change_index;	   /* G: mutex */
	struct tdm_condwait *cond; /* NULL: not asked for; G: mutex */
	void (*closed)(void *arg);
	void *closed_arg;
};

static struct fi_ops waitset_fid_ops;
static struct fi_ops_wait waitset_ops;

static int valid_obj(enum fi_wait_obj obj)
{
	switch (obj) {
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
	case FI_WAIT_POLLFD:
	case FI_WAIT_MUTEX_COND:
	case FI_WAIT_YIELD:
		return 1;
	case FI_WAIT_NONE:
	case FI_WAIT_SET:
		break;
	}
	return 0;
}

static void set_free(struct tdm_waitset *set)
{
	tdm_condwait_close(set->cond);
	if (set->epfd >= 0)
		tdm_os.close(set->epfd);
	pthread_mutex_destroy(&set->mutex);
	free(set);
}

int tdm_waitset_open(const struct fi_wait_attr *attr, struct tdm_waitset **out)
{
	enum fi_wait_obj obj = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
	struct tdm_waitset *set;
	int err;

	if (!valid_obj(obj) || (attr && attr->flags))
		return -FI_EINVAL;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->fid.fid.fclass = FI_CLASS_WAIT;
	set->fid.fid.ops = &waitset_fid_ops;
	set->fid.ops = &waitset_ops;
	pthread_mutex_init(&set->mutex, NULL);
	tdm_list_init(&set->members);
	set->obj = obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : obj;
	set->change_index = 1;
	set->epfd = -1;
	if (obj != FI_WAIT_YIELD) {
		set->epfd = tdm_os.epoll_create1(EPOLL_CLOEXEC);
		if (set->epfd < 0) {
			err = errno;
			TDM_WARN(FABRIC, "cannot make a wait set: %s",
				 strerror(err));
			set_free(set);
			return -err;
		}
	}
	*out = set;
	return 0;
}

struct tdm_waitset *tdm_waitset_from_fid(struct fid_wait *fid)
{
	return tdm_container_of(fid, struct tdm_waitset, fid);
}

struct fid_wait *tdm_waitset_fid(struct tdm_waitset *set)
{
	return &set->fid;
}

int tdm_waitset_polls(const struct tdm_waitset *set)
{
	return set->obj == FI_WAIT_YIELD;
}

void tdm_waitset_on_close(struct tdm_waitset *set, void (*closed)(void *arg),
			  void *arg)
{
	set->closed = closed;
	set->closed_arg = arg;
}

/* Not 0 when a member before @end has engine descriptor @fd. Lock: mutex. */
static int fd_before(const struct tdm_waitset *set, const struct tdm_list *end,
		     int fd)
{
	struct tdm_list *pos;

	for (pos = set->members.next; pos != end; pos = pos->next) {
		if (tdm_list_entry(pos, struct tdm_waitset_member, node)
			    ->engine_fd == fd)
			return 1;
	}
	return 0;
}

static int watch(struct tdm_waitset *set, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return tdm_os.epoll_ctl(set->epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static void unwatch(struct tdm_waitset *set, int fd)
{
	struct epoll_event ev = { .events = 0 };

	(void)tdm_os.epoll_ctl(set->epfd, EPOLL_CTL_DEL, fd, &ev);
}

/* Lock: mutex. */
static int join_locked(struct tdm_waitset *set, struct tdm_waitset_member *m)
{
	int ret;

	if (m->own_fd >= 0) {
		ret = watch(set, m->own_fd);
		if (ret)
			return ret;
		if (m->engine_fd >= 0 &&
		    !fd_before(set, &set->members, m->engine_fd))
			ret = watch(set, m->engine_fd);
		if (ret) {
			unwatch(set, m->own_fd);
			return ret;
		}
	}
	tdm_list_init(&m->node);
	tdm_list_append(&set->members, &m->node);
	set->change_index++;
	m->joined = 1;
	return 0;
}

int tdm_waitset_join(struct tdm_waitset_member *m)
{
	int ret;

	pthread_mutex_lock(&m->set->mutex);
	ret = join_locked(m->set, m);
	pthread_mutex_unlock(&m->set->mutex);
	if (ret)
		TDM_WARN(FABRIC, "cannot join a wait set: %s", strerror(-ret));
	return ret;
}

void tdm_waitset_leave(struct tdm_waitset_member *m)
{
	struct tdm_waitset *set = m->set;

	if (!m->joined)
		return;
	pthread_mutex_lock(&set->mutex);
	tdm_list_del(&m->node);
	if (m->own_fd >= 0)
		unwatch(set, m->own_fd);
	if (m->engine_fd >= 0 && !fd_before(set, &set->members, m->engine_fd))
		unwatch(set, m->engine_fd);
	set->change_index++;
	m->joined = 0;
	pthread_mutex_unlock(&set->mutex);
}

/*
 * Call look() of all members, but stop at one that has something to read: 1.
 * Returns 0 when all may be slept on, else the first error. A member that
 * cannot be armed does not stop the loop, so that the other members make
 * progress too before the caller tries again.
 */
static int look(struct tdm_waitset *set, int progress)
{
	struct tdm_list *pos;
	int ret = 0, one;

	pthread_mutex_lock(&set->mutex);
	tdm_list_for_each(pos, &set->members) {
		struct tdm_waitset_member *m =
			tdm_list_entry(pos, struct tdm_waitset_member, node);

		one = m->look(m->arg, progress);
		if (one > 0) {
			ret = one;
			break;
		}
		if (!ret)
			ret = one;
	}
	pthread_mutex_unlock(&set->mutex);
	return ret;
}

int tdm_waitset_trywait(struct tdm_waitset *set)
{
	int ret;

	if (tdm_waitset_polls(set))
		return -FI_EINVAL;
	ret = look(set, 0);
	if (ret)
		return ret > 0 ? -FI_EAGAIN : ret;
	pthread_mutex_lock(&set->mutex);
	tdm_condwait_go(set->cond);
	pthread_mutex_unlock(&set->mutex);
	return 0;
}

int tdm_waitset_sleep(struct tdm_waitset *set, int timeout_ms)
{
	const uint64_t deadline = tdm_wait_deadline(timeout_ms);
	struct epoll_event ev;
	int ret, left;

	for (;;) {
		ret = look(set, 1);
		if (ret > 0)
			return 0;
		if (ret && ret != -FI_EAGAIN)
			return ret;
		left = tdm_wait_left(deadline);
		if (!left)
			return -FI_ETIMEDOUT;
		if (ret || tdm_waitset_polls(set))
			sched_yield();
		else if (tdm_os.epoll_wait(set->epfd, &ev, 1, left) < 0)
			return -errno;
	}
}

static int waitset_wait(struct fid_wait *fid, int timeout)
{
	return tdm_waitset_sleep(tdm_waitset_from_fid(fid), timeout);
}

/*
 * Write one entry per descriptor to out[@room]. Returns how many there are,
 * which may be more than @room.
 */
static size_t list_fds(struct tdm_waitset *set, struct pollfd *out, size_t room)
{
	struct tdm_list *pos;
	size_t n = 0, i;
	int fds[2];

	tdm_list_for_each(pos, &set->members) {
		struct tdm_waitset_member *m =
			tdm_list_entry(pos, struct tdm_waitset_member, node);

		fds[0] = m->own_fd;
		fds[1] = fd_before(set, pos, m->engine_fd) ? -1 : m->engine_fd;
		for (i = 0; i < TDM_ARRAY_LEN(fds); i++) {
			if (fds[i] < 0)
				continue;
			if (n < room)
				out[n] = (struct pollfd){ .fd = fds[i],
							  .events = POLLIN };
			n++;
		}
	}
	return n;
}

static int get_pollfd(struct tdm_waitset *set, struct fi_wait_pollfd *arg)
{
	const size_t room = arg->fd ? arg->nfds : 0;

	arg->nfds = list_fds(set, arg->fd, room);
	arg->change_index = set->change_index;
	return arg->nfds > room ? -FI_ETOOSMALL : 0;
}

/* Lock: mutex. */
static int get_wait(struct tdm_waitset *set, void *arg)
{
	int ret = 0;

	switch (set->obj) {
	case FI_WAIT_FD:
		*(int *)arg = set->epfd;
		return 0;
	case FI_WAIT_POLLFD:
		return get_pollfd(set, arg);
	case FI_WAIT_MUTEX_COND:
		if (!set->cond)
			ret = tdm_condwait_open(set->epfd, &set->cond);
		if (!ret)
			tdm_condwait_get(set->cond, arg);
		return ret;
	default:
		return -FI_ENODATA;
	}
}

static int waitset_control(struct fid *fid, int command, void *arg)
{
	struct tdm_waitset *set =
		tdm_container_of(fid, struct tdm_waitset, fid.fid);
	int ret = 0;

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	pthread_mutex_lock(&set->mutex);
	if (command == FI_GETWAIT)
		ret = get_wait(set, arg);
	else
		*(enum fi_wait_obj *)arg = set->obj;
	pthread_mutex_unlock(&set->mutex);
	return ret;
}

static int waitset_close(struct fid *fid)
{
	struct tdm_waitset *set =
		tdm_container_of(fid, struct tdm_waitset, fid.fid);
	int busy;

	pthread_mutex_lock(&set->mutex);
	busy = !tdm_list_empty(&set->members);
	pthread_mutex_unlock(&set->mutex);
	if (busy)
		return -FI_EBUSY;
	if (set->closed)
		set->closed(set->closed_arg);
	set_free(set);
	return 0;
}

static struct fi_ops waitset_fid_ops = {
	.size = sizeof(waitset_fid_ops),
	.close = waitset_close,
	.bind = tdm_no_fi_bind,
	.control = waitset_control,
	.ops_open = tdm_no_fi_ops_open,
	.tostr = tdm_no_fi_tostr,
	.ops_set = tdm_no_fi_ops_set,
};

static struct fi_ops_wait waitset_ops = {
	.size = sizeof(waitset_ops),
	.wait = waitset_wait,
};
