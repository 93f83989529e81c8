/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a thread that polls without result offers its core to others, and how:
 * it yields, or it naps, which means that it sleeps until a message arrives but
 * for TDM_NAP_NS at most. Decision 26 has the reasons. Spec: fi_tandem(7),
 * PROGRESS.
 */
#ifndef TDM_PEER_PATIENCE_H
#define TDM_PEER_PATIENCE_H

#include <stdint.h>

#include "base/base.h"
#include "base/os.h"
#include "tdm_engine.h"

/*
 * A thread offers its core after it has polled without result at least
 * TDM_VAIN_CALLS times and for TDM_VAIN_NS nanoseconds. Each increment of
 * engine->crowd halves both limits.
 */
enum { TDM_VAIN_CALLS = 256, TDM_VAIN_NS = 50000 };

enum {
	TDM_CROWD_MOST = 8, /* 1 call, 195 ns */
	TDM_CROWD_STEP = 2,
	/* A yield that took longer let another process run. */
	TDM_YIELD_ALONE_NS = 2000,
	/*
	 * One that took longer met processes that do not yield, or that have a
	 * higher priority: their time slices are mostly longer, while ranks that
	 * reduce or copy for their peers yield sooner. The thread then keeps the core for
	 * a part of that time before it offers it again, or it would hardly ever run;
	 * and it naps instead of yielding for a multiple of that time.
	 */
	TDM_YIELD_LONG_NS = 2000 * 1000,
	TDM_YIELD_STAY_PART = 16,
	TDM_YIELD_NAP_TIMES = 16,
	/*
	 * Short, because what the thread waits for may be something else than a
	 * message: another thread's progress, or another library.
	 */
	TDM_NAP_NS = 60 * 1000,
	/*
	 * Naps in a row that work left undone may prevent; the next one is a
	 * yield.
	 */
	TDM_NAPS_REFUSED = 8,
};

/*
 * Of each thread, whichever engine it polls: one that polls several must not
 * offer its core for each in turn. Times of tdm_os.now_ns().
 */
struct tdm_patience {
	uint64_t stay_ns; /* the thread keeps the core until then */
	uint64_t nap_ns;  /* the thread naps instead of yielding until then */
	uint32_t refused; /* naps prevented in a row */
};

extern __thread struct tdm_patience tdm_patience;

/*
 * The new value of engine->crowd after a yield that took @away_ns, when it was
 * @crowd before. A yield that let others run makes the next one come sooner;
 * one that returned at once lets the thread poll for longer.
 */
static inline uint32_t tdm_engine_crowd(uint32_t crowd, uint64_t away_ns)
{
	if (away_ns > TDM_YIELD_LONG_NS)
		return 0;
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
	uint64_t now;

	/* Each TDM_VAIN_CALLS >> crowd calls, in one shift. */
	if (tdm_likely((++engine->vain << crowd) % TDM_VAIN_CALLS))
		return 0;
	now = tdm_os.now_ns();
	if (engine->vain <= (uint32_t)TDM_VAIN_CALLS >> crowd)
		engine->vain_ns = now;
	return now - engine->vain_ns > (uint64_t)TDM_VAIN_NS >> crowd &&
	       now >= tdm_patience.stay_ns;
}

/* Yield the core to others. Returns how long they had it, ns. */
uint64_t tdm_yield(void);

/*
 * Note that a yield took @away_ns, for @engine and the calling thread. When two
 * threads note it at once, one value is lost. Lock: none.
 */
void tdm_engine_yielded(struct tdm_engine *engine, uint64_t away_ns);

/*
 * Offer the core, as tdm_engine_vain() asks for it: yield, or nap when yields
 * were long lately. Returns after TDM_NAP_NS or when others yield or are
 * preempted. Lock: not held; taken and released for a nap.
 */
void tdm_engine_yield(struct tdm_engine *engine);

#endif /* TDM_PEER_PATIENCE_H */
