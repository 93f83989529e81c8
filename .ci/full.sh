#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What takes too long for every check: ./dev check full. All scenarios with each
# call failing in turn, 2,000 processes killed at an instruction, 2,000 evil twins of
# each tier, 10^6 seeds of the simulator, a soak of 10^9 messages through shared
# memory and 10^8 over TCP, five seeds of each bad network of tests/net/, and planted
# bugs, which the tests must catch. Results are kept per scenario and 10^4 seeds, so
# that a run that was interrupted goes on; a test program that has changed begins
# anew. Scenarios and seeds are played on all processors at once, the rest one part after
# the other. The figures are those of doc/ASSURANCE.md.
. "$(dirname "$0")/lib.sh"

.ci/tree.sh "${gcc_tree[@]}"
make -C "$builds/gcc" -j"$(nproc)" tests/scenario_tests tests/sim_tests tests/soak_tests
scenarios=$builds/gcc/tests/scenario_tests
simulator=$builds/gcc/tests/sim_tests
results=$builds/full/$(cat "$scenarios" "$simulator" | sha256sum | cut -c1-12)
mkdir -p "$results"
export FI_PROVIDER_PATH=$top/$builds/gcc/.libs
export TANDEM_TEST_WATCHDOG=36000 TANDEM_TEST_DEADLINE=30

# part NAME COMMAND...: run COMMAND, unless NAME has its result. One that the machine
# forbids (exit status 77) has none; the last line of its output says why.
part() {
	local base=$results/$1 ret=0
	[ ! -e "$base.ok" ] || return 0
	rm -f "$base.bad"
	"${@:2}" >"$base.out" 2>&1 || ret=$?
	case $ret in
	0) touch "$base.ok" ;;
	77) ;;
	*) touch "$base.bad" ;;
	esac
}

# beside COMMAND...: run it in the background, one command for each processor at once.
beside() {
	while [ "$(jobs -pr | wc -l)" -ge "$(nproc)" ]; do
		wait -n
	done
	"$@" &
}

# Bash has jobs ignore the interrupt that ends this script.
trap 'kill $(jobs -pr) 2>/dev/null || :' EXIT

# cases NAME FILTER: the part that is the tests of FILTER.
cases() {
	part "$1" "$program" --gtest_brief=1 --gtest_filter="$2"
}

# Seeds first: they have no clock but their own.
program=$simulator
export TANDEM_SIMS=10000
for ((i = 0; i < 100; i++)); do
	export TANDEM_SEED=$((i * TANDEM_SIMS + 1))
	beside cases "sim-$i" Sim.EachSeedKeepsThePromises
done
wait
unset TANDEM_SEED
program=$scenarios
export TANDEM_SCENARIOS=all TANDEM_KILLS=2000 TANDEM_TWINS=2000
mapfile -t names < <("$program" --gtest_list_tests \
	--gtest_filter='Scenario/TurnOf*' | sed -n 's,^  EachCallFailsOnce/\([a-z0-9_]*\).*,\1,p')
[ "${#names[@]}" != 0 ] || die "no scenario found"
for name in "${names[@]}"; do
	beside cases "$name" "Scenario/TurnOf.EachCallFailsOnce/$name"
done
wait
cases kill 'Kill.AnyInstruction'
cases twin 'Twin.*'
program=$builds/gcc/tests/soak_tests
export TANDEM_SOAK=1000000000
cases soak-shm Soak.SharedMemory
cases soak-tcp Soak.Tcp
for seed in 1 2 3 4 5; do
	TANDEM_SEED=$seed part "networks-$seed" tests/net/run.sh "$builds/gcc" full
done
bad=0
for name in "$results"/*.bad; do
	[ -e "$name" ] || continue
	bad=1
	name=$(basename "$name" .bad)
	echo "== $name"
	grep -A1 -E 'TANDEM_(STRIKE|KILL|TWIN|SIM|SEED)=' "$results/$name.out" | head -n 40 ||
		tail -n 20 "$results/$name.out"
done
grep -h '^soak over' "$results"/soak-*.out
tail -qn 1 "$results"/networks-*.out
cat "$results"/*.out | awk '
	/ strikes, / { n++; strikes += $2; failures += $4; lost += $6 }
	/^killed at / { kills += $3 }
	/ twins over / { twins += $1 }
	/ seeds, / { seeds += $1; steps += $3; messages += $7 }
	END {
		printf "%d scenarios, %d strikes, %d failures, " \
			"%d messages lost with connections, %d kills, %d twins, " \
			"%d seeds with %d steps and %d messages\n",
			n, strikes, failures, lost, kills, twins, seeds,
			steps, messages
	}'
.ci/mutants.sh >"$results/mutants.out" 2>&1 || bad=1
grep -vE ' caught$|^make' "$results/mutants.out" | tail -n 20
[ "$bad" = 0 ]
