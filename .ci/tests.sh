#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# All test programs, as they are.
. "$(dirname "$0")/lib.sh"

test_tree results "${gcc_tree[@]}"
