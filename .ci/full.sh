#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What takes too long for every check: ./dev check full. All scenarios with each
# call failing in turn, 10^4 processes killed at an instruction, 2,000 evil twins of
# each tier, 10^7 seeds of the simulator, a soak of 10^9 messages through shared
# memory and 10^8 over TCP, five seeds of each bad network of tests/net/, two minutes
# of each fuzz target, 10^4 scripts of calls over both tiers, and planted bugs, which
# the tests must catch. Results are kept per scenario and 10^5 seeds, so
# that a run that was interrupted goes on; a test program that has changed begins
# anew. Several parts run at once, for many of them wait. The figures are those of
# doc/ASSURANCE.md.
. "$(dirname "$0")/lib.sh"

.ci/tree.sh "${gcc_tree[@]}"
make -C "$builds/gcc" -j"$(nproc)" tests/scenario_tests tests/sim_tests \
	tests/soak_tests tests/conform_tests
scenarios=$builds/gcc/tests/scenario_tests
simulator=$builds/gcc/tests/sim_tests
soak=$builds/gcc/tests/soak_tests
results=$builds/full/$(cat "$scenarios" "$simulator" "$soak" | sha256sum | cut -c1-12)
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

# beside COMMAND...: run it in the background, four at a time for each processor.
beside() {
	while [ "$(jobs -pr | wc -l)" -ge "$(($(nproc) * 4))" ]; do
		wait -n
	done
	"$@" &
}

# Bash has jobs ignore the interrupt that ends this script.
trap 'kill $(jobs -pr) 2>/dev/null || :' EXIT

# cases NAME PROGRAM FILTER: the part that is the tests of FILTER.
cases() {
	part "$1" "$2" --gtest_brief=1 --gtest_filter="$3"
}

export TANDEM_SCENARIOS=all TANDEM_KILLS=10000 TANDEM_TWINS=2000
export TANDEM_SOAK=1000000000 TANDEM_SIMS=100000 TANDEM_SCRIPTS=10000
mapfile -t names < <("$scenarios" --gtest_list_tests \
	--gtest_filter='Scenario/TurnOf*' |
	sed -n 's,^  EachCallFailsOnce/\([a-z0-9_]*\).*,\1,p' | grep -v ^silence)
[ "${#names[@]}" != 0 ] || die "no scenario found"

# seeds FIRST: every $(nproc)th hundred thousand of them.
seeds() {
	renice -n 10 -p $BASHPID >/dev/null || :
	for ((i = $1; i < 100; i += $(nproc))); do
		TANDEM_SEED=$((i * TANDEM_SIMS + 1)) cases "sim-$i" \
			"$simulator" Sim.EachSeedKeepsThePromises
	done
}

# Seeds compute, the others wait most of the time.
for ((k = 0; k < $(nproc); k++)); do
	beside seeds $k
done
for name in SharedMemory Tcp; do
	beside cases "soak-$name" "$soak" "Soak.$name"
done
# They keep results of their own, and have the time limits of the tests as they are.
rm -f "$results/mutants.ok"
beside part mutants env -u TANDEM_SIMS -u TANDEM_SCENARIOS -u TANDEM_KILLS \
	-u TANDEM_TWINS -u TANDEM_SOAK -u TANDEM_SCRIPTS -u FI_PROVIDER_PATH .ci/mutants.sh
beside cases "kill-$TANDEM_KILLS" "$scenarios" Kill.AnyInstruction
beside cases twin-tcp "$scenarios" 'Twin.*_Tcp*'
beside cases twin-shm "$scenarios" 'Twin.*_Segments*'
beside part fuzz .ci/fuzz.sh 120
TANDEM_TEST_PATH=local beside cases scripts "$builds/gcc/tests/conform_tests" 'Script.*'
# Each play of it waits for a time-out.
for share in 1 2 3 4; do
	TANDEM_SHARE=$share/4 beside cases "silence-$share" "$scenarios" \
		"Scenario/TurnOf.EachCallFailsOnce/silence*"
done
for seed in 1 2 3 4 5; do
	TANDEM_SEED=$seed beside part "networks-$seed" \
		tests/net/run.sh "$builds/gcc" full
done
for name in "${names[@]}"; do
	beside cases "$name" "$scenarios" "Scenario/TurnOf.EachCallFailsOnce/$name"
done
wait
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
grep -h -E ' inputs: |branches$' "$results/fuzz.out" || :
cat "$results"/*.out | awk '
	/ strikes, / { n += !seen[$1]++; strikes += $2; failures += $4; lost += $6 }
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
tail -n 1 "$results/mutants.out"
[ "$bad" = 0 ]
