#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# All test programs under the address, undefined behaviour and thread
# sanitizers.
. "$(dirname "$0")/lib.sh"

export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=second_deadlock_stack=1
export TANDEM_TEST_WATCHDOG=1200 # seconds; everything is slower

ret=0
test_tree results-asan asan CC=gcc CXX=g++ "CFLAGS=-g -O1" "$tests_flags" \
	--enable-debug --enable-asan --enable-ubsan || ret=1
test_tree results-tsan tsan CC=clang CXX=clang++ "CFLAGS=-g -O1" \
	"$tests_flags" --enable-debug --enable-tsan --enable-werror || ret=1
[ "$ret" = 0 ] || exit 1
for name in asan tsan; do
	read -r passed failed skipped < <(gtest_total "$builds/results-$name")
	printf '%s: %d passed, %d failed, %d skipped  ' \
		"$name" "$passed" "$failed" "$skipped"
done
echo
