/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random scripts of calls over both tiers, tests/fuzz/script.h, without libFuzzer.
 * TANDEM_SCRIPTS is the number of scripts (100); TANDEM_SEED the first one (1).
 */
#include "tests/harness/seeded.h"
#include "tests/fuzz/script.h"
#include "tests/harness/fixture.h"

namespace
{

std::vector<uint8_t> script(uint64_t seed)
{
	uint64_t state = tdt_mix(seed);
	std::vector<uint8_t> s(SCRIPT_STEP_BYTES *
			       (1 + tdt_seeded(&state, SCRIPT_STEPS)));

	for (uint8_t &byte : s)
		byte = uint8_t(tdt_seeded(&state, 256));
	return s;
}

} // namespace

/*
 * fi_endpoint(3) and the pages of the operations describe them without a word
 * about what is below: a script comes to the same over both tiers.
 */
TEST(Script, BothTiersComeToTheSame)
{
	const uint64_t first = tdt_number("TANDEM_SEED", 1);
	const uint64_t scripts = tdt_number("TANDEM_SCRIPTS", 100);

	for (uint64_t seed = first; seed < first + scripts; seed++) {
		std::vector<uint8_t> s = script(seed);
		const char *broken =
			tdt_script_compare(s.data(), s.size(), nullptr);

		ASSERT_EQ(nullptr, broken)
			<< broken << "\n  repeat: TANDEM_SEED=" << seed
			<< " TANDEM_SCRIPTS=1 ./dev test "
			   "Script.BothTiersComeToTheSame";
	}
}
