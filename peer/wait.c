/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping on a CQ or counter. See wait.h for the parts of a wait object.
 *
 * Why no wake-up is lost:
 *  1. A sleeper arms under the lock after it has found its object empty, and
 *     sleeps only if the engine armed too. From then on an entry written by
 *     another thread makes the eventfd readable (armed), and anything that
 *     needs progress makes the engine's descriptor readable.
 *  2. Both stay readable until somebody arms again. The eventfd is drained
 *     only by arm(), which arms in the same critical section.
 *  3. A drain must not take the signal from a second sleeper whose condition
 *     differs (two counter thresholds): while other threads sleep on a readable
 *     eventfd, nobody drains it, and a thread that wants to sleep gets
 *     -FI_EAGAIN. The others are waking up, so it retries until they have had
 *     the lock.
 *
 * Locking: everything in struct tdm_wait is guarded by the domain lock.
 * Spec: fi_cq(3), fi_cntr(3), fi_trywait in fi_poll(3).
 */
#include "peer/wait.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rdma/fi_errno.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/os.h"
#include "peer/condwait.h"

enum {
	NS_PER_MS = 1000000,

	/*
	 * After so many sleeps in a row that arm() refused, the thread yields
	 * the processor.
	 */
	REFUSED_BEFORE_YIELD = 64,

	/*
	 * Polling before a sleep pays when the answer is on its way and the
	 * other side has a processor of its own; it costs both sides when
	 * they share one. So a thread polls first, but after n fruitless polls
	 * in a row it skips polling for 2^n sleeps. A poll ends after
	 * SPIN_PASSES passes, whatever the time.
	 */
	SPIN_NS = 20000,
	SPIN_PASSES = 1000,
	SPIN_MOST_FAILS = 10,
};

/* The state of one blocking read between its polls and sleeps. */
struct pace {
	uint64_t spin_end_ns; /* 0: not polling yet */
	unsigned int passes;  /* since polling began */
	unsigned int refused; /* sleeps refused in a row */
};

static void close_fds(struct tdm_wait *w)
{
	if (w->epfd >= 0)
		tdm_os.close(w->epfd);
	if (w->eventfd >= 0)
		tdm_os.close(w->eventfd);
	w->epfd = -1;
	w->eventfd = -1;
}

static int no_fds(int ret)
{
	TDM_WARN(CQ, "cannot make a wait object: %s", strerror(-ret));
	return ret;
}

/* Make the two descriptors that a sleeper polls, unless they exist. */
static int open_fds(struct tdm_wait *w)
{
	int fd;

	if (w->eventfd >= 0)
		return 0;
	fd = w->engine->wait_fd(w->engine);
	if (fd < 0)
		return no_fds(fd);
	w->engine_fd = fd;
	w->eventfd = tdm_os.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return w->eventfd < 0 ? no_fds(tdm_os_failed("eventfd")) : 0;
}

