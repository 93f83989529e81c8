#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# All test programs under the address, undefined behaviour and thread
# sanitizers. Both trees are made by clang, which needs three fifths of gcc's time for
# the tests.
. "$(dirname "$0")/lib.sh"

# Else clang's runtime looks for llvm-symbolizer, and reports addresses alone.
common=external_symbolizer_path=$(command -v addr2line || :)
export ASAN_OPTIONS=$common:detect_leaks=1:strict_string_checks=1:malloc_context_size=15
export UBSAN_OPTIONS=$common:print_stacktrace=1
export TSAN_OPTIONS=$common:second_deadlock_stack=1
export TANDEM_TEST_WATCHDOG=1200 # seconds; everything is slower

bad=()

# run NAME CONFIGURE-ARGUMENT...: the test programs of a tree, with a log of
# their own, so that this log ends with the failures of all of them.
run() {
	local name=$1
	shift
	mkdir -p "$builds/log"
	test_tree "results-$name" "$name" CC=clang CXX=clang++ "$@" \
		"CFLAGS=-g -O1" "$tests_flags" --enable-debug \
		>"$builds/log/$name.log" 2>&1 || bad+=("$name")
}

run asan --enable-asan --enable-ubsan
run tsan --enable-tsan --enable-werror
for name in "${bad[@]}"; do
	echo "== $name"
	if grep -q '^== failures of' "$builds/log/$name.log"; then
		sed -n '/^== failures of/,$p' "$builds/log/$name.log"
	else
		tail -n 40 "$builds/log/$name.log"
	fi
done
for name in asan tsan; do
	read -r passed failed skipped < <(gtest_total "$builds/results-$name")
	printf '%s: %d passed, %d failed, %d skipped  ' \
		"$name" "$passed" "$failed" "$skipped"
done
echo
[ "${#bad[@]}" = 0 ]
