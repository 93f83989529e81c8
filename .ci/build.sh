#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Everything compiles without a warning: the library with gcc and clang, the tests
# with gcc here and with clang for the thread sanitizer, in sanitize.sh.
. "$(dirname "$0")/lib.sh"

.ci/tree.sh "${gcc_tree[@]}"
.ci/tree.sh clang CC=clang CXX=clang++ --enable-werror
make -C "$builds/gcc" -j"$(nproc)" test-programs
echo "gcc $(gcc -dumpfullversion), clang $(clang -dumpversion)"
