#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# tandem-doctor names cause and remedy in machines that are set up badly.
. "$(dirname "$0")/lib.sh"

have python3 || die "python3 is missing (Debian: python3)"
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
PYTHONDONTWRITEBYTECODE=1 tests/doctor/setups.py "$builds/gcc"
