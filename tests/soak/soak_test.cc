/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The soak over each tier, and over both at once. TANDEM_SOAK is the number of
 * messages through shared memory, a tenth of it over TCP; TANDEM_SEED chooses the
 * traffic and what is struck.
 */
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/harness/sanitized.h"
#include "tests/harness/seeded.h"

extern "C" {
#include "soak.h"
}

namespace
{

class Soak : public testing::Test
{
protected:
	/* Messages in all, divided by @share. */
	static void soak(const char *tier, const char *path, unsigned share,
			 bool resets)
	{
		uint64_t all = tdt_number("TANDEM_SOAK",
					  TDT_SANITIZED ? 100000 : 1000000);
		struct tdt_soak_plan plan = {};
		struct tdt_soak_result result;

		setenv("FI_TANDEM_SHM", path, 1);
		plan.messages = all / share;
		plan.rests = 5;
		plan.resets = resets;
		plan.strikes = plan.messages > 10000000 ? 100 : 5;
		if (resets)
			plan.strikes *= 2;
		plan.seed = tdt_number("TANDEM_SEED", 1);
		EXPECT_EQ(0, tdt_soak_run(&plan, &result))
			<< result.problem << ": TANDEM_SEED=" << plan.seed
			<< " TANDEM_SOAK=" << all;
		printf("soak over %s: %llu messages, %llu bytes, %llu writes "
		       "read back, %llu fetch-adds, %u kills, %u stops, "
		       "%u resets, %llu errors of operations to the dead\n",
		       tier, static_cast<unsigned long long>(result.messages),
		       static_cast<unsigned long long>(result.bytes),
		       static_cast<unsigned long long>(result.writes),
		       static_cast<unsigned long long>(result.atomics),
		       result.kills, result.stops, result.resets,
		       static_cast<unsigned long long>(result.errors));
		EXPECT_GE(result.messages, plan.messages);
		EXPECT_GT(result.kills, 0u);
		EXPECT_GT(result.stops, 0u);
		EXPECT_EQ(resets, result.resets > 0);
		EXPECT_GT(result.writes, 0u);
		EXPECT_GT(result.atomics, 0u);
	}
};

TEST_F(Soak, SharedMemory)
{
	soak("shared memory", "auto", 1, false);
}

TEST_F(Soak, Tcp)
{
	soak("TCP", "off", 10, true);
}

} // namespace
