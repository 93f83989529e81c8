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

struct sockaddr;
struct tdm_imports;
struct tdm_trigger;

enum { TDM_SOURCE_ADDR_BYTES = 128 };

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
	/*
	 * 1: the caller is an owner that lends its receive contexts to us, and
	 * has locked them: peer/import_srx.h; G: lock
	 */
	int lent;
	struct tdm_imports *imports; /* those contexts, or NULL; G: lock */
	uint64_t passes;	     /* of progress, free-running; G: lock */
	/* Of peer/patience.h: */
	uint32_t vain; /* polls in a row without result; G: lock */
	/* time of the first of these polls that read the clock; G: lock */
	uint64_t vain_ns;
	tdm_a32 crowd; /* 0..TDM_CROWD_MOST: tdm_engine_crowd() */

	/*
	 * Writes the address @sa in the domain's format to @buf[@room]. Returns
	 * how many bytes it wrote, at most @room; TDM_SOURCE_ADDR_BYTES are
	 * enough. If this is NULL, addresses are reported as they are. Lock:
	 * held.
	 */
	size_t (*source_addr)(const struct tdm_engine *engine,
			      const struct sockaddr *sa, void *buf,
			      size_t room);

	/* Makes one pass of progress of both transports. Lock: held. */
	void (*progress)(struct tdm_engine *engine);

	/*
	 * Prepares for sleep. Returns 0: the caller may sleep on wait_fd();
	 * -FI_EAGAIN: something is pending, call progress() instead. Only arm()
	 * may make wait_fd() unreadable again, and then it arms anew: a
	 * progress() of another thread must not take the wake-up from a
	 * sleeper. Lock: held.
	 */
	int (*arm)(struct tdm_engine *engine);

	/*
	 * Returns the file descriptor that becomes readable when any transport
	 * needs progress, or -errno when it cannot be made. The first call
	 * makes it; the domain owns it. Lock: held.
	 */
	int (*wait_fd)(struct tdm_engine *engine);

	/*
	 * Called by a counter that has reached the threshold of @trigger and
	 * has removed it from those that wait there (peer/trigger.h). Called
	 * while a transport is at work, so it only queues the operation and
	 * wakes a sleeper on wait_fd(); the next pass of progress starts it.
	 * Lock: held.
	 */
	void (*due)(struct tdm_engine *engine, struct tdm_trigger *trigger);
};

/*
 * Not 0 when a thread may be sleeping on wait_fd(). If none is, work that is
 * left undone needs no wake-up: the next sleeper arms first. Lock: held.
 */
static inline int tdm_engine_watched(const struct tdm_engine *engine)
{
	return engine->sleepers || engine->exported;
}

#endif /* TDM_ENGINE_H */
