#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Checked operations over bad networks: loss, delay, reordering, duplicates, MTU.
. "$(dirname "$0")/lib.sh"

.ci/tree.sh "${gcc_tree[@]}" >/dev/null
tests/net/run.sh "$builds/gcc"
