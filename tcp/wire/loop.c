/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The event loop of one domain, the only user of libevent.
 *
 * All sockets are in one epoll set of ours, which libevent watches as a single
 * descriptor beside its timers, and which sleepers sleep on. A socket needs no
 * memory here beyond its struct tdm_loop_io.
 *
 * Invariants:
 *  1. A watched io is in the set for all events asked for, level triggered;
 *     but while nobody may sleep (`waited` is 0), the hot one is not in it for
 *     reading, since the sender would pay for the entry.
 *  2. `broken` is set if the kernel refused to put the hot one back, and then
 *     nobody may sleep.
 *  3. The timerfd in the set is set to the earliest deadline in arm(), and when
 *     a timer is armed, and the eventfd that tdm_loop_wake() writes is drained
 *     in arm() only: a pass of another thread cannot take a sleeper's wake-up
 *     away.
 *  4. An io or timer may be stopped from any callback, its own included: an
 *     event of the batch in work that belongs to a stopped io is cleared.
 *
 * Costs: a pass that polls the hot socket makes one recv(), one that polls the cold
 * ones and finds none ready makes one epoll_wait(), and other passes make no system
 * call (due.h).
 *
 * Locking: domain lock. libevent's own locks are off.
 */
#include "tcp/wire/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include <event2/event.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/os.h"
#include "tcp/wire/due.h"

enum {
	/* Events taken from the set in one pass. */
	BATCH = 32,
};

struct tdm_loop {
	struct event_base *base;
	struct event *set_ev;	/* libevent's, for epfd */
	struct tdm_list timers; /* struct tdm_loop_timer, armed, not lazy */
	struct tdm_loop_io *hot;
	struct tdm_due due;
	size_t eager_ios;	   /* watched ios that are not lazy */
	struct epoll_event *batch; /* batch[batched], in work; or NULL */
	int batched;
	int running; /* inside a pass */
	int broken;  /* 1: the set lacks the hot io */
	int epfd;    /* the set */
	int waited;  /* 1: somebody may sleep; the set has wakefd and timerfd */
	int wakefd;  /* eventfd, for tdm_loop_wake() */
	int woken;   /* wakefd holds a count */
	int timerfd;
	uint64_t timerfd_ns; /* what timerfd is set to; 0: disarmed */
	struct tdm_stage stage;
};

static uint32_t epoll_events(int events)
{
	return ((events & TDM_LOOP_READ) ? EPOLLIN : 0) |
	       ((events & TDM_LOOP_WRITE) ? EPOLLOUT : 0);
}

/*
 * Returns the TDM_LOOP_* for epoll's @events. An error or the end of the stream
 * counts as both.
 */
static int loop_events(uint32_t events)
{
	if (events & (EPOLLERR | EPOLLHUP))
		return TDM_LOOP_READ | TDM_LOOP_WRITE;
	return ((events & EPOLLIN) ? TDM_LOOP_READ : 0) |
	       ((events & EPOLLOUT) ? TDM_LOOP_WRITE : 0);
}

/* Call the io of @e, which epoll reported, for one direction. */
static void call(struct tdm_loop *loop, const struct epoll_event *e, int dir)
{
	struct tdm_loop_io *io = e->data.ptr;

	if (!io || !(loop_events(e->events) & io->events & dir))
		return;
	/* The pass has polled the hot one. */
	if (dir == TDM_LOOP_READ && io == loop->hot)
		return;
	io->ready(io, dir);
}

/*
 * libevent's callback: sockets of the set are ready, or descriptors that only
 * wake sleepers.
 */
static void set_ready(evutil_socket_t fd, short what, void *arg)
{
	struct epoll_event events[BATCH];
	struct tdm_loop *loop = arg;
	int i;

	loop->due.quiet = 0;
	loop->batched = tdm_os.epoll_wait(loop->epfd, events, BATCH, 0);
	loop->batch = events;
	for (i = 0; i < loop->batched; i++) {
		call(loop, &events[i], TDM_LOOP_WRITE);
		call(loop, &events[i], TDM_LOOP_READ);
	}
	loop->batch = NULL;
}

