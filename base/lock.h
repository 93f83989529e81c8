/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The domain lock. One lock guards everything below a domain: endpoints,
 * queues, matching, connections and the peer objects. It is taken only in
 * files that face the application, and does nothing when the application
 * promised to serialise (FI_THREAD_DOMAIN) and no event queue, which any thread
 * may read, drives the domain. A call that waits releases the lock meanwhile: a
 * blocking read of a queue, and fi_close of an endpoint (tcp/wire/tcp.c).
 *
 * Order: domain lock, then nothing. A peer provider never takes it: peers are
 * called with it held and their callbacks run with it held.
 */
#ifndef TDM_BASE_LOCK_H
#define TDM_BASE_LOCK_H

#include <assert.h>
#include <pthread.h>

#include "base/base.h"

#if defined(__clang__)
#define TDM_TSA(x) __attribute__((x))
#else
#define TDM_TSA(x)
#endif

struct TDM_TSA(capability("mutex")) tdm_lock {
	int enabled; /* 0: the application serialises */
	int held;    /* G: mutex; for tdm_assert_held() */
	pthread_mutex_t mutex;
};

static inline void tdm_lock_init(struct tdm_lock *l, int enabled)
{
	l->enabled = enabled;
	l->held = 0;
	pthread_mutex_init(&l->mutex, NULL);
}

static inline void tdm_lock_fini(struct tdm_lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

static inline void tdm_lock_acquire(struct tdm_lock *l)
	TDM_TSA(acquire_capability(l)) TDM_TSA(no_thread_safety_analysis)
{
	if (l->enabled) {
		pthread_mutex_lock(&l->mutex);
		l->held = 1;
	}
}

/*
 * Try to take the lock. Returns 0: it is held now; not 0: another thread has
 * it.
 */
static inline int tdm_lock_try(struct tdm_lock *l)
	TDM_TSA(try_acquire_capability(0, l)) TDM_TSA(no_thread_safety_analysis)
{
	if (!l->enabled)
		return 0;
	if (pthread_mutex_trylock(&l->mutex))
		return -1;
	l->held = 1;
	return 0;
}

static inline void tdm_lock_release(struct tdm_lock *l)
	TDM_TSA(release_capability(l)) TDM_TSA(no_thread_safety_analysis)
{
	if (l->enabled) {
		l->held = 0;
		pthread_mutex_unlock(&l->mutex);
	}
}

/*
 * Make the lock effective although the application promised to serialise: a
 * thread of the provider is about to use it. The caller is an application's
 * thread inside the domain, does not hold the lock, and by the promise is the
 * only one there.
 */
static inline void tdm_lock_enable(struct tdm_lock *l)
{
	if (!l->enabled)
		l->enabled = 1;
}

/*
 * Asserts that the lock is held. The first statement of each function whose
 * caller must hold it.
 */
static inline void tdm_assert_held(const struct tdm_lock *l)
{
	assert(!l->enabled || l->held);
	(void)l;
}

#endif /* TDM_BASE_LOCK_H */
