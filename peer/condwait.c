/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread of a mutex and condition variable; see condwait.h.
 *
 *   IDLE --go--> WATCHING --descriptor readable: broadcast--> IDLE
 *
 * While idle it polls its own eventfd only, so that a descriptor that stays
 * readable costs nothing. The helper drains the eventfd before it polls the
 * descriptor, so it misses no tdm_condwait_go().
 *
 * A broadcast that finds nobody waiting is lost; an application that holds the
 * mutex from fi_trywait to pthread_cond_wait cannot lose it. For applications
 * that do not, the helper repeats the broadcast a few times at growing
 * intervals while the descriptor stays readable.
 *
 * Locking: the mutex, only around the broadcast.
 * Spec: fi_poll(3), FI_WAIT_MUTEX_COND and fi_trywait.
 */
#include "peer/condwait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rdma/fi_errno.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/os.h"

enum { REPEAT_MOST_MS = 1024 };

struct tdm_condwait {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	pthread_t thread;
	int fd;	 /* the caller's */
	int ctl; /* eventfd: written by go and close */
	tdm_a32 stop;
};

static int readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return tdm_os.poll(&p, 1, timeout_ms) > 0;
}

static void drain(int fd)
{
	uint64_t n;

	(void)!tdm_os.read(fd, &n, sizeof(n));
}

/*
 * Wait until the descriptor or the eventfd is readable. Returns 1 if the
 * descriptor is.
 */
static int watch(const struct tdm_condwait *c)
{
	struct pollfd p[2] = { { .fd = c->ctl, .events = POLLIN },
			       { .fd = c->fd, .events = POLLIN } };

	return tdm_os.poll(p, 2, -1) > 0 && p[1].revents;
}

static void broadcast(struct tdm_condwait *c)
{
	pthread_mutex_lock(&c->mutex);
	pthread_cond_broadcast(&c->cond);
	pthread_mutex_unlock(&c->mutex);
}

static void *helper(void *arg)
{
	struct tdm_condwait *c = arg;
	int ms = -1;

	for (;;) {
		if (readable(c->ctl, ms)) {
			drain(c->ctl);
			if (tdm_a32_load_acquire(&c->stop))
				return NULL;
			ms = watch(c) ? 1 : -1;
		} else if (ms > 0) {
			ms = readable(c->fd, 0) && ms < REPEAT_MOST_MS ?
				     2 * ms :
				     -1;
		}
		if (ms > 0)
			broadcast(c);
	}
}

static void cond_free(struct tdm_condwait *c)
{
	if (c->ctl >= 0)
		tdm_os.close(c->ctl);
	pthread_cond_destroy(&c->cond);
	pthread_mutex_destroy(&c->mutex);
	free(c);
}

int tdm_condwait_open(int fd, struct tdm_condwait **out)
{
	struct tdm_condwait *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -FI_ENOMEM;
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->cond, NULL);
	c->fd = fd;
	c->ctl = tdm_os.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->ctl < 0 || tdm_os.thread_create(&c->thread, helper, c)) {
		ret = -errno;
		TDM_WARN(CQ, "no helper for a condition variable: %s",
			 strerror(-ret));
		cond_free(c);
		return ret;
	}
	*out = c;
	return 0;
}

void tdm_condwait_close(struct tdm_condwait *c)
{
	if (!c)
		return;
	tdm_a32_store_release(&c->stop, 1);
	tdm_condwait_go(c);
	pthread_join(c->thread, NULL);
	cond_free(c);
}

void tdm_condwait_go(struct tdm_condwait *c)
{
	const uint64_t one = 1;
	ssize_t n;

	if (!c)
		return;
	do {
		n = tdm_os.write(c->ctl, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
}

void tdm_condwait_get(struct tdm_condwait *c, struct fi_mutex_cond *out)
{
	out->mutex = &c->mutex;
	out->cond = &c->cond;
}
