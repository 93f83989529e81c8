#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# fuzz.sh [SECONDS]: each fuzz target under libFuzzer and the sanitizers, from
# its corpus on; then which branches of the parsers the corpora alone reach. The
# inputs that fail are kept in build/.
. "$(dirname "$0")/lib.sh"

seconds=${1:-20}
dir=$builds/fuzz
mkdir -p "$dir"
flags=(-std=gnu11 -D_GNU_SOURCE -g -I. -Iinclude -Itests/harness)
libs=(-lfabric -levent_core -lssl -lcrypto -lz -lpthread)

echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' >"$dir/probe.c"
clang -fsanitize=fuzzer,address "$dir/probe.c" -o "$dir/probe" 2>/dev/null || {
	echo "clang has no libFuzzer here: the unit tests run fixed inputs"
	exit 0
}

# run NAME ARGUMENT...: the program of a target, from what earlier runs found and the
# corpus of the repository on.
run() {
	local name=$1
	mkdir -p "$dir/$name.corpus"
	"$dir/$name" -max_total_time="$seconds" -verbosity=0 -print_final_stats=1 \
		-artifact_prefix="$dir/$name." "${@:2}" "$dir/$name.corpus" \
		"tests/fuzz/corpus/$name" >"$dir/$name.log" 2>&1 || {
		cat "$dir/$name.log"
		die "$name: an input fails"
	}
	sed -n "s/^stat::number_of_executed_units: */$name: $seconds s, inputs: /p" \
		"$dir/$name.log"
}

# build NAME SOURCE...: the target tests/fuzz/NAME_fuzz.c with the sources, and the
# libraries that they need.
build() {
	clang "${flags[@]}" -O1 "-Dtdt_fuzz_$1=LLVMFuzzerTestOneInput" \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		"tests/fuzz/$1_fuzz.c" "${@:2}" -o "$dir/$1"
}

# fuzz NAME SOURCE...: such a target of a parser.
fuzz() {
	build "$@"
	run "$1" -max_len=4200
}

# provider: the whole provider in a tree of its own, for the targets that use all
# of it: its branches are what guides the fuzzer.
provider() {
	.ci/tree.sh fuzzer CC=clang CXX=clang++ \
		"CFLAGS=-g -O1 -fsanitize=fuzzer-no-link" \
		--enable-asan --enable-ubsan >"$dir/tree.log" 2>&1 || {
		tail -n 20 "$dir/tree.log"
		die "the provider does not build"
	}
}

# play NAME BYTES SOURCE...: such a target, with inputs of at most so many bytes.
play() {
	build "$1" tests/harness/{world,drive}.c "${@:3}" \
		"$builds/fuzzer/.libs/libtandem-core.a" "${libs[@]}"
	TANDEM_TEST_PATH=local TANDEM_TEST_DEADLINE=20 run "$1" \
		-max_len="$2" -len_control=0 -timeout=120 -malloc_limit_mb=64
}

# reach PARSER "TARGET..." SOURCE...: how many branches of the parser its targets
# take with the inputs of the repository. Fails when one is not taken.
reach() {
	local parser=$1 targets=$2 name at
	at=$dir/reach-$(basename "$parser" .c)
	rm -rf "$at"
	mkdir -p "$at"
	gcc "${flags[@]}" -O0 --coverage -c "$parser" -o "$at/parser.o"
	for name in $targets; do
		gcc "${flags[@]}" "-Dtdt_fuzz_$name=LLVMFuzzerTestOneInput" \
			tests/fuzz/inputs.c "tests/fuzz/${name}_fuzz.c" \
			"$at/parser.o" "${@:3}" --coverage -o "$at/$name"
		"$at/$name" tests/fuzz/corpus/"$name"/*
	done
	gcov -b -c -t -o "$at" "$at/parser.o" >"$at/lines" 2>/dev/null
	awk -v file="$parser" '
		/^ *[-#=0-9]+\*?: *[0-9]+:/ { line = $0 }
		/^ *-: *0:Source:/ { ours = $0 ~ ":" file "$" }
		ours && /^branch / {
			all++
			if ($3 == "never" || $4 == "0") {
				missed++
				print line
				print "    " $0
			}
		}
		END {
			printf "%s: %d of %d branches\n", file, all - missed, all
			exit missed != 0
		}' "$at/lines"
}

base=(base/os.c base/log.c)
greeting=(av/addr.c base/auth.c base/crc.c "${base[@]}")
fuzz addr av/addr.c
fuzz stream tcp/wire/record.c av/addr.c
fuzz greeting tcp/wire/greeting.c "${greeting[@]}" "${libs[@]}"
fuzz ring shm/record.c shm/addr.c "${base[@]}" "${libs[@]}"
fuzz attach shm/record.c shm/addr.c "${base[@]}" "${libs[@]}"
fuzz shared_av av/shared_format.c av/addr.c
fuzz env tests/fuzz/env_check.c base/env.c base/env_key.c base/auth.c \
	base/congestion.c base/iflist.c base/number.c base/spelling.c \
	"${base[@]}" "${libs[@]}" \
	-Wl,--wrap=fi_param_define,--wrap=fi_log,--wrap=fi_log_enabled
provider
play script 384 tests/fuzz/script{,_pass,_steps}.c
play session 2000
reach av/addr.c addr
reach tcp/wire/record.c stream av/addr.c
reach tcp/wire/greeting.c greeting "${greeting[@]}" "${libs[@]}"
reach shm/record.c "ring attach" shm/addr.c "${base[@]}" "${libs[@]}"
reach av/shared_format.c shared_av av/addr.c
