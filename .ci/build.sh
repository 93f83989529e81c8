#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Everything, the tests too, compiles without a warning with gcc and clang.
. "$(dirname "$0")/lib.sh"

.ci/tree.sh "${gcc_tree[@]}"
.ci/tree.sh clang CC=clang CXX=clang++ "CXXFLAGS=-g -O0" --enable-werror
for tree in gcc clang; do
	make -C "$builds/$tree" -j"$(nproc)" test-programs
done
echo "gcc $(gcc -dumpfullversion), clang $(clang -dumpversion)"
