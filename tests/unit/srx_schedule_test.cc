/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A million short schedules (under a sanitizer, which makes them some twenty
 * times slower, 50000) without a difference. TDT_SCHEDULES says how many
 * instead, TDT_SEED repeats one.
 */
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "srx_schedule.h"
#include "tests/harness/sanitized.h"
#include "tests/harness/seeded.h"

namespace
{

const uint64_t schedules = TDT_SANITIZED ? 50000 : 1000000;

TEST(SrxSchedule, AgreesWithTheSlowMatcher)
{
	const char *again = getenv("TDT_SEED");
	uint64_t n = tdt_number("TDT_SCHEDULES", schedules);
	uint64_t first = tdt_number("TDT_SEED", 1);
	struct tdt_schedule_stats t;

	memset(&t, 0, sizeof(t));
	for (uint64_t i = 0; i < (again ? 1 : n); i++) {
		const char *why = tdt_srx_schedule(first + i, &t);

		ASSERT_EQ(nullptr, why)
			<< why << "; repeat with TDT_SEED=" << first + i;
	}
	if (again || n < 1000)
		return;
	/* They did everything, and not seldom. */
	for (uint64_t done : { t.posts, t.arrivals, t.matches, t.unexpected,
			       t.cancels, t.peeks, t.claims, t.discards, t.lost,
			       t.resolved, t.forgotten, t.releases, t.cut })
		EXPECT_GT(done, n / 100);
}

} // namespace