static int join_fd(int epfd, int fd)
{
	struct epoll_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.events = EPOLLIN;
	return tdm_os.epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Make the one descriptor for the application, unless it exists. */
static int open_epoll(struct tdm_wait *w)
{
	int ret;

	if (w->epfd >= 0)
		return 0;
	ret = open_fds(w);
	if (ret)
		return ret;
	w->epfd = tdm_os.epoll_create1(EPOLL_CLOEXEC);
	if (w->epfd < 0)
		return no_fds(tdm_os_failed("epoll_create1"));
	ret = join_fd(w->epfd, w->eventfd);
	if (!ret)
		ret = join_fd(w->epfd, w->engine_fd);
	if (!ret)
		return 0;
	tdm_os.close(w->epfd);
	w->epfd = -1;
	return no_fds(ret);
}

/* Not 0 when a thread can sleep on the object, by whatever means. */
static int sleepable(const struct tdm_wait *w)
{
	return w->obj != FI_WAIT_NONE && w->obj != FI_WAIT_YIELD &&
	       !(w->member.set && tdm_waitset_polls(w->member.set));
}

/*
 * Prepare the object to join @set. It joins unarmed, with its eventfd readable,
 * so that a thread that sleeps on the set wakes up and arms it.
 */
static int init_member(struct tdm_wait *w, struct fid_wait *set)
{
	int ret;

	if (!set || set->fid.fclass != FI_CLASS_WAIT)
		return -FI_EINVAL;
	w->member.set = tdm_waitset_from_fid(set);
	if (!sleepable(w))
		return 0;
	ret = open_fds(w);
	if (!ret)
		tdm_wait_wake(w);
	return ret;
}

int tdm_wait_init(struct tdm_wait *w, struct tdm_engine *engine,
		  enum fi_wait_obj obj, struct fid_wait *set)
{
	tdm_assert_held(engine->lock);
	memset(w, 0, sizeof(*w));
	w->engine = engine;
	w->epfd = -1;
	w->eventfd = -1;
	switch (obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_YIELD:
	case FI_WAIT_MUTEX_COND:
		w->obj = obj;
		return 0;
	case FI_WAIT_UNSPEC:
		w->obj = FI_WAIT_FD;
		return 0;
	case FI_WAIT_FD:
		w->obj = obj;
		return open_epoll(w);
	case FI_WAIT_POLLFD:
		w->obj = obj;
		return open_fds(w);
	case FI_WAIT_SET:
		w->obj = obj;
		return init_member(w, set);
	}
	return -FI_EINVAL;
}

int tdm_wait_join(struct tdm_wait *w, int (*look)(void *arg, int progress),
		  void *arg)
{
	if (!w->member.set)
		return 0;
	w->member.own_fd = w->eventfd;
	w->member.engine_fd = w->eventfd < 0 ? -1 : w->engine_fd;
	w->member.look = look;
	w->member.arg = arg;
	return tdm_waitset_join(&w->member);
}

void tdm_wait_leave(struct tdm_wait *w)
{
	tdm_waitset_leave(&w->member);
}

void tdm_wait_fini(struct tdm_wait *w)
{
	tdm_wait_leave(w);
	tdm_condwait_close(w->cond);
	if (w->engine)
		close_fds(w);
	memset(w, 0, sizeof(*w));
}

void tdm_wait_wake(struct tdm_wait *w)
{
	const uint64_t one = 1;
	ssize_t n;

	if (w->eventfd < 0 || w->signaled) {
		w->armed = 0;
		return;
	}
	do {
		n = tdm_os.write(w->eventfd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		/* armed stays 1, so that the next entry tries again. */
		TDM_WARN(CQ, "eventfd: %s", strerror(errno));
		return;
	}
	w->armed = 0;
	w->signaled = 1;
}

/*
 * Answer FI_GETWAIT for FI_WAIT_POLLFD. Out: the descriptors, and nfds, how
 * many there are.
 */
static int fill_pollfd(struct fi_wait_pollfd *poll, const int *fds, size_t n)
{
	const int room = poll->nfds >= n && poll->fd;
	size_t i;

	poll->nfds = n;
	poll->change_index = 1;
	if (!room)
		return -FI_ETOOSMALL;
	for (i = 0; i < n; i++) {
		poll->fd[i].fd = fds[i];
		poll->fd[i].events = POLLIN;
		poll->fd[i].revents = 0;
	}
	return 0;
}

static int get_pollfd(struct tdm_wait *w, void *arg)
{
	int fds[2];
	int ret = open_fds(w);

	if (ret)
		return ret;
	w->exported = 1;
	fds[0] = w->eventfd;
	fds[1] = w->engine_fd;
	return fill_pollfd(arg, fds, 2);
}

static int get_cond(struct tdm_wait *w, void *arg)
{
	int ret = open_epoll(w);

	if (!ret && !w->cond)
		ret = tdm_condwait_open(w->epfd, &w->cond);
	if (ret)
		return ret;
	w->exported = 1;
	tdm_condwait_get(w->cond, arg);
	return 0;
}

static int get_fd(struct tdm_wait *w, void *arg)
{
	int ret = open_epoll(w);

	if (ret)
		return ret;
	w->exported = 1;
	*(int *)arg = w->epfd;
	return 0;
}

static int wait_get(struct tdm_wait *w, void *arg)
{
	tdm_assert_held(w->engine->lock);
	switch (w->obj) {
	case FI_WAIT_FD:
		return get_fd(w, arg);
	case FI_WAIT_POLLFD:
		return get_pollfd(w, arg);
	case FI_WAIT_MUTEX_COND:
		return get_cond(w, arg);
	default:
		return -FI_ENODATA;
	}
}

int tdm_wait_control(struct tdm_wait *w, int command, void *arg)
{
	int ret;

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = w->obj;
		return 0;
	}
	if (w->member.set)
		return fi_control(&tdm_waitset_fid(w->member.set)->fid, command,
				  arg);
	tdm_lock_acquire(w->engine->lock);
	ret = wait_get(w, arg);
	tdm_lock_release(w->engine->lock);
	return ret;
}

/* tdm_wait_try() without the check of the application's wait descriptor. */
static int arm(struct tdm_wait *w)
{
	uint64_t count;
	int ret = open_fds(w);

	if (ret)
		return ret;
	if (w->signaled) {
		if (w->sleepers)
			return -FI_EAGAIN;
		/*
		 * Interrupted by a signal: the eventfd stays readable, and the
		 * next call drains it.
		 */
		if (tdm_os.read(w->eventfd, &count, sizeof(count)) < 0 &&
		    errno == EINTR)
			return -FI_EAGAIN;
		w->signaled = 0;
	}
	w->armed = 1;
	return w->engine->arm(w->engine);
}

int tdm_wait_try(struct tdm_wait *w)
{
	int ret;

	tdm_assert_held(w->engine->lock);
	if (!sleepable(w))
		return -FI_EINVAL;
	w->engine->exported = 1;
	ret = arm(w);
	if (!ret)
		tdm_condwait_go(w->cond);
	return ret;
}

int tdm_wait_look(struct tdm_wait *w)
{
	tdm_assert_held(w->engine->lock);
	if (!sleepable(w))
		return 0;
	w->engine->exported = 1;
	return arm(w);
}

uint64_t tdm_wait_deadline(int timeout_ms)
{
	if (timeout_ms < 0)
		return UINT64_MAX;
	return tdm_os.now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
}

int tdm_wait_left(uint64_t deadline_ns)
{
	uint64_t now, ms;

	if (deadline_ns == UINT64_MAX)
		return -1;
	now = tdm_os.now_ns();
	if (now >= deadline_ns)
		return 0;
	ms = (deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

/* Not 0 when the thread should poll again rather than sleep. */
static int keep_polling(const struct tdm_wait *w, struct pace *pace)
{
	uint64_t now;

	if (w->spin_skip || w->obj == FI_WAIT_YIELD)
		return 0;
	now = tdm_os.now_ns();
	if (!pace->spin_end_ns) {
		pace->spin_end_ns = now + SPIN_NS;
		pace->passes = 0;
	}
	return now < pace->spin_end_ns && ++pace->passes < SPIN_PASSES;
}

/* Called when polling ended without result, or was skipped. */
static void spin_lost(struct tdm_wait *w, struct pace *pace)
{
	if (w->spin_skip) {
		w->spin_skip--;
		return;
	}
	pace->spin_end_ns = 0;
	if (w->spin_fails < SPIN_MOST_FAILS)
		w->spin_fails++;
	w->spin_skip = 1u << w->spin_fails;
}

static void spin_won(struct tdm_wait *w)
{
	w->spin_fails = 0;
	w->spin_skip = 0;
}

/*
 * Release the lock for a moment; yield the processor if sleeping is impossible.
 */
TDM_TSA(no_thread_safety_analysis)
static void pause_polling(struct tdm_wait *w, int give_away)
{
	tdm_lock_release(w->engine->lock);
	if (give_away)
		sched_yield();
	else
		tdm_cpu_relax();
	tdm_lock_acquire(w->engine->lock);
}

/*
 * Sleep until a descriptor is readable. Lock: held at entry and at return,
 * released in between. 0, or -errno of poll(2).
 */
TDM_TSA(no_thread_safety_analysis)
static int sleep_on(struct tdm_wait *w, int timeout_ms)
{
	struct pollfd fds[2];
	int n, err;

	fds[0].fd = w->eventfd;
	fds[1].fd = w->engine_fd;
	fds[0].events = POLLIN;
	fds[1].events = POLLIN;
	w->sleepers++;
	w->engine->sleepers++;
	tdm_lock_release(w->engine->lock);
	n = tdm_os.poll(fds, 2, timeout_ms);
	err = errno;
	tdm_lock_acquire(w->engine->lock);
	w->engine->sleepers--;
	/*
	 * With no sleeper left, later completions need not write the eventfd.
	 */
	if (!--w->sleepers && !w->exported)
		w->armed = 0;
	return n < 0 ? -err : 0;
}

/*
 * Poll for a moment, or sleep once; or find out why neither is possible. Lock:
 * held at entry and at return, released in between. Returns 0: the caller tests
 * its condition again; else the result of the blocking read.
 */
static int pass_time(struct tdm_wait *w, int timeout_ms, struct pace *pace)
{
	int ret;

	if (w->obj == FI_WAIT_NONE) {
		pause_polling(w, 1);
		return 0;
	}
	if (keep_polling(w, pace)) {
		pause_polling(w, 0);
		return 0;
	}
	ret = w->obj == FI_WAIT_YIELD ? -FI_EAGAIN : arm(w);
	if (ret == -FI_EAGAIN) {
		pause_polling(w,
			      w->obj == FI_WAIT_YIELD ||
				      ++pace->refused > REFUSED_BEFORE_YIELD);
		return 0;
	}
	if (ret)
		return ret;
	pace->refused = 0;
	spin_lost(w, pace);
	ret = sleep_on(w, timeout_ms);
	return ret == -EINTR ? -FI_EAGAIN : ret;
}

static int look(struct tdm_wait *w, int (*ready)(void *arg), void *arg,
		const struct pace *pace)
{
	if (w->engine->owed || !ready(arg)) {
		w->engine->progress(w->engine);
		if (!ready(arg))
			return 0;
	}
	if (pace->spin_end_ns)
		spin_won(w);
	return 1;
}

/* Returns 0 with the lock held, which the analysis cannot express. */
TDM_TSA(no_thread_safety_analysis)
int tdm_wait_until(struct tdm_wait *w, int (*ready)(void *arg), void *arg,
		   int timeout_ms, int *interrupt)
{
	struct tdm_lock *lock = w->engine->lock;
	const uint64_t deadline = tdm_wait_deadline(timeout_ms);
	struct pace pace = { 0, 0, 0 };
	int left, ret;

	tdm_lock_acquire(lock);
	for (;;) {
		if (look(w, ready, arg, &pace))
			return 0;
		if (interrupt && *interrupt) {
			*interrupt = 0;
			ret = -FI_EAGAIN;
			break;
		}
		left = tdm_wait_left(deadline);
		ret = left ? pass_time(w, left, &pace) : -FI_EAGAIN;
		if (ret)
			break;
	}
	tdm_lock_release(lock);
	return ret;
}
