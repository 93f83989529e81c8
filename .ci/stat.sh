#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# tandem-stat reads processes that run, compute, sleep, end or lie.
. "$(dirname "$0")/lib.sh"

have python3 || die "python3 is missing (Debian: python3)"
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
export PYTHONDONTWRITEBYTECODE=1
python3 tests/stat/segments.py
# In a network namespace where possible: processes of others, which come and go,
# are no part of the test.
own=()
if unshare --net true 2>/dev/null; then
	own=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh)
fi
exec "${own[@]}" python3 tests/stat/live.py "$builds/gcc"
