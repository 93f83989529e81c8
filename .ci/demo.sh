#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The demonstration works and leaves nothing behind.
. "$(dirname "$0")/lib.sh"

.ci/tree.sh "${gcc_tree[@]}" >/dev/null
fabtests/run-demo.sh "$builds/gcc"
