/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plays of the simulator, sim_play.h, one for each seed.
 *
 * TANDEM_SIMS is the number of seeds (2000); TANDEM_SEED the first one (1). A
 * failure prints the value of TANDEM_SIM with which Sim.Replay repeats it;
 * TANDEM_SIM_TRACE=1 prints what happens in it.
 */
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/harness/fixture.h"
#include "tests/harness/seeded.h"

#include "sim_play.h"

namespace
{

enum { BAD_MOST = 10 }; /* seeds that fail, then a run ends */

class Sim : public testing::Test
{
protected:
	std::unique_ptr<struct tds_play> p =
		std::make_unique<struct tds_play>();

	void SetUp() override
	{
		tdt_log_expect("");
		tds_stage_begin();
	}

	/* What a failed play has open would spoil the next one. */
	bool play(uint64_t seed)
	{
		std::string wrong = tds_play(p.get(), seed);

		if (wrong.empty())
			return true;
		ADD_FAILURE() << wrong << "\n  repeat: TANDEM_SIM=" << seed
			      << " ./dev test Sim.Replay";
		return false;
	}
};

TEST_F(Sim, EachSeedKeepsThePromises)
{
	uint64_t first = tdt_number("TANDEM_SEED", 1),
		 n = tdt_number("TANDEM_SIMS", 2000);
	uint64_t steps = 0, received = 0, onesided = 0, lost = 0, failed = 0;
	uint64_t calls = 0, faults = 0, i;
	int bad = 0;

	for (i = 0; i < n; i++) {
		if (i % 1000 == 0)
			tdt_watchdog_restart();
		if (!play(first + i) && ++bad == BAD_MOST)
			break;
		steps += p->steps;
		received += p->received;
		onesided += p->onesided;
		lost += p->lost;
		failed += p->failed;
		faults += p->faults;
		calls += tds_calls();
	}
	printf("%ju seeds, %ju steps, %ju calls, %ju messages, %ju one-sided, "
	       "%ju faults, %ju operations failed, %ju messages lost with "
	       "connections\n",
	       i, steps, calls, received, onesided, faults, failed, lost);
}

TEST_F(Sim, APlayIsRepeated)
{
	uint64_t seed, digest;

	for (seed = 1; seed < 40; seed++) {
		ASSERT_TRUE(play(seed));
		digest = tds_digest();
		ASSERT_TRUE(play(seed));
		EXPECT_EQ(tds_digest(), digest) << "seed " << seed;
	}
}

TEST_F(Sim, Replay)
{
	if (!getenv("TANDEM_SIM"))
		GTEST_SKIP() << "TANDEM_SIM names no seed";
	tds_tracing = getenv("TANDEM_SIM_TRACE") != nullptr;
	play(tdt_number("TANDEM_SIM", 1));
	tds_tracing = 0;
}

} // namespace
