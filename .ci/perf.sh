#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# tandem-perf over several providers, on one host and two, and the ways it can fail.
. "$(dirname "$0")/lib.sh"

have python3 || die "python3 is missing (Debian: python3)"
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
PYTHONDONTWRITEBYTECODE=1 tests/perf/cases.py "$builds/gcc"
