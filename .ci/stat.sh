#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# tandem-stat reads processes that run, compute, sleep, end or lie.
. "$(dirname "$0")/lib.sh"

have python3 || die "python3 is missing (Debian: python3)"
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
export PYTHONDONTWRITEBYTECODE=1
python3 tests/stat/segments.py
exec python3 tests/stat/live.py "$builds/gcc"
