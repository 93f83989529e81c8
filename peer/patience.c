/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Yields and naps of threads that poll. See patience.h.
 *
 * Lock: not held; a nap takes the domain lock before and after its sleep.
 * tdm_patience belongs to its thread, and engine->crowd is atomic.
 * Spec: fi_tandem(7), PROGRESS; sched_yield(2), ppoll(2).
 */
#include "peer/patience.h"

#include <poll.h>
#include <time.h>

#include <rdma/fi_errno.h>

__thread struct tdm_patience tdm_patience;

uint64_t tdm_yield(void)
{
	uint64_t before = tdm_os.now_ns();

	tdm_os.yield();
	return tdm_os.now_ns() - before;
}

void tdm_engine_yielded(struct tdm_engine *engine, uint64_t away_ns)
{
	uint32_t crowd = tdm_a32_load_relaxed(&engine->crowd);
	uint64_t now;

	tdm_a32_store_relaxed(&engine->crowd, tdm_engine_crowd(crowd, away_ns));
	if (tdm_likely(away_ns <= TDM_YIELD_LONG_NS))
		return;
	now = tdm_os.now_ns();
	tdm_patience.stay_ns = now + away_ns / TDM_YIELD_STAY_PART;
	tdm_patience.nap_ns = now + away_ns * TDM_YIELD_NAP_TIMES;
}

/*
 * Prepare for sleep on @fd. 0; else -errno: the thread does not sleep. Lock:
 * held.
 */
static int lie_down(struct tdm_engine *engine, int *fd)
{
	int ret;

	*fd = engine->wait_fd(engine);
	ret = *fd < 0 ? *fd : engine->arm(engine);
	if (!ret)
		engine->sleepers++;
	return ret;
}

/*
 * Sleep for TDM_NAP_NS, or until @engine needs progress. Returns 0 when the
 * thread should yield instead.
 */
static int nap(struct tdm_engine *engine)
{
	const struct timespec most = { .tv_sec = 0, .tv_nsec = TDM_NAP_NS };
	struct pollfd p = { .events = POLLIN };
	int ret;

	tdm_lock_acquire(engine->lock);
	ret = lie_down(engine, &p.fd);
	tdm_lock_release(engine->lock);
	if (ret)
		return ret == -FI_EAGAIN &&
		       ++tdm_patience.refused <= TDM_NAPS_REFUSED;
	tdm_patience.refused = 0;
	(void)tdm_os.ppoll(&p, 1, &most, NULL);
	tdm_lock_acquire(engine->lock);
	engine->sleepers--;
	tdm_lock_release(engine->lock);
	return 1;
}

void tdm_engine_yield(struct tdm_engine *engine)
{
	if (tdm_os.now_ns() < tdm_patience.nap_ns && nap(engine)) {
		tdm_patience.stay_ns =
			tdm_os.now_ns() + TDM_NAP_NS / TDM_YIELD_STAY_PART;
		return;
	}
	tdm_patience.refused = 0;
	tdm_engine_yielded(engine, tdm_yield());
}