static struct event_base *new_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (!config)
		return NULL;
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
	event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
	base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

/* Called when the call named @call has failed: logs that. Returns -errno. */
static int no_set(const char *call)
{
	int err = errno ? errno : FI_ENOMEM;

	TDM_WARN(DOMAIN, "no event loop: %s: %s", call, strerror(err));
	return -err;
}

/* Make the base, and the set that it watches. Errors: those of the opening. */
static int open_base(struct tdm_loop *loop)
{
	loop->base = new_base();
	if (!loop->base) {
		errno = 0;
		return no_set("event_base_new_with_config");
	}
	loop->epfd = tdm_os.epoll_create1(EPOLL_CLOEXEC);
	if (loop->epfd < 0)
		return no_set("epoll_create1");
	errno = 0;
	loop->set_ev = event_new(loop->base, loop->epfd, EV_READ | EV_PERSIST,
				 set_ready, loop);
	if (!loop->set_ev || event_add(loop->set_ev, NULL))
		return no_set("epoll_ctl");
	return 0;
}

int tdm_loop_open(struct tdm_loop **out)
{
	struct tdm_loop *loop = calloc(1, sizeof(*loop));
	int ret;

	if (!loop)
		return -FI_ENOMEM;
	loop->epfd = -1;
	loop->wakefd = -1;
	loop->timerfd = -1;
	tdm_list_init(&loop->timers);
	ret = open_base(loop);
	if (ret) {
		tdm_loop_close(loop);
		return ret;
	}
	*out = loop;
	return 0;
}

static void close_wait_fds(struct tdm_loop *loop)
{
	if (loop->timerfd >= 0)
		tdm_os.close(loop->timerfd);
	if (loop->wakefd >= 0)
		tdm_os.close(loop->wakefd);
	loop->timerfd = -1;
	loop->wakefd = -1;
}

void tdm_loop_close(struct tdm_loop *loop)
{
	if (!loop)
		return;
	close_wait_fds(loop);
	if (loop->set_ev)
		event_free(loop->set_ev);
	if (loop->epfd >= 0)
		tdm_os.close(loop->epfd);
	if (loop->base)
		event_base_free(loop->base);
	free(loop);
}

struct tdm_stage *tdm_loop_stage(struct tdm_loop *loop)
{
	return &loop->stage;
}

/*
 * Bring the set into the state that invariant 1 demands for @io. Errors:
 * -FI_ENOMEM; nothing has changed.
 */
static int update(struct tdm_loop *loop, struct tdm_loop_io *io)
{
	int want = io->events, op;
	struct epoll_event ev = { .data.ptr = io };

	if (io == loop->hot && !loop->waited)
		want &= ~TDM_LOOP_READ;
	if (io->in_set == want)
		return 0;
	ev.events = epoll_events(want);
	op = !want	 ? EPOLL_CTL_DEL :
	     !io->in_set ? EPOLL_CTL_ADD :
			   EPOLL_CTL_MOD;
	if (tdm_os.epoll_ctl(loop->epfd, op, io->fd, &ev) && want)
		return -FI_ENOMEM;
	io->in_set = (uint8_t)want;
	return 0;
}

static void unwatch(struct tdm_loop *loop, struct tdm_loop_io *io)
{
	int i;

	if (!io->events)
		return;
	if (loop->hot == io)
		loop->hot = NULL;
	io->events = 0;
	(void)!update(loop, io);
	for (i = 0; loop->batch && i < loop->batched; i++) {
		if (loop->batch[i].data.ptr == io)
			loop->batch[i].data.ptr = NULL;
	}
	loop->eager_ios -= !io->lazy;
}

