#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The release is complete: it builds, installs and uninstalls by itself.
. "$(dirname "$0")/lib.sh"

if [[ $top == *[[:space:]]* ]]; then
	echo "libtool cannot install below a path with a space"
	exit 77
fi
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
# The tests ran already: here they are only built, nothing is optimised, and by the
# compiler that is faster.
make -C "$builds/gcc" -j"$(nproc)" distcheck TESTS= \
	DISTCHECK_CONFIGURE_FLAGS="CC=clang CXX=clang++ CFLAGS=-O0 CXXFLAGS=-O0"
echo "$(basename "$(ls "$builds"/gcc/tandem-*.tar.xz)") builds and installs"
