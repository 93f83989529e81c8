/* SPDX-License-Identifier: BSD-2-Clause */
/* Random schedules of the receive side against a slow model of it. */
#ifndef TDT_SRX_SCHEDULE_H
#define TDT_SRX_SCHEDULE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Counts of what the schedules did, so that a test can check that all of it
 * occurred.
 */
struct tdt_schedule_stats {
	uint64_t posts, arrivals, matches, unexpected, cancels, peeks, claims;
	uint64_t discards, lost, resolved, forgotten, releases, cut;
};

/*
 * Run one schedule. NULL, or what differed from the model. A seed always gives
 * the same schedule.
 */
const char *tdt_srx_schedule(uint64_t seed, struct tdt_schedule_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* TDT_SRX_SCHEDULE_H */