int tdm_loop_watch(struct tdm_loop *loop, struct tdm_loop_io *io, int events)
{
	struct tdm_loop_io *hot = loop->hot;
	uint8_t before = io->events;

	if (!events) {
		unwatch(loop, io);
		return 0;
	}
	if (hot == io && !(events & TDM_LOOP_READ))
		loop->hot = NULL;
	io->events = (uint8_t)events;
	if (update(loop, io)) {
		io->events = before;
		loop->hot = hot;
		return -FI_ENOMEM;
	}
	if (!before)
		loop->eager_ios += !io->lazy;
	return 0;
}

/*
 * Set the timerfd to the earliest deadline. Returns not 0: one has passed
 * already.
 */
static int arm_timerfd(struct tdm_loop *loop)
{
	struct itimerspec ts = { .it_value = { 0, 0 } };
	uint64_t first = 0;
	struct tdm_list *n;

	tdm_list_for_each(n, &loop->timers) {
		uint64_t t = tdm_list_entry(n, struct tdm_loop_timer, node)
				     ->deadline_ns;

		if (!first || t < first)
			first = t;
	}
	if (first && first <= tdm_os.now_ns())
		return -FI_EAGAIN;
	if (first == loop->timerfd_ns)
		return 0;
	ts.it_value.tv_sec = (time_t)(first / 1000000000u);
	ts.it_value.tv_nsec = (long)(first % 1000000000u);
	if (tdm_os.timerfd_settime(loop->timerfd, TFD_TIMER_ABSTIME, &ts, NULL))
		return -FI_EAGAIN;
	loop->timerfd_ns = first;
	return 0;
}

void tdm_loop_wake(struct tdm_loop *loop)
{
	const uint64_t one = 1;

	if (!loop->waited || loop->woken)
		return;
	/* A failure without EINTR means that it is readable already. */
	while (tdm_os.write(loop->wakefd, &one, sizeof(one)) < 0 &&
	       errno == EINTR)
		;
	loop->woken = 1;
}

static void timer_expired(evutil_socket_t fd, short what, void *arg)
{
	struct tdm_loop_timer *timer = arg;

	tdm_loop_timer_disarm(timer);
	timer->fired(timer);
}

int tdm_loop_timer_arm(struct tdm_loop *loop, struct tdm_loop_timer *timer,
		       unsigned ms)
{
	struct timeval tv = { .tv_sec = ms / 1000,
			      .tv_usec = (ms % 1000) * 1000 };

	tdm_loop_timer_disarm(timer);
	timer->ev = evtimer_new(loop->base, timer_expired, timer);
	if (!timer->ev)
		return -FI_ENOMEM;
	if (evtimer_add(timer->ev, &tv)) {
		event_free(timer->ev);
		timer->ev = NULL;
		return -FI_ENOMEM;
	}
	timer->deadline_ns = tdm_os.now_ns() + (uint64_t)ms * 1000000;
	tdm_list_init(&timer->node);
	if (timer->lazy)
		return 0;
	tdm_list_append(&loop->timers, &timer->node);
	if (loop->waited && arm_timerfd(loop))
		tdm_loop_wake(loop);
	return 0;
}

void tdm_loop_timer_disarm(struct tdm_loop_timer *timer)
{
	if (!timer->ev)
		return;
	event_free(timer->ev);
	timer->ev = NULL;
	timer->deadline_ns = 0;
	tdm_list_del(&timer->node);
}

/* Make the hot socket a cold one. If that fails it stays hot. */
static void cool(struct tdm_loop *loop)
{
	struct tdm_loop_io *io = loop->hot;

	loop->hot = NULL;
	if (io && update(loop, io))
		loop->hot = io;
}

void tdm_loop_heat(struct tdm_loop *loop, struct tdm_loop_io *io)
{
	if (loop->hot == io)
		return;
	if (io && (!(io->events & TDM_LOOP_READ) ||
		   (loop->hot && tdm_due_hot_busy(&loop->due))))
		return;
	cool(loop);
	if (!io || loop->hot)
		return;
	loop->hot = io;
	loop->due.hot_misses = 0;
	/* It can be polled directly even if it stays in the set as it was. */
	(void)!update(loop, io);
}

