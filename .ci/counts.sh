#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Instructions, locked instructions and system calls of an operation, and bytes
# of an object, against the limits of bench/counts.
. "$(dirname "$0")/lib.sh"

have valgrind || die "valgrind is missing (Debian: valgrind)"
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
exec python3 .ci/counts.py "$builds/gcc" bench/counts
