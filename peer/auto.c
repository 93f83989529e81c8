/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of automatic progress. It loops over steps under the domain lock.
 * Each step decides how long the thread then stays away from the lock (the
 * engine is armed when its descriptor becomes readable as soon as there is
 * work):
 *
 *   The application made progress since the last step: AWAY_MS. It is polling
 *   and does the work itself; two threads that compete for the lock are slower
 *   than one. No message waits for longer than that.
 *   The step made a pass, and could arm the engine: until its descriptor is
 *   readable.
 *   The step made a pass, and could not arm the engine, since there is more to
 *   do: no time, but AWAY_MS after every MOST_PASSES such passes.
 *
 * Invariants:
 *  1. The thread sleeps without a limit only when it armed the engine after its
 *     last pass. It counts as a sleeper meanwhile, so that an operation that
 *     the application posts and leaves to progress wakes it.
 *  2. An idle domain costs no processor time.
 *
 * Locking: the domain lock, released in every step.
 * Spec: fi_domain(3), FI_PROGRESS_AUTO.
 */
#include "peer/auto.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/os.h"

enum {
	/* How long the thread stays away while the application polls. */
	AWAY_MS = 1,
	/*
	 * After this many passes in a row the thread sleeps for AWAY_MS: a
	 * transport that never lets the engine be armed must not use up the
	 * processor.
	 */
	MOST_PASSES = 1000,
};

struct tdm_auto {
	struct tdm_engine *engine;
	pthread_t thread;
	int wait_fd;   /* the engine's */
	int end_fd;    /* eventfd, readable when stop is set */
	int stop;      /* G: domain lock, as all below */
	uint64_t seen; /* engine->passes at the end of the last step */
	unsigned row;  /* passes since the engine was last armed */
};

/*
 * Returns for how many milliseconds the thread stays away; -1: until there is
 * work.
 */
static int step(struct tdm_auto *a)
{
	struct tdm_engine *engine = a->engine;
	int ret;

	if (engine->passes != a->seen) {
		a->seen = engine->passes;
		return AWAY_MS;
	}
	engine->progress(engine);
	ret = engine->arm(engine);
	a->seen = engine->passes;
	if (!ret) {
		a->row = 0;
		return -1;
	}
	return ++a->row % MOST_PASSES ? 0 : AWAY_MS;
}

/* Lock: held at entry and at return, released in between. */
TDM_TSA(no_thread_safety_analysis)
static void stay_away(struct tdm_auto *a, int ms)
{
	struct pollfd p[2] = { { .fd = a->end_fd, .events = POLLIN },
			       { .fd = a->wait_fd, .events = POLLIN } };

	if (ms < 0)
		a->engine->sleepers++;
	tdm_lock_release(a->engine->lock);
	if (ms)
		(void)tdm_os.poll(p, ms < 0 ? 2 : 1, ms);
	else
		sched_yield();
	tdm_lock_acquire(a->engine->lock);
	if (ms < 0)
		a->engine->sleepers--;
}

static void *run(void *arg)
{
	struct tdm_auto *a = arg;

	tdm_lock_acquire(a->engine->lock);
	while (!a->stop)
		stay_away(a, step(a));
	tdm_lock_release(a->engine->lock);
	return NULL;
}

static void auto_free(struct tdm_auto *a)
{
	if (a->end_fd >= 0)
		tdm_os.close(a->end_fd);
	free(a);
}

int tdm_auto_start(struct tdm_engine *engine, struct tdm_auto **self)
{
	struct tdm_auto *a = calloc(1, sizeof(*a));
	int ret;

	if (!a)
		return -FI_ENOMEM;
	a->engine = engine;
	a->end_fd = -1;
	tdm_lock_acquire(engine->lock);
	a->wait_fd = engine->wait_fd(engine);
	a->seen = engine->passes;
	tdm_lock_release(engine->lock);
	ret = a->wait_fd < 0 ? a->wait_fd : 0;
	if (!ret) {
		a->end_fd = tdm_os.eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (a->end_fd < 0 || tdm_os.thread_create(&a->thread, run, a))
			ret = -errno;
	}
	if (ret) {
		TDM_WARN(DOMAIN, "no automatic progress: %s", strerror(-ret));
		auto_free(a);
		return ret;
	}
	*self = a;
	return 0;
}

void tdm_auto_stop(struct tdm_auto *a)
{
	const uint64_t one = 1;

	if (!a)
		return;
	tdm_lock_acquire(a->engine->lock);
	a->stop = 1;
	tdm_lock_release(a->engine->lock);
	while (tdm_os.write(a->end_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(a->thread, NULL);
	auto_free(a);
}
