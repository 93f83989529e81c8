/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress engine of one domain, as its queues see it. The queues of
 * peer/ get a pointer to it when they are opened and know nothing else of
 * their domain.
 *
 * Sleeping, as fi_trywait(3) asks for it: arm() under the lock, sleep on
 * wait_fd() only when arm() said 0, wake, progress(). Each transport promises
 * that after a successful arm() everything that needs progress makes
 * wait_fd() readable: what comes from outside, and what another thread leaves
 * to be done when it posts or makes progress meanwhile.
 */
#ifndef TDM_ENGINE_H
#define TDM_ENGINE_H

#include "base/atomic.h"
#include "base/lock.h"
#include "base/os.h"

struct sockaddr;
struct tdm_trigger;

enum { TDM_SOURCE_NAME_BYTES = 128 };

struct tdm_engine {
	struct tdm_lock *lock; /* the domain lock */

	/*
	 * Interface version the fabric was opened with, 0 for the newest: older
	 * applications have a shorter struct fi_cq_err_entry.
	 */
	uint32_t api_version;

	unsigned int sleepers; /* threads in a blocking read; G: lock */
	int exported;	       /* an application may sleep; G: lock */
	/*
	 * inherited by a child of fork(2): fork.c; set before other threads
	 * exist
	 */
	int orphan;
	/*
	 * Work done outside of a pass left something to do that a peer waits
	 * for; a pass runs before the next completion is read. G: lock.
	 */
	int owed;
	uint64_t passes; /* of progress, free-running; G: lock */
	uint32_t vain;	 /* polls in a row without result; G: lock */
	/* time of the first of these polls that read the clock; G: lock */
	uint64_t vain_ns;
	tdm_a32 crowd; /* 0..TDM_CROWD_MOST: tdm_engine_crowd() */

	/*
	 * Write the address @sa in the domain's format to @buf[@room]. Returns
	 * its bytes, at most @room: TDM_SOURCE_NAME_BYTES are enough. NULL: it
	 * is reported as it is. Lock: held.
	 */
	size_t (*source_name)(const struct tdm_engine *engine,
			      const struct sockaddr *sa, void *buf,
			      size_t room);

	/* Advance both transports once. Lock: held. */
	void (*progress)(struct tdm_engine *engine);

	/*
	 * Prepare for sleep. 0: the caller may sleep on wait_fd(). -FI_EAGAIN:
	 * something is pending, call progress() instead. Only arm() may make
	 * wait_fd() unreadable again, and then it arms anew: a progress() of
	 * another thread must not take the wake-up from a sleeper. Lock: held.
	 */
	int (*arm)(struct tdm_engine *engine);

	/*
	 * The file descriptor that becomes readable when any transport needs
	 * progress; made at the first call, owned by the domain, -errno when
	 * it cannot be made. Lock: held.
	 */
	int (*wait_fd)(struct tdm_engine *engine);

	/*
	 * A counter has reached the threshold of @trigger, which waited there
	 * (peer/trigger.h), and has removed it: the next pass of progress
	 * starts the operation, and a sleeper on wait_fd() is woken for that.
	 * Called while a transport is at work, so it only queues. Lock: held.
	 */
	void (*due)(struct tdm_engine *engine, struct tdm_trigger *trigger);
};

/*
 * Might a thread sleep on wait_fd()? If not, work that is left undone needs no
 * wake-up: the next sleeper arms first. Lock: held.
 */
static inline int tdm_engine_watched(const struct tdm_engine *engine)
{
	return engine->sleepers || engine->exported;
}

/*
 * A waiter that polled so many times and for so long without result yields its
 * core to other processes. Both limits halve with each step of engine->crowd.
 */
enum { TDM_VAIN_CALLS = 256, TDM_VAIN_NS = 50000 };

enum {
	TDM_CROWD_MOST = 8, /* 1 call, 195 ns */
	TDM_CROWD_STEP = 2,
	/* A yield that took longer let another process run. */
	TDM_YIELD_ALONE_NS = 2000,
	/*
	 * One that took longer met processes that do not yield, or that have a
	 * higher priority. The thread then keeps the core for a part of that
	 * time before it yields again, or it would hardly ever run.
	 */
	TDM_YIELD_LONG_NS = 1000 * 1000,
	TDM_YIELD_STAY_PART = 16,
};

/*
 * No yield of this thread before this time of tdm_os.now_ns(), whichever engine
 * it polls: a thread that polls several must not yield for each in turn.
 */
extern __thread uint64_t tdm_stay_ns;

/*
 * The new value of engine->crowd after a yield that took @away_ns, when it was
 * @crowd before. A yield that let others run makes the next one come sooner;
 * one that returned at once lets the thread poll for longer.
 */
static inline uint32_t tdm_engine_crowd(uint32_t crowd, uint64_t away_ns)
{
	if (away_ns > TDM_YIELD_ALONE_NS)
		return (uint32_t)tdm_min(crowd + TDM_CROWD_STEP,
					 TDM_CROWD_MOST);
	return crowd ? crowd - 1 : 0;
}

/*
 * Count a poll without result. Returns 1 when the caller should call
 * tdm_engine_yield() after it has released the lock: the awaited peer may need
 * this core, and would otherwise get it only at the end of the time slice. A
 * pass that finds something sets engine->vain to 0. Lock: held.
 */
static inline int tdm_engine_vain(struct tdm_engine *engine)
{
	const uint32_t crowd = tdm_a32_load_relaxed(&engine->crowd);
	const uint32_t calls = (uint32_t)TDM_VAIN_CALLS >> crowd;
	uint64_t now;

	if (tdm_likely(++engine->vain & (calls - 1)))
		return 0;
	now = tdm_os.now_ns();
	if (engine->vain <= calls)
		engine->vain_ns = now;
	return now - engine->vain_ns > (uint64_t)TDM_VAIN_NS >> crowd &&
	       now >= tdm_stay_ns;
}

/*
 * Note that a yield took @away_ns. When two threads note it at once, one value
 * is lost. Lock: none.
 */
static inline void tdm_engine_yielded(struct tdm_engine *engine,
				      uint64_t away_ns)
{
	uint32_t crowd = tdm_a32_load_relaxed(&engine->crowd);

	tdm_a32_store_relaxed(&engine->crowd, tdm_engine_crowd(crowd, away_ns));
	if (tdm_unlikely(away_ns > TDM_YIELD_LONG_NS))
		tdm_stay_ns = tdm_os.now_ns() + away_ns / TDM_YIELD_STAY_PART;
}

/* Offer the core to others. Returns how long they had it, ns. */
static inline uint64_t tdm_yield(void)
{
	uint64_t before = tdm_os.now_ns();

	tdm_os.yield();
	return tdm_os.now_ns() - before;
}

/* The yield that tdm_engine_vain() asks for. Lock: not held. */
static inline void tdm_engine_yield(struct tdm_engine *engine)
{
	tdm_engine_yielded(engine, tdm_yield());
}

#endif /* TDM_ENGINE_H */