void tdm_loop_active(struct tdm_loop *loop, struct tdm_loop_io *io)
{
	if (loop->hot == io)
		loop->due.hot_misses = 0;
}

/* Poll the hot socket, there is one, if it is due. Returns what tdm_due_hot() says. */
static enum tdm_due_hot poll_hot(struct tdm_loop *loop)
{
	enum tdm_due_hot hot = tdm_due_hot(&loop->due);

	if (tdm_unlikely(hot == TDM_DUE_COOL)) {
		cool(loop);
		if (!loop->hot)
			return hot;
		/* The set has no memory for it: it stays hot for as long again. */
		loop->due.hot_misses = 0;
		hot = tdm_due_hot(&loop->due);
	}
	if (hot != TDM_DUE_NOT)
		loop->hot->ready(loop->hot, TDM_LOOP_READ);
	return hot;
}

void tdm_loop_end(struct tdm_loop *loop)
{
	loop->batched = 0;
}

void tdm_loop_progress(struct tdm_loop *loop, int only_tcp)
{
	enum tdm_due_hot hot = TDM_DUE_COOL;

	if (loop->running)
		return;
	loop->running = 1;
	if (loop->hot)
		hot = poll_hot(loop);
	if (tdm_due_cold(&loop->due, hot, only_tcp, loop->eager_ios != 0))
		event_base_loop(loop->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	tdm_due_polled(&loop->due);
	loop->running = 0;
}

/* Make the two descriptors that wake sleepers. Errors: -errno. */
static int open_wait_fds(struct tdm_loop *loop)
{
	struct epoll_event ev = { .events = EPOLLIN };

	loop->timerfd = tdm_os.timerfd_create(CLOCK_MONOTONIC,
					      TFD_NONBLOCK | TFD_CLOEXEC);
	if (loop->timerfd < 0)
		return tdm_os_failed("timerfd_create");
	loop->wakefd = tdm_os.eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->wakefd < 0)
		return tdm_os_failed("eventfd");
	if (tdm_os.epoll_ctl(loop->epfd, EPOLL_CTL_ADD, loop->timerfd, &ev) ||
	    tdm_os.epoll_ctl(loop->epfd, EPOLL_CTL_ADD, loop->wakefd, &ev))
		return tdm_os_failed("epoll_ctl");
	return 0;
}

int tdm_loop_wait_fd(struct tdm_loop *loop)
{
	int ret;

	if (loop->waited)
		return loop->epfd;
	ret = open_wait_fds(loop);
	if (ret) {
		close_wait_fds(loop);
		return ret;
	}
	loop->woken = 0;
	loop->timerfd_ns = 0;
	loop->waited = 1;
	loop->broken = loop->hot && update(loop, loop->hot);
	return loop->epfd;
}

int tdm_loop_wait_add(void *arg, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct tdm_loop *loop = arg;
	int epfd = tdm_loop_wait_fd(loop);

	if (epfd < 0)
		return epfd;
	return tdm_os.epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void tdm_loop_wait_del(void *arg, int fd)
{
	struct epoll_event ev = { .events = 0 };
	struct tdm_loop *loop = arg;

	if (loop->waited)
		tdm_os.epoll_ctl(loop->epfd, EPOLL_CTL_DEL, fd, &ev);
}

int tdm_loop_arm(struct tdm_loop *loop)
{
	uint64_t n;
	int ret = 0;

	loop->due.all = 1;
	if (loop->broken)
		loop->broken = loop->hot && update(loop, loop->hot);
	if (loop->broken)
		return -FI_EAGAIN;
	if (loop->woken) {
		(void)!tdm_os.read(loop->wakefd, &n, sizeof(n));
		loop->woken = 0;
	}
	if (loop->waited)
		ret = arm_timerfd(loop);
	return ret;
}
