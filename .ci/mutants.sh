#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# mutants.sh [NAME...]: tests of the tests. Each bug of tests/mutants/ is planted in
# a copy of the sources, alone; the stage that it names must fail. Results are kept
# for as long as the sources are the same, so that a run that was interrupted goes on.
. "$(dirname "$0")/lib.sh"

copy=$builds/mutants-source
tree=$builds/mutants
mkdir -p "$copy" "$tree"
.ci/mutants.py --apply
sum=$(files '*.[ch]' '*.cc' '*.am' configure.ac | xargs cat | sha256sum | cut -c1-12)

files '*' | tar -c -T - | tar -x -C "$copy"
[ -f "$copy/configure" ] || (cd "$copy" && ./autogen.sh)
[ -f "$tree/Makefile" ] || (cd "$tree" &&
	../mutants-source/configure -q CC=gcc CXX=g++ "CFLAGS=-g1 -O1" \
		"$tests_flags" --enable-debug)
# The good sources, so that a stage that fails anyway is found out.
make -C "$tree" -j"$(nproc)" tests/unit_tests tests/scenario_tests \
	tests/sim_tests
exec .ci/mutants.py "$copy" "$tree" "$builds/full/mutants-$sum" "$@"
