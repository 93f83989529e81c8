#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# fuzz.sh [SECONDS]: each fuzz target under libFuzzer and the sanitizers, from
# its corpus on. The inputs that fail are kept in build/.
. "$(dirname "$0")/lib.sh"

seconds=${1:-20}
dir=$builds/fuzz
mkdir -p "$dir"

echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' >"$dir/probe.c"
clang -fsanitize=fuzzer,address "$dir/probe.c" -o "$dir/probe" 2>/dev/null || {
	echo "clang has no libFuzzer here: the unit tests run fixed inputs"
	exit 0
}

# fuzz NAME SOURCE...: the target tests/fuzz/NAME_fuzz.c with the sources, and the
# libraries that they need.
fuzz() {
	local name=$1
	shift
	clang -std=c11 -D_GNU_SOURCE -g -O1 -I. -Iinclude \
		"-Dtdt_fuzz_$name=LLVMFuzzerTestOneInput" \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		"tests/fuzz/${name}_fuzz.c" "$@" -o "$dir/$name"
	mkdir -p "$dir/$name.corpus"
	"$dir/$name" -max_total_time="$seconds" -max_len=4200 -verbosity=0 \
		-artifact_prefix="$dir/$name." "$dir/$name.corpus" \
		"tests/fuzz/corpus/$name"
	echo "$name: $seconds s"
}

system=(base/os.c base/log.c -lfabric)
fuzz addr av/addr.c
fuzz stream tcp/wire/record.c av/addr.c
fuzz greeting tcp/wire/greeting.c av/addr.c base/auth.c base/crc.c \
	"${system[@]}" -lssl -lcrypto -lz
fuzz ring shm/record.c shm/addr.c "${system[@]}"
fuzz attach shm/record.c shm/addr.c "${system[@]}"
