#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The commands of the guides give what the guides show.
. "$(dirname "$0")/lib.sh"

have python3 || die "python3 is missing (Debian: python3)"
.ci/tree.sh "${gcc_tree[@]}" >/dev/null
mapfile -t pages < <(files 'doc/guide/*.md')
tests/guide/run.sh "$builds/gcc" "${pages[@]}"
